# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Describe the recurrent family to transformers' own model tests."""

import torch

from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration, AttnRnnModel
from hf_attn.models.recurrent import RecurrentCache

name = "attn-rnn"
config_class = AttnRnnConfig
model_classes = [AttnRnnModel, AttnRnnForConditionalGeneration]
config_kwargs = dict(
    vocab_size=99,
    hidden_size=32,
    encoder_layers=2,
    decoder_layers=2,
    attention_type="luong",
    input_feeding=True,
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
    """The cache holds one state a layer, whatever the length."""
    self.assertIsInstance(cache, RecurrentCache)
    self.assertEqual(cache.get_seq_length(), seq_length)
    for hidden, cell in cache.memory.states:
        self.assertEqual(hidden.shape, (batch_size, config.hidden_size))
        self.assertEqual(cell.shape, (batch_size, config.hidden_size))


def check_encoder_states(self, hidden_states, batch_size, config, prompt_length):
    """The states of both directions lie side by side."""
    widths = [config.embedding_width] + [config.source_width] * config.encoder_layers
    shapes = [(batch_size, prompt_length, width) for width in widths]
    self.assertEqual([tuple(states.shape) for states in hidden_states], shapes)


def check_caches_are_equal(self, first, second):
    """Two caches hold the same states."""
    self.assertEqual(first.get_seq_length(), second.get_seq_length())
    for one, other in zip(first.memory.states, second.memory.states, strict=True):
        for part, expected in zip(one, other, strict=True):
            torch.testing.assert_close(part, expected)


tasks = {"AttnRnnForConditionalGeneration": "SEQ_TO_SEQ_CAUSAL_LM"}
# The tests of `has_attentions` ask for self-attention in every layer, which a recurrent network does not have.
flags = dict(has_attentions=False)
overrides = {
    "_check_encoder_hidden_states_for_generate": check_encoder_states,
    "_check_past_key_values_for_generate": check_cache,
    "_check_caches_are_equal": check_caches_are_equal,
}
