# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Log-probabilities and perplexity against explicit loops, whatever the batches and the padding."""

import math

import pytest
import torch

from hf_attn.evaluation import corpus_perplexity, load_metric, sequence_log_probs

IGNORE = -100


@pytest.fixture
def sentences():
    generator = torch.Generator().manual_seed(3)
    lengths = [1, 4, 9, 2, 6]
    return [
        (4 * torch.randn(length, 11, generator=generator), torch.randint(11, (length,), generator=generator))
        for length in lengths
    ]


def log_prob_by_hand(logits, labels):
    total = 0.0
    for step, label in enumerate(labels.tolist()):
        scores = logits[step].tolist()
        total += scores[label] - math.log(sum(math.exp(score) for score in scores))
    return total


def padded(sentences, extra):
    longest = max(len(labels) for _, labels in sentences) + extra
    logits = torch.full((len(sentences), longest, 11), 7.5)
    labels = torch.full((len(sentences), longest), IGNORE)
    for row, (its_logits, its_labels) in enumerate(sentences):
        logits[row, : len(its_labels)] = its_logits
        labels[row, : len(its_labels)] = its_labels
    return logits, labels


@pytest.mark.parametrize("batch_size", [1, 2, 5])
@pytest.mark.parametrize("extra", [0, 3])
def test_same_perplexity_in_every_batching(sentences, batch_size, extra):
    by_hand = [log_prob_by_hand(*sentence) for sentence in sentences]
    metric = load_metric("perplexity")
    log_probs, counts = [], []
    for start in range(0, len(sentences), batch_size):
        sums, tokens = sequence_log_probs(*padded(sentences[start : start + batch_size], extra))
        metric.add_batch(log_probs=sums, token_counts=tokens)
        log_probs += sums.tolist()
        counts += tokens.tolist()
    assert log_probs == pytest.approx(by_hand, rel=1e-5)
    assert counts == [1, 4, 9, 2, 6]

    expected = math.exp(-sum(by_hand) / 22)
    result = metric.compute()
    assert result["perplexity"] == pytest.approx(expected, rel=1e-5)
    assert result["tokens"] == 22
    assert result == corpus_perplexity(log_probs, counts)


def test_it_is_not_the_mean_of_batch_perplexities(sentences):
    """The trap: a mean of means weighs a short batch as much as a long one."""
    result = corpus_perplexity([-1.0, -40.0], [1, 10])
    assert result["perplexity"] == pytest.approx(math.exp(41 / 11))
    assert result["perplexity"] != pytest.approx(math.exp((1 + 4) / 2))


def test_another_ignore_index_and_half_precision(sentences):
    logits, labels = padded(sentences, 2)
    expected, counts = sequence_log_probs(logits, labels)
    by_pad = sequence_log_probs(logits, labels.masked_fill(labels == IGNORE, 99), ignore_index=99)
    assert torch.equal(by_pad[0], expected) and torch.equal(by_pad[1], counts)
    half = logits.to(torch.bfloat16)
    assert torch.equal(sequence_log_probs(half, labels)[0], sequence_log_probs(half.float(), labels)[0])


def test_impossible_text_has_infinite_perplexity():
    assert corpus_perplexity([-math.inf], [3])["perplexity"] == math.inf
    assert corpus_perplexity([-1e6], [3])["perplexity"] == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sequence_log_probs(torch.zeros(2, 3, 4), torch.zeros(2, 4).long()), r"labels \(2, 4\)"),
        (lambda: sequence_log_probs(torch.zeros(3, 4), torch.zeros(3).long()), r"logits must be .*got shape \(3, 4\)"),
        (lambda: corpus_perplexity([-1.0], [1, 2]), "1 entries and token_counts 2"),
        (lambda: corpus_perplexity([-1.0, 2.5], [1, 1]), r"log_probs\[1\] is 2.5"),
        (lambda: corpus_perplexity([math.nan], [1]), r"log_probs\[0\] is nan"),
        (lambda: corpus_perplexity([-1.0], [-1]), r"token_counts\[0\] is -1"),
        (lambda: corpus_perplexity([], []), "at least one token"),
        (lambda: corpus_perplexity([0.0], [0]), "at least one token"),
    ],
)
def test_what_is_not_allowed_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
