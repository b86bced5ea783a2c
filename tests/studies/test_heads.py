# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Parameters, multiplications and ranks of built layers against torch's layer, formulas and numpy."""

import numpy as np
import pytest
import torch

from hf_attn.models.multihead import MultiHeadAttention
from hf_attn.studies import heads


@pytest.fixture(scope="module")
def result():
    return heads.run(width=32, heads=(1, 2, 8), length=10, updates=3)


def test_parameters_are_those_of_torch_whatever_the_number_of_heads(result):
    theirs = torch.nn.MultiheadAttention(32, 8)
    expected = sum(parameter.numel() for parameter in theirs.parameters())
    assert [row["parameters"] for row in result["rows"][:3]] == [expected] * 3
    assert result["rows"][3]["parameters"] == 2 * (32 * 32 + 32) + 2 * (32 * 4 + 4)  # one head of keys and values


def test_the_512_wide_layer_of_the_lecture():
    (row, _) = heads.run(width=512, heads=(8,), length=10, updates=0)["rows"]
    assert (row["parameters"], row["head_dim"], row["attention_weights"]) == (1_050_624, 64, 8 * 10 * 10)


def test_multiplications_are_those_of_the_formula_whatever_the_number_of_heads(result):
    n, d = 10, 32
    assert [row["multiplications"] for row in result["rows"][:3]] == [4 * n * d * d + 2 * n * n * d] * 3
    assert [row["attention_weights"] for row in result["rows"]] == [heads * n * n for heads in (1, 2, 8, 8)]


def test_a_head_compares_in_as_many_directions_as_it_is_wide(result):
    assert [row["rank"] for row in result["rows"][:3]] == [32, 16, 4]
    layer = MultiHeadAttention(12, 3)
    query, key = (one.weight.detach().numpy() for one in (layer.query_projection, layer.key_projection))
    forms = [query[4 * head : 4 * head + 4].T @ key[4 * head : 4 * head + 4] for head in range(3)]
    assert heads.ranks(layer) == [np.linalg.matrix_rank(form, tol=1e-5) for form in forms] == [4, 4, 4]


def test_heads_that_start_equal_stay_equal(result):
    assert result["heads_apart"]["equal"] < 1e-6 < 0.05 < result["heads_apart"]["different"]
