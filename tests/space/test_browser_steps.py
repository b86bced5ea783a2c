# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that takes one word apart, in a real browser: every architecture, kind of attention, layer and head."""

import re

import pytest
import torch
from space.driving import (
    SENTENCE,
    WAIT,
    choose,
    close,
    fits,
    forward,
    framed,
    is_dark,
    open_tab,
    quantity,
    redrawn,
)

from hf_attn import Translator

pytestmark = pytest.mark.browser


def take_apart(page, text=SENTENCE):
    """Open the tab, and take a sentence apart."""
    open_tab(page, "Step by step")
    page.locator("#step-text textarea").fill(text)
    page.get_by_role("button", name="Take apart").click()


def steps(page, piece, said=""):
    """The frame of the steps, once it shows this piece and says this."""
    return framed(page, "#steps", f"“{piece}”", said)


def taken(page, name):
    """Choose a model; its translation, and a forward pass of it."""
    with redrawn(page, "#steps"):
        choose(page, "Model", name)


def known(models_folder, name, text=SENTENCE):
    """A model's translation, and a forward pass."""
    translator = Translator(models_folder / name)
    translation = translator(text, num_beams=4, max_new_tokens=120)
    return translation, forward(translator, translation.source_ids, translation.target_ids)


def every_head(frame):
    """The weights of all heads that stand side by side: (pieces, heads)."""
    rows = frame.locator("figure[data-name='weights of every head'] tbody tr")
    cells = rows.evaluate_all("rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))")
    return torch.tensor([[float(cell) for cell in row] for row in cells])


def likeliest(frame):
    """The probabilities of the next piece that are shown, by piece."""
    figure = frame.locator("figure[data-name='probability of the next piece']")
    names = figure.locator("th").all_text_contents()
    return dict(
        zip((name.removesuffix(" ← written") for name in names), quantity(frame, "probability of the next piece"))
    )


def test_a_recurrent_network_step_by_step(visit, server, models_folder):
    page = visit(server)
    take_apart(page)
    translation, outputs = known(models_folder, "en-fr-bahdanau")
    weights = outputs.cross_attentions[0][0, 0]
    frame = steps(page, translation.target_tokens[0])
    pieces = page.locator("#piece label")
    assert [text.strip() for text in pieces.all_text_contents()] == translation.target_tokens
    titles = [re.sub(r"^\d", "", title) for title in frame.locator("h2").all_text_contents()]
    assert titles == ["Query, keys and values", "Scores", "Softmax", "Weighted sum", "Concatenation", "Output"]
    pieces.nth(2).click()
    frame = steps(page, translation.target_tokens[2])
    close(quantity(frame, "weights"), weights[2])
    close(quantity(frame, "scores").softmax(dim=0), weights[2])
    for piece, probability in likeliest(frame).items():
        number = translation.target_tokens.index(piece) if piece in translation.target_tokens else None
        if number is not None:
            close(probability, outputs.logits[0, 2].softmax(-1)[translation.target_ids[number]])
    assert "hf_attn/models/attention.py" in frame.locator("pre").nth(2).text_content()
    page.keyboard.press("Tab")  # each piece is reached by the tab key and chosen by the space bar
    page.keyboard.press("Space")
    close(quantity(steps(page, translation.target_tokens[3]), "weights"), weights[3])
    for name, model in (("Luong (2015)", "en-fr-luong"), ("Bahdanau (2015)", "en-ko-bahdanau")):
        taken(page, f"{model[:5].upper().replace('-', ' → ')}, {name}")
        translation, outputs = known(models_folder, model)
        close(quantity(steps(page, translation.target_tokens[0]), "weights"), outputs.cross_attentions[0][0, 0, 0])
    assert re.search("[가-힣]", translation.text)
    taken(page, "EN → FR, No attention (2014)")
    assert steps(page, known(models_folder, "en-fr-none")[0].target_tokens[0]).locator("h2").count() > 1


def test_every_layer_of_convs2s_looks_at_the_source(visit, server, models_folder):
    page = visit(server)
    take_apart(page)
    translation, outputs = known(models_folder, "en-fr-convs2s")
    steps(page, known(models_folder, "en-fr-bahdanau")[0].target_tokens[0])
    taken(page, "EN → FR, ConvS2S (2017)")
    for layer in (1, 0):
        if layer == 0:
            with redrawn(page, "#steps"):
                choose(page, "Layer", "1")
        with redrawn(page, "#steps"):
            page.locator("#piece label").nth(1 + layer).click()
        frame = steps(page, translation.target_tokens[1 + layer])
        weights = outputs.cross_attentions[layer][0, 0, 1 + layer]
        close(quantity(frame, "weights"), weights)
        close(quantity(frame, "scores").softmax(dim=0), weights)
    assert page.get_by_label("Head", exact=True).and_(page.locator("input:visible")).count() == 0
    titles = [re.sub(r"^\d", "", title) for title in frame.locator("h2").all_text_contents()]
    assert titles[:2] == ["Window", "Gated convolution"] and titles[-2:] == ["Residual", "Output"]


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (320, False)])
def test_every_attention_of_a_transformer(visit, server, models_folder, width, dark):
    page = visit(server, width=width, dark=dark)
    take_apart(page)
    steps(page, known(models_folder, "en-fr-bahdanau")[0].target_tokens[0])
    taken(page, "EN → FR, Transformer (2017)")
    translation, outputs = known(models_folder, "en-fr-transformer")
    first, count = translation.target_tokens[0], len(translation.target_tokens)
    frame = steps(page, first, "head 1 of 2")
    close(quantity(frame, "weights"), outputs.cross_attentions[1][0, 0, 0])
    close(every_head(frame), outputs.cross_attentions[1][0, :, 0].T)
    assert is_dark(frame) == dark and fits(page, width)
    with redrawn(page, "#steps"):
        choose(page, "Head", "2")
    with redrawn(page, "#steps"):
        choose(page, "Layer", "1")
    close(quantity(steps(page, first, "head 2 of 2"), "weights"), outputs.cross_attentions[0][0, 1, 0])

    with redrawn(page, "#steps"):
        page.get_by_label("to what it has read").check()
    with redrawn(page, "#steps"):
        page.locator("#piece label").nth(3).click()
    frame = steps(page, translation.target_tokens[3], "what the decoder has read so far")
    weights = outputs.decoder_attentions[1][0, :, 3]
    close(every_head(frame), weights.T)
    close(quantity(frame, "weights"), weights[0])
    assert frame.locator("td", has_text="−∞").count() == count - 4 and weights[:, 4:].abs().max() == 0

    with redrawn(page, "#steps"):
        page.get_by_label("of the source to itself").check()
    pieces = page.locator("#piece label")
    assert [text.strip() for text in pieces.all_text_contents()] == translation.source_tokens
    with redrawn(page, "#steps"):
        pieces.nth(4).click()
    frame = steps(page, translation.source_tokens[4], "How the encoder read")
    close(every_head(frame), outputs.encoder_attentions[0][0, :, 4].T)
    assert not page.locator("input[aria-label='Layer']:visible").count(), "the encoder has one layer"
    assert is_dark(frame) == dark and fits(page, width)
    page.locator("#steps iframe").wait_for(timeout=WAIT)
    assert page.locator("#steps iframe").bounding_box()["height"] > 1000
