# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a layer costs, how many steps must wait for one another, and how far apart it leaves the first and last word.

                             multiplications   sequential   path between two words
    self-attention           n^2 d             1            1
    recurrent                n d^2             n            n
    convolution, k wide      k n d^2           1            n / k
    restricted attention     r n d             1            n / r

Source: Vaswani 2017 (arXiv 1706.03762) table 1, here measured: multiplications are counted while a layer runs, with its
projections (4 n d^2 in attention, which the paper leaves out); of restricted attention those that its mask allows, all
that a kernel which skips blocks does. `steps` is the longest chain of matrix products, each of which waits for the one
before, in the graph that autograd keeps; `layers`, how many it takes until the last output depends on the first word;
`path`, the products between the two. Look at: what grows when the text is twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ..models.convolution import GatedConvolution
from ..models.masks import AttentionMask
from ..models.multihead import MultiHeadAttention
from ..models.recurrent import EncoderRnnLayer
from .tables import seeded, text_table

Layer = Callable[[torch.Tensor], torch.Tensor]
QUICK: dict[str, Any] = {"length": 12, "width": 16, "kernel_size": 3, "window": 4}


def products(name: str) -> int:
    """Count the matrix products in a node of the graph: a fused kernel has two, with the softmax between them."""
    return 2 if "scaleddotproduct" in name else int("mm" in name)


def chain_of_products(output: torch.Tensor) -> int:
    """Count the matrix products on the longest chain of the graph behind an output."""
    longest: dict[Any, int] = {}
    waiting: list[tuple[Any, bool]] = [(output.grad_fn, False)]
    while waiting:
        node, inputs_done = waiting.pop()
        inputs = [before for before, _ in node.next_functions if before is not None]
        if inputs_done:
            longest[node] = max((longest[before] for before in inputs), default=0) + products(node.name().lower())
        elif node not in longest:
            waiting += [(node, True), *((before, False) for before in inputs if before not in longest)]
    return longest[output.grad_fn]


def layers_to_connect(layer: Layer, length: int, width: int) -> int:
    """Count how often a layer must be stacked until its last output depends on the first of its inputs."""
    states = start = torch.randn(1, length, width, dtype=torch.float64, requires_grad=True)
    for number in range(1, length + 1):
        states = layer(states)
        (gradient,) = torch.autograd.grad(states[0, -1].sum(), start, retain_graph=True)
        if gradient[0, 0].abs().max() > 0:
            return number
    raise ValueError(f"length is {length}; the first and the last word are apart in so many layers")


def build(width: int, kernel_size: int, window: int) -> dict[str, tuple[nn.Module, Layer]]:
    """Build a layer of each type: the module, and how it is called."""
    attention = MultiHeadAttention(width, 2)
    recurrent = EncoderRnnLayer("rnn", width, width, bidirectional=False)
    convolution = GatedConvolution(width, kernel_size, causal=True)
    near = AttentionMask(causal=True, window=window)
    return {
        "self-attention": (attention, lambda states: attention(states)[0]),
        "recurrent": (recurrent, lambda states: recurrent(states)[0]),
        f"convolution, k = {kernel_size}": (convolution, convolution),
        f"restricted attention, r = {window}": (attention, lambda states: attention(states, mask=near)[0]),
    }


def multiplications(layer: Layer, length: int, width: int, window: int | None) -> int:
    """Count the multiplications of one reading of a text; with a window, without those that the mask rules out."""
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(1, length, width))
    count = counter.get_total_flops() // 2  # the counter has an addition for each
    if window is not None:
        allowed = AttentionMask(causal=True, window=window).dense(length, length)
        assert allowed is not None
        count -= 2 * width * int((~allowed).sum())
    return count


def run(length: int = 128, width: int = 64, kernel_size: int = 5, window: int = 16, seed: int = 0) -> dict[str, Any]:
    """Measure each type of layer, on a text, on one twice as long, and twice as wide.

    Args:
        length: n, the number of words.
        width: d, of the states.
        kernel_size: k, words in the window of a convolution.
        window: r, words that restricted attention sees.
        seed: of the weights.
    """
    with seeded(seed):
        layers, wide = (build(size, kernel_size, window) for size in (width, 2 * width))
        rows = []
        for name, (module, layer) in layers.items():
            near = window if "restricted" in name else None
            count = multiplications(layer, length, width, near)
            row: dict[str, Any] = {"layer": name, "multiplications": count}
            row["twice_as_long"] = multiplications(layer, 2 * length, width, near) / count
            row["twice_as_wide"] = multiplications(wide[name][1], length, 2 * width, near) / count
            row["steps"] = chain_of_products(layer(torch.randn(1, length, width)))
            module.double()
            row["layers"] = layers_to_connect(layer, length, width)
            module.float()
            rows.append({**row, "path": row["steps"] * row["layers"]})
    return {"length": length, "width": width, "rows": rows}


def show(result: dict[str, Any]) -> str:
    """Write a row for each type."""
    columns = {"layer": "", "multiplications": ",d", "twice_as_long": ".2f", "twice_as_wide": ".2f"}
    table = text_table(result["rows"], {**columns, "steps": "d", "layers": "d", "path": "d"})
    return f"n = {result['length']} words, d = {result['width']}; times as many multiplications when twice:\n{table}"


def draw(result: dict[str, Any]) -> Any:
    """Draw multiplications, steps and paths."""
    from .figures import bars, panels

    rows = result["rows"]
    figure, axes = panels(1, 3, 4.2, 2.4, sharey=True)
    title = f"{result['length']} words, {result['width']} wide"
    for one, (name, label) in zip(
        axes,
        (("multiplications", f"multiplications, {title}"), ("steps", "steps, one after another"), ("path", "path")),
    ):
        bars(one, [row["layer"] for row in rows], [row[name] for row in rows], title=label)
        one.xaxis.set_visible(False)
        one.spines["bottom"].set_visible(False)
    axes[0].invert_yaxis()  # shared: each of the three turned it round
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    return figure
