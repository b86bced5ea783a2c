# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Configure the recurrent encoder-decoder, without attention or with Bahdanau's, Luong's or GNMT's
(modeling_attn_rnn.py)."""

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

RNN_TYPES = ("rnn", "gru", "lstm")
ATTENTION_TYPES = ("none", "bahdanau", "luong", "gnmt")
SCORE_FUNCTIONS = ("additive", "dot", "general", "concat", "scaled_dot")
CONTEXT_FEEDING = ("every_step", "initial")


@strict
class AttnRnnConfig(JointVocabulary, PreTrainedConfig):
    """Configuration of `AttnRnnModel`.

    Args:
        vocab_size: Size of the source vocabulary, and of the target's if joint.
        decoder_vocab_size: Size of a separate target vocabulary; None for a joint one.
        hidden_size: Width of the decoder's states, and of each direction of the encoder's.
        embedding_size: Width of the embeddings; None for hidden_size.
        encoder_layers: Number of encoder layers.
        decoder_layers: Number of decoder layers.
        num_attention_heads: Always 1: recurrent attention has one query a step.
        rnn_type: "rnn" (tanh), "gru" or "lstm".
        bidirectional: Whether the encoder reads the source in both directions; the states are then 2 * hidden_size
            wide.
        bidirectional_layers: How many encoder layers do so, from the bottom; 1 in GNMT (Wu 2016, section 3.2). The
            layers above read forward, and their states are hidden_size wide. None for all.
        residual: Whether a layer's input is added to its output, in encoder and decoder, from the third layer from the
            bottom on (Wu 2016, section 3.1). An encoder layer that narrows two directions to one has no such sum.
        reverse_source: Whether a one-directional encoder reads the source from its end (Sutskever 2014, section 3.3).
        attention_type: "none", "bahdanau" (before the RNN step), "luong" (after it) or "gnmt" (before the step of the
            bottom layer; every layer reads the context).
        score_function: "additive", "dot", "general", "concat" or "scaled_dot"; None for additive with Bahdanau and
            GNMT, general with Luong.
        attention_size: Width inside the additive and concat scores; None for hidden_size.
        input_feeding: With Luong, whether each step also reads the attentional vector of the step before (section 3.3).
        context_feeding: Without attention, where the source goes: "every_step" (Cho 2014) or "initial", the first state
            only (Sutskever 2014). None for "every_step" there; with attention it must be None.
        dropout: Dropout of embeddings, between layers and of the output vector; none inside the recurrence.
        attention_dropout: Dropout of attention weights.
        initializer_range: Standard deviation of the initial weights outside the recurrent layers.
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
        use_cache: Whether generation keeps the decoder's state.
        is_encoder_decoder: Always True.

    Raises:
        ValueError: If a value is out of its range, or two do not fit together.
    """

    model_type = "attn-rnn"
    attribute_map = {"num_hidden_layers": "encoder_layers"}
    keys_to_ignore_at_inference = [
        "cache", "encoder_last_hidden_state", "encoder_hidden_states", "decoder_hidden_states", "cross_attentions",
    ]  # fmt: skip

    vocab_size: int = 32000
    decoder_vocab_size: int | None = None
    hidden_size: int = 512
    embedding_size: int | None = None
    encoder_layers: int = 1
    decoder_layers: int = 1
    num_attention_heads: int = 1
    rnn_type: str = "lstm"
    bidirectional: bool = True
    bidirectional_layers: int | None = None
    residual: bool = False
    reverse_source: bool = False
    attention_type: str = "bahdanau"
    score_function: str | None = None
    attention_size: int | None = None
    input_feeding: bool = False
    context_feeding: str | None = None
    dropout: float | int = 0.2
    attention_dropout: float | int = 0.0
    initializer_range: float | int = 0.05
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
        self.validate_layers()
        self.validate_attention()
        self.validate_embeddings()
        super().__post_init__(**kwargs)

    @property
    def encoder_widths(self) -> list[int]:
        """Widths of the states of the encoder's layers, from the bottom."""
        both = self.encoder_layers if self.bidirectional_layers is None else self.bidirectional_layers
        both = both if self.bidirectional else 0
        return [self.hidden_size * (2 if layer < both else 1) for layer in range(self.encoder_layers)]

    @property
    def source_width(self) -> int:
        """Width of the encoder's states: those of its top layer."""
        every_layer = self.bidirectional and self.bidirectional_layers in (None, self.encoder_layers)
        return self.hidden_size * (2 if every_layer else 1)

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
            attention_size=self.attention_size,
            bidirectional_layers=self.bidirectional_layers,
        )
        check_initializer_range(self.initializer_range)
        check_choice("is_encoder_decoder", self.is_encoder_decoder, (True,))
        check_probability(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_choice("rnn_type", self.rnn_type, RNN_TYPES)
        check_choice("num_attention_heads", self.num_attention_heads, (1,))
        if self.reverse_source and self.bidirectional:
            raise ValueError(
                "reverse_source=True needs bidirectional=False: a bidirectional encoder reads both ways already"
            )

    def validate_layers(self):
        """Raise ValueError for directions that the layers cannot have, or from which the decoder cannot start."""
        directed = self.bidirectional_layers
        if directed is not None and not (self.bidirectional and directed <= self.encoder_layers):
            raise ValueError(
                f"bidirectional_layers={directed} needs bidirectional=True and at least as many layers, got "
                f"bidirectional={self.bidirectional} and encoder_layers={self.encoder_layers}"
            )
        bridged = self.attention_type == "luong" or self.context_feeding == "initial"
        if bridged and len(set(self.encoder_widths)) > 1:
            raise ValueError(
                f"bidirectional_layers={directed} makes encoder layers of different widths, from whose last states "
                f"the decoder of attention_type={self.attention_type!r}, context_feeding={self.context_feeding!r} "
                "cannot start: it needs those of all layers, equally wide; set bidirectional_layers=None"
            )

    def validate_attention(self):
        """Raise ValueError for options that do not belong to the attention type."""
        check_choice("attention_type", self.attention_type, ATTENTION_TYPES)
        check_choice("score_function", self.score_function, (None, *SCORE_FUNCTIONS))
        check_choice("context_feeding", self.context_feeding, (None, *CONTEXT_FEEDING))
        if self.attention_type == "none" and self.score_function is not None:
            raise ValueError(
                f"score_function={self.score_function!r} needs attention; with attention_type='none' it must be None"
            )
        if self.attention_type != "none" and self.context_feeding is not None:
            raise ValueError(
                f"context_feeding={self.context_feeding!r} needs attention_type='none', got {self.attention_type!r}; "
                "with attention it must be None, since each step has its own context"
            )
        if self.input_feeding and self.attention_type != "luong":
            raise ValueError(
                f"input_feeding=True needs attention_type='luong', got attention_type={self.attention_type!r}"
            )
        if self.source_width != self.hidden_size and self.score_function in ("dot", "scaled_dot"):
            raise ValueError(
                f"score_function={self.score_function!r} compares states of width hidden_size={self.hidden_size} "
                f"with encoder states of width {self.source_width}; set bidirectional=False or choose another score"
            )
        layers = 0 if self.attention_type == "none" else 1
        check_alignment(self.alignment_method, self.alignment_layer, self.alignment_heads, layers, num_heads=1)

    def validate_embeddings(self):
        """Raise ValueError for token ids outside their vocabulary, and for embeddings that cannot be shared."""
        self.check_vocabularies()
        direct_output = self.attention_type in ("luong", "gnmt") or self.context_feeding == "initial"
        if self.tie_word_embeddings and direct_output and self.embedding_size not in (None, self.hidden_size):
            raise ValueError(
                f"tie_word_embeddings=True needs embedding_size == hidden_size here, got {self.embedding_size} and "
                f"{self.hidden_size}: the output layer reads a vector of width hidden_size"
            )
