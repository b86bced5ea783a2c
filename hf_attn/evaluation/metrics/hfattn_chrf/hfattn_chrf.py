# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""chrF by sacrebleu as an `evaluate` metric that loads with no network."""

# ruff: noqa: F401  (`evaluate.load` reads the import lines to say what is not installed; a comment there garbles it)

from typing import Any

import datasets
import evaluate
import sacrebleu

import hf_attn.evaluation.metrics.base as base
import hf_attn.evaluation.translation as translation

_DESCRIPTION = """\
chrF (Popović 2015): the F-score of character n-grams, recall counting twice as much as precision. It needs no
tokenizer, which makes it the safer score for Korean and for short texts. Computed by sacrebleu.
"""

_INPUTS = """
Args:
    predictions: list of texts.
    references: for each prediction, a text or a list of texts; their number may differ.
    word_order: 2 gives chrF++.
    lowercase: ignore case.
    sentence_scores: also return chrF of each sentence.
    lang: not needed, chrF is the same in every language; accepted because `evaluate.combine` gives all its metrics
        the same arguments, and BLEU needs this one.
Returns:
    score (0 to 100), char_order, word_order, beta, signature, and sentence_scores if asked for.
"""

_CITATION = """\
@inproceedings{popovic-2015-chrf, title = {chr{F}: character n-gram {F}-score for automatic {MT} evaluation},
  author = {Popovi{\\'c}, Maja}, booktitle = {Proceedings of the Tenth Workshop on Statistical Machine Translation},
  year = {2015}, pages = {392--395}}
"""


class HfAttnChrf(base.TranslationMetric):
    """chrF of a corpus, exactly as sacrebleu computes it."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.List(datasets.Value("string"))}
            ),
            reference_urls=["https://github.com/mjpost/sacrebleu", "https://aclanthology.org/W15-3049"],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, lang=None, **kwargs):
        return translation.chrf_scores(predictions, references, **kwargs)
