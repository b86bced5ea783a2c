# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Alignment error rate as an `evaluate` metric that loads with no network."""

from typing import Any

import datasets
import evaluate

import hf_attn.evaluation.alignment as alignment
import hf_attn.evaluation.metrics.base as base

_DESCRIPTION = """\
Alignment error rate (Och and Ney 2003): 1 - (|A and S| + |A and P|) / (|A| + |S|), where A are the word links found,
S the sure gold links, and P the possible ones together with the sure ones. Lower is better.
"""

_INPUTS = """
Args:
    predictions: for each sentence, the list of links found: pairs [source_word, target_word], counted from 0.
    sure: for each sentence, the gold links that must be found.
    possible: for each sentence, gold links that may be found; the sure ones need not be repeated.
Returns:
    alignment_error_rate, precision, recall, links (number found), sure (number that must be found).
"""

_CITATION = """\
@article{och-ney-2003-systematic, title = {A Systematic Comparison of Various Statistical Alignment Models},
  author = {Och, Franz Josef and Ney, Hermann}, journal = {Computational Linguistics}, volume = {29}, number = {1},
  year = {2003}, pages = {19--51}}
"""


class HfAttnAlignmentErrorRate(base.CheckedMetric):
    """Alignment error rate, precision and recall of a corpus."""

    def _info(self):
        links = datasets.List(datasets.List(datasets.Value("int64")))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": links, "sure": links, "possible": links}),
            reference_urls=["https://aclanthology.org/J03-1002"],
        )

    def _clean(self, columns):
        return {
            name: [sorted(map(list, alignment.link_set(links))) for links in sentences]
            for name, sentences in columns.items()
        }

    def _compute(self, *, predictions: Any = None, references: Any = None, **columns):
        return alignment.alignment_scores(predictions, **columns)
