# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attention in five steps on four words, then self-attention with and without a causal mask.

    1 scores = states . query    2 weights = softmax(scores)    3 context = sum_i weights_i states_i
    4 [context; query]           5 output = tanh(W_c [context; query])

The numbers are a lecture's: the encoder has read "I am a student", the decoder asks with (0.5, 0, 1), and W_c is drawn
from the seed 42. Sources: Bahdanau 2015 (arXiv 1409.0473) eq. 5-6; Luong 2015 (1508.04025) eq. 5; the mask, Vaswani
2017 (1706.03762) section 3.2.3. Look at: "student", whose score is half a point above that of "I", gets e^0.5 = 1.65
times its weight; and where query, key and value are all the same vectors, a word looks mostly at itself.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ..models.attention import attend, run_attention
from ..models.masks import AttentionMask
from ..models.multihead import MultiHeadAttention
from ..models.scores import Dot, ScaledDot
from .tables import seeded, text_table

WORDS = ["I", "am", "a", "student"]
STATES = ((1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 2.0))
QUERY = (0.5, 0.0, 1.0)
QUICK: dict[str, Any] = {}


def run(length: int = 5, width: int = 8, seed: int = 42) -> dict[str, Any]:
    """Compute the five steps, and self-attention of random vectors.

    Args:
        length: number of vectors.
        width: of each.
        seed: of W_c and the vectors.
    """
    states, query = torch.tensor(STATES)[None, None], torch.tensor(QUERY)[None, None, None]
    scores = Dot(3, 3)(query, states)
    context, weights = attend(scores, states)
    both = torch.cat([context, query], dim=-1)
    with seeded(seed):
        matrix = torch.randn(3, 6) * 0.5
        vectors = torch.randn(1, 1, length, width)
        layer = MultiHeadAttention(width, 1)
    steps = {"scores": scores, "weights": weights, "context": context, "both": both}
    steps["output"] = torch.tanh(F.linear(both, matrix))

    score = ScaledDot(width, width)
    plain, full = run_attention(vectors, vectors, vectors, score, AttentionMask(), output_attentions=True)
    causal = run_attention(vectors, vectors, vectors, score, AttentionMask(causal=True), output_attentions=True)[1]
    projected = layer(vectors[:, 0], output_attentions=True)[1]
    assert full is not None and causal is not None and projected is not None
    return {
        "steps": {name: tensor.flatten().tolist() for name, tensor in steps.items()},
        "ratio": math.exp(scores.max().item() - scores[..., 0].item()),
        "full": full[0, 0].tolist(),
        "causal": causal[0, 0].tolist(),
        "difference_from_torch": float((plain - F.scaled_dot_product_attention(vectors, vectors, vectors)).abs().max()),
        "self_weight": float(full[0, 0].diagonal().mean()),
        "self_weight_with_matrices": float(projected.detach()[0, 0].diagonal().mean()),
    }


def show(result: dict[str, Any]) -> str:
    """Write the steps, and the masked weights."""
    rows = [{"step": name, "numbers": _numbers(values)} for name, values in result["steps"].items()]
    return "\n".join(
        [
            text_table(rows, {"step": "", "numbers": ""}),
            f"weight of 'student' over that of 'I': {result['ratio']:.2f}",
            "self-attention under a causal mask:",
            *(f"  {_numbers(row)}" for row in result["causal"]),
            f"difference from torch's scaled_dot_product_attention: {result['difference_from_torch']:.1e}",
            f"mean weight on oneself: {result['self_weight']:.2f} where query = key = value, "
            f"{result['self_weight_with_matrices']:.2f} with (untrained) matrices",
        ]
    )


def _numbers(values: list[float]) -> str:
    return " ".join(f"{value:7.4f}" for value in values)


def draw(result: dict[str, Any]) -> Any:
    """Draw the weights of the five steps, and those of self-attention without and with the mask."""
    from .figures import bars, heatmap, panels

    figure, axes = panels(1, 3, 4.4)
    bars(axes[0], WORDS, result["steps"]["weights"], "{:.4f}", xlabel="weight", title="the decoder asks")
    places = [str(place + 1) for place in range(len(result["full"]))]
    for one, name, title in ((axes[1], "full", "self-attention"), (axes[2], "causal", "with a causal mask")):
        heatmap(one, result[name], places, places, title=title, xlabel="position attended to", ylabel="position")
    return figure
