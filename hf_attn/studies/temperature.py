# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The softmax between a mean and a choice: what dividing all scores by a number does.

    weights = softmax(scores / temperature);   weights_i / weights_j = exp((scores_i - scores_j) / temperature)

Source: Hinton 2015 (arXiv 1503.02531) section 2; sqrt(d_k) of Vaswani 2017 (1706.03762) is such a number. Look at: only
differences of scores count; at a temperature of 0.1 the lecture's "student" has 0.99 of the weight, nearly a hard
choice, which lets no gradient pass; and at 10 the four words are nearly equal, a mean that asks for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..models.attention import attend
from .five_steps import STATES, WORDS
from .tables import text_table

QUICK: dict[str, Any] = {"temperatures": (0.1, 1.0, 10.0)}


def run(
    scores: Sequence[float] = (1.5, 0.0, 0.5, 2.0),
    temperatures: Sequence[float] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0),
) -> dict[str, Any]:
    """Attend at several temperatures.

    Args:
        scores: one for each of the lecture's four words.
        temperatures: by which the scores are divided.
    """
    states, rows = torch.tensor(STATES)[None, None], []
    for temperature in temperatures:
        context, weights = attend(torch.tensor(scores)[None, None, None] / temperature, states)
        rows.append(
            {
                "temperature": temperature,
                "weights": weights.flatten().tolist(),
                "context": context.flatten().tolist(),
                "entropy": float(torch.special.entr(weights).sum()),
            }
        )
    return {"words": WORDS, "scores": list(scores), "rows": rows}


def show(result: dict[str, Any]) -> str:
    """Write a row for each temperature."""
    rows = [{**row, **dict(zip(result["words"], row["weights"]))} for row in result["rows"]]
    return text_table(rows, {"temperature": "g", **dict.fromkeys(result["words"], ".4f"), "entropy": ".4f"})


def draw(result: dict[str, Any]) -> Any:
    """Draw the weights against the temperature."""
    from .figures import lines, panels

    figure, axes = panels(1, 1, 5.5, 3.8)
    weights = list(zip(*(row["weights"] for row in result["rows"])))
    by_name = {f"{word} ({score:g})": row for word, score, row in zip(result["words"], result["scores"], weights)}
    temperatures = [row["temperature"] for row in result["rows"]]
    lines(axes[0], temperatures, by_name, xscale="log", xlabel="temperature", ylabel="weight", ylim=(0, 1.02))
    axes[0].set_xticks(temperatures, [f"{value:g}" for value in temperatures])
    axes[0].minorticks_off()
    axes[0].get_legend().set_title("word (score)", prop={"size": 8})
    return figure
