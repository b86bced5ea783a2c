# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BLEU by sacrebleu as an `evaluate` metric that loads with no network."""

# ruff: noqa: F401  (`evaluate.load` reads the import lines to say what is not installed; a comment there garbles it)

import warnings
from typing import Any

import datasets
import evaluate
import sacrebleu

import hf_attn.evaluation.metrics.base as base
import hf_attn.evaluation.translation as translation

_DESCRIPTION = """\
BLEU (Papineni et al. 2002): the geometric mean of the clipped n-gram precisions of a corpus, times a penalty for
output that is too short. Computed by sacrebleu; the result carries sacrebleu's signature.
"""

_INPUTS = """
Args:
    predictions: list of texts.
    references: for each prediction, a text or a list of texts; their number may differ.
    lang: language code of the translations. Chooses the tokenizer: "char" for ko, ja, zh, else "13a".
    tokenize: a tokenizer of sacrebleu, instead of the one for `lang` ("ko-mecab" needs further packages).
    lowercase: ignore case.
    smooth_method: "exp", "floor", "add-k" or "none".
    max_order: the longest n-grams counted.
    sentence_scores: also return BLEU of each sentence, with effective order.
Returns:
    score (0 to 100), counts, totals, precisions, bp, sys_len, ref_len, signature, note (None, or why the score must
    not be taken at face value), and sentence_scores if asked for.
"""

_CITATION = """\
@inproceedings{post-2018-call, title = {A Call for Clarity in Reporting {BLEU} Scores}, author = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation}, year = {2018}, pages = {186--191}}
"""


class HfAttnBleu(base.TranslationMetric):
    """BLEU of a corpus, exactly as sacrebleu computes it."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.List(datasets.Value("string"))}
            ),
            reference_urls=["https://github.com/mjpost/sacrebleu", "https://arxiv.org/abs/1804.08771"],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, **kwargs):
        scores = translation.bleu_scores(predictions, references, **kwargs)
        if scores["note"]:
            warnings.warn(scores["note"], stacklevel=3)
        return scores
