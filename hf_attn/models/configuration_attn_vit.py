# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the encoder of pictures (modeling_attn_vit.py)."""

import math

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .checks import (
    check_choice,
    check_divisible,
    check_extra,
    check_initializer_range,
    check_positive,
    check_probability,
)

POSITION_TYPES = ("none", "sinusoidal", "learned")
NORM_TYPES = ("layer", "rms")
POOLINGS = ("cls", "mean")


@strict
class AttnVitConfig(PreTrainedConfig):
    """Configuration of `AttnVitModel`. The defaults are ViT-Base/16 of Dosovitskiy 2021 (arXiv 2010.11929), section
    4.1, with the names that transformers' `ViTConfig` has; the options are published alternatives.

    Args, pictures:
        image_size: Height and width of a picture, in pixels. Other sizes need interpolated positions.
        patch_size: Height and width of a patch.
        num_channels: Number of colours.

    Args, sizes:
        hidden_size: Width of the states (D).
        num_hidden_layers: Number of layers (L).
        num_attention_heads: Heads in each layer.
        intermediate_size: Width inside the feed-forward networks.

    Args, layers:
        position_type: "learned"; "sinusoidal" for fixed waves along rows and columns (He 2022, 2111.06377; Beyer 2022,
            2205.01580); "none" (section D.4).
        qkv_bias: Whether queries, keys and values have biases.
        norm_type: "layer" or "rms".
        layer_norm_eps: Added to the variance before its root is divided by; None for 1e-5 ("layer") or 1e-6 ("rms").
        activation_function: Activation of the feed-forward networks, by transformers' names.

    Args, heads:
        pooling: What stands for the picture: "cls", the state of a class token before the patches, or "mean", the mean
            state of the patches, without such a token (Zhai 2022, 2106.04560; Beyer 2022).
        use_pooler: Whether `AttnVitModel` returns a vector of the picture: the hidden layer that the paper's
            classifier has in pre-training.
        pooler_activation: Activation of that vector.

    Args, training:
        dropout: Dropout of embeddings and of each sublayer's output.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial weights.
        is_encoder_decoder: Always False.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-vit"
    keys_to_ignore_at_inference = ["pooler_output", "hidden_states", "attentions"]

    image_size: int = 224
    patch_size: int = 16
    num_channels: int = 3
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    position_type: str = "learned"
    qkv_bias: bool = True
    norm_type: str = "layer"
    layer_norm_eps: float | int | None = 1e-12
    activation_function: str = "gelu"
    pooling: str = "cls"
    use_pooler: bool = True
    pooler_activation: str = "tanh"
    dropout: float | int = 0.0
    attention_dropout: float | int = 0.0
    initializer_range: float | int = 0.02
    is_encoder_decoder: bool = False

    def __post_init__(self, **kwargs):
        check_extra(self, kwargs)
        self.validate_values()
        super().__post_init__(**kwargs)

    @property
    def grid_size(self) -> int:
        """Number of rows, and of columns, of patches in a picture of `image_size`."""
        return self.image_size // self.patch_size

    @property
    def class_tokens(self) -> int:
        """Number of tokens before the patches: 1 with a class token, else 0."""
        return int(self.pooling == "cls")

    def validate_values(self):
        """Raise ValueError for a value out of range; runs at construction and before saving."""
        check_extra(self, vars(self))
        check_positive(
            image_size=self.image_size,
            patch_size=self.patch_size,
            num_channels=self.num_channels,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
        )
        check_divisible("image_size", self.image_size, "patch_size", self.patch_size)
        check_divisible("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        check_choice("position_type", self.position_type, POSITION_TYPES)
        if self.position_type == "sinusoidal":
            check_divisible("hidden_size", self.hidden_size, "the waves' number of kinds, for rows and columns,", 4)
        check_choice("norm_type", self.norm_type, NORM_TYPES)
        if self.layer_norm_eps is not None and not 0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps={self.layer_norm_eps} must be greater than 0 and finite, or None")
        check_choice("pooling", self.pooling, POOLINGS)
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (False,))
