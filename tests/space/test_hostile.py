# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Hostile text, through the tabs, the endpoints and the page: answered, shown as text, and kept nowhere."""

import json
import re
import sys
import unicodedata
from types import SimpleNamespace
from urllib.parse import quote, unquote

import gradio as gr
import httpx
import pytest
import torch
from hostile import HOSTILE, NOTHING, Tags
from space.driving import open_tab, redrawn
from space.watching import files, watched_space

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
def tabs(app, space, server):
    """The tabs and the endpoints; their translations are short, so that many can be made (not those of the server,
    which is there already)."""
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
    said = [sentence for sentence in result["notices"] if "in other letters" not in sentence]
    assert said or visible(result["source"]) == visible(text), "nothing is lost silently"
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


@pytest.fixture(scope="module")
def watched(space_folder, tmp_path_factory):
    """The address of a Space that is watched; at the end nothing may have been written, asked for, or broken."""
    folder = tmp_path_factory.mktemp("hostile") / "watched"
    with watched_space(space_folder, folder) as (url, log):
        httpx.get(url).raise_for_status()
        before, written = files(folder), log.read_text().count("WRITTEN")
        yield url
        assert files(folder) == before and len(before) >= 6
        told = log.read_text()
        assert told.count("WRITTEN") == written and "REQUEST" not in told and "Traceback" not in told, told[-3000:]


def ask(wire, path, body):
    """Send JSON, in which a lone surrogate is escaped, and give the event that answers."""
    headers = {"content-type": "application/json"}
    event = wire.post(f"gradio_api/{path}", content=json.dumps(body), headers=headers).raise_for_status().json()
    answer = wire.get(f"gradio_api/{path}/{event['event_id']}").content.decode("utf-8")
    return re.match(r"event: (\w+)\ndata: (.*)\n", answer).groups()


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["translate", "next_pieces", "metrics", "fill_in", "continue_text"])
def test_hostile_text_over_the_wire(watched, service, endpoint):
    with httpx.Client(base_url=watched, timeout=60) as wire:
        for kind, text in (HOSTILE | NOTHING).items():
            data = {
                "translate": [text, RNN, 1],
                "next_pieces": [text, TRANSFORMER, 1, 2],
                "metrics": [SENTENCE, text],
                "fill_in": [f"___ {text}", 2],
                "continue_text": [text, 2, 2],
            }[endpoint]
            event, answer = ask(wire, f"call/{endpoint}", {"data": data})
            if kind in NOTHING and endpoint != "fill_in":
                assert event == "error" and "is empty: type a sentence." in answer
                continue
            assert event == "complete", (kind, answer)
            result = json.loads(answer)[0]
            if endpoint in ("translate", "next_pieces"):
                assert result["source"] == service.clean(text)[0]
            if endpoint == "metrics":
                assert 0 <= result["bleu_4"] <= 1


@pytest.mark.slow
def test_hostile_links_open_the_page_with_their_text(server, service):
    with httpx.Client(base_url=server, timeout=60) as wire:
        number = next(one["id"] for one in wire.get("config").json()["dependencies"] if one["api_name"] == "reopen")
        for kind, text in HOSTILE.items():
            if len(text) > 1000:  # no address is as long
                continue
            value = quote(text, errors="surrogatepass")
            link = f"gradio_api/queue/join?text={value}&tab=steps&models={value}&{value}={value}&__theme={value}"
            session = f"link{list(HOSTILE).index(kind)}"
            wire.post(link, json={"data": [], "fn_index": number, "session_hash": session}).raise_for_status()
            told = wire.get("gradio_api/queue/data", params={"session_hash": session}).text
            (answer,) = re.findall(r'data: (.*"process_completed".*)', told)
            output = json.loads(answer)["output"]
            assert service.clean(unquote(value))[0] in output["data"], (kind, output)
            assert not [one for one in output["data"] if isinstance(one, str) and one.startswith("<iframe")]


TYPE = """([text, before]) => {
  for (const box of document.querySelectorAll("textarea")) {
    if (!box.checkVisibility()) continue;
    box.value = before + JSON.parse(text);
    box.dispatchEvent(new Event("input", {bubbles: true}));
  }
}"""
LEARN = """learn => {
  // Gradio's picture of waiting comes and goes; a change is marked where there is one
  const known = window.known ??=
    new Set(["page g", "page @fill-opacity", "frame INS", "frame DEL", "frame @aria-current"]);
  const found = [], fresh = name => !known.has(name) && found.push(name);
  const read = (place, page) => {
    for (const one of page.querySelectorAll("*")) {
      fresh(place + one.tagName);
      for (const attribute of one.attributes) fresh(place + "@" + attribute.name.replace(/^(data-|svelte-).*/, "$1"));
      if (place === "page " && ["SCRIPT", "BASE", "META"].includes(one.tagName)) fresh(one.outerHTML);
    }
    if (page.defaultView.pwned !== undefined) found.push("pwned");
  };
  read("page ", document);
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    read("frame ", page);
    if (page.scripts.length) fresh(`${page.scripts.length} scripts`);  // none: it is being read
    if (!frame.srcdoc || page.querySelector("iframe")) found.push("a frame");
  }
  if (learn) found.forEach(name => known.add(name));
  return found;
}"""
TABS = [  # the way to a tab, its button, what shows the answer, what is put before a text
    (["Translate"], "Translate", "#results", ""),
    (["Step by step"], "Take apart", "#steps", ""),
    (["History"], "Translate with all", "#history", ""),
    (["What if"], "Translate", "#what-if", ""),
    (["Metrics lab"], "Compute", "#metrics", ""),
    (["Other inputs", "Fill in a blank"], "Fill in", "#filled", "___ "),
    (["Other inputs", "What comes next"], "Go on", "#continued", ""),
]


def without_spaces(text):
    """A text without spaces, and without the sign by which pieces mark them."""
    return unicodedata.normalize("NFC", re.sub(r"[\s▁]", "", text))


def read_words(words):
    """The text of words; where it was cut within a letter it ends with bytes, which are left out."""
    return without_spaces(re.sub(r"(<0x..>)+$", "", "".join(words)))


@pytest.mark.browser
def test_hostile_text_stays_text_on_the_page(visit, service, watched):
    page = visit(watched)
    page.set_default_timeout(60_000)
    page.locator("#results iframe").first.wait_for()
    page.get_by_label("Bahdanau (2015)").uncheck()
    visible_button = page.locator("button:visible")

    def send(text, button, area, before):
        with redrawn(page, area):
            page.evaluate(TYPE, [json.dumps(text), before])
            page.get_by_role("button", name=button, exact=True).and_(visible_button).click()

    for way, button, area, before in TABS:
        for name in way:
            open_tab(page, name)
        page.locator(f"{area} iframe").first.wait_for()
        for text in ("Where is the girl?", *BENIGN[1:]):
            send(text, button, area, before)
            page.evaluate(LEARN, True)
    wrong = []
    for number, (way, button, area, before) in enumerate(TABS):
        for name in way:
            open_tab(page, name)
        typed = [(kind, text) for kind, text in HOSTILE.items() if not number or len(text) < 10_000]
        for kind, text in typed[max(0, 2 * number - 1) :: 12 if number else 1]:
            send(text, button, area, before)
            found = page.evaluate(LEARN, False)
            if not number:
                frame = page.locator("#results iframe").element_handle().content_frame()
                *words, _ = frame.locator("#source .text").all_text_contents()
                found += (
                    [] if words and without_spaces(service.clean(text)[0]).startswith(read_words(words)) else [words]
                )
            wrong += [(way[-1], kind, found)] if found else []
    assert not wrong
    # Gradio looks up a translation of each label: "file" is the name of a group of them, "constructor" of no text
    visit.complaints[:] = [one for one in visit.complaints if not one.startswith("[svelte-i18n]")]
