# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The formulas written from scratch against sacrebleu and torch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from hf_attn.evaluation import corpus_perplexity
from hf_attn.evaluation import from_scratch as fs

SENTENCES = st.lists(st.sampled_from(["나는", "학교에", "가", "le", "l'", "."]), min_size=0, max_size=9)
FILLED = st.lists(st.sampled_from(["나는", "학교에", "가", "le", "l'", "."]), min_size=1, max_size=9)
CORPORA = st.lists(st.tuples(SENTENCES, st.lists(FILLED, min_size=1, max_size=3)), min_size=1, max_size=6)


def sacrebleu_score(hypotheses, references, max_order):
    most = max(map(len, references))
    streams = [[" ".join(its[k]) if k < len(its) else None for its in references] for k in range(most)]
    scorer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=max_order, force=True)
    return scorer.corpus_score([" ".join(words) for words in hypotheses], streams).score / 100


@settings(max_examples=60)
@given(corpus=CORPORA, max_order=st.integers(1, 5))
def test_corpus_bleu_equals_sacrebleu(corpus, max_order):
    hypotheses, references = [list(column) for column in zip(*corpus, strict=True)]
    expected = sacrebleu_score(hypotheses, references, max_order)
    assert fs.bleu(hypotheses, references, max_order) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25)
@given(corpus=CORPORA, max_order=st.integers(1, 4))
def test_bleu_of_references_themselves_and_of_noise(corpus, max_order):
    references = [its for _, its in corpus]
    perfect = [its[0] for its in references]
    long_enough = any(len(words) >= max_order for words in perfect)
    assert fs.bleu(perfect, references, max_order) == pytest.approx(1.0 if long_enough else 0.0)
    assert fs.bleu([["안"] * 6 for _ in corpus], references, max_order) == 0.0


def test_a_nearer_reference_sets_the_length_and_a_tie_goes_to_the_shorter():
    assert fs.closest_length(5, [9, 6, 3]) == 6
    assert fs.closest_length(5, [6, 4]) == 4
    # p_1 = 4/4; against the reference of 4 words nothing is lost, against that of 6 e^(1 - 6/4)
    assert fs.sentence_bleu(list("abcd"), [list("abcdef"), list("abcx")], 1) == 1.0
    assert fs.sentence_bleu(list("abcd"), [list("abcdef")], 1) == pytest.approx(math.exp(-0.5))


def test_clipping_takes_the_reference_that_has_most():
    assert fs.clipped_matches(["le"] * 4, [["le", "la"], ["le", "le", "x"]], 1) == (2, 4)  # not 1 + 2 = 3


def test_empty_hypotheses_score_0():
    assert fs.sentence_bleu([], [["나는"]]) == 0.0
    assert fs.sentence_bleu([], [["나는"]], max_order=1) == 0.0
    assert fs.brevity_penalty(0, 3) == 0.0


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(2, 30))
def test_perplexity_is_exp_of_torchs_cross_entropy(seed, length, vocab_size):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(length, vocab_size, generator=generator, dtype=torch.float64)
    labels = torch.randint(vocab_size, (length,), generator=generator)
    factors = [logits[i].softmax(0)[labels[i]].item() for i in range(length)]
    expected = torch.nn.functional.cross_entropy(logits, labels).exp().item()
    assert fs.perplexity(factors) == pytest.approx(expected, rel=1e-9)
    log_prob = fs.sentence_log_probability(factors)
    assert corpus_perplexity([log_prob], [length])["perplexity"] == pytest.approx(expected, rel=1e-9)


def test_long_sentences_do_not_underflow_and_impossible_ones_are_infinite():
    assert fs.sentence_probability([0.01] * 500) == 0.0
    assert fs.sentence_log_probability([0.01] * 500) == pytest.approx(500 * math.log(0.01))
    assert fs.perplexity([0.01] * 500) == pytest.approx(100)
    assert fs.sentence_probability([0.5, 0.0]) == 0.0
    assert fs.perplexity([0.5, 0.0]) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fs.perplexity([]), "factors is empty"),
        (lambda: fs.perplexity([0.5, 1.5]), r"factors\[1\] is 1.5"),
        (lambda: fs.sentence_probability([-0.1]), r"factors\[0\] is -0.1"),
        (lambda: fs.sentence_bleu("나는 학교에", [["나는"]]), "allowed is a list of words"),
        (lambda: fs.sentence_bleu(["나는"], ["나는 학교에"]), "allowed is a list of words"),
        (lambda: fs.bleu([["a"]], []), "hypotheses has 1 sentences and references 0"),
        (lambda: fs.bleu([], []), "at least one"),
        (lambda: fs.bleu([["a"]], [[]]), r"references\[0\] is empty"),
        (lambda: fs.bleu([["a"]], [[["a"]]], max_order=0), "max_order is 0"),
        (lambda: fs.ngrams(["a"], 0), "order is 0"),
    ],
)
def test_what_is_not_allowed_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
