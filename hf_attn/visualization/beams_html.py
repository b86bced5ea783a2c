# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of all beams of one sentence, joined where they begin alike, with every probability and the final scores.

    score = sum of log p(piece_t | pieces before t, source) / length ** length_penalty

Every row is an output, and every cell a piece with its probability; a piece that several outputs share stands in one
cell over all their rows. Read `hf_attn/inference/decoding.py` for how beams are ranked.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import saving
from .page import HtmlPage, direction, escape, make_page

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation

STYLE = """
h1 { font-size: 17px; font-weight: 600; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 10px; color: var(--faint); font-size: 14px; }
table { border-collapse: separate; border-spacing: 3px; font-variant-numeric: tabular-nums; }
th { position: sticky; inset-inline-start: 0; padding-inline: 0 6px; background: var(--paper); font-weight: 400;
  font-size: 12px; line-height: 1.2; }
th b { font-size: 14px; }
td { border: 1px solid var(--edge); border-radius: 7px; padding: 2px 7px; text-align: center; white-space: pre;
  background: color-mix(in srgb, var(--glow) calc(100% * var(--p)), var(--paper)); }
td small { display: block; font-size: 11px; }
.best td { border-color: var(--line); }
"""


@dataclass(frozen=True)
class Shared:
    """A piece that stands at the same place of one or several outputs which begin alike.

    Attributes:
        token: the piece.
        probability: given the source and the pieces before it.
        rows: how many outputs share it.
    """

    token: str
    probability: float
    rows: int


def beams_html(translations: Sequence["Translation"]) -> HtmlPage:
    """Draw the outputs of one search, best first, as the translator gives them for `num_return_sequences`.

    Args:
        translations: of one source of one line; at least one.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if there is none, they are of different sources, or one has several lines.
    """
    if not translations:
        raise ValueError("translations is empty; give the outputs of one search, at least one")
    if len({translation.source for translation in translations}) > 1:
        raise ValueError("translations are of different sources; give the outputs of one search")
    if any(translation.segments for translation in translations):
        raise ValueError("translations have several lines; give those of one line")
    order = arrange(translations)
    rows = []
    for index, cells in zip(order, shared_cells([translations[index] for index in order]), strict=True):
        best = ' class="best"' if index == 0 else ""
        pieces = "".join("" if cell is None else _cell(cell) for cell in cells)
        score = translations[index].score
        rows.append(
            f'<tr{best}><th scope="row"><b>{index + 1}</b><br><bdi dir="ltr">{score:.3f}</bdi></th>{pieces}</tr>'
        )
    way = direction(translations[0].target_tokens)
    title = f"{len(translations)} beams of “{translations[0].source}”"
    body = (
        f'<h1>{len(translations)} beams of “<bdi lang="">{escape(translations[0].source)}</bdi>”</h1>'
        "<p>Each row is an output, with its rank and its score (log-probability, normalised by length); a piece that "
        "outputs share stands once. The numbers are the probabilities of the pieces, after those before them.</p>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="beams" dir="{way}">'
        f"<table>{''.join(rows)}</table></div>"
    )
    numbers = {"beams": [translation.to_dict() for translation in translations]}
    height = 160 + 46 * len(translations)
    return make_page(title, body, style=STYLE, script=saving.DRAW, height=height, numbers=numbers, saves=("png", "svg"))


def arrange(translations: Sequence["Translation"]) -> list[int]:
    """Order outputs so that those which begin alike are neighbours, the better branch first.

    Args:
        translations: best first.

    Returns:
        Their indices.
    """

    def walk(members: list[int], depth: int) -> Iterator[int]:
        branches: dict[int | None, list[int]] = {}
        for member in members:
            ids = translations[member].target_ids
            branches.setdefault(ids[depth] if depth < len(ids) else None, []).append(member)
        for piece, branch in branches.items():  # in the order of their best members
            yield from branch if piece is None or len(branch) == 1 else walk(branch, depth + 1)

    return list(walk(list(range(len(translations))), 0))


def shared_cells(translations: Sequence["Translation"]) -> list[list[Shared | None]]:
    """Give the cells of each row; None where the row above has the piece already, after the same beginning.

    Args:
        translations: in the order of the rows.
    """
    table = []
    for row, translation in enumerate(translations):
        cells: list[Shared | None] = []
        for place, token in enumerate(translation.target_tokens):
            start = translation.target_ids[: place + 1]
            if row and translations[row - 1].target_ids[: place + 1] == start:
                cells.append(None)
                continue
            rows = 1
            while row + rows < len(translations) and translations[row + rows].target_ids[: place + 1] == start:
                rows += 1
            cells.append(Shared(token, math.exp(translation.token_log_probs[place]), rows))
        table.append(cells)
    return table


def _cell(cell: Shared) -> str:
    span = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
    return (
        f'<td{span} style="--p: {0.75 * cell.probability:.3f}"><bdi lang="">{escape(cell.token)}</bdi>'
        f"<small>{cell.probability:.2f}</small></td>"
    )
