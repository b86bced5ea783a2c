# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Links in a real browser: the address follows what is shown, and opens it again."""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from space.driving import (
    SENTENCE,
    choose,
    forced,
    framed,
    linked,
    open_tab,
    redrawn,
    results,
    selected,
    slide,
    translate,
    typed,
)

from hf_attn import Translator

pytestmark = pytest.mark.browser

OPENING = "The old teacher reads a long letter in the garden."
ATTACK = "<img src=x onerror=alert(1)> </script><script>alert(2)</script>"
SHOWN = {"steps": "#steps", "history": "#history", "what-if": "#what-if"}
DIGITS = json.loads((Path(__file__).parents[2] / "space/digits.json").read_text(encoding="utf-8"))["digits"]


def test_the_address_follows_what_is_translated_and_opens_it_again(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    translate(page, SENTENCE, 2)
    with redrawn(page, "#results"):
        page.get_by_label("Bahdanau (2015)").uncheck()
    page.wait_for_function("location.search.includes('models=en-fr-transformer')")
    expected = {"tab": "translate", "text": SENTENCE, "models": "en-fr-transformer"}
    assert linked(page) == expected
    for again in (visit(page.url), page):
        if again is page:
            visit.reload(page)
        results(again, 1, SENTENCE)
        assert typed(again) == SENTENCE and linked(again) == expected
        assert again.locator("#results h3").all_text_contents() == ["Transformer (2017)"]
        translation, _ = forced(models_folder, "en-fr-transformer", SENTENCE)
        assert again.locator("#results .translation").text_content() == translation.text


def test_the_theme_of_the_address_stays_when_the_page_is_loaded_again(visit, server):
    page = visit(f"{server}?__theme=dark")
    results(page, 2)
    translate(page, SENTENCE, 2)
    page.wait_for_function("location.search.includes('tab=translate')")
    visit.reload(page)
    results(page, 2, SENTENCE)
    assert page.evaluate("document.body.classList.contains('dark')")


@pytest.mark.parametrize(
    ("tab", "models", "title", "said"),
    [
        ("steps", "en-fr-luong", "Step by step", "How the model wrote"),
        ("history", "en-ko-bahdanau", "History", "Bahdanau (2015)"),
        ("what-if", "en-fr-bahdanau", "What if", "without attention to"),
    ],
)
def test_a_link_opens_each_tab_with_its_sentence_and_its_model(visit, server, models_folder, tab, models, title, said):
    page = visit(f"{server}?{urlencode({'tab': tab, 'text': SENTENCE, 'models': models})}")
    translation = Translator(models_folder / models)(SENTENCE, num_beams=4)
    shown = translation.target_tokens[0] if tab == "steps" else translation.text
    for _ in range(2):
        framed(page, SHOWN[tab], said, shown)
        assert selected(page) == title and typed(page) == SENTENCE
        visit.reload(page)
    # from here on the address follows
    framed(page, SHOWN[tab], said, shown)
    page.get_by_label("Text", exact=True).and_(page.locator("textarea:visible")).fill(OPENING)
    page.keyboard.press("Control+Enter")
    page.get_by_role("tabpanel").locator("button.primary:visible").click()
    page.wait_for_function("wanted => new URLSearchParams(location.search).get('text') === wanted", arg=OPENING)
    assert linked(page)["tab"] == tab and linked(page)["models"].startswith(models[:5])


@pytest.mark.parametrize(
    ("tab", "title", "box", "results", "text"),
    [
        ("fill-in", "Fill in a blank", "#blank-text", "#filled", "The girl ___ a letter."),
        ("continue", "What comes next", "#beginning", "#continued", "The old"),
    ],
)
def test_a_link_opens_the_tabs_of_other_inputs_with_their_text(visit, server, tab, title, box, results, text):
    page = visit(f"{server}?{urlencode({'tab': tab, 'text': text})}")
    framed(page, results, text.split()[-1], text.split()[1])
    assert page.locator("[role=tab][aria-selected=true]").all_text_contents() == ["Other inputs", title]
    assert page.locator(f"{box} textarea").input_value() == text
    page.locator(f"{box} textarea").fill(f"{text} ___")
    page.get_by_role("tabpanel").locator("button.primary:visible").click()
    page.wait_for_function("wanted => new URLSearchParams(location.search).get('text') === wanted", arg=f"{text} ___")
    assert linked(page) == {"tab": tab, "text": f"{text} ___"} | ({"pieces": "20"} if tab == "continue" else {})


@pytest.mark.parametrize(
    ("title", "box", "results", "text"),
    [
        ("Fill in a blank", "#blank-text", "#filled", "Moses stretched out his ___ over the sea."),
        ("What comes next", "#beginning", "#continued", "Do not be afraid"),
    ],
)
def test_an_example_of_other_inputs_is_read_at_once_and_the_address_follows(visit, server, title, box, results, text):
    page = visit(server)
    open_tab(page, "Other inputs")
    open_tab(page, title)
    with redrawn(page, results):
        page.get_by_role("button", name=text).click()
    assert page.locator(f"{box} textarea").input_value() == text
    page.wait_for_function("wanted => new URLSearchParams(location.search).get('text') === wanted", arg=text)


def test_what_a_link_cannot_ask_for_is_ignored(visit, server):
    foreign = {"tab": "nowhere", "text": ATTACK, "models": "google/flan-t5-base,../en-fr-none,<b>"}
    page = visit(f"{server}?{urlencode(foreign)}")
    results(page, 2)
    assert selected(page) == "Translate" and typed(page) == OPENING
    page = visit(f"{server}?{urlencode(foreign | {'tab': 'translate'})}")
    results(page, 2, "<img")
    assert page.locator("#results h3").all_text_contents() == ["Bahdanau (2015)", "Transformer (2017)"]
    page = visit(f"{server}?{urlencode({'tab': 'translate', 'text': 'la ' * 400, 'models': 'en-fr-none,en-ko-none'})}")
    page.get_by_text("This model has no attention to show").wait_for()
    assert page.locator("#results h3").all_text_contents() == ["No attention (2014)"] and len(typed(page)) <= 400


def follow(page, name, value):
    """Wait until the address has a value."""
    page.wait_for_function(
        "([name, value]) => new URLSearchParams(location.search).get(name) === value", arg=[name, value]
    )


def within(page, name, area):
    """Open a tab of other inputs, and wait for its picture."""
    open_tab(page, "Other inputs")
    open_tab(page, name)
    framed(page, area)


def again(visit, page):
    """Pages that open the address: that of somebody else, and this one loaded again."""
    yield visit(page.url)
    visit.reload(page)
    yield page


def test_a_link_opens_the_metrics_with_all_texts_and_the_model(visit, server):
    page = visit(server)
    open_tab(page, "Metrics lab")
    framed(page, "#metrics")
    texts = {"text": "The girl reads.", "reference": "La fille lit.", "first": "La fille lit.", "second": "Le <b> lit."}
    boxes = {"text": "Source (for perplexity under a model)", "reference": "Reference"}
    boxes |= {"first": "Translation 1", "second": "Translation 2"}
    for name, label in boxes.items():
        page.get_by_label(label, exact=True).fill(texts[name])
    with redrawn(page, "#metrics"):
        choose(page, "Perplexity under", "EN → FR, Luong (2015)")
    expected = {"tab": "metrics", "models": "en-fr-luong", **texts}
    follow(page, "models", "en-fr-luong")
    assert linked(page) == expected
    shown = framed(page, "#metrics").locator("body").inner_text()
    for opened in again(visit, page):
        frame = framed(opened, "#metrics", "Luong (2015)")
        assert selected(opened) == "Metrics lab" and linked(opened) == expected
        assert {name: opened.get_by_label(label, exact=True).input_value() for name, label in boxes.items()} == texts
        assert opened.get_by_role("combobox", name="Perplexity under").input_value() == "EN → FR, Luong (2015)"
        assert frame.locator("body").inner_text() == shown


def test_a_link_opens_a_digit(visit, server):
    page = visit(server)
    within(page, "A digit", "#digit")
    with redrawn(page, "#digit"):
        page.get_by_role("button", name=f"digit {DIGITS[7]['label']}").first.click()
    pixels = ",".join(map(str, DIGITS[7]["pixels"]))
    follow(page, "pixels", pixels)
    said = page.locator("#digit p[role=status]").text_content()
    for opened in again(visit, page):
        framed(opened, "#digit")
        assert linked(opened) == {"tab": "classify", "pixels": pixels}
        assert opened.locator("#digit p[role=status]").text_content() == said
        cells = opened.locator("#pad [role=gridcell]")
        read = cells.evaluate_all("cells => cells.map(cell => cell.ariaLabel.match(/: ([0-9]+) of 16/)[1]).join()")
        assert read == pixels


def test_a_link_opens_a_picture(visit, server):
    page = visit(server)
    within(page, "A caption", "#caption")
    with redrawn(page, "#caption"):
        page.get_by_role("button", name="Another one").click()
    page.wait_for_function("Number(new URLSearchParams(location.search).get('picture')) >= 8")
    address = linked(page)
    shown = framed(page, "#caption").locator("img").first.get_attribute("src")
    for opened in again(visit, page):
        assert framed(opened, "#caption").locator("img").first.get_attribute("src") == shown
        assert linked(opened) == address and address["tab"] == "caption"


def test_a_link_says_how_much_is_written(visit, server):
    page = visit(f"{server}?{urlencode({'tab': 'continue', 'text': 'The old', 'pieces': 3})}")
    framed(page, "#continued")
    slider = page.get_by_role("slider", name="Pieces to write")
    assert slider.input_value() == "3" and page.get_by_text("3 pieces written").count()
    with redrawn(page, "#continued"):
        slide(page, "Pieces to write", 4)
    follow(page, "pieces", "4")


@pytest.mark.parametrize(
    ("tab", "name", "values", "area"),
    [
        ("classify", "pixels", ["", "1,2", "17" + ",0" * 63, "-1" + ",0" * 63, "٣" + ",0" * 63, ATTACK], "#digit"),
        ("caption", "picture", ["", "-1", "1000000", "1e3", "1,2", ATTACK], "#caption"),
        ("continue", "pieces", ["", "0", "41", "2.5", ATTACK], "#continued"),
    ],
)
def test_numbers_that_cannot_be_are_ignored(visit, server, tab, name, values, area):
    page = visit(f"{server}?{urlencode({'tab': tab})}")
    page.wait_for_function("name => new URLSearchParams(location.search).has(name)", arg=name)
    expected = linked(page)
    for value in values:
        visit.reload(page, f"{server}?{urlencode({'tab': tab, name: value})}")
        framed(page, area)
        follow(page, name, expected[name])
        assert linked(page) == expected


def test_the_language_stays_when_the_page_is_loaded_again(visit, server):
    page = visit(server)
    results(page, 2)
    assert page.locator(".explained:visible").get_attribute("lang") == "en"
    page.get_by_label("한국어 설명", exact=True).check()
    follow(page, "explained", "ko")
    assert linked(page) == {"explained": "ko"}
    translate(page, SENTENCE, 2)
    follow(page, "text", SENTENCE)
    for opened in again(visit, page):
        results(opened, 2, SENTENCE)
        assert opened.locator(".explained:visible").get_attribute("lang") == "ko"
        assert opened.get_by_label("한국어 설명", exact=True).is_checked() and linked(opened)["explained"] == "ko"
    page.get_by_label("Explained in English", exact=True).check()
    follow(page, "explained", "en")
    visit.reload(page)
    results(page, 2, SENTENCE)
    assert page.locator(".explained:visible").get_attribute("lang") == "en"


@pytest.mark.parametrize(("locale", "language"), [("ko-KR", "ko"), ("ko", "ko"), ("kok-IN", "en"), ("fr", "en")])
def test_explanations_are_in_the_language_of_the_browser(visit, server, locale, language):
    page = visit(server, locale=locale)
    results(page, 2)
    assert page.locator(".explained:visible").get_attribute("lang") == language
    label = {"ko": "한국어 설명", "en": "Explained in English"}[language]
    assert page.get_by_label(label, exact=True).is_checked() and linked(page) == {}


def test_who_comes_back_to_a_tab_finds_it_as_it_was_left(visit, server):
    page = visit(server)
    open_tab(page, "What if")
    framed(page, "#what-if")
    group = page.get_by_role("group", name="Change", exact=True)
    group.get_by_label("Write another piece", exact=True).check()
    page.locator("#replaced input").nth(1).check()
    page.locator("#instead input").first.check()
    framed(page, "#what-if", "for “")
    follow(page, "tab", "what-if")
    address = linked(page)
    page.locator("#what-if iframe").evaluate("frame => { frame.dataset.before = ''; }")
    open_tab(page, "Metrics lab")
    page.get_by_label("Translation 1", exact=True).fill("typed, but not computed yet")
    open_tab(page, "History")
    framed(page, "#history")
    follow(page, "tab", "history")
    open_tab(page, "Metrics lab")
    assert page.get_by_label("Translation 1", exact=True).input_value() == "typed, but not computed yet"
    open_tab(page, "What if")
    follow(page, "tab", "what-if")
    assert linked(page) == address
    assert page.locator("#what-if iframe[data-before]").count() == 1
    assert page.locator("#replaced input").nth(1).is_checked() and page.locator("#instead input").first.is_checked()
    open_tab(page, "Other inputs")
    open_tab(page, "A digit")
    follow(page, "tab", "classify")
    framed(page, "#digit")
    with redrawn(page, "#digit"):
        page.get_by_role("button", name=f"digit {DIGITS[7]['label']}").first.click()
    follow(page, "pixels", ",".join(map(str, DIGITS[7]["pixels"])))
    address = linked(page)
    open_tab(page, "Metrics lab")
    follow(page, "tab", "metrics")
    asked = []
    page.on("request", lambda request: asked.append(request.post_data_json) if "queue/join" in request.url else None)
    open_tab(page, "Other inputs")
    follow(page, "tab", "classify")
    assert linked(page) == address
    open_tab(page, "What comes next")  # whatever was asked for before this has been asked for when this is there
    framed(page, "#continued")
    assert not [one for one in asked if DIGITS[7]["pixels"] in one["data"]]


def test_an_answer_that_comes_late_does_not_take_the_address(visit, server):
    page = visit(server)
    results(page, 2)
    open_tab(page, "History")
    framed(page, "#history")
    slide(page, "Clauses", 6)
    open_tab(page, "Metrics lab")
    framed(page, "#metrics")
    follow(page, "tab", "metrics")
    address = linked(page)
    page.wait_for_function(
        """document.querySelector("#history iframe").contentDocument?.body?.textContent.includes("As the sentence")"""
    )
    page.wait_for_timeout(300)
    assert linked(page) == address
    open_tab(page, "History")
    follow(page, "clauses", "6")
    for opened in again(visit, page):
        framed(opened, "#history", "As the sentence grows")
        assert opened.get_by_role("slider", name="Clauses").input_value() == "6" and linked(opened)["clauses"] == "6"


def test_what_is_typed_while_something_is_computed_is_not_yet_in_the_address(visit, server):
    page = visit(server)
    results(page, 2)
    page.locator("#text textarea").fill(SENTENCE)
    page.get_by_role("button", name="Translate").click()
    page.locator("#text textarea").fill("typed meanwhile")
    results(page, 2, SENTENCE)
    follow(page, "text", SENTENCE)
    open_tab(page, "Metrics lab")
    follow(page, "tab", "metrics")
    open_tab(page, "Translate")
    follow(page, "tab", "translate")
    assert linked(page)["text"] == SENTENCE


@pytest.mark.parametrize(
    "text",
    ["the girl reads a letter " * 40, "x" * 1000, "y" * 399 + " z z z", "la\n\n  la\u200b " * 300, "😀 ab " * 200],
    ids=["words", "one word", "at the limit", "blanks", "pairs of surrogates"],
)
def test_a_long_text_opens_as_the_same_sentence(visit, server, service, text):
    page = visit(server)
    results(page, 2)
    page.locator("#text textarea").fill(text)
    page.get_by_role("button", name="Translate").click()
    page.wait_for_function(
        "start => new URLSearchParams(location.search).get('text')?.startsWith(start)", arg=service.clean(text)[0][:50]
    )
    for opened in again(visit, page):
        opened.wait_for_function("document.querySelectorAll('#results iframe').length === 2")
        assert typed(opened) == service.clean(text)[0]


def test_an_address_that_would_be_too_long_names_the_tab_alone(visit, server):
    page = visit(server)
    open_tab(page, "Metrics lab")
    framed(page, "#metrics")
    for label in ("Reference", "Translation 1", "Translation 2"):
        page.get_by_label(label, exact=True).fill("나는 학교에 가는 것을 좋아한다 " * 30)
    with redrawn(page, "#metrics"):
        page.get_by_role("button", name="Compute").click()
    page.wait_for_function("location.search === '?tab=metrics'")


@pytest.mark.parametrize(
    ("tab", "name", "value"), [("classify", "pixels", ",".join(["0"] * 63 + ["16"])), ("caption", "picture", "9")]
)
def test_a_link_to_a_space_without_translators(visit, app, others_folder, tmp_path, tab, name, value):
    for model in ("tiny-vit", "tiny-captioner"):
        (tmp_path / model).symlink_to(others_folder / model)
    demo = app.build(tmp_path)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    try:
        page = visit(f"{url}?{urlencode({'tab': tab, name: value})}")
        framed(page, {"classify": "#digit", "caption": "#caption"}[tab])
        follow(page, "tab", tab)
        assert linked(page) == {"tab": tab, name: value}
        if tab == "caption":
            assert "Picture 9 of" in page.locator("#caption").inner_text()
        else:
            assert page.locator("#pad [role=gridcell]").last.get_attribute("aria-label").endswith(": 16 of 16")
    finally:
        demo.close()
