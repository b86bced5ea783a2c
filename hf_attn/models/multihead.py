# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attend with several heads: project, split, attend, merge, project.

    head_i = attend(states W_i^Q, data W_i^K, data W_i^V)
    output = [head_1; ...; head_h] W^O

With data = states this is self-attention; with other data it is cross-attention, and the two may differ in width and
length: Vaswani 2017 (arXiv 1706.03762) section 3.2.2. Without biases and with the plain dot product as score it is the
attention of T5: Raffel 2020 (1910.10683) section 2.1. Several heads of queries may share one of keys and values:
Shazeer 2019 (1911.02150), Ainslie 2023 (2305.13245); the cache is then smaller by as much.

Axis names: batch, heads, query_len, key_len, head_dim, hidden_size, data_size.
Read next: layers.py.
"""

import torch
from torch import nn

from .attention import run_attention
from .masks import AttentionMask
from .positions import rotate
from .scores import Dot, ScaledDot


class MultiHeadAttention(nn.Module):
    """Multi-head attention, as self-, masked self- or cross-attention.

    Args:
        hidden_size: Width of the queries' states and of the output.
        num_heads: Number of heads.
        num_key_value_heads: Number of heads of keys and values; num_heads by default.
        data_size: Width of what is attended to; hidden_size by default.
        head_dim: Width of a head; hidden_size / num_heads by default.
        bias: Whether the four projections have biases.
        output_bias: Whether the last of them has one; as the others by default.
        scaled: Whether the dot products are divided by sqrt(head_dim); if not, the initial matrix of the queries is, as
            in T5 (Mesh TensorFlow).
        dropout: Probability of dropping a weight in training.
        layer_index: Where this layer keeps its keys and values in a cache.

    Raises:
        ValueError: If hidden_size is no multiple of num_heads and head_dim is not given, or num_heads is no multiple of
            num_key_value_heads.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        num_key_value_heads: int | None = None,
        data_size: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        output_bias: bool | None = None,
        scaled: bool = True,
        dropout: float = 0.0,
        layer_index: int = 0,
    ):
        super().__init__()
        if head_dim is None and hidden_size % num_heads:
            raise ValueError(f"hidden_size={hidden_size} must be a multiple of num_heads={num_heads}")
        num_key_value_heads = num_heads if num_key_value_heads is None else num_key_value_heads
        if num_heads % num_key_value_heads:
            raise ValueError(f"num_heads={num_heads} must be a multiple of num_key_value_heads={num_key_value_heads}")
        data_size = hidden_size if data_size is None else data_size
        self.num_heads = num_heads
        self.group_size = num_heads // num_key_value_heads  # heads of queries for each of keys and values
        self.head_dim = hidden_size // num_heads if head_dim is None else head_dim
        self.dropout = dropout
        self.layer_index = layer_index
        inner_size = num_heads * self.head_dim
        self.query_projection = nn.Linear(hidden_size, inner_size, bias=bias)
        self.key_projection = nn.Linear(data_size, inner_size // self.group_size, bias=bias)
        self.value_projection = nn.Linear(data_size, inner_size // self.group_size, bias=bias)
        self.output_projection = nn.Linear(inner_size, hidden_size, bias=bias if output_bias is None else output_bias)
        self.score = (ScaledDot if scaled else Dot)(self.head_dim, self.head_dim)
        if not scaled:
            self.query_projection.initial_scale = self.head_dim**-0.5  # for base.py's `_init_weights`

    def split_heads(self, states: torch.Tensor) -> torch.Tensor:
        """(batch, length, heads * head_dim) -> (batch, heads, length, head_dim)"""
        return states.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def forward(
        self,
        states: torch.Tensor,
        data: torch.Tensor | None = None,
        mask: AttentionMask | None = None,
        *,
        bias: torch.Tensor | None = None,
        angles: torch.Tensor | None = None,
        cache=None,
        output_attentions: bool = False,
        implementation: str | None = "eager",
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Let every state attend to the data.

        Args:
            states: What asks, (batch, query_len, hidden_size)
            data: What is attended to, (batch, key_len, data_size); None for the states themselves.
            mask: What may be attended; None for everything.
            bias: Added to the scores; broadcastable to (batch, heads, query_len, key_len).
            angles: Rotary angles of the states' positions, (batch, 1, query_len, head_dim / 2); self-attention only.
            cache: A transformers cache. Self-attention appends its keys and values and attends to all; cross-attention
                projects the data the first time only.
            output_attentions: Whether to return the weights.
            implementation: "eager" or the name of a kernel.

        Returns:
            Output (batch, query_len, hidden_size), and weights (batch, heads, query_len, key_len) if asked for, else
            None.
        """
        query = self.split_heads(self.query_projection(states))
        if data is None:
            key, value = self.keys_and_values(states)
            if angles is not None:
                query, key = rotate(query, angles), rotate(key, angles)
            if cache is not None:
                own = getattr(cache, "self_attention_cache", cache)
                key, value = own.update(key, value, self.layer_index)
        elif cache is not None and cache.is_updated.get(self.layer_index):
            layer = cache.cross_attention_cache.layers[self.layer_index]
            key, value = layer.keys, layer.values
        else:
            key, value = self.keys_and_values(data)
            if cache is not None:
                key, value = cache.cross_attention_cache.update(key, value, self.layer_index)
                cache.is_updated[self.layer_index] = True

        if self.group_size > 1:
            key, value = (one.repeat_interleave(self.group_size, dim=1) for one in (key, value))
        context, weights = run_attention(
            query,
            self.score.project_keys(key),
            value,
            self.score,
            AttentionMask() if mask is None else mask,
            bias=bias,
            dropout=self.dropout if self.training else 0.0,
            output_attentions=output_attentions,
            implementation=implementation,
        )
        merged = context.transpose(1, 2).flatten(2)  # (batch, query_len, heads * head_dim)
        return self.output_projection(merged), weights

    def keys_and_values(self, data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Project the data, (batch, key_len, data_size), to keys and values, each (batch, num_key_value_heads, key_len,
        head_dim)."""
        return self.split_heads(self.key_projection(data)), self.split_heads(self.value_projection(data))

    def value_norms(self, data: torch.Tensor) -> torch.Tensor:
        """Measure what each key adds to the output where all the weight is on it: || (data W_i^V + bias) W_i^O ||.

        Paper: Kobayashi 2020 (arXiv 2004.10102).

        Args:
            data: What is attended to, (batch, key_len, data_size)

        Returns:
            (batch, heads, key_len)
        """
        value = self.split_heads(self.value_projection(data)).repeat_interleave(self.group_size, dim=1)
        output = self.output_projection.weight.unflatten(1, (self.num_heads, self.head_dim))
        added = torch.einsum("bhkd,ohd->bhko", value, output)  # (batch, heads, key_len, hidden_size)
        return added.norm(dim=-1)
