# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Run dot-product attention without writing the weights down.

Every kernel computes what attention.py's `attend` computes for the score scale * q . k, and returns the context only. A
kernel never gets a score that is not a dot product: nothing can fuse what it does not know.

Read next: attention.py, which chooses between a kernel and the equation.
"""

import torch
from torch.nn import functional as F

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


KERNELS = {"sdpa": sdpa_kernel}
