# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Compare word alignments with gold ones, and read alignments off attention weights.

    precision = |A and P| / |A|      recall = |A and S| / |S|
    alignment error rate = 1 - (|A and S| + |A and P|) / (|A| + |S|)

A are the links of the hypothesis, S the sure gold links, P the possible ones, which include the sure ones. A link is
a pair (source word, target word), both counted from 0. Paper: Och and Ney 2003, section 6.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..models.checks import is_whole

Links = Iterable[Sequence[int]]


def _counts(hypothesis: Links, sure: Links, possible: Links) -> tuple[int, int, int, int]:
    found, certain, extra = (link_set(links) for links in (hypothesis, sure, possible))
    return len(found), len(certain), len(found & certain), len(found & (certain | extra))


def link_set(links: Links) -> set[tuple[int, int]]:
    """Check links, pairs (source word, target word) of any kind, and give them as a set of tuples."""
    pairs = set()
    for link in links:
        try:
            source_word, target_word = map(operator.index, link)
        except (TypeError, ValueError):
            source_word = target_word = -1
        if min(source_word, target_word) < 0:
            raise ValueError(f"link is {link!r}; allowed is a pair (source word, target word) of numbers from 0 on")
        pairs.add((source_word, target_word))
    return pairs


def alignment_error_rate(hypothesis: Links, sure: Links, possible: Links = ()) -> float:
    """Compute the alignment error rate of one sentence: 1 - (|A and S| + |A and P|) / (|A| + |S|).

    Args:
        hypothesis: A, pairs (source word, target word).
        sure: S, the gold links that must be found.
        possible: gold links that may be found; the sure ones need not be repeated.

    Returns:
        0 for a perfect alignment, 1 for one without any right link. 0 if there is nothing to find and nothing found.

    Raises:
        ValueError: a link is not a pair.
    """
    return float(alignment_scores([hypothesis], [sure], [possible])["alignment_error_rate"])


def alignment_scores(
    hypotheses: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]
) -> dict[str, float | int]:
    """Compute alignment error rate, precision and recall of a corpus.

    Links are added up over all sentences before anything is divided, so long sentences weigh more.

    Args:
        hypotheses: for each sentence, the links found: pairs (source word, target word).
        sure: for each sentence, the gold links that must be found.
        possible: for each sentence, gold links that may be found; the sure ones need not be repeated.

    Returns:
        `alignment_error_rate`, `precision` (1 if no link was found: none is wrong), `recall` (1 if no link is sure:
        none is missing), and the number of `links` found and of `sure` links.

    Raises:
        ValueError: the lists differ in length or are empty, or a link is not a pair.
    """
    if not len(hypotheses) == len(sure) == len(possible) or len(hypotheses) == 0:
        raise ValueError(
            f"hypotheses has {len(hypotheses)} sentences, sure {len(sure)}, possible {len(possible)}; "
            "give as many of each, at least one"
        )
    counts = [_counts(*links) for links in zip(hypotheses, sure, possible, strict=True)]
    found, certain, sure_hits, possible_hits = (sum(column) for column in zip(*counts, strict=True))
    return {
        "alignment_error_rate": 1 - (sure_hits + possible_hits) / (found + certain) if found + certain else 0.0,
        "precision": possible_hits / found if found else 1.0,
        "recall": sure_hits / certain if certain else 1.0,
        "links": found,
        "sure": certain,
    }


def links_from_weights(weights: Any, *, end_of_sentence: bool = True) -> set[tuple[int, int]]:
    """Link each target word to the source word it attended to most.

    Args:
        weights: (target_words, source_words), a tensor, an array or a list of lists.
        end_of_sentence: the last row and the last column belong to "</s>", as in `Translation.alignment`. They take
            part in the comparison, but no link leads to them: a target word that looks at "</s>" most gets none.

    Returns:
        Pairs (source word, target word), at most one a target word. The first of equal weights wins; a row of zeros
        (nothing could be attended to) gives no link.

    Raises:
        ValueError: `weights` is not a matrix of numbers, or has no source word.
    """
    try:
        matrix = torch.as_tensor(weights)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"weights is {type(weights).__name__}; allowed is a matrix of numbers ({error})") from None
    if matrix.dim() != 2 or matrix.shape[1] == 0:
        raise ValueError(f"weights has shape {tuple(matrix.shape)}; allowed is (target_words, source_words)")
    if bool(matrix.isnan().any()):
        raise ValueError("weights holds nan; allowed are numbers, and 0 where nothing was attended to")
    rows = matrix.tolist()
    links = set()
    for target, row in enumerate(rows[:-1] if end_of_sentence else rows):
        source = max(range(len(row)), key=row.__getitem__)
        if row[source] > 0 and not (end_of_sentence and source == len(row) - 1):
            links.add((source, target))
    return links


def diagonal_links(source_len: int, target_len: int) -> set[tuple[int, int]]:
    """Link each target word to the source word at the same relative place: the baseline that knows no language.

    First word to first word, last to last, and the others in proportion.

    Args:
        source_len: number of source words, without "</s>".
        target_len: number of target words, without "</s>".

    Returns:
        Pairs (source word, target word), one a target word; none if either side is empty.

    Raises:
        ValueError: a length is negative or no whole number.
    """
    if not is_whole(source_len) or not is_whole(target_len):
        raise ValueError(
            f"source_len is {source_len!r} and target_len {target_len!r}; allowed are whole numbers, 0 and more"
        )
    if source_len == 0:
        return set()
    scale = (source_len - 1) / max(target_len - 1, 1)
    return {(round(target * scale), target) for target in range(target_len)}
