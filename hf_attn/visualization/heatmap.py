"""Attention weights as matplotlib figures: target words downwards, source words across.

The picture is that of Bahdanau, Cho and Bengio, 2015, arXiv 1409.0473, figure 3. Figures are made without pyplot:
nothing stays open, and no display is needed. Hebrew and Arabic labels are joined and ordered by matplotlib 3.11 and
later; `alignment_html` leaves every script to the browser.
"""

import textwrap
import unicodedata
from io import BytesIO
from typing import TYPE_CHECKING

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("heatmaps need matplotlib: pip install 'hf_attn[viz]'", name="matplotlib") from error

from .extract import decoder_inputs, require_weights
from .fonts import drawable

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation

COLOURS = "Blues"
LONGEST_LABEL = 24  # columns of text; a Korean syllable takes two
DPI = 150


class AttentionFigure(Figure):
    """A figure that a notebook shows as the last value of a cell even if pyplot was never loaded."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def alignment_heatmap(
    translation: "Translation",
    *,
    layer: int | None = None,
    heads: int | list[int] | None = None,
    words: bool = True,
    method: str | None = None,
) -> Figure:
    """Draw the cross-attention between the words of a translation.

    Args:
        translation: a translation of one line, made with attention weights.
        layer: decoder layer, counted from 0; None is the one that the model recommends, or else the last.
        heads: one head or several to average, counted from 0; None takes those that the model recommends, or else all.
        words: draw words; False draws the pieces of the tokenizer.
        method: as in `Translation.alignment`; None is the one that the model recommends.

    Returns:
        The figure; `figure.savefig("alignment.png")` writes it.

    Raises:
        ValueError: if the translation has several lines, no cross-attention, or no such layer, head or method.
    """
    require_weights(translation, "cross")
    alignment = translation.alignment(layer=layer, heads=heads, words=words, method=method)
    rows, columns = alignment.weights.shape
    labels, families = drawable([_shorten(word) for word in [*alignment.target_words, *alignment.source_words]])
    target_labels, source_labels = labels[:rows], labels[rows:]
    cell = min(0.55, max(0.27, 0.6 - 0.02 * max(rows, columns)), 60 / max(rows, columns))  # inches
    font_size = max(4.0, min(11.0, cell * 30))

    figure = AttentionFigure(figsize=(columns * cell, rows * cell), dpi=DPI, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(alignment.weights.numpy(), cmap=COLOURS, vmin=0, aspect="auto", interpolation="nearest")
    crowded = _too_wide(source_labels, cell, font_size)
    _label_axes(axes, source_labels, target_labels, families, font_size, rotate=crowded)
    unit = "words" if words else "pieces"
    axes.set_xlabel(f"source {unit}", fontsize=9, color="dimgray")
    axes.set_ylabel(f"target {unit}", fontsize=9, color="dimgray")
    axes.set_xticks([column - 0.5 for column in range(1, columns)], minor=True)
    axes.set_yticks([row - 0.5 for row in range(1, rows)], minor=True)
    axes.grid(which="minor", color="gainsboro", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
    _fit(figure, axes, image, alignment.description)
    return figure


def attention_grid(translation: "Translation", kind: str = "cross") -> Figure:
    """Draw the attention of every layer and head side by side: layers downwards, heads across, one colour scale.

    Args:
        translation: a translation of one line, made with attention weights.
        kind: "cross", "encoder" or "decoder".

    Returns:
        The figure. Rows of every panel are the pieces that ask, columns those attended to; they are labelled where
        there is room.

    Raises:
        ValueError: if `kind` is another, or the translation has several lines or no such weights.
    """
    if kind not in ("cross", "encoder", "decoder"):
        raise ValueError(f"kind is {kind!r}; it must be 'cross', 'encoder' or 'decoder'")
    weights = require_weights(translation, kind)
    layers, heads, rows, columns = weights.shape
    queries = translation.source_tokens if kind == "encoder" else translation.target_tokens
    keys = decoder_inputs(translation) if kind == "decoder" else translation.source_tokens
    labels, families = drawable([_shorten(token) for token in [*queries, *keys]])

    cell = min(0.3, 13 / (heads * columns), 13 / (layers * rows))  # inches
    cell = max(cell, 0.7 / max(rows, columns))
    largest = float(weights.max())
    figure = AttentionFigure(
        figsize=(heads * (columns * cell + 0.25) + 2.6, layers * (rows * cell + 0.3) + 1.8),
        dpi=DPI,
        facecolor="white",
        layout="constrained",
    )
    panels = figure.subplots(layers, heads, squeeze=False)
    for layer in range(layers):
        for head in range(heads):
            axes = panels[layer][head]
            axes.imshow(weights[layer, head].numpy(), cmap=COLOURS, vmin=0, vmax=largest)
            readable = cell >= 0.12
            top = labels[rows:] if readable and layer == 0 else None
            left = labels[:rows] if readable and head == 0 else None
            _label_axes(axes, top, left, families, min(9.0, cell * 55), rotate=True)
            if layer == 0:
                axes.set_title(f"head {head + 1}", fontsize=10)
            if head == 0:
                axes.set_ylabel(f"layer {layer + 1}", fontsize=10)
    shrink = min(1.0, 6 / figure.get_figheight())
    bar = figure.colorbar(panels[0][0].images[0], ax=panels.ravel().tolist(), shrink=shrink, aspect=25, pad=0.02)
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    name = "cross-attention" if kind == "cross" else f"{kind} self-attention"
    asks = "source" if kind == "encoder" else "target"
    attended = {"cross": "source pieces", "encoder": "source pieces", "decoder": "pieces the decoder had read"}[kind]
    caption = f"{name}, every layer and head; rows: {asks} pieces, columns: {attended}"
    width = max(30, int(figure.get_figwidth() / 0.08))
    figure.supxlabel(textwrap.fill(caption, width), fontsize=9, x=0.02, ha="left", parse_math=False)
    return figure


def _label_axes(
    axes: Axes, top: list[str] | None, left: list[str] | None, families: list[str], size: float, *, rotate: bool
) -> None:
    """Write labels above and left of a matrix as they are, without reading "$" as mathematics."""
    style = {"fontfamily": families, "fontsize": size, "parse_math": False, "usetex": False}
    turned = {"rotation": 50, "ha": "left", "va": "baseline", "rotation_mode": "anchor"} if rotate else {}
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xticks(range(len(top)) if top else [], top or [], **style, **turned)
    for label in axes.get_xticklabels():
        if len(label.get_text()) == 1 and not label.get_text().isalnum():
            label.set(rotation=0, ha="center")  # a turned "<" would read as "^"
    axes.set_yticks(range(len(left)) if left else [], left or [], **style)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_edgecolor("silver")


def _fit(figure: Figure, axes: Axes, image, caption: str) -> None:
    """Give the figure room for its labels, the colour bar and the caption, so that nothing is cut off."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    box = axes.get_window_extent(renderer)
    drawn = axes.get_tightbbox(renderer) or box
    left, top, overhang = (max(0.0, edge / DPI) for edge in (box.x0 - drawn.x0, drawn.y1 - box.y1, drawn.x1 - box.x1))
    width, height = box.width / DPI, box.height / DPI
    bar_height = max(height, 1.5)
    margin = 0.12
    full_width = max(left + width + max(overhang, 1.1) + 2 * margin, 3.6)
    lines = textwrap.wrap(caption, int((full_width - 2 * margin) / 0.068))
    below = 0.2 * len(lines) + 0.1
    full_height = top + bar_height + below + 2 * margin

    def place(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        return x / full_width, y / full_height, w / full_width, h / full_height

    figure.set_size_inches(full_width, full_height)
    ceiling = margin + below + bar_height
    axes.set_position(place(margin + left, ceiling - height, width, height))
    bar_axes = figure.add_axes(place(margin + left + width + 0.18, ceiling - bar_height, 0.13, bar_height))
    bar = figure.colorbar(image, cax=bar_axes)
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    figure.text(margin / full_width, margin / full_height, "\n".join(lines), fontsize=9, va="bottom", parse_math=False)


def _shorten(label: str) -> str:
    """Cut a label that is longer than a picture can carry."""
    width, kept = 0, []
    for character in label:
        width += _columns_of(character)
        if width > LONGEST_LABEL:
            return "".join(kept[:-1]) + "…"
        kept.append(character)
    return label


def _columns_of(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _too_wide(labels: list[str], cell: float, font_size: float) -> bool:
    """Tell whether labels side by side would run into one another."""
    return max(map(_columns_of, labels)) * font_size * 0.62 / 72 > cell - 0.05
