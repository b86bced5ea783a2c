# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that computes BLEU and perplexity by hand."""

import math
from typing import Any

import gradio as gr
from links import Asked, Link
from service import Space, architecture_name, clean, language_codes, notice, unread
from texts import LECTURE, explanation

from hf_attn.data.words import text_words
from hf_attn.evaluation.from_scratch import chain_rule
from hf_attn.studies.perplexity_bleu import sure_of
from hf_attn.visualization import Factors, metrics_html

SURE, CONFIDENCE, VOCABULARY = "sure", 0.5, 10_000
SURE_LABEL = "a translator half sure of its own words"


class MetricsTab:
    """Two translations, two scores.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("metrics"))
        names = [(SURE_LABEL, SURE)]
        names += [(f"{language_codes(name)}, {architecture_name(name)}", name) for name in self.space.models]
        with gr.Row():
            with gr.Column(min_width=280):
                source = gr.Textbox(LECTURE["source"], label="Source (for perplexity under a model)")
                reference = gr.Textbox(LECTURE["reference"], label="Reference", elem_id="reference")
            with gr.Column(min_width=280):
                first = gr.Textbox(LECTURE["first"], label="Translation 1", elem_id="first")
                second = gr.Textbox(LECTURE["second"], label="Translation 2", elem_id="second")
        whose = gr.Dropdown(names, value=SURE, label="Perplexity under")
        button = gr.Button("Compute", variant="primary")
        notices = gr.HTML(visible=False)
        results = gr.HTML(elem_id="metrics", apply_default_css=False)
        boxes = {"text": source, "reference": reference, "first": first, "second": second}
        inputs = [*boxes.values(), whose]

        def opened(asked: Asked) -> list[Any]:
            texts = [asked.text(name, empty=name == "text") for name in boxes]
            return [*texts, asked.models[0] if asked.models else gr.skip()]

        link = Link(tab, inputs, {**boxes, "models": whose}, inputs, opened)
        events = [button.click, whose.input, link.visited.change, *[box.submit for box in boxes.values()]]
        link.follow(gr.on(events, self.show, inputs, [notices, results], js=link.asking, **private))
        return link

    def show(self, source: str, reference: str, first: str, second: str, whose: str) -> tuple[gr.HTML, str]:
        """Compute both scores of both translations."""
        texts, notices = [], []
        for text, name in ((reference, "reference"), (first, "first translation"), (second, "second translation")):
            line, changed = clean(text, name)
            texts.append(text_words(line))
            notices += changed
        right, *hypotheses = texts
        if whose == SURE:
            factors = [
                Factors(right, chain_rule(right, sure_of(words, CONFIDENCE, VOCABULARY))) for words in hypotheses
            ]
            told = (
                f"A translator that gives {CONFIDENCE:.0%} to its own word at each step, and the rest to the other "
                f"{VOCABULARY - 1:,} words alike, asked for the words of the reference."
            )
        else:
            name = self.space.choose(whose)
            line, changed = clean(source, "source")
            notices += changed
            scored = self.space.models[name].score(
                [line] * 2, [clean(first)[0], clean(second)[0]], return_attention=False
            )
            notices += [
                *self.space.remarks(name, scored[0]),
                *[sentence for one in scored for sentence in unread(one, target=True)],
            ]
            factors = [Factors(one.target_tokens, list(map(math.exp, one.token_log_probs))) for one in scored]
            told = (
                f"{architecture_name(name)}, {language_codes(name)}: the pieces of the translation, given the source."
            )
        page = metrics_html(right, hypotheses, factors=factors, factors_from=told)
        return notice(list(dict.fromkeys(notices))), page._repr_html_()
