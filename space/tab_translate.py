# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that translates, with the attention behind every word."""

import math
from dataclasses import replace
from typing import Any

import gradio as gr
from checkpoints import read_name
from links import Asked, Link
from service import (
    BEAMS,
    MOST_BEAMS,
    MOST_MODELS,
    Space,
    architecture_of,
    checked,
    clean,
    language_name,
    notice,
    pair_of,
)
from texts import EXAMPLES, explanation

from hf_attn.inference import next_pieces
from hf_attn.visualization import alignment_html, beams_html, next_pieces_html
from hf_attn.visualization.page import escape

MOST_OPENING = 4  # visitors whose checkpoints are being opened, one after the other
VIEWS = ["words", "pieces", "next pieces", "beams"]


class TranslateTab:
    """Up to three models side by side.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("translate"))
        first = self.space.models_of(self.space.pairs[0])
        with gr.Row():
            with gr.Column(scale=3, min_width=280):
                text = gr.Textbox(EXAMPLES[0], label="Text", lines=2, max_lines=6, elem_id="text")
                examples = gr.Examples([[one] for one in EXAMPLES], [text], label="Examples", api_visibility="private")
                with gr.Row():
                    beams = gr.Slider(1, MOST_BEAMS, value=BEAMS, step=1, label="Beams", min_width=140)
                    unit = gr.Radio(VIEWS, value="words", label="Show", scale=2, min_width=140)
            with gr.Column(scale=2, min_width=280):
                pair = gr.Dropdown([(language_name(code), code) for code in self.space.pairs], label="Languages")
                models = gr.CheckboxGroup(
                    first, value=default(first), label=f"Models (up to {MOST_MODELS}, side by side)"
                )
        opened = gr.State([])  # names of the checkpoints that this visitor has opened
        if self.space.checkpoints:
            with gr.Accordion("Another checkpoint", open=False):
                gr.HTML(explanation("checkpoint"))
                named = gr.Textbox(label="Hub id, or folder on the machine of this Space", max_lines=1)
                opens = gr.Button("Open")
        button = gr.Button("Translate", variant="primary")
        notices = gr.HTML(visible=False, elem_id="translate-notices")
        results = gr.HTML(elem_id="results", apply_default_css=False)

        def offer(code: str, opened: list[str]) -> gr.CheckboxGroup:
            there = self.space.models_of(code)
            choices = there + [(name, name) for name in opened]
            return gr.CheckboxGroup(choices=choices, value=default(there))  # type: ignore[arg-type]

        inputs = [text, models, beams, unit, opened]
        link = Link(tab, inputs, {"text": text, "models": models}, [text, pair, models], self.opened)
        show: dict[str, Any] = {
            "fn": self.show,
            "inputs": inputs,
            "js": link.asking,
            "outputs": [notices, results],
            "preprocess": False,  # a session that was forgotten no longer offers the models of other languages
            **private,
        }
        offered = pair.input(offer, [pair, opened], models, api_visibility="private")
        if self.space.checkpoints:
            # a slow download takes none of the places in which the models compute
            opening: dict[str, Any] = {**private, "concurrency_limit": MOST_OPENING, "concurrency_id": "open"}
            events = [opens.click, named.submit]
            asked = gr.on(events, self.open, [named, opened, pair, models], [opened, models], **opening)
            asked.success(**show)
        events = [button.click, text.submit, models.input, beams.input, unit.input, link.visited.change]
        link.follow(gr.on(events, **show), offered.then(**show), examples.load_input_event.then(**show))
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the values of a link: text, languages and models."""
        if not asked.models:
            return [asked.text(), gr.skip(), gr.skip()]
        pair = pair_of(asked.models[0])
        there, chosen = self.space.models_of(pair), [name for name in asked.models if pair_of(name) == pair]
        return [asked.text(), pair, gr.CheckboxGroup(choices=there, value=chosen[:MOST_MODELS])]  # type: ignore[arg-type]

    def open(self, name: str, opened: list[str], pair: str, chosen: list[str]) -> tuple[list[str], gr.CheckboxGroup]:
        """Open a checkpoint; give what this visitor has opened, and a choice of models with the new one chosen."""
        name = read_name(name)
        if name in self.space.models:
            raise gr.Error(f"{name} is one of the models of this Space.", print_exception=False)
        self.space.open(name)
        opened = list(dict.fromkeys([*opened, name]))
        choices = self.space.models_of(pair) + [(one, one) for one in opened]
        others = [one for one in chosen if one != name][: MOST_MODELS - 1]
        return opened, gr.CheckboxGroup(choices=choices, value=[*others, name])  # type: ignore[arg-type]

    def show(
        self, text: str, models: list[str], num_beams: int, unit: str, opened: list[str] | None = None
    ) -> tuple[gr.HTML, str]:
        """Translate with each chosen model; give the notices and the results."""
        line, notices = clean(text)
        asked = models if isinstance(models, list) else []
        names = list(dict.fromkeys(name if name in (opened or []) else self.space.choose(name) for name in asked))
        if not names:
            raise gr.Error("Choose at least one model.", print_exception=False)
        if len(names) > MOST_MODELS:
            notices.append(f"The first {MOST_MODELS} models are shown.")
        beams = checked("Beams", num_beams, 1, MOST_BEAMS)
        results = "".join(self.section(name, line, beams, unit) for name in names[:MOST_MODELS])
        return notice(notices), f'<div class="hf-attn-results">{results}</div>'

    def section(self, name: str, line: str, num_beams: int, unit: str) -> str:
        """Write one result; a checkpoint that a visitor opened may not fit every text."""
        try:
            return self.result(name, line, num_beams, unit)
        except ValueError as error:
            if name in self.space.models:
                raise
            sentence = f"“{escape(name)}” cannot translate this: {escape(str(error))}"
            raise gr.Error(sentence, print_exception=False) from error

    def result(self, name: str, line: str, num_beams: int, unit: str) -> str:
        """Write one translation with its alignment, or with what else might have been written."""
        translation = self.space.translation(name, line, num_beams)
        found = [
            f"{flag.kind.replace('_', ' ')}: {flag.detail}" if flag.detail else flag.kind.replace("_", " ")
            for flag in self.space.failures(name, translation)
        ]
        flags = "".join(f"<li>{escape(flag)}</li>" for flag in dict.fromkeys(found))
        cut = "".join(f'<p class="small">{escape(sentence)}</p>' for sentence in self.space.remarks(name, translation))
        if unit == "next pieces":
            candidates = next_pieces(self.space.translator(name), translation)
            picture = replace(next_pieces_html(translation, candidates), title=f"Next pieces, {name}")._repr_html_()
        elif unit == "beams":
            picture = replace(beams_html(self.space.beams(name, line, num_beams)), title=f"Beams, {name}")._repr_html_()
        elif translation.cross_attentions is None:
            picture = (
                '<p class="small">This model has no attention to show: one vector of fixed size carries the whole '
                "sentence from encoder to decoder. <em>Step by step</em> shows it.</p>"
            )
        else:
            page = alignment_html(translation, words=unit != "pieces")
            picture = replace(page, title=f"Attention alignment, {name}")._repr_html_()
        target, probability = self.space.languages(name)[1] or "", math.exp(translation.score)
        return (
            f"<section><h3>{escape(self.space.title(name))}</h3>"
            f'<p class="translation" lang="{target}" dir="auto">{escape(translation.text) or "(nothing)"}</p>'
            + (f'<ul class="flags" aria-label="What looks wrong">{flags}</ul>' if flags else "")
            + f'<p class="small">probability of a piece (geometric mean): {probability:.2f}</p>{cut}{picture}</section>'
        )


def default(models: list[tuple[str, str]]) -> list[str]:
    """Choose what is shown first: Bahdanau's network and the Transformer where they are there, else the first model."""
    names = [name for _, name in models]
    return [name for name in names if architecture_of(name) in ("bahdanau", "transformer")] or names[:1]
