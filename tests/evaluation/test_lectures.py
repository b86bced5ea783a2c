# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The numbers of the lecture on language models, perplexity and BLEU, computed with the package."""

import math

import pytest

from hf_attn.evaluation import from_scratch as fs

REFERENCE = "나는 학교에 가는 것을 좋아한다 .".split()
TRANSLATION_1 = "학교에 가는 것을 좋아한다 나는 .".split()  # the meaning is right, the order is not
TRANSLATION_2 = "나는 오락실에 가는 것을 싫어한다 .".split()  # the order is right, the meaning is not


def with_ends(words):
    return ["BOS", *words, "EOS"]


def test_chain_rule_of_the_four_word_sentence():
    table = {
        ((), "나는"): 0.20,
        (("나는",), "학교에"): 0.10,
        (("나는", "학교에"), "갑니다"): 0.50,
        (("나는", "학교에", "갑니다"), "EOS"): 0.80,
    }
    factors = fs.chain_rule(["나는", "학교에", "갑니다", "EOS"], lambda word, before: table[tuple(before), word])
    assert factors == [0.20, 0.10, 0.50, 0.80]
    assert fs.sentence_probability(factors) == pytest.approx(0.008, abs=1e-12)
    assert fs.sentence_log_probability(factors) == pytest.approx(math.log(0.008), abs=1e-12)
    assert round(fs.perplexity(factors), 4) == 3.3437
    assert fs.perplexity(factors) == pytest.approx(0.008 ** (-1 / 4))


@pytest.mark.parametrize("length", [1, 7, 200])
def test_a_model_that_guesses_among_10000_words_has_perplexity_10000(length):
    assert fs.perplexity([1 / 10000] * length) == pytest.approx(10000)


@pytest.mark.parametrize(
    ("translation", "with_bos_eos", "without"), [(TRANSLATION_1, (4, 7), (3, 5)), (TRANSLATION_2, (3, 7), (1, 5))]
)
def test_bigram_hits(translation, with_bos_eos, without):
    assert fs.clipped_matches(with_ends(translation), [with_ends(REFERENCE)], 2) == with_bos_eos
    assert fs.clipped_matches(translation, [REFERENCE], 2) == without


@pytest.mark.parametrize(
    ("translation", "precisions", "bleu_2", "bleu_4"),
    [
        (TRANSLATION_1, [(6, 6), (3, 5), (2, 4), (1, 3)], 0.7746, 0.5623),
        (TRANSLATION_2, [(4, 6), (1, 5), (0, 4), (0, 3)], 0.3651, 0.0),
    ],
)
def test_bleu(translation, precisions, bleu_2, bleu_4):
    assert [fs.clipped_matches(translation, [REFERENCE], n) for n in (1, 2, 3, 4)] == precisions
    assert round(fs.sentence_bleu(translation, [REFERENCE], max_order=2), 4) == bleu_2
    assert round(fs.sentence_bleu(translation, [REFERENCE], max_order=4), 4) == bleu_4


def test_brevity_penalty_of_two_sure_words():
    short = "나는 학교에".split()
    assert [fs.clipped_matches(short, [REFERENCE], n) for n in (1, 2)] == [(2, 2), (1, 1)]
    assert round(fs.brevity_penalty(2, 6), 4) == 0.1353
    assert round(fs.sentence_bleu(short, [REFERENCE], max_order=2), 4) == 0.1353


def test_clipping():
    repeated = ["나는"] * 4
    assert fs.clipped_matches(repeated, [REFERENCE], 1) == (1, 4)
    assert sum(word in REFERENCE for word in repeated) == 4  # what counting without clipping would give


def position_model(output, confidence, vocab_size):
    """A translator sure of its own output: at step i, word i of it gets `confidence`, all others share the rest."""

    def conditional(word, before):
        return confidence if word == output[len(before)] else (1 - confidence) / (vocab_size - 1)

    return conditional


@pytest.mark.parametrize("confidence", [0.3, 0.9])
def test_perplexity_and_bleu_disagree(confidence):
    """Perplexity asks at each step for the reference's word in its place; BLEU looks for pieces anywhere."""
    agreements = {}
    perplexities = {}
    for name, translation in (("1", TRANSLATION_1), ("2", TRANSLATION_2)):
        model = position_model(translation, confidence, vocab_size=10000)
        factors = fs.chain_rule(REFERENCE, model)
        agreements[name] = [word for word, factor in zip(REFERENCE, factors, strict=True) if factor == confidence]
        perplexities[name] = fs.perplexity(factors)
    assert agreements == {"1": ["."], "2": ["나는", "가는", "것을", "."]}
    other = (1 - confidence) / 9999
    assert perplexities["1"] == pytest.approx((confidence**1 * other**5) ** (-1 / 6))
    assert perplexities["2"] == pytest.approx((confidence**4 * other**2) ** (-1 / 6))

    assert perplexities["2"] < perplexities["1"]  # perplexity prefers translation 2
    for order in (2, 4):  # BLEU prefers translation 1
        bleu_1, bleu_2 = (fs.sentence_bleu(t, [REFERENCE], order) for t in (TRANSLATION_1, TRANSLATION_2))
        assert bleu_1 > bleu_2
