# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Positions against single-vector formulas and against transformers' own models."""

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from hf_attn.models.attention import attend
from hf_attn.models.masks import AttentionMask
from hf_attn.models.positions import AlibiBias, LearnedPositions, RelativeBias, rotary_angles, rotate, sinusoidal

# sinusoidal


@pytest.mark.parametrize("width", [1, 2, 7, 8])
def test_sinusoid_of_each_position(width):
    vectors = sinusoidal(torch.arange(30), width)
    expected = torch.stack([reference.sinusoid(position, width) for position in range(30)])
    torch.testing.assert_close(vectors.double(), expected, rtol=0, atol=1e-5)
    assert vectors.dtype == torch.float32


def test_sinusoids_have_no_length_limit_and_follow_the_shape_of_the_positions():
    positions = torch.tensor([[0, 5, 2], [5000, 1, 1]])
    vectors = sinusoidal(positions, 6)
    assert vectors.shape == (2, 3, 6)
    torch.testing.assert_close(vectors[1, 0].double(), reference.sinusoid(5000, 6), rtol=0, atol=1e-3)
    assert torch.equal(vectors[0, 1], sinusoidal(torch.tensor([5]), 6)[0])


@pytest.mark.parametrize("width", [7, 8, 10])
def test_concatenated_sinusoids_are_those_of_marian_and_the_interleaved_ones_in_another_order(width):
    table = MarianSinusoidalPositionalEmbedding(40, width).create_weight()
    ours, interleaved = (sinusoidal(torch.arange(40), width, order=order) for order in ("concatenated", "interleaved"))
    torch.testing.assert_close(ours, table, rtol=0, atol=1e-5)
    assert torch.equal(ours, torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=-1))


def test_sinusoids_have_two_orders():
    with pytest.raises(ValueError, match="order='reversed' is unknown; choose 'interleaved' or 'concatenated'"):
        sinusoidal(torch.arange(3), 4, order="reversed")


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 100), st.sampled_from([2, 16, 64]))
def test_inner_products_of_sinusoids_depend_on_the_distance_only(first, second, distance, width):
    a, b, c, d = sinusoidal(torch.tensor([first, first + distance, second, second + distance]), width)
    torch.testing.assert_close(a @ b, c @ d, rtol=0, atol=1e-3)


# learned


def test_learned_positions_are_rows_of_a_table():
    learned = LearnedPositions(5, 3)
    vectors = learned(torch.tensor([[0, 4], [2, 2]]))
    for row, column, position in ((0, 0, 0), (0, 1, 4), (1, 0, 2), (1, 1, 2)):
        assert torch.equal(vectors[row, column], learned.weight[position])
    with pytest.raises(IndexError):
        learned(torch.tensor([[5]]))


# rotary


def turn(vectors, positions):
    """Rotate (length, head_dim) vectors at these positions."""
    return rotate(vectors[None, None], rotary_angles(torch.tensor([positions]), vectors.shape[-1]))[0, 0]


def test_rotation_of_each_vector():
    vectors, positions = torch.randn(4, 6), [0, 1, 7, 50]
    expected = [
        reference.rotate(vector.double(), position) for vector, position in zip(vectors, positions, strict=True)
    ]
    torch.testing.assert_close(turn(vectors, positions).double(), torch.stack(expected), rtol=0, atol=1e-5)


def test_rotation_is_that_of_llama():
    batch, heads, length, head_dim = 2, 3, 5, 8
    query, key = torch.randn(batch, heads, length, head_dim), torch.randn(batch, heads, length, head_dim)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 9, 9, 0]])
    config = LlamaConfig(hidden_size=heads * head_dim, num_attention_heads=heads, head_dim=head_dim)
    cos, sin = LlamaRotaryEmbedding(config)(query, positions)
    expected = apply_rotary_pos_emb(query, key, cos, sin)
    angles = rotary_angles(positions, head_dim)
    torch.testing.assert_close((rotate(query, angles), rotate(key, angles)), expected)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(-100, 100), st.integers(0, 2**31))
def test_rotated_inner_products_depend_on_the_distance_only(first, second, distance, seed):
    query, key = torch.randn(2, 8, generator=torch.Generator().manual_seed(seed))

    def product(position):
        return turn(query[None], [position])[0] @ turn(key[None], [position + distance])[0]

    torch.testing.assert_close(product(first), product(second), rtol=0, atol=2e-3)


def test_rotation_keeps_lengths_and_leaves_position_zero_alone():
    vectors = torch.randn(5, 10)
    turned = turn(vectors, [0, 1, 2, 30, 400])
    torch.testing.assert_close(turned.norm(dim=-1), vectors.norm(dim=-1))
    assert torch.equal(turned[0], vectors[0])
    assert (turned[1:] - vectors[1:]).abs().amax(-1).min() > 0.01


def test_rotation_keeps_the_precision_of_the_states_and_passes_gradcheck():
    angles = rotary_angles(torch.tensor([[0, 3, 9]]), 4)
    assert rotate(torch.randn(1, 2, 3, 4).bfloat16(), angles).dtype == torch.bfloat16
    states = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: rotate(x, angles), states)


def test_an_odd_head_cannot_be_rotated():
    with pytest.raises(ValueError, match="head_dim=5 must be even"):
        rotary_angles(torch.tensor([[0]]), 5)


# ALiBi


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12])
def test_alibi_of_each_pair(heads):
    bias = AlibiBias(heads)(torch.tensor([[0, 1, 5]]), torch.tensor([[0, 1, 2, 9]]))
    slopes = reference.alibi_slopes(heads)
    expected = [[[-slope * abs(i - j) for j in (0, 1, 2, 9)] for i in (0, 1, 5)] for slope in slopes]
    torch.testing.assert_close(bias[0], torch.tensor(expected))


def test_the_eight_slopes_of_the_paper():
    bias = AlibiBias(8)(torch.tensor([[1]]), torch.tensor([[0]]))
    assert bias[0, :, 0, 0].tolist() == [-1 / 2**k for k in range(1, 9)]


@pytest.mark.parametrize("heads", [4, 6, 8, 12])
def test_alibi_gives_the_causal_weights_of_bloom(heads):
    """Bloom adds slope * key position: in each row the same up to a constant, which the softmax does not see."""
    length = 6
    positions, scores, value = (
        torch.arange(length)[None],
        torch.randn(1, heads, length, length),
        torch.eye(length)[None, None],
    )
    causal = AttentionMask(causal=True).dense(length, length)
    _, weights = attend(scores + AlibiBias(heads)(positions, positions), value, causal)
    bloom = build_alibi_tensor(torch.ones(1, length), heads, torch.float32).view(1, heads, 1, length)
    torch.testing.assert_close(weights, attend(scores + bloom, value, causal)[1])


@pytest.mark.parametrize("heads", [4, 8])
def test_alibi_gives_the_causal_bias_of_mpt(heads):
    positions = torch.arange(6)[None]
    bias = AlibiBias(heads)(positions, positions)
    mpt = build_mpt_alibi_tensor(heads, 6)  # of the last query
    torch.testing.assert_close(bias[0, :, -1:], mpt)


def test_alibi_of_rows_with_their_own_positions():
    rows = torch.tensor([[0, 1, 2], [0, 0, 1]])
    bias = AlibiBias(4)(rows, rows)
    assert bias.shape == (2, 4, 3, 3)
    for row in range(2):
        assert torch.equal(bias[row], AlibiBias(4)(rows[row : row + 1], rows[row : row + 1])[0])


# T5's relative positions


@pytest.mark.parametrize("buckets, max_distance", [(32, 128), (8, 20), (16, 40)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_those_of_t5_and_of_the_formula(bidirectional, buckets, max_distance):
    bias = RelativeBias(2, bidirectional, buckets, max_distance)
    offsets = torch.arange(-300, 301)
    ours = bias.bucket(offsets)
    everywhere = torch.cat([torch.arange(-9000, 9001), torch.tensor([-(10**6), 10**6])])
    expected = T5Attention._relative_position_bucket(everywhere, bidirectional, buckets, max_distance)
    assert torch.equal(bias.bucket(everywhere), expected)
    one_by_one = [
        reference.relative_bucket(offset, bidirectional, buckets, max_distance) for offset in offsets.tolist()
    ]
    # at powers of the base a logarithm is a whole number, and float32 may fall on either side of it
    assert (ours - torch.tensor(one_by_one)).abs().max() <= 1
    assert (ours == torch.tensor(one_by_one)).float().mean() > 0.97
    assert set(ours.tolist()) <= set(range(buckets))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_is_that_of_t5(bidirectional):
    config = T5Config(d_model=8, d_kv=4, num_heads=3, is_decoder=not bidirectional)
    theirs = T5Attention(config, has_relative_attention_bias=True)
    ours = RelativeBias(3, bidirectional)
    with torch.no_grad():
        ours.table.weight.copy_(theirs.relative_attention_bias.weight)
    positions = torch.arange(200)[None]
    torch.testing.assert_close(ours(positions, positions), theirs.compute_bias(200, 200))
    last = ours(positions[:, -1:], positions)
    torch.testing.assert_close(last, theirs.compute_bias(200, 200)[:, :, -1:])


def test_a_causal_relative_bias_does_not_tell_later_keys_apart():
    positions = torch.arange(6)[None]
    bias = RelativeBias(2, bidirectional=False)(positions, positions)
    assert torch.equal(bias[0, :, 0], bias[0, :, 0, :1].expand(2, 6))
    both = RelativeBias(2, bidirectional=True)(positions, positions)
    assert len(set(both[0, 0, 0].tolist())) == 6


@pytest.mark.parametrize("make", [lambda: AlibiBias(3), lambda: RelativeBias(3, True), lambda: RelativeBias(3, False)])
def test_a_bias_depends_on_the_distance_only(make):
    bias, positions = make(), torch.arange(7)[None]
    torch.testing.assert_close(bias(positions, positions), bias(positions + 41, positions + 41))
    # the diagonals are constant
    values = bias(positions, positions)
    torch.testing.assert_close(values[..., 1:, 1:], values[..., :-1, :-1])


def test_positions_of_every_kind_are_finite_far_away():
    far = torch.tensor([[0, 1_000_000]])
    assert torch.isfinite(sinusoidal(far, 8)).all()
    assert torch.isfinite(rotary_angles(far, 8)).all()
    assert torch.isfinite(AlibiBias(3)(far, far)).all()
    assert torch.isfinite(RelativeBias(3, True)(far, far)).all()
    assert AlibiBias(1)(far, far)[0, 0, 0, 1] == pytest.approx(-1_000_000 / 256, rel=1e-6)
    assert AlibiBias(1)(far, far)[0, 0, 1, 1] == 0
