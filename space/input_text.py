# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A text with blanks that BERT fills in, and a text that GPT goes on with."""

import math
import re
from typing import Any

import gradio as gr
import torch
from links import Asked, Link
from service import LONGEST_SENTENCE, Other, Space, checked, clean, drawn, notice
from texts import BEGINNINGS, BLANKS, SENSES, explanation

from hf_attn.data import readable_tokens
from hf_attn.data.text import typed_ids
from hf_attn.visualization import text_attention_html, text_steps_html, word_html
from hf_attn.visualization.page import escape
from hf_attn.visualization.steps_text import read_text

BLANK, MOST_BLANKS = "_{3,}", 8
PIECES, MOST_PIECES = 20, 40  # that are written


def room(other: Other, most: int) -> int:
    """Give how many pieces a model may read, at most so many."""
    config = other.model.config
    return min(most, config.max_position_embeddings - getattr(config, "position_offset", 0))


def within(other: Other, ids: list[int], limit: int) -> tuple[list[int], list[str]]:
    """Cut a text to so many pieces, but for its end piece; give it and notices."""
    if len(ids) <= limit:
        return ids, []
    end = ids[-1:] if ids[-1] == other.processor.eos_token_id else []
    kept = ids[: limit - len(end)]
    for _ in range(3):  # bytes of a letter whose last byte is cut off
        if other.processor.decode(kept).endswith("\ufffd"):
            kept = kept[:-1]
    read = other.processor.decode(kept, skip_special_tokens=True)
    return kept + end, [f"The model read {limit} pieces, up to “{read[-20:]}”; what comes after was cut off."]


def spelled_out(other: Other, ids: list[int]) -> list[str]:
    """Say that a model reads bytes, as its tokenizer spells characters that it has never seen."""
    special = other.processor.all_special_ids
    tokens = other.processor.convert_ids_to_tokens([number for number in ids if number not in special])
    found = [token for token in tokens if re.fullmatch("<0x[0-9A-F]{2}>", token)]
    if 2 * len(found) <= len(tokens):
        return []
    return ["The model has never seen most of these characters: it reads the bytes that they are stored in."]


def with_blanks(other: Other, text: object) -> tuple[list[int], list[str]]:
    """Read a text in which ___ is a blank; give its pieces, the mask in each blank, and notices."""
    line, notices = clean(text)
    ids, cut = within(other, typed_ids(other.processor, line, BLANK), room(other, LONGEST_SENTENCE))
    blanks, notices = ids.count(other.processor.mask_token_id), notices + cut + spelled_out(other, ids)
    if not blanks:
        said = ["There is no blank: write ___ (three underscores) where something should be filled in.", *notices]
        raise gr.Error(escape(" ".join(said)), print_exception=False)
    if blanks > MOST_BLANKS:
        raise gr.Error(f"There are {blanks} blanks; {MOST_BLANKS} at most are filled in.", print_exception=False)
    return ids, notices


def filled(other: Other, ids: list[int]) -> tuple[str, list[float]]:
    """Put the likeliest piece into each blank, each for itself; give the text and their probabilities."""
    probabilities = read_text(other.model, other.processor, ids).outputs.logits[0].float().softmax(dim=-1)
    best, chosen = probabilities.max(dim=-1)
    blanks = [place for place, number in enumerate(ids) if number == other.processor.mask_token_id]
    whole = [int(chosen[place]) if place in blanks else number for place, number in enumerate(ids)]
    return other.processor.decode(whole, skip_special_tokens=True), [float(best[place]) for place in blanks]


def continued(other: Other, text: object, pieces: object) -> tuple[list[int], int, list[str]]:
    """Go on with a text, always by the likeliest piece.

    Args:
        other: a model that goes on with texts.
        text: what a visitor typed.
        pieces: how many to write at most.

    Returns:
        All pieces, how many of them were given, and notices.
    """
    line, notices = clean(text)
    wanted = checked("Pieces", pieces, 1, MOST_PIECES)
    most = room(other, LONGEST_SENTENCE + MOST_PIECES)
    ids, cut = within(other, typed_ids(other.processor, line), min(LONGEST_SENTENCE, most - 1))
    free = min(wanted, most - len(ids))
    if free < wanted:
        cut.append(f"The model reads at most {most} pieces in all, so it could write {free} at most.")
    cut += spelled_out(other, ids)
    inputs = torch.tensor([ids])
    search: dict[str, Any] = {"do_sample": False, "num_beams": 1, "max_new_tokens": free}
    written = other.model.generate(inputs, attention_mask=torch.ones_like(inputs), **search)
    return written[0].tolist(), len(ids), notices + cut


class Apart:
    """The part of a tab that takes one piece of a text apart.

    Args:
        other: the model.
    """

    def __init__(self, other: Other):
        self.other = other

    def lay_out(self, name: str, private: dict[str, Any]) -> None:
        """Lay it out; `name` tells its elements from those of another tab."""
        config = self.other.model.config
        self.ids = gr.State(None)
        with gr.Accordion("One piece, step by step", open=False):
            self.piece = gr.Radio([], label="Piece: pick one to see how it reads the others", elem_id=f"{name}-piece")
            with gr.Row():
                layer, head = (
                    gr.Dropdown([(str(n + 1), n) for n in range(count)], value=first, label=label, min_width=100)
                    for label, count, first in (
                        ("Layer", config.num_hidden_layers, config.num_hidden_layers - 1),
                        ("Head", config.num_attention_heads, 0),
                    )
                )
            self.steps = gr.HTML(elem_id=f"{name}-steps", apply_default_css=False)
        choices = [self.piece, layer, head]
        # a session that was forgotten is told so, not that its choices are no longer there
        raw: dict[str, Any] = {"preprocess": False, **private}
        gr.on([one.input for one in choices], self.show, [self.ids, *choices], self.steps, **raw)

    def offer(self, ids: list[int]) -> tuple[list[int], gr.Radio, str]:
        """Offer the pieces of a text; nothing is taken apart before one is chosen."""
        choices = [(token, place) for place, token in enumerate(readable_tokens(self.other.processor, ids))]
        return ids, gr.Radio(choices=choices, value=None), ""  # type: ignore[arg-type]

    def show(self, ids: list[int] | None, piece: int | None, layer: int, head: int) -> str:
        """Write the steps of one piece."""
        if ids is None:
            raise gr.Error("There is no text yet: press the button above.", print_exception=False)
        if piece is None:
            return ""
        return drawn(text_steps_html, self.other.model, self.other.processor, ids, piece, layer=layer, head=head)


class FillInTab:
    """A text with blanks.

    Args:
        space: the models, with one that fills in.
    """

    def __init__(self, space: Space):
        self.other = space.need("fill-in")
        self.apart = Apart(self.other)

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("fill_in"))
        text = gr.Textbox(BLANKS[0], label="Text, with ___ for each blank", lines=2, max_lines=6, elem_id="blank-text")
        examples = gr.Examples([[one] for one in BLANKS], [text], label="Examples", api_visibility="private")
        button = gr.Button("Fill in", variant="primary")
        notices = gr.HTML(visible=False, elem_id="blank-notices")
        results = gr.HTML(elem_id="filled", apply_default_css=False)
        self.apart.lay_out("filled", private)
        outputs = [notices, results, self.apart.ids, self.apart.piece, self.apart.steps]
        link = Link(tab, [text], {"text": text}, [text], lambda asked: [asked.text()])
        show: dict[str, Any] = {"fn": self.show, "inputs": [text], "outputs": outputs, "js": link.asking, **private}
        shown = gr.on([button.click, text.submit, link.visited.change], **show)
        link.follow(shown, examples.load_input_event.then(**show))
        with gr.Accordion("One word, two meanings", open=False):
            self.lay_out_senses(private)
        return link

    def lay_out_senses(self, private: dict[str, Any]) -> None:
        """Lay out the comparison of a word in several sentences."""
        gr.HTML(explanation("senses"))
        word, *others = SENSES[0]
        with gr.Row():
            boxes = [gr.Textbox(word, label="Word", max_lines=1, min_width=140, elem_id="sense-word")]
            boxes += [
                gr.Textbox(one, label=f"Sentence {number}", max_lines=3, min_width=220, elem_id=f"sentence-{number}")
                for number, one in enumerate(others, start=1)
            ]
        examples = gr.Examples(SENSES, boxes, label="Examples", api_visibility="private")
        button = gr.Button("Compare")
        notices = gr.HTML(visible=False)
        results = gr.HTML(elem_id="senses", apply_default_css=False)
        compare: dict[str, Any] = {"fn": self.compare, "inputs": boxes, "outputs": [notices, results], **private}
        gr.on([button.click, *[box.submit for box in boxes]], **compare)
        examples.load_input_event.then(**compare)

    def show(self, text: str) -> tuple:
        """Fill in; give notices, the text with its picture, and the pieces that can be taken apart."""
        ids, notices = with_blanks(self.other, text)
        whole, probabilities = filled(self.other, ids)
        numbers = ", ".join(f"{one:.2f}" for one in probabilities)
        page = text_attention_html(self.other.model, self.other.processor, ids)
        answer = (
            f'<div class="hf-attn-results"><section><p class="translation" dir="auto" lang="">{escape(whole)}</p>'
            f'<p class="small">Each blank with its likeliest piece; probability {numbers}.</p></section></div>'
        )
        return notice(notices), answer + page._repr_html_(), *self.apart.offer(ids)

    def compare(self, word: str, first: str, second: str, third: str) -> tuple[gr.HTML, str]:
        """Compare a word in two sentences, or in three."""
        lines, notices = [], []
        for name, text in (("word", word), ("first sentence", first), ("second sentence", second), ("third", third)):
            if name == "third" and not str(text).strip():
                continue
            line, changed = clean(text, name)
            lines.append(line)
            notices += changed
            count, most = len(typed_ids(self.other.processor, line)), room(self.other, LONGEST_SENTENCE)
            if count > most:
                raise gr.Error(f"The {name} has {count} pieces; the model reads at most {most}.", print_exception=False)
        return notice(notices), drawn(word_html, self.other.model, self.other.processor, lines[0], lines[1:])


class ContinueTab:
    """A text that goes on.

    Args:
        space: the models, with one that goes on with texts.
    """

    def __init__(self, space: Space):
        self.other = space.need("continue")
        self.apart = Apart(self.other)

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("continue"))
        with gr.Row():
            with gr.Column(scale=3, min_width=280):
                text = gr.Textbox(BEGINNINGS[0], label="Beginning", lines=2, max_lines=6, elem_id="beginning")
                examples = gr.Examples(
                    [[one] for one in BEGINNINGS], [text], label="Examples", api_visibility="private"
                )
            pieces = gr.Slider(1, MOST_PIECES, value=PIECES, step=1, label="Pieces to write", scale=2, min_width=240)
        button = gr.Button("Go on", variant="primary")
        notices = gr.HTML(visible=False, elem_id="continue-notices")
        results = gr.HTML(elem_id="continued", apply_default_css=False)
        self.apart.lay_out("continued", private)
        outputs = [notices, results, self.apart.ids, self.apart.piece, self.apart.steps]
        inputs = [text, pieces]
        link = Link(tab, inputs, {"text": text, "pieces": pieces}, inputs, self.opened)
        events = [button.click, text.submit, pieces.input, link.visited.change]
        show: dict[str, Any] = {"fn": self.show, "inputs": inputs, "outputs": outputs, "js": link.asking, **private}
        link.follow(gr.on(events, **show), examples.load_input_event.then(**show))
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the values of a link: the beginning, and how much to write."""
        return [asked.text(), asked.number("pieces", 1, MOST_PIECES)]

    def show(self, text: str, pieces: int) -> tuple:
        """Go on; give notices, the text with its picture, and the pieces that can be taken apart."""
        ids, given, notices = continued(self.other, text, pieces)
        tokenizer, written = self.other.processor, ids[given:]
        logits = read_text(self.other.model, tokenizer, ids).outputs.logits[0, given - 1 : -1].float()
        chosen = logits.log_softmax(dim=-1).gather(-1, torch.tensor(written)[:, None])
        ended = ", the last of them the end of the text" if written[-1] == tokenizer.eos_token_id else ""
        page = text_attention_html(self.other.model, tokenizer, ids)
        before, after = (tokenizer.decode(part, skip_special_tokens=True) for part in (ids[:given], written))
        answer = (
            f'<div class="hf-attn-results"><section><p class="translation" dir="auto" lang="">{escape(before)}'
            f"<b>{escape(after)}</b></p>"
            f'<p class="small">{len(written)} pieces written{ended}; probability of a piece (geometric mean): '
            f"{math.exp(float(chosen.mean())):.2f}</p></section></div>"
        )
        return notice(notices), answer + page._repr_html_(), *self.apart.offer(ids)
