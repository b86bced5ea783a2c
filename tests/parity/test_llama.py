# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Our decoder with the weights of transformers' Llama computes what it does."""

import pytest
from parity import parity_gpt
from parity.twin_gpt import random_llama

sides = pytest.mark.parametrize("left", [False, True], ids=["right", "left"])


@sides
@pytest.mark.parametrize("seed", range(8))
def test_logits_weights_and_states_are_those_of_llama(seed, left):
    parity_gpt.check_outputs(random_llama, seed, left)


@sides
@pytest.mark.parametrize("seed", range(5))
def test_loss_and_gradients_are_those_of_llama(seed, left):
    parity_gpt.check_loss_and_gradients(random_llama, seed, left)


def test_greedy_and_beam_search_find_what_llama_does():
    parity_gpt.check_generation(random_llama)


def test_training_goes_as_that_of_llama_does():
    parity_gpt.check_training(random_llama, 3)
