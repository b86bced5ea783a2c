# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Describe the convolutional family to transformers' own model tests."""

import torch

from hf_attn.models.modeling_attn_convs2s import (
    AttnConvS2SConfig,
    AttnConvS2SForConditionalGeneration,
    AttnConvS2SModel,
    ConvolutionCache,
)

config_class = AttnConvS2SConfig
model_classes = [AttnConvS2SModel, AttnConvS2SForConditionalGeneration]
config_kwargs = dict(
    vocab_size=99,
    hidden_size=32,
    encoder_layers=2,
    decoder_layers=2,
    max_position_embeddings=64,
    share_embeddings=True,
    tie_word_embeddings=True,
)


def prepare_inputs(config):
    """Return a batch; source and target have one length, as the tests build labels of the source's."""
    source = torch.randint(3, config.vocab_size, (4, 7))
    source[:, -1] = config.eos_token_id
    target = torch.randint(3, config.vocab_size, (4, 7))
    return {
        "input_ids": source,
        "attention_mask": torch.ones_like(source),
        "decoder_input_ids": target,
        "decoder_attention_mask": torch.ones_like(target),
    }


def check_cache(self, batch_size, cache, seq_length, config):
    """The cache holds the last inputs of each layer, whatever the length. The tests may hand over the decoder's half of
    the configuration, in which `decoder_layers` has become `num_hidden_layers`."""
    self.assertIsInstance(cache, ConvolutionCache)
    self.assertEqual(cache.get_seq_length(), seq_length)
    self.assertEqual(len(cache), config.num_hidden_layers)
    for (inputs,) in cache.memory.states:
        self.assertEqual(inputs.shape, (batch_size, config.decoder_kernel_size - 1, config.hidden_size))


def check_caches_are_equal(self, first, second):
    """Two caches hold the same inputs."""
    self.assertEqual(first.get_seq_length(), second.get_seq_length())
    for (one,), (other,) in zip(first.memory.states, second.memory.states, strict=True):
        torch.testing.assert_close(one, other)


tasks = {"AttnConvS2SForConditionalGeneration": "SEQ_TO_SEQ_CAUSAL_LM"}
# The tests of `has_attentions` ask for self-attention in every layer, which a convolutional network does not have.
flags = dict(has_attentions=False)
overrides = {
    "_check_past_key_values_for_generate": check_cache,
    "_check_caches_are_equal": check_caches_are_equal,
}
