# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Align words by counting which ones appear together: IBM Model 1, the baseline that every attention has to beat.

    P(target, alignment | source) ~ product over target words of t(target word | the source word it is linked to)

    expectation    a target word is linked to source word s with probability t(target | s) / sum of t(target | any)
    maximisation   t(target | s) = expected links of s to target / expected links of s to anything

t starts uniform and grows better with every iteration (expectation-maximisation). Position plays no part.
Paper: Brown et al. 1993, section 4.1 (J93-2003). Differs from the paper: no empty source word, so every
target word is linked.
Read next: `alignment.py`, which compares such links with gold ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..models.checks import is_whole
from .alignment import links_from_weights


class IbmModel1:
    """A table of translation probabilities t(target word | source word), made by `train_ibm_model_1`.

    Args:
        source_ids: number of each source word.
        target_ids: number of each target word.
        codes: the pairs of words that occur in one sentence pair, ascending, each as one number (`_code`).
        probabilities: t of each such pair.
    """

    def __init__(
        self, source_ids: dict[str, int], target_ids: dict[str, int], codes: np.ndarray, probabilities: np.ndarray
    ):
        self.source_ids, self.target_ids = source_ids, target_ids
        self.codes, self.probabilities = codes, probabilities

    def table(self, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
        """Look up t(target word | source word) for all words of a sentence pair.

        Args:
            source: words of the source.
            target: words of the target.

        Returns:
            (target_words, source_words); 0 for words that never met in the training pairs.
        """
        source_ids = np.array([self.source_ids.get(word, -1) for word in source], dtype=np.int64)
        target_ids = np.array([self.target_ids.get(word, -1) for word in target], dtype=np.int64)
        codes = _code(source_ids[None, :], target_ids[:, None])
        places = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        known = (self.codes[places] == codes) & (source_ids[None, :] >= 0) & (target_ids[:, None] >= 0)
        return np.where(known, self.probabilities[places], 0.0)

    def links(self, source: Sequence[str], target: Sequence[str]) -> set[tuple[int, int]]:
        """Link each target word to the source word that translates to it most probably.

        Args:
            source: words of the source.
            target: words of the target.

        Returns:
            Pairs (source word, target word), one a target word that met any of the source words in training. The first
            of equal probabilities wins.
        """
        if not source or not target:
            return set()
        return links_from_weights(self.table(source, target), end_of_sentence=False)


def train_ibm_model_1(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], iterations: int = 5) -> IbmModel1:
    """Learn t(target word | source word) from sentence pairs.

    Args:
        pairs: the words of each source and of its target.
        iterations: how often to repeat expectation and maximisation.

    Returns:
        The model.

    Raises:
        ValueError: there is no pair of words to learn from, `iterations` is less than 1, or an entry is no pair of
            lists of words.
    """
    if not is_whole(iterations, 1):
        raise ValueError(f"iterations is {iterations!r}; allowed are whole numbers, 1 and more")
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    cells, lengths = [], []  # a cell is a target word beside a source word; `lengths` has the cells of each target word
    for pair in pairs:
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(map(_are_words, pair)):
            raise ValueError(f"pairs holds {pair!r}; allowed is (words of the source, words of the target), two lists")
        source, target = pair
        sources = np.array([source_ids.setdefault(word, len(source_ids)) for word in source], dtype=np.int64)
        targets = np.array([target_ids.setdefault(word, len(target_ids)) for word in target], dtype=np.int64)
        if len(sources):
            cells.append(_code(sources[None, :], targets[:, None]).ravel())
            lengths += [len(sources)] * len(targets)
    if not lengths:
        raise ValueError("pairs holds no sentence pair with words on both sides")
    codes, pair_of_cell = np.unique(np.concatenate(cells), return_inverse=True)
    source_of_pair = codes >> 32
    target_word_of_cell = np.repeat(np.arange(len(lengths)), lengths)

    probabilities = np.ones(len(codes))
    for _ in range(iterations):
        links = probabilities[pair_of_cell]
        links /= np.bincount(target_word_of_cell, links)[target_word_of_cell]
        expected = np.bincount(pair_of_cell, links)
        probabilities = expected / np.bincount(source_of_pair, expected)[source_of_pair]
    return IbmModel1(source_ids, target_ids, codes, probabilities)


def agreed_links(
    forward: IbmModel1, backward: IbmModel1, source: Sequence[str], target: Sequence[str]
) -> set[tuple[int, int]]:
    """Keep the links on which both directions agree: few, but right (Och and Ney 2003, section 5).

    Args:
        forward: trained on (source, target).
        backward: trained on (target, source).
        source: words of the source.
        target: words of the target.

    Returns:
        Pairs (source word, target word).
    """
    reverse = {(source_word, target_word) for target_word, source_word in backward.links(target, source)}
    return forward.links(source, target) & reverse


def _are_words(words: object) -> bool:
    return isinstance(words, Sequence) and not isinstance(words, str)


def _code(source_ids: np.ndarray, target_ids: np.ndarray) -> np.ndarray:
    return (source_ids << 32) + target_ids
