# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Products, shifts, wavelengths and scores by distance against closed forms."""

import math

import numpy as np
import pytest
import torch

from hf_attn.studies import positions


@pytest.fixture(scope="module")
def result():
    return positions.run()


def test_the_products_of_the_lecture(result):
    printed = {place: round(value, 2) for place, value in result["products_with_10"].items()}
    assert printed == {9: 62.09, 11: 62.09, 20: 42.82, 40: 36.24}
    one = result["products_by_offset"]["offset"].index(1)
    assert result["products_by_offset"]["mean"][one] == pytest.approx(62.0937, abs=1e-3)
    values = [x for row in result["vectors"] for x in row]
    assert (len(result["vectors"]), len(result["vectors"][0]), round(max(values), 3)) == (50, 128, 1.0)


def test_products_are_sums_of_cosines_of_the_distance(result):
    products = result["products_by_offset"]
    expected = [sum(math.cos(k / 10000 ** (2 * i / 128)) for i in range(64)) for k in products["offset"]]
    assert products["mean"] == pytest.approx(expected, abs=1e-3)
    assert max(products["spread"]) < 1e-3
    assert result["kinds"]["sinusoidal"]["mean"] == pytest.approx([x / math.sqrt(128) for x in expected], abs=1e-3)


def test_a_shift_is_a_rotation_and_hands_turn_at_known_speeds(result):
    assert result["shift_error"] < 1e-4
    assert result["wavelengths"] == pytest.approx([2 * math.pi * 10000 ** (2 * i / 128) for i in range(64)], rel=1e-4)


def test_all_but_learned_positions_depend_on_the_distance_alone(result):
    spreads = {name: max(kind["spread"]) for name, kind in result["kinds"].items()}
    assert spreads.pop("learned, untrained") > 1
    assert max(spreads.values()) < 1e-3


def test_scores_of_biases_and_of_given_vectors():
    vectors = torch.randn(9, 5)
    scores = positions.all_scores(9, 8, seed=0, learned=vectors)
    by_numpy = vectors.numpy() @ vectors.numpy().T / np.sqrt(5)
    np.testing.assert_allclose(scores["learned, trained"].numpy(), by_numpy, rtol=1e-4, atol=1e-5)
    assert scores["ALiBi, head 1 of 8"].tolist() == [[-abs(i - j) / 2 for j in range(9)] for i in range(9)]
    turned = scores["rotary"]  # the same word everywhere: its length squared where it meets itself, less elsewhere
    assert (turned.diagonal() >= turned.amax(dim=1) - 1e-5).all()


def test_averages_by_offset_of_a_matrix_written_out():
    matrix = torch.tensor([[0.0, 1, 5], [2, 0, 3], [7, 4, 3]])
    expected = {"offset": [-1, 0, 1], "mean": [3, 1, 2], "spread": [2, 3, 2]}
    assert positions.by_offset(matrix) == expected
