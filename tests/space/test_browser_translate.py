# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space in a real browser, driven as a person would: both tabs, wide and narrow, light and dark."""

import json
import re

import pytest
import torch
from space.driving import (
    SENTENCE,
    choose,
    close,
    forced,
    forward,
    frames,
    lit,
    log_probs,
    redrawn,
    results,
    saved,
    slide,
    translate,
    variables,
)

from hf_attn import Translator

pytestmark = pytest.mark.browser

UNSURE = "Where is the old teacher?"  # of which the models have learned the words, not the sentence


def show(page, view):
    """Choose a view, and wait until it is there."""
    with redrawn(page, "#results"):
        page.get_by_role("radio", name=view, exact=True).check()
    return frames(page, "#results")


def test_weights_on_the_page_are_those_of_a_forward_pass(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    show(page, "pieces")
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
    page.get_by_text("The text is empty").first.wait_for()


def test_an_example_and_other_languages_are_translated_at_once_and_the_address_follows(visit, server):
    page = visit(server)
    results(page, 2)
    page.get_by_text("Where is the girl?").click()
    page.wait_for_function("document.querySelector('#results .translation').textContent.startsWith('Où')")
    assert page.locator("#text textarea").input_value() == "Where is the girl?"
    page.wait_for_function("location.search.includes('girl') && location.search.includes('en-fr-transformer')")
    choose(page, "Languages", "English → Korean")
    page.wait_for_function("document.querySelector('#results .translation').textContent.startsWith('소녀')")
    page.wait_for_function("location.search.includes('girl') && location.search.endsWith('models=en-ko-bahdanau')")


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


def test_next_pieces_have_the_probabilities_of_a_forward_pass(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    translate(page, SENTENCE, 2)
    for name, frame in zip(("en-fr-bahdanau", "en-fr-transformer"), show(page, "next pieces"), strict=True):
        translator = Translator(models_folder / name)
        translation = translator(SENTENCE, num_beams=4)
        logits = forward(translator, translation.source_ids, translation.target_ids).logits[0]
        steps = frame.locator(".steps ol")
        assert steps.count() == len(translation.target_tokens) > 5
        for step, distribution in enumerate(logits.softmax(-1)):
            rows = steps.nth(step).locator("li")
            likeliest = distribution.topk(5)
            shown = variables(rows, "--p") / 0.75
            close(shown[:5], likeliest.values)
            numbers = [float(text) for text in rows.locator("small").all_text_contents()]
            torch.testing.assert_close(torch.tensor(numbers), shown, atol=0.006, rtol=0)
            written = translation.target_ids[step]
            chosen = steps.nth(step).locator(".chosen")
            assert chosen.locator("bdi").text_content() == translation.target_tokens[step]
            close(variables(chosen, "--p") / 0.75, [distribution[written]])
            assert rows.count() == 5 + (written not in likeliest.indices.tolist())


def test_beams_are_those_of_the_search_with_scores_added_up_by_hand(visit, server, models_folder):
    page = visit(server)
    results(page, 2)
    page.get_by_label("Transformer (2017)").uncheck()
    translate(page, UNSURE, 1)
    show(page, "beams")
    with redrawn(page, "#results"):
        slide(page, "Beams", 3)
    (frame,) = frames(page, "#results")
    translator = Translator(models_folder / "en-fr-bahdanau")
    read = torch.tensor([translator.tokenizer(UNSURE).input_ids])
    searched = translator.model.generate(  # by transformers
        read, num_beams=3, num_return_sequences=3, max_new_tokens=120, return_dict_in_generate=True, output_scores=True
    )
    end = translator.tokenizer.eos_token_id
    outputs = [ids[1 : ids.index(end) + 1] for ids in searched.sequences.tolist()]
    assert frame.locator("tr").count() == 3 and len({tuple(ids) for ids in outputs}) == 3
    cells, heads = read_lattice(frame), frame.locator("th")
    for row in range(3):
        rank, score = (float(text.replace("−", "-")) for text in heads.nth(row).inner_text().split())
        rank = int(rank) - 1
        ids = outputs[rank]
        expected = log_probs(forward(translator, read[0].tolist(), ids).logits, ids)
        assert score == pytest.approx(float(expected.sum()) / len(ids), abs=1e-3)
        assert score == pytest.approx(float(searched.sequences_scores[rank]), abs=2e-3)
        shown, probabilities = zip(*cells[row], strict=True)
        assert "".join(shown) == "".join(translator.tokenizer.convert_ids_to_tokens(ids)).replace("Ġ", "▁")
        close(torch.tensor(probabilities), expected.exp())
    starts = [tuple(ids[:1]) for ids in outputs]
    assert frame.locator("td").count() < sum(map(len, outputs)) or len(set(starts)) == 3, "what is shared stands once"


def read_lattice(frame):
    """The pieces and probabilities of each row, with those of the cells that it shares with rows above it."""
    rows = frame.locator("tr").evaluate_all(
        """rows => rows.map(row => [...row.querySelectorAll("td")].map(cell =>
          [cell.querySelector("bdi").textContent, Number(cell.style.getPropertyValue("--p")) / 0.75, cell.rowSpan]))"""
    )
    whole, shared = [], []  # shared: [piece, probability, rows below that share it]
    for row in rows:
        cells = [cell for cell in shared if cell[2] > 1]
        line = [[piece, p, span - 1] for piece, p, span in cells] + row
        whole.append([(piece, p) for piece, p, _ in line])
        shared = line
    return whole
