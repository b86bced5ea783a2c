"""Sentence pairs and texts, their words and pieces, the ids that a model trains on; and pictures."""

from .images import digits
from .phrasebook import phrasebook
from .shapes import shapes
from .synthetic import copy_task, reverse_task
from .text import load_texts, phrasebook_texts, train_text_tokenizer
from .tokenizer import piece_spans, readable_tokens, train_tokenizer
from .translation import load_pairs, tokenize_pairs
from .words import split_words, text_words

__all__ = [
    "copy_task",
    "digits",
    "load_pairs",
    "load_texts",
    "phrasebook",
    "phrasebook_texts",
    "piece_spans",
    "readable_tokens",
    "reverse_task",
    "shapes",
    "split_words",
    "text_words",
    "tokenize_pairs",
    "train_text_tokenizer",
    "train_tokenizer",
]
