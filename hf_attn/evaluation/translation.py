# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BLEU and chrF of translations, computed by sacrebleu, with its signature; and GLEU.

Two scores compare only if their signatures agree: tokenizer, smoothing, case, number of references. Papers: BLEU,
Papineni et al. 2002; chrF, Popović 2015; GLEU, Wu et al. 2016 (arXiv 1609.08144);
signatures, Post 2018 (arXiv 1804.08771).
Read next: `from_scratch.py`, where BLEU is spelled out, and `gleu.py`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..models.checks import is_whole
from .gleu import best_counts

CHARACTER_LANGUAGES = ("ja", "ko", "zh")  # words are not, or not only, what blanks separate


def default_tokenizer(lang: str | None) -> str:
    """Choose sacrebleu's tokenizer for a language: one that needs no download and no further package.

    Args:
        lang: language code of the translations, such as "fr", "ko" or "zh-TW"; None if unknown.

    Returns:
        "char" for Chinese, Japanese and Korean, else "13a".

    Raises:
        ValueError: it is no text.
    """
    if lang is not None and not isinstance(lang, str):
        raise ValueError(f"lang is {lang!r}; allowed is a language code, such as 'fr', or None")
    base = (lang or "").replace("_", "-").split("-")[0].lower()
    return "char" if base in CHARACTER_LANGUAGES else "13a"


@functools.lru_cache(maxsize=16)
def _bleu_scorer(tokenize: str, lowercase: bool, smooth_method: str, max_order: int, effective_order: bool) -> Any:
    """Make a scorer once for each choice: the Korean tokenizer crashes when built thousands of times."""
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"tokenize is {tokenize!r}; allowed are {', '.join(BLEU.TOKENIZERS)}")
    if smooth_method not in BLEU.SMOOTH_DEFAULTS:
        raise ValueError(f"smooth_method is {smooth_method!r}; allowed are {', '.join(BLEU.SMOOTH_DEFAULTS)}")
    if not is_whole(max_order, 1):
        raise ValueError(f"max_order is {max_order!r}; allowed are whole numbers, 1 and more")
    try:
        return BLEU(
            tokenize=tokenize,
            lowercase=lowercase,
            smooth_method=smooth_method,
            max_ngram_order=max_order,
            effective_order=effective_order,
            force=tokenize == "none",  # text that is not to be tokenized is expected to look tokenized
        )
    except (ImportError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ImportError(
            f"tokenize={tokenize!r} needs something that is not installed here: {reason} "
            "tokenize='char' and tokenize='13a' need nothing more."
        ) from error


def group_references(hypotheses: Sequence[str], references: Sequence[str | Sequence[str]]) -> list[list[str]]:
    """Check hypotheses and references, and give each hypothesis a list of references.

    Args:
        hypotheses: one text a source sentence; an empty text is allowed.
        references: for each hypothesis, a text or a list of texts; their number may differ from one to the next.

    Returns:
        For each hypothesis, its references.

    Raises:
        ValueError: an argument is a single text, the lists are empty or differ in length, a hypothesis has no
            reference, or an entry is not text.
    """
    for name, value in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(value, str):
            raise ValueError(f"{name} is the single text {value!r}; allowed is a list with one entry a sentence")
        if not hasattr(value, "__len__"):
            raise ValueError(f"{name} is {value!r}; allowed is a list with one entry a sentence")
    if len(hypotheses) == 0:
        raise ValueError("hypotheses is empty; there is nothing to score")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses has {len(hypotheses)} entries and references {len(references)}; give one entry a sentence, "
            "several references of a sentence as a list in its place (sacrebleu's own order is the other way round)"
        )
    given = [() if entry is None else entry for entry in references]
    grouped = [
        list(entry) if isinstance(entry, Iterable) and not isinstance(entry, str) else [entry] for entry in given
    ]
    for index, (hypothesis, its_references) in enumerate(zip(hypotheses, grouped, strict=True)):
        if not its_references:
            raise ValueError(f"references[{index}] is empty; each hypothesis needs at least one reference")
        if not isinstance(hypothesis, str):
            raise ValueError(f"hypotheses[{index}] is {hypothesis!r}; allowed is text")
        if not all(isinstance(reference, str) for reference in its_references):
            raise ValueError(f"references[{index}] is {its_references!r}; allowed is text or a list of texts")
    return grouped


def _reference_streams(grouped: list[list[str]]) -> list[list[Any]]:
    """Turn references by sentence into sacrebleu's streams, None where a sentence has fewer than the most."""
    most = max(map(len, grouped))
    return [[its[k] if k < len(its) else None for its in grouped] for k in range(most)]


def bleu_scores(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    lang: str | None = None,
    tokenize: str | None = None,
    lowercase: bool = False,
    smooth_method: str = "exp",
    max_order: int = 4,
    sentence_scores: bool = False,
) -> dict[str, Any]:
    """Compute the BLEU of a corpus with sacrebleu.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        lang: language code of the translations; chooses the tokenizer.
        tokenize: a tokenizer of sacrebleu, instead of the one for `lang`: "13a", "intl", "char", "zh", "none"; also
            "ko-mecab", "ja-mecab" and the SentencePiece ones, which need further packages or downloads.
        lowercase: ignore case.
        smooth_method: "exp", "floor", "add-k" or "none": what an order without a match counts.
        max_order: the longest n-grams counted.
        sentence_scores: also score each sentence, by the orders it is long enough for (effective order).

    Returns:
        sacrebleu's numbers under the names `evaluate`'s sacrebleu metric gives them: `score` (0 to 100), `counts`,
        `totals`, `precisions`, `bp`, `sys_len`, `ref_len`; `signature`; `note`, a sentence where the score must not be
        taken at face value, else None; and `sentence_scores` if asked for.

    Raises:
        ValueError: an argument is not allowed, see also `group_references`.
        ImportError: the tokenizer needs something that is not installed.
    """
    grouped = group_references(hypotheses, references)
    tokenize = tokenize or default_tokenizer(lang)
    # a shallow copy: sacrebleu writes the number of references on the scorer, and threads may share the cached one
    scorer = copy.copy(_bleu_scorer(tokenize, lowercase, smooth_method, max_order, False))
    result = scorer.corpus_score(list(hypotheses), _reference_streams(grouped))
    scores: dict[str, Any] = {
        "score": result.score,
        "counts": result.counts,
        "totals": result.totals,
        "precisions": result.precisions,
        "bp": result.bp,
        "sys_len": result.sys_len,
        "ref_len": result.ref_len,
        "signature": str(scorer.get_signature()),
        "note": _bleu_note(result.totals),
    }
    if sentence_scores:
        sentence_scorer = copy.copy(_bleu_scorer(tokenize, lowercase, smooth_method, max_order, True))
        scores["sentence_scores"] = [
            sentence_scorer.sentence_score(hypothesis, its_references).score
            for hypothesis, its_references in zip(hypotheses, grouped, strict=True)
        ]
    return scores


def _bleu_note(totals: Sequence[int]) -> str | None:
    if totals[0] == 0:
        return "Every translation is empty."
    for order, total in enumerate(totals, start=1):
        if total == 0:
            return (
                f"The translations are too short for BLEU-{len(totals)}: none has {order} tokens, so the score is 0 "
                "whatever they say. Look at chrF or at sentence scores, or choose a smaller max_order."
            )
    return None


def chrf_scores(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    word_order: int = 0,
    lowercase: bool = False,
    sentence_scores: bool = False,
) -> dict[str, Any]:
    """Compute the chrF of a corpus with sacrebleu: it compares characters, so it needs no tokenizer in any language.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        word_order: also count n-grams of words up to this length; 2 gives chrF++.
        lowercase: ignore case.
        sentence_scores: also score each sentence.

    Returns:
        `score` (0 to 100), `char_order`, `word_order`, `beta`, `signature`; and `sentence_scores` if asked for.

    Raises:
        ValueError: `word_order` is negative, see also `group_references`.
    """
    from sacrebleu.metrics.chrf import CHRF

    if not is_whole(word_order):
        raise ValueError(f"word_order is {word_order!r}; allowed are whole numbers, 0 and more")
    grouped = group_references(hypotheses, references)
    scorer = CHRF(word_order=word_order, lowercase=lowercase)
    result = scorer.corpus_score(list(hypotheses), _reference_streams(grouped))
    scores: dict[str, Any] = {
        "score": result.score,
        "char_order": result.char_order,
        "word_order": result.word_order,
        "beta": result.beta,
        "signature": str(scorer.get_signature()),
    }
    if sentence_scores:
        scores["sentence_scores"] = [
            scorer.sentence_score(hypothesis, its_references).score
            for hypothesis, its_references in zip(hypotheses, grouped, strict=True)
        ]
    return scores


def gleu_statistics(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    lang: str | None = None,
    tokenize: str | None = None,
) -> np.ndarray:
    """Count what GLEU needs to know of each sentence.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        lang: language code of the translations; chooses the tokenizer, as for BLEU.
        tokenize: a tokenizer of sacrebleu, instead of the one for `lang`.

    Returns:
        (sentences, 2), whole numbers: matching n-grams, n-grams of translation or reference, whichever has more.

    Raises:
        ValueError: see `group_references`.
    """
    grouped = group_references(hypotheses, references)
    words = _bleu_scorer(tokenize or default_tokenizer(lang), False, "exp", 4, True).tokenizer
    rows = zip(hypotheses, grouped, strict=True)
    return np.array([best_counts(words(text).split(), [words(one).split() for one in its]) for text, its in rows])


def sentence_gleu_from_statistics(statistics: np.ndarray) -> float:
    """Average the GLEU of the sentences counted by `gleu_statistics`, (sentences, 2): 0 to 100."""
    return 100 * float((statistics[:, 0] / statistics[:, 1].clip(min=1)).mean())


def gleu_scores(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    lang: str | None = None,
    tokenize: str | None = None,
    sentence_scores: bool = False,
) -> dict[str, Any]:
    """Compute the GLEU of a corpus and of its sentences.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        lang: language code of the translations; chooses the tokenizer, as for BLEU.
        tokenize: a tokenizer of sacrebleu, instead of the one for `lang`.
        sentence_scores: also return the score of each sentence.

    Returns:
        `score`, the GLEU of the corpus, and `sentence_gleu`, the mean over its sentences (both 0 to 100); `matches` and
        `total`, the sums whose ratio `score` is; the name of the tokenizer, `tokenize`; and `sentence_scores` if asked
        for.

    Raises:
        ValueError: see `group_references`.
    """
    tokenize = tokenize or default_tokenizer(lang)
    statistics = gleu_statistics(hypotheses, references, tokenize=tokenize)
    matches, total = statistics.sum(axis=0).tolist()
    scores: dict[str, Any] = {
        "score": 100 * matches / max(total, 1),
        "sentence_gleu": sentence_gleu_from_statistics(statistics),
        "matches": matches,
        "total": total,
        "tokenize": tokenize,
    }
    if sentence_scores:
        scores["sentence_scores"] = (100 * statistics[:, 0] / statistics[:, 1].clip(min=1)).tolist()
    return scores


def evaluate_translations(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    target_lang: str | None,
    tokenize: str | None = None,
) -> dict[str, Any]:
    """Score translations as training and the evaluation script report them.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts.
        target_lang: language code of the translations; chooses the tokenizer of BLEU and GLEU. None: unknown.
        tokenize: a tokenizer of sacrebleu, instead of the one for `target_lang`.

    Returns:
        `bleu`, `chrf`, `gleu` and `sentence_gleu` (0 to 100), `brevity_penalty`, the number of `sentences` and of
        `empty` translations, then text: `bleu_signature`, `chrf_signature` and `note` (None, or why BLEU must not be
        taken at face value).

    Raises:
        ValueError: see `group_references`.
    """
    bleu = bleu_scores(hypotheses, references, lang=target_lang, tokenize=tokenize)
    chrf = chrf_scores(hypotheses, references)
    gleu = gleu_scores(hypotheses, references, lang=target_lang, tokenize=tokenize)
    return {
        "bleu": bleu["score"],
        "chrf": chrf["score"],
        "gleu": gleu["score"],
        "sentence_gleu": gleu["sentence_gleu"],
        "brevity_penalty": bleu["bp"],
        "sentences": len(hypotheses),
        "empty": sum(not hypothesis.strip() for hypothesis in hypotheses),
        "bleu_signature": bleu["signature"],
        "chrf_signature": chrf["signature"],
        "note": bleu["note"],
    }
