"""Translations with known attention weights."""

import pytest
import torch

from hf_attn.data import split_words
from hf_attn.inference import Translation


@pytest.fixture
def make_translation():
    """A function that makes a translation of given sentences, whose pieces are its words, with random weights."""

    def make(source, target, layers=2, heads=3, self_attention=True):
        source_spans, target_spans = [*split_words(source), None], [*split_words(target), None]
        source_tokens = [source[slice(*span)] if span else "</s>" for span in source_spans]
        target_tokens = [target[slice(*span)] if span else "</s>" for span in target_spans]
        random = torch.Generator().manual_seed(len(source) + 7 * len(target))

        def weights(queries, keys, causal=False):
            scores = 2 * torch.randn(layers, heads, queries, keys, generator=random)
            if causal:
                scores = scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -torch.inf)
            return scores.softmax(dim=-1)

        sources, targets = len(source_tokens), len(target_tokens)
        return Translation(
            source=source,
            text=target,
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            token_log_probs=[-0.5] * targets,
            score=-0.5,
            cross_attentions=weights(targets, sources),
            encoder_attentions=weights(sources, sources) if self_attention else None,
            decoder_attentions=weights(targets, targets, causal=True) if self_attention else None,
            source_spans=source_spans,
            target_spans=target_spans,
        )

    return make
