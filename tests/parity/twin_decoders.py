# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Random small GPT-2, Llama and Mistral models of transformers, and batches for them."""

import random

import torch
import transformers

from hf_attn.hub.decoder_twins import DECODER_TWINS

SEEDS = range(6)
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 41}
LENGTHS = (9, 5, 1)
LLAMA = {
    "hidden_size": (24, 36),
    "num_hidden_layers": (1, 2, 3),
    "num_attention_heads": (
        *({"num_attention_heads": 2, "num_key_value_heads": 1}, {"num_attention_heads": 2, "num_key_value_heads": 2}),
        *({"num_attention_heads": 6, "num_key_value_heads": 3}, {"num_attention_heads": 6, "num_key_value_heads": 1}),
    ),
    "head_dim": (None, 6, 10),
    "intermediate_size": (16, 30),
    "hidden_act": ("silu", "gelu"),
    "rms_norm_eps": (1e-6, 1e-3),
    "rope_parameters": tuple({"rope_type": "default", "rope_theta": theta} for theta in (10000.0, 500.0)),
    "tie_word_embeddings": (True, False),
    "max_position_embeddings": (32, 48),
    "attention_dropout": (0.0, 0.1),
}
CHOICES = {
    "gpt2": {
        "n_embd": (12, 24),
        "n_layer": (1, 2, 3),
        "n_head": (1, 2, 3, 4),
        "n_inner": (None, 16, 30),
        "n_positions": (32, 48),
        "activation_function": ("gelu_new", "relu", "gelu"),
        "layer_norm_epsilon": (1e-5, 1e-3),
        "tie_word_embeddings": (True, False),
        "resid_pdrop": ({"resid_pdrop": 0.0, "embd_pdrop": 0.0}, {"resid_pdrop": 0.2, "embd_pdrop": 0.2}),
        "attn_pdrop": (0.0, 0.1),
    },
    "llama": LLAMA
    | {
        "num_attention_heads": (*LLAMA["num_attention_heads"], {"num_attention_heads": 4}),
        "bias": ({"attention_bias": True, "mlp_bias": True}, {"attention_bias": False, "mlp_bias": False}),
    },
    "mistral": LLAMA | {"sliding_window": (None, 2, 4)},
}


def options_of(kind, seed):
    """Draw the options of a model; every choice of an option comes up with some seed."""
    options = {}
    for name, choices in CHOICES[kind].items():
        repeated = [choices[seed % len(choices)] for seed in SEEDS]
        drawn = random.Random(f"{kind} {name}").sample(repeated, len(SEEDS))[seed]
        options |= drawn if name in ("num_attention_heads", "resid_pdrop", "bias") else {name: drawn}
    return options


def random_decoder(kind, seed, our_class="AttnGptForCausalLM", sharpness=4.0, **options):
    """A model of transformers in evaluation mode; every tensor is random, biases and norms included.

    Args:
        kind: One of CHOICES.
        seed: Of options and weights.
        our_class: The class that is to be its twin.
        sharpness: Factor of the matrices; more makes an untrained model choose several tokens instead of repeating one.
        options: Of the configuration, on top of those drawn.
    """
    model_class = getattr(transformers, DECODER_TWINS[kind].heads[our_class][0])
    config = model_class.config_class(**SPECIAL | options_of(kind, seed) | options)
    model = model_class._from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=sharpness * 0.08, generator=generator)
            else:
                parameter.add_(torch.empty_like(parameter).normal_(std=0.1, generator=generator))
    return model


def batch_of(left, seed=0):
    """A batch padded on one side; labels of what follows a real token; positions for who does not count them."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 41, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = (torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]).long()
    mask = mask.flip(1) if left else mask
    ids = ids.masked_fill(mask == 0, 0)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    predicted = (mask == 1) & (positions > 0)  # transformers would predict the first token from the padding before it
    return {"input_ids": ids, "attention_mask": mask}, ids.masked_fill(~predicted, -100), {"position_ids": positions}
