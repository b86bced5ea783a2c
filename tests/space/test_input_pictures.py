# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A digit that is drawn or picked and read, a picture that is described: right numbers, by mouse, keyboard and finger,
and plain sentences for everything else."""

import base64
import html
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import torch
from gradio_client import Client
from PIL import Image
from space.driving import close, fits, is_dark, open_tab, variables
from transformers import AutoModelForImageClassification, AutoModelForImageTextToText, AutoTokenizer

from hf_attn.data.images import digits
from hf_attn.data.shapes import generate

ROOT = Path(__file__).parents[2]
SAMPLES = json.loads((ROOT / "space" / "digits.json").read_text(encoding="utf-8"))["digits"]
ATTACK = "<img src=x onerror=alert(1)>"
END, LONGEST = 2, 24
EMPTY = "The grid is empty"


@pytest.fixture(scope="module")
def pictures(app):
    """The module of the tabs."""
    return sys.modules["input_pictures"]


@pytest.fixture(scope="module")
def answers(space):
    """The endpoints."""
    return sys.modules["endpoints_pictures"].PictureEndpoints(space)


@pytest.fixture(scope="module")
def digit_tab(pictures, space):
    return pictures.DigitTab(space)


@pytest.fixture(scope="module")
def caption_tab(pictures, space):
    return pictures.CaptionTab(space)


def normalised(levels):
    """What a model sees of levels from 0 to 255, (height, width, 3): from -1 to 1."""
    return torch.from_numpy(np.array(levels)).float().div(255).sub(0.5).div(0.5).permute(2, 0, 1)[None]


@torch.no_grad()
def read(folder, pixels):
    """Probabilities, and attention (layers, heads, 17, 17), of a digit, by the model alone."""
    model = AutoModelForImageClassification.from_pretrained(
        folder / "tiny-vit", dtype=torch.float32, attn_implementation="eager"
    )
    levels = np.rint(np.array(pixels) * 255 / 16).reshape(8, 8, 1).repeat(3, axis=2)
    outputs = model(pixel_values=normalised(levels), output_attentions=True)
    return outputs.logits[0].softmax(dim=-1), torch.stack([layer[0] for layer in outputs.attentions])


@torch.no_grad()
def describe(folder, number):
    """The caption by greedy search, by the model alone, and its weights (layers, heads, pieces, 17)."""
    folder = folder / "tiny-captioner"
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    (scene,) = generate("compositional", 1, number)
    ids = [1]
    while ids[-1] != END and len(ids) <= LONGEST:
        outputs = model(
            pixel_values=normalised(scene.picture),
            decoder_input_ids=torch.tensor([ids]),
            output_attentions=True,
            use_cache=False,
        )
        ids.append(int(outputs.logits[0, -1].argmax()))
    weights = torch.stack([layer[0] for layer in outputs.cross_attentions])
    return AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True), weights


def embedded(answer):
    """The numbers in the page of an answer."""
    return json.loads(re.search(r'id="data">(.*?)</script>', html.unescape(answer))[1])


def rows(pixels):
    return [pixels[8 * row : 8 * row + 8] for row in range(8)]


def test_the_samples_are_digits_that_no_model_was_trained_on():
    test, labels = digits("test"), [sample["label"] for sample in SAMPLES]
    for sample in SAMPLES:
        digit = test[sample["row"]]
        assert digit["label"] == sample["label"]
        assert np.rint(np.array(digit["image"]) / 255 * 16).ravel().tolist() == sample["pixels"]
    assert set(labels) == set(range(10)) and max(map(labels.count, labels)) <= 2


def test_pixels_become_the_picture_that_the_model_learned_from(pictures):
    for sample, digit in ((one, digits("test")[one["row"]]["image"]) for one in SAMPLES[:3]):
        assert pictures.to_image(sample["pixels"]).tobytes() == digit.tobytes()
    assert list(pictures.to_image(list(range(17)) + [0] * 47).tobytes()[:17]) == [
        int(np.rint(value * 255 / 16)) for value in range(17)
    ]


def test_a_digit_is_read_as_by_the_model_alone(answers, digit_tab, space_folder):
    for sample in SAMPLES[:4]:
        probabilities, attentions = read(space_folder, sample["pixels"])
        found = answers.classify_digit(rows(sample["pixels"]))
        assert list(found["probabilities"].values()) == pytest.approx(probabilities.tolist(), abs=1e-5)
        best = int(probabilities.argmax())
        assert list(found["probabilities"]).index(found["digit"]) == best and found["grid"] == [4, 4]
        torch.testing.assert_close(torch.tensor(found["attentions"]), attentions, atol=1e-5, rtol=0)
        answer = digit_tab.show(sample["pixels"])
        said = f"reads <b>{found['digit']}</b>, with probability {probabilities[best]:.2f}"
        assert said in answer
        torch.testing.assert_close(torch.tensor(embedded(answer)["weights"]) / 1e4, attentions, atol=1e-4, rtol=0)
        bars = re.findall(r'class="value">([\d.]+)<', html.unescape(answer))
        assert [float(bar) for bar in bars] == pytest.approx(probabilities.tolist(), abs=0.0051)


def test_a_picture_is_described_as_by_the_model_alone(answers, caption_tab, space_folder):
    for number in (0, 1, 999_999):
        text, weights = describe(space_folder, number)
        (scene,) = generate("compositional", 1, number)
        found = answers.describe_shapes(number)
        assert (found["caption"], found["right"]) == (text, scene.caption)
        assert found["correct"] == (text == scene.caption) == (number == 0)
        torch.testing.assert_close(torch.tensor(found["cross_attentions"]), weights, atol=1e-4, rtol=0)
        assert len(found["pieces"]) == len(found["log_probs"]) == weights.shape[2] and found["grid"] == [4, 4]
        assert np.array(found["vision_attentions"]).shape == (2, 2, 17, 17)
        answer = caption_tab.show(number)
        assert ("right, to the last word" in answer) == (number == 0)
        assert (f"wrong: it is “{scene.caption}”" in answer) == (number != 0)
        shown = torch.tensor(embedded(answer))  # [layer][mean of the heads, each head][piece][patch]
        torch.testing.assert_close(shown[:, 0], weights.mean(dim=1)[:, :, 1:], atol=2e-4, rtol=0)
        torch.testing.assert_close(shown[:, 1:], weights[..., 1:], atol=2e-4, rtol=0)


def test_another_picture_is_none_of_those_that_are_offered(pictures, caption_tab):
    numbers = set()
    for _ in range(5):
        number = caption_tab.another()
        assert pictures.SHOWN <= number < pictures.MOST_PICTURES and f"Picture {number} of" in caption_tab.show(number)
        numbers.add(number)
    assert len(numbers) > 1


NO_PIXELS = (17, -1, 0.5, math.nan, math.inf, True, None, "1", ATTACK, [1], 10**400)
NO_LISTS = (None, "", ATTACK, 7, {"path": "/etc/passwd"}, [], ["1"] * 64)
NO_GRIDS = ([[1] * 8] * 7, [[1] * 8] * 9, [[1] * 7] * 8, [1] * 8, [*[[1] * 8] * 7, "1" * 8], [[[1] * 8] * 8] * 8)


def refuses(call, given):
    with pytest.raises(gr.Error, match=r"64 whole numbers|whole number from 0 to 16|8 rows of 8") as error:
        call(given)
    assert "<" not in str(error.value) and not error.value.print_exception


@pytest.mark.parametrize(
    "pixels", [*NO_LISTS, *([1] * 63 + [value] for value in NO_PIXELS), [1] * 63, [1] * 65, [1] * 64000, [[1] * 8] * 8]
)
def test_what_is_no_drawing_gets_a_sentence(digit_tab, pixels):
    refuses(digit_tab.show, pixels)


@pytest.mark.parametrize(
    "pixels", [*NO_LISTS, *NO_GRIDS, *([*[[1] * 8] * 7, [1] * 7 + [value]] for value in NO_PIXELS)]
)
def test_what_is_no_digit_of_a_program_gets_a_sentence(answers, pixels):
    refuses(answers.classify_digit, pixels)


def test_an_empty_grid_gets_a_sentence(answers, digit_tab):
    assert digit_tab.show([0] * 64).startswith(f'<p role="status">{EMPTY}')
    with pytest.raises(gr.Error, match=EMPTY):
        answers.classify_digit([[0] * 8] * 8)


@pytest.mark.parametrize("number", [-1, 1_000_000, 1.5, math.nan, True, None, "0", ATTACK, [0], 10**400])
def test_what_is_no_number_of_a_picture_gets_a_sentence(answers, caption_tab, number):
    for call in (answers.describe_shapes, caption_tab.show):
        with pytest.raises(gr.Error, match="whole number from 0 to 999999") as error:
            call(number)
        assert "<" not in str(error.value)


def test_programs_without_a_model_get_a_sentence(app):
    answers = sys.modules["endpoints_pictures"].PictureEndpoints(app.Space({}))
    for call in (lambda: answers.classify_digit([[1] * 8] * 8), lambda: answers.describe_shapes(0)):
        with pytest.raises(gr.Error, match="no model for this"):
            call()


def test_programs_ask_over_the_wire(answers, server):
    client = Client(server, verbose=False)
    pixels = rows(SAMPLES[5]["pixels"])
    assert client.predict(pixels, api_name="/classify_digit") == answers.classify_digit(pixels)
    assert client.predict(3, api_name="/describe_shapes") == answers.describe_shapes(3)
    described = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert "8 rows of 8 pixels" in described["/classify_digit"]["description"]
    assert "0 to 999,999" in described["/describe_shapes"]["description"]


WITHOUT = """
import sys
from pathlib import Path

for name in ("matplotlib", "sklearn", "datasets", "torchvision"):
    sys.modules[name] = None  # importing it fails
sys.path.insert(0, "space")
import app

space = app.Space({}, app.load_others(Path(sys.argv[1])))
app.build(Path(sys.argv[1]))
print(app.PictureEndpoints(space).classify_digit([[1] * 8] * 8)["digit"])
print(app.PictureEndpoints(space).describe_shapes(0)["correct"])
"""


@pytest.mark.slow
def test_pictures_need_only_what_the_space_requires(others_folder):
    command = [sys.executable, "-c", WITHOUT, str(others_folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\S+\nTrue\n", done.stdout), done.stdout


def inked(lines):
    """What a pen draws, dot by dot: lines are enlarged to the height of 32 dots, and a pixel counts those of its 4 x 4
    dots whose middle is within the pen."""
    pen, points = 2.7, np.array([point for line in lines for point in line], float)
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(high - low)
    scale = (32 - 2 * pen) / size if size >= 8 else 1
    parts = [np.linspace(one, other, 200) for line in lines for one, other in zip(line, line[1:] or line)]
    passed = 16 + scale * (np.concatenate(parts) - (low + high) / 2)  # where the pen was
    pixels = [0] * 64
    for y in range(32):
        for x in range(32):
            nearest = np.hypot(*(passed - (x + 0.5, y + 0.5)).T).min()
            pixels[8 * (y // 4) + x // 4] += int(nearest <= pen)
    return pixels


def pad_of(page):
    """The pixels on the grid, as they are said to be."""
    said = page.locator("#pad [role=gridcell]").evaluate_all("cells => cells.map(cell => cell.ariaLabel)")
    return [int(re.search(r": (\d+) of 16", one)[1]) for one in said]


def draw(page, lines):
    """Draw lines by the mouse, in dots from 0 to 32."""
    box = page.locator("#pad .surface").bounding_box()
    for line in lines:
        points = [(box["x"] + x * box["width"] / 32, box["y"] + y * box["height"] / 32) for x, y in line]
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point, steps=5)
        page.mouse.up()


def shown_digit(page, pixels, tolerance=0):
    """The frame of a digit, once it shows these pixels; and the pixels that it shows."""
    for _ in range(100):
        frames = page.locator("#digit iframe").element_handles()
        found = [frame.content_frame().locator("#picture img") for frame in frames]
        if found and found[0].count():
            address = found[0].get_attribute("src")
            with Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))) as picture:
                levels = np.array(picture.convert("L")).ravel()
            shown = [round(int(level) * 16 / 255) for level in levels]
            if max(abs(one - other) for one, other in zip(shown, pixels)) <= tolerance:
                return frames[0].content_frame(), shown
        page.wait_for_timeout(100)
    raise AssertionError(f"{pixels} never came, but {shown}")


def check_digit(folder, page, pixels, tolerance=0):
    """The page shows these pixels, and what the model makes of them; give the pixels."""
    frame, shown = shown_digit(page, pixels, tolerance)
    probabilities, attentions = read(folder, shown)
    names = [str(number) for number in range(10)]
    values = [float(text) for text in frame.locator("#classes .value").all_text_contents()]
    assert values == pytest.approx(probabilities.tolist(), abs=0.0051)
    assert page.locator("#digit b").text_content().endswith(names[int(probabilities.argmax())])
    askers = frame.locator(".asker")
    close(variables(askers, "--weight"), attentions[-1].mean(dim=0)[0])
    askers.nth(7).hover()
    close(variables(askers, "--weight"), attentions[-1].mean(dim=0)[7])
    frame.get_by_label("Layer").select_option("1 of 2")
    frame.get_by_label("Heads").select_option("2 of 2")
    askers.nth(12).hover()
    close(variables(askers, "--weight"), attentions[0, 1, 12])
    return shown


def open_digit(visit, server, **options):
    page = visit(server, **options)
    open_tab(page, "Other inputs")
    open_tab(page, "A digit")
    page.locator("#digit iframe").wait_for()
    return page


@pytest.mark.browser
def test_a_digit_is_picked_and_drawn_by_mouse(visit, server, space_folder):
    page = open_digit(visit, server)
    check_digit(space_folder, page, SAMPLES[0]["pixels"])
    page.locator("#pad .samples button").nth(4).click()
    assert pad_of(page) == SAMPLES[4]["pixels"]
    check_digit(space_folder, page, SAMPLES[4]["pixels"])

    bow = [(20, 8), (12, 16), (20, 24)]  # a stroke begins a new digit, and is enlarged
    draw(page, [bow])
    check_digit(space_folder, page, inked([bow]), tolerance=2)
    bar, dot = [(8, 16), (24, 16)], [(16, 28)]
    draw(page, [bar, dot])  # one after the other, without waiting: the last one counts
    check_digit(space_folder, page, inked([bow, bar, dot]), tolerance=2)
    raw = pad_of(page)
    assert raw != inked([bow, bar, dot]) and max(raw) == 16 and sum(raw[:8]) == 0, "the grid shows what was drawn"

    page.get_by_role("button", name="Clear").click()
    page.get_by_text(EMPTY).wait_for()
    assert pad_of(page) == [0] * 64 and page.locator("#digit iframe").count() == 0
    draw(page, [dot])
    check_digit(space_folder, page, inked([dot]), tolerance=2)


@pytest.mark.browser
def test_a_digit_is_drawn_by_keyboard(visit, server, space_folder):
    page = open_digit(visit, server)
    page.get_by_role("tab", name="A digit").focus()
    for _ in range(5):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.role") == "gridcell":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    expected = list(SAMPLES[0]["pixels"])

    def switch(*keys, place):
        for key in keys:
            page.keyboard.press(key)
        page.keyboard.press("Space")
        expected[place] = 0 if expected[place] else 16
        assert page.evaluate("document.activeElement.ariaLabel").startswith(
            f"row {place // 8 + 1}, column {place % 8 + 1}: {expected[place]} "
        )

    switch("ArrowUp", "ArrowLeft", place=0)
    switch("ArrowDown", "ArrowRight", "ArrowRight", place=10)
    switch("End", "ArrowRight", place=15)
    switch(place=15)
    switch(*["ArrowDown"] * 9, "Home", place=56)
    assert pad_of(page) == expected
    check_digit(space_folder, page, expected)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the button that clears
    page.get_by_text(EMPTY).wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first sample
    check_digit(space_folder, page, SAMPLES[0]["pixels"])


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_digit_is_drawn_by_finger_on_a_telephone(visit, server, space_folder, dark):
    page = open_digit(visit, server, width=320, dark=dark)
    page.get_by_role("button", name="Clear").click()
    page.get_by_text(EMPTY).wait_for()
    touch = page.context.new_cdp_session(page)
    page.locator("#pad .surface").scroll_into_view_if_needed()
    box, before = page.locator("#pad .surface").bounding_box(), page.evaluate("scrollY")
    line = [(16, 4), (14, 12), (16, 28)]
    for number, (x, y) in enumerate(line):
        at = {"x": box["x"] + x * box["width"] / 32, "y": box["y"] + y * box["height"] / 32}
        kind = "touchMove" if number else "touchStart"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    shown_digit(page, inked([line]), tolerance=3)
    assert page.evaluate("scrollY") == before, "a finger draws and does not scroll"
    check_digit(space_folder, page, inked([line]), tolerance=3)
    assert fits(page, 320)
    frame = page.locator("#digit iframe").element_handle().content_frame()
    assert is_dark(frame) == dark


@pytest.mark.browser
def test_a_picture_is_picked_and_described(visit, server, space_folder):
    page = visit(server)
    open_tab(page, "Other inputs")
    open_tab(page, "A caption")

    def described(number):
        page.get_by_text(f"Picture {number} of the generator").wait_for()
        text, weights = describe(space_folder, number)
        assert page.locator("#caption .translation").text_content() == text
        frame = page.locator("#caption iframe").element_handle().content_frame()
        frame.locator("#words button").first.wait_for()
        for layer, word in ((1, 1), (1, 3), (0, 3)):
            frame.get_by_label("Layer").select_option(f"{layer + 1} of 2")
            frame.get_by_label("Heads").select_option("head 2 of 2")
            frame.locator("#words button").nth(word).hover()
            close(variables(frame.locator("#veil span"), "--weight").float(), weights[layer, 1, word, 1:])
        return page.locator("#caption .small").text_content(), frame.locator("#picture img").get_attribute("src")

    pressed = page.locator("#pictures [aria-pressed=true]")
    said, picture = described(0)
    assert "right, to the last word" in said and pressed.locator("img").get_attribute("src") == picture
    page.locator("#pictures button").nth(2).click()
    said, picture = described(2)
    (scene,) = generate("compositional", 1, 2)
    assert f"wrong: it is “{scene.caption}”" in said and pressed.locator("img").get_attribute("src") == picture
    assert page.get_by_role("button", name=scene.caption).count() == 1
    page.get_by_role("button", name="Another one").click()
    page.get_by_text("Picture 2 of the generator").wait_for(state="detached")
    number = int(re.search(r"Picture (\d+) of", page.locator("#caption .small").text_content())[1])
    described(number)
    assert number > 7 and pressed.count() == 0
    page.locator("#pictures button").nth(1).focus()
    page.keyboard.press("Space")
    described(1)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(320, True), (320, False), (1280, True)])
def test_pictures_narrow_and_wide_light_and_dark(visit, server, width, dark):
    page = visit(server, width=width, dark=dark)
    open_tab(page, "Other inputs")
    open_tab(page, "A caption")
    page.locator("#caption iframe").wait_for()
    page.wait_for_timeout(1000)
    frame = page.locator("#caption iframe").element_handle().content_frame()
    assert fits(page, width) and is_dark(frame) == dark
    boxes = [button.bounding_box() for button in page.locator("#pictures button").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)


@pytest.mark.browser
def test_a_space_of_pictures_alone(visit, app, others_folder, tmp_path):
    for name in ("tiny-vit", "tiny-captioner"):
        (tmp_path / name).symlink_to(others_folder / name)
    demo = app.build(tmp_path)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    try:
        page = visit(url)
        page.locator("#digit iframe").wait_for()
        assert page.get_by_role("tab").all_text_contents() == ["Other inputs", "A digit", "A caption"]
        page.wait_for_timeout(500)
        assert page.get_by_text("Error").count() == 0
    finally:
        demo.close()
