# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the Transformer encoder-decoder (modeling_attn_transformer.py)."""

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
NORM_TYPES = ("layer", "rms")


@strict
class AttnTransformerConfig(JointVocabulary, PreTrainedConfig):
    """Configuration of `AttnTransformerModel`. The defaults are the base model of Vaswani 2017 (arXiv 1706.03762),
    table 3.

    Args:
        vocab_size: Size of the source vocabulary, and of the target's if joint.
        decoder_vocab_size: Size of a separate target vocabulary; None for a joint one.
        hidden_size: Width of the states (d_model).
        embedding_size: Width of the embeddings; None for hidden_size. A different width is projected, as ALBERT does
            (1909.11942, section 3.1).
        encoder_layers: Number of encoder layers (N).
        decoder_layers: Number of decoder layers (N).
        encoder_attention_heads: Heads in each encoder layer (h).
        decoder_attention_heads: Heads in each decoder layer (h).
        encoder_intermediate_size: Width inside the encoder's feed-forward networks (d_ff).
        decoder_intermediate_size: Width inside the decoder's feed-forward networks (d_ff).
        activation_function: Activation of the feed-forward networks, by transformers' names.
        position_type: "none", "sinusoidal", "learned", "rotary", "alibi" or "relative" (positions.py).
        max_position_embeddings: Number of learned positions; for the other types the length that inputs are cut to, not
            a limit of the model.
        norm_first: Norm before each sublayer (pre-norm) instead of after it (post-norm, the paper's).
        norm_type: "layer" or "rms".
        scale_embedding: Multiply embeddings by sqrt(hidden_size), as the paper does (section 3.4).
        dropout: Dropout of embeddings and of each sublayer's output.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial weights; None for hidden_size ** -0.5, Glorot's for a
            square matrix.
        share_embeddings: Whether source and target have the same embeddings; needs a joint vocabulary.
        tie_word_embeddings: Whether the output layer is the target embedding.
        alignment_method: How word alignments are best read off the attention: "weights", "value_norm", "shifted" or
            "shifted_value_norm".
        alignment_layer: Decoder layer to read them from, counted from 0; None for the last.
        alignment_heads: Heads of that layer to average, counted from 0; None for all.
        pad_token_id: Id of padding.
        bos_token_id: Id of the beginning of a sentence.
        eos_token_id: Id of the end of a sentence.
        decoder_start_token_id: First input of the decoder.
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
    encoder_intermediate_size: int = 2048
    decoder_intermediate_size: int = 2048
    activation_function: str = "relu"
    position_type: str = "sinusoidal"
    max_position_embeddings: int = 512
    norm_first: bool = False
    norm_type: str = "layer"
    scale_embedding: bool = True
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    initializer_range: float | int | None = None
    share_embeddings: bool = True
    tie_word_embeddings: bool = True
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
            encoder_intermediate_size=self.encoder_intermediate_size,
            decoder_intermediate_size=self.decoder_intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
        )
        if self.initializer_range is not None:
            check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (True,))
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_choice("position_type", self.position_type, POSITION_TYPES)
        check_choice("norm_type", self.norm_type, NORM_TYPES)
        check_alignment(
            self.alignment_method,
            self.alignment_layer,
            self.alignment_heads,
            self.decoder_layers,
            self.decoder_attention_heads,
        )
        self.check_vocabularies()
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads = getattr(self, name)
            check_divisible("hidden_size", self.hidden_size, name, heads)
            if self.position_type == "rotary":
                check_divisible(
                    f"hidden_size / {name}", self.hidden_size // heads, "the pair size of rotary positions,", 2
                )
