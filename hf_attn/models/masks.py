# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say once which keys a query may attend to.

    mask[i, j] = key j is a real token  and  j <= offset + i (causal)  and  offset + i - j < window

Everywhere in the package a mask is boolean and True means "may attend". Axis names: batch, heads, query_len, key_len.
The mask is described by an `AttentionMask` and only written out, by `dense`, for an execution that needs the tensor.

Papers: causal masking of the decoder, Vaswani 2017 (arXiv 1706.03762) section 3.2.3; the window, Beltagy 2020 (arXiv
2004.05150). Read next: attention.py.
"""

from dataclasses import dataclass

import torch

from .inputs import check_tensor


@dataclass(frozen=True)
class AttentionMask:
    """Describe what may be attended.

    Args:
        padding: (batch, key_len), True for real tokens; None when no key is padding.
        causal: A query sees no key after itself.
        window: With causal, the number of latest keys that a query sees, itself included; None for all.
        query_offset: Position of the first query among the keys: the number of cached keys. A tensor under a static
            cache.

    Raises:
        TypeError: If padding is no tensor.
        ValueError: If padding is not boolean or not (batch, key_len), window is no whole number of at least 1 or given
            without causal, or query_offset is negative.
    """

    padding: torch.Tensor | None = None
    causal: bool = False
    window: int | None = None
    query_offset: int | torch.Tensor = 0

    def __post_init__(self):
        if self.padding is not None:
            check_tensor("padding", self.padding, ("batch", "key_len"))
            if self.padding.dtype != torch.bool:
                raise ValueError(
                    "padding must be boolean (batch, key_len), True for real tokens, got "
                    f"{self.padding.dtype} {tuple(self.padding.shape)}"
                )
        if self.window is not None and (not isinstance(self.window, int) or self.window < 1 or not self.causal):
            raise ValueError(
                f"window={self.window} with causal={self.causal}: a window is a whole number of at least 1 and needs "
                "causal=True"
            )
        if isinstance(self.query_offset, int) and self.query_offset < 0:
            raise ValueError(f"query_offset={self.query_offset} must be at least 0: the number of cached keys")

    def dense(self, query_len: int, key_len: int, device: torch.device | str | None = None) -> torch.Tensor | None:
        """Write the mask out.

        Args:
            query_len: Number of queries.
            key_len: Number of keys. More keys than `padding` has columns are unused slots of a static cache: not
                attended.
            device: Where the mask is needed; by default where `padding` is.

        Returns:
            Boolean, broadcastable to (batch, heads, query_len, key_len), True = may attend; None when everything may be
            attended.

        Raises:
            ValueError: If `padding` describes more keys than there are.
        """
        mask = None
        if self.padding is not None:
            unused = key_len - self.padding.shape[1]
            if unused < 0:
                raise ValueError(f"the padding mask describes {self.padding.shape[1]} keys, but there are {key_len}")
            padding = torch.nn.functional.pad(self.padding, (0, unused), value=False) if unused else self.padding
            mask = padding[:, None, None, :]  # (batch, 1, 1, key_len)
            device = self.padding.device if device is None else device
        newest_query_only = query_len == 1 and self.window is None and isinstance(self.query_offset, int)
        if self.causal and not (newest_query_only and self.query_offset >= key_len - 1):
            query_position = torch.arange(query_len, device=device)[:, None] + self.query_offset
            key_position = torch.arange(key_len, device=device)[None, :]
            order = key_position <= query_position  # (query_len, key_len)
            if self.window is not None:
                order = order & (query_position - key_position < self.window)
            mask = order[None, None] if mask is None else mask & order
        return mask


def padding_mask(attention_mask: torch.Tensor | None) -> torch.Tensor | None:
    """Turn the tokenizer's mask of ones and zeros into a boolean one, or None when nothing is padded.

    Looks at the values once (and waits for the device), so call it at the top of a model. Compiled code cannot branch
    on values: there the mask is kept as it is.

    Args:
        attention_mask: (batch, length), non-zero for real tokens; or None.

    Returns:
        (batch, length) boolean, True for real tokens; None when all tokens are real.

    Raises:
        TypeError: If attention_mask is no tensor.
        ValueError: If attention_mask is not two-dimensional.
    """
    if attention_mask is None:
        return None
    check_tensor("attention_mask", attention_mask, ("batch", "length"))
    real = attention_mask.to(torch.bool)
    if not torch.compiler.is_compiling() and bool(real.all()):
        return None
    return real
