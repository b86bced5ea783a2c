# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Error rates against their definition, and weights near the diagonal of matrices written out."""

import pytest
import torch

from hf_attn.data import phrasebook, text_words
from hf_attn.inference import Translator
from hf_attn.studies import alignment


def error_rate(found, sure, possible):
    """1 - (|A and S| + |A and P|) / (|A| + |S|), summed over sentences."""
    hits = sum(len(a & s) + len(a & (s | p)) for a, s, p in zip(found, sure, possible))
    return 1 - hits / sum(len(a) + len(s) for a, s in zip(found, sure))


def test_weights_near_the_diagonal():
    assert alignment.near_the_diagonal(torch.eye(5)) == 1
    assert alignment.near_the_diagonal(torch.eye(5).flip(0)) == pytest.approx(1 / 5)
    assert alignment.near_the_diagonal(torch.full((6, 6), 1 / 6)) == pytest.approx(1 / 6)
    assert alignment.near_the_diagonal(torch.tensor([[1.0]])) == 1


def test_rates_of_a_model_and_of_the_diagonal_are_those_of_the_definition(models):
    (row,) = alignment.run(models=str(models), sentences=4)["rows"]  # the other has no attention
    test = phrasebook("en-it", "test", size=4)
    sure, possible = ([set(map(tuple, links)) for links in test[name]] for name in ("sure", "possible"))
    pairs = [(pair["en"], pair["it"]) for pair in test["translation"]]
    lengths = [(len(text_words(source)), len(text_words(target))) for source, target in pairs]
    diagonal = [{(round(j * (m - 1) / (n - 1)), j) for j in range(n)} if n > 1 else {(0, 0)} for m, n in lengths]
    assert row["of_the_diagonal"] == pytest.approx(error_rate(diagonal, sure, possible))
    scored = Translator(str(models / row["model"])).score(*map(list, zip(*pairs)))
    found = []
    for one, (m, n) in zip(scored, lengths):
        best = one.alignment().weights[:n].argmax(dim=1).tolist()
        found.append({(i, j) for j, i in enumerate(best) if i < m})
    assert row["error_rate"] == pytest.approx(error_rate(found, sure, possible))
    assert len(row["weights"]) == len(row["target_words"]) and len(row["weights"][0]) == len(row["source_words"])


@pytest.mark.parametrize("empty", [None, "."])
def test_without_translators_the_missing_argument_is_named(empty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="models is .*; give --models"):
        alignment.run(models=empty)
