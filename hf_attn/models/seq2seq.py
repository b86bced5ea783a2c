# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
"""Hold what all encoder-decoders share: the shifted target, the tied embeddings, what is to be decoded, and what
`generate()` would take without a word. What they share with a decoder that stands alone is in generation.py.

    decoder input = [decoder_start, label_1, ..., label_(n-1)]   predicts   [label_1, ..., label_n]

A family's Model has `encoder.embed_tokens` and `decoder.embed_tokens`; its head adds `lm_head`. Two independent
switches tie them: `share_embeddings` (source and target; Vaswani 2017, section 3.4) and `tie_word_embeddings` (target
and output; Press & Wolf 2017, arXiv 1608.05859).
"""

import copy
from typing import Any

import torch
from torch import nn

from .checks import check_token_ids
from .generation import GenerativeMixin
from .inputs import check_ids


def shift_right(labels: torch.LongTensor, decoder_start_token_id: int, pad_token_id: int) -> torch.LongTensor:
    """Make the decoder's input from its labels.

    Args:
        labels: (batch, target_len); -100 where nothing is to be predicted.
        decoder_start_token_id: First input of every target.
        pad_token_id: Replaces -100.

    Returns:
        (batch, target_len): the start token, then all labels but the last.
    """
    start = labels.new_full((labels.shape[0], 1), decoder_start_token_id)
    return torch.cat([start, labels[:, :-1].masked_fill(labels[:, :-1] == -100, pad_token_id)], dim=1)


def name_encoder_outputs(values: tuple | list, output_class: type) -> Any:
    """Give what an encoder returned with `return_dict=False` its names again.

    Such a tuple leaves out what is None, so that not the place but the shape of a value tells what it is.

    Args:
        values: States (batch, source_len, width) first; where there are any, the mask (batch, source_len), tuples of
            hidden states and of attention weights, and a convolutional encoder's keys or a recurrent one's last states.
        output_class: What the encoder returns otherwise.

    Returns:
        The values as an `output_class`.

    Raises:
        TypeError: If they are no tuple.
    """
    if not isinstance(values, (tuple, list)):
        raise TypeError(
            f"encoder_outputs must be what the encoder returned, or a tuple of it, got {type(values).__name__}"
        )
    fields = output_class.__dataclass_fields__
    states = (name for name in ("last_hidden_state", "key", "final_hidden", "final_cell") if name in fields)
    named = {}
    for value in values:
        if isinstance(value, torch.Tensor):
            named["attention_mask" if value.dim() == 2 else next(states)] = value
        elif value is not None:
            named["attentions" if value[0].dim() == 4 else "hidden_states"] = value
    return output_class(**named)


class Seq2SeqMixin(GenerativeMixin):
    """Methods that the Model and the ForConditionalGeneration class of an encoder-decoder family share."""

    @property
    def _tied_weights_keys(self) -> dict[str, str]:
        """{tied parameter: its source}, from `share_embeddings` and `tie_word_embeddings`."""
        has_head = hasattr(self, "lm_head")
        prefix = "model." if has_head else ""
        source, target = f"{prefix}encoder.embed_tokens.weight", f"{prefix}decoder.embed_tokens.weight"
        tied = {target: source} if self.config.share_embeddings else {}
        if has_head and self.config.tie_word_embeddings:
            tied["lm_head.weight"] = source if self.config.share_embeddings else target
        return tied

    def save_pretrained(self, *args, **kwargs):
        """Save as base.py does, with a config that says what is tied now: others than us merge, untie and retie."""
        encoder, decoder = self.base_model.encoder.embed_tokens, self.base_model.decoder.embed_tokens
        self.config.share_embeddings = decoder.weight is encoder.weight
        if hasattr(self, "lm_head"):
            self.config.tie_word_embeddings = self.lm_head.weight is decoder.weight
        super().save_pretrained(*args, **kwargs)

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the source embeddings."""
        return self.base_model.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding):
        """Replace the source embeddings, and the target's with them where they are shared."""
        self.base_model.encoder.embed_tokens = value
        if self.config.share_embeddings:
            self.base_model.decoder.embed_tokens = value

    def resize_token_embeddings(
        self, new_num_tokens: int | None = None, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Embedding:
        """Resize a joint vocabulary: source, target and output alike.

        It is joint if `decoder_vocab_size` is None or the embeddings are shared; two vocabularies of one size are not.

        Args:
            new_num_tokens: New size of the vocabulary; None leaves it.
            pad_to_multiple_of: Round the size up to a multiple of this.
            mean_resizing: Whether new rows are drawn around the mean of the old ones.

        Returns:
            The source embeddings.

        Raises:
            ValueError: If source and target have separate vocabularies, or the new one lacks the padding or start id.
        """
        if (new_num_tokens, pad_to_multiple_of) == (None, None):
            return self.get_input_embeddings()
        config = self.config
        if config.decoder_vocab_size is not None and not config.share_embeddings:
            raise ValueError(
                f"decoder_vocab_size={config.decoder_vocab_size}: a model with separate vocabularies cannot be "
                "resized by one number; build it with the sizes of both tokenizers"
            )
        if new_num_tokens is not None:
            check_token_ids(new_num_tokens, new_num_tokens, config.pad_token_id, config.decoder_start_token_id)
        resized = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        if config.decoder_vocab_size is not None:
            config.decoder_vocab_size = resized.num_embeddings
        decoder = self.base_model.decoder
        if decoder.embed_tokens.num_embeddings != resized.num_embeddings:
            decoder.embed_tokens = self._get_resized_embeddings(
                decoder.embed_tokens, resized.num_embeddings, mean_resizing=mean_resizing
            )
            self.tie_weights()
        return resized

    def prepare_decoder_input_ids_from_labels(self, labels: torch.LongTensor) -> torch.LongTensor:
        """Return the decoder's input for these labels, (batch, target_len). Collators call this."""
        return shift_right(labels, self.config.decoder_start_token_id, self.config.pad_token_id)

    def refused_generation_options(self) -> list[tuple[str, object, str]]:
        """Return the options that `generate()` would ignore, or apply in the wrong place, for this model: name, value
        that changes nothing, reason."""
        refused = [
            ("prefill_chunk_size", None, "the library would cut the source's mask into chunks"),
            ("guidance_scale", 1, "the library would have the target read as a source"),
        ]
        if self.config.decoder_vocab_size is not None and not self.config.share_embeddings:
            reason = "source and target have separate vocabularies, so their ids cannot be compared"
            refused += [("encoder_repetition_penalty", 1, reason), ("encoder_no_repeat_ngram_size", 0, reason)]
        return refused

    def _prepare_model_inputs(self, inputs, bos_token_id, model_kwargs):
        """Refuse a prompt that is none. Copy the caller's `encoder_outputs`, which `generate()` repeats in place for
        the beams; name a tuple's."""
        prompt = model_kwargs.get("decoder_input_ids")
        if prompt is not None:
            check_ids("decoder_input_ids", prompt, self.config.target_vocab_size)
        given = model_kwargs.get("encoder_outputs")
        if isinstance(given, (tuple, list)):
            given = name_encoder_outputs(given, self.encoder_output_class)
        if given is not None:
            model_kwargs["encoder_outputs"] = copy.copy(given)
        prepared = super()._prepare_model_inputs(inputs, bos_token_id, model_kwargs)
        if prompt is not None and len(prompt) != len(prepared[0]):
            raise ValueError(f"decoder_input_ids has {len(prompt)} rows for {len(prepared[0])} sources")
        return prepared

    def decoder_inputs_from_labels(
        self,
        labels: torch.LongTensor | None,
        decoder_input_ids: torch.LongTensor | None,
        decoder_inputs_embeds: torch.Tensor | None,
    ) -> torch.LongTensor | None:
        """Return the decoder's ids: those given, or the shifted labels.

        Args:
            labels: (batch, target_len) or None.
            decoder_input_ids: (batch, target_len) or None.
            decoder_inputs_embeds: (batch, target_len, embedding_size) or None.

        Returns:
            (batch, target_len), or None if embeddings take their place.

        Raises:
            TypeError: If the labels are no tensor of integers.
            ValueError: If nothing is given to decode, a label lies outside the vocabulary, or labels and decoder inputs
                differ in shape.
        """
        given = decoder_input_ids if decoder_input_ids is not None else decoder_inputs_embeds
        if labels is None and given is None:
            raise ValueError("give labels (training), or decoder_input_ids or decoder_inputs_embeds")
        if labels is not None:
            check_ids("labels", labels, self.config.target_vocab_size, ignored=-100)
        if labels is None or given is None:
            return decoder_input_ids if labels is None else self.prepare_decoder_input_ids_from_labels(labels)
        if labels.shape[:2] != given.shape[:2]:
            raise ValueError(
                f"labels have shape {tuple(labels.shape)}, the decoder's inputs {tuple(given.shape[:2])}: "
                "both must be (batch, target_len)"
            )
        return decoder_input_ids
