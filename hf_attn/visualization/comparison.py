"""Figures that compare models: learning curves, BLEU by sentence length, training time, alignment by layer and head.

All take plain numbers by model name, as `scripts/compare_architectures.py` writes them into `comparison.json`; a model
has the same colour and marker in every figure of the same models. BLEU by sentence length is figure 2 of Bahdanau et
al. 2015, arXiv 1409.0473.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .heatmap import DPI, AttentionFigure

MARKERS = "osD^vPX*"


def learning_curves(curves: Mapping[str, Mapping[str, Any]]) -> AttentionFigure:
    """Draw BLEU on the validation set against updates and against seconds, side by side.

    Args:
        curves: for each model `steps`, `seconds` and `bleu`, lists of the same length, as of
            `hf_attn.evaluation.learning_curve`.

    Returns:
        The figure; `figure.savefig("learning_curves.png")` writes it.

    Raises:
        ValueError: if there is no model, as in the other three.
    """
    _require_models("curves", curves)
    figure = AttentionFigure(figsize=(10, 4.2), dpi=DPI, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, along, label in zip(panels, ("steps", "seconds"), ("updates", "seconds of training")):
        for place, (name, curve) in enumerate(curves.items()):
            axes.plot(curve[along], curve["bleu"], label=name, **_style(place))
        axes.set(xlabel=label, xlim=(0, None), ylim=(0, None))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("BLEU, validation, greedy")
    panels[1].legend()
    return figure


def quality_by_length(ranges: Mapping[str, Sequence[Mapping[str, Any]]]) -> AttentionFigure:
    """Draw BLEU by the length of the source sentence, a line with 95% intervals for each model.

    Args:
        ranges: for each model the same ranges, each with `range`, `sentences`, `bleu`, `low` and `high`, as of
            `hf_attn.evaluation.bleu_by_length`.

    Returns:
        The figure.
    """
    _require_models("ranges", ranges)
    figure = AttentionFigure(figsize=(6.5, 4.5), dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    for place, (name, parts) in enumerate(ranges.items()):
        shift = 0.06 * (place - (len(ranges) - 1) / 2)  # so that the intervals of models do not hide one another
        scores = [part["bleu"] for part in parts]
        below = [max(0.0, part["bleu"] - part["low"]) for part in parts]
        above = [max(0.0, part["high"] - part["bleu"]) for part in parts]
        places = [index + shift for index in range(len(parts))]
        axes.errorbar(places, scores, yerr=[below, above], label=name, capsize=2, elinewidth=1, **_style(place))
    parts = next(iter(ranges.values()))
    axes.set_xticks(range(len(parts)), [f"{part['range']}\n({part['sentences']} sentences)" for part in parts])
    axes.set(xlabel="words in the source sentence", ylabel="BLEU with 95% interval", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)
    return figure


def training_seconds(seconds: Mapping[str, float]) -> AttentionFigure:
    """Draw how long each model trained, as bars.

    Args:
        seconds: for each model its seconds of training.

    Returns:
        The figure.
    """
    _require_models("seconds", seconds)
    figure = AttentionFigure(figsize=(6.5, 1 + 0.45 * len(seconds)), dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    colours = [_style(place)["color"] for place in range(len(seconds))]
    bars = axes.barh(range(len(seconds)), list(seconds.values()), color=colours, height=0.65)
    axes.bar_label(bars, [f"{value:,.0f}" for value in seconds.values()], padding=4)
    axes.set_yticks(range(len(seconds)), list(seconds))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("seconds of training")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def head_error_rates(rates: Mapping[str, Sequence[Sequence[float]]]) -> AttentionFigure:
    """Draw the alignment error rate of every layer and head of each model, all on one colour scale.

    Args:
        rates: for each model rows of layers; in each, one number a head, and with several heads a last one for their
            mean.

    Returns:
        The figure.
    """
    _require_models("rates", rates)
    columns = [len(layers[0]) for layers in rates.values()]
    rows = max(len(layers) for layers in rates.values())
    size = (1.6 + 0.62 * sum(columns) + 0.75 * len(rates), 1.3 + 0.6 * rows)
    figure = AttentionFigure(figsize=size, dpi=DPI, layout="constrained")
    panels = figure.subplots(1, len(rates), squeeze=False, width_ratios=columns)[0]
    for axes, (name, layers) in zip(panels, rates.items()):
        image = axes.imshow(layers, cmap="Blues_r", vmin=0, vmax=1)
        for layer, row in enumerate(layers):
            for column, rate in enumerate(row):
                colour = "white" if rate < 0.4 else "black"
                axes.text(column, layer, f"{rate:.2f}", ha="center", va="center", fontsize=8, color=colour)
        heads = len(layers[0]) - 1 if len(layers[0]) > 1 else 1
        axes.set_xticks(range(len(layers[0])), [*map(str, range(1, heads + 1)), "mean"][: len(layers[0])])
        axes.set_yticks(range(len(layers)), list(map(str, range(1, len(layers) + 1))))
        axes.set_title(name, fontsize=10)
        axes.set(xlabel="head", ylabel="layer" if axes is panels[0] else "")
        axes.tick_params(length=0)
    bar = figure.colorbar(image, ax=list(panels), shrink=0.9, pad=0.02)  # the images share one scale
    bar.set_label("alignment error rate", fontsize=9)
    return figure


def _require_models(name: str, by_model: object) -> None:
    if not isinstance(by_model, Mapping) or not by_model:
        raise ValueError(f"{name} is {by_model!r}; it must be a dictionary by model name, of at least one model")


def _style(place: int) -> dict[str, Any]:
    """Give a model's colour and marker by its place in the list."""
    return {"color": f"C{place}", "marker": MARKERS[place % len(MARKERS)], "markersize": 4, "linewidth": 1.5}
