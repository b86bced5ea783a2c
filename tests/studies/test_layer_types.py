# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Table 1 of Vaswani 2017, measured, against its formulas."""

import math

import pytest
import torch

from hf_attn.studies import layer_types


@pytest.mark.parametrize("n, d, k, r", [(12, 8, 3, 4), (9, 16, 5, 2)])
def test_operations_steps_and_paths_are_those_of_the_table(n, d, k, r):
    rows = layer_types.run(length=n, width=d, kernel_size=k, window=r)["rows"]
    attention, recurrent, convolution, restricted = rows
    allowed = sum(min(place + 1, r) for place in range(n))
    assert attention["multiplications"] == 4 * n * d * d + 2 * n * n * d
    assert recurrent["multiplications"] == 2 * n * d * d  # of the word, and of the state before
    assert convolution["multiplications"] == k * n * d * 2 * d  # twice as wide, for the gates
    assert restricted["multiplications"] == 4 * n * d * d + 2 * allowed * d
    assert [row["steps"] for row in rows] == [4, n, 1, 4]
    reach = [math.ceil((n - 1) / (width - 1)) for width in (k, r)]
    assert [row["layers"] for row in rows] == [1, 1, *reach]
    assert [row["path"] for row in rows] == [4, n, reach[0], 4 * reach[1]]
    assert recurrent["twice_as_long"] == 2 and recurrent["twice_as_wide"] == 4 == convolution["twice_as_wide"]


def test_what_attention_adds_to_its_projections_grows_with_the_square_of_the_length():
    (first, second) = (layer_types.run(n, 8, 3, 4)["rows"][0]["multiplications"] - 4 * n * 8 * 8 for n in (16, 32))
    assert second == 4 * first


def test_the_longest_chain_of_a_graph_written_out():
    one, two = torch.randn(2, 3, 3, requires_grad=True)
    chain = (one @ two).tanh() @ two + one  # two, one after another
    assert layer_types.chain_of_products(chain) == 2
    assert layer_types.chain_of_products(chain @ (one @ one)) == 3
    assert layer_types.chain_of_products((one @ two) + (two @ one)) == 1  # side by side
    query = torch.randn(1, 1, 4, 8, requires_grad=True)
    fused = torch.nn.functional.scaled_dot_product_attention(query, query, query)
    assert layer_types.chain_of_products(fused) == 2
