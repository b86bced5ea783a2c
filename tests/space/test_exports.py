# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What is shown in the tabs can be saved there: pictures, pages and numbers, as files of their kinds."""

import json

import pytest
from space.driving import SENTENCE, open_tab, results, saved, translate

from hf_attn import Translator

pytestmark = pytest.mark.browser


def frame_of(page, area):
    """The first frame of an area, once its page is complete."""
    page.wait_for_function(
        "area => document.querySelector(area + ' iframe')?.contentDocument?.querySelector('#save-html')", arg=area
    )
    return page.locator(f"{area} iframe").first.element_handle().content_frame()


def is_page(content):
    return (
        content.startswith(b"<!DOCTYPE html>\n<html") and b"default-src 'none'" in content and len(content) < 1_500_000
    )


def test_each_view_of_a_translation_is_saved_as_png_svg_html_and_json(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    translate(page, SENTENCE, 2)
    translation = Translator(models_folder / "en-fr-bahdanau")(SENTENCE, num_beams=4)
    for view, key in (("words", "target_words"), ("next pieces", "candidates"), ("beams", "beams")):
        page.get_by_role("radio", name=view, exact=True).check()
        title = "Attention alignment" if view == "words" else view.capitalize()
        page.locator(f"#results iframe[title='{title}, en-fr-bahdanau']").wait_for()
        frame = frame_of(page, "#results")
        assert saved(page, frame, "PNG").startswith(b"\x89PNG")
        assert saved(page, frame, "SVG").startswith(b"<svg xmlns=")
        assert is_page(saved(page, frame, "HTML"))
        numbers = json.loads(saved(page, frame, "JSON"))
        assert len(numbers[key]) == {"words": len(translation.words().target_words), "beams": 4}.get(
            view, len(translation.target_tokens)
        )


def test_every_other_tab_is_saved_as_a_page(visit, server):
    page = visit(server)
    results(page, 2)
    for tab, area in (
        ("Step by step", "#steps"),
        ("History", "#history"),
        ("What if", "#what-if"),
        ("Metrics", "#metrics"),
    ):
        open_tab(page, tab)
        frame = frame_of(page, area)
        content = saved(page, frame, "HTML")
        assert is_page(content) and frame.locator("h1").first.inner_html().encode() in content
