"""One side of a translation, source or target, as text and as the pieces of a tokenizer.

`encode` cuts texts into pieces, `output_side` reads the pieces that a model chose, and `prefix_pieces` gives those with
which a translation has to begin. Read `translator.py` for what becomes of them.
"""

import itertools
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from hf_attn.data.pieces import UNKNOWN, Span
from hf_attn.data.tokenizer import piece_spans, readable_tokens

from .decoding import special_ids


@dataclass(frozen=True)
class Side:
    """One sentence as pieces.

    Attributes:
        text: the sentence.
        ids: its pieces, as a model reads them.
        tokens: its pieces, as people read them.
        spans: for each piece the characters of the text that it covers; None for a special piece.
        truncated: whether the end of the sentence is missing.
    """

    text: str
    ids: list[int]
    tokens: list[str]
    spans: list[Span | None]
    truncated: bool


def encode(
    tokenizer: PreTrainedTokenizerBase,
    argument: str,
    texts: list[str],
    limit: int,
    name: str,
    stop: Collection[int] = (),
) -> list[Side]:
    """Turn texts into pieces, cut to `limit`; special pieces typed by a user stay text.

    Args:
        tokenizer: the tokenizer of this side.
        argument: under which name it takes the texts, "text" or "text_target".
        texts: the sentences.
        limit: the largest number of pieces.
        name: what the warning about longer sentences calls them.
        stop: pieces that end a sentence: what follows the first is left out (mBART's targets end with "</s>" and the
            language, with which the decoder started).

    Returns:
        The sentences as pieces.
    """
    if not texts:
        return []
    # No truncation or padding here: both are settings of the shared tokenizer object.
    options: dict[str, Any] = {"split_special_tokens": True, "truncation": False, "padding": False, "verbose": False}
    sides = []
    for text, ids in zip(texts, tokenizer(**{argument: texts}, **options)["input_ids"], strict=True):
        ids = ids[: next((place + 1 for place, piece in enumerate(ids) if piece in stop), len(ids))]
        truncated = len(ids) > limit
        if truncated:
            end = ids[len(ids) - _closing(tokenizer, ids) :]
            ids = ids[: limit - len(end)] + end
        sides.append(_side(tokenizer, text, ids, truncated))
    cut = sum(side.truncated for side in sides)
    if cut:
        message = f"{cut} of {len(texts)} {name} sentences are longer than {limit} pieces; their ends were cut off"
        warnings.warn(message, stacklevel=4)
    return sides


def output_side(tokenizer: PreTrainedTokenizerBase, ids: list[int], truncated: bool) -> Side:
    """Read the pieces that a model chose."""
    ordinary = [i for i in ids if i not in special_ids(tokenizer)]
    text = str(tokenizer.decode(ordinary, clean_up_tokenization_spaces=False))
    if tokenizer.unk_token_id in ordinary:  # an unknown word stays visible, and apart from the word before it
        text = re.sub(rf"(?<=\S){UNKNOWN}", f" {UNKNOWN}", text)
    return _side(tokenizer, text, ids, truncated)


def prefix_pieces(tokenizer: PreTrainedTokenizerBase, side: Side) -> list[int]:
    """Give the pieces with which a translation has to begin: those of the text, without the end piece.

    Raises:
        ValueError: if it is longer than what the model takes, or a word of it is unknown to the tokenizer.
    """
    if not side.text:
        return []
    if side.truncated:
        raise ValueError(f"prefix has more than the {len(side.ids)} pieces that the model takes")
    if tokenizer.unk_token_id in side.ids:
        raise ValueError(f"prefix is {side.text!r}, of which the tokenizer does not know every word")
    return side.ids[: len(side.ids) - _closing(tokenizer, side.ids)]


def _closing(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> int:
    """Count the special pieces at the end: "</s>", and mBART's language."""
    special = special_ids(tokenizer)
    return sum(1 for _ in itertools.takewhile(special.__contains__, reversed(ids)))


def _side(tokenizer: PreTrainedTokenizerBase, text: str, ids: list[int], truncated: bool) -> Side:
    special = special_ids(tokenizer)
    ordinary_spans = iter(piece_spans(tokenizer, text, [i for i in ids if i not in special]))
    spans = [None if i in special else next(ordinary_spans) for i in ids]
    return Side(text, ids, readable_tokens(tokenizer, ids), spans, truncated)
