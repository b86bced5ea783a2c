"""Figures of a comparison show the numbers they are given, and nothing reaches beyond the edge."""

import pytest

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg

from hf_attn.visualization import head_error_rates, learning_curves, quality_by_length, training_seconds

CURVES = {
    "none": {"steps": [10, 20], "seconds": [3.0, 6.5], "bleu": [1.0, 2.5]},
    "a model with a rather long name": {"steps": [10, 20], "seconds": [5.0, 9.0], "bleu": [2.0, 41.0]},
}
RANGES = {
    name: [
        {"range": "1 to 4", "sentences": 12, "bleu": 30.0 + shift, "low": 25.0, "high": 41.0},
        {"range": "5 or more", "sentences": 7, "bleu": 20.0 + shift, "low": 10.0, "high": 31.5},
    ]
    for shift, name in enumerate(CURVES)
}
RATES = {"one head": [[0.12]], "four heads": [[0.9, 0.2, 0.5, 0.6, 0.31], [0.1, 0.2, 0.3, 0.4, 0.05]]}


def assert_nothing_is_cut_off(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = figure.get_tightbbox(canvas.get_renderer())  # in inches
    assert box.x0 >= 0 and box.y0 >= 0
    assert box.x1 <= figure.get_figwidth() and box.y1 <= figure.get_figheight()


def test_learning_curves():
    figure = learning_curves(CURVES)
    by_updates, by_seconds = figure.axes
    for axes, along in ((by_updates, "steps"), (by_seconds, "seconds")):
        assert [line.get_label() for line in axes.lines] == list(CURVES)
        for line, curve in zip(axes.lines, CURVES.values()):
            assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == (curve[along], curve["bleu"])
    assert [text.get_text() for text in by_seconds.get_legend().get_texts()] == list(CURVES)
    assert [one.get_color() for one in by_updates.lines] == [one.get_color() for one in by_seconds.lines]
    assert_nothing_is_cut_off(figure)


def test_quality_by_length():
    figure = quality_by_length(RANGES)
    (axes,) = figure.axes
    for container, parts in zip(axes.containers, RANGES.values()):
        line, _, (bars,) = container
        assert line.get_ydata().tolist() == [part["bleu"] for part in parts]
        ends = [[float(y) for y in segment[:, 1]] for segment in bars.get_segments()]
        assert ends == [[part["low"], part["high"]] for part in parts]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1 to 4\n(12 sentences)", "5 or more\n(7 sentences)"]
    assert_nothing_is_cut_off(figure)


def test_training_seconds():
    figure = training_seconds({"none": 1234.4, "a model with a rather long name": 99.0})
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [1234.4, 99.0]
    assert [text.get_text() for text in axes.texts] == ["1,234", "99"]
    assert_nothing_is_cut_off(figure)


def test_head_error_rates():
    figure = head_error_rates(RATES)
    one, four, bar = figure.axes
    assert (one.get_title(), four.get_title()) == tuple(RATES)
    assert four.images[0].get_array().tolist() == RATES["four heads"]
    assert [text.get_text() for text in four.texts][:5] == ["0.90", "0.20", "0.50", "0.60", "0.31"]
    assert [label.get_text() for label in four.get_xticklabels()] == ["1", "2", "3", "4", "mean"]
    assert [label.get_text() for label in one.get_xticklabels()] == ["1"]
    assert {axes.images[0].get_clim() for axes in (one, four)} == {(0, 1)}  # one colour scale
    assert bar.get_ylabel() == "alignment error rate"
    assert_nothing_is_cut_off(figure)
