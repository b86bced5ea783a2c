# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attention weights over a picture as matplotlib figures: what is attended to is lit, the rest lies in the dark.

`caption_figure` has a panel for each word that was written, as figure 2 of Xu 2015 (Show, Attend and Tell, arXiv
1502.03044), `patch_figure` one for each layer of the encoder of the picture. Weights are those of whole patches, drawn
as such, not smoothed. `picture_html.py` makes a page of the first, `patches_html.py` of the second.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hf_attn.data.images import convert_image
from hf_attn.inference.captioner import lay_out
from hf_attn.inference.translation import chosen_heads, describe_heads

from .extract import attention_rollout, picture_weights
from .fonts import drawable
from .heatmap import DPI, AttentionFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

    from hf_attn.inference.captioner import Caption

DARKEST = 0.86  # how much of the light is taken from a patch without weight
PANEL = 1.35  # inches
WIDEST = 6  # panels in a row


def caption_figure(caption: "Caption", *, layer: int | None = None, heads: int | list[int] | None = None) -> "Figure":
    """Draw where the model looked as it wrote each word.

    The brightest patch of a panel is the one of its largest weight, which is the number over the panel.

    Args:
        caption: what a `Captioner` says about a picture.
        layer: layer of the decoder, counted from 0; None is the one that the model recommends, or else the last.
        heads: one head or several to average, counted from 0; None takes those that the model recommends, or else all.

    Returns:
        The figure; `figure.savefig("caption.png")` writes it.

    Raises:
        ValueError: if there is no such layer or head, or the caption is empty.
    """
    if not caption.tokens:
        raise ValueError("caption is empty; there is nothing to draw")
    weights = caption.over_picture(layer, heads)
    layer, heads = caption.choose(layer, heads)
    words = [token.removeprefix("▁") or token for token in caption.tokens]
    layers, head_count = caption.cross_attentions.shape[:2]
    averaged = describe_heads(chosen_heads(heads, head_count), head_count)
    name = f"cross-attention, layer {layer % layers + 1} of {layers}, {averaged}"
    return _panels(caption.image, words, weights, f"{caption.text}\n{name}")


def patch_figure(
    image: "Image",
    attentions: torch.Tensor | Sequence[torch.Tensor],
    grid: tuple[int, int],
    *,
    method: str = "weights",
    heads: int | list[int] | None = None,
) -> "Figure":
    """Draw which patches an encoder of pictures attends to, layer by layer.

    The panels show the weights of the class token, or, in a model without one, the mean of the patches' weights: what
    the vector that stands for the picture is made of.

    Args:
        image: the picture.
        attentions: (layers, heads, length, length), or a model's `attentions` for one picture: for each layer
            (1, heads, length, length). The patches are the last of the length, row by row.
        grid: rows and columns of patches.
        method: "weights", those of each layer; "rollout", an estimate of how much of each patch has arrived after each
            layer (`attention_rollout`).
        heads: one head or several to average, counted from 0; None takes all.

    Returns:
        The figure.

    Raises:
        ValueError: if there is no such method or head, or there is more than one picture, or not so many patches.
    """
    if method not in ("weights", "rollout"):
        raise ValueError(f"method={method!r} is not allowed; choose 'weights' or 'rollout'")
    weights = picture_weights(attentions, grid)
    layers, head_count, length = weights.shape[:3]
    chosen = chosen_heads(heads, head_count)
    steps = weights[:, chosen]  # (layers, heads, length, length)
    if method == "rollout":
        steps = attention_rollout(steps)[:, None]
    drawn = torch.stack([lay_out(steps.float().cpu(), grid, number) for number in range(layers)])
    has_class_token = length > grid[0] * grid[1]
    who = "the class token" if has_class_token else "the mean of the patches"
    rows = drawn[:, 0] if has_class_token else drawn.mean(dim=1)  # (layers, rows, columns)
    what = "attention rollout, up to each layer," if method == "rollout" else "attention"
    titles = [f"layer {number + 1}" for number in range(layers)]
    return _panels(image, titles, rows, f"{what} of {who}, {describe_heads(chosen, head_count)}")


def _panels(image: "Image", titles: list[str], weights: torch.Tensor, caption: str) -> "Figure":
    """Draw the picture, then once more for each title under its weights: (titles, rows, columns)."""
    shown, families = drawable([*titles, *caption.split("\n"), "numbers: the largest weight"])
    style: dict[str, Any] = {"fontfamily": families, "parse_math": False, "usetex": False}
    columns = min(WIDEST, len(titles) + 1)
    rows = -(-(len(titles) + 1) // columns)
    lines = [
        line for text in shown[len(titles) :] for line in textwrap.wrap(text, int(columns * PANEL / 0.075)) or [""]
    ]
    below = 0.2 * len(lines) + 0.1
    figure = AttentionFigure(
        figsize=(columns * PANEL, rows * (PANEL + 0.3) + below), dpi=DPI, facecolor="white", layout="constrained"
    )
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, below / figure.get_figheight(), 1, 1 - below / figure.get_figheight()))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    pixels = np.asarray(convert_image(image, "RGB"))
    for number, axes in enumerate(panels):
        axes.set_axis_off()
        if number > len(titles):
            continue
        axes.imshow(pixels, interpolation="nearest")
        if number:
            _darken(axes, pixels, weights[number - 1])
            title = f"{_fit(shown[number - 1])} {float(weights[number - 1].max()):.2f}"
            axes.set_title(title, fontsize=10, pad=3, **style)
    for line, text in enumerate(lines):
        figure.text(0.02, (below - 0.2 * (line + 0.8)) / figure.get_figheight(), text, fontsize=9, **style)
    return figure


def _darken(axes: "Axes", pixels: np.ndarray, weights: torch.Tensor) -> None:
    """Lay a dark veil over the picture, clear on the patch of the largest weight."""
    light = weights.numpy() / max(float(weights.max()), 1e-12)
    veil = np.zeros((*light.shape, 4))
    veil[..., 3] = DARKEST * (1 - light)
    height, width = pixels.shape[:2]
    axes.imshow(veil, interpolation="nearest", extent=(-0.5, width - 0.5, height - 0.5, -0.5))


def _fit(word: str, longest: int = 12) -> str:
    return word if len(word) <= longest else word[: longest - 1] + "…"
