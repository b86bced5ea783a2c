"""The page in a real browser: pointing, keyboard, menus, narrow and dark screens, two pages in one notebook."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from hf_attn.visualization import alignment_html

pytestmark = pytest.mark.browser

LONG = (
    "the old teacher who had read the book wrote a letter to Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik "
)


READ = """words => words.map(word => ({
  weight: Number(word.style.getPropertyValue("--weight")),
  number: word.querySelector(".number").textContent,
  background: getComputedStyle(word).backgroundColor,
  active: word.classList.contains("active"),
  focused: document.activeElement === word,
}))"""


def state(page, side):
    return page.locator(f"#{side} .word").evaluate_all(READ)


def shown_weights(page, side):
    return torch.tensor([word["weight"] for word in state(page, side)])


def close(weights, expected):
    torch.testing.assert_close(weights, expected.float(), atol=1e-4, rtol=0)


def test_pointing_at_a_word_lights_its_partners(make_translation, open_page):
    translation = make_translation("the cat sleeps now.", "il gatto dorme.")
    weights = translation.alignment().weights
    page = open_page(alignment_html(translation).document)
    idle_lines = page.locator("#links path").count()
    assert idle_lines == int((weights >= 0.2).sum())

    page.locator("#target .word").nth(1).hover()
    partners = state(page, "source")
    close(shown_weights(page, "source"), weights[1])
    for partner, weight in zip(partners, weights[1].tolist(), strict=True):
        assert partner["number"] == (f"{weight:.2f}" if weight >= 0.005 else "")
        # a mixture of white paper and the glow, which has no blue
        channels = [float(channel) for channel in re.findall(r"[\d.]+", partner["background"].removeprefix("color"))]
        assert channels[:3] == pytest.approx([1, 1 - weight * (1 - 179 / 255), 1 - weight], abs=0.01)
    assert [word["active"] for word in state(page, "target")] == [False, True, False, False, False]
    assert page.locator("#links path").count() == int((weights[1] >= 0.005).sum())
    best = translation.alignment().source_words[int(weights[1].argmax())]
    assert f"{best}\u2069 {float(weights[1].max()):.2f}" in page.locator("#status").text_content()

    page.locator("#source .word").nth(3).hover()
    close(shown_weights(page, "target"), weights[:, 3])
    assert not shown_weights(page, "source").any()
    page.mouse.move(5, 690)
    assert not shown_weights(page, "target").any()
    assert page.locator("#links path").count() == idle_lines


def test_links_of_wrapped_words_are_drawn_for_the_word_that_is_pointed_at(make_translation, open_page):
    """At rest they would cross behind the words of the other lines."""
    translation = make_translation("the cat sleeps on the chair " * 6, "il gatto dorme", layers=1, heads=1)
    page = open_page(alignment_html(translation).document)
    tops = page.locator("#source .word").evaluate_all("all => all.map(word => word.getBoundingClientRect().top)")
    assert len(set(tops)) > 1
    assert page.locator("#links path").count() == 0
    page.locator("#target .word").nth(1).hover()
    assert page.locator("#links path").count() == int((translation.alignment().weights[1] >= 0.005).sum()) > 0


def test_lines_join_the_words(make_translation, open_page):
    page = open_page(alignment_html(make_translation("the cat", "il gatto", layers=1, heads=1)).document)
    page.locator("#target .word").nth(0).hover()
    line = page.locator("#links path").nth(0)
    assert line.evaluate("path => path instanceof SVGPathElement && path.getTotalLength() > 50")
    start = line.evaluate("path => { const p = path.getPointAtLength(0); return [p.x, p.y]; }")
    end = line.evaluate("path => { const p = path.getPointAtLength(path.getTotalLength()); return [p.x, p.y]; }")
    stage, source, target = (
        page.locator(name).first.bounding_box() for name in ("#stage", "#source .word", "#target .word")
    )
    middle = {"source": source["x"] + source["width"] / 2, "target": target["x"] + target["width"] / 2}
    assert start == pytest.approx([middle["source"] - stage["x"], source["y"] + source["height"] - stage["y"]], abs=1)
    assert end == pytest.approx([middle["target"] - stage["x"], target["y"] - stage["y"]], abs=1)


def test_keyboard_alone(make_translation, open_page):
    translation = make_translation("the cat sleeps", "il gatto dorme", layers=1, heads=1)
    weights = translation.alignment().weights
    page = open_page(alignment_html(translation).document)

    def focused(side):
        return [number for number, word in enumerate(state(page, side)) if word["focused"]]

    page.keyboard.press("Tab")  # the menu of methods
    page.keyboard.press("Tab")
    assert focused("source") == [0]
    close(shown_weights(page, "target"), weights[:, 0])
    for key, position in (("ArrowRight", 1), ("End", 3), ("ArrowRight", 3), ("ArrowLeft", 2), ("Home", 0)):
        page.keyboard.press(key)
        assert focused("source") == [position]
        close(shown_weights(page, "target"), weights[:, position])
    page.keyboard.press("ArrowDown")
    strongest = int(weights[:, 0].argmax())
    assert focused("target") == [strongest]
    close(shown_weights(page, "source"), weights[strongest])
    page.keyboard.press("ArrowUp")
    assert focused("source") == [int(weights[strongest].argmax())]
    page.keyboard.press("Tab")
    assert focused("target") == [strongest]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "Heatmap"
    assert not shown_weights(page, "source").any()


def test_arrow_keys_follow_the_writing(make_translation, open_page):
    page = open_page(alignment_html(make_translation("هذا كتاب جديد", "a new book", layers=1, heads=1)).document)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    before = page.locator("#source .word:focus").bounding_box()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#source .word:focus").bounding_box()["x"] < before["x"]


def test_menus_change_everything(make_translation, open_page):
    translation = make_translation("the cat", "il gatto", layers=3, heads=2)
    page = open_page(alignment_html(translation).document)
    page.get_by_label("Method").select_option("weights one step later")
    page.get_by_label("Layer").select_option("2")
    page.get_by_label("Heads").select_option("head 1 of 2")
    expected = translation.alignment(layer=1, heads=0, method="shifted")
    for caption in page.locator(".describes").all():
        assert caption.text_content() == expected.description
    cells = page.locator("#table td").all_text_contents()
    assert cells == [f"{weight:.2f}" for weight in expected.weights.round(decimals=4).flatten().tolist()]
    page.locator("#target .word").nth(2).click()
    close(shown_weights(page, "source"), expected.weights[2])
    names = page.locator("#source .word, #target .word").evaluate_all("all => all.map(word => word.ariaLabel)")
    for name, word in zip(names, [*expected.source_words, *expected.target_words], strict=True):
        assert name.startswith(f"{word}: ")
    page.locator("#heads").focus()
    page.get_by_label("Layer").select_option("3")
    assert page.locator("#table td").first.text_content() != cells[0]


def heatmap(page):
    """Weights and marked cells of the heatmap as it is drawn: a list of rows."""
    read = "all => all.map(cell => ['x', 'y', 'fill-opacity'].map(name => Number(cell.getAttribute(name))))"
    cells = page.locator("#heatmap .cell").evaluate_all(read)
    rows = sorted({y for _, y, _ in cells})
    return torch.tensor([[weight for x, y, weight in sorted(cells) if y == row] for row in rows])


def test_the_heatmap_beside_the_words(make_translation, open_page):
    translation = make_translation("the cat sleeps now.", "il gatto dorme.")
    page = open_page(alignment_html(translation).document, width=1200)
    close(heatmap(page), translation.alignment().weights)
    words = translation.words()
    shown = page.locator("#heatmap text").all_text_contents()
    assert shown == [*words.source_words, *words.target_words]
    stage, heat = page.locator("#stage").bounding_box(), page.locator("#heatmap").bounding_box()
    assert heat["x"] >= stage["x"] + stage["width"], "the heatmap stands beside the words"
    page.get_by_label("Heads").select_option("head 2 of 3")
    close(heatmap(page), translation.alignment(heads=1).weights)

    marker = page.locator("#heatmap .marker")
    assert not marker.is_visible()
    page.locator("#heatmap .cell").nth(6 * 2 + 1).hover()  # target word 2, source word 1
    assert [word["active"] for word in state(page, "target")] == [False, False, True, False, False]
    close(shown_weights(page, "source"), translation.alignment(heads=1).weights[2])
    row = page.locator("#heatmap .cell").nth(6 * 2).bounding_box()
    assert marker.bounding_box()["y"] == pytest.approx(row["y"], abs=2)
    page.locator("#source .word").nth(3).focus()
    column = page.locator("#heatmap .cell").nth(3).bounding_box()
    assert marker.bounding_box()["x"] == pytest.approx(column["x"], abs=2)
    page.locator("#source .word").nth(3).blur()
    assert not marker.is_visible()


def saved(page, kind):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=kind, exact=True).click()
    assert waiting.value.suggested_filename == f"attention-alignment.{kind.lower()}"
    return Path(waiting.value.path()).read_bytes()


@pytest.mark.parametrize("dark", [False, True])
def test_saving_what_is_shown(make_translation, open_page, dark):
    translation = make_translation("학생이 <b> 책을", "the student $x$ reads & a book")
    page = open_page(alignment_html(translation).document, dark=dark)
    page.get_by_label("Layer").select_option("1")
    page.get_by_label("Heads").select_option("head 3 of 3")
    page.locator("#target .word").nth(1).click()  # what is lit does not come along
    expected = translation.alignment(layer=0, heads=2)

    content = json.loads(saved(page, "JSON"))
    assert content["source_words"] == expected.source_words and content["target_words"] == expected.target_words
    assert content["description"] == expected.description
    close(torch.tensor(content["weights"]), expected.weights)

    drawing = ElementTree.fromstring(saved(page, "SVG"))
    name = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in drawing.iter(f"{name}text")]
    assert texts == [*expected.source_words, *expected.target_words, expected.description]
    cells = [float(cell.get("fill-opacity")) for cell in drawing.iter(f"{name}rect") if cell.get("class") == "cell"]
    close(torch.tensor(cells).view_as(expected.weights), expected.weights)

    picture = Image.open(io.BytesIO(saved(page, "PNG")))
    width, height = (float(drawing.get(side)) for side in ("width", "height"))
    assert picture.size == (int(2 * width), int(2 * height))
    assert picture.getpixel((2, 2))[:3] == (255, 255, 255), "white paper, whatever the screen"
    rows, columns = expected.weights.shape
    corner = next(cell for cell in drawing.iter(f"{name}rect") if cell.get("class") == "cell")
    for row in range(rows):
        for column in range(columns):
            x, y = float(corner.get("x")) + 26 * (column + 0.5), float(corner.get("y")) + 26 * (row + 0.5)
            blue = 255 - float(expected.weights[row, column]) * (255 - 9)  # fill #b45309 on white
            assert picture.getpixel((int(2 * x), int(2 * y)))[2] == pytest.approx(blue, abs=2)

    again = open_page(saved(page, "HTML").decode("utf-8"))
    assert [word["active"] for word in state(again, "target")] == [False] * len(expected.target_words)
    again.locator("#target .word").nth(1).hover()
    close(shown_weights(again, "source"), translation.alignment().weights[1])
    close(heatmap(again), translation.alignment().weights)


@pytest.mark.parametrize(("inside", "outside"), [("dark", "light"), ("light", "dark")])
def test_a_page_in_a_frame_is_as_dark_as_what_surrounds_it(make_translation, open_page, inside, outside):
    """Gradio and Jupyter choose light or dark by themselves, whatever the system prefers."""
    frame = alignment_html(make_translation("the cat", "il gatto"))._repr_html_()
    document = f'<!DOCTYPE html><body style="color-scheme: {inside}">{frame}</body>'
    page = open_page(document, dark=outside == "dark").frames[1]
    paper, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 384) == (inside == "dark")
    assert paper == "rgba(0, 0, 0, 0)", "what surrounds it shines through"


def test_a_script_from_elsewhere_does_not_run(make_translation, browser, tmp_path):
    """Were a text ever written without being escaped, the browser itself would refuse it."""
    attack = "<script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'><svg onload='window.hurt = 1'></svg>"
    document = alignment_html(make_translation("the cat", "il gatto")).document.replace("<main>", f"<main>{attack}")
    (tmp_path / "page.html").write_text(document, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.locator("#target .word").nth(0).hover()
    assert shown_weights(page, "source").any(), "its own script runs"
    assert page.evaluate("window.hurt") is None
    page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens(make_translation, open_page, dark):
    page = open_page(alignment_html(make_translation(LONG * 2, LONG * 2)).document, width=320, dark=dark)
    page.locator("#target .word").nth(20).hover()
    page.locator("summary").click()
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    for word in page.locator(".word").evaluate_all("all => all.map(word => word.getBoundingClientRect().toJSON())"):
        assert 0 <= word["left"] and word["right"] <= 320
    paper, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    light = [sum(map(int, colour[4:-1].split(","))) > 384 for colour in (paper, ink)]
    assert light == [not dark, dark]


def test_markup_in_a_sentence_stays_text(make_translation, open_page):
    attack = '<img src=x onerror=alert(1)> </script><script>alert(2)</script> "><b> <!-- \u2028'
    translation = make_translation(attack, "ciao")
    pieces = len(translation.source_tokens)
    translation.source_tokens = [attack, "<svg/onload=alert(3)>"] * (pieces // 2) + ["</s>"] * (pieces % 2)
    page = open_page(alignment_html(translation, words=False).document)
    for word in page.locator("#source .word").all()[:2]:
        word.hover()
    assert page.locator("#source .text").all_text_contents() == translation.source_tokens
    assert page.locator("img, b, iframe").count() == 0
    assert page.locator("script").count() == 2
    assert page.locator("#heatmap *").evaluate_all("all => all.map(each => each.tagName)").count("b") == 0


def test_two_pages_in_one_notebook(make_translation, open_page):
    first, second = make_translation("the cat sleeps", "il gatto dorme"), make_translation("a dog", "un cane")
    cells = "".join(f"<div>{alignment_html(translation)._repr_html_()}</div>" for translation in (first, second))
    page = open_page(f"<!DOCTYPE html><body>{cells}</body>")
    frames = page.frames[1:]
    assert len(frames) == 2
    frames[0].locator("#target .word").nth(0).hover()
    close(shown_weights(frames[0], "source"), first.alignment().weights[0])
    assert not shown_weights(frames[1], "source").any()
    frames[1].locator("#target .word").nth(1).hover()
    close(shown_weights(frames[1], "source"), second.alignment().weights[1])
    for frame, element in zip(frames, page.locator("iframe").all(), strict=True):
        assert element.bounding_box()["height"] == pytest.approx(frame.evaluate("document.body.offsetHeight"), abs=1)
        assert frame.evaluate("document.scrollingElement.scrollHeight <= innerHeight")
        height = element.bounding_box()["height"]  # the Space writes frames that it keeps as they were at first
        element.evaluate("frame => frame.setAttribute('style', 'width: 100%; height: 120px; border: 0')")
        assert element.bounding_box()["height"] == height > 130
