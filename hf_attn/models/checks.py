# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Hold checks that name the value and what is allowed, and what the configurations share: the joint vocabulary."""

import copy
import dataclasses
import difflib
import math
import numbers

from transformers import GenerationConfig, PreTrainedConfig


def is_whole(value: object, least: int = 0) -> bool:
    """Tell whether value is a whole number of at least `least`; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


def check_finite(name: str, value: object) -> None:
    """Raise ValueError unless value is a finite number."""
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be a finite number")


def check_choice(name: str, value: object, allowed: tuple) -> None:
    """Raise ValueError unless value is one of the allowed ones."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not allowed; choose one of {', '.join(map(repr, allowed))}")


def check_positive(**values: int | None) -> None:
    """Raise ValueError for the first value that is less than 1; None passes."""
    for name, value in values.items():
        if value is not None and value < 1:
            raise ValueError(f"{name}={value} must be at least 1")


def check_probability(**values: float) -> None:
    """Raise ValueError for the first value outside [0, 1)."""
    for name, value in values.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name}={value} must be at least 0 and less than 1")


def check_divisible(name: str, value: int, divisor_name: str, divisor: int) -> None:
    """Raise ValueError unless value is a multiple of divisor."""
    if value % divisor:
        raise ValueError(f"{name}={value} must be a multiple of {divisor_name}={divisor}")


def check_token_ids(
    vocab_size: int,
    target_size: int,
    pad_token_id: int | None,
    decoder_start_token_id: int | None = None,
    bos_token_id: int | None = None,
    eos_token_id: int | list[int] | None = None,
) -> None:
    """Raise ValueError for an id outside its vocabulary, and for an end of sentences that padding would mask.

    Args:
        vocab_size: Size of the source vocabulary.
        target_size: Size of the target vocabulary.
        pad_token_id: An id of both, or None.
        decoder_start_token_id: An id of the target, or None.
        bos_token_id: The same, or None.
        eos_token_id: One or several ids of the target, or None.
    """
    ends = eos_token_id if isinstance(eos_token_id, list) else [eos_token_id]
    if not ends:
        raise ValueError("eos_token_id=[] must have at least one id, or be None")
    for name, value, size in (
        ("pad_token_id", pad_token_id, min(vocab_size, target_size)),
        ("decoder_start_token_id", decoder_start_token_id, target_size),
        ("bos_token_id", bos_token_id, target_size),
        *(("eos_token_id", end, target_size) for end in ends),
    ):
        if value is not None and not 0 <= value < size:
            raise ValueError(f"{name}={value} must be at least 0 and less than {size}")
    if pad_token_id is not None and pad_token_id in ends:
        raise ValueError(
            f"pad_token_id={pad_token_id} must differ from eos_token_id={eos_token_id}: padding is masked, and the end "
            "of a sentence would be masked with it"
        )


def check_initializer_range(value: float) -> None:
    """Raise ValueError unless the standard deviation of the initial weights is positive."""
    if not 0 < value < math.inf:
        raise ValueError(f"initializer_range={value} must be greater than 0 and finite")


def check_extra(config: PreTrainedConfig, extra: dict[str, object]) -> None:
    """Raise ValueError for an extra value of a configuration that would change nothing, in silence: a setting of
    `generate()`, which the library drops, or a misspelt field, which it keeps beside the real one."""
    fields = {field.name for field in dataclasses.fields(config)}
    settings = vars(GenerationConfig()).keys() - {"output_attentions", "output_hidden_states", "transformers_version"}
    # the last is an old field of transformers' own; the Trainer writes use_cache into every configuration
    others = {*config.attribute_map, "tie_encoder_decoder"}
    for name, value in extra.items():
        if name in fields or name == "use_cache" or name.startswith("_"):
            continue
        if name in settings and value is not None:
            raise ValueError(f"{name}={value!r} is a setting of generate(); set it in the model's generation_config")
        nearest = difflib.get_close_matches(name, fields, n=1, cutoff=0.88)
        if nearest and name not in others:
            raise ValueError(f"{name}={value!r} is no field of the configuration; did you mean {nearest[0]!r}?")


# How a word alignment is read off cross-attention; hf_attn/inference/translation.py says what each does.
ALIGNMENT_METHODS = ("weights", "value_norm", "shifted", "shifted_value_norm")


def check_alignment(method: str, layer: int | None, heads: list[int] | None, layers: int, num_heads: int) -> None:
    """Raise ValueError unless a model of so many decoder layers and heads can recommend this alignment.

    Args:
        method: A name in ALIGNMENT_METHODS.
        layer: Decoder layer, counted from 0; None for the last.
        heads: Heads to average, counted from 0; None for all.
        layers: Number of decoder layers with attention to the source; 0 for none.
        num_heads: Number of heads in each.
    """
    check_choice("alignment_method", method, ALIGNMENT_METHODS)
    if layers == 0 and (layer, heads) != (None, None):
        raise ValueError(
            f"alignment_layer={layer} and alignment_heads={heads} must be None without attention to the source"
        )
    if layer is not None and not 0 <= layer < layers:
        raise ValueError(f"alignment_layer={layer} must be at least 0 and less than {layers}, the number of layers")
    if heads is not None and (not heads or len(set(heads)) < len(heads) or not set(heads) <= set(range(num_heads))):
        raise ValueError(
            f"alignment_heads={heads} must be heads of 0 to {num_heads - 1}, at least one and each once, or None for "
            "the mean of all"
        )


class JointVocabulary:
    """A configuration whose `decoder_vocab_size` is None when source and target share one vocabulary, and whose
    `embedding_size` is None when embeddings are as wide as states."""

    vocab_size: int
    decoder_vocab_size: int | None
    hidden_size: int
    embedding_size: int | None
    share_embeddings: bool
    pad_token_id: int
    bos_token_id: int | None
    eos_token_id: int | list[int] | None
    decoder_start_token_id: int

    @property
    def target_vocab_size(self) -> int:
        """Size of the target vocabulary, joint or separate."""
        return self.vocab_size if self.decoder_vocab_size is None else self.decoder_vocab_size

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings: `embedding_size`, or `hidden_size` where that is None."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    def check_vocabularies(self):
        """Raise ValueError for token ids outside their vocabulary, and for embeddings that cannot be shared."""
        check_token_ids(
            self.vocab_size,
            self.target_vocab_size,
            self.pad_token_id,
            self.decoder_start_token_id,
            self.bos_token_id,
            self.eos_token_id,
        )
        if self.share_embeddings and self.target_vocab_size != self.vocab_size:
            raise ValueError(
                f"share_embeddings=True needs a joint vocabulary, got vocab_size={self.vocab_size} and "
                f"decoder_vocab_size={self.decoder_vocab_size}; set share_embeddings=False"
            )

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None):
        """Return the configuration of one side.

        For the decoder the library renames `decoder_<field>` to `<field>`; without this its vocab_size would become
        None. Asked for no side, it wants to know what `generate()` writes: the target's vocabulary.
        """
        if not decoder and not encoder and self.decoder_vocab_size not in (None, self.vocab_size):
            target = copy.copy(self)
            target.vocab_size = self.decoder_vocab_size
            return target
        if decoder and not encoder and self.decoder_vocab_size is None:
            joint = copy.copy(self)
            joint.decoder_vocab_size = joint.vocab_size
            return super(JointVocabulary, joint).get_text_config(decoder=decoder, encoder=encoder)  # type: ignore
        return super().get_text_config(decoder=decoder, encoder=encoder)  # type: ignore
