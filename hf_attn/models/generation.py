# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportOptionalMemberAccess=false
"""Hold what all models that write text share, with an encoder or without one: tied weights, the loss of the labels,
which logits are wanted, and what `generate()` would take without a word.

    loss = mean, over the labels that are not -100, of -log p(label)

Axis names: batch, target_len, vocab_size, width.
Read next: seq2seq.py, what encoder-decoders add; modeling_attn_gpt.py, which needs no more.
"""

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from .inputs import check_cache_rows, check_length


class GenerativeMixin(PreTrainedModel):
    """Methods that the Model and the generating head of a family share.

    A family says in `_tied_weights_keys` what is tied: {tied parameter: its source}.
    """

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Return `_tied_weights_keys`; the library's own version drops them all when `tie_word_embeddings` is False."""
        return super().get_expanded_tied_weights_keys(all_submodels=True) if all_submodels else self._tied_weights_keys

    def label_loss(
        self, logits: torch.Tensor, labels: torch.LongTensor, num_items_in_batch: torch.Tensor | int | None = None
    ) -> torch.Tensor:
        """Average -log p(label) over the labels.

        A batch without a single label adds nothing: loss and gradients are 0, where the mean would be 0 / 0 and spoil
        every weight.

        Args:
            logits: (batch, target_len, vocab_size)
            labels: (batch, target_len), -100 where nothing is to be predicted.
            num_items_in_batch: What to divide the sum by instead of the number of labels: the labels of all batches
                that make one update.

        Returns:
            A number.
        """
        count = (labels != -100).sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
        # shift_labels: the labels are the decoder's inputs moved by one already; left to itself, the loss would move
        # them again
        return self.loss_function(
            logits, labels, logits.shape[-1], shift_labels=labels.contiguous(), num_items_in_batch=count.clamp(min=1)
        )

    @staticmethod
    def states_to_keep(
        states: torch.Tensor, logits_to_keep: int, labels: torch.LongTensor | None = None
    ) -> torch.Tensor:
        """Leave out states that no logits are wanted for: the output layer is as wide as the vocabulary.

        Args:
            states: (batch, target_len, width)
            logits_to_keep: How many of the last positions to keep; 0 for all.
            labels: What to predict, at all positions; None for nothing.

        Returns:
            (batch, kept, width)

        Raises:
            TypeError: If `logits_to_keep` is no whole number.
            ValueError: If it is negative, or leaves out positions that labels are given for.
        """
        if not isinstance(logits_to_keep, int) or isinstance(logits_to_keep, bool):
            raise TypeError(f"logits_to_keep must be a whole number, got {logits_to_keep!r}")
        if logits_to_keep < 0:
            raise ValueError(f"logits_to_keep={logits_to_keep} must be at least 0")
        if labels is not None and 0 < logits_to_keep < labels.shape[1]:
            raise ValueError(f"logits_to_keep={logits_to_keep}, but the loss needs the logits of all labels")
        return states[:, -logits_to_keep:]

    @staticmethod
    def create_masks_for_generate(*, attention_mask: torch.Tensor | None = None, **kwargs) -> torch.Tensor | None:
        """Return the two-dimensional padding mask: our models write their masks out themselves, also for a static
        cache."""
        return attention_mask

    def refused_generation_options(self) -> list[tuple[str, object, str]]:
        """Return the options that `generate()` would ignore, or apply in the wrong place, for this model: name, value
        that changes nothing, reason."""
        return []

    def _validate_generation_mode(self, generation_mode, generation_config, generation_mode_kwargs):
        """Refuse what `generate()` cannot do with this model."""
        super()._validate_generation_mode(generation_mode, generation_config, generation_mode_kwargs)
        for name, neutral, reason in self.refused_generation_options():
            value = getattr(generation_config, name)
            if value not in (None, neutral):
                raise ValueError(f"{name}={value!r} is not possible for {type(self).__name__}: {reason}")
        kind = generation_config.cache_implementation or ""
        if kind.startswith("offloaded") and not torch.accelerator.is_available():
            raise ValueError(f"cache_implementation={kind!r} needs an accelerator, and torch finds none")

    def _validate_generated_length(self, generation_config, input_ids_length, has_default_max_length):
        """Refuse a shortest output that is longer than the longest; the library warns, and no output ends."""
        shortest, longest = generation_config.min_length or 0, generation_config.max_length
        if shortest > longest:
            raise ValueError(
                f"min_length={shortest} is more than max_length={longest} (min_new_tokens="
                f"{generation_config.min_new_tokens}, max_new_tokens={generation_config.max_new_tokens}; both lengths "
                f"count what the decoder starts with: {input_ids_length})"
            )
        super()._validate_generated_length(generation_config, input_ids_length, has_default_max_length)

    def _get_stopping_criteria(self, generation_config, stopping_criteria, **kwargs):
        """Refuse an output longer than the learned positions reach before its first step, unless criteria of the caller
        may end it earlier; the last token needs no position."""
        longest = generation_config.max_length
        if not stopping_criteria:
            check_length(longest - 1, self.position_limit, f"max_length={longest}: the decoder's longest input")
        return super()._get_stopping_criteria(generation_config, stopping_criteria, **kwargs)


def check_cache(cache: object | None, batch: int) -> None:
    """Raise TypeError for a cache without keys and values, ValueError for one of another batch."""
    own = getattr(cache, "self_attention_cache", cache)
    if own is None:
        return
    if not isinstance(own, Cache) or (own.layer_class_to_replicate is None and not own.layers):
        raise TypeError(f"cache must hold keys and values, as an EncoderDecoderCache does, got {type(cache).__name__}")
    # a layer may be set up and hold nothing yet, or hold its keys in another form
    filled = [layer.keys.shape[0] for layer in own.layers if layer.is_initialized and layer.keys.dim() == 4]
    check_cache_rows(filled[0] if filled else -1, batch)
