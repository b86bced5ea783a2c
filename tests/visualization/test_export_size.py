# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a page of a sentence of 60 words weighs with the shipped models, and that it needs nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from PIL import Image
from scripting import load_script
from transformers import AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForMaskedLM, AutoTokenizer

from hf_attn import Translator
from hf_attn.inference.what_if import hide_words, next_pieces
from hf_attn.visualization import (
    Entry,
    Factors,
    alignment_html,
    beams_html,
    history_html,
    metrics_html,
    next_pieces_html,
    patches_html,
    steps_html,
    text_attention_html,
    text_steps_html,
    what_if_html,
)

MODELS = Path(__file__).parents[2] / "space" / "models"
LARGEST = "en-fr-transformer"
LIMIT = 1_500_000  # bytes
SEARCH = {"num_beams": 4, "max_new_tokens": 120}


@pytest.fixture(scope="module")
def sentence():
    """60 words, in the style of what the models learned."""
    texts = load_script("space/texts.py")
    clauses = [clause for clause, _ in texts.CLAUSES]
    words = " ".join([texts.EXAMPLES[0].rstrip("."), *clauses, *clauses]).split()
    return " ".join(words[:60]) + "."


@pytest.fixture(scope="module")
def translator():
    """The largest shipped translator."""
    return Translator(MODELS / LARGEST)


@pytest.fixture(scope="module")
def translation(translator, sentence):
    """What it makes of the sentence."""
    return translator(sentence, **SEARCH)


class Links(HTMLParser):
    """Every attribute by which a document may ask for something."""

    def __init__(self, document):
        super().__init__()
        self.found = []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action", "poster")]


def check(page):
    """A page is small, names no address, and may fetch nothing."""
    document = page.document
    assert len(document.encode("utf-8")) < LIMIT
    assert set(re.findall(r"\w+://[^\s\"'<]*", document)) <= {"http://www.w3.org/2000/svg"}  # a name, not a link
    assert all(link.startswith("data:") for link in Links(document).found)
    assert "default-src 'none'; img-src data:;" in document and "url(" not in document and "@import" not in document


def test_it_is_the_largest_model_and_a_long_sentence(sentence, translation):
    sizes = {path.parent.name: path.stat().st_size for path in MODELS.glob("en-*/model.safetensors")}
    assert max(sizes, key=lambda name: sizes[name]) == LARGEST
    assert len(sentence.split()) == 60 and len(translation.source_tokens) > 60 and not translation.truncated


@pytest.mark.parametrize("words", [True, False])
def test_alignment(translation, words):
    check(alignment_html(translation, words=words))


def test_beams_and_next_pieces(translator, translation, sentence):
    check(beams_html(translator(sentence, num_beams=8, num_return_sequences=8, max_new_tokens=120)))
    check(next_pieces_html(translation, next_pieces(translator, translation)))


def test_what_if(translator, translation):
    check(what_if_html(hide_words(translator, translation, [3], **SEARCH), "without “teacher”"))


@pytest.mark.parametrize("kind", ["cross", "decoder", "encoder"])
def test_steps(translator, translation, kind):
    pieces = translation.source_tokens if kind == "encoder" else translation.target_tokens
    check(steps_html(translator, translation, len(pieces) - 1, kind=kind))


def test_history_and_metrics(sentence):
    names = sorted(path.name for path in MODELS.glob("en-fr-*"))
    translations = [Translator(MODELS / name)(sentence, num_beams=1, max_new_tokens=120) for name in names]
    entries = [Entry(name, one, 1.0) for name, one in zip(names, translations, strict=True)]
    growth = {name: [(words, 0.5) for words in range(8, 60, 7)] for name in names}
    assert len(entries) >= 5
    check(history_html(entries, growth, "probability of a piece"))
    reference, *hypotheses = [(one.text * 3).split()[:60] for one in translations[:3]]
    factors = [Factors(words, [0.1] * len(words)) for words in hypotheses]
    check(metrics_html(reference, hypotheses, factors=factors))


@pytest.mark.parametrize(("name", "head"), [("bible-bert", AutoModelForMaskedLM), ("bible-gpt", AutoModelForCausalLM)])
def test_texts_that_are_no_translation(sentence, name, head):
    tokenizer = AutoTokenizer.from_pretrained(MODELS / name)
    model = head.from_pretrained(MODELS / name).eval()
    check(text_attention_html(model, tokenizer, sentence))
    check(text_steps_html(model, tokenizer, sentence, 40))


def test_pictures():
    """A page of patches does not grow with a sentence; it must be small with its weights alone."""
    model = AutoModelForImageClassification.from_pretrained(MODELS / "digits-vit").eval()
    size, patch = model.config.image_size, model.config.patch_size
    with torch.no_grad():
        attentions = model(torch.rand(1, model.config.num_channels, size, size), output_attentions=True).attentions
    check(patches_html(Image.new("L", (size, size)), attentions, (size // patch, size // patch)))


@pytest.mark.browser
def test_a_saved_page_opens_without_a_network(translation, sentence, open_page):
    """`open_page` is offline, and fails where a page asks for anything or complains."""
    page = open_page(alignment_html(translation).document)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="HTML", exact=True).click()
    content = Path(waiting.value.path()).read_bytes()
    assert len(content) < LIMIT
    again = open_page(content.decode("utf-8"))
    words = again.locator("#source .text").all_text_contents()
    assert "".join(words).removesuffix("</s>") == sentence.replace(" ", "")
    again.locator("#target .word").nth(2).hover()
    assert again.locator("#heatmap .cell").count() == len(words) * again.locator("#target .word").count()
