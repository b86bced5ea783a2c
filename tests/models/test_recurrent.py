# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Recurrent blocks against torch's layers and against loops."""

import pytest
import reference_rnn
import torch
from torch import nn

from hf_attn.models.recurrent import (
    RNN_CLASSES,
    STEPS,
    Bridge,
    DecoderMemory,
    DecoderRnn,
    EncoderRnnLayer,
    MaxoutOutput,
    Packing,
    RecurrentCache,
    first_states,
)

KINDS = ["rnn", "gru", "lstm"]
BATCH, STEPS_RUN, WIDTH, HIDDEN = 3, 5, 4, 6


def random_states(kind, layers=1):
    parts = 2 if kind == "lstm" else 1
    return [tuple(torch.randn(BATCH, HIDDEN, dtype=torch.float64) for _ in range(parts)) for _ in range(layers)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_torchs_cell_and_the_equation(kind):
    cell = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}[kind](WIDTH, HIDDEN).double()
    inputs, (state,) = torch.randn(BATCH, WIDTH, dtype=torch.float64), random_states(kind)
    gates = nn.functional.linear(inputs, cell.weight_ih, cell.bias_ih)
    ours = STEPS[kind](gates, state, cell.weight_hh, cell.bias_hh)
    theirs = cell(inputs, state if kind == "lstm" else state[0])
    theirs = theirs if kind == "lstm" else (theirs,)
    for row in range(BATCH):
        parts = tuple(part[row] for part in state)
        loop = reference_rnn.cell(kind, inputs[row], parts, cell.weight_ih, cell.bias_ih, cell.weight_hh, cell.bias_hh)
        for mine, torchs, looped in zip(ours, theirs, loop, strict=True):
            torch.testing.assert_close(mine[row], torchs[row])
            torch.testing.assert_close(mine[row], looped)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
def test_steps_are_the_whole_run_and_torchs_layers(kind, layers):
    rnn = DecoderRnn(kind, WIDTH, 3, HIDDEN, layers, dropout=0.0).double()
    embeddings = torch.randn(BATCH, STEPS_RUN, WIDTH, dtype=torch.float64)
    fed = torch.randn(BATCH, STEPS_RUN, 3, dtype=torch.float64)
    states = random_states(kind, layers)

    whole, last = rnn(torch.cat([embeddings, fed], dim=-1), states)
    step_gates, fed_weight = rnn.project(embeddings)
    stepped = states
    for position, gates in enumerate(step_gates):
        stepped = rnn.step(gates, fed_weight, fed[:, position], stepped)
        for layer in range(layers):
            torch.testing.assert_close(stepped[layer][0], whole[layer][:, position])
    torch.testing.assert_close(stepped, last)

    stacked = RNN_CLASSES[kind](WIDTH + 3, HIDDEN, num_layers=layers, batch_first=True).double()
    for layer, ours in enumerate(rnn.layers):
        for name, value in ours.named_parameters():
            getattr(stacked, name.replace("l0", f"l{layer}")).data.copy_(value)
    before = tuple(torch.stack(part) for part in zip(*states, strict=True))
    theirs, _ = stacked(torch.cat([embeddings, fed], dim=-1), before if kind == "lstm" else before[0])
    torch.testing.assert_close(whole[-1], theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_residual_connections_add_what_is_below_from_the_third_layer_on(kind):
    rnn = DecoderRnn(kind, WIDTH, 0, HIDDEN, 4, dropout=0.0, residual=True).double()
    inputs, states = torch.randn(BATCH, STEPS_RUN, WIDTH, dtype=torch.float64), random_states(kind, 4)
    whole, last = rnn(inputs, states)

    hidden, expected = [], []
    for ours, state in zip(rnn.layers, states, strict=True):
        below = expected[-1] if expected else inputs
        theirs = RNN_CLASSES[kind](below.shape[-1], HIDDEN, batch_first=True).double()
        theirs.load_state_dict(ours.state_dict())
        before = tuple(part[None] for part in state)
        output, after = theirs(below, before if kind == "lstm" else before[0])
        hidden.append(output)
        expected.append(output + below if len(expected) >= 2 else output)
        torch.testing.assert_close(last[len(hidden) - 1][0], (after if kind != "lstm" else after[0])[0])
    torch.testing.assert_close(whole, expected)
    torch.testing.assert_close(rnn.outputs(hidden), expected)

    step_gates, fed_weight = rnn.project(inputs)
    for position, gates in enumerate(step_gates):
        states = rnn.step(gates, fed_weight, inputs[:, 0, :0], states)
        torch.testing.assert_close(rnn.top(states), expected[-1][:, position])
    torch.testing.assert_close(states, last)


def test_dropout_leaves_the_residual_sum_alone():
    """A third layer that computes zero puts out exactly what the second did, although its own input is dropped."""
    rnn = DecoderRnn("rnn", WIDTH, 0, HIDDEN, 3, dropout=0.9, residual=True)
    for parameter in rnn.layers[2].parameters():
        parameter.data.zero_()
    states = [(torch.zeros(BATCH, HIDDEN),)] * 3
    (_, second, third), _ = rnn(torch.randn(BATCH, STEPS_RUN, WIDTH), states)
    assert second.ne(0).all() and torch.equal(third, second)


def test_dropout_is_between_layers_only():
    one = DecoderRnn("gru", WIDTH, 0, HIDDEN, 1, dropout=0.9)
    two = DecoderRnn("gru", WIDTH, 0, HIDDEN, 2, dropout=0.9)
    inputs = torch.randn(BATCH, STEPS_RUN, WIDTH)
    states = [(torch.zeros(BATCH, HIDDEN),), (torch.zeros(BATCH, HIDDEN),)]
    torch.testing.assert_close(one(inputs, states[:1])[0][0], one(inputs, states[:1])[0][0])
    first, second = two(inputs, states)[0], two(inputs, states)[0]
    torch.testing.assert_close(first[0], second[0])
    assert not torch.allclose(first[1], second[1])


MASKS = {
    "right": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    "holes": [[1, 0, 1, 0, 1], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0]],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", MASKS)
@pytest.mark.parametrize("reverse", [False, True])
def test_only_real_tokens_are_read_and_states_stay_at_their_tokens(kind, where, reverse):
    real = torch.tensor(MASKS[where], dtype=torch.bool)
    inputs = torch.randn(BATCH, 5, WIDTH, dtype=torch.float64)
    layer = EncoderRnnLayer(kind, WIDTH, HIDDEN, bidirectional=True).double()
    packing = Packing(real, reverse)
    packed = packing.pack(inputs)
    data, *last = layer(packed.data, packed.batch_sizes)
    states = packing.unpack(packed._replace(data=data))
    last = [part.index_select(0, packed.unsorted_indices) for part in last]
    assert states[~real].eq(0).all()
    for row in range(BATCH):
        alone = inputs[row, real[row]][None]
        expected, *expected_last = layer(alone.flip(1) if reverse else alone)
        torch.testing.assert_close(states[row, real[row]], (expected.flip(1) if reverse else expected)[0])
        for part, wanted in zip(last, expected_last, strict=True):
            torch.testing.assert_close(part[row], wanted[0])


def test_last_states_are_the_last_token_forward_and_the_first_backward():
    layer = EncoderRnnLayer("gru", WIDTH, HIDDEN, bidirectional=True)
    states, last = layer(torch.randn(BATCH, 5, WIDTH))
    torch.testing.assert_close(last[:, :HIDDEN], states[:, -1, :HIDDEN])
    torch.testing.assert_close(last[:, HIDDEN:], states[:, 0, HIDDEN:])


def test_bridge_copies_where_the_shapes_agree():
    hidden, memory = torch.randn(BATCH, 2, HIDDEN), torch.randn(BATCH, 2, HIDDEN)
    copied = Bridge(2, HIDDEN, 2, HIDDEN, parts=2)
    assert not list(copied.parameters())
    for layer, (h, c) in enumerate(copied(hidden, memory)):
        assert torch.equal(h, hidden[:, layer]) and torch.equal(c, memory[:, layer])
    changed = Bridge(2, HIDDEN, 3, 5, parts=1)
    states = changed(hidden)
    expected = torch.tanh(changed.projections[0](hidden.flatten(1)))
    torch.testing.assert_close(torch.cat([state[0] for state in states], dim=-1), expected)
    assert len(states) == 3


def test_first_states_cut_one_state_a_layer():
    hidden = torch.randn(BATCH, 2 * HIDDEN)
    assert torch.equal(torch.cat([state[0] for state in first_states(hidden, 2, "gru")], dim=-1), hidden)
    assert first_states(hidden, 2, "lstm")[1][1].eq(0).all()


def test_maxout_takes_the_larger_of_two_units():
    output = MaxoutOutput(HIDDEN, WIDTH, 2, 7)
    vectors = torch.randn(BATCH, 1, HIDDEN), torch.randn(BATCH, 1, WIDTH), torch.randn(BATCH, 1, 2)
    both = output.projection(torch.cat(vectors, dim=-1))
    for row in range(BATCH):
        expected = [max(both[row, 0, i].item(), both[row, 0, 7 + i].item()) for i in range(7)]
        torch.testing.assert_close(output(*vectors)[row, 0], torch.tensor(expected))


def full_cache():
    cache = RecurrentCache()
    rows = torch.arange(BATCH, dtype=torch.float32)
    state = (rows[:, None].clone(), rows[:, None] + 10)
    cache.update(
        DecoderMemory([state, state], fed=rows[:, None] + 20, projected_key=rows[:, None, None, None] + 30), steps=4
    )
    return cache


def rows_of(cache):
    states, fed, projected_key = cache.memory
    tensors = [part for state in states for part in state] + [fed, projected_key]
    return [tensor.flatten().tolist() for tensor in tensors]


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda cache: cache.reorder_cache(torch.tensor([2, 2, 0])), [2, 2, 0]),
        (lambda cache: cache.batch_select_indices(torch.tensor([1])), [1]),
        (lambda cache: cache.batch_repeat_interleave(2), [0, 0, 1, 1, 2, 2]),
    ],
)
def test_cache_moves_every_tensor(change, rows):
    cache = full_cache()
    change(cache)
    assert rows_of(cache) == [[row + offset for row in rows] for offset in (0, 10, 0, 10, 20, 30)]
    assert (cache.batch_size, cache.get_seq_length(), len(cache)) == (len(rows), 4, 2)


def test_cache_tells_generate_what_it_can_do():
    cache = full_cache()
    assert (cache.is_croppable, cache.is_compileable, cache.is_linear, cache.get_max_length()) == (
        False,
        False,
        [False],
        -1,
    )
    assert cache.is_initialized and repr(cache) == "RecurrentCache(layers=2, length=4)"
    with pytest.raises(ValueError, match="cannot be cropped"):
        cache.crop(-1)
    cache.reset()
    assert (cache.is_initialized, cache.batch_size, cache.get_seq_length(), len(cache)) == (False, -1, 0, 0)
