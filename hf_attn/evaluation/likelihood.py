# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Turn the logits of a language or translation model into log-probabilities and perplexity.

    log P(sentence) = sum over positions of log P(word | words before)
    perplexity      = exp(-sum of log P / number of words)

Both sums run over real words only and are divided once, at the end: the batch size and the padding cannot change
the result, as they would if the losses of batches were averaged.
Read next: `from_scratch.py`, where the same is written for one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from ..models.inputs import check_ids, check_tensor


def sequence_log_probs(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> tuple[Tensor, Tensor]:
    """Sum the log-probabilities of the labels of each sequence.

    Args:
        logits: (batch, target_len, vocab_size), the prediction for each label: already aligned with `labels`, as the
            encoder-decoders of this package return them.
        labels: (batch, target_len), token ids.
        ignore_index: the label of positions that do not count, such as padding.

    Returns:
        The sum of natural log-probabilities, (batch,) in float64, and the number of tokens counted, (batch,).

    Raises:
        TypeError: the labels are no token ids.
        ValueError: the shapes do not fit, or a label lies outside the vocabulary.
    """
    check_tensor("logits", logits, ("batch", "target_len", "vocab_size"))
    check_ids("labels", labels, logits.shape[-1], ignored=ignore_index)
    if logits.shape[:2] != labels.shape:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)} and labels {tuple(labels.shape)}; "
            "allowed are (batch, target_len, vocab_size) and (batch, target_len)"
        )
    losses = F.cross_entropy(logits.float().transpose(1, 2), labels, ignore_index=ignore_index, reduction="none")
    return -losses.double().sum(dim=1), (labels != ignore_index).sum(dim=1)


def corpus_perplexity(log_probs: Sequence[float], token_counts: Sequence[int]) -> dict[str, float | int]:
    """Compute the perplexity of a corpus: exp(-sum of log-probabilities / number of tokens).

    Args:
        log_probs: for each sentence (or batch), the sum of its natural log-probabilities.
        token_counts: for each, the number of tokens in the sum, the end of sentence included.

    Returns:
        `perplexity`, `loss` (negative log-probability of a token, in nats) and `tokens`.

    Raises:
        ValueError: the lists differ in length or hold no token, a log-probability is above 0 or not a number, or a
            count is negative.
    """
    if len(log_probs) != len(token_counts):
        raise ValueError(f"log_probs has {len(log_probs)} entries and token_counts {len(token_counts)}; give as many")
    for index, (log_prob, count) in enumerate(zip(log_probs, token_counts, strict=True)):
        if isinstance(log_prob, str) or not log_prob <= 0:
            raise ValueError(
                f"log_probs[{index}] is {log_prob!r}; a log-probability is a number not above 0 (a loss is its "
                "negative)"
            )
        if isinstance(count, (str, float)) or count < 0:
            raise ValueError(f"token_counts[{index}] is {count!r}; allowed are whole numbers, 0 and more")
    tokens = sum(token_counts)
    if tokens == 0:
        raise ValueError("token_counts sums to 0; perplexity needs at least one token")
    loss = -math.fsum(log_probs) / tokens
    try:
        perplexity = math.exp(loss)
    except OverflowError:
        perplexity = math.inf
    return {"perplexity": perplexity, "loss": loss, "tokens": tokens}
