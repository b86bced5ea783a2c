# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What several studies need: a plain table, and random numbers that leave those of others alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw the numbers of this block from a seed, and go on after it where torch was before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def text_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Write rows as a table of text.

    Args:
        rows: numbers and texts by name; what is None or missing stays empty.
        columns: which of them to show, in order, each with the format of its numbers, such as ".3f".

    Returns:
        A line of names and one for each row, texts to the left, numbers to the right.
    """
    names = [name.replace("_", " ") for name in columns]
    cells = [[_cell(row.get(name), form) for name, form in columns.items()] for row in rows]
    widths = [max(len(line[place]) for line in [names, *cells]) for place in range(len(names))]
    texts = [any(isinstance(row.get(name), str) for row in rows) for name in columns]
    lines = [
        "  ".join(cell.ljust(width) if text else cell.rjust(width) for cell, width, text in zip(line, widths, texts))
        for line in [names, *cells]
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any, form: str) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else format(value, form)


def growth(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Fit values = factor * sizes ** exponent by least squares of the logarithms; give the exponent."""
    logs = torch.tensor([sizes, values], dtype=torch.float64).log()
    x, y = logs - logs.mean(dim=1, keepdim=True)
    return float((x * y).sum() / (x * x).sum())
