# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space in a real browser, driven as a person would: both tabs, wide and narrow, light and dark."""

import json
import re
import time
from pathlib import Path

import pytest
import torch

from hf_attn import Translator

pytestmark = pytest.mark.browser

SENTENCE = "We did not see the three red books."
ATTACK = "<img src=x onerror=alert(1)> </script><script>alert(2)</script>"
WAIT = 60_000  # milliseconds; a loaded machine is slow


@pytest.fixture
def visit(browser):
    """A function that opens the Space; at the end nothing may have been asked for elsewhere, and nothing broken."""
    contexts, complaints = [], []

    def note(message):
        # Gradio's page of documentation asks its own server whether it has these
        if not message.location["url"].endswith(("/mcp/schema", "/monitoring/summary")):
            complaints.append(message.text)

    def visit(url, width=1280, dark=False):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: message.type in ("error", "warning") and note(message))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        local = (url.split("?")[0], "data:", "blob:", "about:")
        page.on("request", lambda request: request.url.startswith(local) or complaints.append(request.url))
        page.goto(url)
        page.get_by_role("heading", name="Attention you can see").wait_for()
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def results(page, count, text=""):
    """The frames of the translations, once there are so many and they have drawn this text."""
    page.wait_for_function(
        """([count, wanted]) => {
          const frames = [...document.querySelectorAll("#results iframe")].map(frame => frame.contentDocument);
          const words = frame => [...frame.querySelectorAll("#source .text")].map(word => word.textContent).join("");
          return frames.length === count && frames.every(frame => frame && frame.querySelector("#heatmap .cell")
            && words(frame).replaceAll("▁", "").startsWith(wanted));
        }""",
        arg=[count, re.sub(r"\s", "", text)[:20]],
    )
    return [frame.content_frame() for frame in page.locator("#results iframe").element_handles()]


def translate(page, text, count):
    """Type a text, press the button, and wait for its translations."""
    page.locator("#text textarea").fill(text)
    page.get_by_role("button", name="Translate").click()
    return results(page, count, text)


def lit(frame, side):
    """The weights by which the words of a side are lit."""
    read = "words => words.map(word => Number(word.style.getPropertyValue('--weight')))"
    return torch.tensor(frame.locator(f"#{side} .word").evaluate_all(read))


def forced(models_folder, name, text):
    """Cross-attention (layers, heads, pieces, pieces) of a teacher-forced forward pass, by the model alone."""
    translator = Translator(models_folder / name)
    translation = translator(text, num_beams=4, max_new_tokens=120)
    with torch.no_grad():
        outputs = translator.model(
            torch.tensor([translation.source_ids]),
            decoder_input_ids=torch.tensor([[1, *translation.target_ids[:-1]]]),
            output_attentions=True,
        )
    return translation, torch.stack([layer[0] for layer in outputs.cross_attentions])


def close(actual, expected):
    torch.testing.assert_close(actual, expected.float(), atol=1e-3, rtol=0)


def steps(page, piece, said=""):
    """The frame of the steps, once it shows this piece and says this."""
    page.wait_for_function(
        """([heading, said]) => {
          const frame = document.querySelector("#steps iframe")?.contentDocument;
          const shown = frame && frame.querySelector("h1") && frame.querySelector("h1").textContent;
          return shown && shown.includes(heading) && frame.body.textContent.includes(said);
        }""",
        arg=[f"“{piece}”", said],
    )
    return page.locator("#steps iframe").element_handle().content_frame()


def test_the_page_opens_with_a_translation(visit, server):
    page = visit(server)
    bahdanau, transformer = results(page, 2)
    assert page.locator("#results h3").all_text_contents() == ["Bahdanau (2015)", "Transformer (2017)"]
    assert all("professeur" in text for text in page.locator("#results .translation").all_text_contents())
    assert bahdanau.locator("#source .text").all_text_contents()[:3] == ["The", "old", "teacher"]


def test_weights_on_the_page_are_those_of_a_forward_pass(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    page.get_by_label("pieces").check()
    page.wait_for_timeout(500)
    bahdanau, transformer = translate(page, SENTENCE, 2)

    translation, weights = forced(models_folder, "en-fr-bahdanau", SENTENCE)
    assert page.locator("#results .translation").first.text_content() == translation.text
    assert bahdanau.locator("#target .text").all_text_contents() == translation.target_tokens
    for row in range(len(translation.target_tokens)):
        bahdanau.locator("#target .word").nth(row).hover()
        close(lit(bahdanau, "source"), weights[0, 0, row])
    bahdanau.locator("#source .word").nth(2).focus()
    close(lit(bahdanau, "target"), weights[0, 0, :, 2])
    number = float(bahdanau.locator("#target .number").nth(int(weights[0, 0, :, 2].argmax())).text_content())
    assert number == pytest.approx(float(weights[0, 0, :, 2].max()), abs=0.0051)

    translation, weights = forced(models_folder, "en-fr-transformer", SENTENCE)
    transformer.get_by_label("Method").select_option("weights")
    for layer, head in ((0, 1), (1, 0)):
        transformer.get_by_label("Layer").select_option(str(layer + 1))
        transformer.get_by_label("Heads").select_option(f"head {head + 1} of 2")
        for row in (0, 3):
            transformer.locator("#target .word").nth(row).hover()
            close(lit(transformer, "source"), weights[layer, head, row])
    transformer.get_by_label("Method").select_option("weights one step later")
    transformer.locator("#target .word").nth(2).hover()
    close(lit(transformer, "source"), weights[1, 0, 3])


def test_by_keyboard_from_the_text_to_the_words(visit, server):
    page = visit(server)
    results(page, 2)
    page.locator("#text textarea").focus()
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.tagName + ' ' + document.activeElement.title"))
        if seen[-1].startswith("IFRAME"):
            break
    assert seen[-1] == "IFRAME Attention alignment, en-fr-bahdanau"
    frame = page.locator("#results iframe").first.element_handle().content_frame()
    for _ in range(3):
        if frame.evaluate("document.activeElement.classList.contains('word')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert frame.locator("#source .word:focus .text").text_content() == "old"
    assert lit(frame, "target").sum() > 0.3


def test_one_to_three_models(visit, server):
    page = visit(server)
    results(page, 2)
    page.get_by_label("Luong (2015)").check()
    results(page, 3)
    boxes = [page.locator("#results section").nth(number).bounding_box() for number in range(3)]
    assert len({round(box["y"]) for box in boxes}) == 1, "side by side"
    for name in ("Luong (2015)", "Transformer (2017)", "Bahdanau (2015)"):
        page.get_by_label(name).uncheck()
        page.wait_for_timeout(300)
    page.get_by_label("No attention (2014)").check()
    page.get_by_text("This model has no attention to show").wait_for()
    results(page, 0)


def saved(page, frame, kind):
    with page.expect_download() as waiting:
        frame.get_by_role("button", name=kind, exact=True).click()
    return Path(waiting.value.path()).read_bytes()


def test_korean_and_saving(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    page.get_by_label("Languages").click()
    page.get_by_role("option", name="English → Korean").click()
    (frame,) = results(page, 1)
    page.wait_for_function("/[가-힣]/.test(document.querySelector('#results .translation').textContent)")
    (frame,) = translate(page, SENTENCE, 1)
    translation, _ = forced(models_folder, "en-ko-bahdanau", SENTENCE)
    alignment = translation.alignment()
    assert page.locator("#results .translation").text_content() == translation.text
    assert frame.locator("#target .text").all_text_contents() == alignment.target_words
    assert frame.locator("#heatmap text").all_text_contents() == [*alignment.source_words, *alignment.target_words]
    frame.locator("#target .word").nth(1).hover()
    close(lit(frame, "source"), alignment.weights[1])

    assert saved(page, frame, "PNG").startswith(b"\x89PNG")
    assert alignment.target_words[0] in saved(page, frame, "SVG").decode("utf-8")
    content = json.loads(saved(page, frame, "JSON"))
    assert content["target_words"] == alignment.target_words
    close(torch.tensor(content["weights"]), alignment.weights)
    document = saved(page, frame, "HTML").decode("utf-8")
    again = page.context.new_page()
    again.set_content(document)
    again.locator("#target .word").nth(1).hover()
    close(lit(again, "source"), alignment.weights[1])


def test_step_by_step(visit, server, models_folder):
    page = visit(server)
    page.get_by_role("tab", name="Step by step").click()
    page.locator("#step-text textarea").fill(SENTENCE)
    page.get_by_role("button", name="Take apart").click()
    translation, weights = forced(models_folder, "en-fr-bahdanau", SENTENCE)

    def shown(frame, name):
        cells = frame.locator(f"figure[data-name='{name}'] td:nth-child(2)").all_text_contents()
        return torch.tensor([float(cell.replace("−", "-")) for cell in cells])

    frame = steps(page, translation.target_tokens[0])
    pieces = page.locator("#piece label")
    assert [text.strip() for text in pieces.all_text_contents()] == translation.target_tokens
    titles = [re.sub(r"^\d", "", title) for title in frame.locator("h2").all_text_contents()]
    assert titles == ["Query, keys and values", "Scores", "Softmax", "Weighted sum", "Concatenation", "Output"]
    pieces.nth(2).click()
    frame = steps(page, translation.target_tokens[2])
    close(shown(frame, "weights"), weights[0, 0, 2])
    close(shown(frame, "scores").softmax(dim=0), weights[0, 0, 2])
    assert "hf_attn/models/attention.py" in frame.locator("pre").nth(2).text_content()
    page.keyboard.press("Tab")  # each piece is reached by the tab key and chosen by the space bar
    page.keyboard.press("Space")
    close(shown(steps(page, translation.target_tokens[3]), "weights"), weights[0, 0, 3])

    page.get_by_label("Model").click()
    page.get_by_role("option", name="EN → FR, Transformer (2017)").click()
    translation, weights = forced(models_folder, "en-fr-transformer", SENTENCE)
    page.get_by_label("Layer").wait_for()
    close(shown(steps(page, translation.target_tokens[0], "head 1 of 2"), "weights"), weights[1, 0, 0])
    page.get_by_label("Head", exact=True).click()
    page.get_by_role("option", name="2", exact=True).click()
    close(shown(steps(page, translation.target_tokens[0], "head 2 of 2"), "weights"), weights[1, 1, 0])
    page.get_by_label("to what it has read").check()
    frame = steps(page, translation.target_tokens[0], "what the decoder has read so far")
    assert frame.locator("td", has_text="−∞").count() == len(translation.target_tokens) - 1


def test_markup_stays_text(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    for frame in translate(page, ATTACK, 2):
        assert "".join(frame.locator("#source .text").all_text_contents()).startswith("<imgsrc=xonerror=alert(1)>")
        for word in frame.locator("#source .word").all()[:4]:
            word.hover()
        assert frame.locator("script").count() == 2
    page.get_by_role("tab", name="Step by step").click()
    page.locator("#step-text textarea").fill(ATTACK)
    page.get_by_role("button", name="Take apart").click()
    translation, _ = forced(models_folder, "en-fr-bahdanau", ATTACK)
    frame = steps(page, translation.target_tokens[0])
    assert frame.locator("figure[data-name=scores] th").all_text_contents() == translation.source_tokens
    assert frame.locator("script").count() == 1
    for frame in page.frames:
        assert frame.locator("img[src=x], [onerror]").count() == 0


def test_what_is_said_to_the_visitor(visit, server):
    page = visit(server)
    results(page, 2)
    translate(page, "the girl reads " * 100, 2)
    notice = page.locator("#translate-notices")
    notice.wait_for()
    assert re.search(r"Only the first \d+ of 1,500 characters", notice.text_content())
    translate(page, "There are 7318 girls.", 2)
    notice.wait_for(state="hidden")
    assert "lost number" in page.locator("#results .flags").first.text_content()
    page.locator("#text textarea").fill("  ")
    page.get_by_role("button", name="Translate").click()
    page.get_by_text("There is nothing to translate").first.wait_for()


def test_examples(visit, server):
    page = visit(server)
    results(page, 2)
    page.get_by_text("Where is the girl?").click()
    page.wait_for_function("document.querySelector('#text textarea').value === 'Where is the girl?'")
    page.get_by_role("button", name="Translate").click()
    page.wait_for_function("document.querySelector('#results .translation').textContent.startsWith('Où')")


@pytest.mark.parametrize(("width", "dark"), [(320, True), (320, False), (1280, True)])
def test_narrow_and_wide_light_and_dark(visit, server, width, dark):
    page = visit(server, width=width, dark=dark)
    frames = results(page, 2)
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
    for frame in frames:
        assert frame.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        height = frame.frame_element().bounding_box()["height"]
        assert height == pytest.approx(frame.evaluate("document.body.offsetHeight"), abs=1)
        ink = frame.evaluate("getComputedStyle(document.body).color")
        assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 384) == dark
    page.get_by_role("tab", name="Step by step").click()
    page.locator("#steps iframe").wait_for()
    page.wait_for_timeout(1000)
    steps = page.locator("#steps iframe").element_handle().content_frame()
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
    assert steps.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.locator("#steps iframe").bounding_box()["height"] > 1000


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_frames_follow_the_theme_of_the_page(visit, server, theme):
    """Hugging Face asks for a theme by the address, whatever the system prefers."""
    page = visit(f"{server}?__theme={theme}", dark=theme == "light")
    for frame in results(page, 2):
        ink = frame.evaluate("getComputedStyle(document.body).color")
        assert (sum(map(int, re.findall(r"\d+", ink)[:3])) > 384) == (theme == "dark")


def test_the_documentation_of_the_endpoints(visit, server):
    page = visit(server)
    page.get_by_role("button", name="Use via API").click()
    page.get_by_text("/attention").first.wait_for()
    assert page.get_by_text("/translate").count() and "width of the beam search" in page.content()
    assert "show_translations" not in page.locator(".api-docs").inner_text()


def test_without_models(visit, app, tmp_path):
    demo = app.build(tmp_path)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    try:
        page = visit(url)
        assert "There are no models here yet" in page.get_by_role("alert").text_content()
        assert page.get_by_role("tab").count() == 0
        time.sleep(0.5)
    finally:
        demo.close()
