# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What every tab of the Space needs: the models, what a visitor typed, and what is computed with both."""

import functools
import html
import json
import math
import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
import torch
from transformers import (
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoTokenizer,
)

from hf_attn.inference import Captioner, Translation, Translator, WhatIf, force_piece, hide_words, remove_heads
from hf_attn.visualization import HtmlPage
from hf_attn.visualization.page import escape

if TYPE_CHECKING:
    from checkpoints import Checkpoints

LANGUAGES = {"en": "English", "fr": "French", "it": "Italian", "ko": "Korean"}
LETTERS = {"en": "LATIN", "fr": "LATIN", "it": "LATIN", "ko": "HANGUL"}  # how Unicode names them
ARCHITECTURES = {
    "none": "No attention (2014)",
    "bahdanau": "Bahdanau (2015)",
    "luong": "Luong (2015)",
    "gnmt": "GNMT (2016)",
    "convs2s": "ConvS2S (2017)",
    "transformer": "Transformer (2017)",
}
HEAD_KINDS = {
    "cross": "attention to the source",
    "decoder": "attention of the decoder to what it has read",
    "encoder": "attention of the encoder",
}
KINDS = [  # the same in menus
    ("to the source", "cross"),
    ("to what it has read", "decoder"),
    ("of the source to itself", "encoder"),
]
HEADS = {  # what a model that does not translate is good for
    ("attn-bert", "AttnBertForMaskedLM"): ("fill-in", AutoModelForMaskedLM, AutoTokenizer),
    ("attn-gpt", "AttnGptForCausalLM"): ("continue", AutoModelForCausalLM, AutoTokenizer),
    ("attn-vit", "AttnVitForImageClassification"): ("classify", AutoModelForImageClassification, AutoImageProcessor),
}
LONGEST_TEXT, LONGEST_SENTENCE = 400, 120  # characters; pieces, of what is read and of what is written
MOST_MODELS, MOST_BEAMS, BEAMS = 3, 8, 4
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")  # not the joiners that some scripts need


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
        limit_length(translator)
    return models


def limit_length(translator: Translator) -> None:
    """Let a translator read no more than LONGEST_SENTENCE pieces."""
    tokenizer = translator.tokenizer
    tokenizer.model_max_length = min(tokenizer.model_max_length, LONGEST_SENTENCE)


@dataclass(frozen=True)
class Other:
    """A model that does not translate.

    Attributes:
        name: its folder.
        kind: "fill-in", "continue", "classify" or "caption".
        model: the model, or the `Captioner` of one that describes pictures.
        processor: its tokenizer or image processor; None of a `Captioner`, which has its own.
    """

    name: str
    kind: str
    model: Any
    processor: Any


def load_others(folder: Path) -> dict[str, Other]:
    """Open the models in a folder that do not translate.

    Args:
        folder: holds one folder for each model; need not exist.

    Returns:
        Name and model of each that fills in, continues, classifies pictures or describes them, by name.
    """
    found = {}
    for path in sorted(folder.glob("*/config.json")):
        described: Any = read_config(path)
        name, model_type = path.parent.name, described.get("model_type")
        if model_type == "vision-encoder-decoder":
            found[name] = Other(name, "caption", Captioner(path.parent, device="cpu"), None)
        elif head := HEADS.get((model_type, "".join(described.get("architectures") or []))):
            kind, model_class, processor_class = head
            model = model_class.from_pretrained(path.parent, dtype=torch.float32).eval()
            found[name] = Other(name, kind, model, processor_class.from_pretrained(path.parent))
    return found


def read_config(config: Path) -> dict[str, Any]:
    """Read the configuration of a model; ValueError names the file that is none."""
    try:
        described = json.loads(config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{config} is no JSON: {error}") from error
    if not isinstance(described, dict):
        raise ValueError(f"{config} is no configuration of a model: it must be a JSON object")
    return described


def translates(config: Path) -> bool:
    """Tell whether a configuration is that of a translation model; the folder may hold others."""
    described = read_config(config)
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


def clean(text: object, name: str = "text") -> tuple[str, list[str]]:
    """Make one line of what somebody typed, no longer than LONGEST_TEXT.

    Args:
        text: what came in.
        name: what it is called if it is refused.

    Returns:
        The line, and sentences that say what was changed.

    Raises:
        gr.Error: if it is no text, or nothing is left of it.
    """
    if not isinstance(text, str):
        raise gr.Error(f"The {name} must be a string.", print_exception=False)
    line = " ".join(INVISIBLE.sub("", CONTROLS.sub(" ", text[: 20 * LONGEST_TEXT])).split())
    if not line:
        raise gr.Error(f"The {name} is empty: type a sentence.", print_exception=False)
    notices = []
    if "\n" in text.strip():
        notices.append("The lines were read as one: write one sentence at a time.")
    if len(line) > LONGEST_TEXT or len(text) > 20 * LONGEST_TEXT:
        kept = line[:LONGEST_TEXT].rsplit(" ", 1)[0] if " " in line[:LONGEST_TEXT] else line[:LONGEST_TEXT]
        notices.append(
            f"Only the first {len(kept)} of {len(text):,} characters were read, up to “{kept[-20:]}”; "
            f"what comes after was cut off."
        )
        line = kept
    return line, notices


def unread(translation: Translation, target: bool = False) -> list[str]:
    """Say what the model did not read of the source, or of a given target: a tokenizer may need many pieces for few
    characters."""
    text, spans = translation.source, translation.source_spans
    if target:
        text, spans = translation.text, translation.target_spans
    text, end = unicodedata.normalize("NFC", text), max((span[1] for span in spans if span), default=0)
    if end >= len(text):
        return []
    return [f"The model read {len(spans)} pieces, up to “{text[:end][-20:]}”; what comes after was cut off."]


def in_other_letters(text: str, language: str | None) -> bool:
    """Tell whether most letters of a text are none of those in which a language is written."""
    letters = [unicodedata.name(letter, "") for letter in text if letter.isalpha()]
    known = [letter for letter in letters if letter.startswith(LETTERS.get(language or "", ""))]
    return 2 * len(known) < len(letters)


def checked(name: str, value: object, low: int, high: int) -> int:
    """Give a whole number within its limits, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value not in range(low, high + 1):
        raise gr.Error(f"{name} must be a whole number from {low} to {high}.", print_exception=False)
    return int(value)


def numbers(name: str, given: object) -> list[int]:
    """Give whole numbers from 0, or refuse them."""
    if not isinstance(given, list) or not 0 < len(given) <= LONGEST_SENTENCE:
        raise gr.Error(f"{name} must be a list of 1 to {LONGEST_SENTENCE} whole numbers.", print_exception=False)
    return [checked(name, number, 0, 10**6) for number in given]


def checked_kind(kind: object) -> str:
    """Give a kind of attention, or refuse what is none."""
    if not isinstance(kind, str) or kind not in HEAD_KINDS:
        raise gr.Error(f"kind must be one of {', '.join(HEAD_KINDS)}.", print_exception=False)
    return kind


def refusal(error: Exception) -> gr.Error:
    """Make of what the package says to a wrong argument a sentence for visitors."""
    return gr.Error(f"{html.escape(str(error), quote=False)}.", print_exception=False)


def drawn(make: Callable[..., HtmlPage], *arguments: Any, **options: Any) -> str:
    """Draw a page; what the package refuses is said to the visitor."""
    try:
        return make(*arguments, **options)._repr_html_()
    except ValueError as error:
        raise refusal(error) from error


def to_lists(weights: torch.Tensor) -> list:
    """Give weights as lists for programs, rounded to 6 decimals."""
    return weights.double().mul(1e6).round().div(1e6).tolist()


class Space:
    """What the page and the endpoints compute; a visitor's text is cleaned before it comes here.

    Args:
        models: name and model of each translator.
        others: name and model of each that does not translate.
        checkpoints: what opens others by name, where the operator allows it.
    """

    def __init__(
        self,
        models: dict[str, Translator],
        others: dict[str, Other] | None = None,
        checkpoints: "Checkpoints | None" = None,
    ):
        self.models = models
        self.others = others or {}
        self.checkpoints = checkpoints
        self.pairs = list(dict.fromkeys(map(pair_of, models)))
        # a result depends on what was asked alone; the sentence that the page opens with is asked for most
        self.translation = functools.lru_cache(maxsize=32)(self._translation)
        self.beams = functools.lru_cache(maxsize=32)(self._beams)
        self.timed = functools.lru_cache(maxsize=128)(self._timed)

    def other(self, kind: str) -> Other | None:
        """Give the first model of a kind that does not translate."""
        return next((other for other in self.others.values() if other.kind == kind), None)

    def need(self, kind: str) -> Other:
        """Give the first model of a kind that does not translate, or say that there is none."""
        other = self.other(kind)
        if other is None:
            raise gr.Error("There is no model for this here.", print_exception=False)
        return other

    def translator(self, name: str) -> Translator:
        """Give a model of the Space, or a checkpoint that a visitor has opened."""
        if name in self.models or self.checkpoints is None:
            return self.models[self.choose(name)]
        return self.checkpoints.open(name, wait=False)  # a download of others would keep the models from computing

    def open(self, name: str) -> None:
        """Open a checkpoint for a visitor, where the operator allows it, or refuse it."""
        if self.checkpoints is None:
            self.choose(name)
        else:
            self.checkpoints.open(name)

    def _translation(self, model: str, line: str, num_beams: int) -> Translation:
        return self.translator(model)(line, num_beams=num_beams, max_new_tokens=LONGEST_SENTENCE)

    def _timed(self, model: str, line: str) -> tuple[Translation, float]:
        """Translate, and tell how many seconds it took."""
        start = time.perf_counter()
        return self._translation(model, line, BEAMS), time.perf_counter() - start

    def _beams(self, model: str, line: str, num_beams: int) -> list[Translation]:
        options: dict[str, Any] = {"num_beams": num_beams, "max_new_tokens": LONGEST_SENTENCE}
        found = self.translator(model)(line, num_return_sequences=num_beams, return_attention=False, **options)
        return found if isinstance(found, list) else [found]

    def choose(self, model: object) -> str:
        """Give the name of a model that is there, or refuse it."""
        if not isinstance(model, str) or model not in self.models:
            there = ", ".join(self.models) or "none"
            raise gr.Error(f"There is no such model; there are: {there}.", print_exception=False)
        return model

    def named(self, name: str) -> list[str]:
        """List the models that a name stands for: its own, or that of the languages that they translate."""
        return [model for model in self.models if name in (model, pair_of(model))]

    def models_of(self, pair: str) -> list[tuple[str, str]]:
        """List what translates a pair of languages: label and name."""
        return [(architecture_name(name), name) for name in self.models if pair_of(name) == pair]

    def hide(self, name: str, line: str, words: list[int], num_beams: int) -> tuple[WhatIf, str]:
        """Hide source words from the decoder; give what becomes of the translation, and a phrase for it."""
        translation = self.translation(name, line, num_beams)
        answer = self.ask(hide_words, name, translation, words, num_beams)
        hidden = ", ".join(f"“{translation.words().source_words[word]}”" for word in sorted(words))
        return answer, f"without attention to {hidden}"

    def remove(
        self, name: str, line: str, kind: str, layer: int, heads: list[int], num_beams: int
    ) -> tuple[WhatIf, str]:
        """Take away heads; give what becomes of the translation, and a phrase for it."""
        answer = self.ask(remove_heads, name, self.translation(name, line, num_beams), layer, heads, kind, num_beams)
        named = ", ".join(str(head + 1) for head in sorted(heads))
        return answer, f"without {HEAD_KINDS[kind]}, layer {layer + 1}, head {named}"

    def force(self, name: str, line: str, position: int, piece: int, num_beams: int) -> tuple[WhatIf, str]:
        """Write another piece; give what becomes of the translation, and a phrase for it."""
        translation = self.translation(name, line, num_beams)
        answer = self.ask(force_piece, name, translation, position, piece, num_beams)
        token = answer.after.target_tokens[position]
        log_prob = answer.after.token_log_probs[position]
        return (
            answer,
            f"with “{token}” (probability {math.exp(log_prob):.3f}) for “{translation.target_tokens[position]}”",
        )

    def ask(self, question: Callable, name: str, translation: Translation, *arguments: Any) -> WhatIf:
        """Ask what if; the last argument is the number of beams. A mistake of the visitor becomes a sentence."""
        *asked, num_beams = arguments
        try:
            options = {"num_beams": num_beams, "max_new_tokens": LONGEST_SENTENCE}
            return question(self.models[name], translation, *asked, **options)
        except (TypeError, ValueError) as error:
            raise refusal(error) from error

    def remarks(self, name: str, translation: Translation) -> list[str]:
        """Say what a model did not read of a source, and that it reads another language."""
        language = self.languages(name)[0]
        if not in_other_letters(translation.source, language):
            return unread(translation)
        said = f"The model reads {LANGUAGES[str(language)]}; most of this text is written in other letters."
        return [said, *unread(translation)]

    def failures(self, name: str, translation: Translation) -> list:
        """List what looks wrong with a translation."""
        source, target = self.languages(name)
        return translation.failures(source_lang=source, target_lang=target)

    def languages(self, name: str) -> tuple[str | None, str | None]:
        """Give the codes of the languages that a model reads and writes; nobody knows those of an opened checkpoint."""
        if name not in self.models:
            return None, None
        source, target = pair_of(name).split("-")
        return source, target

    def title(self, name: str) -> str:
        """Give the architecture of a model of the Space, or the name of an opened checkpoint."""
        return architecture_name(name) if name in self.models else name


def notice(sentences: list[str]) -> gr.HTML:
    """Say what a visitor should know."""
    return gr.HTML(f'<p role="status">{escape(" ".join(sentences))}</p>', visible=bool(sentences))
