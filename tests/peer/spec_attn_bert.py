# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The bidirectional encoder, described for transformers' own model tests; its heads that score tokens are in
spec_attn_bert_tokens.py."""

import torch

from hf_attn.models.configuration_attn_bert import AttnBertConfig
from hf_attn.models.modeling_attn_bert import (
    AttnBertForMaskedLM,
    AttnBertForSequenceClassification,
    AttnBertModel,
)

config_class = AttnBertConfig
model_classes = [AttnBertModel, AttnBertForMaskedLM, AttnBertForSequenceClassification]
config_kwargs = dict(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=64,
)
tasks = {
    "AttnBertForMaskedLM": "MASKED_LM",
    "AttnBertForSequenceClassification": "SEQUENCE_CLASSIFICATION",
}


def prepare_inputs(config):
    """Four texts of seven tokens, in two segments."""
    input_ids = torch.randint(3, config.vocab_size, (4, 7))
    token_type_ids = (torch.arange(7) > 3).long().expand(4, 7).contiguous()
    return {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids), "token_type_ids": token_type_ids}
