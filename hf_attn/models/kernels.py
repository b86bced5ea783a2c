# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Run dot-product attention without writing the weights down.

Every kernel computes what attention.py's `attend` computes for the score scale * q . k, and returns the context only. A
kernel never gets a score that is not a dot product: nothing can fuse what it does not know.

Read next: attention.py, which chooses between a kernel and the equation.
"""

import torch
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from .masks import AttentionMask


def sdpa_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: AttentionMask,
    *,
    scale: float,
    bias: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Run torch's fused `scaled_dot_product_attention`.

    Args:
        query: (batch, heads, query_len, head_dim)
        key: (batch, heads, key_len, head_dim)
        value: (batch, heads, key_len, value_dim)
        mask: What may be attended.
        scale: Factor of the dot product.
        bias: Added to the scores; broadcastable to (batch, heads, query_len, key_len).
        dropout: Probability of dropping a weight.

    Returns:
        Context, (batch, heads, query_len, value_dim); zero where nothing may be attended.
    """
    query_len, key_len = query.shape[-2], key.shape[-2]
    starts_at_zero = isinstance(mask.query_offset, int) and mask.query_offset == 0
    plain_causal = mask.causal and mask.window is None and starts_at_zero and query_len == key_len
    if bias is None and mask.padding is None and plain_causal:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True, scale=scale)
    allowed = mask.dense(query_len, key_len, device=query.device)
    if bias is not None:
        bias = bias.to(query.dtype)
        allowed = bias if allowed is None else bias.masked_fill(~allowed, float("-inf"))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout, scale=scale)


def block_mask(mask: AttentionMask, batch: int, query_len: int, key_len: int, device: torch.device) -> BlockMask | None:
    """Say which blocks of queries and keys have nothing to do with each other: with a window, most of a long text.

    Args:
        mask: What may be attended.
        batch: Number of rows.
        query_len: Number of queries.
        key_len: Number of keys. More keys than `mask.padding` has columns are unused slots of a static cache.
        device: Where the blocks are needed.

    Returns:
        The blocks, the same for all heads; None when everything may be attended.
    """
    if mask.padding is None and not mask.causal:
        return None
    offset = torch.as_tensor(mask.query_offset, device=device)
    window = key_len if mask.window is None else mask.window
    real = torch.ones(1, key_len, dtype=torch.bool, device=device)
    if mask.padding is not None:
        real = F.pad(mask.padding, (0, key_len - mask.padding.shape[1]), value=False)
    rows = real.shape[0]

    def may_attend(row, head, query, key):
        allowed = real[row % rows, key]
        distance = offset + query - key
        return allowed & (distance >= 0) & (distance < window) if mask.causal else allowed

    return create_block_mask(may_attend, None if rows == 1 else batch, None, query_len, key_len, device=str(device))


def flex_kernel(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: AttentionMask,
    *,
    scale: float,
    bias: torch.Tensor | None = None,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Run torch's `flex_attention` (Dong 2024, arXiv 2412.05496), which leaves out the blocks that a mask forbids.

    It drops no weights, so that with dropout `sdpa_kernel` runs, and on a processor it has no gradients.

    Args:
        query: (batch, heads, query_len, head_dim)
        key: (batch, heads, key_len, head_dim)
        value: (batch, heads, key_len, value_dim)
        mask: What may be attended.
        scale: Factor of the dot product.
        bias: Added to the scores; broadcastable to (batch, heads, query_len, key_len).
        dropout: Probability of dropping a weight.

    Returns:
        Context, (batch, heads, query_len, value_dim); zero where nothing may be attended.
    """
    if dropout:
        return sdpa_kernel(query, key, value, mask, scale=scale, bias=bias, dropout=dropout)
    batch, heads, query_len, _ = query.shape
    key_len = key.shape[-2]
    added = None if bias is None else bias.to(query.dtype).expand(batch, heads, query_len, key_len)

    def add_bias(score, row, head, query_index, key_index):
        return score if added is None else score + added[row, head, query_index, key_index]

    blocks = block_mask(mask, batch, query_len, key_len, query.device)
    run = torch.compile(flex_attention) if query.device.type == "cuda" else flex_attention
    return run(query, key, value, score_mod=None if bias is None else add_bias, block_mask=blocks, scale=scale)  # type: ignore[return-value]


KERNELS = {"sdpa": sdpa_kernel, "flex_attention": flex_kernel}
