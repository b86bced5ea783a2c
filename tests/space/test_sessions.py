# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Many visitors at once: each gets what belongs to the own question, and no more is computed at a time than allowed."""

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gradio_client import Client
from gradio_client.utils import QueueError
from space.wire import Session

from hf_attn import Translator

SENTENCE = "The old teacher reads a long letter in the garden."
OTHER = "We did not see the three red books."
PATIENT = {"timeout": 60}
REFUSED = r"^[A-Za-z][^\n<>]{10,200}\.$"  # a sentence


def questions(names, count):
    """So many different questions: endpoint and arguments."""
    asked = []
    for number in range(count):
        text, model = (
            f"{('We', 'The girl', 'The teacher')[number % 3]} reads {number} books.",
            names[number % len(names)],
        )
        asked.append(
            (
                ("translate", {"text": text, "model": model, "num_beams": 2}),
                ("attention", {"text": text, "model": model}),
                ("beams", {"text": text, "model": model, "num_beams": 3}),
                ("next_pieces", {"text": text, "model": model, "count": 3}),
                ("write_instead", {"text": text, "model": model, "position": 1, "piece": 40 + number}),
                ("remove_heads", {"text": text, "model": "en-fr-transformer", "layer": 0, "heads": [number % 2]}),
                ("hide_words", {"text": text, "model": "en-ko-bahdanau", "words": [number % 4]}),
                ("metrics", {"reference": text, "hypothesis": "The girl reads 8 books."}),
            )[number % 8]
        )
    return asked


@pytest.mark.slow
def test_fifty_parallel_calls_from_eight_clients_give_the_serial_answers(app, endpoints, space, server):
    asked = questions([name for name in space.models if name != "en-fr-convs2s"], 50)  # which hardly ends
    serial = [json.loads(json.dumps(getattr(endpoints, name)(**arguments))) for name, arguments in asked]
    assert len({json.dumps(answer) for answer in serial}) == 50
    clients = [Client(server, verbose=False, httpx_kwargs=PATIENT) for _ in range(8)]
    jobs = [
        clients[number % 8].submit(**arguments, api_name=f"/{name}") for number, (name, arguments) in enumerate(asked)
    ]
    assert [job.result() for job in jobs] == serial


def test_a_visitor_goes_on_with_the_own_sentence_and_with_no_other(server, steps_tab):
    first, second, third = Session(server), Session(server), Session(server)
    asked = {first: (SENTENCE, "en-fr-bahdanau"), second: (OTHER, "en-fr-luong")}
    for visitor, (text, model) in asked.items():
        assert text not in json.dumps(visitor.press("steps", text, model)[1]), "what is kept stays with the Space"
    for _ in range(2):
        for visitor, (text, model) in asked.items():
            page = visitor.press("steps", None, 1, "cross", 0, 0)[0]
            assert page == steps_tab.show_step({"model": model, "line": text}, 1, "cross", 0, 0)
    for forged in (None, {"model": "en-fr-bahdanau", "line": SENTENCE}):
        with pytest.raises(ValueError, match="Take a sentence apart first"):
            third.press("steps", forged, 0, "cross", 0, 0)
        with pytest.raises(ValueError, match="Translate a sentence first"):
            third.press("what-if", forged, *CHANGES["hide"])


NO_CHOICE = ("x", "<b>", [0.5], [[0]], {"a": 1}, 1.5, -1, 10**5, 10**30, [10**5], True)
CHANGES = {
    "hide": ["Hide source words", [1], "cross", 0, [], None, None],
    "remove": ["Remove heads", [], "encoder", 0, [1], None, None],
    "write": ["Write another piece", [], "cross", 0, [], 1, 40],
}


@pytest.mark.parametrize("place", range(4))
def test_a_step_that_no_menu_offers_gets_a_sentence(server, place):
    visitor, chosen = Session(server), [1, "cross", 0, 0]
    visitor.press("steps", SENTENCE, "en-fr-transformer")
    assert visitor.press("steps", None, *chosen)[0].startswith("<iframe")
    for value in NO_CHOICE:
        with pytest.raises(ValueError, match=REFUSED):
            visitor.press("steps", None, *chosen[:place], value, *chosen[place + 1 :])


@pytest.mark.parametrize(("kind", "places"), [("hide", [1]), ("remove", [2, 3, 4]), ("write", [5, 6])])
def test_a_change_that_no_menu_offers_gets_a_sentence(server, kind, places):
    visitor, chosen = Session(server), CHANGES[kind]
    visitor.press("what-if", SENTENCE, "en-fr-transformer", chosen[0])
    assert visitor.press("what-if", None, *chosen)[0].startswith("<iframe")
    for place in places:
        for value in NO_CHOICE:
            with pytest.raises(ValueError, match=REFUSED):
                visitor.press("what-if", None, *chosen[:place], value, *chosen[place + 1 :])


@pytest.mark.parametrize("area", ["filled", "continued"])
def test_a_piece_that_no_menu_offers_gets_a_sentence(server, area):
    visitor, chosen = Session(server), [1, 0, 0]
    with pytest.raises(ValueError, match=r"There is no text yet"):
        visitor.press(f"{area}-steps", None, *chosen)  # as after a session that was forgotten
    visitor.press(f"{area}-steps", *(["The ___ reads."] if area == "filled" else ["The girl", 2]))
    assert visitor.press(f"{area}-steps", None, *chosen)[0].startswith("<iframe")
    for place in range(3):
        for value in NO_CHOICE:
            with pytest.raises(ValueError, match=REFUSED):
                visitor.press(f"{area}-steps", None, *chosen[:place], value, *chosen[place + 1 :])


def test_models_of_other_languages_are_chosen_in_a_session_that_was_forgotten(server):
    visitor, chosen = Session(server), [SENTENCE, ["en-ko-bahdanau"], 2, "words"]
    assert "<iframe" in visitor.press("results", *chosen, None)[1]
    for place in range(3):
        for value in ("x" if place else 5, ["x"], [["x"]], [{}], {"a": 1}, None):
            with pytest.raises(ValueError, match=REFUSED):
                visitor.press("results", *chosen[:place], value, *chosen[place + 1 :], None)


@pytest.mark.slow
def test_many_visitors_change_their_own_sentences_at_once(app, space, server):
    tab = app.WhatIfTab(space)

    def visit(number):
        text, model = f"The girl reads {number} books.", ("en-fr-luong", "en-fr-transformer")[number % 2]
        visitor, shown = Session(server), {"model": model, "line": text}
        begun = visitor.press("what-if", text, model, "Hide source words")
        words = [number % 4]
        page = visitor.press("what-if", None, "Hide source words", words, "cross", 0, [], None, None)[0]
        return (
            begun[-1] == tab.begin(text, model, "Hide source words")[-1],
            page == tab.show(shown, "Hide source words", words, "cross", 0, [], None, None),
        )

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(visit, range(12))) == [(True, True)] * 12


class Held:
    """Translators that wait before they translate, and how many have waited at a time."""

    def __init__(self):
        self.go, self.some, self.now, self.most = threading.Event(), threading.Condition(), 0, 0

    def __call__(self, translate):
        def held(translator, *arguments, **options):
            with self.some:
                self.now += 1
                self.most = max(self.most, self.now)
                self.some.notify_all()
            self.go.wait(60)
            try:
                return translate(translator, *arguments, **options)
            finally:
                with self.some:
                    self.now -= 1

        return held

    def wait_for(self, number):
        """Wait until so many are at work."""
        with self.some:
            assert self.some.wait_for(lambda: self.now >= number, 30)


@pytest.fixture
def slow_space(app, models_folder, tmp_path, monkeypatch):
    """A Space with one model that waits: its page, its address, and what holds it."""
    shutil.copytree(models_folder / "en-fr-bahdanau", tmp_path / "en-fr-bahdanau")
    hold = Held()
    monkeypatch.setattr(Translator, "__call__", hold(Translator.__call__))
    demo = app.build(tmp_path)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    yield demo, url, hold
    hold.go.set()
    demo.close()


def test_no_more_than_so_many_translate_at_once(app, slow_space):
    _, url, hold = slow_space
    clients = [Client(url, verbose=False, httpx_kwargs=PATIENT) for _ in range(3)]
    jobs = [
        clients[number % 3].submit(f"The girl reads {number}.", "en-fr-bahdanau", 1, api_name=f"/{name}")
        for number, name in enumerate(["translate", "attention", "beams", "next_pieces"] * 2)
    ]
    with ThreadPoolExecutor(3) as pool:
        pages = [
            pool.submit(Session(url).press, "steps", f"The teacher reads {n}.", "en-fr-bahdanau") for n in range(3)
        ]
        hold.wait_for(app.AT_ONCE)
        hold.go.set()
        assert all(page.result()[-1].startswith("<iframe") for page in pages)
    for number, job in enumerate(jobs):
        assert f"reads {number}." in json.dumps(job.result())
    assert hold.most == app.AT_ONCE == 2


@pytest.mark.slow
def test_a_full_queue_says_so_and_is_worked_off(app, slow_space):
    _, url, hold = slow_space
    with httpx.Client(base_url=f"{url}gradio_api/call/", timeout=60) as wire:

        def send(number):
            return wire.post("translate", json={"data": [f"The girl reads {number}.", "en-fr-bahdanau", 1]})

        first = [send(number) for number in range(app.AT_ONCE)]
        hold.wait_for(app.AT_ONCE)
        waiting = [send(number) for number in range(app.AT_ONCE, app.AT_ONCE + 64)]
        assert {answer.status_code for answer in first + waiting} == {200}
        refused = send(99)
        assert (refused.status_code, refused.json()["detail"]) == (503, "Queue is full. Max size is 64 and size is 64.")
        with pytest.raises(QueueError, match="Queue is full! Please try again."):
            Client(url, verbose=False, httpx_kwargs=PATIENT).predict(
                "The girl reads.", "en-fr-bahdanau", 1, api_name="/translate"
            )
        hold.go.set()
        for number, answer in enumerate(first + waiting):
            done = wire.get(f"translate/{answer.json()['event_id']}").text
            assert done.startswith("event: complete") and f"The girl reads {number}." in done
        assert send(100).status_code == 200


def test_what_is_kept_of_visits_is_bounded(app, slow_space):
    """A session holds what the page shows; gradio itself would keep those of ten thousand, and a list of all calls."""
    demo, url, hold = slow_space
    hold.go.set()
    most = app.LAUNCH["state_session_capacity"]
    with httpx.Client(base_url=f"{url}gradio_api/", timeout=60) as wire:
        for number in range(most + 20):
            asked = {"data": ["The girl reads.", f"The girl reads {number}."]}
            event = wire.post("call/metrics", json=asked).json()["event_id"]
            assert "complete" in wire.get(f"call/metrics/{event}").text
    assert len(demo.app.state_holder.session_data) == most <= 200
    assert len(demo._queue.event_analytics) <= 1 and not demo._queue.cached_event_analytics_summary["functions"]


def test_everything_that_computes_waits_in_one_queue(app, space_folder):
    demo = app.build(space_folder)
    functions = [function for function in demo.fns.values() if function.fn is not None]
    working = [function for function in functions if function.concurrency_id == "model"]
    assert len(working) > 20 and {function.concurrency_limit for function in working} == {app.AT_ONCE}
    assert {function.name for function in functions} - {function.name for function in working} <= {
        *("offer", "menus", "layers", "another", "load_example", "<lambda>", "reopen"),
    }
