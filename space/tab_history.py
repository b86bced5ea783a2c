# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab that sends one sentence through all architectures, and lengthens it."""

import math
from typing import Any

import gradio as gr
from links import Asked, Link
from service import Space, architecture_name, checked, clean, language_name, notice, pair_of, unread
from texts import CLAUSES, EXAMPLES, REFERENCES, explanation

from hf_attn.data.words import text_words
from hf_attn.evaluation.from_scratch import clipped_matches
from hf_attn.visualization import Entry, history_html

KNOWN, LIKELY = "share of the words of a known translation that the model wrote", "probability of a piece"


def lengthen(text: str, clauses: list[str]) -> str:
    """Put clauses behind a sentence, before the mark at its end."""
    end = text[-1] if text[-1] in ".!?" else ""
    return " ".join([text[: len(text) - len(end)].rstrip(), *clauses]) + end


class HistoryTab:
    """One sentence, all architectures.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space
        self.pairs = [pair for pair in space.pairs if len(space.models_of(pair)) > 1 and pair.startswith("en-")]

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("history"))
        with gr.Row():
            text = gr.Textbox(EXAMPLES[0], label="Text", lines=2, max_lines=6, scale=3, min_width=280)
            with gr.Column(scale=2, min_width=280):
                pair = gr.Dropdown([(language_name(code), code) for code in self.pairs], label="Languages")
                added = gr.Slider(0, len(CLAUSES), value=0, step=1, label="Clauses added to the sentence")
        button = gr.Button("Translate with all", variant="primary")
        notices = gr.HTML(visible=False)
        results = gr.HTML(elem_id="history", apply_default_css=False)
        inputs = [text, pair, added]
        link = Link(tab, inputs, {"text": text, "models": pair, "clauses": added}, inputs, self.opened)
        events = [button.click, text.submit, pair.input, added.input, link.visited.change]
        link.follow(gr.on(events, self.show, inputs, [notices, results], js=link.asking, **private))
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the values of a link: text, languages and how many clauses are added."""
        known = [pair for pair in map(pair_of, asked.models) if pair in self.pairs]
        return [asked.text(), known[0] if known else gr.skip(), asked.number("clauses", 0, len(CLAUSES))]

    def show(self, text: str, pair: str, added: int) -> tuple[gr.HTML, str]:
        """Translate the sentence, and every shorter one, with each model."""
        line, notices = clean(text)
        count = checked("Clauses", added, 0, len(CLAUSES))
        names = [name for _, name in self.space.models_of(pair if pair in self.pairs else self.pairs[0])]
        lines = [lengthen(line, [clause for clause, _ in CLAUSES[:number]]) for number in range(count + 1)]
        entries, growth = [], {}
        known = line in REFERENCES and pair_of(names[0]) == "en-fr"
        for name in names:
            translations = [self.space.timed(name, one) for one in lines]
            translation, seconds = translations[-1]
            flags = [flag.kind.replace("_", " ") for flag in self.space.failures(name, translation)]
            title = architecture_name(name)
            entries.append(Entry(title, translation, seconds, list(dict.fromkeys(flags))))
            growth[title] = [
                (len(text_words(one)), self.reached(result, line, number) if known else result_probability(result))
                for number, (one, (result, _)) in enumerate(zip(lines, translations, strict=True))
            ]
            notices += [*self.space.remarks(name, translations[0][0]), *unread(translation)]
        page = history_html(entries, growth, KNOWN if known else LIKELY)
        return notice(list(dict.fromkeys(notices))), page._repr_html_()

    def reached(self, translation: Any, line: str, number: int) -> float:
        """Give the share of the reference's words that a translation has."""
        reference = lengthen(REFERENCES[line], [clause for _, clause in CLAUSES[:number]])
        words = [word.lower() for word in text_words(reference)]
        found, total = clipped_matches(words, [[word.lower() for word in text_words(translation.text)]], 1)
        return found / total


def result_probability(translation: Any) -> float:
    """Give the geometric mean of the probabilities of the pieces."""
    log_probs = translation.token_log_probs
    return math.exp(sum(log_probs) / max(len(log_probs), 1))
