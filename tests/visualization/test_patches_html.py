# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The page of patches holds the weights it was given, lights what a patch looks at, by mouse and by keyboard."""

import base64
import io
import json
import math
import re

import pytest
import torch
from PIL import Image, ImageDraw

from hf_attn.visualization import patches_html

GRID, LAYERS, HEADS = (2, 3), 2, 3


def weights(special=1, layers=LAYERS, heads=HEADS, grid=GRID):
    length = special + grid[0] * grid[1]
    random = torch.Generator().manual_seed(length)
    return torch.randn(layers, heads, length, length, generator=random).mul(2).softmax(dim=-1)


def picture():
    image = Image.new("RGB", (30, 20), "white")
    ImageDraw.Draw(image).rectangle((0, 0, 9, 9), fill="red")
    return image


def embedded(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.document)[1])


def rolled(attention):
    """Abnar and Zuidema 2020, one number after another: half of a position stays, half is what the heads look at."""
    layers, heads, length, _ = attention.shape
    before = [[float(i == j) for j in range(length)] for i in range(length)]
    after_layers = []
    for layer in range(layers):
        after = [[before[i][j] / 2 for j in range(length)] for i in range(length)]
        for i in range(length):
            for k in range(length):
                share = sum(float(attention[layer, head, i, k]) for head in range(heads)) / heads
                for j in range(length):
                    after[i][j] += share / 2 * before[k][j]
        before = after
        after_layers.append(after)
    return torch.tensor(after_layers)


@pytest.mark.parametrize("special", [0, 1, 2])
def test_the_page_holds_all_weights_and_the_rollout_of_all_layers(special):
    given = weights(special)
    for attentions in (given, [layer[None] for layer in given], tuple(layer[None].half() for layer in given)):
        data = embedded(patches_html(picture(), attentions, GRID))
        assert all(isinstance(value, int) for value in data["weights"][0][0][0])
        tolerance = {"atol": 6e-5 if attentions is given else 6e-4, "rtol": 0}
        torch.testing.assert_close(torch.tensor(data["weights"]) / 1e4, given, **tolerance)
        torch.testing.assert_close(torch.tensor(data["rollout"]) / 1e4, rolled(given), **tolerance)


@pytest.mark.parametrize("special", [0, 1, 2])
def test_who_can_ask(special):
    page = patches_html(picture(), weights(special), GRID)
    names = re.findall(r'data-name="(.*?)"', page.document)
    outside = {0: ["the mean of the patches"], 1: ["the class token"], 2: ["the class token", "special position 2"]}
    patches = [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]
    assert names == outside[special] + patches
    assert page.document.count("<td></td>") == special + 6


def test_the_picture_is_in_the_page_and_nothing_is_outside():
    page = patches_html(picture(), weights(), GRID)
    address = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]*)"', page.document)[1])
    with Image.open(io.BytesIO(address)) as shown:
        assert shown.tobytes() == picture().tobytes()
    assert not re.findall(r"https?:|//[a-z]", page.document.split("<script>")[0])


def test_names_of_classes_are_escaped_and_their_bars_are_as_long_as_they_are_probable():
    classes = {"<img src=x onerror=alert(1)>": 0.25, '"고양이"': 0.625, "קלב": 0.125}
    page = patches_html(picture(), weights(), GRID, probabilities=classes).document
    assert "<img src=x" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page and "&quot;고양이&quot;" in page
    assert re.findall(r"width: ([\d.]+)%\"></span></span><span class=\"value\">([\d.]+)<", page) == [
        ("25.0", "0.25"),
        ("62.5", "0.62"),
        ("12.5", "0.12"),
    ]
    assert re.findall(r'class="best">\s*<span class="name"[^>]*>(.*?)</span>', page) == ["&quot;고양이&quot;"]
    assert 'id="classes"' not in patches_html(picture(), weights(), GRID).document


def test_menus_are_there_where_there_is_a_choice():
    def menus(**sizes):
        return re.findall(r'<select id="(\w+)"', patches_html(picture(), weights(**sizes), GRID).document)

    assert menus() == ["method", "layer", "heads"]
    assert menus(layers=1) == ["method", "heads"] and menus(heads=1) == ["method", "layer"]


@pytest.mark.parametrize(
    ("attentions", "grid", "message"),
    [
        ([torch.ones(2, 1, 7, 7)], GRID, "2 pictures"),
        (weights(), (3, 3), r"3 x 3 patches"),
        *(
            (weights(), grid, "two whole numbers")
            for grid in ((0, 3), (-2, -3), (2.0, 3.0), (2,), (2, 3, 1), None, "23")
        ),
        (weights() * math.nan, GRID, "finite"),
        (weights() * math.inf, GRID, "finite"),
        (weights()[0], GRID, "shape"),
        (weights()[:, :, :3], GRID, "shape"),
        ((None, None), GRID, "eager"),
        ((), GRID, "eager"),
    ],
)
def test_what_is_no_attention_over_the_patches_is_refused(attentions, grid, message):
    with pytest.raises(ValueError, match=message):
        patches_html(picture(), attentions, grid)


def test_what_is_no_picture_is_refused():
    with pytest.raises(TypeError, match="picture of PIL"):
        patches_html("picture.png", weights(), GRID)


def lit(page):
    """The weights by which the places are lit, the class token's first."""
    read = "places => places.map(place => Number(place.style.getPropertyValue('--weight')))"
    return torch.tensor(page.locator(".asker:not(#mean)").evaluate_all(read))


def tabled(page):
    return torch.tensor([float(text) for text in page.locator("#table td").all_text_contents()])


def close(page, expected):
    """What is lit, what is written on it and what the table says are these weights."""
    torch.testing.assert_close(lit(page), expected, atol=1e-4, rtol=0)
    torch.testing.assert_close(tabled(page), expected, atol=2e-4, rtol=0)
    numbers = page.locator(".asker:not(#mean) .number").all_text_contents()
    for number, weight in zip(numbers, expected.tolist(), strict=True):
        assert float(number) == pytest.approx(weight, abs=0.0051) if number else weight < 0.0151


@pytest.mark.browser
def test_pointing_and_clicking(open_page):
    given = weights()
    page = open_page(patches_html(picture(), given, GRID).document)
    askers, mean = page.locator(".asker"), given[-1].mean(dim=0)
    page.locator("summary").click()
    close(page, mean[0])
    for number in (3, 6):
        askers.nth(number).hover()
        close(page, mean[number])
        row, column = divmod(number - 1, 3)
        best = int(mean[number, 1:].argmax())
        said = page.locator("#status").text_content()
        assert said.startswith(f"row {row + 1}, column {column + 1} looks at ")
        assert f"row {best // 3 + 1}, column {best % 3 + 1}: {mean[number, best + 1]:.2f}" in said
        assert askers.nth(number).get_attribute("aria-label") in said
    page.locator("#status").hover()
    close(page, mean[0])
    askers.nth(4).click()
    page.locator("#status").hover()
    close(page, mean[4])
    assert page.locator(".asker[aria-pressed=true]").get_attribute("data-name") == "row 2, column 1"
    shares = page.locator("#veil .asker").evaluate_all("all => all.map(one => one.style.getPropertyValue('--share'))")
    torch.testing.assert_close(
        torch.tensor([float(share) for share in shares]), mean[4, 1:] / mean[4, 1:].max(), atol=2e-3, rtol=0
    )


@pytest.mark.browser
def test_layers_heads_and_rollout(open_page):
    given = weights()
    page = open_page(patches_html(picture(), given, GRID).document)
    page.locator("summary").click()
    page.get_by_label("Layer").select_option("1 of 2")
    close(page, given[0].mean(dim=0)[0])
    page.get_by_label("Heads").select_option("3 of 3")
    close(page, given[0, 2, 0])
    page.locator(".asker").nth(5).hover()
    close(page, given[0, 2, 5])
    assert "layer 1 of 2, head 3 of 3" in page.locator("#status").text_content()
    page.get_by_label("Method").select_option("rollout")
    page.get_by_label("Layer").select_option("2 of 2")
    assert page.get_by_label("Heads").is_disabled()
    page.locator(".asker").nth(2).click()
    close(page, rolled(given)[1, 2])
    assert "rollout up to layer 2 of 2, mean of 3 heads" in page.locator("#table caption").text_content()
    page.get_by_label("Method").select_option("weights")
    close(page, given[1, 2, 2])


@pytest.mark.browser
def test_by_keyboard(open_page):
    given = weights(special=2)
    page = open_page(patches_html(picture(), given, GRID).document)
    page.locator("summary").click()
    page.locator("select").last.focus()
    page.keyboard.press("Tab")
    mean, names = given[-1].mean(dim=0), ["the class token", "special position 2"]
    names += [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2, 3)]
    path = (
        *(("", 0), ("ArrowRight", 1), ("ArrowRight", 1), ("ArrowDown", 2), ("ArrowRight", 3), ("ArrowDown", 6)),
        *(("End", 7), ("ArrowRight", 7), ("ArrowDown", 7), ("Home", 5), ("ArrowLeft", 5), ("ArrowUp", 2)),
        *(("ArrowUp", 1), ("ArrowLeft", 0), ("ArrowUp", 0)),
    )
    for key, place in path:
        if key:
            page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.name") == names[place], (key, place)
        close(page, mean[place])
        assert page.locator("[tabindex='0'].asker").count() == 1
    ring = page.locator(".asker:focus").evaluate("one => getComputedStyle(one).outlineStyle")
    assert ring == "solid"


@pytest.mark.browser
def test_without_a_class_token_the_mean_of_the_patches_asks(open_page):
    given = weights(special=0)
    page = open_page(patches_html(picture(), given, GRID).document)
    page.locator("summary").click()
    mean = given[-1].mean(dim=0)
    close(page, mean.mean(dim=0))
    page.locator("#veil .asker").nth(0).focus()
    close(page, mean[0])
    page.keyboard.press("ArrowUp")
    close(page, mean.mean(dim=0))
    page.get_by_label("Method").select_option("rollout")
    close(page, rolled(given)[1].mean(dim=0))


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(320, True), (320, False), (1000, True)])
def test_narrow_and_wide_light_and_dark(open_page, width, dark):
    classes = {"a": 0.1, "a long name of a class of pictures " * 3: 0.7, "고양이": 0.2}
    document = patches_html(picture(), weights(grid=(8, 8)), (8, 8), probabilities=classes).document
    page = open_page(document, width=width, dark=dark)
    page.locator("summary").click()
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 384) == dark
    frame = page.locator("#picture img").bounding_box()
    for number, patch in enumerate(page.locator("#veil .asker").all()):
        box, (row, column) = patch.bounding_box(), divmod(number, 8)
        assert box["x"] == pytest.approx(frame["x"] + column * frame["width"] / 8, abs=1)
        assert box["y"] == pytest.approx(frame["y"] + row * frame["height"] / 8, abs=1)
    written = [number for number in page.locator("#veil .number").all() if number.text_content()]
    assert written and all(number.is_visible() for number in written)
    assert all(number.bounding_box()["width"] <= frame["width"] / 8 for number in written)
    lengths = [bar.bounding_box()["width"] for bar in page.locator("#classes .bar > span").all()]
    assert [length / max(lengths) for length in lengths] == pytest.approx([1 / 7, 1, 2 / 7], abs=0.02)


@pytest.mark.browser
def test_numbers_that_do_not_fit_are_left_to_the_table(open_page):
    grid = (3, 14)
    given = weights(grid=grid)
    page = open_page(patches_html(picture(), given, grid).document, width=320)
    assert not any(number.is_visible() for number in page.locator("#veil .number").all())
    page.locator("summary").click()
    torch.testing.assert_close(tabled(page), given[-1].mean(dim=0)[0], atol=2e-4, rtol=0)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
