# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' ViT (Dosovitskiy 2021, arXiv 2010.11929) equals what in ours.

The two give the same states, logits, reconstructions, attention weights and losses, up to rounding, with these
differences: ours refuse pictures that patches do not divide, where theirs leave the rest of the pixels out; ours have
no mask of patches that attention leaves out; their loss of hidden patches is divided by 0.00001 pixels too many.

Read before: `twins.py`, the form of the tables.
"""

from typing import Any

from .twins import NORM_EPS, Options, Translated, Twin, norm_eps, rename

_LAYER = {
    "self_attention.query_projection": "attention.q_proj",
    "self_attention.key_projection": "attention.k_proj",
    "self_attention.value_projection": "attention.v_proj",
    "self_attention.output_projection": "attention.o_proj",
    "self_attention_norm": "layernorm_before",
    "feed_forward.inner": "mlp.fc1",
    "feed_forward.outer": "mlp.fc2",
    "feed_forward_norm": "layernorm_after",
}


def _vit_to_ours(config: Any) -> Translated:
    options, faults = {}, []
    for name in ("image_size", "patch_size"):
        size = getattr(config, name)
        sides = set(size) if isinstance(size, (list, tuple)) else {size}
        options[name] = sides.pop()
        if sides:
            faults.append(f"{name}={size!r} (it must be as high as it is wide)")
    eps = config.layer_norm_eps
    return options | {"layer_norm_eps": None if eps == NORM_EPS["layer"] else eps}, faults


def _vit_to_theirs(values: Options) -> Translated:
    options = {name: values[name] for name in ("image_size", "patch_size")}
    return options | {"layer_norm_eps": norm_eps(values), "encoder_stride": values["patch_size"]}, []


VIT = Twin(
    model_type="vit",
    prefix="vit",
    fields={
        "num_channels": "num_channels",
        "hidden_size": "hidden_size",
        "num_hidden_layers": "num_hidden_layers",
        "num_attention_heads": "num_attention_heads",
        "intermediate_size": "intermediate_size",
        "qkv_bias": "qkv_bias",
        "activation_function": "hidden_act",
        "pooler_activation": "pooler_act",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "initializer_range": "initializer_range",
    },
    modules={
        "embeddings.class_token": "embeddings.cls_token",
        "embeddings.mask_token": "embeddings.mask_token",
        "embeddings.positions": "embeddings.position_embeddings",
        "embeddings.patch_embeddings": "embeddings.patch_embeddings.projection",
        **rename("layers.N", "layers.N", _LAYER),
        "final_norm": "layernorm",
        "pooler.dense": "pooler.dense",
    },
    heads={
        "AttnVitModel": ("ViTModel", {}),
        "AttnVitForImageClassification": ("ViTForImageClassification", {"classifier": "classifier"}),
        "AttnVitForMaskedImageModeling": ("ViTForMaskedImageModeling", {"pixels": "decoder.0"}),
    },
    fixed={"position_type": "learned", "norm_type": "layer", "pooling": "cls"},
    left_out=("pooler",),
    converted={"image_size": "image_size", "patch_size": "patch_size", "layer_norm_eps": "layer_norm_eps"},
    to_ours=_vit_to_ours,
    to_theirs=_vit_to_theirs,
)

IMAGE_TWINS = {twin.model_type: twin for twin in (VIT,)}
