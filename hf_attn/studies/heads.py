# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""More heads cost neither parameters nor multiplications: the same matrices, cut into more pieces.

    parameters = 4 (d^2 + d)      multiplications = 4 n d^2 + 2 n^2 d, whatever the number of heads
    scores_h = X (W_h^Q)^T W_h^K X^T / sqrt(d / heads): the form between two words has rank d / heads

Source: Vaswani 2017 (arXiv 1706.03762) section 3.2.2; shared keys and values, Shazeer 2019 (1911.02150). Look at: what
does change, the rank of a head's comparison and the numbers to hold, one weight for each head and pair. And: heads
become different because they start so; equal ones get equal gradients and stay equal, whatever is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..models.multihead import MultiHeadAttention
from .tables import seeded, text_table

QUICK: dict[str, Any] = {"width": 64, "heads": (1, 8), "length": 10, "updates": 2}


def ranks(layer: MultiHeadAttention) -> list[int]:
    """Measure the rank of (W_h^Q)^T W_h^K of each head."""
    query, key = (
        one.weight.detach().double().unflatten(0, (layer.num_heads, layer.head_dim))
        for one in (layer.query_projection, layer.key_projection)
    )
    return [int(torch.linalg.matrix_rank(query[head].T @ key[head])) for head in range(layer.num_heads)]


def measure(layer: MultiHeadAttention, states: torch.Tensor) -> dict[str, Any]:
    """Count what a layer has, and what it does to read some states (batch, length, width)."""
    with FlopCounterMode(display=False) as counter:
        output, weights = layer(states, output_attentions=True)
    assert weights is not None and output.shape == states.shape
    return {
        "parameters": sum(parameter.numel() for parameter in layer.parameters()),
        "multiplications": counter.get_total_flops() // 2,  # the counter has an addition for each
        "attention_weights": weights.numel(),
    }


def heads_apart(equal: bool, width: int, length: int, updates: int, seed: int) -> float:
    """Train two heads on a random task; give the largest difference of their weights after it.

    Args:
        equal: whether both start with the same matrices.
        width: of the states.
        length: number of states.
        updates: of the training.
        seed: of the matrices and the task.
    """
    with seeded(seed):
        layer, states, target = MultiHeadAttention(width, 2), *torch.randn(2, 4, length, width)
    half = width // 2
    if equal:
        with torch.no_grad():
            for one in (layer.query_projection, layer.key_projection, layer.value_projection):
                one.weight[half:], one.bias[half:] = one.weight[:half].clone(), one.bias[:half].clone()
            layer.output_projection.weight[:, half:] = layer.output_projection.weight[:, :half].clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    for _ in range(updates):
        optimizer.zero_grad()
        (layer(states)[0] - target).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        weights = layer(states, output_attentions=True)[1]
    assert weights is not None
    return float((weights[:, 0] - weights[:, 1]).abs().max())


def run(
    width: int = 512,
    heads: Sequence[int] = (1, 2, 4, 8, 16, 32),
    length: int = 128,
    updates: int = 50,
    seed: int = 0,
) -> dict[str, Any]:
    """Build layers with different numbers of heads and measure them.

    Args:
        width: hidden_size.
        heads: numbers of heads.
        length: words in the text that is read.
        updates: of the two heads that start equal or different.
        seed: of the weights.
    """
    rows = []
    with seeded(seed):
        states = torch.randn(1, length, width)
        for number in heads:
            layer = MultiHeadAttention(width, number)
            row = {"heads": number, "shared_by": 1, "head_dim": layer.head_dim, **measure(layer, states)}
            rows.append({**row, "rank": max(ranks(layer))})
        layer = MultiHeadAttention(width, heads[-1], num_key_value_heads=1)
        rows.append({"heads": heads[-1], "shared_by": heads[-1], "head_dim": layer.head_dim, **measure(layer, states)})
    small = {"width": 16, "length": 6, "updates": updates, "seed": seed}
    apart = {name: heads_apart(equal, **small) for name, equal in (("equal", True), ("different", False))}
    return {"width": width, "length": length, "rows": rows, "heads_apart": apart, "updates": updates}


def show(result: dict[str, Any]) -> str:
    """Write a row for each layer, and how far two heads came apart."""
    numbers = ("parameters", "multiplications", "attention_weights")
    columns = {"heads": "d", "shared_by": "d", "head_dim": "d", **dict.fromkeys(numbers, ",d"), "rank": "d"}
    apart = result["heads_apart"]
    return "\n".join(
        [
            f"a layer {result['width']} wide reads {result['length']} words; keys and values shared by so many heads:",
            text_table(result["rows"], columns),
            f"two heads after {result['updates']} updates: weights differ by up to {apart['equal']:.1e} if they start "
            f"equal, {apart['different']:.2f} if not",
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw what stays and what changes with the number of heads."""
    from .figures import lines, panels

    rows = [row for row in result["rows"] if row["shared_by"] == 1]
    heads = [row["heads"] for row in rows]
    figure, axes = panels(1, 1, 6, 4)
    measured = ("parameters", "multiplications", "attention_weights", "rank")
    by_name = {
        f"{name.replace('_', ' ')} (1 head: {rows[0][name]:,})": [row[name] / rows[0][name] for row in rows]
        for name in measured
    }
    lines(axes[0], heads, by_name, xscale="log", yscale="log", xlabel="heads", ylabel="times that of one head")
    axes[0].lines[0].set(linewidth=6, alpha=0.4)  # that of the multiplications lies on it
    axes[0].legend(fontsize=8)
    axes[0].set_xticks(heads, [str(number) for number in heads])
    axes[0].minorticks_off()
    axes[0].set_title(f"a layer {result['width']} wide reads {result['length']} words")
    return figure
