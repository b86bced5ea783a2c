# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space: translate, see the attention behind every word, and take one word apart step by step.

    python space/app.py

serves the models that lie in `models/` beside this file, or in the folder that the environment variable SPACE_MODELS
names. Their names say what they do: `en-fr-bahdanau` translates English to French with Bahdanau's network. Nothing else
is ever read: no path, file or Hub id comes from a visitor, and no request leaves the machine.
"""

import functools
import inspect
import json
import math
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", GRADIO_ANALYTICS_ENABLED="False", TOKENIZERS_PARALLELISM="false")

import gradio as gr  # noqa: E402
import gradio.themes  # noqa: E402
import torch  # noqa: E402
from gradio.events import api  # noqa: E402

from hf_attn.inference import Translation, Translator  # noqa: E402
from hf_attn.visualization import alignment_html, steps_html  # noqa: E402
from hf_attn.visualization.page import escape  # noqa: E402
from hf_attn.visualization.steps import FAMILIES  # noqa: E402

MODELS = Path(os.environ.get("SPACE_MODELS", Path(__file__).parent / "models"))
LANGUAGES = {"en": "English", "fr": "French", "it": "Italian", "ko": "Korean"}
ARCHITECTURES = {
    "none": "No attention (2014)",
    "bahdanau": "Bahdanau (2015)",
    "luong": "Luong (2015)",
    "gnmt": "GNMT (2016)",
    "convs2s": "ConvS2S (2017)",
    "transformer": "Transformer (2017)",
}
EXAMPLES = [
    "The old teacher reads a long letter in the garden.",
    "We did not see the three red books.",
    "Where is the girl?",
]
LONGEST_TEXT, LONGEST_SENTENCE = 400, 120  # characters; pieces, of what is read and of what is written
MOST_MODELS, MOST_BEAMS, BEAMS = 3, 8, 4
AT_ONCE = 2  # computations at a time, each on one core
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")  # not the joiners that some scripts need
CSS = """
.gradio-container { max-width: 1500px !important; }
.gradio-container .app { padding: 16px clamp(10px, 3vw, 32px); }
#results .html-container, #steps .html-container { padding: 0; }
.hf-attn-results { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); }
.hf-attn-results section { min-width: 0; border: 1px solid var(--border-color-primary); border-radius: 10px;
  padding: 12px 4px 4px; background: var(--background-fill-primary); }
.hf-attn-results h3, .hf-attn-results p, .hf-attn-results ul { margin: 0 10px 6px; color: var(--body-text-color); }
.hf-attn-results h3 { font-size: 15px; font-weight: 600; }
.hf-attn-results .translation { font-size: 20px; overflow-wrap: anywhere; }
.hf-attn-results .small { font-size: 13px; opacity: 0.75; }
.hf-attn-results .flags { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 6px; }
.hf-attn-results .flags li { border: 1px solid currentcolor; border-radius: 999px; padding: 1px 10px; font-size: 13px;
  color: #b42318; overflow-wrap: anywhere; }
.dark .hf-attn-results .flags li { color: #fda29b; }
iframe { color-scheme: light; }
.dark iframe { color-scheme: dark; }
"""
LAUNCH: dict[str, Any] = {
    "theme": gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
    "css": CSS,
    "footer_links": ["api"],
    "max_file_size": 0,  # nothing is uploaded
    "enable_monitoring": False,
    "run_history": False,
    "ssr_mode": False,
    "pwa": False,
    "share": False,
    "mcp_server": False,
}


def load_models(folder: Path) -> dict[str, Translator]:
    """Open every model in a folder.

    Args:
        folder: holds one folder for each model, e.g. `en-fr-bahdanau`; need not exist.

    Returns:
        Name and model of each that translates, in the order of ARCHITECTURES within each pair of languages.

    Raises:
        ValueError: if a model's name does not say what it translates.
    """
    names = [path.parent.name for path in folder.glob("*/config.json") if translates(path)]
    for name in names:
        if not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}-[a-z0-9_-]+", name):
            raise ValueError(f"model folder is {name!r}; its name must be languages and architecture: en-fr-bahdanau")
    order = list(ARCHITECTURES)
    names.sort(key=lambda name: (pair_of(name), order.index(part) if (part := architecture_of(name)) in order else 99))
    models = {name: Translator(folder / name, device="cpu") for name in names}
    for translator in models.values():
        tokenizer = translator.tokenizer
        tokenizer.model_max_length = min(tokenizer.model_max_length, LONGEST_SENTENCE)
    return models


def translates(config: Path) -> bool:
    """Tell whether a configuration is that of a translation model; the folder may hold others."""
    described = json.loads(config.read_text(encoding="utf-8"))
    return bool(described.get("is_encoder_decoder")) and described.get("model_type") != "vision-encoder-decoder"


def pair_of(name: str) -> str:
    """Give the languages in a model's name: "en-fr"."""
    return "-".join(name.split("-")[:2])


def architecture_of(name: str) -> str:
    """Give the architecture in a model's name: "bahdanau"."""
    return name.split("-", 2)[2]


def language_name(pair: str) -> str:
    """Spell out a pair of languages."""
    return " → ".join(LANGUAGES.get(code, code) for code in pair.split("-"))


def language_codes(name: str) -> str:
    """Give the languages of a model in short: "EN → FR"."""
    return " → ".join(pair_of(name).upper().split("-"))


def architecture_name(name: str) -> str:
    """Spell out the architecture of a model."""
    return ARCHITECTURES.get(architecture_of(name), architecture_of(name))


def clean(text: object) -> tuple[str, list[str]]:
    """Make one line of what somebody typed, no longer than LONGEST_TEXT.

    Args:
        text: what came in.

    Returns:
        The line, and sentences that say what was changed.

    Raises:
        gr.Error: if it is no text, or nothing is left of it.
    """
    if not isinstance(text, str):
        raise gr.Error(f"The text is {type(text).__name__}; it must be a string.", print_exception=False)
    line = " ".join(INVISIBLE.sub("", CONTROLS.sub(" ", text[: 20 * LONGEST_TEXT])).split())
    if not line:
        raise gr.Error("There is nothing to translate: type a sentence.", print_exception=False)
    notices = []
    if "\n" in text.strip():
        notices.append("The lines were read as one: write one sentence at a time.")
    if len(line) > LONGEST_TEXT or len(text) > 20 * LONGEST_TEXT:
        kept = line[:LONGEST_TEXT].rsplit(" ", 1)[0] if " " in line[:LONGEST_TEXT] else line[:LONGEST_TEXT]
        notices.append(
            f"Only the first {len(kept)} of {len(text):,} characters were translated, up to “{kept[-20:]}”; "
            f"what comes after was cut off."
        )
        line = kept
    return line, notices


def unread(translation: Translation) -> list[str]:
    """Say what the model did not read, if anything: a tokenizer may need many pieces for few characters."""
    source = unicodedata.normalize("NFC", translation.source)
    end = max((span[1] for span in translation.source_spans if span), default=0)
    if end >= len(source):
        return []
    return [f"The model read {LONGEST_SENTENCE} pieces, up to “{source[:end][-20:]}”; what comes after was cut off."]


def checked(name: str, value: object, low: int, high: int) -> int:
    """Give a whole number within its limits, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value not in range(low, high + 1):
        raise gr.Error(f"{name} must be a whole number from {low} to {high}.", print_exception=False)
    return int(value)


class Space:
    """What the page and the endpoints compute.

    Args:
        models: name and model.
    """

    def __init__(self, models: dict[str, Translator]):
        self.models = models
        self.pairs = list(dict.fromkeys(map(pair_of, models)))
        # a result depends on what was asked alone; the sentence that the page opens with is asked for most
        self.translation = functools.lru_cache(maxsize=32)(self._translation)

    def _translation(self, model: str, line: str, num_beams: int) -> Translation:
        return self.models[model](line, num_beams=num_beams, max_new_tokens=LONGEST_SENTENCE)

    def choose(self, model: object) -> str:
        """Give the name of a model that is there, or refuse it."""
        if not isinstance(model, str) or model not in self.models:
            there = ", ".join(self.models) or "none"
            raise gr.Error(f"There is no such model; there are: {there}.", print_exception=False)
        return model

    def models_of(self, pair: str) -> list[tuple[str, str]]:
        """List what translates a pair of languages: label and name."""
        return [(architecture_name(name), name) for name in self.models if pair_of(name) == pair]

    # The endpoints. Their docstrings are the documentation that visitors see.

    def translate(self, text: str, model: str, num_beams: int = BEAMS) -> dict:
        """Translate one sentence.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            `source`, `text`, pieces of both with their log-probabilities, `score`, `truncated`, `failures` (what looks
            wrong), `notices` (what was changed in the text).
        """
        name = self.choose(model)
        line, notices = clean(text)
        translation = self.translation(name, line, checked("num_beams", num_beams, 1, MOST_BEAMS))
        failures = [{"kind": flag.kind, "detail": flag.detail} for flag in self.failures(name, translation)]
        notices += unread(translation)
        return {"model": name, **translation.to_dict(), "failures": failures, "notices": notices}

    def attention(self, text: str, model: str, num_beams: int = BEAMS) -> dict:
        """Translate one sentence and give all attention weights.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            What /translate returns, and `cross_attentions`, `encoder_attentions`, `decoder_attentions`: lists [layer]
            [head][query piece][key piece], null where the model has no such attention; `alignment`: the weights between
            words that the model recommends, with `source_words`, `target_words` and `description`.
        """
        result = self.translate(text, model, num_beams)
        translation = self.translation(model, result["source"], int(num_beams))
        for kind in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
            weights = getattr(translation, kind)
            result[kind] = None if weights is None else weights.double().mul(1e6).round().div(1e6).tolist()
        result["alignment"] = None
        if translation.cross_attentions is not None:
            words = translation.alignment()
            result["alignment"] = {
                "source_words": words.source_words,
                "target_words": words.target_words,
                "weights": words.weights.double().mul(1e6).round().div(1e6).tolist(),
                "description": words.description,
            }
        return result

    def failures(self, name: str, translation: Translation) -> list:
        """List what looks wrong with a translation."""
        source, target = pair_of(name).split("-")
        return translation.failures(source_lang=source, target_lang=target)

    # The page.

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

    def take_apart(self, text: str, model: str) -> tuple:
        """Translate for the second tab; give notices, what was taken apart, menus and the first word's steps."""
        name = self.choose(model)
        line, notices = clean(text)
        translation = self.translation(name, line, BEAMS)
        pieces = [(token, number) for number, token in enumerate(translation.target_tokens)]
        layers, heads = (1, 1) if translation.cross_attentions is None else translation.cross_attentions.shape[:2]
        layer, own = layers - 1, translation.decoder_attentions is not None
        return (
            notice(notices + unread(translation)),
            {"model": name, "line": line},
            gr.Radio(choices=pieces, value=0, visible=True),  # type: ignore[arg-type]
            gr.Radio(value="cross", visible=own),
            gr.Dropdown(choices=[(str(n + 1), n) for n in range(layers)], value=layer, visible=layers > 1),
            gr.Dropdown(choices=[(str(n + 1), n) for n in range(heads)], value=0, visible=heads > 1),
            self.steps(name, line, 0, layer, 0, "cross"),
        )

    def show_step(self, shown: dict | None, position: int, kind: str, layer: int, head: int) -> str:
        """Give the steps of another word, layer, head or attention."""
        if not shown:
            raise gr.Error("Take a sentence apart first.", print_exception=False)
        return self.steps(shown["model"], shown["line"], position, layer, head, kind)

    def steps(self, name: str, line: str, position: int, layer: int, head: int, kind: str) -> str:
        """Write the steps of one piece."""
        translation = self.translation(name, line, BEAMS)
        try:
            page = steps_html(self.models[name], translation, position, layer=layer, head=head, kind=kind)
        except ValueError as error:
            raise gr.Error(escape(str(error)), print_exception=False) from error
        return page._repr_html_()


def notice(sentences: list[str]) -> gr.HTML:
    """Say what a visitor should know."""
    return gr.HTML(f'<p role="status">{escape(" ".join(sentences))}</p>', visible=bool(sentences))


def build(folder: Path) -> gr.Blocks:
    """Build the page.

    Args:
        folder: where the models lie.

    Returns:
        The app, to be launched with the options LAUNCH.
    """
    torch.set_num_threads(1)
    models = load_models(folder)
    space = Space(models)
    one_queue: dict[str, Any] = {"concurrency_limit": AT_ONCE, "concurrency_id": "model"}
    private: dict[str, Any] = {**one_queue, "api_visibility": "private"}
    with gr.Blocks(title="Attention you can see", analytics_enabled=False) as demo:
        gr.HTML(
            "<h1>Attention you can see</h1><p>Translation models from 2014 to 2017, small enough to look inside: which "
            "source words each word was made of, and the arithmetic behind it, with the numbers of the real model.</p>"
        )
        if space.models:
            with gr.Tab("Translate"):
                translate_tab(demo, space, private)
            known = [name for name, translator in models.items() if translator.model.config.model_type in FAMILIES]
            if known:
                with gr.Tab("Step by step"):
                    steps_tab(demo, space, known, private)
        else:
            gr.HTML(
                '<p role="alert">There are no models here yet. This Space serves the models in '
                "its folder <code>models</code>, for example <code>models/en-fr-bahdanau</code>.</p>"
            )
        for endpoint in (space.translate, space.attention):
            name, description = endpoint.__name__, inspect.getdoc(endpoint)
            api(endpoint, api_name=name, api_description=description, **one_queue)
    demo.queue(max_size=64)
    return demo


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


def steps_tab(demo: gr.Blocks, space: Space, known: list[str], private: dict[str, Any]) -> None:
    """Lay out the second tab, for the models whose steps are known."""
    names = [(f"{language_codes(name)}, {architecture_name(name)}", name) for name in known]
    first = next((name for _, name in names if architecture_of(name) == "bahdanau"), names[0][1])
    with gr.Row():
        text = gr.Textbox(EXAMPLES[0], label="Text", lines=2, max_lines=6, scale=3, min_width=280, elem_id="step-text")
        model = gr.Dropdown(names, value=first, label="Model", scale=2, min_width=280)
    button = gr.Button("Take apart", variant="primary")
    notices = gr.HTML(visible=False, elem_id="step-notices")
    shown = gr.State(None)
    piece = gr.Radio([], label="Output piece: pick one to see how it came about", visible=False, elem_id="piece")
    with gr.Row():
        kind = gr.Radio(
            [("to the source", "cross"), ("to what it has read", "decoder")],
            value="cross",
            label="Attention",
            visible=False,
        )
        layer = gr.Dropdown([], label="Layer", visible=False, min_width=100)
        head = gr.Dropdown([], label="Head", visible=False, min_width=100)
    steps = gr.HTML(elem_id="steps", apply_default_css=False)

    begin: dict[str, Any] = {
        "fn": space.take_apart,
        "inputs": [text, model],
        "outputs": [notices, shown, piece, kind, layer, head, steps],
        **private,
    }
    gr.on([button.click, text.submit, model.input], **begin)
    choices = [piece, kind, layer, head]
    gr.on([choice.input for choice in choices], space.show_step, [shown, *choices], steps, **private)
    demo.load(**begin)


if __name__ == "__main__":
    build(MODELS).launch(**LAUNCH)
