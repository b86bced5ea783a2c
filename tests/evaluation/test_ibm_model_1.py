# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""IBM Model 1 against a published worked example, against explicit loops, and against measured floors."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.evaluation.ibm_model_1 import agreed_links, train_ibm_model_1

# "das Haus", "das Buch", "ein Buch": the example of Koehn 2010, Statistical Machine Translation, figure 4.4
KOEHN = [(["das", "Haus"], ["the", "house"]), (["das", "Buch"], ["the", "book"]), (["ein", "Buch"], ["a", "book"])]


def explicit(pairs, iterations, start=1):
    """Expectation-maximisation in loops over words, with exact fractions."""
    t = defaultdict(lambda: Fraction(start))
    for _ in range(iterations):
        count, total = defaultdict(Fraction), defaultdict(Fraction)
        for source, target in pairs:
            for f in target:
                norm = sum(t[f, e] for e in source)
                for e in source:
                    count[f, e] += t[f, e] / norm
                    total[e] += t[f, e] / norm
        t = defaultdict(Fraction, {(f, e): value / total[e] for (f, e), value in count.items()})
    return t


def test_koehns_table():
    """Figure 4.4: t(the | das), t(house | das) and t(house | Haus) after one, two and three iterations."""
    for iterations, the_das, house_das, house_haus in (
        (1, 0.5, 0.25, 0.5),
        (2, 0.6364, 0.1818, 0.5714),
        (3, 0.7479, 0.1313, 0.6534),
    ):
        model = train_ibm_model_1(KOEHN, iterations)
        table = model.table(["das", "Haus"], ["the", "house"])
        assert table[0, 0] == pytest.approx(the_das, abs=1e-4)
        assert table[1, 0] == pytest.approx(house_das, abs=1e-4)
        assert table[1, 1] == pytest.approx(house_haus, abs=1e-4)
    assert train_ibm_model_1(KOEHN, 3).links(["ein", "Buch"], ["a", "book"]) == {(0, 0), (1, 1)}


words = st.lists(st.sampled_from("abcde"), max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=6), st.integers(1, 4))
def test_probabilities_are_those_of_explicit_loops(pairs, iterations):
    if not any(source and target for source, target in pairs):
        return
    model, expected = train_ibm_model_1(pairs, iterations), explicit(pairs, iterations)
    for source, target in pairs:
        table = model.table(source, target)
        assert table.shape == (len(target), len(source))
        for i, f in enumerate(target):
            for j, e in enumerate(source):
                assert table[i, j] == pytest.approx(float(expected[f, e]), rel=1e-9)
    for e in {word for source, target in pairs if target for word in source}:
        assert sum(value for (_, other), value in expected.items() if other == e) == 1


def test_unknown_words_have_no_link():
    model = train_ibm_model_1(KOEHN)
    assert model.table(["das", "Auto"], ["the", "car"])[:, 1].tolist() == [0, 0]
    assert model.table(["das", "Auto"], ["the", "car"])[1].tolist() == [0, 0]
    assert model.links(["das", "Auto"], ["the", "car"]) == {(0, 0)}
    assert model.links([], ["the"]) == model.links(["das"], []) == set()
    assert np.array_equal(model.table(["ein"], ["house"]), [[0]])  # both known, but they never met


def test_directions_that_agree():
    """ "Papa schläft" - "Daddy is sleeping": "is" leads to a word that leads elsewhere."""
    pairs = [
        (["Papa", "schläft"], ["Daddy", "is", "sleeping"]),
        (["Papa", "isst"], ["Daddy", "is", "eating"]),
        (["Mama", "schläft"], ["Mummy", "is", "sleeping"]),
        (["Papa"], ["Daddy"]),
    ]
    forward = train_ibm_model_1(pairs, 20)
    backward = train_ibm_model_1([(target, source) for source, target in pairs], 20)
    source, target = pairs[0]
    assert agreed_links(forward, backward, source, target) == {(0, 0), (1, 2)}
    assert len(forward.links(source, target)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": []}, "no sentence pair"),
        ({"pairs": [([], ["a"]), (["b"], [])]}, "no sentence pair"),
        ({"pairs": KOEHN, "iterations": 0}, "iterations is 0"),
    ],
)
def test_what_is_not_allowed_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        train_ibm_model_1(**arguments)
