# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The five steps with the numbers that the lecture prints, and the masked weights from those without a mask."""

import math

import pytest

from hf_attn.studies import five_steps

PRINTED = {
    "scores": [1.5, 0.0, 0.5, 2.0],
    "weights": [0.3087, 0.0689, 0.1136, 0.5089],
    "context": [0.4222, 0.1824, 1.3265],
    "both": [0.4222, 0.1824, 1.3265, 0.5, 0.0, 1.0],
    "output": [0.6971, 0.7834, -0.1924],
}


def test_every_step_prints_the_numbers_of_the_lecture():
    result = five_steps.run()
    assert {name: [round(x, 4) + 0.0 for x in values] for name, values in result["steps"].items()} == PRINTED
    assert result["ratio"] == pytest.approx(math.exp(0.5))
    shown = five_steps.show(result)
    assert "0.3087  0.0689  0.1136  0.5089" in shown and "0.6971  0.7834 -0.1924" in shown


def test_a_masked_row_is_the_beginning_of_the_full_one_made_to_sum_to_one():
    result = five_steps.run(length=6)
    for place, (full, causal) in enumerate(zip(result["full"], result["causal"], strict=True)):
        seen = sum(full[: place + 1])
        assert causal == pytest.approx([x / seen for x in full[: place + 1]] + [0.0] * (5 - place), abs=1e-6)
    assert result["difference_from_torch"] < 1e-6
    mean = sum(result["full"][place][place] for place in range(6)) / 6
    assert result["self_weight"] == pytest.approx(mean, abs=1e-6)


def test_without_matrices_a_word_looks_at_itself():
    results = [five_steps.run(seed=seed) for seed in range(10)]
    assert all(result["self_weight"] > result["self_weight_with_matrices"] + 0.1 for result in results)
    assert all(abs(result["self_weight_with_matrices"] - 1 / 5) < 0.1 for result in results)
