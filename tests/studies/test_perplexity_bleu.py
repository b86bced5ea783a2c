# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The two measures against the numbers that the lecture prints, sacrebleu, and the loss of a model."""

import math

import pytest
import sacrebleu
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_attn.data import phrasebook
from hf_attn.inference import Translator
from hf_attn.studies import perplexity_bleu


@pytest.fixture(scope="module")
def rows():
    return {row["translation"]: row for row in perplexity_bleu.run()["rows"]}


def test_the_numbers_of_the_lecture(rows):
    first, second = rows["translation 1"], rows["translation 2"]
    assert (first["precisions"], second["precisions"]) == ("6/6 3/5 2/4 1/3", "4/6 1/5 0/4 0/3")
    assert (first["bigrams_with_ends"], second["bigrams_with_ends"]) == ("4/7", "3/7")
    assert [round(row[name], 4) for row in (first, second) for name in ("BLEU-2", "BLEU-4")] == [
        0.7746,
        0.5623,
        0.3651,
        0.0,
    ]
    short, repeated = rows["two sure words"], rows["one word four times"]
    assert round(short["brevity_penalty"], 4) == round(short["BLEU-2"], 4) == 0.1353
    assert short["precisions"].startswith("2/2 1/1") and repeated["precisions"].startswith("1/4")


def test_perplexity_is_that_of_the_words_in_their_places_and_disagrees(rows):
    for name, right in (("translation 1", 1), ("translation 2", 4)):
        assert rows[name]["right_in_place"] == right
        log = right * math.log(0.5) + (6 - right) * math.log(0.5 / 9999)
        assert rows[name]["perplexity"] == pytest.approx(math.exp(-log / 6))
    assert rows["translation 2"]["perplexity"] < rows["translation 1"]["perplexity"]
    assert rows["translation 2"]["BLEU-2"] < rows["translation 1"]["BLEU-2"]


@pytest.mark.parametrize("order", [2, 4])
def test_bleu_is_that_of_sacrebleu(rows, order):
    scorer = sacrebleu.BLEU(max_ngram_order=order, tokenize="none", smooth_method="none", force=True)
    for row in rows.values():
        theirs = scorer.corpus_score([row["text"]], [[perplexity_bleu.REFERENCE]]).score
        assert 100 * row[f"BLEU-{order}"] == pytest.approx(theirs, abs=1e-6)


def test_models_are_measured_by_their_loss_and_by_what_they_write(models):
    result = perplexity_bleu.run(models=str(models), sentences=3)
    assert [row["model"] for row in result["models"]] == ["en-it-bahdanau", "en-it-none"] and result["couples"] == 1
    pairs = phrasebook("en-it", "test", size=3)["translation"]
    for row in result["models"]:
        model = AutoModelForSeq2SeqLM.from_pretrained(models / row["model"])
        tokenizer = AutoTokenizer.from_pretrained(models / row["model"])
        losses, tokens = 0.0, 0
        for pair in pairs:
            inputs = tokenizer(pair["en"], text_target=pair["it"], return_tensors="pt")
            count = inputs["labels"].shape[1]
            with torch.no_grad():
                losses += model(**inputs).loss.item() * count
            tokens += count
        assert row["perplexity"] == pytest.approx(math.exp(losses / tokens), rel=1e-4)
        outputs = [one.text for one in Translator(str(models / row["model"]))([pair["en"] for pair in pairs])]
        assert row["BLEU"] == pytest.approx(sacrebleu.corpus_bleu(outputs, [[pair["it"] for pair in pairs]]).score)


def test_two_models_disagree_where_the_better_of_one_measure_is_the_worse_of_the_other(monkeypatch, models):
    scores = {"en-it-bahdanau": (5.0, 20.0), "en-it-none": (4.0, 10.0)}

    def measured(folder, pair, sentences):
        return {"model": folder.name, "pair": pair, **dict(zip(("perplexity", "BLEU"), scores[folder.name]))}

    monkeypatch.setattr(perplexity_bleu, "score_model", measured)
    assert perplexity_bleu.run(models=str(models))["disagree"] == ["en-it-bahdanau and en-it-none"]
    scores["en-it-none"] = (6.0, 10.0)
    assert perplexity_bleu.run(models=str(models))["disagree"] == []
