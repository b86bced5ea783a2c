# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""GLEU as an `evaluate` metric that loads with no network."""

# ruff: noqa: F401  (`evaluate.load` reads the import lines to say what is not installed; a comment there garbles it)

from typing import Any

import datasets
import evaluate
import sacrebleu

import hf_attn.evaluation.metrics.base as base
import hf_attn.evaluation.translation as translation

_DESCRIPTION = """\
GLEU (Wu et al. 2016, arXiv 1609.08144, section 5): the matching n-grams of 1 to 4 words, divided by those of the
translation or of the reference, whichever has more. Unlike BLEU it is meant for single sentences. Words are those of
sacrebleu's tokenizers, as for BLEU.
"""

_INPUTS = """
Args:
    predictions: list of texts.
    references: for each prediction, a text or a list of texts, of which the best counts; their number may differ.
    lang: language code of the predictions; chooses sacrebleu's tokenizer.
    tokenize: a tokenizer of sacrebleu, instead of the one for `lang`.
    sentence_scores: also return GLEU of each sentence.
Returns:
    score (of the corpus, 0 to 100), sentence_gleu (the mean of the sentences), matches, total, tokenize, and
    sentence_scores if asked for.
"""

_CITATION = """\
@article{wu-2016-google, title = {Google's Neural Machine Translation System: Bridging the Gap between Human and Machine
  Translation}, author = {Wu, Yonghui and others}, journal = {arXiv:1609.08144}, year = {2016}}
"""


class HfAttnGleu(base.TranslationMetric):
    """GLEU of a corpus and the mean of its sentences."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.List(datasets.Value("string"))}
            ),
            reference_urls=["https://arxiv.org/abs/1609.08144"],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, **kwargs):
        return translation.gleu_scores(predictions, references, **kwargs)
