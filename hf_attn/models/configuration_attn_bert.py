# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the bidirectional encoder (modeling_attn_bert.py)."""

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
    is_whole,
)

POSITION_TYPES = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative")
NORM_TYPES = ("layer", "rms")


@strict
class AttnBertConfig(PreTrainedConfig):
    """Configuration of `AttnBertModel`. The defaults are the base model of Devlin 2019 (arXiv 1810.04805), section 3;
    the options are published alternatives, among them those that make the model a RoBERTa (Liu 2019, 1907.11692),
    ALBERT (Lan 2020, 1909.11942), ELECTRA (Clark 2020, 2003.10555) or DistilBERT (Sanh 2019, 1910.01108).

    Args, sizes:
        vocab_size: Size of the vocabulary.
        hidden_size: Width of the states (H).
        embedding_size: Width of the embeddings; None for hidden_size. A different width is projected (ALBERT, ELECTRA).
        num_hidden_layers: Number of layers (L).
        num_attention_heads: Heads in each layer (A).
        intermediate_size: Width inside the feed-forward networks.
        share_layers: Whether all layers are one, run `num_hidden_layers` times (ALBERT).

    Args, embeddings and positions:
        type_vocab_size: Number of segments that token types tell apart; 0 for none (DistilBERT).
        position_type: "none", "sinusoidal", "learned", "rotary", "alibi" or "relative" (positions.py).
        max_position_embeddings: Number of learned positions; for the other types the length that inputs are cut to, not
            a limit of the model.
        position_offset: Number of the first learned position; RoBERTa's is `pad_token_id` + 1.

    Args, layers:
        norm_first: Norm before each sublayer (pre-norm) instead of after it (post-norm, the paper's).
        norm_type: "layer" or "rms".
        layer_norm_eps: Added to the variance before its root is divided by; None for 1e-5 ("layer") or 1e-6 ("rms").
        activation_function: Activation of the feed-forward networks and of the masked-language-model head, by
            transformers' names.

    Args, heads:
        tie_word_embeddings: Whether the output layer of the masked language model is the embedding.
        use_pooler: Whether `AttnBertModel` returns a vector of the first token (BERT, ALBERT); classification of
            sentences has one always.
        pooler_activation: Activation of that vector: "tanh", in ELECTRA "gelu", in DistilBERT "relu".

    Args, training:
        dropout: Dropout of embeddings, of each sublayer's output and of what a classifier reads.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial weights.

    Args, tokens:
        pad_token_id: Id of padding.
        bos_token_id: Id of the beginning of a sentence, or None.
        eos_token_id: Id of the end of a sentence, or None.
        is_encoder_decoder: Always False.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-bert"
    keys_to_ignore_at_inference = ["pooler_output", "hidden_states", "attentions"]

    vocab_size: int = 30522
    hidden_size: int = 768
    embedding_size: int | None = None
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    share_layers: bool = False
    type_vocab_size: int = 2
    position_type: str = "learned"
    max_position_embeddings: int = 512
    position_offset: int = 0
    norm_first: bool = False
    norm_type: str = "layer"
    layer_norm_eps: float | int | None = 1e-12
    activation_function: str = "gelu"
    tie_word_embeddings: bool = True
    use_pooler: bool = True
    pooler_activation: str = "tanh"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.1
    initializer_range: float | int = 0.02
    pad_token_id: int = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    is_encoder_decoder: bool = False

    def __post_init__(self, **kwargs):
        check_extra(self, kwargs)
        self.validate_values()
        super().__post_init__(**kwargs)

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings: `embedding_size`, or `hidden_size` where that is None."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    def validate_values(self):
        """Raise ValueError for a value out of range; runs at construction and before saving."""
        check_extra(self, vars(self))
        check_positive(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            embedding_size=self.embedding_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
        )
        for name in ("type_vocab_size", "position_offset"):
            if not is_whole(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)} must be at least 0")
        check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (False,))
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_choice("norm_type", self.norm_type, NORM_TYPES)
        if self.layer_norm_eps is not None and not 0 < self.layer_norm_eps < math.inf:
            raise ValueError(f"layer_norm_eps={self.layer_norm_eps} must be greater than 0 and finite, or None")
        self.check_positions()
        check_token_ids(
            self.vocab_size,
            self.vocab_size,
            self.pad_token_id,
            bos_token_id=self.bos_token_id,
            eos_token_id=self.eos_token_id,
        )

    def check_positions(self):
        """Raise ValueError for heads and options that the kind of positions cannot have."""
        check_choice("position_type", self.position_type, POSITION_TYPES)
        check_divisible("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        if self.position_type == "rotary":
            head_dim = self.hidden_size // self.num_attention_heads
            check_divisible("hidden_size / num_attention_heads", head_dim, "the pair size of rotary positions,", 2)
        if self.position_offset and self.position_type != "learned":
            raise ValueError(
                f"position_offset={self.position_offset} needs position_type='learned', got "
                f"position_type={self.position_type!r}"
            )
        if self.position_offset >= self.max_position_embeddings:
            raise ValueError(
                f"position_offset={self.position_offset} must be less than max_position_embeddings="
                f"{self.max_position_embeddings}, or no position is left"
            )
