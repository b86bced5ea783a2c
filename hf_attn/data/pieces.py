"""Group the pieces of a tokenizer into the words that readers, pictures and gold alignments speak of.

A piece belongs to every word it shares a character with; a piece that covers several words ("?!") is divided equally
among them, so a word keeps the number that `hf_attn.data.split_words` gives it whatever the tokenizer. Special pieces
such as "</s>" are words of their own. Attention weights are merged, and gold links spread over pieces, with these
groups.
"""

import re
import unicodedata
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from .tokenizer import piece_spans
from .words import split_words

Span = tuple[int, int]

UNKNOWN = "<unk>"  # what a word-level tokenizer writes for a word it does not know


def group_pieces(text: str, tokens: list[str], spans: list[Span | None]) -> tuple[list[str], list[list[int]]]:
    """Find the pieces of every word of a text.

    Words behind the last piece (the end of a truncated text) are left out. A word that no piece covers, which only a
    tokenizer that drops characters can cause, shares the pieces of its neighbour.

    Args:
        text: the sentence the pieces were cut from, or decoded to.
        tokens: readable pieces.
        spans: for each piece the (start, end) characters it covers in the NFC form of `text`; None for a special piece.

    Returns:
        The words in order, in NFC, and for each word the indices of its pieces.

    Raises:
        ValueError: if `tokens` and `spans` differ in length.
    """
    if len(tokens) != len(spans):
        raise ValueError(f"spans has {len(spans)} entries; it needs one for each of the {len(tokens)} tokens")
    text = unicodedata.normalize("NFC", text)
    word_spans = _word_spans(text, tokens, spans)
    pieces_of_word: list[list[int]] = [[] for _ in word_spans]
    special_words = []
    for piece, span in enumerate(spans):
        covered = [] if span is None else _words_under(span, word_spans)
        if not covered:
            special_words.append((piece, tokens[piece], [piece]))
        for word in covered:
            pieces_of_word[word].append(piece)
    for word in range(1, len(word_spans)):
        pieces_of_word[word] = pieces_of_word[word] or pieces_of_word[word - 1]
    for word in range(len(word_spans) - 2, -1, -1):
        pieces_of_word[word] = pieces_of_word[word] or pieces_of_word[word + 1]

    ordinary_words = [
        (pieces[0], text[start:end], pieces) for (start, end), pieces in zip(word_spans, pieces_of_word, strict=True)
    ]
    entries = sorted(ordinary_words + special_words, key=lambda entry: entry[0])
    return [word for _, word, _ in entries], [list(pieces) for _, _, pieces in entries]


def _word_spans(text: str, tokens: list[str], spans: list[Span | None]) -> list[Span]:
    """Split the part of the text that has pieces, and keep a written "<unk>" in one."""
    end_of_pieces = max((span[1] for span in spans if span is not None), default=0)
    words = [span for span in split_words(text) if span[0] < end_of_pieces]
    unknown = [span for token, span in zip(tokens, spans, strict=True) if token == UNKNOWN and span is not None]
    for match in re.finditer(UNKNOWN, text) if unknown else ():
        first, last = match.span()
        if any(start <= first and last <= end for start, end in unknown):
            words = sorted([span for span in words if span[1] <= first or last <= span[0]] + [(first, last)])
    return words


def _words_under(span: Span, word_spans: list[Span]) -> list[int]:
    """Give the words a piece shares characters with; for a piece of white space the next word, or else the last one."""
    start, end = span[0], max(span[1], span[0] + 1)
    covered = [word for word, (first, last) in enumerate(word_spans) if first < end and start < last]
    if covered or not word_spans:
        return covered
    following = [word for word, (first, _) in enumerate(word_spans) if first >= start]
    return following[:1] or [len(word_spans) - 1]


def pieces_of_words(tokenizer: PreTrainedTokenizerBase, text: str, ids: Sequence[int]) -> list[list[int]]:
    """Find the pieces of every word of an encoded text; special pieces such as "</s>" belong to none.

    Args:
        tokenizer: what encoded the text.
        text: the text.
        ids: its pieces, perhaps truncated.

    Returns:
        For each word of `split_words` the indices of its pieces. Words behind the last piece are left out.
    """
    special = {number for number in tokenizer.all_special_ids if number != tokenizer.unk_token_id}
    ordinary = iter(piece_spans(tokenizer, text, [number for number in ids if number not in special]))
    spans = [None if number in special else next(ordinary) for number in ids]
    _, pieces = group_pieces(text, [""] * len(ids), spans)
    return [of_word for of_word in pieces if spans[of_word[0]] is not None]
