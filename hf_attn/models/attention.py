# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attend: turn scores into weights and weights into a weighted sum. The one equation of the package.

    weights = softmax, over the keys that the mask allows, of the scores
    context = weights @ value

Every model, from Bahdanau's recurrent network to the Transformer, passes through `attend`; they differ in what query,
key and value are and in how the scores arise (scores.py). `run_attention` is the same equation with a choice of
execution: where nobody asks for the weights, a fused kernel (kernels.py) may compute the context without writing them
down.

Papers: Bahdanau 2015 (arXiv 1409.0473) eq. 5-6; Luong 2015 (1508.04025) eq. 7; Vaswani 2017 (1706.03762) eq. 1.
Axis names: batch, heads, query_len, key_len, head_dim, value_dim. A mask is boolean, True = may attend.
Read next: multihead.py for the Transformer, modeling_attn_rnn.py for the recurrent networks.
"""

import torch

from .kernels import KERNELS
from .masks import AttentionMask
from .scores import Score


def attend(
    scores: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None, dropout: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Average the values by the softmax of the scores.

    weights[i, j] = exp(scores[i, j]) / sum_k exp(scores[i, k]);  context[i] = sum_j weights[i, j] * value[j]

    The softmax runs in float32 or wider. A query with nothing to attend to has weights and context 0, and finite
    gradients.

    Args:
        scores: (batch, heads, query_len, key_len)
        value: (batch, heads, key_len, value_dim)
        mask: Boolean, broadcastable to scores, True = may attend; None when everything may be attended.
        dropout: Probability of dropping a weight from the sum; the others grow by 1 / (1 - dropout).

    Returns:
        Context (batch, heads, query_len, value_dim), and weights (batch, heads, query_len, key_len) as they were before
        dropout.

    Raises:
        ValueError: If the mask is not boolean, or the three do not speak of the same keys.
    """
    check_keys(scores, value, mask)
    empty = None  # queries with nothing to attend to
    if mask is not None:
        empty = ~mask.any(dim=-1, keepdim=True)
        # an empty row keeps its finite scores: a softmax over -inf alone has NaN gradients
        scores = scores.masked_fill(~(mask | empty), float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    if empty is not None:
        weights = weights.masked_fill(empty, 0.0)
    weights = weights.to(value.dtype)
    context = torch.nn.functional.dropout(weights, dropout, training=dropout > 0) @ value
    return context, weights


def check_keys(scores: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> None:
    """Raise ValueError unless scores, values and mask have the same keys, and the mask is boolean."""
    key_len = scores.shape[-1]
    if value.shape[-2] != key_len:
        raise ValueError(
            f"scores of shape {tuple(scores.shape)} are about {key_len} keys, but value of shape {tuple(value.shape)} "
            f"has {value.shape[-2]}; allowed are (..., query_len, key_len) and (..., key_len, value_dim)"
        )
    if mask is not None and (mask.dtype != torch.bool or mask.shape[-1] not in (1, key_len)):
        raise ValueError(
            f"mask must be boolean, True = may attend, with {key_len} keys or 1 for all of them; got {mask.dtype} of "
            f"shape {tuple(mask.shape)}"
        )


def run_attention(
    query: torch.Tensor,
    projected_key: torch.Tensor,
    value: torch.Tensor,
    score: Score,
    mask: AttentionMask,
    *,
    bias: torch.Tensor | None = None,
    dropout: float = 0.0,
    output_attentions: bool = False,
    implementation: str | None = "eager",
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Score, then attend; through a fused kernel if one is named, nobody wants the weights and the score is a dot
    product.

    Args:
        query: (batch, heads, query_len, head_dim)
        projected_key: What `score.project_keys(key)` returned, (batch, heads, key_len, ...)
        value: (batch, heads, key_len, value_dim)
        score: A module of scores.py.
        mask: What may be attended.
        bias: Added to the scores; broadcastable to (batch, heads, query_len, key_len).
        dropout: Probability of dropping a weight.
        output_attentions: Whether to return the weights.
        implementation: "eager" (also None) for the equation itself, or a name in KERNELS.

    Returns:
        Context (batch, heads, query_len, value_dim), and the weights (batch, heads, query_len, key_len) if asked for,
        else None.

    Raises:
        ValueError: If the implementation is unknown.
    """
    if implementation not in (None, "eager") and implementation not in KERNELS:
        raise ValueError(
            f"attn_implementation={implementation!r} is unknown; choose one of eager, {', '.join(KERNELS)}"
        )
    if implementation in KERNELS and score.scale is not None and not output_attentions:
        kernel = KERNELS[implementation]
        return kernel(query, projected_key, value, mask, scale=score.scale, bias=bias, dropout=dropout), None
    scores = score(query, projected_key)
    if bias is not None:
        scores = scores + bias
    allowed = mask.dense(query.shape[-2], value.shape[-2], device=query.device)
    context, weights = attend(scores, value, allowed, dropout)
    return context, weights if output_attentions else None
