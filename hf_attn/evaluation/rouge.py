# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure a summary by the words that it shares with a reference: ROUGE (Lin 2004).

    ROUGE-n   F1 of the n-grams of both, each counted as often as it stands in both
    ROUGE-L   F1 of the longest row of words that stands in both in the same order, gaps allowed

Words are what is left of a text in lower case without punctuation; nothing is stemmed. Read next: ``oracle_sentences``,
by which an extractive summariser is taught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def rouge_words(text: str) -> list[str]:
    """Split a text into the words that ROUGE counts."""
    return _WORD.findall(text.lower())


def _f1(shared: int, first: int, second: int) -> float:
    return 2 * shared / (first + second) if shared else 0.0


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n))))


def _ngram_f1(words: Sequence[str], reference: Sequence[str], n: int) -> float:
    first, second = _ngrams(words, n), _ngrams(reference, n)
    return _f1((first & second).total(), first.total(), second.total())


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for word in first:
        before, row = row, [0]
        for place, other in enumerate(second):
            row.append(before[place] + 1 if word == other else max(row[-1], before[place + 1]))
    return row[-1]


def rouge_scores(summary: str, reference: str) -> dict[str, float]:
    """Compute `rouge1`, `rouge2` and `rougeL`, each an F1 from 0 to 1, of a summary and its reference."""
    words, wanted = rouge_words(summary), rouge_words(reference)
    shared = _longest_common(words, wanted)
    return {
        "rouge1": _ngram_f1(words, wanted, 1),
        "rouge2": _ngram_f1(words, wanted, 2),
        "rougeL": _f1(shared, len(words), len(wanted)),
    }


def oracle_sentences(sentences: Sequence[str], reference: str, most: int = 3) -> list[int]:
    """Choose the sentences that say most of a reference summary, one by one (Liu and Lapata 2019, section 4.2).

    Args:
        sentences: of the document.
        reference: its summary.
        most: how many sentences to choose at most.

    Returns:
        Their numbers, in the order of the document: each raised the sum of ROUGE-1 and ROUGE-2 of those before it most;
        fewer than `most` where none raises it.
    """
    wanted = rouge_words(reference)
    words = [rouge_words(sentence) for sentence in sentences]
    chosen: list[int] = []
    best = 0.0
    for _ in range(most):
        scored = []
        for number in set(range(len(sentences))) - set(chosen):
            together = [word for place in sorted([*chosen, number]) for word in words[place]]
            scored.append((_ngram_f1(together, wanted, 1) + _ngram_f1(together, wanted, 2), -number))
        if not scored or max(scored)[0] <= best:
            break
        best, place = max(scored)
        chosen.append(-place)
    return sorted(chosen)
