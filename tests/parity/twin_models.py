"""Random small models of transformers for each architecture that has a twin, and batches for them."""

import random

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

CLASSES = {
    "marian": (MarianConfig, MarianMTModel),
    "bart": (BartConfig, BartForConditionalGeneration),
    "mbart": (MBartConfig, MBartForConditionalGeneration),
    "t5": (T5Config, T5ForConditionalGeneration),
}
SEEDS = range(6)
EVERY_MODEL = [(model_type, seed) for model_type in CLASSES for seed in SEEDS]
VOCABULARY = 47
LANGUAGE = 7  # with which an mBART target begins

BART_CHOICES = {
    "d_model": (16, 24),
    "encoder_layers": (1, 2),
    "decoder_layers": (1, 2, 3),
    "encoder_attention_heads": (1, 2, 8),
    "decoder_attention_heads": (2, 4),
    "encoder_ffn_dim": (20, 32),
    "decoder_ffn_dim": (24, 36),
    "activation_function": ("relu", "gelu", "swish"),
    "scale_embedding": (True, False),
    "tie_word_embeddings": (True, False),
    "activation_dropout": (0.0, 0.1),
    "max_position_embeddings": (24, 40),
    "use_cache": (True, False),
}
CHOICES = {
    "bart": BART_CHOICES | {"decoder_start_token_id": (2, 0), "forced_eos_token_id": (2, None)},
    "mbart": BART_CHOICES | {"decoder_start_token_id": (LANGUAGE,)},
    "marian": BART_CHOICES
    | {
        "tie_word_embeddings": (
            {"share_encoder_decoder_embeddings": True},
            {"share_encoder_decoder_embeddings": False},
            {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
            {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 41},
            {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 41, "tie_word_embeddings": False},
        ),
        "pad_token_id": (3, 5),
        "decoder_start_token_id": (3,),
        "eos_token_id": (0,),
    },
    "t5": {
        "d_model": (16, 24),
        "d_kv": (4, 6, 8),
        "d_ff": (20, 32),
        "num_layers": (1, 2),
        "num_decoder_layers": (1, 3),
        "num_heads": (1, 2, 4),
        "relative_attention_num_buckets": (4, 8, 32),
        "relative_attention_max_distance": (20, 128),
        "layer_norm_epsilon": (1e-6, 1e-3),
        "feed_forward_proj": ("relu", "gated-gelu", "gated-silu", "gelu_new"),
        "tie_word_embeddings": (True, False),
        "dropout_rate": (0.0, 0.1),
        "decoder_start_token_id": (0, 9),
    },
}


def options_of(model_type, seed):
    """Draw the options of a model; every choice of an option comes up with some seed."""
    options = {}
    for name, choices in CHOICES[model_type].items():
        repeated = [choices[seed % len(choices)] for seed in SEEDS]
        drawn = random.Random(f"{model_type} {name}").sample(repeated, len(SEEDS))[seed]
        options |= drawn if isinstance(drawn, dict) else {name: drawn}
    return options


def random_model(model_type, seed, sharpness=1.0, draw=None, **options):
    """A model of transformers in evaluation mode; every tensor is random, biases, norms and last bias included.

    Args:
        model_type: one of CLASSES.
        seed: of the options.
        draw: seed of the weights; that of the options by default.
        sharpness: factor of the matrices in the layers, divisor of biases; more makes an untrained model choose several
            tokens instead of repeating one.
        options: of the configuration, on top of those drawn.
    """
    config_class, model_class = CLASSES[model_type]
    config = config_class(**{"vocab_size": VOCABULARY} | options_of(model_type, seed) | options)
    model = model_class._from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(seed if draw is None else draw)
    # T5's untied output layer: its configuration says always that it is tied
    if model_type == "t5" and not config.scale_decoder_outputs:
        model.lm_head.weight = torch.nn.Parameter(torch.empty(config.vocab_size, config.d_model))
    tensors = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    if hasattr(model, "final_logits_bias") and seed % 2:
        tensors["final_logits_bias"] = model.final_logits_bias
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.normal_(std=0.3, generator=generator)
            if "norm" in name and name.endswith("weight"):
                tensor.add_(1.0)
            elif tensor.dim() == 1 or "bias" in name:
                tensor.div_(sharpness)
            elif "embed" not in name and "shared" not in name:
                tensor.mul_(sharpness)
    return model


def ragged_batch(model, seed=0, batch=4, source_len=9, target_len=8):
    """Ids, mask and labels of rows that grow shorter, padded on the right."""
    config, generator = model.config, torch.Generator().manual_seed(seed)
    target_size = model.get_output_embeddings().weight.shape[0]
    input_ids = torch.randint(10, config.vocab_size, (batch, source_len), generator=generator)
    labels = torch.randint(10, target_size, (batch, target_len), generator=generator)
    labels[:, -1] = config.decoder_start_token_id  # mBART moves the last label to the front
    mask = torch.ones_like(input_ids)
    for row in range(1, batch):
        mask[row, source_len - row :] = 0
        labels[row, target_len - row - 1] = config.decoder_start_token_id
        labels[row, target_len - row :] = -100
    input_ids = input_ids.masked_fill(mask == 0, config.pad_token_id)
    return {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
