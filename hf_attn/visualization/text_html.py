# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""An interactive page of the self-attention within one text: BERT's in both directions, GPT's to the left alone.

The lower row reads the upper one, which has the same pieces: point at a piece below to see whom it reads, at one above
to see who reads it. Beside them a heatmap, in which what a piece cannot see is grey, and below what the model says:
a BERT with an output layer which pieces fit a masked place, a GPT which come next.
Read `steps_text.py` for the arithmetic behind one row of weights.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_attn.data.tokenizer import readable_tokens
from hf_attn.inference.translation import Alignment
from hf_attn.inference.what_if import candidates

from .alignment_html import weights_page
from .page import HtmlPage, escape
from .steps_common import LIKELIEST, check_choices
from .steps_text import Reading, read_text, text_direction
from .what_if_html import COLUMNS_STYLE, likely_items

NAMES = ("what is read", "what reads")
STYLE = (
    COLUMNS_STYLE
    + """
.said { margin: 10px 0; }
.steps > div { flex: none; max-width: 100%; }
.steps .place { margin: 0 0 2px; font-size: 13px; white-space: pre; max-width: 160px; overflow: hidden;
  text-overflow: ellipsis; }
.steps ol.active { border-color: var(--focus); box-shadow: 0 0 0 1px var(--focus); }
"""
)


def text_attention_html(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str | Sequence[int],
    *,
    masked: Sequence[int] = (),
    layer: int | None = None,
    head: int | None = None,
) -> HtmlPage:
    """Make an interactive page of the self-attention of a BERT or a GPT over one text.

    The weights of all layers and heads are in the page, rounded to 4 decimals, behind two menus.

    Args:
        model: a model of the families BERT or GPT, with any head or none, in eval mode.
        tokenizer: its tokenizer.
        text: a text, or the ids of its pieces.
        masked: the pieces that are hidden from the model behind the mask token, counted from 0.
        layer: layer shown first, counted from 0; None is the last.
        head: head shown first, counted from 0; None is the mean of all.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if the model is of another family or in training mode, the text has no pieces or more than the
            model reads, there is no such layer or head, or pieces are to be hidden and the tokenizer has no mask token.
    """
    read = read_text(model, tokenizer, text, masked)
    weights = torch.cat([one.float().cpu() for one in read.outputs.attentions])  # (layers, heads, length, length)
    layers, heads = weights.shape[:2]
    shown_layer = layers - 1 if layer is None else layer
    check_choices(layer=(shown_layer, layers), **({} if head is None else {"head": (head, heads)}))
    pieces = readable_tokens(tokenizer, read.shown)

    def view(number: int, choice: int | None) -> Alignment:
        rows = weights[number].mean(dim=0) if choice is None else weights[number, choice]
        named = f"mean of {heads} heads" if choice is None else f"head {choice + 1} of {heads}"
        return Alignment(rows, pieces, pieces, f"self-attention weights, layer {number + 1} of {layers}, {named}")

    choices: list[int | None] = [None, *range(heads)] if heads > 1 else [0]
    views = [[[view(number, choice) for choice in choices] for number in range(layers)]]
    first = choices.index(head if heads > 1 else 0)
    side = text_direction(tokenizer, read.ids)
    return weights_page(
        "Attention within a text",
        views[0][shown_layer][first],
        views,
        ["weights"],
        (0, shown_layer, first),
        NAMES,
        (side, side),
        below=_said(model, tokenizer, read, pieces, side) + _sight(read),
        style=STYLE,
        sight=(read.mask.causal, read.mask.window),
    )


def _sight(read: Reading) -> str:
    """Say what the grey of the heatmap is, where there is any."""
    if not read.mask.causal:
        return ""
    window = f", and those more than {read.mask.window - 1} before it" if read.mask.window else ""
    return f'<p class="caption">Grey: what a piece cannot see, the pieces after it{window}.</p>\n'


def _said(model: Any, tokenizer: PreTrainedTokenizerBase, read: Reading, pieces: list[str], side: str) -> str:
    """Write what the model says in each place where it says something."""
    if not hasattr(model, "lm_head"):
        return ""
    causal, mask = read.mask.causal, cast(int | None, tokenizer.mask_token_id)
    places = range(len(read.shown))
    if not causal:
        places = [place for place in places if mask is not None and read.shown[place] == mask]
    if not places:
        return ""
    columns, says = [], "next:" if causal else "fits:"
    for place in places:
        written = _written(read, place, mask)
        found = candidates(tokenizer, read.outputs.logits[0, place], LIKELIEST, written)
        rows = [(one.token, one.probability, one.id == written) for one in found]
        title = f"after {pieces[place]}" if causal else f"piece {place + 1}"
        columns.append(
            f'<div><p class="place" dir="auto" lang="">{escape(title)}</p>'
            f'<ol data-piece="{place}" data-says="{says}" aria-label="{escape(title)}">{likely_items(rows)}</ol></div>'
        )
    heading = "The likeliest next pieces" if causal else "The likeliest pieces in the masked places"
    known = any(_written(read, place, mask) is not None for place in places)
    underlined = f"; the one that {'is written' if causal else 'was hidden'} is underlined" if known else ""
    return (
        f'<div class="said"><p class="side">{heading}, with their probabilities{underlined}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{heading}" dir="{side}">'
        f'<div class="steps">{"".join(columns)}</div></div></div>\n'
    )


def _written(read: Reading, place: int, mask: int | None) -> int | None:
    """Give the piece that the model is asked for, if it is known: the next one, or what a mask hides."""
    if read.mask.causal:
        return read.ids[place + 1] if place + 1 < len(read.ids) else None
    return None if read.ids[place] == mask else read.ids[place]
