# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Perplexity of a corpus as an `evaluate` metric that loads with no network and no model."""

import datasets
import evaluate

import hf_attn.evaluation.likelihood as likelihood
import hf_attn.evaluation.metrics.base as base

_DESCRIPTION = """\
Perplexity: exp(-sum of log-probabilities / number of tokens). The sums run over the whole corpus and are divided
once, so batch size and padding do not matter.
"""

_INPUTS = """
Args:
    log_probs: for each sentence, the sum of the natural log-probabilities of its tokens.
    token_counts: for each sentence, the number of these tokens.
    `hf_attn.evaluation.sequence_log_probs(logits, labels)` returns both.
Returns:
    perplexity, loss (negative log-probability of a token, in nats), tokens.
"""


class HfAttnPerplexity(base.CheckedMetric):
    """Perplexity from summed log-probabilities and token counts."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"log_probs": datasets.Value("float64"), "token_counts": datasets.Value("int64")}
            ),
        )

    def _clean(self, columns):
        return {
            "log_probs": [float(value) for value in columns["log_probs"]],
            "token_counts": [int(value) for value in columns["token_counts"]],
        }

    def _compute(self, *, predictions=None, references=None, **columns):
        return likelihood.corpus_perplexity(**columns)
