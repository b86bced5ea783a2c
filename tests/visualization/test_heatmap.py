"""Heatmaps show the weights they are given, under labels that can be read."""

import importlib
import re
import sys
import warnings

import numpy as np
import pytest
import torch

pytest.importorskip("matplotlib")
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from hf_attn.inference import Translation
from hf_attn.visualization import alignment_heatmap, attention_grid

LONG = (
    "the old teacher who had read the book that the young student bought in the city wrote a long letter to the "
    "friendly neighbour and the neighbour gave the letter to the mayor because she knew him well."
)
SENTENCES = [
    ("yes", "sì"),
    ("the cat sleeps.", "il gatto dorme."),
    (LONG, LONG.upper()),
    ("I pay $5 or $x_1$", "je paie $\\frac{ 5 $"),
    ("Donaudampfschifffahrtsgesellschaftskapitänsmütze", "a b c d e f g h i j k l m n o p"),
    ("a b c d e f g h i j k l m n o p", "antidisestablishmentarianism"),
    ("<img src=x onerror=alert(1)>", "l'homme \"><b> &amp;"),
]


def boxes(figure, texts):
    renderer = FigureCanvasAgg(figure).get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.parametrize(("source", "target"), SENTENCES)
@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")  # of what other tests left
def test_weights_labels_and_caption(make_translation, source, target):
    translation = make_translation(source, target)
    figure = alignment_heatmap(translation, layer=0, heads=[0, 2])
    expected = translation.alignment(layer=0, heads=[0, 2])
    axes, bar = figure.axes
    assert np.array_equal(np.asarray(axes.images[0].get_array()), expected.weights.numpy())
    for shown, words in (
        (tick_labels(axes.xaxis), expected.source_words),
        (tick_labels(axes.yaxis), expected.target_words),
    ):
        for label, word in zip(shown, words, strict=True):
            assert label == word or (len(word) > 24 and len(label) == 24 and word.startswith(label[:-1]))
    assert bar.get_ylabel() == "attention weight"
    (caption,) = figure.texts
    assert caption.get_text().replace("\n", " ") == "cross-attention weights, layer 1 of 2, mean of heads 1, 3 of 3"
    figure.draw_without_rendering()


@pytest.mark.parametrize(("source", "target"), SENTENCES)
def test_everything_is_inside_and_apart(make_translation, source, target):
    figure = alignment_heatmap(make_translation(source, target))
    axes, bar = figure.axes
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    outer = figure.bbox
    for box in [part.get_tightbbox(renderer) for part in (axes, bar, *figure.texts)]:
        assert outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1
    assert not axes.get_tightbbox(renderer).overlaps(figure.texts[0].get_window_extent(renderer))
    rows = boxes(figure, axes.get_yticklabels())
    assert all(below.y1 <= above.y0 for above, below in zip(rows, rows[1:], strict=False))
    assert all(label.get_fontsize() >= 7 for label in [*axes.get_yticklabels(), *axes.get_xticklabels()])
    columns = axes.get_xticklabels()
    upright = all(label.get_rotation() == 0 for label in columns)
    if upright:
        across = boxes(figure, columns)
        assert all(left.x1 <= right.x0 for left, right in zip(across, across[1:], strict=False))
    else:  # turned labels run in parallel, a cell apart: their lines are as far from one another as cell * sin(angle)
        cell = axes.get_window_extent(renderer).width / len(columns)
        line = columns[0].get_fontsize() / 72 * figure.dpi
        assert cell * np.sin(np.radians(50)) >= line * 0.95


def test_the_picture_shows_where_the_weight_is(make_translation):
    translation = make_translation("a b c", "x y z", layers=1, heads=1)
    translation.cross_attentions = torch.eye(4)[[1, 0, 2, 3]][None, None]
    figure = alignment_heatmap(translation)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels, axes = np.asarray(canvas.buffer_rgba()), figure.axes[0]
    dark = np.zeros((4, 4), dtype=bool)
    for row in range(4):
        for column in range(4):
            x, y = axes.transData.transform((column, row))
            dark[row, column] = pixels[pixels.shape[0] - int(y), int(x), :3].mean() < 128
    assert np.array_equal(dark, np.eye(4)[[1, 0, 2, 3]] == 1)
    assert to_rgb(figure.get_facecolor()) == (1, 1, 1)


def test_pieces_instead_of_words(make_translation):
    translation = make_translation("a b", "c")
    translation.source_tokens[0] = "▁a"
    axes = alignment_heatmap(translation, words=False).axes[0]
    assert tick_labels(axes.xaxis) == ["▁a", "b", "</s>"]
    assert axes.get_xlabel() == "source pieces"


def test_korean_warns_once_or_is_drawn(make_translation):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        alignment_heatmap(make_translation("the student reads a book", "학생이 책을 읽습니다")).draw_without_rendering()
    messages = [str(warning.message) for warning in caught]
    assert not any("Glyph" in message for message in messages)
    assert messages == [] or (len(messages) == 1 and "fonts-nanum" in messages[0])


@settings(max_examples=5)
@given(st.lists(st.text(st.characters(), min_size=1), min_size=1, max_size=4))
def test_no_text_breaks_a_picture(words):
    weights = torch.full((1, 1, len(words), len(words)), 1 / len(words))
    translation = Translation("", "", words, words, [], 0.0, cross_attentions=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "No installed font can draw")
        alignment_heatmap(translation, words=False).draw_without_rendering()


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_grid_shows_every_layer_and_head(make_translation, kind):
    translation = make_translation("the cat sleeps", "il gatto dorme ora", layers=2, heads=3)
    figure = attention_grid(translation, kind)
    *panels, bar = figure.axes
    weights = getattr(translation, f"{kind}_attentions")
    assert len(panels) == 6 and bar.get_ylabel() == "attention weight"
    for number, panel in enumerate(panels):
        image = panel.images[0]
        assert np.array_equal(np.asarray(image.get_array()), weights[number // 3, number % 3].numpy())
        assert image.get_clim() == (0, float(weights.max()))
    assert [panel.get_title() for panel in panels] == ["head 1", "head 2", "head 3", "", "", ""]
    assert [panel.get_ylabel() for panel in panels] == ["layer 1", "", "", "layer 2", "", ""]
    source, target = ["the", "cat", "sleeps", "</s>"], ["il", "gatto", "dorme", "ora", "</s>"]
    keys = ["<s>", *target[:-1]] if kind == "decoder" else source
    assert tick_labels(panels[0].xaxis) == keys
    assert tick_labels(panels[0].yaxis) == (source if kind == "encoder" else target)
    assert re.match(f"{kind}[ -]", figure.get_supxlabel())


def test_what_cannot_be_drawn(make_translation):
    recurrent = make_translation("a", "b", self_attention=False)
    with pytest.raises(ValueError, match="encoder self-attention"):
        attention_grid(recurrent, "encoder")
    with pytest.raises(ValueError, match="kind is 'both'"):
        attention_grid(recurrent, "both")
    without = Translation("a", "b", ["a"], ["b"], [0.0], 0.0)
    for draw in (alignment_heatmap, attention_grid):
        with pytest.raises(ValueError, match="no cross-attention"):
            draw(without)
    with pytest.raises(ValueError, match="empty translation"):
        alignment_heatmap(Translation("", "", [], [], [], 0.0))
    with pytest.raises(ValueError, match="2 lines"):
        alignment_heatmap(Translation("a\nb", "a\nb", [], [], [], 0.0, segments=[recurrent, recurrent]))
    for options in ({"layer": 2}, {"heads": 3}, {"heads": []}):
        with pytest.raises(ValueError, match=next(iter(options))):
            alignment_heatmap(recurrent, **options)


def test_notebooks_show_a_picture(make_translation):
    assert alignment_heatmap(make_translation("a", "b"))._repr_png_().startswith(b"\x89PNG")


def test_pyplot_is_not_needed(make_translation, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it fails
    translation = make_translation("a", "b")
    alignment_heatmap(translation).draw_without_rendering()
    attention_grid(translation).draw_without_rendering()


def test_matplotlib_is_asked_for_only_when_drawing(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("hf_attn.visualization")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    visualization = importlib.import_module("hf_attn.visualization")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'hf_attn\[viz\]'"):
        visualization.alignment_heatmap  # noqa: B018
