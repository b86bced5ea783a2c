# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the language model that is a decoder alone (modeling_attn_gpt.py)."""

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
    check_token_ids,
)

POSITION_TYPES = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
NORM_TYPES = ("layer", "rms")


@strict
class AttnGptConfig(PreTrainedConfig):
    """Configuration of `AttnGptModel`. The defaults are the smallest GPT-2 (Radford 2019, section 2.3), but for the
    special ids, which are those of our tokenizers; the options are published alternatives. With
    `position_type="rotary"`, `norm_type="rms"`, `gated_feed_forward=True`, `activation_function="silu"`,
    `use_bias=False` and `tie_word_embeddings=False` it is a Llama (Touvron 2023, arXiv 2302.13971).

    Args, sizes:
        vocab_size: Size of the vocabulary.
        hidden_size: Width of the states.
        num_hidden_layers: Number of layers.
        num_attention_heads: Heads in each layer.
        num_key_value_heads: Heads of keys and values, each shared by as many heads of queries: 1 is Shazeer's
            multi-query attention (2019, 1911.02150), more are Ainslie's grouped one (2023, 2305.13245); None for one
            for each head.
        head_dim: Width of a head; None for hidden_size / heads.
        intermediate_size: Width inside the feed-forward networks.

    Args, embeddings and positions:
        scale_embedding: Multiply embeddings by sqrt(hidden_size) (Vaswani 2017, 1706.03762, section 3.4).
        normalize_embedding: Norm of embedding + position (BLOOM: Le Scao 2022, 2211.05100, section 3.2.2).
        position_type: "none", "sinusoidal", "learned", "rotary", "alibi" or "relative" (positions.py).
        max_position_embeddings: Number of learned positions; for the other types the length that inputs are cut to, not
            a limit of the model.
        rope_theta: Base of the rotary angles; a larger one reaches farther (Xiong 2023, 2309.16039).

    Args, layers:
        sliding_window: How many of the latest tokens, itself included, a token attends to: the local half of sparse
            attention (Child 2019, 1904.10509; Beltagy 2020, 2004.05150); None for all.
        add_cross_attention: Whether each layer also attends to the states of an encoder, as transformers'
            `EncoderDecoderModel` wants it.
        cross_attention_hidden_size: Width of those states; None for hidden_size.
        norm_first: Norm before each sublayer (GPT-2) instead of after it (GPT: Radford 2018).
        norm_type: "layer" or "rms".
        layer_norm_eps: Added to the variance before its root is divided by; None for 1e-5 ("layer") or 1e-6 ("rms").
        use_bias: Whether attention and feed-forward networks have biases.
        activation_function: Activation of the feed-forward networks, by transformers' names.
        gated_feed_forward: Multiply what is inside a feed-forward network by a gate: activation(V x) * W x
            (Shazeer 2020, 2002.05202).

    Args, training:
        tie_word_embeddings: Whether the output layer is the embedding.
        dropout: Dropout of embeddings and of each sublayer's output.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial weights; those that write into the residual stream are
            narrower by sqrt(2 * num_hidden_layers).

    Args, tokens and generation:
        pad_token_id: Id of padding; None if there is none.
        bos_token_id: Id of the beginning of a text.
        eos_token_id: Id of the end of a text.
        use_cache: Whether generation keeps keys and values.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-gpt"
    keys_to_ignore_at_inference = ["cache", "hidden_states", "attentions", "cross_attentions"]

    vocab_size: int = 50257
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int = 3072
    scale_embedding: bool = False
    normalize_embedding: bool = False
    position_type: str = "learned"
    max_position_embeddings: int = 1024
    rope_theta: float | int = 10000.0
    sliding_window: int | None = None
    add_cross_attention: bool = False
    cross_attention_hidden_size: int | None = None
    norm_first: bool = True
    norm_type: str = "layer"
    layer_norm_eps: float | int | None = None
    use_bias: bool = True
    activation_function: str = "gelu_new"
    gated_feed_forward: bool = False
    tie_word_embeddings: bool = True
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.1
    initializer_range: float | int = 0.02
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    use_cache: bool = True

    def __post_init__(self, **kwargs):
        check_extra(self, kwargs)
        self.validate_values()
        if self.head_dim is None:  # transformers' caches ask for it, and for the number of heads that they hold
            self.head_dim = self.hidden_size // self.num_attention_heads
        if self.num_key_value_heads is None:
            self.num_key_value_heads = self.num_attention_heads
        super().__post_init__(**kwargs)

    @property
    def layer_types(self) -> list[str]:
        """What each layer's cache is to hold: all keys, also those that a window has left behind, since the weights
        that are returned have a column for each."""
        return ["full_attention"] * self.num_hidden_layers

    def validate_values(self):
        """Raise ValueError for a value out of range; runs at construction and before saving."""
        check_extra(self, vars(self))
        check_positive(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            intermediate_size=self.intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
            sliding_window=self.sliding_window,
            cross_attention_hidden_size=self.cross_attention_hidden_size,
        )
        check_initializer_range(self.initializer_range)
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (False,))
        check_choice("norm_type", self.norm_type, NORM_TYPES)
        if self.layer_norm_eps is not None and not 0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps={self.layer_norm_eps} must be greater than 0 and finite, or None")
        self.check_attention()
        check_token_ids(
            self.vocab_size,
            self.vocab_size,
            self.pad_token_id,
            bos_token_id=self.bos_token_id,
            eos_token_id=self.eos_token_id,
        )

    def check_attention(self):
        """Raise ValueError for heads and options that the kind of positions cannot have, or that need another."""
        check_choice("position_type", self.position_type, POSITION_TYPES)
        what, width = "head_dim", self.head_dim
        if width is None:
            check_divisible("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
            what, width = "hidden_size / num_attention_heads", self.hidden_size // self.num_attention_heads
        if self.position_type == "rotary":
            check_divisible(what, width, "the pair size of rotary positions,", 2)
        if not 0 < self.rope_theta < math.inf:
            raise ValueError(f"rope_theta={self.rope_theta} must be greater than 0 and finite")
        if self.rope_theta != 10000 and self.position_type != "rotary":
            raise ValueError(
                f"rope_theta={self.rope_theta} needs position_type='rotary', got position_type={self.position_type!r}"
            )
        if self.num_key_value_heads is not None:
            check_divisible(
                "num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.num_key_value_heads
            )
        if self.cross_attention_hidden_size is not None and not self.add_cross_attention:
            raise ValueError(
                f"cross_attention_hidden_size={self.cross_attention_hidden_size} needs add_cross_attention=True"
            )
