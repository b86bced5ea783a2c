# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Check the tensors that a model is given, so that a mistake is named where it was made.

Without this, an id outside the vocabulary is an "index out of range in self", and a mask, a cache or a source of
another batch may be broadcast in silence. Kinds and shapes are checked always. Values are looked at on a processor
only, since to look at those on a GPU is to wait for it, and never in compiled code, which cannot branch on them.

Axis names: batch, length, source_len, width.
Read next: the modeling files, which begin with these checks.
"""

import torch


def check_tensor(name: str, value: object, axes: tuple[str, ...]) -> torch.Tensor:
    """Return value; raise TypeError unless it is a tensor, ValueError unless it has these axes."""
    shape = f"({', '.join(axes)})"
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a tensor {shape}, got {type(value).__name__}")
    if value.dim() != len(axes):
        raise ValueError(f"{name} must be {shape}, got shape {tuple(value.shape)}")
    return value


def check_some(name: str, value: torch.Tensor) -> None:
    """Raise ValueError if (batch, length, ...) has no token."""
    if value.shape[1] == 0:
        raise ValueError(f"{name} of shape {tuple(value.shape)} must have at least one token")


def check_ids(name: str, value: object, vocab_size: int, ignored: int | None = None) -> torch.Tensor:
    """Refuse what are no ids of a vocabulary.

    Args:
        name: What the ids are called.
        value: (batch, length)
        vocab_size: Ids are less than this.
        ignored: For labels, the value at positions where nothing is to be predicted.

    Returns:
        The ids.

    Raises:
        TypeError: If they are no tensor of integers.
        ValueError: If they have another shape, there are none, or one lies outside the vocabulary.
    """
    ids = check_tensor(name, value, ("batch", "length"))
    check_some(name, ids)
    kinds = [torch.int64, torch.int32] if ignored is None else [torch.int64]  # torch's losses take no other
    if ids.dtype not in kinds:
        raise TypeError(f"{name} must be token ids, {' or '.join(map(str, kinds))}, got {ids.dtype}")
    if torch.compiler.is_compiling() or ids.device.type != "cpu" or ids.numel() == 0:
        return ids
    lowest, highest = torch.aminmax(ids if ignored is None else ids.masked_fill(ids == ignored, 0))
    for found in (int(lowest), int(highest)):
        if not 0 <= found < vocab_size:
            also = "" if ignored is None else f", or {ignored} where nothing is to be predicted"
            raise ValueError(f"{name} has the id {found}; ids must be at least 0 and less than {vocab_size}{also}")
    return ids


def check_input(
    ids: torch.Tensor | None, embeds: torch.Tensor | None, vocab_size: int, width: int, side: str = ""
) -> tuple[int, int]:
    """Refuse what a stack cannot read: both or neither of ids and embeddings, a wrong shape, no token at all.

    Args:
        ids: (batch, length), or None.
        embeds: (batch, length, width), or None.
        vocab_size: Size of the vocabulary.
        width: Width of the embeddings.
        side: "decoder_" for the decoder's arguments.

    Returns:
        batch and length.

    Raises:
        TypeError: If what is given is no tensor of the right kind.
        ValueError: If not exactly one is given, or its shape or its ids are wrong.
    """
    if (ids is None) == (embeds is None):
        given = "neither" if ids is None else "both"
        raise ValueError(f"give exactly one of {side}input_ids and {side}inputs_embeds, got {given}")
    if embeds is None:
        name = f"{side}input_ids"
        given = check_ids(name, ids, vocab_size)
    else:
        name = f"{side}inputs_embeds"
        given = check_tensor(name, embeds, ("batch", "length", "width"))
        if given.shape[-1] != width or not given.is_floating_point():
            raise ValueError(
                f"{name} must be numbers (batch, length, {width}), got {given.dtype} of shape {tuple(given.shape)}"
            )
        check_some(name, given)
    return given.shape[0], given.shape[1]


def check_mask(name: str, mask: torch.Tensor | None, batch: int, length: int) -> None:
    """Raise ValueError (TypeError for what is no tensor) unless a mask is None or (batch, length) without negative
    numbers."""
    if mask is None:
        return
    check_tensor(name, mask, ("batch", "length"))
    if mask.shape != (batch, length):
        raise ValueError(f"{name} must have the shape ({batch}, {length}) of what it masks, got {tuple(mask.shape)}")
    if not torch.compiler.is_compiling() and mask.device.type == "cpu" and bool((mask < 0).any()):
        raise ValueError(f"{name} has negative numbers; it must be 1 for tokens and 0 for padding, not added to scores")


def check_source(
    states: torch.Tensor | None,
    mask: torch.Tensor | None,
    batch: int,
    width: int,
    names: tuple[str, str] = ("encoder_outputs.last_hidden_state", "attention_mask"),
) -> None:
    """Refuse source states, and a mask of them, that do not fit the decoder and its input.

    Args:
        states: The encoder's last_hidden_state, (batch, source_len, width)
        mask: (batch, source_len), or None.
        batch: Number of target rows.
        width: Width of the encoder's states.
        names: What states and mask are called.

    Raises:
        TypeError: If the states are no tensor.
        ValueError: If a shape is another.
    """
    name, mask_name = names
    states = check_tensor(name, states, ("batch", "source_len", "width"))
    if states.shape[0] != batch or states.shape[2] != width:
        raise ValueError(
            f"{name} must be ({batch}, source_len, {width}), with a row for each target, got {tuple(states.shape)}"
        )
    check_mask(mask_name, mask, batch, states.shape[1])


def check_cache_rows(rows: int, batch: int) -> None:
    """Raise ValueError unless a cache is empty (rows is -1) or of this batch."""
    if rows not in (-1, batch):
        raise ValueError(f"cache holds {rows} rows; it must hold one for each of the {batch} rows of the target")


def check_length(length: int, limit: int | None, what: str = "the sequence") -> None:
    """Raise ValueError if a sequence is longer than the learned positions reach; a limit of None is none."""
    if limit is not None and length > limit:
        raise ValueError(
            f"{what} has {length} tokens, but there are only max_position_embeddings={limit} learned positions"
        )
