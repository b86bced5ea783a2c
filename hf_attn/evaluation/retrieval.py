# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure how well what is searched is found, where each query has one right text.

recall at k = share of the queries whose right text is among the first k
MRR         = mean of 1 / rank of the right text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .bootstrap import SAMPLES, SEED, _interval, _resampled


def ranks(scores: Any, right: Sequence[int]) -> np.ndarray:
    """Find at which place each query has its right text; texts of the same score come before it.

    Args:
        scores: (queries, texts)
        right: for each query the number of its text.

    Returns:
        (queries,), 1 for the first place.

    Raises:
        ValueError: if there is not one right text for each query, at least one.
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or len(scores) != len(right) or not len(right):
        raise ValueError(f"scores has shape {scores.shape} for {len(right)} right texts; (queries, texts) is allowed")
    return (scores >= scores[np.arange(len(right)), list(right), None]).sum(axis=1)


def retrieval_scores(
    scores: Any, right: Sequence[int], *, at: Sequence[int] = (1, 10), samples: int = SAMPLES, seed: int = SEED
) -> dict[str, float]:
    """Compute recall and mean reciprocal rank, with their 95% intervals.

    Args:
        scores: (queries, texts)
        right: for each query the number of its text.
        at: the numbers of places for recall.
        samples: how many bootstrap resamples of the queries.
        seed: makes them repeatable.

    Returns:
        `mrr` and `recall_at_<k>`, each with `_low` and `_high`.
    """
    found = ranks(scores, right)
    values = {"mrr": 1 / found} | {f"recall_at_{k}": (found <= k).astype(float) for k in at}
    results: dict[str, float] = {}
    for name, each in values.items():
        low, high = _interval(_resampled(each, lambda some: float(some.mean()), samples, seed))
        results |= {name: float(each.mean()), f"{name}_low": low, f"{name}_high": high}
    return results
