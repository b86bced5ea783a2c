# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Bootstrap intervals against sacrebleu's own, and the difference of two systems against explicit resampling."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from hf_attn.evaluation import bleu_scores, bleu_statistics, bootstrap_bleu, paired_bootstrap
from hf_attn.evaluation.bootstrap import bleu_from_statistics

WORDS = "the old man reads a red book , and she sees it .".split()


def corpus(seed, count=60, noise=0.4):
    """References, some with two texts, and translations that miss some of the words."""
    generator = random.Random(seed)
    sentences = [[generator.choice(WORDS) for _ in range(generator.randint(3, 14))] for _ in range(count)]

    def damaged(words):
        return " ".join(generator.choice(WORDS) if generator.random() < noise else word for word in words)

    references = [[" ".join(words)] + ([damaged(words)] if i % 3 == 0 else []) for i, words in enumerate(sentences)]
    return [damaged(words) for words in sentences], references, sentences


def streams(references):
    return [[its[k] if k < len(its) else None for its in references] for k in range(2)]


@pytest.mark.parametrize("lang", ["fr", "ko"])
def test_summed_statistics_are_the_bleu_of_the_corpus(lang):
    hypotheses, references, _ = corpus(1)
    statistics = bleu_statistics(hypotheses, references, lang=lang)
    assert statistics.shape == (60, 10)
    assert bleu_from_statistics(statistics) == pytest.approx(bleu_scores(hypotheses, references, lang=lang)["score"])
    assert 5 < bleu_from_statistics(statistics) < 95
    nothing = bleu_statistics(["", "a"], ["b b b b", "c"])
    assert bleu_from_statistics(nothing) == 0


@pytest.mark.parametrize("samples", [1000, 200])
def test_interval_is_sacrebleus(samples):
    hypotheses, references, _ = corpus(2)
    result = bootstrap_bleu(bleu_statistics(hypotheses, references), samples=samples)
    expected = BLEU().corpus_score(hypotheses, streams(references), n_bootstrap=samples)
    assert result["bleu"] == pytest.approx(expected.score)
    assert (result["high"] - result["low"]) / 2 == pytest.approx(expected._ci)  # the one place sacrebleu shows it
    assert result["low"] < expected._mean < result["high"]


def test_paired_difference_and_p_value(monkeypatch):
    """The interval against resamples that sacrebleu scores as text, the p-value against sacrebleu's paired test."""
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    one, references, sentences = corpus(3, noise=0.4)
    generator = random.Random(9)
    other = [
        " ".join(w if generator.random() > 0.45 else generator.choice(WORDS) for w in words) for words in sentences
    ]
    statistics = [bleu_statistics(texts, references) for texts in (one, other)]
    result = paired_bootstrap(*statistics, samples=100)

    differences = []
    for rows in np.random.default_rng(12345).choice(60, size=(100, 60)):
        drawn = streams([references[row] for row in rows])
        scores = [BLEU().corpus_score([texts[row] for row in rows], drawn).score for texts in (one, other)]
        differences.append(scores[0] - scores[1])
    differences.sort()
    assert (result["low"], result["high"]) == pytest.approx((differences[2], differences[97]))
    assert result["low"] < result["difference"] < result["high"]

    named = [("other", other), ("one", one)]
    _, table = PairedTest(named, {"BLEU": BLEU()}, streams(references), test_type="bs", n_samples=1000)()
    assert paired_bootstrap(*statistics)["p_value"] == pytest.approx(table["BLEU"][1].p_value)
    assert table["BLEU"][1].p_value > 1 / 1001  # undecided enough that the count is tested

    reverse = paired_bootstrap(*statistics[::-1], samples=100)
    assert (reverse["low"], reverse["high"]) == pytest.approx((-result["high"], -result["low"]))
    same = paired_bootstrap(statistics[0], statistics[0], samples=100)
    assert same["difference"] == same["low"] == same["high"] == 0


def test_what_cannot_be_resampled_is_refused():
    statistics = bleu_statistics(["a b"], ["a b"])
    with pytest.raises(ValueError, match="samples is 0; both must be 1 or more"):
        bootstrap_bleu(statistics, samples=0)
    with pytest.raises(ValueError, match="there are 0 sentences"):
        bootstrap_bleu(statistics[:0])
    with pytest.raises(ValueError, match="give the same sentences"):
        paired_bootstrap(statistics, np.concatenate([statistics, statistics]))
