# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Stack attention: the encoder layer and the decoder layer of the Transformer, residuals written out.

    post-norm (Vaswani 2017, arXiv 1706.03762, section 3.1):   states = norm(states + sublayer(states))
    pre-norm  (Xiong 2020, 2002.04745):                        states = states + sublayer(norm(states))

Pre-norm trains without warm-up, and its stack needs one more norm at the end. A layer is given its parts, so that here
stands only how they are put together.

Axis names: batch, length, source_len, target_len, heads, hidden_size, intermediate_size.
Read next: modeling_attn_transformer.py or modeling_attn_gpt.py.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer

from .masks import AttentionMask
from .multihead import MultiHeadAttention

# Ba 2016 (1607.06450); Zhang & Sennrich 2019 (1910.07467), whose eps would otherwise depend on the precision: T5's and
# Llama's
NORMS = {"layer": nn.LayerNorm, "rms": partial(nn.RMSNorm, eps=1e-6)}


class FeedForward(nn.Module):
    """The same small network at every position.

        plain (Vaswani 2017, section 3.3):   output = W_2 activation(W_1 states)
        gated (Shazeer 2020, 2002.05202):    output = W_2 (activation(V states) * W_1 states)

    Args:
        hidden_size: Width of input and output.
        intermediate_size: Width inside.
        activation: Name of an activation function, as in transformers.
        bias: Whether the matrices have biases.
        gated: Whether there is a gate V.
        dropout: Probability of dropping a coordinate of what W_2 reads.

    Raises:
        ValueError: If the activation is unknown.
    """

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        activation: str = "relu",
        *,
        bias: bool = True,
        gated: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if activation not in ACT2FN:
            raise ValueError(
                f"activation_function={activation!r} is unknown; choose one of {', '.join(sorted(ACT2FN))}"
            )
        self.inner = nn.Linear(hidden_size, intermediate_size, bias=bias)
        self.gate = nn.Linear(hidden_size, intermediate_size, bias=bias) if gated else None
        self.activation = ACT2FN[activation]
        self.dropout = nn.Dropout(dropout)
        self.outer = nn.Linear(intermediate_size, hidden_size, bias=bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(batch, length, hidden_size) -> the same"""
        inner = self.inner(states)
        inner = self.activation(inner) if self.gate is None else self.activation(self.gate(states)) * inner
        return self.outer(self.dropout(inner))


class EncoderLayer(GradientCheckpointingLayer):
    """Self-attention, then feed-forward, each with a residual and a norm.

    Args:
        self_attention: Attends to the states.
        feed_forward: The network at every position.
        make_norm: Makes the norm of one sublayer.
        norm_first: True for pre-norm, False for post-norm.
        dropout: Probability of dropping a coordinate of a sublayer's output.
    """

    def __init__(
        self,
        *,
        self_attention: MultiHeadAttention,
        feed_forward: nn.Module,
        make_norm: Callable[[], nn.Module],
        norm_first: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = self_attention
        self.self_attention_norm = make_norm()
        self.feed_forward = feed_forward
        self.feed_forward_norm = make_norm()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        mask: AttentionMask | None = None,
        angles: torch.Tensor | None = None,
        output_attentions: bool = False,
        implementation: str | None = "eager",
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run the layer.

        Args:
            states: (batch, length, hidden_size)
            bias: Added to the attention scores.
            mask: What may be attended.
            angles: Rotary angles of the positions.
            output_attentions: Whether to return the attention weights.
            implementation: "eager" or the name of a kernel.

        Returns:
            States (batch, length, hidden_size), and weights (batch, heads, length, length) or None.
        """
        residual = states
        if self.norm_first:
            states = self.self_attention_norm(states)
        states, weights = self.self_attention(
            states,
            mask=mask,
            bias=bias,
            angles=angles,
            output_attentions=output_attentions,
            implementation=implementation,
        )
        states = residual + self.dropout(states)
        if not self.norm_first:
            states = self.self_attention_norm(states)

        residual = states
        if self.norm_first:
            states = self.feed_forward_norm(states)
        states = residual + self.dropout(self.feed_forward(states))
        if not self.norm_first:
            states = self.feed_forward_norm(states)
        return states, weights


class DecoderLayer(GradientCheckpointingLayer):
    """Masked self-attention, cross-attention to the source, feed-forward, each with a residual and a norm. Without the
    cross-attention it is the layer of GPT (Radford 2018).

    Args:
        self_attention: Attends to the states.
        cross_attention: Attends to the source's states; it has the layer_index of self_attention. None for none.
        feed_forward: The network at every position.
        make_norm: Makes the norm of one sublayer.
        norm_first: True for pre-norm, False for post-norm.
        dropout: Probability of dropping a coordinate of a sublayer's output.
    """

    def __init__(
        self,
        *,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feed_forward: nn.Module,
        make_norm: Callable[[], nn.Module],
        norm_first: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = self_attention
        self.self_attention_norm = make_norm()
        self.cross_attention = cross_attention
        self.cross_attention_norm = None if cross_attention is None else make_norm()
        self.feed_forward = feed_forward
        self.feed_forward_norm = make_norm()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: torch.Tensor,
        source_states: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        *,
        mask: AttentionMask | None = None,
        source_mask: AttentionMask | None = None,
        angles: torch.Tensor | None = None,
        cache=None,
        output_attentions: bool = False,
        implementation: str | None = "eager",
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Run the layer.

        Args:
            states: (batch, target_len, hidden_size)
            source_states: (batch, source_len, hidden_size); None to leave cross-attention out.
            bias: Added to the self-attention scores.
            mask: What self-attention may attend to.
            source_mask: What cross-attention may attend to.
            angles: Rotary angles of the target positions.
            cache: Holds the keys and values of earlier steps; see `MultiHeadAttention`.
            output_attentions: Whether to return the attention weights.
            implementation: "eager" or the name of a kernel.

        Returns:
            States (batch, target_len, hidden_size), self-attention weights (batch, heads, target_len, key_len) or None,
            and cross-attention weights (batch, heads, target_len, source_len) or None.
        """
        residual = states
        if self.norm_first:
            states = self.self_attention_norm(states)
        how = {"cache": cache, "output_attentions": output_attentions, "implementation": implementation}
        states, self_weights = self.self_attention(states, mask=mask, bias=bias, angles=angles, **how)
        states = residual + self.dropout(states)
        if not self.norm_first:
            states = self.self_attention_norm(states)

        cross_weights = None
        if self.cross_attention is not None and self.cross_attention_norm is not None and source_states is not None:
            residual = states
            if self.norm_first:
                states = self.cross_attention_norm(states)
            states, cross_weights = self.cross_attention(states, source_states, source_mask, **how)
            states = residual + self.dropout(states)
            if not self.norm_first:
                states = self.cross_attention_norm(states)

        residual = states
        if self.norm_first:
            states = self.feed_forward_norm(states)
        states = residual + self.dropout(self.feed_forward(states))
        if not self.norm_first:
            states = self.feed_forward_norm(states)
        return states, self_weights, cross_weights
