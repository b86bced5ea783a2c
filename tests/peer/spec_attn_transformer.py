"""The Transformer, described for transformers' own model tests."""

import torch

from hf_attn.models.modeling_attn_transformer import (
    AttnTransformerConfig,
    AttnTransformerForConditionalGeneration,
    AttnTransformerModel,
)

config_class = AttnTransformerConfig
model_classes = [AttnTransformerModel, AttnTransformerForConditionalGeneration]
config_kwargs = dict(
    vocab_size=99,
    hidden_size=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_intermediate_size=64,
    decoder_intermediate_size=64,
    max_position_embeddings=64,
)
tasks = {"AttnTransformerForConditionalGeneration": "SEQ_TO_SEQ_CAUSAL_LM"}


def prepare_inputs(config):
    """Four sources and four targets of seven tokens."""
    input_ids = torch.randint(3, config.vocab_size, (4, 7))
    decoder_input_ids = torch.randint(3, config.vocab_size, (4, 7))
    input_ids[:, -1] = config.eos_token_id
    return {
        "input_ids": input_ids,
        "attention_mask": torch.ones_like(input_ids),
        "decoder_input_ids": decoder_input_ids,
        "decoder_attention_mask": torch.ones_like(decoder_input_ids),
    }
