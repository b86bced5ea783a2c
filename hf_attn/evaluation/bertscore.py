# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BERTScore: compare texts by the vectors that an encoder gives their tokens.

    precision = sum over tokens of the translation: weight * largest cosine with a token of the reference
    recall    = sum over tokens of the reference:   weight * largest cosine with a token of the translation
    F1        = 2 * precision * recall / (precision + recall)

The weights of a text add up to 1. They are equal, or proportional to the inverse document frequency of a token:
idf = log((references + 1) / (references that have the token + 1)). Special tokens ("[CLS]", "[SEP]", "</s>") weigh 0,
as in the authors' program; another token may still be closest to one.

Paper: Zhang et al. 2020 (arXiv 1904.09675), section 3. A score compares only with one of the same encoder and layer.
Read next: `meteor.py`, the same comparison by equal words, stems and synonyms.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.checks import is_whole
from .translation import group_references


def match_vectors(
    hypothesis: Tensor, reference: Tensor, hypothesis_weights: Tensor, reference_weights: Tensor
) -> tuple[float, float, float]:
    """Compare two texts, token by token.

    Args:
        hypothesis: (hypothesis_len, hidden_size), the vectors of the translation.
        reference: (reference_len, hidden_size), those of the reference.
        hypothesis_weights: (hypothesis_len,), at least 0; 0 for special tokens.
        reference_weights: (reference_len,), likewise.

    Returns:
        Precision, recall and F1; all 0 if a text has no token but special ones.
    """
    if not (hypothesis_weights.any() and reference_weights.any()):
        return 0.0, 0.0, 0.0
    cosines = F.normalize(hypothesis, dim=-1) @ F.normalize(reference, dim=-1).T
    precision = float(cosines.amax(dim=1) @ hypothesis_weights / hypothesis_weights.sum())
    recall = float(cosines.amax(dim=0) @ reference_weights / reference_weights.sum())
    return precision, recall, _f1(precision, recall)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def inverse_document_frequencies(references: Sequence[Iterable[int]]) -> dict[int | None, float]:
    """Compute log((references + 1) / (references that have the token + 1)) of each token.

    Args:
        references: the token ids of each text.

    Returns:
        The frequencies by token id; under None that of a token which no reference has.
    """
    counts = Counter(token for reference in references for token in set(reference))
    known = {token: math.log((len(references) + 1) / (count + 1)) for token, count in counts.items()}
    return {**known, None: math.log(len(references) + 1)}


class _Encoder:
    """Texts in, vectors out: the encoder of a model with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, layer: int | None):
        if isinstance(model, (str, os.PathLike)):
            from transformers import AutoModel, AutoTokenizer

            tokenizer = tokenizer or AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            model = AutoModel.from_pretrained(model, trust_remote_code=False)
        if tokenizer is None:
            raise ValueError("tokenizer is None; a loaded model needs its tokenizer")
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        self.tokenizer = tokenizer
        self.layer = layer

    def tokens(self, text: str) -> tuple[list[int], list[bool]]:
        """Give the token ids of a text, cut to what the model can read, and which of them are special."""
        from transformers import GPT2Tokenizer, RobertaTokenizer

        text = text.strip()
        if text and isinstance(self.tokenizer, (GPT2Tokenizer, RobertaTokenizer)):
            text = " " + text  # the first word as any other, as in the authors' program
        most = self.tokenizer.model_max_length
        cut = {"truncation": True, "max_length": most} if most < 10**9 else {}  # more means: not known
        encoded = self.tokenizer(text, return_special_tokens_mask=True, **cut)
        return list(encoded["input_ids"]), list(map(bool, encoded["special_tokens_mask"]))

    @torch.no_grad()
    def vectors(self, texts: Sequence[list[int]], batch_size: int) -> list[Tensor]:
        """Give the vectors of each text, (text_len, hidden_size), in float32 on the CPU."""
        vectors = [torch.zeros(0, 1)] * len(texts)
        order = sorted((i for i, ids in enumerate(texts) if ids), key=lambda i: len(texts[i]))
        was_training = self.model.training
        self.model.eval()
        try:
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                ids = [torch.tensor(texts[i]) for i in batch]
                padded, mask = (
                    torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)
                    for rows, value in (
                        (ids, self.tokenizer.pad_token_id or 0),
                        ([torch.ones_like(row) for row in ids], 0),
                    )
                )
                for i, states in zip(batch, self._states(padded, mask), strict=True):
                    vectors[i] = states[: len(texts[i])].float().cpu()
        finally:
            self.model.train(was_training)
        return vectors

    def _states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        device = next(self.model.parameters()).device
        outputs = self.model(
            input_ids=input_ids.to(device),
            attention_mask=attention_mask.to(device),
            output_hidden_states=self.layer is not None,
            return_dict=True,
        )
        if self.layer is None:
            return outputs.last_hidden_state
        layers = outputs.hidden_states
        if not is_whole(self.layer, -len(layers)) or self.layer >= len(layers):
            raise ValueError(f"layer is {self.layer!r}; this encoder has 0 (the embeddings) to {len(layers) - 1}")
        return layers[self.layer]


def bert_scores(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    model: Any,
    tokenizer: Any = None,
    layer: int | None = None,
    idf: bool = False,
    baseline: float | Sequence[float] | None = None,
    batch_size: int = 64,
    sentence_scores: bool = False,
) -> dict[str, Any]:
    """Compute the BERTScore of a corpus.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts, of which the one with the best F1 counts.
        model: a loaded model, of which the encoder is used if it has a decoder too; or a folder or Hub id. It must be
            able to read the language of the translations: a translator into French reads English.
        tokenizer: that of a loaded model.
        layer: which of the encoder's `hidden_states`, 0 for the embeddings; the paper tunes it for each model. None:
            `last_hidden_state`.
        idf: weigh tokens by their inverse document frequency in the references. A text whose tokens would all weigh 0,
            because every reference has them, is weighed evenly.
        baseline: what unrelated texts score with this encoder, b, or that of precision, recall and F1. Scores become
            (score - b) / (1 - b).
        batch_size: texts that the encoder reads together; the scores do not depend on it.
        sentence_scores: also return the scores of each sentence.

    Returns:
        `precision`, `recall` and `f1`, the means of the sentences, at most 1; `layer` and `idf` as given; and
        `sentence_scores` if asked for, a list of each of the three. An empty text scores 0 before the baseline.

    Raises:
        ValueError: an argument is not allowed, see also `group_references`.
    """
    grouped = group_references(hypotheses, references)
    if not is_whole(batch_size, 1):
        raise ValueError(f"batch_size is {batch_size!r}; allowed are whole numbers, 1 and more")
    base = [baseline or 0.0] * 3 if baseline is None or isinstance(baseline, (int, float)) else list(baseline)
    if len(base) != 3 or not all(value < 1 for value in base):
        raise ValueError(f"baseline is {baseline!r}; allowed is a number below 1, or three: precision, recall, F1")
    encoder = _Encoder(model, tokenizer, layer)
    texts = list(dict.fromkeys([*hypotheses, *(text for its in grouped for text in its)]))
    place = {text: i for i, text in enumerate(texts)}
    tokens = [encoder.tokens(text) for text in texts]
    vectors = encoder.vectors([ids for ids, _ in tokens], batch_size)
    frequencies: dict[int | None, float] = {None: 1.0}
    if idf:
        frequencies = inverse_document_frequencies([tokens[place[text]][0] for its in grouped for text in its])
    weights = [_weights(ids, special, frequencies) for ids, special in tokens]

    best = []
    for hypothesis, its_references in zip(hypotheses, grouped, strict=True):
        pairs = [(place[hypothesis], place[reference]) for reference in its_references]
        scores = [match_vectors(vectors[i], vectors[j], weights[i], weights[j]) for i, j in pairs]
        best.append(max(scores, key=lambda score: score[2]))
    columns = {
        name: [(value - b) / (1 - b) for value in column]
        for name, column, b in zip(("precision", "recall", "f1"), zip(*best, strict=True), base, strict=True)
    }
    results: dict[str, Any] = {name: sum(column) / len(column) for name, column in columns.items()}
    results |= {"layer": layer, "idf": idf}
    if sentence_scores:
        results["sentence_scores"] = columns
    return results


def _weights(ids: list[int], special: list[bool], frequencies: dict[int | None, float]) -> Tensor:
    """Weigh the tokens of a text, (text_len,)."""
    real = ~torch.tensor(special, dtype=torch.bool)
    weights = torch.tensor([frequencies.get(token, frequencies[None]) for token in ids]) * real
    return weights if weights.any() else real.float()
