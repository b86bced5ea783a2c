# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Weights at a temperature against exponentials of plain floats."""

import math

import pytest

from hf_attn.studies import temperature


def test_weights_and_entropy_at_every_temperature():
    scores = [1.5, 0.0, 0.5, 2.0]
    result = temperature.run(scores)
    for row in result["rows"]:
        powers = [math.exp(score / row["temperature"]) for score in scores]
        weights = [power / sum(powers) for power in powers]
        assert row["weights"] == pytest.approx(weights, abs=1e-6)
        assert row["entropy"] == pytest.approx(-sum(w * math.log(w) for w in weights), abs=1e-5)
    assert [round(weight, 4) for weight in result["rows"][3]["weights"]] == [0.3087, 0.0689, 0.1136, 0.5089]


def test_cold_is_a_choice_and_hot_a_mean():
    cold, hot = temperature.run(temperatures=(0.01, 1000.0))["rows"]
    assert cold["weights"] == pytest.approx([0, 0, 0, 1], abs=1e-6) and cold["context"] == pytest.approx([0, 0, 2])
    assert hot["weights"] == pytest.approx([0.25] * 4, abs=1e-3)
    assert hot["context"] == pytest.approx([0.5, 0.5, 0.75], abs=2e-3)


def test_only_differences_of_scores_count():
    first, second = (temperature.run(scores)["rows"] for scores in ((1.5, 0.0, 0.5, 2.0), (11.5, 10.0, 10.5, 12.0)))
    assert all(one["weights"] == pytest.approx(other["weights"], abs=1e-5) for one, other in zip(first, second))
