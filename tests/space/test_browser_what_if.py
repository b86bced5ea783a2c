# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that changes one thing, in a real browser, against masks and hooks that are set by hand."""

import re

import pytest
import torch
from space.driving import (
    choose,
    close,
    fits,
    forward,
    framed,
    is_dark,
    log_probs,
    open_tab,
    redrawn,
    variables,
)

from hf_attn import Translator

pytestmark = pytest.mark.browser

SENTENCE = "The old teacher reads a long letter in the garden."
UNSURE = "Where is the old teacher?"  # of which the models have learned the words, not the sentence


@pytest.fixture(scope="module")
def transformer(models_folder):
    """The model that the tab opens with, and what it makes of the sentence."""
    translator = Translator(models_folder / "en-fr-transformer")
    return translator, translator(UNSURE, num_beams=4)


def change(page):
    """Open the tab, and translate a sentence in it."""
    open_tab(page, "What if")
    framed(page, "#what-if", "Before")
    page.get_by_label("Text", exact=True).and_(page.locator("textarea:visible")).fill(UNSURE)
    with redrawn(page, "#what-if"):
        page.get_by_role("button", name="Translate", exact=True).click()


def choice(page, group, label):
    """A box of a group of choices."""
    return page.locator(group).locator("label").filter(has_text=re.compile(rf"^\s*{re.escape(label)}\s*$"))


def texts(frame):
    """The translation before and after."""
    return frame.locator(".after").all_text_contents()


def bars(frame):
    """The pieces, and their probabilities before and after."""
    pieces = frame.locator("th[scope=row]").all_text_contents()
    return pieces, *(variables(frame.locator(f".bar.{which}"), "--share") for which in ("old", "new"))


def written(translator, ids):
    return translator.target_tokenizer.decode(ids, skip_special_tokens=True)


def test_a_hidden_word_is_masked(visit, server, transformer):
    translator, before = transformer
    page = visit(server)
    change(page)
    boxes = page.locator("#hidden-words label")
    source = before.words()
    assert [text.strip() for text in boxes.all_text_contents()] == source.source_words
    checked = page.locator("#hidden-words input:checked")
    assert checked.count() == 1 and choice(page, "#hidden-words", "teacher").locator("input").is_checked()
    for words in (["teacher"], ["teacher", "Where"]):
        if len(words) == 2:
            with redrawn(page, "#what-if"):
                choice(page, "#hidden-words", "Where").click()
        hidden = [piece for word in words for piece in source.source_pieces[source.source_words.index(word)]]
        visible = [int(piece not in hidden) for piece in range(len(before.source_ids))]
        outputs = forward(translator, before.source_ids, before.target_ids, visible)
        for layer in outputs.cross_attentions:
            assert float(layer[..., hidden].abs().max()) == 0
        frame = framed(page, "#what-if", "without attention to", *(f"“{word}”" for word in words))
        pieces, old, new = bars(frame)
        assert pieces == before.target_tokens
        close(old, log_probs(forward(translator, before.source_ids, before.target_ids).logits, before.target_ids).exp())
        expected = log_probs(outputs.logits, before.target_ids)
        close(new, expected.exp())
        assert (new - old).abs().max() > 0.05
        assert f"{float(expected.sum()):.2f} after" in frame.locator("main").text_content()
        with torch.no_grad():
            states = translator.model.get_encoder()(torch.tensor([before.source_ids]), return_dict=True)
            found = translator.model.generate(  # by transformers
                encoder_outputs=states, attention_mask=torch.tensor([visible]), num_beams=4, max_new_tokens=120
            )
        assert texts(frame) == [before.text, written(translator, found[0])]
    for word in ("teacher", "Where"):
        choice(page, "#hidden-words", word).click()
    page.wait_for_function("document.querySelector('#what-if iframe') === null")


IN_MENU = {"decoder": "to what it has read", "encoder": "of the source to itself"}


def test_a_head_that_is_taken_away_adds_nothing(visit, server, transformer):
    translator, before = transformer
    page = visit(server)
    change(page)
    page.get_by_label("Remove heads").check()
    page.locator("#hidden-words").wait_for(state="hidden")
    page.get_by_label("to the source", exact=True).wait_for()
    model = translator.model
    for kind, layer, head, said in (
        ("cross", 1, 0, "attention to the source, layer 2, head 1"),
        ("cross", 0, 1, "attention to the source, layer 1, head 2"),
        ("decoder", 1, 1, "attention of the decoder to what it has read, layer 2, head 2"),
        ("encoder", 0, 0, "attention of the encoder, layer 1, head 1"),
    ):
        if kind != "cross":
            page.get_by_role("radio", name=IN_MENU[kind]).check()
            page.wait_for_function("!document.querySelector('#heads input:checked')")
        if layer == 0 and kind == "cross":
            choose(page, "Layer", "1")
            choice(page, "#heads", "1").click()
        choice(page, "#heads", str(head + 1)).click()
        frame = framed(page, "#what-if", f"without {said}")

        stack = model.get_encoder() if kind == "encoder" else model.get_decoder()
        block = stack.layers[layer]
        attention = block.cross_attention if kind == "cross" else block.self_attention

        def silence(module, arguments, attention=attention, head=head):
            merged = arguments[0].clone()
            merged[..., head * attention.head_dim : (head + 1) * attention.head_dim] = 0
            return (merged,)

        handle = attention.output_projection.register_forward_pre_hook(silence)
        expected = log_probs(forward(translator, before.source_ids, before.target_ids).logits, before.target_ids)
        found = model.generate(torch.tensor([before.source_ids]), num_beams=4, max_new_tokens=120)
        handle.remove()
        pieces, old, new = bars(frame)
        assert pieces == before.target_tokens
        close(old, torch.tensor(before.token_log_probs).exp())
        close(new, expected.exp())
        assert (new - old).abs().max() > 0.01
        assert texts(frame) == [before.text, written(translator, found[0])]


def test_another_piece_is_written_and_the_search_goes_on(visit, server, transformer):
    translator, before = transformer
    page = visit(server)
    change(page)
    page.get_by_label("Write another piece").check()
    page.locator("#replaced").wait_for()
    assert [text.strip() for text in page.locator("#replaced label").all_text_contents()] == before.target_tokens
    distribution = forward(translator, before.source_ids, before.target_ids).logits[0].softmax(-1)
    start = translator.model.config.decoder_start_token_id
    for position, rank in ((0, 1), (3, 0)):
        page.locator("#replaced label").nth(position).click()
        likeliest = [int(piece) for piece in distribution[position].argsort(descending=True)[:6]]
        others = [piece for piece in likeliest if piece != before.target_ids[position]]
        probabilities = distribution[position][others]
        page.wait_for_function(
            "wanted => document.querySelector('#instead label')?.textContent.includes(wanted)",
            arg=f"{float(probabilities[0]):.3f}",
        )
        options = page.locator("#instead label").all_text_contents()
        close(torch.tensor([float(option.split()[-1]) for option in options]), probabilities)
        page.locator("#instead label").nth(rank).click()
        prefix = [start, *before.target_ids[:position], others[rank]]
        found = translator.model.generate(  # by transformers
            torch.tensor([before.source_ids]),
            decoder_input_ids=torch.tensor([prefix]),
            num_beams=4,
            max_new_tokens=120 - len(prefix) + 1,
        )
        text = written(translator, found[0])
        frame = framed(page, "#what-if", text)
        assert texts(frame) == [before.text, text] and frame.locator("table").count() == 0
        assert text != before.text and frame.locator("ins").text_content() in text


def test_where_nothing_is_picked_the_translation_and_a_hint_are_shown(visit, server, transformer):
    _, before = transformer
    page = visit(server)
    change(page)
    hint = page.locator("#what-if").get_by_text("Nothing is changed yet: pick something above.")
    picks = (
        lambda: page.get_by_label("teacher", exact=True).uncheck(),
        lambda: page.get_by_label("teacher", exact=True).check(),
        lambda: page.get_by_label("Remove heads").check(),
        lambda: page.locator("#heads input").first.check(),
        lambda: page.get_by_label("Write another piece").check(),
    )
    for number, pick in enumerate(picks):
        pick()
        if number % 2:
            framed(page, "#what-if", "Before")
        else:
            hint.wait_for()
            assert page.locator("#what-if .translation").text_content() == before.text


@pytest.mark.parametrize(("width", "dark"), [(320, False), (320, True), (1280, True)])
def test_korean_narrow_and_wide_and_what_a_network_without_heads_offers(visit, server, models_folder, width, dark):
    page = visit(server, width=width, dark=dark)
    open_tab(page, "What if")
    framed(page, "#what-if", "Before")
    with redrawn(page, "#what-if"):
        choose(page, "Model", "EN → KO, Bahdanau (2015)")
    frame = framed(page, "#what-if", "without attention to “teacher”")
    translator = Translator(models_folder / "en-ko-bahdanau")
    before = translator(SENTENCE, num_beams=4)
    source = before.words()
    hidden = source.source_pieces[source.source_words.index("teacher")]
    visible = [int(piece not in hidden) for piece in range(len(before.source_ids))]
    pieces, _, new = bars(frame)
    assert re.search("[가-힣]", texts(frame)[0]) and pieces == before.target_tokens
    expected = forward(translator, before.source_ids, before.target_ids, visible)
    close(new, log_probs(expected.logits, before.target_ids).exp())
    assert [text.strip() for text in page.locator("#change label").all_text_contents()] == [
        "Hide source words",
        "Write another piece",
    ]
    assert fits(page, width) and is_dark(frame) == dark
    choose(page, "Model", "EN → KO, No attention (2014)")
    page.locator("#hidden-words").wait_for(state="hidden")
    assert [text.strip() for text in page.locator("#change label").all_text_contents()] == ["Write another piece"]
    page.locator("#replaced").wait_for()
    page.locator("#replaced label").nth(1).click()
    page.locator("#instead label").nth(0).click()
    frame = framed(page, "#what-if", "Before")
    assert re.search("[가-힣]", texts(frame)[1]) and fits(page, width)
