# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The study of sentence length: as many training words from each range, every number and the figure written."""

import json

import pytest
from scripting import load_script

from hf_attn.data import split_words


def test_each_range_gives_the_same_number_of_words():
    study = load_script("scripts/length_study.py")
    for lengths in study.LENGTHS:
        pairs = study.sentences_with_words("en-it", lengths, 300, seed=0)["translation"]
        words = [len(split_words(pair["en"])) for pair in pairs]
        assert 300 <= sum(words) < 300 + max(words)  # punctuation included
        assert all(lengths[0] <= count for count in words)


@pytest.mark.slow
def test_the_study_trains_measures_and_draws(tmp_path):
    study = load_script("scripts/length_study.py")
    settings = {"words": 400, "test_sentences": 3, "hidden_size": 16, "max_steps": 2, "tokens_per_batch": 512}
    results = study.main(study.StudyArguments(output_dir=str(tmp_path), pair="en-it", **settings))
    assert list(results) == ["none-tiny", "bahdanau-tiny"]
    report = json.loads((tmp_path / "length_study.json").read_text(encoding="utf-8"))
    assert report["bleu"] == results and all(len(scores) == 4 for scores in results.values())
    assert (tmp_path / "length_study.png").read_bytes().startswith(b"\x89PNG")
    again = study.main(study.StudyArguments(output_dir=str(tmp_path), pair="en-it", **settings))
    assert again == results  # finished models are not trained again
