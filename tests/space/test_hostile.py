# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Hostile text, through the page and the endpoints."""

import json
import re

import gradio as gr
import httpx
import pytest
import torch
from hostile import ALLOWED, HOSTILE, Tags

SENTENCE = "The old teacher reads a long letter in the garden."


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_gets_a_clean_answer(endpoints, translate_tab, steps_tab, kind):
    result = endpoints.attention(HOSTILE[kind], "en-fr-bahdanau")
    assert json.loads(json.dumps(result).encode("utf-8")) == result
    assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202e]", result["source"])
    assert bool(result["notices"]) == (kind in ("one word", "long", "lines", "digits"))
    weights = torch.tensor(result["cross_attentions"])
    assert weights.shape == (1, 1, len(result["target_tokens"]), len(result["source_tokens"]))
    assert max(weights.shape) <= 120

    unit = "pieces" if kind in ("special", "surrogate", "emoji") else "words"
    notices, page = translate_tab.show(HOSTILE[kind], ["en-fr-bahdanau"], 4, unit)
    outer = Tags(page + notices.value)
    assert set(outer.names) <= ALLOWED and len(outer.frames) == 1
    assert set(outer.attributes) <= {"class", "lang", "dir", "srcdoc", "title", "style", "aria-label", "role"}
    inner = Tags(outer.frames[0])
    assert inner.names.count("script") == 2 and not {"img", "b", "iframe"} & set(inner.names)
    assert not [name for name in inner.attributes if name.startswith("on") or name in ("src", "href")]
    steps = steps_tab.take_apart(HOSTILE[kind], "en-fr-bahdanau")[-1]
    (document,) = Tags(steps).frames
    assert Tags(document).names.count("script") == 1 and "img" not in Tags(document).names


@pytest.mark.parametrize("kind", ["image", "surrogate", "controls", "handlebars", "long", "emoji", "private"])
def test_hostile_text_over_the_wire(endpoints, server, kind):
    """As raw JSON, since a lone surrogate cannot be sent by every client."""
    body = json.dumps({"data": [HOSTILE[kind], "en-fr-bahdanau", 2]})
    event = httpx.post(f"{server}gradio_api/call/translate", content=body, headers={"content-type": "application/json"})
    answer = httpx.get(f"{server}gradio_api/call/translate/{event.json()['event_id']}", timeout=60).text
    assert answer.startswith("event: complete"), answer
    (result,) = json.loads(answer.split("data: ", 1)[1])
    assert result["text"] == endpoints.translate(HOSTILE[kind], "en-fr-bahdanau", 2)["text"]


def test_errors_do_not_carry_what_was_typed(endpoints, translate_tab, steps_tab):
    """Gradio shows an error as HTML."""
    shown = {"model": "en-fr-transformer", "line": SENTENCE}
    attack = "<img src=x onerror=alert(1)>"
    for call in (
        lambda: endpoints.translate("a", attack, 1),
        lambda: endpoints.translate("a", "en-fr-none", attack),
        lambda: translate_tab.show("a", [attack], 1, "words"),
        lambda: steps_tab.show_step(shown, attack, "cross", 0, 0),
        lambda: steps_tab.show_step(shown, 0, attack, 0, 0),
        lambda: steps_tab.show_step(shown, 0, "cross", attack, 0),
        lambda: steps_tab.show_step(None, 0, "cross", 0, 0),
    ):
        with pytest.raises(gr.Error) as error:
            call()
        assert "<img" not in str(error.value)
