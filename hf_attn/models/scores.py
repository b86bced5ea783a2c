# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Compare queries with keys: the five alignment scores of the literature.

    dot          q . k                          Luong 2015 (arXiv 1508.04025) eq. 8
    scaled_dot   q . k / sqrt(head_dim)         Vaswani 2017 (1706.03762) eq. 1
    general      q . (W k)                      Luong 2015 eq. 8
    additive     v . tanh(W q + U k)            Bahdanau 2015 (1409.0473) A.1.2
    concat       v . tanh(W [q; k])             Luong 2015 eq. 8

A score module has two steps. `project_keys(key)` does what depends on the keys alone; call it once per source and keep
the result yourself. `forward(query, projected_key)` returns the scores. `scale` is the factor of a score that is a
plain dot product after projection, and None for one that is not: only the former can run as a fused kernel.

Axis names: batch, heads, query_len, key_len, query_dim, key_dim, attention_size.
Read next: attention.py, where scores become weights.
"""

import math

import torch
from torch import nn


class Score(nn.Module):
    """What the five have in common: `project_keys`, `forward`, and a `scale` for those that are dot products."""

    scale: float | None = None

    def project_keys(self, key: torch.Tensor) -> torch.Tensor:
        """Do what depends on the keys alone; by default nothing.

        Args:
            key: (batch, heads, key_len, key_dim)

        Returns:
            What `forward` compares the queries with, (batch, heads, key_len, ...)
        """
        return key


class Dot(Score):
    """scores = query . key

    Args:
        query_dim: Width of a query.
        key_dim: Width of a key; must be the same.

    Raises:
        ValueError: If the widths differ.
    """

    scale: float = 1.0

    def __init__(self, query_dim: int, key_dim: int):
        super().__init__()
        if query_dim != key_dim:
            raise ValueError(
                f"a dot product needs query_dim == key_dim, got query_dim={query_dim} and key_dim={key_dim}"
            )

    def forward(self, query: torch.Tensor, projected_key: torch.Tensor) -> torch.Tensor:
        """Compare each query with each key.

        Args:
            query: (batch, heads, query_len, query_dim)
            projected_key: (batch, heads, key_len, key_dim)

        Returns:
            (batch, heads, query_len, key_len)
        """
        return query @ projected_key.transpose(-2, -1) * self.scale


class ScaledDot(Dot):
    """scores = query . key / sqrt(query_dim), so that their variance does not grow with the width.

    Args:
        query_dim: Width of a query.
        key_dim: Width of a key; must be the same.
    """

    def __init__(self, query_dim: int, key_dim: int):
        super().__init__(query_dim, key_dim)
        self.scale = 1.0 / math.sqrt(query_dim)


class General(Score):
    """scores = query . (W key): a learned bilinear form, for queries and keys of any two widths.

    Args:
        query_dim: Width of a query.
        key_dim: Width of a key.
    """

    scale: float = 1.0

    def __init__(self, query_dim: int, key_dim: int):
        super().__init__()
        self.key_projection = nn.Linear(key_dim, query_dim, bias=False)

    def project_keys(self, key: torch.Tensor) -> torch.Tensor:
        """Return W key, (batch, heads, key_len, query_dim)."""
        return self.key_projection(key)

    def forward(self, query: torch.Tensor, projected_key: torch.Tensor) -> torch.Tensor:
        """Compare each query with each projected key.

        Args:
            query: (batch, heads, query_len, query_dim)
            projected_key: (batch, heads, key_len, query_dim)

        Returns:
            (batch, heads, query_len, key_len)
        """
        return query @ projected_key.transpose(-2, -1)


class Additive(Score):
    """scores = v . tanh(W query + U key): a one-layer network, Bahdanau's alignment model.

    Args:
        query_dim: Width of a query.
        key_dim: Width of a key.
        attention_size: Width of the hidden layer.
    """

    def __init__(self, query_dim: int, key_dim: int, attention_size: int):
        super().__init__()
        self.query_projection = nn.Linear(query_dim, attention_size, bias=False)
        self.key_projection = nn.Linear(key_dim, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, key: torch.Tensor) -> torch.Tensor:
        """Return U key, (batch, heads, key_len, attention_size)."""
        return self.key_projection(key)

    def forward(self, query: torch.Tensor, projected_key: torch.Tensor) -> torch.Tensor:
        """Compare each query with each projected key.

        Args:
            query: (batch, heads, query_len, query_dim)
            projected_key: (batch, heads, key_len, attention_size)

        Returns:
            (batch, heads, query_len, key_len)
        """
        projected_query = self.query_projection(query).unsqueeze(-2)  # (batch, heads, query_len, 1, attention_size)
        hidden = torch.tanh(projected_query + projected_key.unsqueeze(-3))  # (..., query_len, key_len, attention_size)
        return self.energy(hidden).squeeze(-1)


class Concat(Score):
    """scores = v . tanh(W [query; key]).

    The same function as `Additive`: the columns of W that meet the query are Additive's W, those that meet the key are
    its U. Luong writes one matrix, and so does the parameter here; applying it to query and key separately, with zeros
    in place of the other, spares the concatenation of every pair.

    Args:
        query_dim: Width of a query.
        key_dim: Width of a key.
        attention_size: Width of the hidden layer.
    """

    def __init__(self, query_dim: int, key_dim: int, attention_size: int):
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim
        self.pair_projection = nn.Linear(query_dim + key_dim, attention_size, bias=False)
        self.energy = nn.Linear(attention_size, 1, bias=False)

    def project_keys(self, key: torch.Tensor) -> torch.Tensor:
        """Return the key half of W [query; key], (batch, heads, key_len, attention_size)."""
        return self.pair_projection(nn.functional.pad(key, (self.query_dim, 0)))

    def forward(self, query: torch.Tensor, projected_key: torch.Tensor) -> torch.Tensor:
        """Compare each query with each projected key.

        Args:
            query: (batch, heads, query_len, query_dim)
            projected_key: (batch, heads, key_len, attention_size)

        Returns:
            (batch, heads, query_len, key_len)
        """
        query_half = self.pair_projection(nn.functional.pad(query, (0, self.key_dim)))
        hidden = torch.tanh(query_half.unsqueeze(-2) + projected_key.unsqueeze(-3))
        return self.energy(hidden).squeeze(-1)


SCORE_FUNCTIONS = {"dot": Dot, "scaled_dot": ScaledDot, "general": General, "additive": Additive, "concat": Concat}


def make_score(name: str, query_dim: int, key_dim: int, attention_size: int) -> Score:
    """Make a score module by name.

    Args:
        name: One of SCORE_FUNCTIONS.
        query_dim: Width of a query.
        key_dim: Width of a key.
        attention_size: Width of the hidden layer of additive and concat; the others have none.

    Returns:
        The module.

    Raises:
        ValueError: If the name is unknown.
    """
    if name not in SCORE_FUNCTIONS:
        raise ValueError(f"score_function={name!r} is unknown; choose one of {', '.join(SCORE_FUNCTIONS)}")
    if name in ("additive", "concat"):
        return SCORE_FUNCTIONS[name](query_dim, key_dim, attention_size)
    return SCORE_FUNCTIONS[name](query_dim, key_dim)
