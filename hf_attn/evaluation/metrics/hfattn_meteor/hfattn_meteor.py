# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""METEOR as an `evaluate` metric that loads with no network."""

# ruff: noqa: F401  (`evaluate.load` reads the import lines to say what is not installed; a comment there garbles it)

from typing import Any

import datasets
import evaluate
import nltk
import sacrebleu

import hf_attn.evaluation.meteor as meteor
import hf_attn.evaluation.metrics.base as base

_DESCRIPTION = """\
METEOR (Banerjee and Lavie 2005): words are linked to equal words, then to words of the same stem, then (in English,
where nltk's data "wordnet" is on the machine) to synonyms. The score is the harmonic mean of precision and recall,
recall weighing more, less a penalty for links scattered over many chunks. Of all alignments with the most links the one
with the fewest chunks counts, found exactly. Words are those of sacrebleu's tokenizers, as for BLEU, in small letters.
"""

_INPUTS = """
Args:
    predictions: list of texts.
    references: for each prediction, a text or a list of texts, of which the best counts; their number may differ.
    lang: language code of the predictions; chooses sacrebleu's tokenizer and nltk's stemmer. Without it words match if
        they are equal.
    tokenize: a tokenizer of sacrebleu, instead of the one for `lang`.
    stages: some of ["exact", "stem", "synonym"]; without it, all that the language and this machine have.
    alpha, beta, gamma: the parameters, by default those of 2005 (0.9, 3, 0.5). Lavie and Agarwal 2007 give 0.81, 0.83,
        0.28 for English, Denkowski and Lavie 2014 0.7, 1.4, 0.3 for any language.
    sentence_scores: also return METEOR of each sentence.
Returns:
    score (of the corpus, 0 to 100), sentence_meteor (the mean of the sentences), matches, chunks, hypothesis_len,
    reference_len, stages (those that were used), tokenize, and sentence_scores if asked for.
"""

_CITATION = """\
@inproceedings{banerjee-lavie-2005-meteor, title = {{METEOR}: An Automatic Metric for {MT} Evaluation with Improved
  Correlation with Human Judgments}, author = {Banerjee, Satanjeev and Lavie, Alon}, booktitle = {Proceedings of the ACL
  Workshop on Intrinsic and Extrinsic Evaluation Measures for Machine Translation and/or Summarization}, year = {2005},
  pages = {65--72}}
"""


class HfAttnMeteor(base.TranslationMetric):
    """METEOR of a corpus and the mean of its sentences."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.List(datasets.Value("string"))}
            ),
            reference_urls=["https://aclanthology.org/W05-0909", "https://aclanthology.org/W07-0734"],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, **kwargs):
        return meteor.meteor_scores(predictions, references, **kwargs)
