# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The gated convolution against torch's convolution and against loops."""

import pytest
import reference_convs2s
import torch
from torch import nn

from hf_attn.models.convolution import GatedConvolution, Projection, scale_gradient, zero_padding

BATCH, LENGTH, WIDTH = 3, 7, 4
CENTRED, CAUSAL = [(1, False), (3, False), (5, False)], [(1, True), (2, True), (3, True), (4, True)]


def make(kernel_size, causal):
    return GatedConvolution(WIDTH, kernel_size, causal).double()


def random_inputs(length=LENGTH):
    return torch.randn(BATCH, length, WIDTH, dtype=torch.float64)


@pytest.mark.parametrize(("kernel_size", "causal"), CENTRED + CAUSAL)
def test_it_is_torchs_convolution_and_gate(kernel_size, causal):
    ours, inputs = make(kernel_size, causal), random_inputs()
    # torch's order is (2 * width, width, kernel_size)
    weight = ours.projection.weight.unflatten(1, (kernel_size, WIDTH)).transpose(1, 2)
    before = kernel_size - 1 if causal else kernel_size // 2
    padded = nn.functional.pad(inputs.transpose(1, 2), (before, kernel_size - 1 - before))
    theirs = nn.functional.glu(nn.functional.conv1d(padded, weight, ours.projection.bias), dim=1).transpose(1, 2)
    torch.testing.assert_close(ours(inputs), theirs)


@pytest.mark.parametrize(("kernel_size", "causal"), CENTRED + CAUSAL)
def test_it_is_the_equation(kernel_size, causal):
    ours, inputs = make(kernel_size, causal), random_inputs()
    weights = {f"layer.convolution.{name}": parameter for name, parameter in ours.named_parameters()}
    before = kernel_size - 1 if causal else kernel_size // 2
    for row, output in zip(inputs, ours(inputs), strict=True):
        expected = reference_convs2s.convolve(weights, "layer", list(row), kernel_size, before)
        torch.testing.assert_close(output, torch.stack(expected))


@pytest.mark.parametrize("pieces", [[1] * LENGTH, [3, 1, 1, 2], [2, 5]])
@pytest.mark.parametrize(("kernel_size", "causal"), CAUSAL)
def test_steps_are_the_whole_run(kernel_size, causal, pieces):
    convolution, inputs = make(kernel_size, causal), random_inputs()
    past, outputs = None, []
    for piece in inputs.split(pieces, dim=1):
        outputs.append(convolution(piece, past))
        past = convolution.keep_last(piece, past)
        assert past.shape == (BATCH, kernel_size - 1, WIDTH)
    torch.testing.assert_close(torch.cat(outputs, dim=1), convolution(inputs))


@pytest.mark.parametrize("kernel_size", [2, 3])
def test_a_causal_convolution_does_not_see_what_comes(kernel_size):
    convolution, inputs = make(kernel_size, causal=True), random_inputs()
    changed = inputs.clone()
    changed[:, 4:] += 1
    same = (convolution(changed) == convolution(inputs)).all(dim=-1)
    assert same[:, :4].all() and not same[:, 4:].any()


def test_a_window_reaches_as_far_as_its_kernel():
    """The gradient of one output shows what it was made from."""
    for (kernel_size, causal), reach in (((5, False), [1, 2, 3, 4, 5]), ((4, True), [0, 1, 2, 3]), ((1, True), [3])):
        inputs = random_inputs().requires_grad_()
        make(kernel_size, causal)(inputs)[:, 3].sum().backward()
        assert inputs.grad.ne(0).any(dim=-1)[0].nonzero()[:, 0].tolist() == reach


def test_an_even_window_has_no_centre():
    with pytest.raises(ValueError, match="kernel_size=4 must be odd"):
        GatedConvolution(WIDTH, 4, causal=False)


@pytest.mark.parametrize(("kernel_size", "causal"), [(3, False), (3, True)])
def test_gradients_are_exact(kernel_size, causal):
    convolution, inputs = make(kernel_size, causal), random_inputs(4).requires_grad_()
    real = torch.tensor([[True, True, True, False], [True] * 4, [False] * 4])
    past = torch.randn(BATCH, kernel_size - 1, WIDTH, dtype=torch.float64, requires_grad=True) if causal else None

    def run(inputs, past, *parameters):
        names = [name for name, _ in convolution.named_parameters()]
        arguments = (zero_padding(inputs, real), past)
        return torch.func.functional_call(convolution, dict(zip(names, parameters, strict=True)), arguments)

    assert torch.autograd.gradcheck(run, (inputs, past, *convolution.parameters()))


def test_padding_becomes_zero_whatever_stood_there():
    real = torch.tensor([[True, False, True], [False, False, False]])
    states = torch.full((2, 3, WIDTH), float("nan"))
    states[0, [0, 2]] = 5.0
    zeroed = zero_padding(states, real)
    assert zeroed.eq(5.0).all(dim=-1).tolist() == [[True, False, True], [False] * 3]
    assert zeroed[~real].eq(0).all()
    assert zero_padding(states, None) is states


@pytest.mark.parametrize("factor", [0.0, 0.125, 1.0, 3.0])
def test_a_scaled_gradient_leaves_the_values_alone(factor):
    states = random_inputs().requires_grad_()
    upstream = random_inputs()
    scaled = scale_gradient(states, factor)
    assert torch.equal(scaled, states)
    (gradient,) = torch.autograd.grad(scaled, states, upstream)
    torch.testing.assert_close(gradient, factor * upstream)


@pytest.mark.parametrize("keep", [1.0, 0.7])
def test_the_initial_weights_keep_the_variance_of_what_they_read(keep):
    """Section 3.5, also with the dropout that it makes good for; small inputs leave the gates half open."""
    width = 400
    inputs = 0.05 * torch.randn(200, 3, width)
    dropped = nn.functional.dropout(inputs, 1 - keep)
    for module in (Projection(width, width, gain=keep), GatedConvolution(width, 3, causal=True, keep=keep)):
        for projection in module.modules():
            if isinstance(projection, Projection):
                nn.init.normal_(projection.weight, std=projection.initial_range)
                nn.init.zeros_(projection.bias)
        outputs = module(dropped).detach()[:, -1]  # here the window is full
        assert outputs.std() / inputs.std() == pytest.approx(1.0, abs=0.05)
