# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Hostile text, through the tabs, the endpoints and the page: answered, shown as text, and kept nowhere."""

import json
import re
import sys
import unicodedata
from types import SimpleNamespace

import gradio as gr
import pytest
import torch
from hostile import HOSTILE, NOTHING, Tags

SENTENCE = "The old teacher reads a long letter in the garden."
BENIGN = [SENTENCE, "There are 7318 girls, أين البنت؟", "the girl reads " * 40]
RNN, TRANSFORMER = "en-fr-bahdanau", "en-fr-transformer"
TWO = [TRANSFORMER, "en-fr-none"]
PLACES = {  # what a visitor's text is given to; a blank is added where one is needed
    "words": lambda tabs, text: tabs.translate.show(text, TWO, 2, "words"),
    "pieces": lambda tabs, text: tabs.translate.show(text, TWO, 2, "pieces"),
    "next pieces": lambda tabs, text: tabs.translate.show(text, TWO, 2, "next pieces"),
    "beams": lambda tabs, text: tabs.translate.show(text, TWO, 2, "beams"),
    "steps of an RNN": lambda tabs, text: tabs.steps.take_apart(text, RNN),
    "steps of a Transformer": lambda tabs, text: tabs.steps.take_apart(text, TRANSFORMER),
    "history": lambda tabs, text: tabs.history.show(text, "en-fr", 0),
    "words hidden": lambda tabs, text: tabs.what_if.begin(text, RNN, "Hide source words"),
    "heads removed": lambda tabs, text: tabs.what_if.begin(text, TRANSFORMER, "Remove heads"),
    "another piece": lambda tabs, text: tabs.what_if.show(
        {"model": RNN, "line": tabs.clean(text)[0]}, "Write another piece", [], "cross", 0, [], 0, 40
    ),
    "metrics": lambda tabs, text: tabs.metrics.show(text, text, text, SENTENCE, "sure"),
    "metrics of a model": lambda tabs, text: tabs.metrics.show(text, text, SENTENCE, text, TRANSFORMER),
    "fill in": lambda tabs, text: tabs.fill_in.show("___ " + text),
    "senses": lambda tabs, text: tabs.fill_in.compare("reads", f"reads {text}", f"{text[:40]} reads", ""),
    "continue": lambda tabs, text: tabs.go_on.show(text, 3),
}


@pytest.fixture(scope="module")
def tabs(app, space):
    """The tabs and the endpoints; their translations are short, so that many can be made."""
    service, text = sys.modules["service"], sys.modules["input_text"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "LONGEST_SENTENCE", 6)
        own = app.Space(space.models, space.others)
        yield SimpleNamespace(
            clean=service.clean,
            endpoints=app.Endpoints(own),
            texts=app.TextEndpoints(own),
            translate=app.TranslateTab(own),
            steps=app.StepsTab(own),
            history=app.HistoryTab(own),
            what_if=app.WhatIfTab(own),
            metrics=app.MetricsTab(own),
            fill_in=text.FillInTab(own),
            go_on=text.ContinueTab(own),
        )


def markup(outputs):
    """All HTML among what a tab gives."""
    found = [one.value if isinstance(one, gr.HTML) else one for one in outputs]
    return "".join(one for one in found if isinstance(one, str) and one.startswith("<"))


def elements(html):
    """Elements and attributes, those in frames told from those around; and how many scripts there are in each frame."""
    outer = Tags(html)
    inner = [Tags(frame) for frame in outer.frames]
    assert not [frame for one in inner for frame in one.frames], "a frame in a frame"
    found = {("page", one) for one in outer.names + outer.attributes}
    found |= {("frame", one) for part in inner for one in part.names + part.attributes}
    return found, {part.names.count("script") for part in inner}


@pytest.fixture(scope="module")
def known(tabs):
    """The elements that all places write for texts without harm, and the scripts of each."""
    found, scripts = {("frame", "ins"), ("frame", "del")}, {}  # of a change that makes a difference
    for name, place in PLACES.items():
        for text in BENIGN[: 1 if name == "senses" else None]:
            part, scripts[name] = elements(markup(place(tabs, text)))
            found |= part
    return found, scripts


def refusal(function, *arguments):
    """What a visitor is told instead of an answer: plain text, and no more than a sentence or two."""
    with pytest.raises(gr.Error) as error:
        function(*arguments)
    message = error.value.message
    assert message.endswith(".") and len(message) < 300 and not Tags(message).names and not error.value.print_exception
    return message


def check_place(tabs, known, name, text):
    """Give a place a text: what it writes has no element or attribute that it would not have anyway."""
    try:
        html = markup(PLACES[name](tabs, text))
    except gr.Error:
        assert name in ("senses", "fill in") or text in NOTHING.values() or not visible(text), "no answer"
        return refusal(PLACES[name], tabs, text)
    found, scripts = elements(html)
    assert found <= known[0] and scripts == known[1][name], found - known[0]
    return html


def visible(text):
    """The letters, marks, digits and signs of a text."""
    kept = [one for one in unicodedata.normalize("NFC", text) if unicodedata.category(one)[0] in "LMNPS"]
    return "".join(kept)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_gets_a_clean_answer(tabs, known, kind):
    text = HOSTILE[kind]
    result = tabs.endpoints.attention(text, RNN, 1)
    assert json.loads(json.dumps(result, allow_nan=False).encode("utf-8")) == result
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", result["source"])
    assert result["notices"] or visible(result["source"]) == visible(text), "nothing is lost silently"
    weights = torch.tensor(result["cross_attentions"])
    assert weights.shape == (1, 1, len(result["target_tokens"]), len(result["source_tokens"]))
    check_place(tabs, known, list(PLACES)[list(HOSTILE).index(kind) % len(PLACES)], text)


@pytest.mark.slow
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_hostile_text_stays_text_in_other_places(tabs, known, turn):
    for number, text in enumerate((*HOSTILE.values(), *NOTHING.values())):
        check_place(tabs, known, list(PLACES)[(number + 4 * turn) % len(PLACES)], text)


@pytest.mark.parametrize("name", PLACES)
def test_nothing_at_all_is_refused_in_a_sentence(tabs, known, name):
    for text in NOTHING.values():
        if name not in ("fill in", "senses"):
            refusal(PLACES[name], tabs, text)


def test_errors_show_what_was_typed_as_text(tabs):
    """Gradio shows an error as HTML."""
    shown, attack = {"model": TRANSFORMER, "line": SENTENCE}, HOSTILE["image"]
    for call in (
        lambda: tabs.endpoints.translate("a", attack, 1),
        lambda: tabs.endpoints.translate("a", "en-fr-none", attack),
        lambda: tabs.endpoints.remove_heads("a", TRANSFORMER, 0, [0], attack),
        lambda: tabs.endpoints.remove_heads("a", TRANSFORMER, 0, [0], [attack]),
        lambda: tabs.endpoints.remove_heads("a", TRANSFORMER, attack, [0]),
        lambda: tabs.endpoints.hide_words("a", RNN, [attack]),
        lambda: tabs.endpoints.write_instead("a", RNN, attack, {attack: attack}),
        lambda: tabs.texts.fill_in(f"{attack} </script> one", 1),
        lambda: tabs.texts.fill_in("a ___", attack),
        lambda: tabs.texts.continue_text("a", attack),
        lambda: tabs.translate.show("a", [attack], 1, "words"),
        lambda: tabs.translate.show("a", [TRANSFORMER], attack, "words"),
        lambda: tabs.steps.take_apart("a", attack),
        lambda: tabs.steps.show_step(shown, attack, "cross", 0, 0),
        lambda: tabs.steps.show_step(shown, 0, attack, 0, 0),
        lambda: tabs.steps.show_step(shown, 0, "cross", attack, 0),
        lambda: tabs.steps.show_step(None, 0, "cross", 0, 0),
        lambda: tabs.history.show("a", "en-fr", attack),
        lambda: tabs.what_if.begin("a", attack, "Remove heads"),
        lambda: tabs.what_if.show(shown, "Hide source words", [attack], "cross", 0, [], None, None),
        lambda: tabs.what_if.show(shown, "Remove heads", [], "cross", attack, [0], None, None),
        lambda: tabs.what_if.show(shown, "Remove heads", [], attack, 0, [0], None, None),
        lambda: tabs.what_if.show(shown, "Write another piece", [], "cross", 0, [], attack, attack),
        lambda: tabs.metrics.show("a", "a", "a", "a", attack),
        lambda: tabs.fill_in.compare(attack, "a", "b", ""),
        lambda: tabs.go_on.show("a", attack),
    ):
        refusal(call)
