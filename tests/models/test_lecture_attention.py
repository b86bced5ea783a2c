# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The attention lectures, computed with this package: every number is one that the lecture prints or derives."""

import math

import pytest
import torch
from torch.nn import functional as F

from hf_attn.models.attention import attend, run_attention
from hf_attn.models.masks import AttentionMask
from hf_attn.models.multihead import MultiHeadAttention
from hf_attn.models.positions import sinusoidal
from hf_attn.models.scores import Dot, ScaledDot

# the encoder's states after "I am a student", and the decoder's state that asks
ENCODER_STATES = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])[None, None]
DECODER_STATE = torch.tensor([0.5, 0.0, 1.0])[None, None, None]


def close(value, expected, digits=4):
    """Whether a tensor prints as the lecture prints it."""
    torch.testing.assert_close(value, torch.tensor(expected), rtol=0, atol=0.501 * 10**-digits)


def test_the_five_steps():
    scores = Dot(3, 3)(DECODER_STATE, ENCODER_STATES)
    close(scores[0, 0, 0], [1.5, 0.0, 0.5, 2.0])
    context, weights = attend(scores, ENCODER_STATES)
    close(weights[0, 0, 0], [0.3087, 0.0689, 0.1136, 0.5089])
    close(weights.sum(), 1.0)
    close(context[0, 0, 0], [0.4222, 0.1824, 1.3265])
    both = torch.cat([context, DECODER_STATE], dim=-1)
    close(both[0, 0, 0], [0.4222, 0.1824, 1.3265, 0.5, 0.0, 1.0])
    output = torch.tanh(torch.nn.Linear(6, 3)(both))
    assert output.shape == (1, 1, 1, 3)


@pytest.mark.parametrize("width", [4, 64, 512])
def test_the_variance_of_a_dot_product_grows_with_the_width_unless_scaled(width):
    samples = 10_000
    query, key = torch.randn(samples, 1, 1, width), torch.randn(samples, 1, 1, width)
    # the variance of a sample variance is (kurtosis - 1) / samples, and kurtosis is 3 + 6 / width; four standard errors
    tolerance = 4 * math.sqrt((2 + 6 / width) / samples)
    assert Dot(width, width)(query, key).var().item() == pytest.approx(width, rel=tolerance)
    assert ScaledDot(width, width)(query, key).var().item() == pytest.approx(1.0, rel=tolerance)


@pytest.mark.parametrize("width, unscaled, scaled", [(4, 0.520, 0.337), (64, 0.870, 0.357), (1024, 0.968, 0.357)])
def test_without_scaling_one_of_eight_keys_takes_nearly_everything(width, unscaled, scaled):
    query, key = torch.randn(3000, 1, 1, width), torch.randn(3000, 1, 8, width)
    for score, expected in ((Dot, unscaled), (ScaledDot, scaled)):
        _, weights = attend(score(width, width)(query, key), key)
        assert weights.amax(-1).mean().item() == pytest.approx(expected, abs=0.02)


def test_saturation_lets_no_gradient_through():
    query, key = torch.randn(200, 1, 1, 1024), torch.randn(200, 1, 8, 1024)
    sizes = []
    for score in (Dot, ScaledDot):
        scores = score(1024, 1024)(query, key).requires_grad_()
        attend(scores, torch.eye(8).expand(200, 1, 8, 8))[0][..., 0].sum().backward()
        sizes.append(scores.grad.abs().mean().item())
    assert sizes[0] < sizes[1] / 5


def test_self_attention_is_scaled_dot_product_attention_and_rows_sum_to_one():
    states = torch.randn(1, 1, 5, 8)
    context, weights = run_attention(states, states, states, ScaledDot(8, 8), AttentionMask(), output_attentions=True)
    assert context.shape == (1, 1, 5, 8)
    close(weights.sum(-1), [[[1.0] * 5]])
    assert (context - F.scaled_dot_product_attention(states, states, states)).abs().max() < 1e-6


def test_a_position_sees_itself_and_what_came_before_it():
    states = torch.randn(1, 1, 5, 8)
    _, weights = run_attention(
        states, states, states, ScaledDot(8, 8), AttentionMask(causal=True), output_attentions=True
    )
    assert ((weights[0, 0] > 0) == torch.ones(5, 5).tril().bool()).all()
    assert weights[0, 0, 0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    close(weights.sum(-1), [[[1.0] * 5]])


@pytest.mark.parametrize("heads", [1, 8, 16])
def test_the_512_wide_layer_has_1050624_parameters_whatever_the_number_of_heads(heads):
    layer = MultiHeadAttention(512, heads)
    assert sum(p.numel() for p in layer.parameters()) == 1_050_624 == 4 * (512 * 512 + 512)


def test_eight_heads_of_the_512_wide_layer_have_ten_by_ten_weights_each():
    layer, states = MultiHeadAttention(512, 8), torch.randn(2, 10, 512)
    output, weights = layer(states, output_attentions=True)
    assert output.shape == (2, 10, 512) and weights.shape == (2, 8, 10, 10)
    assert layer.head_dim == 64


def test_without_positions_moving_the_words_moves_the_outputs():
    layer, states, order = MultiHeadAttention(8, 2), torch.randn(1, 5, 8), [4, 3, 2, 1, 0]
    torch.testing.assert_close(layer(states[:, order])[0], layer(states)[0][:, order])
    positions = sinusoidal(torch.arange(5), 8)
    moved, kept = layer(states[:, order] + positions)[0], layer(states + positions)[0][:, order]
    assert (moved - kept).abs().max() > 0.01


def test_cross_attention_of_queries_and_data_of_different_width_and_length():
    layer, queries, data = MultiHeadAttention(6, 1, data_size=10), torch.randn(1, 4, 6), torch.randn(1, 3, 10)
    output, weights = layer(queries, data, output_attentions=True)
    assert output.shape == (1, 4, 6) and weights.shape == (1, 1, 4, 3)
    # K = X W_K, V = X W_V, E = Q K^T / sqrt(D), A = softmax(E), Y = A V
    key, value, query = layer.key_projection(data), layer.value_projection(data), layer.query_projection(queries)
    attention = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(6), dim=-1)
    torch.testing.assert_close(weights[:, 0], attention)
    torch.testing.assert_close(output, layer.output_projection(attention @ value))


def test_inner_products_of_positions_depend_on_their_distance():
    vectors = sinusoidal(torch.arange(50), 128)
    assert vectors.shape == (50, 128)
    close(vectors.min(), -1.0)
    close(vectors.max(), 1.0)
    close(vectors[0] @ vectors[1], 62.0937)
    close(vectors[20] @ vectors[21], 62.0937)
    for position, expected in ((9, 62.09), (11, 62.09), (20, 42.82), (40, 36.24)):
        close(vectors[10] @ vectors[position], expected, digits=2)
