# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Alignment error rate and links against hand-computed examples and explicit loops."""

import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.evaluation import (
    alignment_error_rate,
    alignment_scores,
    diagonal_links,
    links_from_weights,
    load_metric,
)

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)


def test_three_words_one_right():
    """A = {00, 12, 21}, S = {00, 11, 22}: 1 - (1 + 1) / (3 + 3); the worked example of NLTK's documentation."""
    assert alignment_error_rate({(0, 0), (1, 2), (2, 1)}, {(0, 0), (1, 1), (2, 2)}) == pytest.approx(2 / 3)


def test_sure_and_possible_links_by_hand():
    """`the white house` - `la casa bianca`: house-casa and white-bianca are sure, the-la and the-casa possible.

    Found: the-la (possible), house-casa (sure), white-la (wrong). |A| = 3, |S| = 2, |A and S| = 1, |A and P| = 2.
    """
    sure = [[2, 1], [1, 2]]
    possible = [[0, 0], [0, 1]]
    found = [[0, 0], [2, 1], [1, 0]]
    assert alignment_error_rate(found, sure, possible) == pytest.approx(1 - (1 + 2) / (3 + 2))
    scores = alignment_scores([found], [sure], [possible])
    assert scores["precision"] == pytest.approx(2 / 3)
    assert scores["recall"] == pytest.approx(1 / 2)
    assert (scores["links"], scores["sure"]) == (3, 2)


def test_possible_may_repeat_the_sure_links_or_not():
    found, sure, possible = {(0, 0), (1, 1)}, {(0, 0)}, {(1, 1)}
    assert alignment_error_rate(found, sure, possible) == 0.0
    assert alignment_error_rate(found, sure, sure | possible) == 0.0
    assert alignment_error_rate(found, sure) == pytest.approx(1 - (1 + 1) / (2 + 1))


def test_ends_of_the_scale():
    gold = {(0, 0), (1, 1)}
    assert alignment_error_rate(gold, gold) == 0.0
    assert alignment_error_rate(set(), gold) == 1.0
    assert alignment_error_rate({(0, 1)}, gold) == 1.0
    assert alignment_error_rate(set(), set(), {(0, 0)}) == 0.0
    nothing = alignment_scores([set()], [set()], [set()])
    assert (nothing["precision"], nothing["recall"]) == (1.0, 1.0)


@settings(max_examples=60)
@given(st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=4))
def test_corpus_scores_equal_loops_over_every_cell(corpus):
    found_sure = found_possible = found = sure = 0
    for hypothesis, certain, extra in corpus:
        for source in range(4):
            for target in range(4):
                cell = (source, target)
                found += cell in hypothesis
                sure += cell in certain
                found_sure += cell in hypothesis and cell in certain
                found_possible += cell in hypothesis and (cell in certain or cell in extra)
    scores = alignment_scores(*(list(column) for column in zip(*corpus, strict=True)))
    assert (scores["links"], scores["sure"]) == (found, sure)
    if found + sure:
        assert scores["alignment_error_rate"] == pytest.approx(1 - (found_sure + found_possible) / (found + sure))
    if found:
        assert scores["precision"] == pytest.approx(found_possible / found)
    if sure:
        assert scores["recall"] == pytest.approx(found_sure / sure)


def test_the_metric_gives_the_same_over_batches():
    rng = random.Random(0)
    cells = [(source, target) for source in range(5) for target in range(5)]
    columns = [[rng.sample(cells, rng.randrange(6)) for _ in range(7)] for _ in range(3)]
    metric = load_metric("alignment_error_rate")
    for start in (0, 3, 6):
        predictions, sure, possible = (column[start : start + 3] for column in columns)
        metric.add_batch(predictions=[set(links) for links in predictions], sure=sure, possible=possible)
    assert metric.compute() == alignment_scores(*columns)


WEIGHTS = [  # source: a b c </s>
    [0.1, 0.6, 0.2, 0.1],
    [0.7, 0.1, 0.1, 0.1],
    [0.1, 0.2, 0.2, 0.5],  # looks at </s>: no link
    [0.0, 0.4, 0.4, 0.2],  # equal weights: the first
    [0.1, 0.1, 0.1, 0.7],  # the row of </s>
]


@pytest.mark.parametrize("kind", [list, torch.tensor, np.array], ids=["list", "tensor", "array"])
def test_links_from_weights(kind):
    assert links_from_weights(kind(WEIGHTS)) == {(1, 0), (0, 1), (1, 3)}
    assert links_from_weights(kind(WEIGHTS), end_of_sentence=False) == {(1, 0), (0, 1), (3, 2), (1, 3), (3, 4)}


def test_links_from_weights_equal_explicit_loops():
    weights = torch.rand(30, 5, generator=torch.Generator().manual_seed(1))
    expected = set()
    for target in range(29):
        best = 0
        for source in range(5):
            if weights[target, source] > weights[target, best]:
                best = source
        if best != 4:
            expected.add((best, target))
    assert links_from_weights(weights) == expected
    assert 0 < len(expected) < 29  # some words did look at </s>


def test_no_link_where_nothing_is_attended_or_nothing_is_there():
    assert links_from_weights([[0.0, 0.0], [0.0, 1.0]]) == set()
    assert links_from_weights([[1.0]]) == set()  # only </s> on both sides
    assert links_from_weights(torch.zeros(0, 3)) == set()


def test_diagonal_links():
    assert diagonal_links(3, 3) == {(0, 0), (1, 1), (2, 2)}
    assert diagonal_links(2, 4) == {(0, 0), (0, 1), (1, 2), (1, 3)}
    assert diagonal_links(6, 2) == {(0, 0), (5, 1)}
    assert diagonal_links(5, 1) == {(0, 0)}
    assert diagonal_links(0, 3) == diagonal_links(3, 0) == set()


@given(st.integers(1, 30), st.integers(1, 30))
def test_the_diagonal_takes_the_nearest_word_on_the_line_from_first_to_last(source_len, target_len):
    links = dict((target, source) for source, target in diagonal_links(source_len, target_len))
    assert sorted(links) == list(range(target_len))
    for target, source in links.items():
        point = Fraction(target * (source_len - 1), max(target_len - 1, 1))
        assert abs(source - point) == min(abs(other - point) for other in range(source_len))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: alignment_error_rate([(1, 2, 3)], []), r"link is \(1, 2, 3\)"),
        (lambda: alignment_scores([[]], [[], []], [[]]), "hypotheses has 1 sentences, sure 2, possible 1"),
        (lambda: alignment_scores([], [], []), "at least one"),
        (lambda: links_from_weights([0.5, 0.5]), r"weights has shape \(2,\)"),
        (lambda: links_from_weights(torch.zeros(2, 3, 4)), r"weights has shape \(2, 3, 4\)"),
        (lambda: diagonal_links(-1, 2), "source_len is -1"),
    ],
)
def test_what_is_not_allowed_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
