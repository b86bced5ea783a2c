# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the figures of several studies have in common. Only the functions that draw import this file: it needs
matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..visualization.fonts import drawable
from ..visualization.heatmap import DPI, AttentionFigure

__all__ = ["bars", "drawable", "heatmap", "lines", "panels"]


def panels(rows: int, columns: int, width: float = 4.2, height: float = 3.4, **options: Any) -> tuple[Any, list[Any]]:
    """Make a figure of panels, each of this many inches; give it and its axes, row by row."""
    size = (columns * width, rows * height)
    figure = AttentionFigure(figsize=size, dpi=DPI, layout="constrained", facecolor="white")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).ravel())


def lines(axes: Any, x: Sequence[float], by_name: Mapping[str, Sequence[float]], **settings: Any) -> None:
    """Draw a line for each name, with a legend if there are several."""
    for (name, values), marker in zip(by_name.items(), "osD^vPX*" * 3):
        axes.plot(x, values, marker=marker, markersize=4, linewidth=1.5, label=name)
    axes.set(**settings)
    axes.grid(alpha=0.3)
    if len(by_name) > 1:
        axes.legend(fontsize=8)


def bars(axes: Any, names: Sequence[str], values: Sequence[float], form: str = "{:,.4g}", **settings: Any) -> None:
    """Draw horizontal bars with their numbers, the first on top."""
    labels, families = drawable(list(names))
    drawn = axes.barh(range(len(values)), values, color=[f"C{place % 10}" for place in range(len(values))], height=0.65)
    axes.bar_label(
        drawn,
        [f"{value:,}" if isinstance(value, int) else form.format(value) for value in values],
        padding=3,
        fontsize=8,
    )
    axes.set_yticks(range(len(values)), labels, fontfamily=families)
    axes.invert_yaxis()
    axes.margins(x=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(**settings)


def heatmap(axes: Any, matrix: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], **settings: Any):
    """Draw attention weights from 0 to 1 with their numbers: who asks downwards, what is attended to across."""
    labels, families = drawable([*rows, *columns])
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for place, row in enumerate(matrix):
        for column, value in enumerate(row):
            colour = "white" if value > 0.6 else "black"
            axes.text(column, place, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
    axes.set_yticks(range(len(rows)), labels[: len(rows)], fontfamily=families)
    axes.set_xticks(range(len(columns)), labels[len(rows) :], fontfamily=families)
    axes.tick_params(length=0)
    axes.set(**settings)
