# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""GLEU: how many n-grams of a single sentence are right, in a score that can serve as a reward.

    precision = matching n-grams / n-grams of the translation      n-grams of 1 to 4 tokens, all together
    recall    = matching n-grams / n-grams of the reference
    GLEU      = min(precision, recall) = matching n-grams / the larger of the two numbers

BLEU of one sentence is 0 without a matching 4-gram; GLEU is not, and lies between 0 and 1. That of a corpus adds up
matches and n-grams of all its sentences, so that long ones count more.
Paper: Wu et al. 2016 (arXiv 1609.08144), section 5. Beyond the paper: of several references the best one counts.
Read next: `translation.py` for the scores of texts, `hf_attn/training/reinforcement.py` for GLEU as a reward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

ORDERS = (1, 2, 3, 4)


def sentence_gleu(hypothesis: Sequence[Hashable], references: Sequence[Sequence[Hashable]]) -> float:
    """Compute the GLEU of one sentence, given as words or as token ids.

    Args:
        hypothesis: the tokens of the translation.
        references: for each reference, its tokens; the best counts.

    Returns:
        From 0 to 1; 0 if there is nothing to compare.
    """
    matches, total = best_counts(hypothesis, references)
    return matches / max(total, 1)


def best_counts(hypothesis: Sequence[Hashable], references: Sequence[Sequence[Hashable]]) -> tuple[int, int]:
    """Count what the GLEU of one sentence is the ratio of, for the reference with the best.

    Args:
        hypothesis: the tokens of the translation.
        references: for each reference, its tokens.

    Returns:
        The matching n-grams, and all n-grams of the translation or of the reference, whichever has more.
    """
    own = _ngrams(hypothesis)
    best = (0, 0)
    for reference in references:
        other = _ngrams(reference)
        matches = sum(min(count, other[ngram]) for ngram, count in own.items() if ngram in other)
        total = max(sum(own.values()), sum(other.values()))
        if best[1] == 0 or matches * best[1] > best[0] * total:
            best = (matches, total)
    return best


def _ngrams(tokens: Sequence[Hashable]) -> Counter[tuple[Hashable, ...]]:
    """Count the n-grams of 1 to 4 tokens."""
    tokens = tuple(tokens)
    return Counter(tokens[i : i + n] for n in ORDERS for i in range(len(tokens) - n + 1))
