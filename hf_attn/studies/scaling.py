# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Why scores are divided by sqrt(d_k): without it one key takes nearly everything, and no gradient passes.

    q . k = sum_i q_i k_i      has variance d_k, if the coordinates are independent with mean 0 and variance 1
    d weights_i / d scores_j = weights_i (delta_ij - weights_j)      vanishes where a weight is near 1

Source: Vaswani 2017 (arXiv 1706.03762) section 3.2.1 and its footnote 4. Look at: without the division the variance
grows like d_k, the largest of eight weights goes to 0.97 and the median gradient to nothing; divided, all stay where
they are. Entropy is in nats, ln 8 = 2.08 for equal weights; the gradient is the Frobenius norm of d weights / d scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..models.attention import attend
from ..models.scores import Dot, ScaledDot, Score
from .tables import seeded, text_table

SCORES = {"q . k": Dot, "q . k / sqrt(d_k)": ScaledDot}
QUICK: dict[str, Any] = {"widths": (4, 64), "samples": 300}


def measure(score: Score, query: torch.Tensor, key: torch.Tensor) -> dict[str, float]:
    """Measure scores, the weights made of them, and the gradients that the weights let through.

    Args:
        score: compares queries with keys.
        query: (samples, 1, 1, width)
        key: (samples, 1, keys, width)
    """
    scores = score(query, score.project_keys(key)).detach().requires_grad_()
    keys = key.shape[-2]
    # with the unit vectors as values, the context is the weights
    context, weights = attend(scores, torch.eye(keys).expand(len(key), 1, keys, keys))
    rows = [torch.autograd.grad(context[..., place].sum(), scores, retain_graph=True)[0] for place in range(keys)]
    gradients = torch.stack(rows, dim=-1).flatten(-2).norm(dim=-1)  # (samples, 1, 1)
    weights = weights.detach()
    return {
        "variance": float(scores.detach().var()),
        "largest_weight": float(weights.amax(-1).mean()),
        "entropy": float(torch.special.entr(weights).sum(-1).mean()),
        "mean_gradient": float(gradients.mean()),
        "median_gradient": float(gradients.median()),
    }


def run(
    widths: Sequence[int] = (4, 16, 64, 256, 512, 1024), keys: int = 8, samples: int = 4000, seed: int = 42
) -> dict[str, Any]:
    """Draw random queries and keys of several widths and measure.

    Args:
        widths: values of d_k.
        keys: number of keys that a query is compared with.
        samples: number of queries, each with its own keys.
        seed: of the random numbers.
    """
    rows = []
    for width in widths:
        with seeded(seed):
            query, key = torch.randn(samples, 1, 1, width), torch.randn(samples, 1, keys, width)
        for name, kind in SCORES.items():
            rows.append({"width": width, "score": name, **measure(kind(width, width), query, key)})
    return {"keys": keys, "samples": samples, "rows": rows}


def show(result: dict[str, Any]) -> str:
    """Write a row for each width and score."""
    columns = {"width": "d", "score": "", "variance": ".3f", "largest_weight": ".3f", "entropy": ".3f"}
    return text_table(result["rows"], {**columns, "mean_gradient": ".4f", "median_gradient": ".2e"})


def draw(result: dict[str, Any]) -> Any:
    """Draw each measure against d_k, with and without scaling."""
    from .figures import lines, panels

    figure, axes = panels(1, 4, 3.6)
    widths = sorted({row["width"] for row in result["rows"]})
    kinds = {
        "variance": "variance of a score",
        "largest_weight": f"largest of {result['keys']} weights",
        "entropy": "entropy of the weights, nats",
        "median_gradient": "median gradient",
    }
    for one, (name, label) in zip(axes, kinds.items()):
        by_name = {score: [row[name] for row in result["rows"] if row["score"] == score] for score in SCORES}
        lines(one, widths, by_name, xlabel="d_k", title=label, xscale="log")
        one.set_xticks([width for width in widths if width != 512], [str(width) for width in widths if width != 512])
        one.minorticks_off()
    for place in (0, 3):
        axes[place].set_yscale("log")
    axes[1].set_ylim(0, 1)
    axes[2].set_ylim(0, None)
    return figure
