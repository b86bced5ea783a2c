# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BERTScore, over any encoder, as an `evaluate` metric that loads with no network."""

from typing import Any

import datasets
import evaluate

import hf_attn.evaluation.bertscore as bertscore
import hf_attn.evaluation.metrics.base as base

_DESCRIPTION = """\
BERTScore (Zhang et al. 2020): each token is compared with the closest one of the other text, by the cosine of the
vectors that an encoder gives them. No encoder comes with the metric and none is downloaded unless its Hub id is given.
A score compares only with one of the same encoder and layer.
"""

_INPUTS = """
Args:
    predictions: list of texts.
    references: for each prediction, a text or a list of texts, of which the one with the best F1 counts.
    model: a loaded model, of which the encoder is used if it has a decoder too; or a folder or Hub id.
    tokenizer: that of a loaded model.
    layer: which of the encoder's hidden states, 0 for the embeddings; without it the last one.
    idf: weigh tokens by their inverse document frequency in the references.
    baseline: what unrelated texts score, one number or three; scores become (score - baseline) / (1 - baseline).
    batch_size: texts that the encoder reads together.
    sentence_scores: also return the scores of each sentence.
Returns:
    precision, recall, f1 (means of the sentences, at most 1), layer, idf, and sentence_scores if asked for.
"""

_CITATION = """\
@inproceedings{zhang-2020-bertscore, title = {{BERTScore}: Evaluating Text Generation with {BERT}}, author = {Zhang,
  Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and Artzi, Yoav}, booktitle = {International
  Conference on Learning Representations}, year = {2020}}
"""


class HfAttnBertscore(base.TranslationMetric):
    """BERTScore of a corpus, the mean of its sentences."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.List(datasets.Value("string"))}
            ),
            reference_urls=["https://arxiv.org/abs/1904.09675", "https://github.com/Tiiiger/bert_score"],
        )

    def _compute(self, *, predictions: Any = None, references: Any = None, **kwargs):
        return bertscore.bert_scores(predictions, references, **kwargs)
