# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Tell attention where a token stands. Without this it sees a set, not a sequence.

By where the position enters the equation:

    added to the embedding      sinusoidal   Vaswani 2017 (arXiv 1706.03762) section 3.5
                                learned      Gehring 2017 (1705.03122) section 3.1
    rotates query and key       rotary       Su 2021 (2104.09864) eq. 34
    added to the scores         ALiBi        Press 2022 (2108.12409) section 3
                                relative     Raffel 2020 (1910.10683) section 2.1

Every function takes position numbers and computes what it needs from them: no tables, so no length limit (but for
`learned`).
Axis names: batch, heads, length, query_len, key_len, head_dim. Positions are (batch or 1, length).
Read next: multihead.py.
"""

import math

import torch
from torch import nn


def inverse_frequencies(dim: int, base: float, device: torch.device) -> torch.Tensor:
    """Return base ** (-2i / dim) for i = 0, 1, ..., the angle per position of each pair of coordinates.

    Args:
        dim: Number of coordinates; an odd one has a last pair of which only half is used.
        base: The slowest wave turns once in about 2 pi * base positions.
        device: Where to put the result.

    Returns:
        ((dim + 1) // 2,) float32.
    """
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim
    return torch.exp(exponents * -math.log(base))


def sinusoidal(positions: torch.Tensor, dim: int, base: float = 10000.0, order: str = "interleaved") -> torch.Tensor:
    """Compute Vaswani's position vectors.

    vector[2i] = sin(position / base ** (2i / dim));  vector[2i + 1] = cos of the same angle

    Args:
        positions: (batch, length) or (length,)
        dim: Width of a vector.
        base: As in `inverse_frequencies`.
        order: "interleaved", as above, or "concatenated": all sines, then all cosines, the order of tensor2tensor
            (Vaswani 2018, 1803.07416), the code of the paper's authors, and of Marian (Junczys-Dowmunt 2018,
            1804.00344).

    Returns:
        (batch, length, dim) or (length, dim), float32.

    Raises:
        ValueError: If the order is unknown.
    """
    if order not in ("interleaved", "concatenated"):
        raise ValueError(f"order={order!r} is unknown; choose 'interleaved' or 'concatenated'")
    angles = positions[..., None].float() * inverse_frequencies(dim, base, positions.device)  # (..., length, pairs)
    if order == "concatenated":
        return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., :dim]
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (..., length, pairs, 2)
    return pairs.flatten(-2)[..., :dim]


def token_positions(padding: torch.Tensor | None, key_len: int, device: torch.device) -> torch.Tensor:
    """Number the tokens of each row from 0 at its first real one, so that padding on the left changes nothing.

    Args:
        padding: (batch, key_len), True for real tokens; None when nothing is padded.
        key_len: Number of tokens.
        device: Where to put the result.

    Returns:
        (batch or 1, key_len)
    """
    positions = torch.arange(key_len, device=device)[None]
    if padding is None:
        return positions
    first = padding.long().argmax(dim=-1, keepdim=True)  # (batch, 1)
    return (positions - first).clamp(min=0)


class LearnedPositions(nn.Embedding):
    """Look up one learned vector a position.

    Args:
        max_position_embeddings: Number of positions.
        dim: Width of a vector.
    """

    def __init__(self, max_position_embeddings: int, dim: int):
        super().__init__(max_position_embeddings, dim)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        """Return the vectors, (batch, length, dim), of positions (batch, length)."""
        return super().forward(positions)


def rotary_angles(positions: torch.Tensor, head_dim: int, base: float = 10000.0) -> torch.Tensor:
    """Compute by how much each pair of coordinates turns.

    Args:
        positions: (batch, length)
        head_dim: Width of a query or key; even.
        base: As in `inverse_frequencies`.

    Returns:
        (batch, 1, length, head_dim / 2) float32, in radians.

    Raises:
        ValueError: If head_dim is odd.
    """
    if head_dim % 2:
        raise ValueError(f"head_dim={head_dim} must be even: rotary positions turn pairs of coordinates")
    return (positions[..., None].float() * inverse_frequencies(head_dim, base, positions.device)).unsqueeze(1)


def rotate(states: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn each pair of coordinates, so that query . key depends on the distance of their positions only.

    differs from the paper: coordinate i is paired with i + head_dim / 2, not with its neighbour; a fixed permutation of
    the coordinates, and the order that today's checkpoints use.

    Args:
        states: Queries or keys, (batch, heads, length, head_dim)
        angles: (batch or 1, 1, length, head_dim / 2)

    Returns:
        (batch, heads, length, head_dim)
    """
    cos, sin = angles.cos().to(states.dtype), angles.sin().to(states.dtype)
    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class AlibiBias(nn.Module):
    """bias[head, i, j] = -slope[head] * |i - j|: what is far away scores less; no parameters.

    Slopes are 2 ** (-8 k / heads), k = 1 ... heads, if heads is a power of two; otherwise those of the next lower
    power, and every second one of the next higher power for the rest.

    Args:
        num_heads: Number of heads.

    Raises:
        ValueError: If there is no head.
    """

    def __init__(self, num_heads: int):
        super().__init__()
        if num_heads < 1:
            raise ValueError(f"num_heads={num_heads} must be at least 1")
        power = 2 ** math.floor(math.log2(num_heads))
        slopes = [2 ** (-8 * k / power) for k in range(1, power + 1)]
        slopes += [2 ** (-4 * k / power) for k in range(1, 2 * (num_heads - power), 2)]
        self.slopes = slopes

    def forward(self, query_positions: torch.Tensor, key_positions: torch.Tensor) -> torch.Tensor:
        """Compute the bias.

        Args:
            query_positions: (batch, query_len)
            key_positions: (batch, key_len)

        Returns:
            (batch, heads, query_len, key_len) float32.
        """
        distance = (query_positions[:, :, None] - key_positions[:, None, :]).abs().float()
        slopes = torch.tensor(self.slopes, device=distance.device)
        return -slopes[:, None, None] * distance[:, None]


class RelativeBias(nn.Module):
    """bias[head, i, j] = table[bucket(j - i), head]: T5's learned bias for buckets of distances.

    Half of the buckets of one direction hold one distance each, the others grow logarithmically up to `max_distance`;
    everything beyond shares the last one.

    Args:
        num_heads: Number of heads.
        bidirectional: Whether keys after the query have buckets of their own; False in a causal stack.
        num_buckets: Number of buckets.
        max_distance: Distance from which on all share a bucket.

    Raises:
        ValueError: If there are too few buckets for one of each kind, or all distances have one of their own.
    """

    def __init__(self, num_heads: int, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128):
        super().__init__()
        exact = num_buckets // (4 if bidirectional else 2)
        if exact < 1 or max_distance <= exact:
            raise ValueError(
                f"num_buckets={num_buckets} must be at least {4 if bidirectional else 2}, and "
                f"max_distance={max_distance} greater than the {exact} distances that have a bucket of their own"
            )
        self.bidirectional = bidirectional
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.table = nn.Embedding(num_buckets, num_heads)

    def bucket(self, offset: torch.Tensor) -> torch.Tensor:
        """Return the bucket of each offset (key position minus query position), same shape."""
        buckets = self.num_buckets
        first = torch.zeros_like(offset)
        if self.bidirectional:
            buckets //= 2
            first = (offset > 0).long() * buckets
            distance = offset.abs()
        else:
            distance = (-offset).clamp(min=0)
        exact = buckets // 2
        growth = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        logarithmic = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        return first + torch.where(distance < exact, distance, logarithmic)

    def forward(self, query_positions: torch.Tensor, key_positions: torch.Tensor) -> torch.Tensor:
        """Compute the bias.

        Args:
            query_positions: (batch, query_len)
            key_positions: (batch, key_len)

        Returns:
            (batch, heads, query_len, key_len)
        """
        offset = key_positions[:, None, :] - query_positions[:, :, None]
        return self.table(self.bucket(offset)).permute(0, 3, 1, 2)


def make_position_bias(
    position_type: str, num_heads: int, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128
) -> nn.Module | None:
    """Make what adds positions to the scores of one stack, shared by its layers.

    Args:
        position_type: Where positions enter; they are added to the scores for "alibi" and "relative".
        num_heads: Number of heads.
        bidirectional: As in `RelativeBias`.
        num_buckets: The same.
        max_distance: The same.

    Returns:
        The module; None if positions are not added there.
    """
    if position_type == "alibi":
        return AlibiBias(num_heads)
    if position_type == "relative":
        return RelativeBias(num_heads, bidirectional, num_buckets, max_distance)
    return None
