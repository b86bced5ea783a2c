# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the convolutional encoder-decoder (modeling_attn_convs2s.py)."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .checks import (
    JointVocabulary,
    check_alignment,
    check_choice,
    check_extra,
    check_initializer_range,
    check_positive,
    check_probability,
)


@strict
class AttnConvS2SConfig(JointVocabulary, PreTrainedConfig):
    """Configuration of `AttnConvS2SModel`. The defaults are Gehring's for English-Romanian, with 20 layers each.

    Args:
        vocab_size: Size of the source vocabulary, and of the target's if joint.
        decoder_vocab_size: Size of a separate target vocabulary; None for a joint one.
        hidden_size: Width of the convolutions' inputs and outputs.
        embedding_size: Width of the embeddings, of the attention, and of what the output layer reads; None for
            hidden_size.
        encoder_layers: Number of encoder layers.
        decoder_layers: Number of decoder layers; each attends to the source.
        encoder_kernel_size: Tokens in a window of the encoder's convolutions, the token itself in its centre; odd.
        decoder_kernel_size: Tokens in a window of the decoder's convolutions, the token itself at its end.
        num_attention_heads: Always 1.
        max_position_embeddings: Number of learned positions of each side.
        dropout: Dropout of embeddings, of the input of each convolution and of the output vector.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial embeddings, positions and output layer. Those of the other
            weights follow from their number of inputs.
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
        use_cache: Whether generation keeps the last inputs of each convolution.
        is_encoder_decoder: Always True.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-convs2s"
    attribute_map = {"num_hidden_layers": "encoder_layers"}
    keys_to_ignore_at_inference = [
        "cache", "encoder_last_hidden_state", "encoder_hidden_states", "decoder_hidden_states", "cross_attentions",
    ]  # fmt: skip

    vocab_size: int = 32000
    decoder_vocab_size: int | None = None
    hidden_size: int = 512
    embedding_size: int | None = None
    encoder_layers: int = 20
    decoder_layers: int = 20
    encoder_kernel_size: int = 3
    decoder_kernel_size: int = 3
    num_attention_heads: int = 1
    max_position_embeddings: int = 1024
    dropout: float | int = 0.2
    attention_dropout: float | int = 0.0
    initializer_range: float | int = 0.1
    share_embeddings: bool = False
    tie_word_embeddings: bool = False
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
        super().__post_init__(**kwargs)

    def validate_values(self):
        """Raise ValueError for a value out of its range; runs at construction and before saving."""
        check_extra(self, vars(self))
        check_positive(
            vocab_size=self.vocab_size,
            decoder_vocab_size=self.decoder_vocab_size,
            hidden_size=self.hidden_size,
            embedding_size=self.embedding_size,
            encoder_layers=self.encoder_layers,
            decoder_layers=self.decoder_layers,
            encoder_kernel_size=self.encoder_kernel_size,
            decoder_kernel_size=self.decoder_kernel_size,
            max_position_embeddings=self.max_position_embeddings,
        )
        if self.encoder_kernel_size % 2 == 0:
            raise ValueError(
                f"encoder_kernel_size={self.encoder_kernel_size} must be odd: as many tokens before the centre as after"
            )
        check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (True,))
        check_choice("num_attention_heads", self.num_attention_heads, (1,))
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_alignment(
            self.alignment_method, self.alignment_layer, self.alignment_heads, self.decoder_layers, num_heads=1
        )
        self.check_vocabularies()
