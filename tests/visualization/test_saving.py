# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the buttons of a page save: the page itself, its numbers, and pictures that look as the browser shows it."""

import io
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image, ImageFilter

from hf_attn.inference import Translation
from hf_attn.inference.what_if import Candidate, WhatIf
from hf_attn.visualization import (
    Entry,
    alignment_html,
    beams_html,
    history_html,
    metrics_html,
    next_pieces_html,
    what_if_html,
)
from hf_attn.visualization.page import embed, make_page

HOSTILE = ["</script><b>", "소녀는", "<!--", "a & b", "\u2028", "القطة", "\ud800", "]]>"]


def written(tokens, probability=0.5):
    """A translation of these pieces, each of this probability."""
    log_probs = [math.log(probability)] * len(tokens)
    text = " ".join(tokens)
    return Translation(
        "a <b> b", text, ["a", "b"], list(tokens), log_probs, log_probs[0], target_ids=[*map(hash, tokens)]
    )


FIRST, SECOND, THIRD = (
    written(["le", "chat", "dort"]),
    written(["le", "chien"], 0.25),
    written(["소녀는", "a<i>", "."], 0.9),
)
CANDIDATES = [[Candidate(7, "un", 0.3), Candidate(hash(token), token, 0.5)] for token in FIRST.target_tokens]
PAGES = {
    "beams": beams_html([FIRST, SECOND, THIRD]),
    "next pieces": next_pieces_html(FIRST, CANDIDATES),
    "what if": what_if_html(WhatIf(FIRST, FIRST, SECOND), "without “b”"),
    "history": history_html([Entry("no attention", FIRST, 0.1), Entry("another", SECOND, 0.2)]),
    "metrics": metrics_html(["le", "chat"], [["le", "chien"], ["chat", "<b>"]]),
}


def test_every_page_has_a_button_for_each_kind_of_file_and_no_other():
    for name, kinds in (("beams", "png svg html json"), ("history", "html"), ("metrics", "html")):
        document = PAGES[name].document
        assert [
            kind for kind in ("png", "svg", "html", "json", "pdf") if f'id="save-{kind}"' in document
        ] == kinds.split()


@pytest.mark.parametrize("text", HOSTILE)
def test_numbers_hold_any_text_and_end_no_script(text):
    content = {text: [text, 1.5, None]}
    embedded = embed(content)
    assert json.loads(embedded) == content and embedded.isascii() and not set("<>&") & set(embedded)
    document = make_page("x", "<p></p>", style="", height=1, numbers=content).document
    assert document.count("</script>") == 2 and f'id="numbers">{embedded}</script>' in document


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_null_in_what_is_saved_and_are_no_weights(number):
    document = make_page("x", "<p></p>", style="", height=1, numbers={"a": [(1.5, number)]}).document
    assert 'id="numbers">{"a":[[1.5,null]]}</script>' in document
    with pytest.raises(ValueError, match="not all finite"):
        embed([number])


def saved(page, kind):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=kind, exact=True).click()
    return waiting.value.suggested_filename, Path(waiting.value.path()).read_bytes()


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_the_saved_page_is_the_page(open_page, name):
    """From a dark frame of another page, as in a notebook; what is saved opens by itself and is saved alike again."""
    around = f'<html style="color-scheme: dark"><body>{PAGES[name]._repr_html_()}</body></html>'
    frame = open_page(around, dark=True).frames[1]
    with frame.page.expect_download() as waiting:
        frame.get_by_role("button", name="HTML", exact=True).click()
    document = Path(waiting.value.path()).read_text(encoding="utf-8")
    alone, again = open_page(PAGES[name].document), open_page(document)
    assert alone.inner_text("body") == again.inner_text("body") != ""
    assert saved(alone, "HTML")[1].decode() == document == saved(again, "HTML")[1].decode()
    assert again.evaluate("document.body.style.background") == "" and "http://" not in document.replace(SVG_NAMES, "")


SVG_NAMES = "http://www.w3.org/2000/svg"


@pytest.mark.browser
def test_the_saved_numbers_are_those_of_the_translation(open_page):
    file, content = saved(open_page(PAGES["beams"].document), "JSON")
    assert json.loads(content) == {"beams": [one.to_dict() for one in (FIRST, SECOND, THIRD)]}
    assert file == "3-beams-of-a-b-b.json"
    content = json.loads(saved(open_page(PAGES["next pieces"].document), "JSON")[1])
    found = [[(one["id"], one["token"], one["probability"]) for one in step] for step in content.pop("candidates")]
    assert found == [[(one.id, one.token, one.probability) for one in step] for step in CANDIDATES]
    assert content == FIRST.to_dict()
    content = json.loads(saved(open_page(PAGES["what if"].document), "JSON")[1])
    parts = {"before": FIRST.to_dict(), "rescored": FIRST.to_dict(), "after": SECOND.to_dict()}
    assert content == {"condition": "without “b”", **parts}


@pytest.mark.browser
@pytest.mark.parametrize(("name", "dark"), [("beams", True), ("next pieces", False), ("what if", True)])
def test_the_saved_pictures_look_as_the_light_page_does(open_page, name, dark):
    page = open_page(PAGES[name].document, dark=dark)
    svg, png = (saved(page, kind)[1] for kind in ("SVG", "PNG"))
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light dark"
    light = open_page(PAGES[name].document)
    light.evaluate("document.querySelectorAll('.saves, .unseen').forEach(one => { one.style.display = 'none'; })")
    texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{{{SVG_NAMES}}}text")]
    assert "".join("".join(texts).split()) == "".join(light.inner_text("main").split())
    shown = Image.open(io.BytesIO(light.locator("main").screenshot())).convert("L")
    drawing = Image.open(io.BytesIO(png)).convert("L")
    drawing = drawing.resize((drawing.width // 2, drawing.height // 2))
    box = (12, 12, drawing.width - 12, min(drawing.height - 12, shown.height + 12))
    pair = [drawing.crop(box), shown.crop((0, 0, box[2] - 12, box[3] - 12))]
    ours, theirs = (np.asarray(one.filter(ImageFilter.GaussianBlur(3)), dtype=float) for one in pair)
    assert ours.shape == theirs.shape and ours.shape[0] >= 60 and theirs.std() > 5
    assert np.abs(ours - theirs).mean() < 0.1 * theirs.std()


@pytest.mark.browser
def test_a_page_with_pictures_of_its_own_saves_those(make_translation, open_page):
    page = open_page(alignment_html(make_translation("the cat", "le chat")).document)
    file, content = saved(page, "SVG")
    assert file == "attention-alignment.svg" and b'class="cell"' in content
    file, content = saved(page, "HTML")
    assert file == "attention-alignment.html" and content.startswith(b"<!DOCTYPE html>\n<html")
