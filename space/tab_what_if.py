# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that changes one thing and translates again."""

from typing import Any

import gradio as gr
from links import Asked, Link
from service import (
    BEAMS,
    KINDS,
    Space,
    architecture_name,
    architecture_of,
    checked,
    checked_kind,
    clean,
    language_codes,
    notice,
    numbers,
)
from texts import EXAMPLES, explanation

from hf_attn.inference import head_counts, next_pieces
from hf_attn.visualization import what_if_html
from hf_attn.visualization.page import escape

NOTHING = "Nothing is changed yet: pick something above."
HIDE, HEADS, FORCE = "Hide source words", "Remove heads", "Write another piece"


class WhatIfTab:
    """Before and after a change.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("what_if"))
        names = [(f"{language_codes(name)}, {architecture_name(name)}", name) for name in self.space.models]
        first = next((name for _, name in names if architecture_of(name) == "transformer"), names[0][1])
        with gr.Row():
            text = gr.Textbox(EXAMPLES[0], label="Text", lines=2, max_lines=6, scale=3, min_width=280)
            model = gr.Dropdown(names, value=first, label="Model", scale=2, min_width=280)
        button = gr.Button("Translate", variant="primary")
        notices, shown = gr.HTML(visible=False), gr.State(None)
        change = gr.Radio([HIDE, HEADS, FORCE], value=HIDE, label="Change", elem_id="change")
        words = gr.CheckboxGroup([], label="Source words that the decoder cannot see", elem_id="hidden-words")
        with gr.Row():
            kind = gr.Radio(KINDS, value="cross", label="Attention", visible=False)
            layer = gr.Dropdown([], label="Layer", visible=False, min_width=100)
            heads = gr.CheckboxGroup([], label="Heads taken away: tick one or more", visible=False, elem_id="heads")
        with gr.Row():
            position = gr.Radio([], label="Piece to replace: pick one", visible=False, elem_id="replaced")
            piece = gr.Radio([], label="Write instead (with its probability)", visible=False, elem_id="instead")
        results = gr.HTML(elem_id="what-if", apply_default_css=False)

        inputs = [text, model, change]
        link = Link(tab, inputs, {"text": text, "models": model}, [text, model], self.opened)
        begin: dict[str, Any] = {
            "fn": self.begin,
            "inputs": inputs,
            "js": link.asking,
            "outputs": [notices, shown, change, words, kind, layer, heads, position, piece, results],
            "show_progress_on": results,  # a control that is just appearing may miss that the progress has ended
            **private,
        }
        link.follow(gr.on([button.click, text.submit, model.input, link.visited.change], **begin))
        # a session that was forgotten is told so, not that its choices are no longer there
        raw: dict[str, Any] = {"preprocess": False, "api_visibility": "private", "show_progress": "hidden"}
        change.input(self.offer, [shown, change], [words, kind, layer, heads, position, piece], **raw).then(
            self.unchanged, shown, results, **{**private, **raw}
        )
        kind.input(self.layers, [shown, kind], [layer, heads], **raw)
        options: dict[str, Any] = {"preprocess": False, "show_progress_on": results}
        position.input(self.alternatives, [shown, position], piece, **options, **private)
        asked = [shown, change, words, kind, layer, heads, position, piece]
        changes = [one.input for one in (words, layer, heads, piece)]
        gr.on(changes, self.show, asked, results, preprocess=False, **private)
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the values of a link: text and model."""
        return [asked.text(), asked.models[0] if asked.models else gr.skip()]

    def begin(self, text: str, model: str, change: str) -> tuple:
        """Translate; give what can be changed, and the first change: the longest source word hidden."""
        name = self.space.choose(model)
        line, notices = clean(text)
        translation = self.space.translation(name, line, BEAMS)
        shown = {"model": name, "line": line}
        allowed = self.changes(name)
        change = change if change in allowed else allowed[0]
        source = translation.words().source_words
        longest = max(range(max(len(source) - 1, 1)), key=lambda number: len(source[number]))  # the last is the end
        hidden = [longest] if change == HIDE else []
        offered = self.offer(shown, change, hidden)
        result = self.show(shown, change, hidden, "cross", 0, [], None, None)
        radio = gr.Radio(choices=allowed, value=change)  # type: ignore[arg-type]
        return (notice(notices + self.space.remarks(name, translation)), shown, radio, *offered, result)

    def changes(self, name: str) -> list[str]:
        """List what can be changed in a model."""
        kinds = [HIDE] if architecture_of(name) != "none" else []
        return kinds + ([HEADS] if head_counts(self.space.models[name]) else []) + [FORCE]

    def offer(self, shown: dict | None, change: str, hidden: list[int] | None = None) -> tuple:
        """Show the controls of a kind of change; some words may be hidden already."""
        shown = self.asked(shown)
        translation = self.space.translation(shown["model"], shown["line"], BEAMS)
        words = list(enumerate(translation.words().source_words))
        pieces = [(token, number) for number, token in enumerate(translation.target_tokens)]
        layer, heads = (
            self.layers(shown, "cross")
            if change == HEADS
            else (gr.Dropdown(visible=False), gr.CheckboxGroup(visible=False))
        )
        return (
            gr.CheckboxGroup(choices=[(word, n) for n, word in words], value=hidden or [], visible=change == HIDE),
            gr.Radio(value="cross", visible=change == HEADS),
            layer,
            heads,
            gr.Radio(choices=pieces, value=None, visible=change == FORCE),  # type: ignore[arg-type]
            gr.Radio(choices=[], value=None, visible=change == FORCE),
        )

    def layers(self, shown: dict | None, kind: str) -> tuple:
        """Offer the layers and heads of a kind of attention."""
        counts = head_counts(self.space.models[self.asked(shown)["model"]]).get(checked_kind(kind), [])
        layers = [(str(number + 1), number) for number in range(len(counts))]
        heads = [(str(number + 1), number) for number in range(counts[-1] if counts else 0)]
        return (
            gr.Dropdown(choices=layers, value=len(layers) - 1, visible=True),  # type: ignore[arg-type]
            gr.CheckboxGroup(choices=heads, value=[], visible=True),  # type: ignore[arg-type]
        )

    def alternatives(self, shown: dict | None, position: int) -> gr.Radio:
        """Offer the likeliest pieces in a place."""
        shown = self.asked(shown)
        translation = self.space.translation(shown["model"], shown["line"], BEAMS)
        step = checked("Piece", position, 0, len(translation.target_ids) - 1)
        candidates = next_pieces(self.space.models[shown["model"]], translation, 6)[step]
        written = translation.target_ids[step]
        choices = [(f"{one.token}  {one.probability:.3f}", one.id) for one in candidates if one.id != written]
        return gr.Radio(choices=choices, value=None, visible=True)  # type: ignore[arg-type]

    def show(
        self,
        shown: dict | None,
        change: str,
        words: list[int],
        kind: str,
        layer: int,
        heads: list[int],
        position: int | None,
        piece: int | None,
    ) -> str:
        """Draw what becomes of the translation."""
        shown = self.asked(shown)
        name, line = shown["model"], shown["line"]
        if change == HIDE and words:
            answer, condition = self.space.hide(name, line, numbers("words", words), BEAMS)
        elif change == HEADS and heads:
            (layer,) = numbers("layer", [layer])
            answer, condition = self.space.remove(name, line, kind, layer, numbers("heads", heads), BEAMS)
        elif change == FORCE and position is not None and piece is not None:
            position, piece = numbers("position", [position]) + numbers("piece", [piece])
            answer, condition = self.space.force(name, line, position, piece, BEAMS)
        else:
            return self.unchanged(shown)
        return what_if_html(answer, condition)._repr_html_()

    def unchanged(self, shown: dict | None) -> str:
        """Show the translation before anything was picked."""
        shown = self.asked(shown)
        text = self.space.translation(shown["model"], shown["line"], BEAMS).text
        return (
            f'<div class="hf-attn-results"><section><p class="translation" dir="auto" lang="">{escape(text)}</p>'
            f'<p class="small" role="status">{NOTHING}</p></section></div>'
        )

    def asked(self, shown: dict | None) -> dict:
        """Give what was translated, or ask for it."""
        if not shown:
            raise gr.Error("Translate a sentence first.", print_exception=False)
        return shown
