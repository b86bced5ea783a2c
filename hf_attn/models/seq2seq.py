# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
"""Hold what all encoder-decoders share: the shifted target, the tied embeddings, what is to be decoded.

    decoder input = [decoder_start, label_1, ..., label_(n-1)]   predicts   [label_1, ..., label_n]

A family's Model has `encoder.embed_tokens` and `decoder.embed_tokens`; its head adds `lm_head`. Two independent
switches tie them: `share_embeddings` (source and target; Vaswani 2017, section 3.4) and `tie_word_embeddings` (target
and output; Press & Wolf 2017, arXiv 1608.05859).
"""

import torch
from torch import nn
from transformers import PreTrainedModel

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


class Seq2SeqMixin(PreTrainedModel):
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

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Return `_tied_weights_keys`; the library's own version drops them all when `tie_word_embeddings` is False."""
        return super().get_expanded_tied_weights_keys(all_submodels=True) if all_submodels else self._tied_weights_keys

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

        Args:
            new_num_tokens: New size of the vocabulary; None leaves it.
            pad_to_multiple_of: Round the size up to a multiple of this.
            mean_resizing: Whether new rows are drawn around the mean of the old ones.

        Returns:
            The source embeddings.

        Raises:
            ValueError: If source and target have separate vocabularies.
        """
        if self.config.decoder_vocab_size is not None and (new_num_tokens, pad_to_multiple_of) != (None, None):
            raise ValueError(
                f"decoder_vocab_size={self.config.decoder_vocab_size}: a model with separate vocabularies cannot be "
                "resized by one number; build it with the sizes of both tokenizers"
            )
        resized = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        decoder = self.base_model.decoder
        if self.config.decoder_vocab_size is None and decoder.embed_tokens.num_embeddings != resized.num_embeddings:
            decoder.embed_tokens = self._get_resized_embeddings(
                decoder.embed_tokens, resized.num_embeddings, mean_resizing=mean_resizing
            )
            self.tie_weights()
        return resized

    def prepare_decoder_input_ids_from_labels(self, labels: torch.LongTensor) -> torch.LongTensor:
        """Return the decoder's input for these labels, (batch, target_len). Collators call this."""
        return shift_right(labels, self.config.decoder_start_token_id, self.config.pad_token_id)

    @staticmethod
    def create_masks_for_generate(*, attention_mask: torch.Tensor | None = None, **kwargs) -> torch.Tensor | None:
        """Return the two-dimensional padding mask: our models write their masks out themselves, also for a static
        cache."""
        return attention_mask

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
