# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a fused kernel is given; that it computes the equation is tested in test_attention.py."""

import pytest
import torch
from torch.nn import functional as F

from hf_attn.models import kernels
from hf_attn.models.attention import attend, run_attention
from hf_attn.models.masks import AttentionMask
from hf_attn.models.scores import ScaledDot

REAL = torch.tensor([[True, True, False], [True, True, True]])


@pytest.fixture
def calls(monkeypatch):
    """The keyword arguments of every call of torch's kernel."""
    calls, kernel = [], F.scaled_dot_product_attention

    def record(*args, **kwargs):
        calls.append(kwargs)
        return kernel(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    return calls


def run(mask, query_len=3, key_len=3, **kwargs):
    query, key, value = (torch.randn(2, 2, length, 4) for length in (query_len, key_len, key_len))
    return kernels.sdpa_kernel(query, key, value, mask, scale=0.5, **kwargs)


def test_nothing_is_written_out_where_nothing_is_padded(calls):
    run(AttentionMask())
    run(AttentionMask(causal=True))
    run(AttentionMask(causal=True, query_offset=2), query_len=1)
    assert [call.get("attn_mask") for call in calls] == [None, None, None]
    assert [call.get("is_causal", False) for call in calls] == [False, True, False]


@pytest.mark.parametrize(
    "mask, query_len, key_len",
    [
        (AttentionMask(REAL), 3, 3),
        (AttentionMask(REAL, causal=True), 3, 3),
        (AttentionMask(causal=True, window=2), 3, 3),
        (AttentionMask(causal=True, query_offset=1), 2, 3),
        (AttentionMask(causal=True), 1, 3),
        (AttentionMask(causal=True), 2, 3),
        (AttentionMask(causal=True, query_offset=torch.tensor(0)), 3, 3),
    ],
)
def test_other_masks_are_written_out(calls, mask, query_len, key_len):
    run(mask, query_len, key_len)
    assert not calls[0].get("is_causal", False)
    assert torch.equal(calls[0]["attn_mask"], mask.dense(query_len, key_len))


def test_a_bias_of_another_precision_is_cast():
    query, key, value = (torch.randn(2, 2, 3, 4, dtype=torch.bfloat16) for _ in range(3))
    bias = torch.randn(1, 2, 3, 3)
    context = kernels.sdpa_kernel(query, key, value, AttentionMask(REAL), scale=0.5, bias=bias)
    wide = [x.float() for x in (query, key, value)]
    expected = kernels.sdpa_kernel(*wide, AttentionMask(REAL), scale=0.5, bias=bias)
    torch.testing.assert_close(context.float(), expected, rtol=0.03, atol=0.03)


def test_the_scale_is_the_one_given():
    query, key, value = (torch.randn(1, 1, 3, 4) for _ in range(3))
    expected = F.scaled_dot_product_attention(query * 2, key, value)  # 2 / sqrt(4) = 1
    torch.testing.assert_close(kernels.sdpa_kernel(query, key, value, AttentionMask(), scale=1.0), expected)


@pytest.mark.parametrize("implementation", ["eager", *kernels.KERNELS])
def test_a_step_under_a_static_cache_compiles_without_a_break(implementation):
    score = ScaledDot(4, 4)

    def step(query, key, value, padding, offset):
        mask = AttentionMask(padding, causal=True, query_offset=offset)
        return run_attention(query, key, value, score, mask, implementation=implementation)[0]

    inputs = torch.randn(2, 2, 1, 4), torch.randn(2, 2, 6, 4), torch.randn(2, 2, 6, 4), REAL, torch.tensor(2)
    compiled = torch.compile(step, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), step(*inputs))


MASKS = {
    "all": (AttentionMask(), 3, 3),
    "padding": (AttentionMask(REAL), 2, 3),
    "causal": (AttentionMask(causal=True), 5, 5),
    "padding and causal": (AttentionMask(REAL, causal=True), 3, 3),
    "padding on the left": (AttentionMask(REAL.flip(1), causal=True), 3, 3),
    "window": (AttentionMask(causal=True, window=2), 5, 5),
    "window and padding": (AttentionMask(REAL, causal=True, window=1), 3, 3),
    "cached": (AttentionMask(causal=True, window=3, query_offset=4), 2, 6),
    "static": (AttentionMask(REAL, causal=True, query_offset=torch.tensor(2)), 1, 8),
    "long": (AttentionMask(causal=True, window=40), 150, 150),
}


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("name", MASKS)
def test_flex_attention_is_the_equation_for_every_mask(name, biased):
    mask, query_len, key_len = MASKS[name]
    query, key, value = (torch.randn(2, 2, length, 6) for length in (query_len, key_len, key_len))
    bias = torch.randn(1, 2, query_len, key_len) if biased else None
    context = kernels.flex_kernel(query, key, value, mask, scale=0.5, bias=bias)
    scores = 0.5 * query @ key.mT
    expected, _ = attend(scores if bias is None else scores + bias, value, mask.dense(query_len, key_len))
    torch.testing.assert_close(context, expected, atol=1e-5, rtol=1e-5)


def test_flex_attention_leaves_out_the_blocks_that_a_window_forbids():
    whole, window = (
        kernels.block_mask(AttentionMask(causal=True, window=size), 1, 2048, 2048, torch.device("cpu"))
        for size in (None, 128)
    )
    assert 40 < whole.sparsity() < 50  # a triangle of 16 blocks a side
    assert window.sparsity() == pytest.approx(100 * (1 - 31 / 256))  # the diagonal and one beside it
    assert kernels.block_mask(AttentionMask(), 1, 2048, 2048, torch.device("cpu")) is None


def test_weights_are_dropped_where_flex_attention_is_asked_for():
    query, key = torch.randn(1, 1, 400, 4), torch.randn(1, 1, 50, 4)
    context = kernels.flex_kernel(query, key, torch.ones(1, 1, 50, 4), AttentionMask(), scale=0.5, dropout=0.5)
    assert context.std() > 0.05 and context.mean().item() == pytest.approx(1, abs=0.1)
