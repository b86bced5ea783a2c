# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that computes BLEU and perplexity, in a real browser, against the lecture, sacrebleu and forward passes."""

import math
import re

import pytest
import sacrebleu
import torch
from space.driving import choose, close, fits, forward, framed, is_dark, log_probs, open_tab, variables

from hf_attn import Translator

pytestmark = pytest.mark.browser

REFERENCE = "나는 학교에 가는 것을 좋아한다 ."
FIRST = "학교에 가는 것을 좋아한다 나는 ."
SECOND = "나는 오락실에 가는 것을 싫어한다 ."


def compute(page, *typed):
    """Type reference and two translations, and press the button."""
    for box, text in zip(("#reference", "#first", "#second"), typed, strict=True):
        page.locator(f"{box} textarea, {box} input").fill(text)
    page.get_by_role("button", name="Compute").click()


def verdict(frame):
    """The numbers of the table at the top, by name: one for each translation."""
    read = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    _, *rows = frame.locator("main > .scroll").first.locator("tr").evaluate_all(read)
    return {name.split(" (")[0]: [float(number.replace(",", "")) for number in numbers] for name, *numbers in rows}


def factors(frame, number):
    """The pieces and probabilities of the product of a translation, as they are written and as they are drawn."""
    rows = frame.locator("section").nth(number).locator(".factors tr")
    read = "rows => rows.map(row => [row.cells[0].textContent, Number(row.cells[1].textContent)])"
    return rows.evaluate_all(read), variables(rows.locator(".bar"), "--share")


def by_sacrebleu(reference, hypothesis, order):
    """BLEU from 0 to 1, without smoothing, of words between spaces."""
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", max_ngram_order=order, effective_order=False)
    return metric.corpus_score([hypothesis], [[reference]])


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (320, False), (320, True)])
def test_it_opens_with_the_pair_of_the_lecture_on_which_the_two_disagree(visit, server, width, dark):
    page = visit(server, width=width, dark=dark)
    open_tab(page, "Metrics lab")
    frame = framed(page, "#metrics", "They disagree: BLEU prefers translation 1, perplexity translation 2.")
    shown = verdict(frame)
    assert shown["BLEU-2"] == [0.7746, 0.3651]
    assert shown["perplexity"] == pytest.approx([4308, 43], rel=0.02)
    other = 0.5 / 9999  # what a translator that gives half to its own word leaves to each other
    for number, hypothesis in enumerate((FIRST, SECOND)):
        right = [mine == wanted for mine, wanted in zip(hypothesis.split(), REFERENCE.split(), strict=True)]
        expected = math.prod(0.5 if one else other for one in right) ** (-1 / 6)
        assert shown["perplexity"][number] == pytest.approx(expected, rel=1e-4)
        assert right.count(True) == (1, 4)[number]
        pieces, drawn = factors(frame, number)
        assert [piece for piece, _ in pieces] == REFERENCE.split()
        close(torch.tensor([value for _, value in pieces]), [0.5 if one else other for one in right])
        close(drawn, [0.5 if one else other for one in right])
        grams = frame.locator("section").nth(number).locator("ul").first.locator("li")
        matched = [text.split()[0] in REFERENCE.split() for text in grams.all_text_contents()]
        assert matched == ["matched" in name for name in grams.evaluate_all("items => items.map(one => one.className)")]
    assert fits(page, width) and is_dark(frame) == dark


def test_what_is_typed_has_the_scores_of_sacrebleu(visit, server):
    page = visit(server)
    open_tab(page, "Metrics lab")
    framed(page, "#metrics", "They disagree")
    for reference, first, second in (
        ("the cat sat on the mat today", "the the the cat on the mat", "the cat sat on the mat"),
        (
            "우리는 빨간 책 세 권을 보지 못했습니다 .",
            "우리는 빨간 책 세 권을 못했습니다 .",
            "우리는 책을 보지 못했습니다 .",
        ),
    ):
        compute(page, reference, first, second)
        frame = framed(page, "#metrics", reference, first, second)
        shown = verdict(frame)
        for order in (2, 4):
            expected = [by_sacrebleu(reference, one, order).score / 100 for one in (first, second)]
            assert shown[f"BLEU-{order}"] == pytest.approx(expected, abs=1e-4) and expected[0] != expected[1]
        for number, hypothesis in enumerate((first, second)):
            counted, section = by_sacrebleu(reference, hypothesis, 4), frame.locator("section").nth(number)
            text = re.sub(r"\s+", " ", section.inner_text())
            assert f"brevity penalty = {counted.bp:.4f}" in text
            for order, (matches, total) in enumerate(zip(counted.counts, counted.totals, strict=True)):
                items = section.locator("ul").nth(order).locator("li")
                assert items.count() == total and items.and_(frame.locator(".matched")).count() == matches
    clipped = [text for text in frame.locator(".clipped").all_text_contents()]
    assert clipped == []
    page.locator("#first textarea, #first input").fill("  ")
    page.get_by_role("button", name="Compute").click()
    page.get_by_text("The first translation is empty").first.wait_for()


def test_the_perplexity_under_a_model_is_that_of_a_forward_pass(visit, server, models_folder):
    page = visit(server)
    open_tab(page, "Metrics lab")
    framed(page, "#metrics", "They disagree")
    source, texts = "Where is the girl?", ["Où est la fille ?", "La fille lit."]
    page.get_by_label("Source (for perplexity under a model)").fill(source)
    compute(page, texts[0], *texts)
    framed(page, "#metrics", "La fille lit .")
    for label, name in (
        ("EN → FR, Transformer (2017)", "en-fr-transformer"),
        ("EN → FR, No attention (2014)", "en-fr-none"),
    ):
        choose(page, "Perplexity under", label)
        frame = framed(page, "#metrics", label.split(", ")[1] + ",")
        translator = Translator(models_folder / name)
        for number, text in enumerate(texts):
            ids = translator.target_tokenizer(text_target=text).input_ids
            expected = log_probs(forward(translator, translator.tokenizer(source).input_ids, ids).logits, ids)
            shown, drawn = factors(frame, number)
            close(torch.tensor([value for _, value in shown]), expected.exp())
            close(drawn, expected.exp())
            assert verdict(frame)["perplexity"][number] == pytest.approx(float(expected.mean().neg().exp()), rel=1e-3)
