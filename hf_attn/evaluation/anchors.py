# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure alignments by anchors: phrases of which it is known that they translate each other.

    anchor accuracy = anchored target tokens linked into the source span of their anchor / anchored target tokens

Such pairs of phrases come for free where a document carries its markup into its translation, as manuals do with the
names of buttons and menus. Gold links of single words, which only people can draw, are for `alignment.py`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.words import check_text, split_words
from .alignment import Links

_TOKEN = re.compile(r"\w+|[^\w\s]")
_NO_SPACE_BEFORE = frozenset(",.;:!?)]}”’%…»'")
_NO_SPACE_AFTER = frozenset("([{“‘«'")


@dataclass(frozen=True)
class AnchoredPair:
    """A sentence pair with anchors.

    Attributes:
        source: tokens of the source.
        target: tokens of the target.
        spans: for each anchor its first and last source token and its first and last target token, all included.
    """

    source: list[str]
    target: list[str]
    spans: list[tuple[int, int, int, int]]


def load_anchors(path: str | os.PathLike) -> list[AnchoredPair]:
    """Load sentence pairs with anchors, in their order.

    Args:
        path: a file of one JSON object a line, `{"src": [token, ...], "tgt": [token, ...], "spans": [[source_first,
            source_last, target_first, target_last], ...]}`.

    Returns:
        The pairs; tokens in Unicode form NFC.

    Raises:
        ValueError: a line is not such an object, with its number.
    """
    pairs = []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            source, target = ([unicodedata.normalize("NFC", token) for token in row[side]] for side in ("src", "tgt"))
            spans = [(int(a), int(b), int(c), int(d)) for a, b, c, d in row["spans"]]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}, line {number}: must hold src, tgt and spans ({error!r})") from None
        if not all(0 <= a <= b < len(source) and 0 <= c <= d < len(target) for a, b, c, d in spans):
            raise ValueError(f"{path}, line {number}: a span lies outside its {len(source)} and {len(target)} tokens")
        pairs.append(AnchoredPair(source, target, spans))
    return pairs


def anchor_tokens(text: str) -> list[str]:
    """Split a text as the tokens of anchored pairs are split: words of letters and digits, and single other characters.

    Args:
        text: one sentence or more.

    Raises:
        TypeError: the text is no string.
    """
    check_text("text", text)
    return _TOKEN.findall(unicodedata.normalize("NFC", text))


def join_tokens(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Write tokens as a sentence, without the spaces that no one types, so that a model reads what it was trained on.

    Args:
        tokens: words and punctuation marks.

    Returns:
        The text, and the (start, end) characters of each token in it.
    """
    text, spans = "", []
    for number, token in enumerate(tokens):
        if number and token not in _NO_SPACE_BEFORE and tokens[number - 1] not in _NO_SPACE_AFTER:
            text += " "
        spans.append((len(text), len(text) + len(token)))
        text += token
    return text, spans


def token_links(links: Links, source: Sequence[str], target: Sequence[str]) -> set[tuple[int, int]]:
    """Turn links between the words of two joined sentences into links between their tokens.

    A word that holds several tokens ("dell'" is "dell" and "'") passes its link on to all of them as a target, and
    stands for its first as a source.

    Args:
        links: pairs (source word, target word), counting the words of `hf_attn.data.split_words`.
        source: tokens of the source.
        target: tokens of the target.

    Returns:
        Pairs (source token, target token), at most one a target token.
    """
    sources, targets = _tokens_of_words(source), _tokens_of_words(target)
    found: dict[int, int] = {}
    for source_word, target_word in sorted((int(a), int(b)) for a, b in links):
        for token in targets[target_word]:
            found.setdefault(token, sources[source_word][0])
    return {(source_token, target_token) for target_token, source_token in found.items()}


def _tokens_of_words(tokens: Sequence[str]) -> list[list[int]]:
    """Give for each word of the joined tokens the tokens that it shares characters with."""
    text, spans = join_tokens(tokens)
    return [
        [token for token, (first, last) in enumerate(spans) if first < end and start < last]
        for start, end in split_words(text)
    ]


def anchor_accuracy(hypotheses: Iterable[Links], pairs: Sequence[AnchoredPair]) -> dict[str, float | int]:
    """Compute the share of anchored target tokens that are linked into the source span of their anchor.

    A token counts once for each anchor that holds it, and as wrong where it has no link.

    Args:
        hypotheses: for each pair, the links found: pairs (source token, target token), at most one a target token.
        pairs: what is known.

    Returns:
        `anchor_accuracy`, and the number of `anchored_tokens`.

    Raises:
        ValueError: there are not as many hypotheses as pairs, or there is no anchored token.
    """
    found = list(hypotheses)
    if len(found) != len(pairs):
        raise ValueError(f"hypotheses has {len(found)} sentences and pairs {len(pairs)}; give as many")
    right = count = 0
    for links, pair in zip(found, pairs, strict=True):
        source_of = {int(target): int(source) for source, target in links}
        for source_first, source_last, target_first, target_last in pair.spans:
            for target in range(target_first, target_last + 1):
                count += 1
                right += source_first <= source_of.get(target, -1) <= source_last
    if not count:
        raise ValueError("pairs holds no anchored token; at least one is needed")
    return {"anchor_accuracy": right / count, "anchored_tokens": count}
