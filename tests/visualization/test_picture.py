"""Pictures under attention weights: patches as bright as their weights, words readable, rollout by the formula."""

import base64
import io
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from hf_attn.inference import Caption
from hf_attn.visualization import attention_rollout, caption_figure, caption_html, patch_figure

GRID = (2, 3)


def softmax(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).mul(2).softmax(dim=-1)


def make_caption(words, special=1, layers=2, heads=3):
    length = special + GRID[0] * GRID[1]
    return Caption(
        image=Image.new("RGB", (30, 20), "white"),
        text=" ".join(words),
        tokens=[f"▁{word}" for word in words] + ["</s>"],
        token_log_probs=[-0.1] * (len(words) + 1),
        score=-0.1,
        truncated=False,
        cross_attentions=softmax(layers, heads, len(words) + 1, length),
        vision_attentions=softmax(layers, heads, length, length),
        grid=GRID,
    )


def shown(figure):
    return [axes for axes in figure.axes if axes.images]


def light(axes):
    """How light each patch is, read off the pixels at its middle; the picture under it is white."""
    canvas = FigureCanvasAgg(axes.figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., 0] / 255.0
    found = np.zeros(GRID)
    for row in range(GRID[0]):
        for column in range(GRID[1]):
            x, y = axes.transData.transform((10 * column + 4.5, 10 * row + 4.5))
            found[row, column] = pixels[pixels.shape[0] - 1 - int(y), int(x)]
    return found


@pytest.mark.parametrize("special", [0, 1, 2])
def test_each_word_has_a_panel_as_bright_as_its_weights(special):
    caption = make_caption(["a", "red", "circle"], special)
    figure = caption_figure(caption, layer=0, heads=[0, 2])
    picture, *panels = shown(figure)
    assert len(picture.images) == 1 and picture.get_title() == ""
    mean = (caption.cross_attentions[0, 0] + caption.cross_attentions[0, 2]) / 2
    for axes, weights, word in zip(panels, mean, ["a", "red", "circle", "</s>"], strict=True):
        patches = weights[special:].reshape(GRID).numpy()
        assert axes.get_title() == f"{word} {patches.max():.2f}"
        share = patches / patches.max()
        assert np.allclose(light(axes), 1 - 0.86 * (1 - share), atol=0.02)
    texts = [text.get_text() for text in figure.texts]
    assert texts == [
        "a red circle",
        "cross-attention, layer 1 of 2, mean of heads 1, 3 of 3",
        "numbers: the largest weight",
    ]


def test_the_last_layer_and_all_heads_are_drawn_unless_told_otherwise():
    caption = make_caption(["a"])
    assert caption_figure(caption).texts[-2].get_text() == "cross-attention, layer 2 of 2, mean of 3 heads"
    assert caption_figure(caption, heads=1).texts[-2].get_text() == "cross-attention, layer 2 of 2, head 2 of 3"
    patches = caption.cross_attentions[-1].mean(dim=0)[0, 1:].numpy()
    assert shown(caption_figure(caption))[1].get_title() == f"a {patches.max():.2f}"


@pytest.mark.parametrize("words", [1, 5, 16])
@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")  # of what other tests left
def test_nothing_overlaps_or_is_cut_off(words):
    figure = caption_figure(make_caption(["triangle"] * words))
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    titles = [axes.title for axes in shown(figure)[1:]]
    boxes = [part.get_window_extent(renderer) for part in (*titles, *figure.texts)]
    boxes += [axes.get_window_extent(renderer) for axes in shown(figure)]
    outer = figure.bbox
    for number, box in enumerate(boxes):
        assert outer.x0 <= box.x0 and box.x1 <= outer.x1 and outer.y0 <= box.y0 and box.y1 <= outer.y1
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
    assert min(title.get_fontsize() for title in titles) >= 9


def test_no_word_breaks_a_figure():
    words = ["$x_1$", "<b>", "\\frac{", "한국어", "a" * 40, "שלום"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "No installed font can draw")
        figure = caption_figure(make_caption(words))
        figure.draw_without_rendering()
    assert shown(figure)[1].get_title().startswith("$x_1$ ")
    assert len(shown(figure)[5].get_title()) < 20


def rollout_by_hand(weights):
    """Abnar and Zuidema 2020, in loops: after each layer, of each position, how much of each input it holds."""
    layers, heads, length, _ = weights.shape
    holds = [[float(i == j) for j in range(length)] for i in range(length)]
    after = []
    for layer in range(layers):
        new = []
        for i in range(length):
            row = []
            for j in range(length):
                attended = sum(
                    sum(float(weights[layer, head, i, k]) for head in range(heads)) / heads * holds[k][j]
                    for k in range(length)
                )
                row.append(0.5 * attended + 0.5 * holds[i][j])
            new.append(row)
        holds = new
        after.append(holds)
    return torch.tensor(after)


def test_rollout_is_the_papers():
    weights = softmax(3, 2, 5, 5)
    rolled = attention_rollout(weights)
    torch.testing.assert_close(rolled, rollout_by_hand(weights))
    torch.testing.assert_close(rolled.sum(dim=-1), torch.ones(3, 5))


@pytest.mark.parametrize("special", [0, 1])
@pytest.mark.parametrize("method", ["weights", "rollout"])
def test_layers_of_the_encoder_are_drawn_from_its_outputs(special, method):
    caption = make_caption(["a"], special)
    outputs = tuple(layer[None] for layer in caption.vision_attentions)  # as a model returns them
    figure = patch_figure(caption.image, outputs, GRID, method=method)
    if method == "rollout":
        steps = rollout_by_hand(caption.vision_attentions)
    else:
        steps = caption.vision_attentions.mean(dim=1)
    for number, axes in enumerate(shown(figure)[1:]):
        patches = (steps[number, 0, 1:] if special else steps[number].mean(dim=0)).reshape(GRID).numpy()
        assert axes.get_title() == f"layer {number + 1} {patches.max():.2f}"
        assert np.allclose(light(axes), 1 - 0.86 * (1 - patches / patches.max()), atol=0.02)
    said = " ".join(text.get_text() for text in figure.texts)
    assert ("rollout" in said) == (method == "rollout")
    assert ("the class token" if special else "the mean of the patches") in said


def test_clear_errors():
    caption = make_caption(["a"])
    for options in ({"layer": 5}, {"heads": [4]}):
        with pytest.raises(ValueError, match=next(iter(options))):
            caption_figure(caption, **options)
        with pytest.raises(ValueError, match=next(iter(options))):
            caption_html(caption, **options)
    with pytest.raises(ValueError, match="method='gradient'"):
        patch_figure(caption.image, caption.vision_attentions, GRID, method="gradient")
    with pytest.raises(ValueError, match="2 pictures"):
        patch_figure(caption.image, [torch.ones(2, 1, 7, 7)], GRID)
    caption.tokens = []
    with pytest.raises(ValueError, match="empty"):
        caption_figure(caption)


def test_a_page_holds_the_picture_the_words_and_the_weights():
    caption = make_caption(["a", "<img src=x onerror=alert(1)>", "red"])
    page = caption_html(caption).document
    assert "<img src=x" not in page and page.count('aria-pressed="false">') == 4 and page.count("<span></span>") == 6
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    heads = caption.cross_attentions[..., 1:]
    expected = torch.cat([heads.mean(dim=1, keepdim=True), heads], dim=1)
    torch.testing.assert_close(torch.tensor(data), expected, atol=6e-5, rtol=0)
    png = base64.b64decode(re.search(r"data:image/png;base64,([^\"]*)", page)[1])
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.size == (30, 20) and picture.getpixel((3, 3)) == (255, 255, 255)
    assert not re.findall(r"https?://", page)
    with pytest.raises(ValueError, match="empty"):
        caption_html(replace(caption, tokens=[]))


@pytest.mark.browser
def test_pointing_at_a_word_lights_what_it_looked_at(open_page):
    caption = make_caption(["a", "red"])
    page = open_page(caption_html(caption).document)
    page.locator("#words button").nth(1).hover()
    weights = caption.cross_attentions[1].mean(dim=0)[1, 1:]
    shown = [float(patch.evaluate("patch => patch.style.opacity")) for patch in page.locator("#veil span").all()]
    assert shown == pytest.approx((0.86 * (1 - weights / weights.max())).tolist(), abs=2e-3)
    page.locator("#layer").select_option(index=0)
    weights = caption.cross_attentions[0].mean(dim=0)[1, 1:]
    shown = [float(patch.evaluate("patch => patch.style.opacity")) for patch in page.locator("#veil span").all()]
    assert shown == pytest.approx((0.86 * (1 - weights / weights.max())).tolist(), abs=2e-3)
    page.locator("#heads").select_option("head 3 of 3")
    weights = caption.cross_attentions[0, 2, 1, 1:]
    shown = [float(patch.evaluate("patch => patch.style.opacity")) for patch in page.locator("#veil span").all()]
    assert shown == pytest.approx((0.86 * (1 - weights / weights.max())).tolist(), abs=2e-3)


@pytest.mark.browser
def test_the_heads_that_the_model_recommends_are_shown_first_and_the_word_that_looks_most_sharply(open_page):
    caption = replace(make_caption(["a", "red", "circle"]), alignment_layer=0, alignment_heads=[0, 2])
    page = open_page(caption_html(caption).document)
    weights = caption.cross_attentions[0, [0, 2]].mean(dim=0)[:, 1:]
    word = int(weights.max(dim=1).values.argmax())
    assert page.locator("#heads option:checked").text_content() == "mean of heads 1, 3 of 3"
    assert page.locator("#words [aria-pressed=true]").all_text_contents() == [[*"a red circle </s>".split()][word]]
    shown = [float(patch.evaluate("patch => patch.style.opacity")) for patch in page.locator("#veil span").all()]
    assert shown == pytest.approx((0.86 * (1 - weights[word] / weights[word].max())).tolist(), abs=2e-3)
    assert caption_figure(caption).texts[-2].get_text() == "cross-attention, layer 1 of 2, mean of heads 1, 3 of 3"
    assert caption_figure(caption, layer=1).texts[-2].get_text() == "cross-attention, layer 2 of 2, mean of 3 heads"
