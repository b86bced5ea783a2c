# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that sends one sentence through all architectures, in a real browser."""

import re
from collections import Counter

import pytest
import torch
from space.driving import (
    SENTENCE,
    between_words,
    choose,
    close,
    fits,
    forward,
    framed,
    is_dark,
    log_probs,
    open_tab,
    redrawn,
    slide,
)

from hf_attn import Translator

pytestmark = pytest.mark.browser

NAMES = ["No attention (2014)", "Bahdanau (2015)", "Luong (2015)", "ConvS2S (2017)", "Transformer (2017)"]
FOLDERS = ["en-fr-none", "en-fr-bahdanau", "en-fr-luong", "en-fr-convs2s", "en-fr-transformer"]
KNOWN = "The old teacher reads a long letter in the garden."
LONGER = [
    KNOWN,
    "The old teacher reads a long letter in the garden and the girl sleeps in the house.",
    "The old teacher reads a long letter in the garden and the girl sleeps in the house but the boy does not want to "
    "eat.",
]
REFERENCES = [
    "Le vieux professeur lit une longue lettre dans le jardin.",
    "Le vieux professeur lit une longue lettre dans le jardin et la fille dort dans la maison.",
    "Le vieux professeur lit une longue lettre dans le jardin et la fille dort dans la maison mais le garçon ne veut "
    "pas manger.",
]


def send(page, text):
    """Type a sentence, and send it through all models."""
    page.get_by_label("Text", exact=True).and_(page.locator("textarea:visible")).fill(text)
    page.get_by_role("button", name="Translate with all").click()


def cells(section, rows, columns):
    """The weights of a small heatmap: (rows, columns), as dark as its cells are."""
    read = "cells => cells.map(cell => ['x', 'y', 'width', 'opacity'].map(name => Number(cell.getAttribute(name))))"
    left, top, *_ = section.locator(".paper").evaluate_all(read)[0]
    weights = torch.zeros(rows, columns)
    for x, y, width, opacity in section.locator(".cell").evaluate_all(read):
        weights[round((y - top) / width), round((x - left) / width)] = opacity
    return weights


def words(text):
    """The words of a text in lower case: elisions end after their apostrophe, marks stand alone."""
    return re.findall(r"[^\W_]+'?|[^\w\s]", text.lower())


def table(frame):
    """What the table of growth holds: the lengths, and the numbers by name."""
    read = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    (_, *lengths), *rows = frame.locator(".growth tr").evaluate_all(read)
    return list(map(int, lengths)), {name: list(map(float, numbers)) for name, *numbers in rows}


def test_every_translation_and_every_alignment_is_that_of_its_model(visit, server, models_folder):
    page = visit(server)
    open_tab(page, "History")
    send(page, SENTENCE)
    frame = framed(page, "#history", SENTENCE)
    sections = frame.locator("section")
    assert sections.locator("h2").all_text_contents() == NAMES and frame.locator(".growth").count() == 0
    for number, folder in enumerate(FOLDERS):
        translator, section = Translator(models_folder / folder), sections.nth(number)
        translation = translator(SENTENCE, num_beams=4)
        outputs = forward(translator, translation.source_ids, translation.target_ids)
        probability = log_probs(outputs.logits, translation.target_ids).mean().exp()
        assert section.locator(".text").text_content() == translation.text
        shown, seconds = re.search(r"piece ([\d.]+), ([\d.]+) s", section.text_content()).groups()
        assert float(shown) == pytest.approx(float(probability), abs=0.0051) and 0 <= float(seconds) < 30
        if folder == "en-fr-none":
            assert "one vector for the whole sentence" in section.text_content()
            continue
        expected = between_words(outputs.cross_attentions[-1][0].mean(0), translation)
        close(cells(section, *expected.shape), expected)
        labels = section.locator("svg text").all_text_contents()
        grouped = translation.words()
        assert labels == [*grouped.source_words, *grouped.target_words]


def test_the_slider_lengthens_the_sentence_and_the_chart_has_the_shares_of_known_words(visit, server, models_folder):
    page = visit(server)
    open_tab(page, "History")
    framed(page, "#history", KNOWN)
    slide(page, "Clauses", 2)
    frame = framed(page, "#history", LONGER[2])
    assert "share of the words of a known translation" in frame.locator(".growth").text_content()
    lengths, shown = table(frame)
    assert lengths == [len(words(line)) for line in LONGER] == [11, 18, 26] and list(shown) == NAMES
    for name, folder in zip(NAMES, FOLDERS, strict=True):
        translator, shares = Translator(models_folder / folder), []
        for line, reference in zip(LONGER, REFERENCES, strict=True):
            text = translator(line, num_beams=4, max_new_tokens=120).text
            there = Counter(words(reference)) & Counter(words(text))
            shares.append(sum(there.values()) / len(words(reference)))
        assert shown[name] == pytest.approx(shares, abs=0.0051)
    assert shown["Transformer (2017)"][0] > 0.8 > shown["Transformer (2017)"][2], "they learned the short one alone"

    box = frame.locator(".growth > svg").evaluate("svg => svg.viewBox.baseVal.height")
    zero, one = (
        frame.locator(".growth .grid").nth(number).evaluate("line => Number(line.getAttribute('y1'))")
        for number in (0, 4)
    )
    assert 0 < one < zero < box
    lines = frame.locator(".growth polyline")
    for number, name in enumerate(NAMES):
        points = [point.split(",") for point in lines.nth(number).get_attribute("points").split()]
        assert [(zero - float(y)) / (zero - one) for _, y in points] == pytest.approx(shown[name], abs=0.006)
        assert lines.nth(number).locator("title").text_content() == name
    colours = {lines.nth(number).evaluate("line => getComputedStyle(line).stroke") for number in range(5)}
    assert len(colours) == 5

    with redrawn(page, "#history"):
        slide(page, "Clauses", 0)
    framed(page, "#history", KNOWN)
    page.wait_for_function("!document.querySelector('#history iframe').contentDocument.querySelector('.growth')")


@pytest.mark.parametrize(("width", "dark"), [(320, True), (320, False), (1280, True)])
def test_without_a_known_translation_the_chart_has_probabilities(visit, server, models_folder, width, dark):
    page = visit(server, width=width, dark=dark)
    open_tab(page, "History")
    drawings = framed(page, "#history", KNOWN).locator(".scroll")
    assert drawings.count() == 4  # each is seen whole
    assert drawings.evaluate_all("all => all.every(each => each.scrollWidth <= each.clientWidth)")
    with redrawn(page, "#history"):
        choose(page, "Languages", "English → Korean")
    slide(page, "Clauses", 1)
    frame = framed(page, "#history", LONGER[1])
    assert frame.locator("h2").all_text_contents()[:2] == ["No attention (2014)", "Bahdanau (2015)"]
    assert re.search("[가-힣]", frame.locator(".text").first.text_content())
    assert "probability of a piece, over" in frame.locator(".growth").text_content()
    lengths, shown = table(frame)
    assert lengths == [11, 18]
    for name, folder in (("No attention (2014)", "en-ko-none"), ("Bahdanau (2015)", "en-ko-bahdanau")):
        translator, expected = Translator(models_folder / folder), []
        for line in LONGER[:2]:
            translation = translator(line, num_beams=4, max_new_tokens=120)
            logits = forward(translator, translation.source_ids, translation.target_ids).logits
            expected.append(float(log_probs(logits, translation.target_ids).mean().exp()))
        assert shown[name] == pytest.approx(expected, abs=0.0051)
    assert fits(page, width) and is_dark(frame) == dark
