"""An interactive page of which source words each target word attended to, in one file without outside links.

Point at a word, or move to it with the keyboard, and its partners light up by weight. In a notebook the page lives in
an `<iframe srcdoc>` of its own: its script runs in every front end, and several pages cannot disturb one another.
"""

import html
import json
import os
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .alignment_page import SCRIPT, STYLE
from .extract import require_weights

if TYPE_CHECKING:
    from hf_attn.inference.translation import Alignment, Translation

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention alignment</title>
<style>{style}</style>
</head>
<body>
<main>
{controls}<p class="side" id="source-name">source</p>
<div class="stage" id="stage">
<svg class="links" id="links" aria-hidden="true"></svg>
<div class="words" id="source" role="toolbar" aria-labelledby="source-name" dir="{source_direction}">{source}</div>
<p class="side" id="target-name">target</p>
<div class="words" id="target" role="toolbar" aria-labelledby="target-name" dir="{target_direction}">{target}</div>
</div>
<p class="status" id="status">Point at a word, or move to it with the tab and arrow keys, to see its weights.</p>
<p class="caption describes">{caption}</p>
<details>
<summary>All weights as a table</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Table of attention weights">
{table}
</div>
</details>
</main>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True)
class AlignmentHtml:
    """An interactive alignment page: shown by a notebook as the last value of a cell, or saved to a file.

    Attributes:
        document: the whole page.
        height: height in pixels of its frame in a notebook until the page has measured itself.
    """

    document: str = field(repr=False)
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.document)}" title="Attention alignment" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the page to a file, encoded as UTF-8.

        Args:
            path: where to write; an existing file is replaced.
        """
        Path(path).write_text(self.document, encoding="utf-8", newline="\n")


def alignment_html(
    translation: "Translation", *, layer: int | None = None, heads: int | list[int] | None = None, words: bool = True
) -> AlignmentHtml:
    """Make an interactive page of the cross-attention between the words of a translation.

    The weights of all layers and heads are in the page, rounded to 4 decimals, behind two menus.

    Args:
        translation: a translation of one line, made with attention weights.
        layer: layer shown first, counted from 0; None is the last.
        heads: head, or heads to average, shown first, counted from 0; None averages all.
        words: show words; False shows the pieces of the tokenizer.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if the translation has several lines, no cross-attention, or no such layer or head.
    """
    layer_count, head_count = require_weights(translation, "cross").shape[:2]
    shown = translation.alignment(layer=layer, heads=heads, words=words)
    choices: list[int | list[int] | None] = [None, *range(head_count)] if head_count > 1 else [None]
    if isinstance(heads, (list, tuple)):
        choices.insert(0, list(heads))
    first_heads = 0 if head_count == 1 or isinstance(heads, (list, tuple)) else choices.index(heads)
    views = [
        [translation.alignment(layer=each_layer, heads=choice, words=words) for choice in choices]
        for each_layer in range(layer_count)
    ]
    first_layer = layer_count - 1 if layer is None else layer
    source, target = shown.source_words, shown.target_words
    document = PAGE.format(
        style=STYLE,
        script=SCRIPT,
        controls=_controls(views, first_layer, first_heads),
        source=_word_buttons(source),
        target=_word_buttons(target),
        source_direction=_direction(source),
        target_direction=_direction(target),
        caption=_escape(shown.description),
        table=_table(shown),
        data=_embed(views),
    )
    lines = 2 + (sum(map(len, source)) + 4 * len(source)) // 90 + (sum(map(len, target)) + 4 * len(target)) // 90
    return AlignmentHtml(document, height=320 + 52 * lines)


def _controls(views: list[list["Alignment"]], first_layer: int, first_heads: int) -> str:
    """Write the menus of layers and heads, each only where there is something to choose."""
    layers = [str(number + 1) for number in range(len(views))]
    # a description ends with its heads: "cross-attention, layer 3 of 3, mean of 4 heads"
    heads = [re.sub(r"^.*?layer \d+ of \d+, ", "", view.description) for view in views[0]]
    menus = [
        _menu(name, label, options, selected)
        for name, label, options, selected in (
            ("layer", "Layer", layers, first_layer),
            ("heads", "Heads", heads, first_heads),
        )
        if len(options) > 1
    ]
    return f'<div class="controls">{"".join(menus)}</div>\n' if menus else ""


def _menu(name: str, label: str, options: list[str], selected: int) -> str:
    entries = "".join(
        f'<option value="{value}"{" selected" if value == selected else ""}>{_escape(option)}</option>'
        for value, option in enumerate(options)
    )
    # autocomplete="off": a reloaded page shows what its caption says, not the last choice
    return f'<label>{label} <select id="{name}" autocomplete="off">{entries}</select></label>'


def _word_buttons(words: list[str]) -> str:
    """Write a row of words, of which the first is reached by the tab key and the others by the arrow keys."""
    return "".join(
        f'<button type="button" class="word" tabindex="{-1 if number else 0}">'
        f'<span class="text" dir="auto" lang="">{_escape(word)}</span><span class="number"></span></button>'
        for number, word in enumerate(words)
    )


def _table(alignment: "Alignment") -> str:
    """Write the weights as a table, one row for each target word."""

    def header(word: str, scope: str) -> str:
        return f'<th scope="{scope}" dir="auto" lang="">{_escape(word)}</th>'

    rows = []
    for word, weights in zip(alignment.target_words, alignment.weights.tolist(), strict=True):
        best = max(weights)
        cells = "".join(
            f'<td class="strongest">{weight:.2f}</td>' if weight == best else f"<td>{weight:.2f}</td>"
            for weight in weights
        )
        rows.append(f"<tr>{header(word, 'row')}{cells}</tr>")
    columns = "".join(header(word, "col") for word in alignment.source_words)
    return (
        f'<table id="table"><caption>Rows: target. Columns: source. <span class="describes">'
        f"{_escape(alignment.description)}</span></caption>\n"
        f'<thead><tr><th scope="col">target</th>{columns}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _embed(views: list[list["Alignment"]]) -> str:
    """Write the weights [layer][choice of heads][target][source] and their captions as JSON for a script element."""
    weights = [
        [[[round(weight, 4) or 0 for weight in row] for row in view.weights.tolist()] for view in layer]
        for layer in views
    ]
    captions = [[view.description for view in layer] for layer in views]
    text = json.dumps({"weights": weights, "captions": captions}, separators=(",", ":"))  # ASCII: no U+2028
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _escape(text: str) -> str:
    """Escape text for HTML; what no HTML or UTF-8 file can hold (controls, lone surrogates) becomes U+FFFD."""
    return html.escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))


def _direction(words: list[str]) -> str:
    """Find the direction in which words follow one another: that of the first letter that has one."""
    for character in "".join(words):
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return "ltr"
