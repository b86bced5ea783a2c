"""The decoder that stands alone, described for transformers' own model tests."""

import torch

from hf_attn.models.modeling_attn_gpt import (
    AttnGptConfig,
    AttnGptForCausalLM,
    AttnGptForSequenceClassification,
    AttnGptModel,
)

config_class = AttnGptConfig
model_classes = [AttnGptModel, AttnGptForCausalLM, AttnGptForSequenceClassification]
config_kwargs = dict(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=64,
)
tasks = {
    "AttnGptForCausalLM": "CAUSAL_LM",
    "AttnGptForSequenceClassification": "SEQUENCE_CLASSIFICATION",
}


def prepare_inputs(config):
    """Four texts of seven tokens."""
    input_ids = torch.randint(3, config.vocab_size, (4, 7))
    return {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}
