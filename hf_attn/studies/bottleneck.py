# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a last state still knows of the first word: the path back through a recurrent network, and attention's shortcut.

    recurrent   d h_T / d x_t = (prod over s = t + 1 ... T of diag(1 - h_s^2) U) diag(1 - h_t^2) W
    attention   context = sum_t weights_t h_t(x_t):  every word is one step away

Sources: Bengio 1994 for the vanishing gradient; Sutskever 2014 (arXiv 1409.3215) for the one vector, Bahdanau 2015
(1409.0473) section 1 for the complaint. Look at: how many words back the gradient has fallen to a hundredth of that of
the last word, for layers as torch initialises them; and the numbers in which a text of 5, 50 or 1,000 words is kept.
What training makes of it is in `scripts/length_study.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..models.attention import attend
from ..models.multihead import MultiHeadAttention
from ..models.recurrent import RNN_CLASSES, EncoderRnnLayer
from ..models.scores import ScaledDot
from .tables import seeded, text_table

QUICK: dict[str, Any] = {"length": 12, "width": 8, "texts": 2}


def gradients_by_distance(output: torch.Tensor, states: torch.Tensor) -> list[float]:
    """Measure how an output depends on each word.

    Args:
        output: (texts, width), made of the states.
        states: (texts, length, width).

    Returns:
        The Frobenius norm of d output / d word, mean over texts, from the last word to the first.
    """
    width = output.shape[-1]
    rows = [torch.autograd.grad(output[:, k].sum(), states, retain_graph=True)[0] for k in range(width)]
    norms = torch.stack(rows, dim=-1).flatten(2).norm(dim=-1)  # (texts, length)
    return norms.mean(dim=0).flip(0).tolist()


def run(
    length: int = 60, width: int = 64, texts: int = 8, seed: int = 0, kept: Sequence[int] = (5, 50, 1000)
) -> dict[str, Any]:
    """Measure gradients behind a last state, and behind attention.

    Args:
        length: words in a text.
        width: of words and states.
        texts: random texts to average over.
        seed: of weights and texts.
        kept: lengths for which the numbers kept of a text are counted.
    """
    gradients: dict[str, list[float]] = {}
    with seeded(seed):
        states = torch.randn(texts, length, width, dtype=torch.float64, requires_grad=True)
        for kind in RNN_CLASSES:
            layer = EncoderRnnLayer(kind, width, width, bidirectional=False).double()
            outputs = layer(states)[0]
            gradients[f"{kind}, last state"] = gradients_by_distance(outputs[:, -1], states)
            if kind == "rnn":
                query, keys = torch.randn(texts, 1, 1, width, dtype=torch.float64), outputs[:, None]
                context = attend(ScaledDot(width, width)(query, keys), keys)[0]
                gradients["rnn, attention over its states"] = gradients_by_distance(context[:, 0, 0], states)
        attention = MultiHeadAttention(width, 4).double()
        gradients["self-attention, last state"] = gradients_by_distance(attention(states)[0][:, -1], states)
    rows = []
    for name, norms in gradients.items():
        relative = [norm / norms[0] for norm in norms]
        gone = next((distance for distance, value in enumerate(relative) if value < 0.01), None)
        rows.append({"reads": name, "relative": relative, "words_until_a_hundredth": gone})
    numbers = [{"words": words, "one_state": width, "all_states": words * width} for words in kept]
    return {"length": length, "width": width, "rows": rows, "kept": numbers}


def show(result: dict[str, Any]) -> str:
    """Write the gradients at some distances, and the numbers kept."""
    distances = [distance for distance in (0, 1, 5, 10, 20, 50) if distance < result["length"]]
    rows = [{**row, **{f"at_{k}": row["relative"][k] for k in distances}} for row in result["rows"]]
    columns = {"reads": "", **{f"at_{k}": ".1e" for k in distances}, "words_until_a_hundredth": "d"}
    return "\n".join(
        [
            "gradient of a word so many before the last, relative to that of the last:",
            text_table(rows, columns),
            "numbers in which a text is kept:",
            text_table(result["kept"], {"words": ",d", "one_state": ",d", "all_states": ",d"}),
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw the gradients against the distance."""
    from .figures import panels

    figure, axes = panels(1, 1, 6.5, 4)
    for row in result["rows"]:
        axes[0].plot(row["relative"], label=row["reads"], linewidth=1.5)
    axes[0].set(yscale="log", xlabel="words before the last", ylabel="gradient, relative to the last word")
    axes[0].grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure
