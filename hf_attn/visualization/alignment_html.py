"""An interactive page of which source words each target word attended to, in one file without outside links.

Point at a word, or move to it with the keyboard, and its partners light up by weight, in the words and in the heatmap
beside them. What is shown can be saved as PNG, SVG, HTML or JSON. In a notebook the page lives in an `<iframe srcdoc>`
of its own: its script runs in every front end, and several pages cannot disturb one another.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from .alignment_page import SCRIPT, STYLE
from .extract import require_weights
from .page import HtmlPage, direction, embed, escape, make_page, menu

if TYPE_CHECKING:
    from hf_attn.inference.translation import Alignment, Translation, Words

BODY = """{controls}<div class="views">
<div>
<p class="side" id="source-name">{source_name}</p>
<div class="stage" id="stage">
<svg class="links" id="links" aria-hidden="true"></svg>
<div class="words" id="source" role="toolbar" aria-labelledby="source-name" dir="{source_direction}">{source}</div>
<p class="side" id="target-name">{target_name}</p>
<div class="words" id="target" role="toolbar" aria-labelledby="target-name" dir="{target_direction}">{target}</div>
</div>
<p class="status" id="status">Point at a word, or move to it with the tab and arrow keys, to see its weights.</p>
</div>
<div class="heat scroll" tabindex="0" role="region" aria-label="Heatmap">
<svg id="heatmap" role="img" aria-label="Heatmap: {target_name} downwards, {source_name} across; the table below has \
the numbers"></svg>
</div>
</div>
{below}<p class="caption describes">{caption}</p>
<details>
<summary>All weights as a table</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Table of attention weights">
{table}
</div>
</details>
<script type="application/json" id="data">{data}</script>"""
METHODS = {  # what the menu calls the methods of `Translation.alignment`
    "weights": "weights",
    "value_norm": "weights × value norms",
    "shifted": "weights one step later",
    "shifted_value_norm": "weights × value norms, one step later",
}

Views = list[list[list["Alignment"]]]  # [method][layer][choice of heads]


def alignment_html(
    translation: "Translation",
    *,
    layer: int | None = None,
    heads: int | list[int] | None = None,
    words: bool = True,
    method: str | None = None,
) -> HtmlPage:
    """Make an interactive page of the cross-attention between the words of a translation.

    The weights of all methods, layers and heads are in the page, rounded to 4 decimals, behind three menus.

    Args:
        translation: a translation of one line, made with attention weights.
        layer: layer shown first, counted from 0; None is the one that the model recommends, or else the last.
        heads: head, or heads to average, shown first, counted from 0; None takes those that the model recommends, or
            else all.
        words: show words; False shows the pieces of the tokenizer.
        method: method shown first, as in `Translation.alignment`; None is the one that the model recommends.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if the translation has several lines, no cross-attention, or no such layer, head or method.
    """
    layer_count, head_count = require_weights(translation, "cross").shape[:2]
    shown = translation.alignment(layer=layer, heads=heads, words=words, method=method)
    grouping = translation.words() if words else None
    methods = [name for name in METHODS if translation.value_norms is not None or "value_norm" not in name]
    choices: list[int | list[int]] = [[0]]
    if head_count > 1:
        choices = [list(range(head_count)), *range(head_count)]
        several = heads if isinstance(heads, (list, tuple)) else translation.alignment_heads or []
        if len(several) > 1 and list(several) not in choices:
            choices.insert(0, list(several))
    views = [
        [[_view(translation, each, choice, name, grouping) for choice in choices] for each in range(layer_count)]
        for name in methods
    ]
    # each description says where it stands, so the one that is shown tells which entries the menus begin with
    first = next(
        (m, n, c)
        for m, by_layer in enumerate(views)
        for n, by_choice in enumerate(by_layer)
        for c, view in enumerate(by_choice)
        if view.description == shown.description
    )
    names = [METHODS[name] for name in methods]
    directions = direction(shown.source_words), direction(shown.target_words)
    return weights_page("Attention alignment", shown, views, names, first, ("source", "target"), directions)


def weights_page(
    title: str,
    shown: "Alignment",
    views: Views,
    methods: list[str],
    first: tuple[int, int, int],
    names: tuple[str, str],
    directions: tuple[str, str],
    *,
    below: str = "",
    style: str = "",
    sight: tuple[bool, int | None] = (False, None),
) -> HtmlPage:
    """Make an interactive page of weights: two rows of words, a heatmap, and a table.

    Args:
        title: what the page shows.
        shown: what it shows first.
        views: all that it can show.
        methods: what the menu calls the first axis of the views.
        first: where among the views is what is shown first.
        names: what columns and rows are.
        directions: in which the words of columns and rows follow one another.
        below: HTML to stand below the words; a list `data-piece="2"` in it, of what is said of row 2, is marked with
            it, and stands beside its weights after the word in `data-says`.
        style: style sheet of that.
        sight: whether a row sees no column after its own, and if not None, how many before it, its own included.

    Returns:
        The page.
    """
    source, target = shown.source_words, shown.target_words
    causal, window = sight
    body = BODY.format(
        controls=_controls(methods, views, first),
        source_name=names[0],
        target_name=names[1],
        source=_word_buttons(source),
        target=_word_buttons(target),
        source_direction=directions[0],
        target_direction=directions[1],
        below=below,
        caption=escape(shown.description),
        table=_table(shown, names),
        data=_embed(views, {"causal": causal, "window": window}),
    )
    lines = 2 + (sum(map(len, source)) + 4 * len(source)) // 90 + (sum(map(len, target)) + 4 * len(target)) // 90
    saves = ("png", "svg", "json")
    return make_page(title, body, style=STYLE + style, script=SCRIPT, height=400 + 52 * lines, saves=saves)


def _view(
    translation: "Translation", layer: int, heads: int | list[int], method: str, grouping: "Words | None"
) -> "Alignment":
    """Read one alignment; pieces are merged into words here, so that they are grouped once for all."""
    pieces = translation.alignment(layer=layer, heads=heads, words=False, method=method)
    if grouping is None:
        return pieces
    return replace(pieces, weights=grouping.merge(pieces.weights))


def _controls(methods: list[str], views: Views, first: tuple[int, int, int]) -> str:
    """Write the menus of methods, layers and heads, each only where there is something to choose."""
    layers = [str(number + 1) for number in range(len(views[0]))]
    # a description ends with its heads: "cross-attention weights, layer 3 of 3, mean of 4 heads"
    heads = [re.sub(r"^.*layer \d+ of \d+, ", "", view.description) for view in views[0][0]]
    menus = [
        menu(name, label, options, selected)
        for name, label, options, selected in zip(
            ("method", "layer", "heads"), ("Method", "Layer", "Heads"), (methods, layers, heads), first, strict=True
        )
        if len(options) > 1
    ]
    return f'<div class="controls">{"".join(menus)}</div>\n' if menus else ""


def _word_buttons(words: list[str]) -> str:
    """Write a row of words, of which the first is reached by the tab key and the others by the arrow keys."""
    return "".join(
        f'<button type="button" class="word" tabindex="{-1 if number else 0}">'
        f'<span class="text" dir="auto" lang="">{escape(word)}</span><span class="number"></span></button>'
        for number, word in enumerate(words)
    )


def _table(alignment: "Alignment", names: tuple[str, str]) -> str:
    """Write the weights as a table, one row for each target word."""

    def header(word: str, scope: str) -> str:
        return f'<th scope="{scope}" dir="auto" lang="">{escape(word)}</th>'

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
        f'<table id="table"><caption>Rows: {names[1]}. Columns: {names[0]}. <span class="describes">'
        f"{escape(alignment.description)}</span></caption>\n"
        f'<thead><tr><th scope="col">{names[1]}</th>{columns}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _embed(views: Views, sight: dict[str, bool | int | None]) -> str:
    """Write the weights [method][layer][choice of heads][target][source], in whole ten-thousandths, their captions,
    and what a row can see as JSON for a script element."""

    def each(read) -> list:
        return [[[read(view) for view in layer] for layer in method] for method in views]

    if not all(view.weights.isfinite().all() for method in views for layer in method for view in layer):
        raise ValueError("the weights are not all finite numbers, so they cannot be drawn")
    weights = each(lambda view: [[round(10000 * weight) for weight in row] for row in view.weights.tolist()])
    captions = each(lambda view: view.description)
    return embed({"weights": weights, "captions": captions, **sight})
