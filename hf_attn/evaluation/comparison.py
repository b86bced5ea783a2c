# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Read from a finished training and its translations what a comparison of models shows.

BLEU by sentence length is figure 2 of Bahdanau et al. 2015 (arXiv 1409.0473): a network without attention must put
every sentence into one vector, and long ones do not fit.
Read next: `bootstrap.py`, which says which differences could be chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .bootstrap import bootstrap_bleu


def learning_curve(log_history: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Read updates, seconds and BLEU of the evaluations during a training.

    Time is time spent training: the evaluations themselves do not count. A log without the `seconds` that
    `ClockCallback` writes into every entry knows only the runtime of the whole; it is spread evenly over the updates.

    Args:
        log_history: the list of this name in the Trainer's `trainer_state.json`.

    Returns:
        `steps`, `seconds` and `bleu`, lists with one number an evaluation; `total_seconds` at the end of training;
        `clocked`, whether the log has a clock.

    Raises:
        ValueError: the log has no entry of a finished training.
    """
    finished = [entry for entry in log_history if "train_runtime" in entry]
    if not finished:
        raise ValueError(f"log_history has {len(log_history)} entries and no train_runtime; let the training finish")
    end = finished[-1]
    clocked = all("seconds" in entry for entry in log_history)
    curve: dict[str, Any] = {"steps": [], "seconds": [], "bleu": []}
    evaluating = 0.0
    for entry in log_history[: list(log_history).index(end)]:
        if "eval_bleu" not in entry:
            continue
        evaluating += entry["eval_runtime"]
        now = entry["seconds"] if clocked else end["train_runtime"] * entry["step"] / end["step"]
        curve["steps"].append(entry["step"])
        curve["seconds"].append(max(0.0, now - evaluating))
        curve["bleu"].append(entry["eval_bleu"])
    total = end["seconds"] if clocked else end["train_runtime"]
    return curve | {"total_seconds": total - evaluating, "clocked": clocked}


def bleu_by_length(statistics: np.ndarray, lengths: Sequence[int], starts: Sequence[int]) -> list[dict[str, Any]]:
    """Compute the BLEU of short and long sentences apart.

    Args:
        statistics: (sentences, 10), from `bleu_statistics`.
        lengths: the length of each sentence, by which it is sorted in.
        starts: the shortest length of each range, ascending; a range ends before the next, the last has no end.

    Returns:
        For each range that has sentences, `range` ("5 to 9", "10 or more"), `sentences`, and `bleu`, `low` and `high`
        as of `bootstrap_bleu`.

    Raises:
        ValueError: there are not as many lengths as sentences, or `starts` does not ascend.
    """
    if len(lengths) != len(statistics):
        raise ValueError(f"lengths has {len(lengths)} entries and statistics {len(statistics)}; give one a sentence")
    if list(starts) != sorted(set(starts)) or not starts:
        raise ValueError(f"starts is {list(starts)}; it must be one or more ascending numbers")
    measured = []
    for start, following in zip(starts, [*starts[1:], None]):
        inside = np.array([length >= start and (following is None or length < following) for length in lengths])
        if inside.any():
            name = f"{start} or more" if following is None else f"{start} to {following - 1}"
            if following == start + 1:
                name = str(start)
            measured.append({"range": name, "sentences": int(inside.sum()), **bootstrap_bleu(statistics[inside])})
    return measured
