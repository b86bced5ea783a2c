# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The equation against loops, against torch, and against itself under every execution."""

import itertools

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from hf_attn.models.attention import attend, run_attention
from hf_attn.models.masks import AttentionMask
from hf_attn.models.scores import Additive, Concat, Dot, General, ScaledDot

BATCH, HEADS, QUERY_LEN, KEY_LEN, HEAD_DIM, VALUE_DIM = 2, 3, 4, 4, 6, 5
PADDING = torch.tensor([[True, True, True, False], [False, False, True, True]])  # padded on the right, and on the left
NOTHING_REAL = torch.tensor([[True, True, True, True], [False, False, False, False]])
MASKS = {
    "none": AttentionMask(),
    "padding": AttentionMask(PADDING),
    "causal": AttentionMask(causal=True),
    "causal padding": AttentionMask(
        PADDING, causal=True
    ),  # the second sentence's first queries have nothing to attend to
    "nothing real": AttentionMask(NOTHING_REAL),
    "window": AttentionMask(causal=True, window=2),
    "padded window": AttentionMask(PADDING, causal=True, window=2),
    "offset": AttentionMask(causal=True, query_offset=2),
    "offset tensor": AttentionMask(PADDING, causal=True, query_offset=torch.tensor(1)),
    "static cache": AttentionMask(PADDING[:, :3], causal=True, query_offset=1),
}
BIASES = {
    "no bias": None,
    "head": (1, HEADS, 1, 1),
    "pair": (1, HEADS, QUERY_LEN, KEY_LEN),
    "all": (BATCH, HEADS, QUERY_LEN, KEY_LEN),
}
DOT_PRODUCTS = {"dot": Dot, "scaled_dot": ScaledDot, "general": General}


def tensors(dtype=torch.float64):
    """Query, key and value that want gradients."""
    return tuple(
        torch.randn(BATCH, HEADS, length, width, dtype=dtype, requires_grad=True)
        for length, width in ((QUERY_LEN, HEAD_DIM), (KEY_LEN, HEAD_DIM), (KEY_LEN, VALUE_DIM))
    )


@st.composite
def attentions(draw, square=False):
    """Scores, values and a mask of any shape; some queries may have nothing to attend to."""
    batch, heads, query_len, key_len, value_dim = (draw(st.integers(1, most)) for most in (2, 2, 4, 4, 3))
    if square:
        key_len = query_len
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = draw(
        st.sampled_from([(batch, 1, 1, key_len), (1, 1, query_len, key_len), (batch, heads, query_len, key_len)])
    )
    mask = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    scale = draw(st.sampled_from([1.0, 30.0, 1e4]))
    scores = scale * torch.randn(batch, heads, query_len, key_len, generator=generator, dtype=torch.float64)
    return scores, torch.randn(batch, heads, key_len, value_dim, generator=generator, dtype=torch.float64), mask


# attend


@given(attentions())
def test_attend_is_the_loop(case):
    scores, value, mask = case
    for allowed in (None, mask):
        context, weights = attend(scores, value, allowed)
        expected_context, expected_weights = reference.attend(scores, value, allowed)
        torch.testing.assert_close(weights, expected_weights)
        torch.testing.assert_close(context, expected_context)


@given(attentions())
def test_rows_sum_to_one_or_are_zero_where_nothing_is_allowed(case):
    scores, value, mask = case
    context, weights = attend(scores, value, mask)
    any_allowed = mask.any(-1).expand(scores.shape[:-1])
    torch.testing.assert_close(weights.sum(-1), any_allowed.double())
    assert (weights >= 0).all()
    assert (weights[~mask.expand_as(weights)] == 0).all()
    assert (context[~any_allowed] == 0).all()


@given(attentions())
def test_context_lies_between_the_smallest_and_the_largest_value(case):
    scores, value, _ = case
    context, _ = attend(scores, value)
    assert (context <= value.amax(2, keepdim=True) + 1e-9).all()
    assert (context >= value.amin(2, keepdim=True) - 1e-9).all()


@given(attentions(), st.randoms(use_true_random=False))
def test_the_order_of_queries_is_kept_and_that_of_keys_does_not_matter(case, random):
    scores, value, mask = case
    mask = mask.expand_as(scores)
    queries = random.sample(range(scores.shape[2]), scores.shape[2])
    keys = random.sample(range(scores.shape[3]), scores.shape[3])
    context, weights = attend(scores, value, mask)
    moved_context, moved_weights = attend(
        scores[:, :, queries][..., keys], value[:, :, keys], mask[:, :, queries][..., keys]
    )
    torch.testing.assert_close(moved_weights, weights[:, :, queries][..., keys])
    torch.testing.assert_close(moved_context, context[:, :, queries])


@given(attentions(square=True), st.data())
def test_under_a_causal_mask_later_keys_change_nothing(case, data):
    scores, value, _ = case
    length = scores.shape[-1]
    now = data.draw(st.integers(0, length - 1))
    causal = AttentionMask(causal=True).dense(length, length)
    context, weights = attend(scores, value, causal)
    scores, value = scores.clone(), value.clone()
    scores[..., now + 1 :] = 1e6
    value[:, :, now + 1 :] = -7.0
    other_context, other_weights = attend(scores, value, causal)
    assert torch.equal(other_context[:, :, : now + 1], context[:, :, : now + 1])
    assert torch.equal(other_weights[:, :, : now + 1], weights[:, :, : now + 1])


@given(attentions(), st.floats(-50, 50))
def test_a_constant_added_to_a_row_changes_nothing(case, constant):
    scores, value, mask = case
    torch.testing.assert_close(attend(scores + constant, value, mask)[1], attend(scores, value, mask)[1])


@given(attentions())
def test_gradients_are_those_of_the_loop_and_finite_in_empty_rows(case):
    scores, value, mask = case
    gradients = []
    for function in (attend, reference.attend):
        inputs = scores.clone().requires_grad_(), value.clone().requires_grad_()
        context, weights = function(*inputs, mask)
        direction = torch.linspace(-1, 1, weights.numel(), dtype=torch.float64).view_as(weights)
        loss = (context * context).sum() + (weights * direction).sum() + sum(0 * x.sum() for x in inputs)
        gradients.append(torch.autograd.grad(loss, inputs))
    for ours, loops in zip(*gradients, strict=True):
        assert torch.isfinite(ours).all()
        torch.testing.assert_close(ours, loops)


def test_an_empty_row_makes_no_nan_on_the_way_back_either():
    """Anomaly detection looks at every step of the backward pass, also at those whose result is thrown away."""
    scores = torch.zeros(1, 1, 2, 3, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    with torch.autograd.set_detect_anomaly(True):
        attend(scores, torch.ones(1, 1, 3, 1), mask)[0].sum().backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("masked", [False, True])
def test_gradcheck(masked):
    scores = torch.randn(1, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    value = torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]]) if masked else None
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, mask), (scores, value))


@pytest.mark.parametrize("name", ["none", "padding", "causal", "window"])
def test_attend_is_torch_scaled_dot_product_attention(name):
    query, key, value = tensors()
    allowed = MASKS[name].dense(QUERY_LEN, KEY_LEN)
    context, _ = attend(ScaledDot(HEAD_DIM, HEAD_DIM)(query, key), value, allowed)
    torch.testing.assert_close(context, F.scaled_dot_product_attention(query, key, value, attn_mask=allowed))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_softmax_of_narrow_numbers_runs_in_float32(dtype):
    scores, value = 4 * torch.randn(2, 3, 5, 300).to(dtype), torch.randn(2, 3, 300, 4).to(dtype)
    context, weights = attend(scores, value)
    assert context.dtype == weights.dtype == dtype
    assert torch.equal(weights, scores.float().softmax(-1).to(dtype))
    torch.testing.assert_close(context.float(), weights.float() @ value.float(), rtol=0.02, atol=0.02)
    # with wide values nothing is rounded on the way
    assert torch.equal(attend(scores, value.float())[1], scores.float().softmax(-1))


@pytest.mark.parametrize("size", [1e30, -1e30])
def test_enormous_scores_give_a_choice_and_no_nan(size):
    scores = torch.tensor([[[[0.0, size, 1.0]]]], requires_grad=True)
    context, weights = attend(scores, torch.eye(3)[None, None], torch.tensor([True, True, False]))
    assert weights.tolist() == [[[[0.0, 1.0, 0.0] if size > 0 else [1.0, 0.0, 0.0]]]]
    context.sum().backward()
    assert torch.isfinite(scores.grad).all()


def test_dropout_keeps_the_mean_and_returns_the_weights_before_it():
    scores, value = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 4, 5)
    expected_context, expected_weights = attend(scores, value)
    many = 20000
    context, weights = attend(scores.expand(many, -1, -1, -1), value.expand(many, -1, -1, -1), dropout=0.4)
    torch.testing.assert_close(weights, expected_weights.expand_as(weights))
    # five standard errors: the variance of one dropped sum is p / (1 - p) * sum (weight * value) ** 2
    error = (0.4 / 0.6 * (expected_weights.square() @ value.square()) / many).sqrt()
    assert ((context.mean(0) - expected_context[0]).abs() < 5 * error[0]).all()
    assert context.var(0).min() > 0


def test_dropout_of_everything_leaves_nothing():
    context, weights = attend(torch.randn(1, 1, 2, 3), torch.randn(1, 1, 3, 4), dropout=1.0)
    assert (context == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 2))


@pytest.mark.parametrize("mask", [torch.ones(1, 1, 2, 3), torch.zeros(1, 1, 2, 3, dtype=torch.long)])
def test_a_mask_of_numbers_is_refused(mask):
    with pytest.raises(ValueError) as error:
        attend(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 3, 4), mask)
    assert "mask" in str(error.value) and "boolean" in str(error.value) and str(mask.dtype) in str(error.value)


# run_attention


def run(implementation, inputs, score, mask, bias=None, output_attentions=False):
    """Project, run, and return context, weights and the gradients of all inputs and parameters."""
    query, key, value = inputs
    context, weights = run_attention(
        query,
        score.project_keys(key),
        value,
        score,
        mask,
        bias=bias,
        output_attentions=output_attentions,
        implementation=implementation,
    )
    direction = torch.linspace(-1, 1, context.numel(), dtype=torch.float64).view_as(context).to(context.dtype)
    leaves = [*inputs, *score.parameters(), *([] if bias is None else [bias])]
    return context, weights, torch.autograd.grad((context * direction).sum(), leaves)


@pytest.mark.parametrize("mask, bias", list(itertools.product(MASKS, BIASES)))
def test_sdpa_is_eager_in_values_and_gradients(mask, bias):
    bias = None if BIASES[bias] is None else torch.randn(BIASES[bias], dtype=torch.float64, requires_grad=True)
    inputs, score = tensors(), ScaledDot(HEAD_DIM, HEAD_DIM)
    context, weights, gradients = run("eager", inputs, score, MASKS[mask], bias)
    fused_context, fused_weights, fused_gradients = run("sdpa", inputs, score, MASKS[mask], bias)
    assert weights is None and fused_weights is None
    torch.testing.assert_close(fused_context, context)
    for fused, eager in zip(fused_gradients, gradients, strict=True):
        assert torch.isfinite(fused).all()
        torch.testing.assert_close(fused, eager)


@pytest.mark.parametrize("name, mask", list(itertools.product(DOT_PRODUCTS, ["none", "causal padding"])))
def test_sdpa_is_eager_for_every_dot_product(name, mask):
    inputs, score = tensors(), DOT_PRODUCTS[name](HEAD_DIM, HEAD_DIM).double()
    context, _, gradients = run("eager", inputs, score, MASKS[mask])
    fused_context, _, fused_gradients = run("sdpa", inputs, score, MASKS[mask])
    torch.testing.assert_close(fused_context, context)
    torch.testing.assert_close(fused_gradients, gradients)


@pytest.mark.parametrize("mask", MASKS)
def test_float32_sdpa_is_eager(mask):
    inputs, score = tensors(torch.float32), ScaledDot(HEAD_DIM, HEAD_DIM)
    context, _, gradients = run("eager", inputs, score, MASKS[mask])
    fused_context, _, fused_gradients = run("sdpa", inputs, score, MASKS[mask])
    torch.testing.assert_close(fused_context, context, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(fused_gradients, gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_bfloat16_is_near_float64(implementation, mask):
    inputs, score = tensors(), ScaledDot(HEAD_DIM, HEAD_DIM)
    expected, _, _ = run("eager", inputs, score, MASKS[mask])
    narrow = tuple(x.detach().bfloat16().requires_grad_() for x in inputs)
    context, _, gradients = run(implementation, narrow, score, MASKS[mask])
    assert context.dtype == torch.bfloat16
    torch.testing.assert_close(context.double(), expected, rtol=0.03, atol=0.03)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("mask", MASKS)
def test_run_attention_is_the_loop(mask):
    query, key, value = tensors()
    bias = torch.randn(1, HEADS, QUERY_LEN, KEY_LEN, dtype=torch.float64)
    scores = reference.score_all(query, key, reference.scaled_dot) + bias
    expected_context, expected_weights = reference.attend(scores, value, MASKS[mask].dense(QUERY_LEN, KEY_LEN))
    context, weights = run_attention(
        query, key, value, ScaledDot(HEAD_DIM, HEAD_DIM), MASKS[mask], bias=bias, output_attentions=True
    )
    torch.testing.assert_close(context, expected_context)
    torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("mask", MASKS)
def test_weights_are_the_same_whatever_the_implementation_and_reproduce_its_context(mask):
    inputs, score = tensors(), ScaledDot(HEAD_DIM, HEAD_DIM)
    fused_context, _, _ = run("sdpa", inputs, score, MASKS[mask])
    per_implementation = [
        run(name, inputs, score, MASKS[mask], output_attentions=True)[1] for name in (None, "eager", "sdpa")
    ]
    for weights in per_implementation:
        assert torch.equal(weights, per_implementation[0])
        torch.testing.assert_close(weights @ inputs[2], fused_context)


@pytest.mark.parametrize("score", [Additive, Concat])
@pytest.mark.parametrize("mask", ["none", "causal padding"])
def test_a_score_that_is_no_dot_product_runs_as_the_equation(score, mask):
    inputs, score = tensors(), score(HEAD_DIM, HEAD_DIM, 3).double()
    context, _, _ = run("eager", inputs, score, MASKS[mask])
    assert torch.equal(run("sdpa", inputs, score, MASKS[mask])[0], context)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_dropout_of_every_execution_keeps_the_mean(implementation):
    query, key, value = (torch.randn(1, 1, 3, 4) for _ in range(3))
    score, mask, many = ScaledDot(4, 4), AttentionMask(causal=True), 20000
    expected, weights = run_attention(query, key, value, score, mask, output_attentions=True)
    query, key, value = (x.expand(many, -1, -1, -1) for x in (query, key, value))
    context, _ = run_attention(query, key, value, score, mask, dropout=0.25, implementation=implementation)
    error = (0.25 / 0.75 * (weights.square() @ value[:1].square()) / many).sqrt()
    assert ((context.mean(0) - expected[0]).abs() < 5 * error[0]).all()
    assert context.var(0).min() > 0


@pytest.mark.parametrize("output_attentions", [False, True])
def test_an_unknown_implementation_is_refused_with_the_known_ones(output_attentions):
    inputs = tensors()
    with pytest.raises(ValueError) as error:
        run("magic", inputs, ScaledDot(HEAD_DIM, HEAD_DIM), AttentionMask(), output_attentions=output_attentions)
    for word in ("attn_implementation='magic'", "eager", "sdpa"):
        assert word in str(error.value)
