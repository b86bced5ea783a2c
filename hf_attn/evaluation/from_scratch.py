# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Sentence probability, perplexity and BLEU, written from their definitions in plain Python.

    P(x_1 .. x_n) = product over i of P(x_i | x_1 .. x_(i-1))                 chain rule
    perplexity    = P(x_1 .. x_n) ** (-1 / n)
    BLEU          = brevity penalty * (p_1 * p_2 * .. * p_N) ** (1 / N)
    brevity penalty = 1 if c >= r, else exp(1 - r / c)

p_n is the precision of n-grams, c the length of the hypotheses, r that of the references. Words come as lists, so
that nothing here depends on a tokenizer. Papers: Papineni et al. 2002, sections 2.1 to 2.3.
Differs from sacrebleu's default: from 0 to 1 instead of 0 to 100, no smoothing, no tokenizer.
Read next: `translation.py`, for scores to publish.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from ..models.checks import is_whole


def chain_rule(words: Sequence[str], conditional: Callable[[str, Sequence[str]], float]) -> list[float]:
    """Split the probability of a sentence into one factor a word: P(x_i | x_1 .. x_(i-1)).

    Args:
        words: the sentence, with its end-of-sentence word if the model has one.
        conditional: the language model: the probability of a word after the words before it.

    Returns:
        The factors, one a word.
    """
    return [conditional(word, words[:i]) for i, word in enumerate(words)]


def sentence_probability(factors: Sequence[float]) -> float:
    """Multiply the factors of the chain rule: P(x_1 .. x_n) = product of P(x_i | x_1 .. x_(i-1)).

    Args:
        factors: the probability of each word after the words before it.

    Returns:
        The probability; a long sentence underflows to 0, which is why `sentence_log_probability` exists.

    Raises:
        ValueError: a factor is not a probability.
    """
    _check_probabilities(factors)
    return math.prod(factors)


def sentence_log_probability(factors: Sequence[float]) -> float:
    """Add the logarithms of the factors: log P(x_1 .. x_n) = sum of log P(x_i | x_1 .. x_(i-1)).

    Args:
        factors: the probability of each word after the words before it.

    Returns:
        The natural logarithm of the sentence's probability, minus infinity if a factor is 0.

    Raises:
        ValueError: a factor is not a probability.
    """
    _check_probabilities(factors)
    return sum(math.log(factor) if factor > 0 else -math.inf for factor in factors)


def perplexity(factors: Sequence[float]) -> float:
    """Compute P(x_1 .. x_n) ** (-1 / n): among how many equally likely words the model hesitates, on average.

    Computed as exp(-log P / n), which is the same and does not underflow.

    Args:
        factors: the probability of each word after the words before it; n of them.

    Returns:
        The perplexity, at least 1; infinity if a factor is 0.

    Raises:
        ValueError: there is no factor, or one is not a probability.
    """
    if len(factors) == 0:
        raise ValueError("factors is empty; perplexity needs at least one word")
    return math.exp(-sentence_log_probability(factors) / len(factors))


def ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the runs of `order` words.

    Args:
        words: a sentence.
        order: n, at least 1.

    Returns:
        How often each n-gram occurs.

    Raises:
        ValueError: `words` is a string, whose n-grams would be of letters, or `order` is below 1.
    """
    if isinstance(words, str):
        raise ValueError(f"words is the string {words!r}; allowed is a list of words, such as {words.split()!r}")
    if not is_whole(order, 1):
        raise ValueError(f"order is {order!r}; allowed are whole numbers, 1 and more")
    return Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))


def clipped_matches(hypothesis: Sequence[str], references: Sequence[Sequence[str]], order: int) -> tuple[int, int]:
    """Count the n-grams of a hypothesis that its references hold too.

    Each n-gram is believed at most as often as it occurs in the one reference that has it most often (clipping):
    "the the the the" matches "the cat" once, not four times.

    Args:
        hypothesis: words.
        references: one or several right translations, each a list of words.
        order: n, at least 1.

    Returns:
        The clipped matches and the number of n-grams in the hypothesis; their quotient is the precision p_n.
    """
    counts = ngrams(hypothesis, order)
    allowed: Counter[tuple[str, ...]] = Counter()
    for reference in references:
        allowed |= ngrams(reference, order)  # the larger count of each n-gram
    return sum(min(count, allowed[ngram]) for ngram, count in counts.items()), counts.total()


def closest_length(hypothesis_length: int, reference_lengths: Sequence[int]) -> int:
    """Choose the reference length nearest to the hypothesis, the shorter of two equally near.

    Args:
        hypothesis_length: words in the hypothesis.
        reference_lengths: words in each reference.

    Returns:
        One of the reference lengths.
    """
    return min(reference_lengths, key=lambda length: (abs(length - hypothesis_length), length))


def brevity_penalty(hypothesis_length: int, reference_length: int) -> float:
    """Punish output that is shorter than the reference: 1 if c >= r, else exp(1 - r / c).

    Args:
        hypothesis_length: c, in words.
        reference_length: r, in words.

    Returns:
        A factor from 0 to 1; 0 for an empty hypothesis.
    """
    if hypothesis_length == 0:
        return 0.0
    if hypothesis_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / hypothesis_length)


def bleu(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]], max_order: int = 4
) -> float:
    """Compute the BLEU of a corpus: brevity penalty * geometric mean of the n-gram precisions.

    Matches, n-grams and lengths are added up over all sentences before anything is divided.

    Args:
        hypotheses: for each sentence, its words.
        references: for each sentence, its right translations, each a list of words.
        max_order: N, the longest n-grams counted.

    Returns:
        BLEU from 0 to 1; 0 as soon as one order has no match.

    Raises:
        ValueError: the lists differ in length or are empty, a sentence has no reference, or `max_order` is below 1.
    """
    if len(hypotheses) != len(references) or len(hypotheses) == 0:
        raise ValueError(
            f"hypotheses has {len(hypotheses)} sentences and references {len(references)}; give as many, at least one"
        )
    if not is_whole(max_order, 1):
        raise ValueError(f"max_order is {max_order!r}; allowed are whole numbers, 1 and more")
    matches, totals = [0] * max_order, [0] * max_order
    hypothesis_length = reference_length = 0
    for index, (hypothesis, its_references) in enumerate(zip(hypotheses, references, strict=True)):
        if len(its_references) == 0:
            raise ValueError(f"references[{index}] is empty; each sentence needs at least one reference")
        hypothesis_length += len(hypothesis)
        reference_length += closest_length(len(hypothesis), [len(reference) for reference in its_references])
        for order in range(1, max_order + 1):
            matched, total = clipped_matches(hypothesis, its_references, order)
            matches[order - 1] += matched
            totals[order - 1] += total
    if min(matches) == 0:
        return 0.0
    mean_log = sum(math.log(matched / total) for matched, total in zip(matches, totals, strict=True)) / max_order
    return brevity_penalty(hypothesis_length, reference_length) * math.exp(mean_log)


def sentence_bleu(hypothesis: Sequence[str], references: Sequence[Sequence[str]], max_order: int = 4) -> float:
    """Compute the BLEU of one sentence: the BLEU of a corpus of one.

    Args:
        hypothesis: words.
        references: one or several right translations, each a list of words.
        max_order: N, the longest n-grams counted.

    Returns:
        BLEU from 0 to 1; 0 for a sentence without a matching n-gram of the longest order, as short sentences are.
    """
    return bleu([hypothesis], [references], max_order)


def _check_probabilities(factors: Sequence[float]) -> None:
    for index, factor in enumerate(factors):
        if not 0 <= factor <= 1:
            raise ValueError(f"factors[{index}] is {factor}; a probability lies between 0 and 1")
