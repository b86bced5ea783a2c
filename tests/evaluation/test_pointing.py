"""Attention inside boxes, counted pixel by pixel and weight by weight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.evaluation.pointing import attention_inside, touched


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.data())
def test_a_patch_is_touched_if_a_pixel_of_it_is_in_the_box(rows, columns, patch, data):
    width, height = columns * patch, rows * patch
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    right, bottom = data.draw(st.integers(left + 1, width)), data.draw(st.integers(top + 1, height))
    expected = np.zeros((rows, columns), dtype=bool)
    for y in range(top, bottom):
        for x in range(left, right):
            expected[y // patch, x // patch] = True
    assert np.array_equal(touched((left, top, right, bottom), (width, height), (rows, columns)), expected)


def test_shares_are_sums_of_weights_averaged_over_linked_words():
    rng = np.random.default_rng(0)
    grid, side = (3, 4), (32, 24)  # rows and columns; width and height
    links = [[-1, 0, 1, 1], [0, -1]]
    boxes = [[(0, 0, 9, 8), (16, 10, 20, 24)], [(8, 8, 16, 16)]]
    weights = [
        rng.dirichlet(np.ones(13), size=(2, 3, len(words) + 1)) for words in links
    ]  # a class token, an end piece
    found = attention_inside(weights, links, boxes, side=side, grid=grid)
    patches = [{(0, 0): [0, 1], (0, 1): [6, 10], (1, 0): [5]}[picture, number] for picture, number in ((0, 0), (0, 1))]
    steps = [(0, 1, patches[0]), (0, 2, patches[1]), (0, 3, patches[1]), (1, 0, [5])]
    for layer in range(2):
        for head in range(3):
            shares = [sum(weights[at][layer, head, word, 1 + patch] for patch in some) for at, word, some in steps]
            assert found["inside"][layer, head] == pytest.approx(np.mean(shares))
    assert found["chance"] == pytest.approx(np.mean([2, 2, 2, 1]) / 12)
    assert found["words"] == 4


def test_even_weights_are_at_chance():
    even = np.full((1, 1, 1, 64), 1 / 64)
    found = attention_inside([even], [[0]], [[(10, 10, 30, 20)]], side=(64, 64), grid=(8, 8))
    assert found["inside"][0, 0] == pytest.approx(found["chance"])


def test_something_must_be_linked():
    with pytest.raises(ValueError, match="linked"):
        attention_inside([np.ones((1, 1, 1, 4))], [[-1]], [[]], side=(2, 2), grid=(2, 2))
