"""Toy pairs whose right alignment is known: copying gives a diagonal, reversing an anti-diagonal.

Read `translation.py` for real sentences.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..models.checks import is_whole

if TYPE_CHECKING:
    from datasets import Dataset

_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")


def copy_task(
    size: int, *, symbols: Sequence[str] = _LETTERS, min_length: int = 3, max_length: int = 10, seed: int = 0
) -> Dataset:
    """Make pairs whose target repeats the source: "c a b" -> "c a b".

    Args:
        size: number of pairs. Lengths and symbols are drawn evenly; a pair may come twice.
        symbols: the vocabulary, distinct words without spaces.
        min_length: fewest symbols in a sentence.
        max_length: most symbols in a sentence.
        seed: the same seed gives the same pairs.

    Returns:
        A dataset with the column "translation", `{"source": text, "target": text}`.

    Raises:
        ValueError: for a negative size, lengths that leave no choice, or symbols that are not distinct words.
    """
    return _make(size, symbols, min_length, max_length, seed, reverse=False)


def reverse_task(
    size: int, *, symbols: Sequence[str] = _LETTERS, min_length: int = 3, max_length: int = 10, seed: int = 0
) -> Dataset:
    """Make pairs whose target is the source backwards: "c a b" -> "b a c".

    Args:
        size: number of pairs. Lengths and symbols are drawn evenly; a pair may come twice.
        symbols: the vocabulary, distinct words without spaces.
        min_length: fewest symbols in a sentence.
        max_length: most symbols in a sentence.
        seed: the same seed gives the same pairs, and the same sources as `copy_task`.

    Returns:
        A dataset with the column "translation", `{"source": text, "target": text}`.

    Raises:
        ValueError: for a negative size, lengths that leave no choice, or symbols that are not distinct words.
    """
    return _make(size, symbols, min_length, max_length, seed, reverse=True)


def _make(size: int, symbols: Sequence[str], min_length: int, max_length: int, seed: int, reverse: bool) -> Dataset:
    from datasets import Dataset, Features, Translation

    if not is_whole(size):
        raise ValueError(f"size must be a whole number of at least 0, got {size!r}")
    if not is_whole(max_length, 1):
        raise ValueError(f"max_length must be a whole number of at least 1, got {max_length!r}")
    if not is_whole(min_length, 1) or min_length > max_length:
        raise ValueError(
            f"min_length must be a whole number between 1 and max_length ({max_length}), got {min_length!r}"
        )
    vocabulary = list(symbols) if isinstance(symbols, Sequence) else []
    are_words = all(isinstance(symbol, str) and len(symbol.split()) == 1 for symbol in vocabulary)
    if not vocabulary or not are_words or len(set(vocabulary)) < len(vocabulary):
        raise ValueError(f"symbols must be distinct words without spaces, at least one, got {symbols!r}")
    generator = random.Random(seed)
    pairs = []
    for _ in range(size):
        words = generator.choices(vocabulary, k=generator.randint(min_length, max_length))
        pairs.append({"source": " ".join(words), "target": " ".join(reversed(words) if reverse else words)})
    features = Features(translation=Translation(languages=["source", "target"]))
    return Dataset.from_dict({"translation": pairs}, features=features)
