# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A word in several sentences: its vectors are those of a forward pass, and the page shows their cosines."""

import functools
import html
import math
import re
import unicodedata

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hf_attn.data.text import train_text_tokenizer
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM, AttnBertModel
from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM
from hf_attn.visualization import word_html
from hf_attn.visualization.word_html import word_vectors

SENTENCES = ["The lion and the bear went out.", "She will bear a son.", "They will bear their guilt."]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
MODELS = {
    "bert": (AttnBertForMaskedLM, AttnBertConfig, True),
    "bare": (AttnBertModel, AttnBertConfig, True),
    "gpt": (AttnGptForCausalLM, AttnGptConfig, False),
}


@functools.cache
def made(name):
    """A model with weights at random, and its tokenizer, which cuts the word into pieces."""
    model, config, masked = MODELS[name]
    tokenizer = train_text_tokenizer(["the lion she will son", "a be b"], 300, masked=masked)
    torch.manual_seed(0)
    return model(config(vocab_size=len(tokenizer), initializer_range=0.3, **SIZES)).eval(), tokenizer


def cosine(one, other):
    """In a loop over numbers."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def mean_states(model, tokenizer, sentence, word):
    """The mean state of the word's pieces in every layer, found by the characters that each piece was cut from."""
    start = sentence.lower().index(word)
    encoded = tokenizer(sentence, return_offsets_mapping=True)
    places = [
        place
        for place, (first, end) in enumerate(encoded["offset_mapping"])
        if first < start + len(word) and end > start
    ]
    with torch.no_grad():
        states = model(torch.tensor([encoded["input_ids"]]), output_hidden_states=True, return_dict=True).hidden_states
    return [[sum(layer[0, p, n].item() for p in places) / len(places) for n in range(16)] for layer in states], places


@pytest.mark.parametrize("name", MODELS)
def test_every_cosine_is_that_of_the_states_of_the_word(name):
    model, tokenizer = made(name)
    states = [mean_states(model, tokenizer, sentence, "bear") for sentence in SENTENCES]
    assert len(states[0][1]) > 1, "the word is of several pieces"
    document = word_html(model, tokenizer, "bear", SENTENCES).document
    rows = [re.findall(r"<td>(−?[\d.]+)<", row) for row in re.findall(r'<tr><th scope="row">.*?</tr>', document)]
    shown = [[float(value.replace("−", "-")) for value in row] for row in rows]
    assert shown[0] == [1.0, 1.0, 1.0], "the word alone is the same everywhere"
    expected = [
        [cosine(states[a][0][layer], states[b][0][layer]) for a, b in ((0, 1), (0, 2), (1, 2))] for layer in range(3)
    ]
    assert len(shown) == 4
    for row, values in zip(shown[1:], expected, strict=True):
        assert row == pytest.approx(values, abs=0.00051)
    assert min(shown[3]) < 0.99, "the sentence has changed the vector"
    bars = [float(size) for size in re.findall(r"--size: ([\d.]+)", document)]
    assert bars == pytest.approx([abs(value) for row in shown for value in row], abs=0.00051)


@pytest.mark.parametrize(
    ("word", "sentence", "expected"),
    [
        ("bear", "forbear, bear!", (9, 13)),  # the whole word
        ("bear", "Bear! forbear", (0, 4)),  # in another case rather than a part
        ("Bear", "bear Bear", (5, 9)),  # the same case first
        ("배", "그는 배가 고프다", (3, 4)),  # a part, where there is no whole
        (" bear ", "a bear", (2, 6)),
        ("e\u0301t", "un été là, ét", (11, 13)),
        ("a.c", "abc a.c", (4, 7)),
        ("<mask>", "a <mask> b", (2, 8)),
    ],
)
def test_the_word_is_found(word, sentence, expected):
    model, tokenizer = made("bert")
    *_, span, pieces = word_vectors(model, tokenizer, word, sentence)
    assert span == expected and pieces
    assert tokenizer.mask_token not in pieces


def word_pieces(texts):
    """A tokenizer as BERT's."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    backend.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", mask_token="[MASK]")


def bytes_of_letters(texts):
    """A tokenizer as GPT-2's."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    every = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=270, initial_alphabet=every))
    return PreTrainedTokenizerFast(tokenizer_object=backend)


@pytest.mark.parametrize("kind", [word_pieces, bytes_of_letters])
@pytest.mark.parametrize(
    ("word", "sentence"),
    [("dog", "a hot-dog, here."), ("reads", "He READS and reads."), ("naïve", "A naïve été."), ("배", "그는 배 여")],
)
def test_tokenizers_of_others_give_the_pieces_of_the_word_and_no_more(kind, word, sentence):
    tokenizer = kind(["a hot-dog here he reads and naïve été", "그는 배가 여"] * 2)
    config = AttnBertConfig(vocab_size=len(tokenizer), initializer_range=0.3, **SIZES)
    found = word_vectors(AttnBertModel(config).eval(), tokenizer, word, sentence)
    span = found[2]
    read = tokenizer.decode(tokenizer.convert_tokens_to_ids(found[3]))
    assert sentence[slice(*span)] == word and plain(read) == plain(word)


def plain(text):
    """A word without accents and spaces around it, as such a tokenizer may read it."""
    return "".join(
        letter for letter in unicodedata.normalize("NFD", text.strip()) if unicodedata.category(letter) != "Mn"
    )


def test_a_word_that_leaves_no_piece_is_named():
    tokenizer = word_pieces(["a dog"])
    model = AttnBertModel(AttnBertConfig(vocab_size=len(tokenizer), **SIZES)).eval()
    with pytest.raises(ValueError, match="the tokenizer has no piece for the word '.x01' in the sentence 'a "):
        word_html(model, tokenizer, "\x01", ["a \x01 dog"] * 2)


def test_text_is_text_and_nothing_else():
    model, tokenizer = made("bert")
    hostile = ["<b>x</b> </script><script>alert(1)</script>", "x <img src=x onerror=alert(1)> <mask>"]
    document = word_html(model, tokenizer, "x", hostile).document
    for mark in ("<b>", "<img", "<script>alert", "</script><script>"):
        assert mark not in document
    items = [
        html.unescape(re.sub("</?mark>", "", item)) for item in re.findall(r"<li><bdi[^>]*>(.*?)</bdi></li>", document)
    ]
    assert items == hostile
    assert re.findall("<mark>(.*?)</mark>", document) == ["x", "x"]


def test_mistakes_are_named():
    model, tokenizer = made("bert")
    for sentences in ([], SENTENCES[:1], SENTENCES * 2):
        with pytest.raises(ValueError, match=f"sentences has {len(sentences)} entries; two to four can be compared"):
            word_html(model, tokenizer, "bear", sentences)
    for word in ("lion", "", " "):
        with pytest.raises(ValueError, match=f"the word '{word}' is not in the sentence '"):
            word_html(model, tokenizer, word, ["a lion", SENTENCES[1]])


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens(open_page, dark):
    model, tokenizer = made("bert")
    sentences = ["배는 크다", "그는 배가 고프다 " * 6, "x" * 90 + " 배", "أكل 배"]
    page = open_page(word_html(model, tokenizer, "배", sentences).document, width=320, dark=dark)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    assert page.locator("mark").all_text_contents() == ["배"] * 4
    bars = page.locator(".bar").evaluate_all("all => all.map(bar => bar.getBoundingClientRect().width)")
    assert len(bars) == 4 * 6 and min(bars[:6]) > 10
