# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the Transformer encoder-decoder (modeling_attn_transformer.py)."""

import math

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .checks import (
    JointVocabulary,
    check_alignment,
    check_choice,
    check_divisible,
    check_extra,
    check_initializer_range,
    check_positive,
    check_probability,
)

POSITION_TYPES = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
SINUSOIDAL_ORDERS = ("interleaved", "concatenated")
NORM_TYPES = ("layer", "rms")


@strict
class AttnTransformerConfig(JointVocabulary, PreTrainedConfig):
    """Configuration of `AttnTransformerModel`. The defaults are the base model of Vaswani 2017 (arXiv 1706.03762),
    table 3; the options are published alternatives, among them all that make the model a BART (Lewis 2020, 1910.13461),
    mBART (Liu 2020, 2001.08210), Marian (Junczys-Dowmunt 2018, 1804.00344) or T5 (Raffel 2020, 1910.10683).

    Args, sizes:
        vocab_size: Size of the source vocabulary, and of the target's if joint.
        decoder_vocab_size: Size of a separate target vocabulary; None for a joint one.
        hidden_size: Width of the states (d_model).
        embedding_size: Width of the embeddings; None for hidden_size. A different width is projected, as ALBERT does
            (1909.11942, section 3.1).
        encoder_layers: Number of encoder layers (N).
        decoder_layers: Number of decoder layers (N).
        encoder_attention_heads: Heads in each encoder layer (h).
        decoder_attention_heads: Heads in each decoder layer (h).
        head_dim: Width of a head (d_k); None for hidden_size / heads. T5's largest have wider ones.
        encoder_intermediate_size: Width inside the encoder's feed-forward networks (d_ff).
        decoder_intermediate_size: Width inside the decoder's feed-forward networks (d_ff).

    Args, embeddings and positions:
        share_embeddings: Whether source and target have the same embeddings; needs a joint vocabulary.
        scale_embedding: Multiply embeddings by sqrt(hidden_size), as the paper does (section 3.4).
        normalize_embedding: Norm of embedding + position (BART, mBART).
        position_type: "none", "sinusoidal", "learned", "rotary", "alibi" or "relative" (positions.py).
        max_position_embeddings: Number of learned positions; for the other types the length that inputs are cut to, not
            a limit of the model.
        sinusoidal_order: "interleaved", sine and cosine in turn, or "concatenated", all sines before all cosines
            (Marian).
        relative_attention_num_buckets: Number of distances that relative positions tell apart.
        relative_attention_max_distance: Distance from which on they tell none apart.

    Args, layers:
        norm_first: Norm before each sublayer (pre-norm) instead of after it (post-norm, the paper's).
        norm_type: "layer" or "rms".
        layer_norm_eps: Added to the variance before its root is divided by; None for 1e-5 ("layer") or 1e-6 ("rms").
        scale_attention: Divide dot products by sqrt(head_dim); T5 does not.
        use_bias: Whether attention and feed-forward networks have biases; T5's have none.
        activation_function: Activation of the feed-forward networks, by transformers' names.
        gated_feed_forward: Multiply what is inside a feed-forward network by a gate: activation(V x) * W x
            (Shazeer 2020, 2002.05202; T5 1.1).

    Args, output:
        tie_word_embeddings: Whether the output layer is the target embedding.
        scale_output: Multiply the last states by hidden_size ** -0.5 (T5 with a tied output layer).
        output_bias: Whether the output layer has a bias (BART, Marian).

    Args, training:
        dropout: Dropout of embeddings and of each sublayer's output.
        attention_dropout: Dropout of attention weights.
        activation_dropout: Dropout inside the feed-forward networks, after the activation.
        initializer_range: Standard deviation of the initial weights; None for hidden_size ** -0.5, Glorot's for a
            square matrix.

    Args, alignment:
        alignment_method: How word alignments are best read off the attention: "weights", "value_norm", "shifted" or
            "shifted_value_norm".
        alignment_layer: Decoder layer to read them from, counted from 0; None for the last.
        alignment_heads: Heads of that layer to average, counted from 0; None for all.

    Args, tokens and generation:
        pad_token_id: Id of padding.
        bos_token_id: Id of the beginning of a sentence.
        eos_token_id: Id of the end of a sentence.
        decoder_start_token_id: First input of the decoder; T5's is `pad_token_id`.
        use_cache: Whether generation keeps keys and values.
        is_encoder_decoder: Always True.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-transformer"
    attribute_map = {
        "num_hidden_layers": "encoder_layers",
        "num_attention_heads": "encoder_attention_heads",
        "intermediate_size": "encoder_intermediate_size",
    }
    keys_to_ignore_at_inference = [
        "cache", "encoder_last_hidden_state", "encoder_hidden_states", "decoder_hidden_states",
        "encoder_attentions", "decoder_attentions", "cross_attentions",
    ]  # fmt: skip

    vocab_size: int = 32000
    decoder_vocab_size: int | None = None
    hidden_size: int = 512
    embedding_size: int | None = None
    encoder_layers: int = 6
    decoder_layers: int = 6
    encoder_attention_heads: int = 8
    decoder_attention_heads: int = 8
    head_dim: int | None = None
    encoder_intermediate_size: int = 2048
    decoder_intermediate_size: int = 2048
    share_embeddings: bool = True
    scale_embedding: bool = True
    normalize_embedding: bool = False
    position_type: str = "sinusoidal"
    max_position_embeddings: int = 512
    sinusoidal_order: str = "interleaved"
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    norm_first: bool = False
    norm_type: str = "layer"
    layer_norm_eps: float | int | None = None
    scale_attention: bool = True
    use_bias: bool = True
    activation_function: str = "relu"
    gated_feed_forward: bool = False
    tie_word_embeddings: bool = True
    scale_output: bool = False
    output_bias: bool = False
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    activation_dropout: float | int = 0.0
    initializer_range: float | int | None = None
    alignment_method: str = "weights"
    alignment_layer: int | None = None
    alignment_heads: list[int] | None = None
    pad_token_id: int = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int = 1
    use_cache: bool = True
    is_encoder_decoder: bool = True

    def __post_init__(self, **kwargs):
        check_extra(self, kwargs)
        self.validate_values()
        if self.initializer_range is None:
            self.initializer_range = self.hidden_size**-0.5
        if self.head_dim is None and self.encoder_attention_heads == self.decoder_attention_heads:
            self.head_dim = self.hidden_size // self.decoder_attention_heads  # transformers' caches ask for it
        super().__post_init__(**kwargs)

    def validate_values(self):
        """Raise ValueError for a value out of range; runs at construction and before saving."""
        check_extra(self, vars(self))
        check_positive(
            vocab_size=self.vocab_size,
            decoder_vocab_size=self.decoder_vocab_size,
            hidden_size=self.hidden_size,
            embedding_size=self.embedding_size,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            encoder_attention_heads=self.encoder_attention_heads,
            decoder_attention_heads=self.decoder_attention_heads,
            head_dim=self.head_dim,
            encoder_intermediate_size=self.encoder_intermediate_size,
            decoder_intermediate_size=self.decoder_intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
            relative_attention_num_buckets=self.relative_attention_num_buckets,
            relative_attention_max_distance=self.relative_attention_max_distance,
        )
        if self.initializer_range is not None:
            check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (True,))
        check_probability(
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
        )
        check_choice("norm_type", self.norm_type, NORM_TYPES)
        if self.layer_norm_eps is not None and not 0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps={self.layer_norm_eps} must be greater than 0 and finite, or None")
        self.check_positions()
        check_alignment(
            self.alignment_method,
            self.alignment_layer,
            self.alignment_heads,
            self.decoder_layers,
            self.decoder_attention_heads,
        )
        self.check_vocabularies()

    def check_positions(self):
        """Raise ValueError for heads and options that the kind of positions cannot have."""
        check_choice("position_type", self.position_type, POSITION_TYPES)
        check_choice("sinusoidal_order", self.sinusoidal_order, SINUSOIDAL_ORDERS)
        for position_type, name, default in (
            ("sinusoidal", "sinusoidal_order", "interleaved"),
            ("relative", "relative_attention_num_buckets", 32),
            ("relative", "relative_attention_max_distance", 128),
        ):
            value = getattr(self, name)
            if value != default and self.position_type != position_type:
                raise ValueError(
                    f"{name}={value!r} needs position_type={position_type!r}, got position_type={self.position_type!r}"
                )
        buckets, farthest = self.relative_attention_num_buckets, self.relative_attention_max_distance
        if buckets < 4 or farthest <= buckets // 2:
            raise ValueError(
                f"relative_attention_num_buckets={buckets} must be at least 4, and relative_attention_max_distance="
                f"{farthest} greater than the {buckets // 2} distances that have a bucket of their own"
            )
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads, what, width = getattr(self, name), "head_dim", self.head_dim
            if width is None:
                check_divisible("hidden_size", self.hidden_size, name, heads)
                what, width = f"hidden_size / {name}", self.hidden_size // heads
            if self.position_type == "rotary":
                check_divisible(what, width, "the pair size of rotary positions,", 2)
