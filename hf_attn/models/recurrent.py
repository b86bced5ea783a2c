# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Run recurrent layers: over a whole sequence at once, or one step at a time; and remember where they were.

    rnn    state' = tanh(W x + U state)
    gru    state' = (1 - update) * candidate + update * state
    lstm   cell' = forget * cell + input * candidate;   state' = output * tanh(cell')

The weights live in torch's own `nn.RNN`, `nn.GRU` and `nn.LSTM`. A whole sequence goes through their forward; a decoder
whose input depends on its last output takes the same weights step by step, by the three step functions below.

Papers: GRU, Cho 2014 (arXiv 1406.1078) section 2.3; LSTM, Hochreiter & Schmidhuber 1997; dropout between layers only,
Zaremba 2014 (1409.2329); residual connections, Wu 2016 (1609.08144) section 3.1.
Where it differs from the paper: torch's GRU applies the reset gate after the matrix product, candidate = tanh(W x +
reset * (U state)), and its update gate is the paper's z of 1406.1078 (z keeps the old state), which Bahdanau 2015
writes the other way round. All gates have biases.

Axis names: batch, source_len, steps, layers, directions, width.
The state of one layer is a tuple: (hidden,), or (hidden, cell) for an LSTM, each (batch, hidden_size).
Read next: decoders_attn_rnn.py.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from transformers.cache_utils import Cache
from transformers.modeling_layers import GradientCheckpointingLayer

RNN_CLASSES = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

LayerState = tuple[torch.Tensor, ...]


def rnn_step(input_gates: torch.Tensor, state: LayerState, weight: torch.Tensor, bias: torch.Tensor) -> LayerState:
    """Take one step of a tanh RNN: state' = tanh(W x + U state).

    Args:
        input_gates: W x with its bias, (batch, hidden_size)
        state: The hidden state.
        weight: U, (hidden_size, hidden_size)
        bias: Bias of U, (hidden_size,)

    Returns:
        The new state.
    """
    return (torch.tanh(input_gates + F.linear(state[0], weight, bias)),)


def gru_step(input_gates: torch.Tensor, state: LayerState, weight: torch.Tensor, bias: torch.Tensor) -> LayerState:
    """Take one step of a GRU: state' = (1 - update) * candidate + update * state.

    Args:
        input_gates: W x with its bias for the reset gate, the update gate and the candidate, (batch, 3 * hidden_size)
        state: The hidden state.
        weight: U of the three, (3 * hidden_size, hidden_size)
        bias: Bias of U, (3 * hidden_size,)

    Returns:
        The new state.
    """
    (hidden,) = state
    sizes = [2 * hidden.shape[-1], hidden.shape[-1]]
    input_gates, input_candidate = input_gates.split(sizes, dim=-1)
    hidden_gates, hidden_candidate = F.linear(hidden, weight, bias).split(sizes, dim=-1)
    reset, update = torch.sigmoid(input_gates + hidden_gates).chunk(2, dim=-1)
    # differs from the paper: reset * (U state) instead of U (reset * state), as in torch, so that one product serves
    # all gates
    candidate = torch.tanh(input_candidate + reset * hidden_candidate)
    return (candidate + update * (hidden - candidate),)


def lstm_step(input_gates: torch.Tensor, state: LayerState, weight: torch.Tensor, bias: torch.Tensor) -> LayerState:
    """Take one step of an LSTM: cell' = forget * cell + input * candidate; state' = output * tanh(cell').

    Args:
        input_gates: W x with its bias for the input gate, the forget gate, the candidate and the output gate, (batch, 4
            * hidden_size)
        state: The hidden state and the cell.
        weight: U of the four, (4 * hidden_size, hidden_size)
        bias: Bias of U, (4 * hidden_size,)

    Returns:
        The new state and cell.
    """
    hidden, cell = state
    input_gate, forget_gate, candidate, output_gate = (input_gates + F.linear(hidden, weight, bias)).chunk(4, dim=-1)
    cell = torch.sigmoid(forget_gate) * cell + torch.sigmoid(input_gate) * torch.tanh(candidate)
    return torch.sigmoid(output_gate) * torch.tanh(cell), cell


STEPS: dict[str, Callable[..., LayerState]] = {"rnn": rnn_step, "gru": gru_step, "lstm": lstm_step}


def run_rnn(rnn: nn.RNNBase, inputs: torch.Tensor | PackedSequence, state: LayerState | None = None):
    """Run one of torch's layers; on a processor in the precision of its weights, also under autocast.

    torch's LSTM fails under autocast on processors without bfloat16 arithmetic.

    Args:
        rnn: An `nn.RNN`, `nn.GRU` or `nn.LSTM`.
        inputs: (batch, steps, input_size), or packed.
        state: The hidden state (and cell), each (directions, batch, hidden_size); None for zeros.

    Returns:
        The outputs, shaped like the inputs, and the last state, as a tuple also where it has one part.
    """
    dtype = rnn.weight_ih_l0.dtype
    with torch.autocast("cpu", enabled=False):
        before = None if state is None else tuple(part.to(dtype) for part in state)
        outputs, last = rnn(inputs.to(dtype), before if before is None or len(before) > 1 else before[0])
    return outputs, last if isinstance(last, tuple) else (last,)


def run_layer(layer: nn.RNNBase, inputs: torch.Tensor, state: LayerState) -> tuple[torch.Tensor, LayerState]:
    """Run one decoder layer over (batch, steps, input_size); return its hidden states, (batch, steps, hidden_size), and
    the state after the last step."""
    before = tuple(part[None].contiguous() for part in state)  # torch wants (1, batch, hidden_size)
    hidden, after = run_rnn(layer, inputs, before)
    return hidden, tuple(part[0] for part in after)


def add_residual(hidden: torch.Tensor, below: list[torch.Tensor], residual: bool) -> torch.Tensor:
    """Return the output of a layer: its hidden states and, with residual connections, from the third layer on, the
    output of the layer below as well (Wu 2016, equation 6).

    Args:
        hidden: (batch, hidden_size), or (batch, steps, hidden_size)
        below: The outputs of all layers below, of the same shape.
        residual: Whether there are residual connections.
    """
    return hidden + below[-1] if residual and len(below) >= 2 else hidden


class EncoderRnnLayer(GradientCheckpointingLayer):
    """One encoder layer, in one direction or both.

    Args:
        rnn_type: A name in RNN_CLASSES.
        input_size: Width of the input.
        hidden_size: Width of each direction's state.
        bidirectional: Whether a second RNN reads from the end; outputs and states of both are concatenated.
    """

    def __init__(self, rnn_type: str, input_size: int, hidden_size: int, bidirectional: bool):
        super().__init__()
        self.rnn = RNN_CLASSES[rnn_type](input_size, hidden_size, batch_first=True, bidirectional=bidirectional)

    def forward(self, inputs: torch.Tensor, batch_sizes: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Read all steps.

        Args:
            inputs: (batch, source_len, input_size); or packed, (tokens, input_size).
            batch_sizes: If packed: how many rows are still running at each step.

        Returns:
            The states at all steps, shaped like the inputs, and the last states (and cells), each (batch, directions *
            hidden_size).
        """
        if batch_sizes is None:
            outputs, last = run_rnn(self.rnn, inputs)
        else:
            packed, last = run_rnn(self.rnn, PackedSequence(inputs, batch_sizes))
            outputs = packed.data
        return outputs, *(state.transpose(0, 1).flatten(1) for state in last)


class Packing:
    """Let an RNN read the real tokens only, in the order in which it should, wherever the padding stands.

    The real tokens of a row move to its front; what was read goes back to its own position. A row of padding alone
    counts as one token.

    Args:
        real: (batch, source_len), True for real tokens.
        reverse: Whether to read the real tokens from the last to the first.
    """

    def __init__(self, real: torch.Tensor, reverse: bool):
        lengths = real.sum(dim=1)
        order = (~real).long().argsort(dim=1, stable=True)
        if reverse:
            rank = torch.arange(real.shape[1], device=real.device)[None]
            order = order.gather(1, torch.where(rank < lengths[:, None], lengths[:, None] - 1 - rank, rank))
        self.order = order
        self.restore = order.argsort(dim=1)
        self.lengths = lengths.clamp(min=1).cpu()

    def pack(self, states: torch.Tensor) -> PackedSequence:
        """Return the tokens of (batch, source_len, width) in reading order."""
        ordered = states.gather(1, self.order[:, :, None].expand_as(states))
        return pack_padded_sequence(ordered, self.lengths, batch_first=True, enforce_sorted=False)

    def unpack(self, packed: PackedSequence) -> torch.Tensor:
        """Put each token back to its position; (batch, source_len, width), zero at padding."""
        ordered, _ = pad_packed_sequence(packed, batch_first=True, total_length=self.order.shape[1])
        return ordered.gather(1, self.restore[:, :, None].expand_as(ordered))


class DecoderRnn(nn.Module):
    """The decoder's layers. Each step reads an embedding, and a fed vector beside it where the decoder has one.

    Args:
        rnn_type: A name in RNN_CLASSES.
        embedding_size: Width of the embeddings.
        fed_size: Width of what is fed with them: a context, or the last attentional vector; 0 for nothing.
        hidden_size: Width of the states.
        num_layers: Number of layers.
        dropout: Dropout between layers.
        residual: Whether a layer's input is added to its output, from the third layer on.
    """

    def __init__(
        self,
        rnn_type: str,
        embedding_size: int,
        fed_size: int,
        hidden_size: int,
        num_layers: int,
        dropout: float,
        residual: bool = False,
    ):
        super().__init__()
        self.residual = residual
        self.embedding_size = embedding_size
        self.take_step = STEPS[rnn_type]
        self.dropout = nn.Dropout(dropout)
        widths = [embedding_size + fed_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(RNN_CLASSES[rnn_type](width, hidden_size, batch_first=True) for width in widths)

    def forward(self, inputs: torch.Tensor, states: list[LayerState]) -> tuple[list[torch.Tensor], list[LayerState]]:
        """Run all steps at once, one call a layer.

        Args:
            inputs: Embeddings and what is fed with them, (batch, steps, embedding_size + fed_size)
            states: The state of each layer before the first step.

        Returns:
            For each layer its outputs at all steps, (batch, steps, hidden_size); and the state of each layer after the
            last.
        """
        outputs, last = [], []
        for layer, state in zip(self.layers, states, strict=True):
            hidden, after = run_layer(layer, self.dropout(outputs[-1]) if outputs else inputs, state)
            outputs.append(add_residual(hidden, outputs, self.residual))
            last.append(after)
        return outputs, last

    def outputs(self, hidden: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return the output of each layer, given their hidden states."""
        outputs: list[torch.Tensor] = []
        for part in hidden:
            outputs.append(add_residual(part, outputs, self.residual))
        return outputs

    def top(self, states: list[LayerState]) -> torch.Tensor:
        """Return the output of the last layer, (batch, hidden_size), given the states of all."""
        return self.outputs([state[0] for state in states])[-1]

    def project(self, embeddings: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        """Do what a loop over steps can do for all steps beforehand: the embeddings' share of the first layer's gates.

        Args:
            embeddings: (batch, steps, embedding_size)

        Returns:
            For each step the share, (batch, gates), and the weight that what is fed will meet, (gates, fed_size).
        """
        first = self.layers[0]
        gates = F.linear(embeddings, first.weight_ih_l0[:, : self.embedding_size], first.bias_ih_l0)
        return gates.unbind(dim=1), first.weight_ih_l0[:, self.embedding_size :]

    def step(
        self, gates: torch.Tensor, fed_weight: torch.Tensor, fed: torch.Tensor, states: list[LayerState]
    ) -> list[LayerState]:
        """Take one step.

        Args:
            gates: The embedding's share of the first layer's gates, from `project`, (batch, gates)
            fed_weight: The weight for `fed`, from `project`.
            fed: (batch, fed_size)
            states: The state of each layer.

        Returns:
            The new state of each layer.
        """
        gates = gates + F.linear(fed, fed_weight)
        new_states: list[LayerState] = []
        outputs: list[torch.Tensor] = []
        for layer, state in zip(self.layers, states, strict=True):
            if outputs:
                gates = F.linear(self.dropout(outputs[-1]), layer.weight_ih_l0, layer.bias_ih_l0)
            new_states.append(self.take_step(gates, state, layer.weight_hh_l0, layer.bias_hh_l0))
            outputs.append(add_residual(new_states[-1][0], outputs, self.residual))
        return new_states


class Bridge(nn.Module):
    """Make the decoder's first states from the encoder's last: copied layer by layer where the shapes agree, else
    tanh(W states).

    Papers: copied, Sutskever 2014 (arXiv 1409.3215), Luong 2015 (1508.04025); they always have equal shapes.

    Args:
        encoder_layers: Number of encoder layers.
        encoder_width: Width of their states.
        decoder_layers: Number of decoder layers.
        hidden_size: Width of their states.
        parts: 1, or 2 for an LSTM: its cell is made in the same way.
    """

    def __init__(self, encoder_layers: int, encoder_width: int, decoder_layers: int, hidden_size: int, parts: int):
        super().__init__()
        self.decoder_layers = decoder_layers
        self.projections = None
        if (encoder_layers, encoder_width) != (decoder_layers, hidden_size):
            wide, narrow = encoder_layers * encoder_width, decoder_layers * hidden_size
            self.projections = nn.ModuleList(nn.Linear(wide, narrow) for _ in range(parts))

    def forward(self, *last: torch.Tensor) -> list[LayerState]:
        """Return the state of each decoder layer.

        Args:
            *last: The encoder's last hidden states (and cells), each (batch, encoder_layers, encoder_width)

        Returns:
            For each decoder layer the hidden state (and cell), each (batch, hidden_size)
        """
        if self.projections is not None:
            made = [
                torch.tanh(projection(part.flatten(1))) for projection, part in zip(self.projections, last, strict=True)
            ]
            last = tuple(part.unflatten(1, (self.decoder_layers, -1)) for part in made)
        return list(zip(*(part.unbind(dim=1) for part in last), strict=True))


class MaxoutOutput(nn.Module):
    """output_j = max(t_j, t'_j), both of the form U state + V embedding + C context: a deep output, one maxout layer.

    differs from the papers: as wide as the embedding, so that the output layer can be tied to it; theirs is 500 wide.

    Papers: Cho 2014 (arXiv 1406.1078) A.1.2; Bahdanau 2015 (1409.0473) A.2.2; maxout, Goodfellow 2013 (1302.4389).

    Args:
        state_size: Width of the decoder's state.
        embedding_size: Width of the embedding of the token before.
        context_size: Width of the context.
        output_size: Width of the output.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int, output_size: int):
        super().__init__()
        self.projection = nn.Linear(state_size + embedding_size + context_size, 2 * output_size)

    def forward(self, states: torch.Tensor, embeddings: torch.Tensor, contexts: torch.Tensor) -> torch.Tensor:
        """Combine (batch, steps, width) each of states, embeddings and contexts to (batch, steps, output_size)."""
        first, second = self.projection(torch.cat([states, embeddings, contexts], dim=-1)).chunk(2, dim=-1)
        return torch.maximum(first, second)


class DecoderMemory(NamedTuple):
    """What a decoder needs to go on, besides the encoder's states. All tensors are batch-first, so that beam search can
    reorder them.

    Args:
        states: The state of each layer.
        fed: What the first layer reads beside the next embedding, where that is known already: the fixed context, or
            the last attentional vector; (batch, fed_size).
        projected_key: What `score.project_keys` made of the encoder's states; (batch, 1, source_len, width).
    """

    states: list[LayerState]
    fed: torch.Tensor | None = None
    projected_key: torch.Tensor | None = None


def first_states(hidden: torch.Tensor, num_layers: int, rnn_type: str) -> list[LayerState]:
    """Cut (batch, num_layers * hidden_size) into the first state of each layer; an LSTM's cell starts at zero."""
    layers = hidden.chunk(num_layers, dim=-1)
    return [(layer, torch.zeros_like(layer)) if rnn_type == "lstm" else (layer,) for layer in layers]


def stack_steps(steps: list[list[LayerState]]) -> list[torch.Tensor]:
    """Return the hidden states of each layer at all steps, (batch, steps, hidden_size)."""
    return [torch.stack([state[0] for state in layer], dim=1) for layer in zip(*steps, strict=True)]


class RecurrentCache(Cache):
    """What `generate()` carries from one step to the next instead of keys and values: the decoder's memory."""

    def __init__(self):
        super().__init__(layers=[])
        self.memory = DecoderMemory(states=[])
        self.length = 0

    def update(self, memory: DecoderMemory, steps: int):
        """Remember where the decoder is after `steps` more tokens."""
        self.memory = memory
        self.length += steps

    def _change(self, change: Callable[[torch.Tensor], torch.Tensor]):
        states, fed, projected_key = self.memory
        self.memory = DecoderMemory(
            [tuple(change(part) for part in state) for state in states],
            None if fed is None else change(fed),
            None if projected_key is None else change(projected_key),
        )

    def reorder_cache(self, beam_idx: torch.Tensor):
        """Let row i continue where row beam_idx[i] was; beam_idx is (batch * beams,)."""
        self._change(lambda tensor: tensor.index_select(0, beam_idx.to(tensor.device)))

    def batch_select_indices(self, indices: torch.Tensor):
        """Keep the rows `indices` only."""
        self._change(lambda tensor: tensor[indices])

    def batch_repeat_interleave(self, repeats: int):
        """Repeat each row `repeats` times."""
        self._change(lambda tensor: tensor.repeat_interleave(repeats, dim=0))

    def reset(self):
        """Forget everything."""
        self.__init__()

    def crop(self, tokens_to_remove: int):
        """Refuse: a recurrent state cannot be taken back."""
        raise ValueError("a RecurrentCache cannot be cropped: it keeps the decoder's last state only")

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of tokens read; the same for all layers."""
        return self.length

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """Return -1: no maximum."""
        return -1

    def __len__(self) -> int:
        return len(self.memory.states)

    def __repr__(self) -> str:
        return f"RecurrentCache(layers={len(self.memory.states)}, length={self.length})"

    @property
    def batch_size(self) -> int:
        """Number of rows; -1 while empty."""
        return self.memory.states[0][0].shape[0] if self.memory.states else -1

    @property
    def is_initialized(self) -> bool:
        """Whether anything was read."""
        return bool(self.memory.states)

    @property
    def is_compileable(self) -> bool:
        """False: no static shapes."""
        return False

    @property
    def is_croppable(self) -> bool:
        """False: see `crop`."""
        return False

    @property
    def is_linear(self) -> list[bool]:
        """All False: `generate()` may cut what was read off a given input, since the length is known."""
        return [False]
