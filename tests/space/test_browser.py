# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The whole page in a real browser: languages, themes, visitors who do not meet."""

import re
import time

import pytest
from space.driving import SENTENCE, fits, forced, framed, is_dark, linked, open_tab, results, selected, translate, typed

pytestmark = pytest.mark.browser

OPENING = "The old teacher reads a long letter in the garden."
ATTACK = "<img src=x onerror=alert(1)> </script><script>alert(2)</script>"


def test_the_page_opens_with_a_translation(visit, server):
    page = visit(server)
    bahdanau, transformer = results(page, 2)
    assert page.locator("#results h3").all_text_contents() == ["Bahdanau (2015)", "Transformer (2017)"]
    assert all("professeur" in text for text in page.locator("#results .translation").all_text_contents())
    assert bahdanau.locator("#source .text").all_text_contents()[:3] == ["The", "old", "teacher"]
    assert selected(page) == "Translate" and linked(page) == {}


@pytest.mark.parametrize("width", [1280, 320])
def test_explanations_in_english_and_korean_on_every_tab(visit, server, width):
    page = visit(server, width=width)
    names = [name for name in page.get_by_role("tab").all_text_contents() if name != "Other inputs"]
    assert names == ["Translate", "Step by step", "History", "What if", "Metrics lab"]
    for language, letters in (("en", "[a-z]{4}"), ("ko", "[가-힣]{2}"), ("en", "[a-z]{4}")):
        page.get_by_label({"en": "Explained in English", "ko": "한국어 설명"}[language], exact=True).check()
        for name in names:
            open_tab(page, name)
            shown = page.locator(".explained:visible")
            shown.wait_for()  # one alone
            assert re.search(letters, shown.text_content())
            assert shown.get_attribute("lang") == language
    assert fits(page, width)


def test_two_visitors_see_their_own_sentences_alone(visit, server, models_folder):
    pages = [visit(server), visit(server)]
    texts = ["The girl reads.", "Where is the girl?"]
    for page in pages:
        results(page, 2)
        open_tab(page, "Step by step")
        framed(page, "#steps", "How the model wrote")
    for page, text in zip(pages, texts, strict=True):
        page.locator("#step-text textarea").fill(text)
    for page in pages:
        page.get_by_role("button", name="Take apart").click()
    expected = [forced(models_folder, "en-fr-bahdanau", text)[0].target_tokens for text in texts]
    for page, tokens in zip(pages, expected, strict=True):
        framed(page, "#steps", f"“{tokens[0]}”")
    for page, tokens in zip(pages, expected, strict=True):
        page.locator("#piece label").nth(2).click()
        framed(page, "#steps", f"“{tokens[2]}”")
        assert [text.strip() for text in page.locator("#piece label").all_text_contents()] == tokens
    for page, mine, other in zip(pages, texts, reversed(texts), strict=True):
        everything = page.content() + "".join(frame.content() for frame in page.frames)
        assert mine in everything.replace(other, "") or mine in typed(page)
        assert other not in typed(page) and other not in page.url


def test_who_asks_again_before_the_answer_gets_the_last_answer(visit, server):
    page = visit(server)
    results(page, 2)
    for text in ("The girl reads.", "Where is the girl?", "We did not see the girl.", SENTENCE):
        page.locator("#text textarea").fill(text)
        page.get_by_role("button", name="Translate").click()
    results(page, 2, SENTENCE)


def test_markup_stays_text(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    for frame in translate(page, ATTACK, 2):
        assert "".join(frame.locator("#source .text").all_text_contents()).startswith("<imgsrc=xonerror=alert(1)>")
        for word in frame.locator("#source .word").all()[:4]:
            word.hover()
        assert frame.locator("script").count() == 2
    open_tab(page, "Step by step")
    page.locator("#step-text textarea").fill(ATTACK)
    page.get_by_role("button", name="Take apart").click()
    translation, _ = forced(models_folder, "en-fr-bahdanau", ATTACK)
    frame = framed(page, "#steps", f"“{translation.target_tokens[0]}”")
    assert frame.locator("figure[data-name=scores] th").all_text_contents() == translation.source_tokens
    assert frame.locator("script").count() == 1
    for frame in page.frames:
        assert frame.locator("img[src=x], [onerror]").count() == 0


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_frames_follow_the_theme_of_the_page(visit, server, theme):
    """Hugging Face asks for a theme by the address, whatever the system prefers."""
    page = visit(f"{server}?__theme={theme}", dark=theme == "light")
    for frame in results(page, 2):
        assert is_dark(frame) == (theme == "dark")


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
