# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Let each token read its neighbours: a convolution whose output is gated.

    [A_i; B_i] = W [x_(i-before); ...; x_(i+after)] + b;   output_i = A_i * sigmoid(B_i)

A window of kernel_size tokens moves over the sequence; beyond its ends stand zeros. An encoder's window is centred, a
decoder's is causal: it ends at the token itself. A causal convolution can go on where it stopped, one step or several
at a time, if it is given its last kernel_size - 1 inputs.

Initial weights keep the variance of what they read: a gate that is half open leaves a quarter of it, dropout that keeps
a share p divides it by p.

Papers: gated linear units, Dauphin 2017 (arXiv 1612.08083) eq. 1; as blocks, Gehring 2017 (1705.03122) section 3.2,
which concatenates the window as we do, and 3.5, the initial weights; causal convolutions, van den Oord 2016
(1606.05328).

Axis names: batch, length, width.
Read next: modeling_attn_convs2s.py.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Projection(nn.Linear):
    """output = W input + b, with initial weights that make the variance of the output `gain` times the input's.

    `AttnConvS2SPreTrainedModel._init_weights` draws them from N(0, sqrt(gain / in_features)).

    Args:
        in_features: Width of the input.
        out_features: Width of the output.
        gain: The factor. Less than 1 makes good what dropout before the projection adds; 4 what a gate after it takes.
    """

    def __init__(self, in_features: int, out_features: int, gain: float = 1.0):
        super().__init__(in_features, out_features)
        self.initial_range = (gain / in_features) ** 0.5


class GatedConvolution(nn.Module):
    """output_i = gate(W [x_(i-before); ...; x_(i+after)] + b), where gate([A; B]) = A * sigmoid(B).

    Args:
        width: Width of the inputs and outputs.
        kernel_size: Number of tokens in a window.
        causal: Whether a window ends at its token; else it is centred on it.
        keep: The share of the inputs that dropout keeps; the initial weights make good for the others.

    Raises:
        ValueError: If a centred window has an even number of tokens.
    """

    def __init__(self, width: int, kernel_size: int, causal: bool, keep: float = 1.0):
        super().__init__()
        if not causal and kernel_size % 2 == 0:
            raise ValueError(f"kernel_size={kernel_size} must be odd, so that a window has a centre")
        self.kernel_size = kernel_size
        self.before = kernel_size - 1 if causal else kernel_size // 2
        self.after = kernel_size - 1 - self.before
        self.projection = Projection(kernel_size * width, 2 * width, gain=4 * keep)

    def forward(self, inputs: torch.Tensor, past: torch.Tensor | None = None) -> torch.Tensor:
        """Convolve, and let the second half of the result gate the first.

        Args:
            inputs: (batch, length, width), zero at padding.
            past: What stood before the inputs of a causal convolution, (batch, before, width); None for zeros.

        Returns:
            (batch, length, width)
        """
        length = inputs.shape[1]
        padded = self.pad(inputs, past)  # (batch, before + length + after, width)
        windows = torch.cat([padded[:, shift : shift + length] for shift in range(self.kernel_size)], dim=-1)
        return F.glu(self.projection(windows), dim=-1)

    def keep_last(self, inputs: torch.Tensor, past: torch.Tensor | None = None) -> torch.Tensor:
        """Return the `past` of what follows these inputs, (batch, before, width), of a causal convolution."""
        return self.pad(inputs, past)[:, inputs.shape[1] :]

    def pad(self, inputs: torch.Tensor, past: torch.Tensor | None) -> torch.Tensor:
        """Put zeros around the inputs, or what stood before them."""
        if past is None:
            return F.pad(inputs, (0, 0, self.before, self.after))
        return torch.cat([past, inputs], dim=1)


def zero_padding(states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
    """Set padding to zero, as what is beyond the ends of a sequence is.

    Args:
        states: (batch, length, width)
        real: (batch, length), True for real tokens; None when nothing is padded.

    Returns:
        (batch, length, width)
    """
    return states if real is None else states.masked_fill(~real[:, :, None], 0.0)


def reorder(states: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Let position i of each row be what was at order[i].

    Args:
        states: (batch, length, width)
        order: (batch, length)

    Returns:
        (batch, length, width)
    """
    return states.gather(1, order[:, :, None].expand_as(states))


def scale_gradient(states: torch.Tensor, factor: float) -> torch.Tensor:
    """Return the states unchanged; their gradient will be multiplied by `factor`."""
    constant = states.detach()
    return constant + factor * (states - constant)
