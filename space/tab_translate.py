# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that translates, with the attention behind every word."""

import math
from dataclasses import replace
from typing import Any

import gradio as gr
from service import BEAMS, EXAMPLES, MOST_BEAMS, MOST_MODELS, Space, architecture_name, architecture_of, checked, clean
from service import language_name, notice, pair_of, unread

from hf_attn.visualization import alignment_html
from hf_attn.visualization.page import escape


    def show_translations(self, text: str, models: list[str], num_beams: int, unit: str) -> tuple[gr.HTML, str]:
        """Translate with each chosen model; give the notices and the results."""
        line, notices = clean(text)
        names = [self.choose(name) for name in dict.fromkeys(models or [])]
        if not names:
            raise gr.Error("Choose at least one model.", print_exception=False)
        if len(names) > MOST_MODELS:
            notices.append(f"The first {MOST_MODELS} models are shown.")
        beams = checked("Beams", num_beams, 1, MOST_BEAMS)
        results = "".join(self.result(name, line, beams, unit == "words") for name in names[:MOST_MODELS])
        return notice(notices), f'<div class="hf-attn-results">{results}</div>'

    def result(self, name: str, line: str, num_beams: int, words: bool) -> str:
        """Write one translation with its alignment."""
        translation = self.translation(name, line, num_beams)
        found = [
            f"{flag.kind.replace('_', ' ')}: {flag.detail}" if flag.detail else flag.kind.replace("_", " ")
            for flag in self.failures(name, translation)
        ]
        flags = "".join(f"<li>{escape(flag)}</li>" for flag in dict.fromkeys(found))
        cut = "".join(f'<p class="small">{escape(sentence)}</p>' for sentence in unread(translation))
        if translation.cross_attentions is None:
            picture = (
                '<p class="small">This model has no attention to show: one vector of fixed size carries the whole '
                "sentence from encoder to decoder. <em>Step by step</em> shows it.</p>"
            )
        else:
            page = alignment_html(translation, words=words)
            picture = replace(page, title=f"Attention alignment, {name}")._repr_html_()
        target, probability = pair_of(name).split("-")[1], math.exp(translation.score)
        return (
            f"<section><h3>{escape(architecture_name(name))}</h3>"
            f'<p class="translation" lang="{target}" dir="auto">{escape(translation.text) or "(nothing)"}</p>'
            + (f'<ul class="flags" aria-label="What looks wrong">{flags}</ul>' if flags else "")
            + f'<p class="small">probability of a piece (geometric mean): {probability:.2f}</p>{cut}{picture}</section>'
        )

def translate_tab(demo: gr.Blocks, space: Space, private: dict[str, Any]) -> None:
    """Lay out the first tab."""
    first = space.models_of(space.pairs[0])
    with gr.Row():
        with gr.Column(scale=3, min_width=280):
            text = gr.Textbox(EXAMPLES[0], label="Text", lines=2, max_lines=6, elem_id="text")
            gr.Examples([[example] for example in EXAMPLES], [text], label="Examples", api_visibility="private")
        with gr.Column(scale=2, min_width=280):
            pair = gr.Dropdown([(language_name(code), code) for code in space.pairs], label="Languages")
            models = gr.CheckboxGroup(first, value=default(first), label=f"Models (up to {MOST_MODELS}, side by side)")
            with gr.Row():
                beams = gr.Slider(1, MOST_BEAMS, value=BEAMS, step=1, label="Beams", min_width=140)
                unit = gr.Radio(["words", "pieces"], value="words", label="Show", min_width=140)
    button = gr.Button("Translate", variant="primary")
    notices = gr.HTML(visible=False, elem_id="translate-notices")
    results = gr.HTML(elem_id="results", apply_default_css=False)

    def offer(code: str) -> gr.CheckboxGroup:
        there = space.models_of(code)
        return gr.CheckboxGroup(choices=there, value=default(there))  # type: ignore[arg-type]

    show: dict[str, Any] = {
        "fn": space.show_translations,
        "inputs": [text, models, beams, unit],
        "outputs": [notices, results],
        **private,
    }
    pair.input(offer, pair, models, api_visibility="private").then(**show)
    gr.on([button.click, text.submit, models.input, beams.release, unit.input], **show)
    demo.load(**show)


def default(models: list[tuple[str, str]]) -> list[str]:
    """Choose what is shown first: Bahdanau's network and the Transformer where they are there, else the first model."""
    names = [name for _, name in models]
    return [name for name in names if architecture_of(name) in ("bahdanau", "transformer")] or names[:1]


