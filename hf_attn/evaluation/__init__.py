# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure translations, language models and alignments, with no network.

Papers: BLEU, Papineni et al. 2002; chrF, Popović 2015; GLEU, Wu et al. 2016 (arXiv 1609.08144); METEOR, Banerjee and
Lavie 2005; BERTScore, Zhang et al. 2020 (arXiv 1904.09675); comparable BLEU, Post 2018 (arXiv 1804.08771); alignment
error rate, Och and Ney 2003, section 6.
Read next: `from_scratch.py` for the formulas, `translation.py` for the scores that can be published.
"""

from .alignment import alignment_error_rate, alignment_scores, diagonal_links, links_from_weights
from .alignment_table import AnchoredPairs, GoldPairs, compare_aligners, format_table
from .anchors import anchor_accuracy, anchor_tokens, load_anchors
from .bertscore import bert_scores
from .bootstrap import bleu_statistics, bootstrap_bleu, paired_bootstrap
from .comparison import bleu_by_length, learning_curve
from .failures import Failure, count_failures, find_failures
from .gleu import sentence_gleu
from .ibm_model_1 import agreed_links, train_ibm_model_1
from .likelihood import corpus_perplexity, sequence_log_probs
from .loading import METRICS, load_metric, metric_path
from .meteor import meteor_scores
from .translation import (
    bleu_scores,
    chrf_scores,
    evaluate_translations,
    gleu_scores,
    gleu_statistics,
    sentence_gleu_from_statistics,
)

__all__ = [
    "METRICS",
    "AnchoredPairs",
    "Failure",
    "GoldPairs",
    "agreed_links",
    "alignment_error_rate",
    "alignment_scores",
    "anchor_accuracy",
    "anchor_tokens",
    "bert_scores",
    "bleu_by_length",
    "bleu_scores",
    "bleu_statistics",
    "bootstrap_bleu",
    "chrf_scores",
    "compare_aligners",
    "count_failures",
    "corpus_perplexity",
    "diagonal_links",
    "evaluate_translations",
    "find_failures",
    "format_table",
    "gleu_scores",
    "gleu_statistics",
    "learning_curve",
    "links_from_weights",
    "load_anchors",
    "load_metric",
    "meteor_scores",
    "metric_path",
    "paired_bootstrap",
    "sentence_gleu",
    "sentence_gleu_from_statistics",
    "sequence_log_probs",
    "train_ibm_model_1",
]
