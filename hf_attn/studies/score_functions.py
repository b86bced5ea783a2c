# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the five alignment scores cost: dot products are one matrix product, a network for each pair is not.

    dot  q . k       general  q . (W k)       additive  v . tanh(W q + U k)       concat  v . tanh(W [q; k])

Sources: Luong 2015 (arXiv 1508.04025) eq. 8; Bahdanau 2015 (1409.0473) A.1.2; Vaswani 2017 (1706.03762) section 3.2.1:
"similar in theoretical complexity", but the dot product is "much faster and more space-efficient in practice". Look at:
multiplications and time of additive against dot (an addition and a tanh for each pair and coordinate are not even among
the multiplications), and the memory of its hidden layer, n^2 d; and that additive and concat are one function.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..models.scores import SCORE_FUNCTIONS, Additive, Concat, make_score
from .recurrence import peak_bytes, time_in_rounds
from .tables import seeded, text_table

QUICK: dict[str, Any] = {"widths": (8,), "length": 10, "repeats": 2}


def same_function(width: int, length: int) -> float:
    """Give concat the two matrices of additive, side by side; return the largest difference of their scores."""
    additive, concat = Additive(width, width, width), Concat(width, width, width)
    query, key = torch.randn(2, 1, 1, length, width)
    with torch.no_grad():
        pair = torch.cat([additive.query_projection.weight, additive.key_projection.weight], dim=1)
        concat.pair_projection.weight.copy_(pair)
        concat.energy.weight.copy_(additive.energy.weight)
        scores = [score(query, score.project_keys(key)) for score in (additive, concat)]
    return float((scores[0] - scores[1]).abs().max())


def run(widths: Sequence[int] = (64, 256), length: int = 256, repeats: int = 5, seed: int = 0) -> dict[str, Any]:
    """Compare as many queries with as many keys, by every score.

    Args:
        widths: of queries and keys, and of the hidden layers.
        length: number of queries and of keys.
        repeats: rounds of the clock.
        seed: of weights and vectors.
    """
    rows = []
    with seeded(seed):
        for width in widths:
            scores = {name: make_score(name, width, width, width) for name in SCORE_FUNCTIONS}
            query, key = torch.randn(2, 1, 1, length, width)

            @torch.no_grad()
            def compare(score, query=query, key=key) -> None:
                score(query, score.project_keys(key))

            calls = {name: (lambda score=score: compare(score)) for name, score in scores.items()}
            taken = time_in_rounds(calls, repeats)
            for name, score in scores.items():
                with FlopCounterMode(display=False) as counter:
                    calls[name]()
                own, peer = ([busy for _, busy in taken[one]] for one in (name, "dot"))
                row = {
                    "width": width,
                    "score": name,
                    "parameters": sum(parameter.numel() for parameter in score.parameters()),
                    "multiplications": counter.get_total_flops() // 2,
                    "milliseconds": statistics.median(own),
                    "times_dot": statistics.median(own) / statistics.median(peer),
                    "megabytes": peak_bytes(calls[name]) / 2**20,
                }
                rows.append(row)
        difference = same_function(widths[0], length)
    return {"length": length, "rows": rows, "concat_from_additive": difference}


def show(result: dict[str, Any]) -> str:
    """Write a row for each width and score."""
    columns = {"width": "d", "score": "", "parameters": ",d", "multiplications": ",d", "milliseconds": ".2f"}
    table = text_table(result["rows"], {**columns, "times_dot": ".1f", "megabytes": ".2f"})
    difference = result["concat_from_additive"]
    return f"{result['length']} queries and keys:\n{table}\nadditive and concat differ by at most {difference:.0e}"


def draw(result: dict[str, Any]) -> Any:
    """Draw multiplications, time and memory of the widest."""
    from .figures import bars, panels

    width = result["rows"][-1]["width"]
    rows = [row for row in result["rows"] if row["width"] == width]
    figure, axes = panels(1, 3, 3.8, 2.8)
    sizes = f"{result['length']} x {result['length']} pairs, {width} wide"
    labels = {"multiplications": "multiplications", "milliseconds": f"ms, {sizes}", "megabytes": "MiB"}
    for one, (name, title) in zip(axes, labels.items()):
        values = [row[name] for row in rows]
        bars(one, [row["score"] for row in rows], values, "{:,.3g}", title=title)
        one.xaxis.set_visible(False)
        one.spines["bottom"].set_visible(False)
    return figure
