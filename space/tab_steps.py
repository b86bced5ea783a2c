# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that takes one word apart."""

from typing import Any

import gradio as gr
from links import Asked, Link
from service import (
    BEAMS,
    KINDS,
    Space,
    architecture_name,
    architecture_of,
    checked_kind,
    clean,
    drawn,
    language_codes,
    notice,
)
from texts import EXAMPLES, explanation

from hf_attn.inference import Translation
from hf_attn.visualization import steps_html
from hf_attn.visualization.steps import FAMILIES

PIECE = "Output piece: pick one to see how it came about"


def shape_of(translation: Translation, kind: str) -> tuple[int, int]:
    """Give the number of layers and heads of one kind of attention; one of each where there is none."""
    weights = getattr(translation, f"{kind}_attentions")
    return (1, 1) if weights is None else (weights.shape[0], weights.shape[1])


class StepsTab:
    """One word, step by step, with the numbers of the model.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space
        self.known = [name for name, one in space.models.items() if one.model.config.model_type in FAMILIES]

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab, for the models whose steps are known."""
        gr.HTML(explanation("steps"))
        names = [(f"{language_codes(name)}, {architecture_name(name)}", name) for name in self.known]
        first = next((name for _, name in names if architecture_of(name) == "bahdanau"), names[0][1])
        with gr.Row():
            text = gr.Textbox(
                EXAMPLES[0], label="Text", lines=2, max_lines=6, scale=3, min_width=280, elem_id="step-text"
            )
            model = gr.Dropdown(names, value=first, label="Model", scale=2, min_width=280)
        button = gr.Button("Take apart", variant="primary")
        notices = gr.HTML(visible=False, elem_id="step-notices")
        shown = gr.State(None)
        piece = gr.Radio([], label=PIECE, visible=False, elem_id="piece")
        with gr.Row():
            kind = gr.Radio([], label="Attention", visible=False)
            layer = gr.Dropdown([], label="Layer", visible=False, min_width=100)
            head = gr.Dropdown([], label="Head", visible=False, min_width=100)
        steps = gr.HTML(elem_id="steps", apply_default_css=False)

        link = Link(tab, [text, model], {"text": text, "models": model}, [text, model], self.opened)
        begin: dict[str, Any] = {
            "fn": self.take_apart,
            "inputs": [text, model],
            "js": link.asking,
            "outputs": [notices, shown, piece, kind, layer, head, steps],
            "show_progress_on": steps,  # a menu that is just appearing may miss that the progress has ended
            **private,
        }
        link.follow(gr.on([button.click, text.submit, model.input, link.visited.change], **begin))
        shows: dict[str, Any] = {
            "fn": self.show_step,
            "inputs": [shown, piece, kind, layer, head],
            "outputs": steps,
            "preprocess": False,  # a session that was forgotten is told so, not that its choices are no longer there
            **private,
        }
        gr.on([choice.input for choice in (piece, layer, head)], **shows)
        menus: dict[str, Any] = {"preprocess": False, "api_visibility": "private", "show_progress": "hidden"}
        kind.input(self.menus, [shown, kind], [piece, layer, head], **menus).then(**shows)
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the values of a link: text and model."""
        known = [name for name in asked.models if name in self.known]
        return [asked.text(), known[0] if known else gr.skip()]

    def take_apart(self, text: str, model: str) -> tuple:
        """Translate for the second tab; give notices, what was taken apart, menus and the first word's steps."""
        name = self.space.choose(model)
        line, notices = clean(text)
        translation = self.space.translation(name, line, BEAMS)
        shown = {"model": name, "line": line}
        kinds = [kind for kind in KINDS if kind[1] in FAMILIES[self.space.models[name].model.config.model_type]]
        piece, layer, head = self.menus(shown, "cross")
        layers, _ = shape_of(translation, "cross")
        return (
            notice(notices + self.space.remarks(name, translation)),
            shown,
            piece,
            gr.Radio(choices=kinds, value="cross", visible=len(kinds) > 1),
            layer,
            head,
            self.steps(name, line, 0, layers - 1, 0, "cross"),
        )

    def menus(self, shown: dict | None, kind: str) -> tuple:
        """Offer the pieces, layers and heads of one kind of attention."""
        if not shown:
            raise gr.Error("Take a sentence apart first.", print_exception=False)
        translation = self.space.translation(shown["model"], shown["line"], BEAMS)
        layers, heads = shape_of(translation, checked_kind(kind))
        tokens = translation.source_tokens if kind == "encoder" else translation.target_tokens
        label = "Source piece: pick one to see what it reads" if kind == "encoder" else PIECE
        return (
            gr.Radio(choices=[(token, n) for n, token in enumerate(tokens)], value=0, label=label, visible=True),  # type: ignore[arg-type]
            gr.Dropdown(choices=[(str(n + 1), n) for n in range(layers)], value=layers - 1, visible=layers > 1),
            gr.Dropdown(choices=[(str(n + 1), n) for n in range(heads)], value=0, visible=heads > 1),
        )

    def show_step(self, shown: dict | None, position: int, kind: str, layer: int, head: int) -> str:
        """Give the steps of another word, layer, head or attention."""
        if not shown:
            raise gr.Error("Take a sentence apart first.", print_exception=False)
        return self.steps(shown["model"], shown["line"], position, layer, head, kind)

    def steps(self, name: str, line: str, position: int, layer: int, head: int, kind: str) -> str:
        """Write the steps of one piece."""
        translation = self.space.translation(name, line, BEAMS)
        return drawn(steps_html, self.space.models[name], translation, position, layer=layer, head=head, kind=kind)
