"""BLEU and perplexity on a page: against the lecture's numbers, sacrebleu, and explicit counting."""

import html
import re

import pytest
import sacrebleu

from hf_attn.visualization.metrics_html import Factors, judge_ngrams, metrics_html

REFERENCE = "나는 학교에 가는 것을 좋아한다 .".split()
FIRST = "학교에 가는 것을 좋아한다 나는 .".split()
SECOND = "나는 오락실에 가는 것을 싫어한다 .".split()
FACTORS = [
    Factors(REFERENCE, [0.9 if mine == right else 0.1 / 9999 for mine, right in zip(one, REFERENCE, strict=True)])
    for one in (FIRST, SECOND)
]


def text_of(page):
    """The text of a page, without its elements."""
    body = page.document[page.document.index("<main>") : page.document.index("</main>")]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def squeezed(text):
    return re.sub(r"\s+", " ", text)


def test_the_page_has_the_numbers_of_the_lecture():
    text = squeezed(text_of(metrics_html(REFERENCE, [FIRST, SECOND], factors=FACTORS)))
    for number in ("0.7746", "0.5623", "0.3651", "0.0000", "(6/6 · 3/5 · 2/4 · 1/3)", "(4/6 · 1/5 · 0/4 · 0/3)"):
        assert number in text
    assert "They disagree: BLEU prefers translation 1, perplexity translation 2." in text
    for factors in FACTORS:
        product = 1.0
        for factor in factors.probabilities:
            product *= factor
        expected = product ** (-1 / 6)
        assert (f"{expected:.4f}" if expected < 1000 else f"{expected:,.1f}") in text


@pytest.mark.parametrize(
    ("hypotheses", "chosen", "said"),
    [
        ([FIRST, SECOND], (0, 0), "BLEU prefers translation 1, perplexity no single one."),
        ([FIRST, FIRST], (0, 1), "BLEU prefers no single one, perplexity translation 2."),
        ([["x"], ["y"]], (1, 1), "BLEU prefers no single one, perplexity no single one."),
        ([SECOND, FIRST], (0, 1), "Both prefer translation 2."),
    ],
)
def test_of_what_is_equal_none_is_preferred(hypotheses, chosen, said):
    text = squeezed(text_of(metrics_html(REFERENCE, hypotheses, factors=[FACTORS[number] for number in chosen])))
    assert f" {said} " in text and text.count("prefer") == 1


def test_without_factors_there_is_no_perplexity_and_no_verdict():
    text = text_of(metrics_html(REFERENCE, [FIRST, SECOND]))
    assert "erplexity" not in text and "prefer" not in text


def test_a_short_translation_is_punished_and_a_repeated_word_clipped():
    text = squeezed(text_of(metrics_html(REFERENCE, ["나는 학교에".split(), ["나는"] * 4], max_order=2)))
    assert "brevity penalty = 0.1353 (exp(1 − 6 / 2))" in text and "p 1 = 1 / 4" in text
    verdicts = [verdict for _, verdict in judge_ngrams(REFERENCE, ["나는"] * 4, 1)]
    assert verdicts == ["matched", "clipped", "clipped", "clipped"]


@pytest.mark.parametrize(
    ("reference", "hypothesis"),
    [
        ("the cat is on the mat", "the the the cat on on mat"),
        ("a b a b a b", "b a b a a b"),
        ("le chat dort", "le chat dort"),
        ("one two three", "four five"),
    ],
)
def test_what_is_marked_as_matched_is_what_sacrebleu_counts(reference, hypothesis):
    counted = sacrebleu.BLEU(tokenize="none").corpus_score([hypothesis], [[reference]])
    for order in range(1, 5):
        judged = judge_ngrams(reference.split(), hypothesis.split(), order)
        assert [gram for gram, _ in judged] == list(zip(*(hypothesis.split()[start:] for start in range(order))))
        assert sum(verdict == "matched" for _, verdict in judged) == counted.counts[order - 1]
        assert len(judged) == counted.totals[order - 1]
        there = [verdict != "missing" for _, verdict in judged]
        assert there == [f" {' '.join(gram)} " in f" {reference} " for gram, _ in judged]


def test_words_are_text_and_nothing_else():
    hostile = ["<img", "src=x", "onerror=alert(1)>", "&lt;", "\ud800", "\x00", "{style}"]
    page = metrics_html(hostile, [hostile], factors=[Factors(hostile, [0.5] * len(hostile))])
    assert "<img" not in page.document and "&lt;img" in page.document and "&amp;lt;" in page.document
    page.document.encode("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a b", [["a"]]), "reference is 'a b'; it must be a list"),
        ((["a"], ["a b"]), r"hypotheses\[0\] is 'a b'"),
        ((["a"], [["a"], []]), r"hypotheses\[1\] is \[\]"),
        ((["a"], []), "there are 0 hypotheses"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics_html(*arguments)
    with pytest.raises(ValueError, match="1 hypotheses and 2 factors"):
        metrics_html(["a"], [["a"]], factors=FACTORS)
