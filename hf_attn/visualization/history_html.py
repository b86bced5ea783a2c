# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of one sentence through several architectures: translations, alignments, seconds, and how each fares as the
sentence grows.

Every alignment is a small heatmap: rows are the words of the translation, columns those of the source, dark is much.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .page import HtmlPage, escape, make_page

if TYPE_CHECKING:
    from hf_attn.inference.translation import Alignment, Translation

COLOURS = (  # on light and on dark paper
    *(("#b45309", "#fbbf24"), ("#1d4ed8", "#8ab4f8"), ("#0b7a3e", "#57d993"), ("#a21caf", "#f0abfc")),
    *(("#b42318", "#fda29b"), ("#0e7490", "#67e8f9"), ("#57534e", "#d6d3d1")),
)
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 4", "1 2", "12 3")
LONGEST_LABEL = 14
CELL, SMALL_CELL, MANY_WORDS = 15, 8, 24  # a long sentence gets small cells, so that all of it is seen at once
STYLE = """
h1 { font-size: 17px; font-weight: 600; margin: 0 0 10px; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 4px; }
p { margin: 0 0 6px; overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: 14px; }
.models { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, max(330px, var(--width))), 1fr));
  gap: 12px; align-items: start; }
section { border: 1px solid var(--edge); border-radius: 10px; padding: 10px 12px; min-width: 0; }
.text { font-size: 17px; }
.flags { color: light-dark(#b42318, #fda29b); font-size: 14px; }
svg { font: 11px system-ui, "Noto Sans", "NanumGothic", sans-serif; }
svg { max-width: 100%; height: auto; } .growth > svg { overflow: visible; }
@media (max-width: 480px) { .growth > svg { font-size: 17px; } }
svg.dense { font-size: 9px; }
svg text { fill: var(--ink); } svg .paper { fill: none; stroke: var(--edge); } svg .cell { fill: var(--line); }
.growth { margin-top: 14px; }
.growth polyline { fill: none; stroke-width: 2.5; } .growth .grid { stroke: var(--edge); }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 0 0 6px; padding: 0; font-size: 14px; }
.key svg { vertical-align: middle; margin-inline-end: 5px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { border-bottom: 1px solid var(--edge); padding: 2px 12px 2px 0; text-align: end; font-weight: 400; }
th:first-child { text-align: start; }
""" + "".join(
    f".line-{number} {{ stroke: light-dark({light}, {dark}); stroke-dasharray: {dashes}; }}\n"
    for number, ((light, dark), dashes) in enumerate(zip(COLOURS, DASHES))
)


@dataclass(frozen=True)
class Entry:
    """What one model made of the sentence.

    Attributes:
        name: of the architecture.
        translation: of one line.
        seconds: how long it took.
        flags: what looks wrong with it.
    """

    name: str
    translation: "Translation"
    seconds: float
    flags: Sequence[str] = field(default_factory=tuple)


def history_html(
    entries: Sequence[Entry], growth: Mapping[str, Sequence[tuple[int, float]]] | None = None, measure: str = ""
) -> HtmlPage:
    """Put the translations of one sentence side by side, oldest architecture first.

    Args:
        entries: one for each model, in the order of the page; of the same source.
        growth: for each model what it reached at each length of the sentence: (words, value from 0 to 1).
        measure: what those values are.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if there is no entry, or they are of different sources.
    """
    if not entries or len({entry.translation.source for entry in entries}) > 1:
        raise ValueError("entries must be translations of one sentence, at least one")
    drawings = [
        None if entry.translation.cross_attentions is None else alignment_svg(entry.translation.alignment())
        for entry in entries
    ]
    sections = "".join(_section(entry, drawing) for entry, drawing in zip(entries, drawings, strict=True))
    widest = max((int(re.search(r' width="(\d+)"', one)[1]) for one in drawings if one), default=0)  # type: ignore
    source = entries[0].translation.source
    body = (
        f'<h1 dir="auto" lang="">{escape(source)}</h1>'
        f'<div class="models" style="--width: {widest + 28}px">{sections}</div>'
    )
    if growth and max(len(points) for points in growth.values()) > 1:
        body += _growth(growth, measure)
    return make_page("One sentence through the architectures", body, style=STYLE, height=700)


def alignment_svg(alignment: "Alignment", cell: int | None = None) -> str:
    """Draw an alignment as a small heatmap.

    Args:
        alignment: as `Translation.alignment` gives it.
        cell: width of a cell in pixels; None for a width that the number of words allows.

    Returns:
        An SVG element, whose title says what it shows.
    """
    rows, columns = alignment.target_words, alignment.source_words
    dense = max(len(rows), len(columns)) > MANY_WORDS
    cell = cell or (SMALL_CELL if dense else CELL)
    letter, lean = (5.5, 90) if dense else (7, 45)
    left = round(letter * max(map(_width, rows))) + 6
    top = round(letter * math.sin(math.radians(lean)) * max(map(_width, columns))) + 12
    width = left + cell * len(columns) + (2 if dense else top // 2)
    height = top + cell * len(rows) + 2
    look = ' class="dense"' if dense else ""
    look += f' style="min-width: {round(0.7 * width)}px"'  # where there is less room it is scrolled
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}"{look} role="img" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(alignment.description)}: {escape(_summary(alignment))}</title>",
        f'<rect class="paper" x="{left}" y="{top}" width="{cell * len(columns)}" height="{cell * len(rows)}"/>',
    ]
    for number, word in enumerate(columns):
        place = f"translate({left + (number + (0.85 if dense else 0.7)) * cell:.1f} {top - 4}) rotate(-{lean})"
        parts.append(f'<text transform="{place}" lang="">{escape(_short(word))}</text>')
    for number, word in enumerate(rows):
        y = top + (number + 0.75) * cell
        parts.append(f'<text x="{left - 4}" y="{y:.1f}" text-anchor="end" lang="">{escape(_short(word))}</text>')
        for column, weight in enumerate(alignment.weights[number].tolist()):
            if weight >= 0.0005:
                parts.append(
                    f'<rect class="cell" x="{left + column * cell}" y="{top + number * cell}" width="{cell}" '
                    f'height="{cell}" opacity="{weight:.3f}"/>'
                )
    return "".join(parts) + "</svg>"


def _section(entry: Entry, drawing: str | None) -> str:
    translation = entry.translation
    picture = (
        '<p class="faint">one vector for the whole sentence: there is no attention to draw</p>'
        if drawing is None
        else f'<div class="scroll" tabindex="0" role="region" aria-label="alignment of {escape(entry.name)}">'
        f"{drawing}</div>"
    )
    flags = f'<p class="flags">{escape(", ".join(entry.flags))}</p>' if entry.flags else ""
    probability = math.exp(sum(translation.token_log_probs) / max(len(translation.token_log_probs), 1))
    return (
        f"<section><h2>{escape(entry.name)}</h2>"
        f'<p class="text" dir="auto" lang="">{escape(translation.text) or "(nothing)"}</p>{flags}'
        f'<p class="faint">probability of a piece {probability:.2f}, {entry.seconds:.2f} s</p>{picture}</section>'
    )


def _growth(growth: Mapping[str, Sequence[tuple[int, float]]], measure: str) -> str:
    """Draw one line a model over the number of words, with a key and a table of the same numbers."""
    lengths = sorted({words for points in growth.values() for words, _ in points})
    width, height, left, top, bottom = 560, 230, 48, 14, 30

    def place(words: int, value: float) -> tuple[float, float]:
        x = left + (words - lengths[0]) / max(lengths[-1] - lengths[0], 1) * (width - left - 12)
        return x, top + (1 - value) * (height - bottom - top)

    grid = "".join(
        f'<line class="grid" x1="{left}" x2="{width - 12}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{value:.2f}</text>'
        for value in (0, 0.25, 0.5, 0.75, 1)
        for y in (place(lengths[0], value)[1],)
    )
    ticks = "".join(
        f'<text x="{place(words, 0)[0]:.1f}" y="{height - bottom + 16}" text-anchor="middle">{words}</text>'
        for words in lengths
    )
    lines, keys, rows = [], [], []
    for number, (name, points) in enumerate(growth.items()):
        look = f'class="line-{number % len(COLOURS)}"'
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        lines.append(f'<polyline points="{path}" {look}><title>{escape(name)}</title></polyline>')
        line = f'<line x1="1" x2="33" y1="5" y2="5" stroke-width="2.5" {look}/>'
        swatch = f'<svg width="34" height="10" aria-hidden="true">{line}</svg>'
        keys.append(f"<li>{swatch}{escape(name)}</li>")
        values = dict(points)
        cells = "".join(f"<td>{values[words]:.2f}</td>" if words in values else "<td></td>" for words in lengths)
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{words}</th>' for words in lengths)
    return (
        f'<div class="growth"><h2>As the sentence grows</h2>'
        f'<p class="faint">{escape(measure)}, over the number of source words</p><ul class="key">{"".join(keys)}</ul>'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img"><title>{escape(measure)} by length</title>'
        f"{grid}{ticks}{''.join(lines)}</svg>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="the same as a table">'
        f'<table><tr><th scope="row">words</th>{head}</tr>{"".join(rows)}</table></div></div>'
    )


def _summary(alignment: "Alignment") -> str:
    """Say for each target word which source word it looked at most."""
    return ", ".join(
        f"{word} looks at {alignment.source_words[int(weights.argmax())]}"
        for word, weights in zip(alignment.target_words, alignment.weights, strict=True)
    )


def _width(word: str) -> int:
    """Count the columns that a label takes: two for each wide letter, as in Korean."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in _short(word))


def _short(word: str) -> str:
    return word if len(word) <= LONGEST_LABEL else word[: LONGEST_LABEL - 1] + "…"
