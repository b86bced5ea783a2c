# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say how far a BLEU score, or the difference of two scores, could be chance: bootstrap resampling of the test set.

    draw as many sentences as the test set has, with replacement; score them; repeat
    interval = what remains of the sorted scores when 2.5% are cut off at either end

BLEU of a corpus is a function of ten sums over its sentences: lengths of translation and reference, and for n-grams of
one to four words how many match and how many there are. They are counted once by sacrebleu; a resample only adds them
up again. Two systems are compared on the same resamples, since a sentence that is hard for one is hard for the other;
by BLEU, or by any score of such statistics, as the mean GLEU of a sentence.
Papers: Koehn 2004 (Statistical Significance Tests for Machine Translation Evaluation); sacrebleu draws the same
resamples by default, so its intervals are these. Read next: `comparison.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from ..models.checks import is_whole
from .translation import _bleu_scorer, default_tokenizer, group_references

SAMPLES = 1000
SEED = 12345  # sacrebleu's


def bleu_statistics(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    lang: str | None = None,
    tokenize: str | None = None,
) -> np.ndarray:
    """Count what BLEU needs to know of each sentence.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        lang: language code of the translations; chooses the tokenizer.
        tokenize: a tokenizer of sacrebleu, instead of the one for `lang`.

    Returns:
        (sentences, 10), whole numbers: length of the translation, length of the closest reference, matching n-grams of
        1 to 4 words, n-grams of 1 to 4 words.

    Raises:
        ValueError: see `group_references`.
    """
    grouped = group_references(hypotheses, references)
    scorer = copy.copy(_bleu_scorer(tokenize or default_tokenizer(lang), False, "exp", 4, True))
    scores = [scorer.sentence_score(one, its) for one, its in zip(hypotheses, grouped, strict=True)]
    return np.array([[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores])


def bleu_from_statistics(statistics: np.ndarray) -> float:
    """Compute the BLEU of the sentences counted by `bleu_statistics`: (sentences, 10), at least one.

    Raises:
        ValueError: they are of another kind.
    """
    from sacrebleu.metrics.bleu import BLEU

    if np.shape(statistics)[1:] != (10,):
        raise ValueError(
            f"statistics has shape {np.shape(statistics)}; allowed is (sentences, 10), see bleu_statistics"
        )
    sys_len, ref_len, *counts = statistics.sum(axis=0).tolist()
    return BLEU.compute_bleu(counts[:4], counts[4:], sys_len, ref_len, smooth_method="exp").score


def bootstrap_bleu(statistics: np.ndarray, *, samples: int = SAMPLES, seed: int = SEED) -> dict[str, float]:
    """Compute BLEU and its 95% interval.

    Args:
        statistics: (sentences, 10), from `bleu_statistics`.
        samples: how many resamples.
        seed: makes them repeatable.

    Returns:
        `bleu`, `low` and `high`.

    Raises:
        ValueError: there is no sentence or no resample, or the statistics are of another kind.
    """
    low, high = _interval(_resampled(statistics, bleu_from_statistics, samples, seed))
    return {"bleu": bleu_from_statistics(statistics), "low": low, "high": high}


def paired_bootstrap(
    system: np.ndarray,
    baseline: np.ndarray,
    *,
    score: Callable[[np.ndarray], float] = bleu_from_statistics,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> dict[str, float]:
    """Compute by how much the BLEU of a system is above a baseline's, with the 95% interval of the difference.

    Args:
        system: (sentences, numbers), from `bleu_statistics`.
        baseline: the same for the other system's translations of the same sources.
        score: makes a score of such statistics; for GLEU, with `gleu_statistics`, `sentence_gleu_from_statistics`.
        samples: how many resamples.
        seed: makes them repeatable.

    Returns:
        `difference`, `low` and `high`; and `p_value`, as sacrebleu's paired bootstrap test defines it: how often the
        resampled difference is further from its mean than the observed one is from 0.

    Raises:
        ValueError: the two do not belong to equally many sentences, or there is no sentence or no resample.
    """
    if system.shape != baseline.shape:
        raise ValueError(f"system has shape {system.shape} and baseline {baseline.shape}; give the same sentences")
    differences = _resampled(system, score, samples, seed) - _resampled(baseline, score, samples, seed)
    difference = score(system) - score(baseline)
    low, high = _interval(differences)
    sizes = np.abs(differences)
    further = int((sizes - sizes.mean() > abs(difference)).sum())
    return {"difference": difference, "low": low, "high": high, "p_value": (further + 1) / (samples + 1)}


def _resampled(statistics: np.ndarray, score: Callable[[np.ndarray], float], samples: int, seed: int) -> np.ndarray:
    """Score the resamples that this seed draws: the same for every system with as many sentences."""
    if len(statistics) == 0 or not is_whole(samples, 1):
        raise ValueError(f"there are {len(statistics)} sentences and samples is {samples!r}; both must be 1 or more")
    if not is_whole(seed):
        raise ValueError(f"seed is {seed!r}; allowed are whole numbers, 0 and more")
    drawn = np.random.default_rng(seed).choice(len(statistics), size=(samples, len(statistics)), replace=True)
    return np.array([score(statistics[rows]) for rows in drawn])


def _interval(scores: np.ndarray) -> tuple[float, float]:
    """Cut 2.5% off at either end."""
    ordered, cut = np.sort(scores), len(scores) // 40
    return float(ordered[cut]), float(ordered[-1 - cut])
