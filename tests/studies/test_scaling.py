# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Variance, entropy, largest weight and gradient against plain floats, and the numbers that the lecture prints."""

import math
import statistics

import pytest
import torch

from hf_attn.models.scores import Dot, ScaledDot
from hf_attn.studies import scaling


def by_hand(query, key, scale):
    """The same five measures, number by number."""
    scores = [[sum(q * k for q, k in zip(one, other)) * scale for other in keys] for one, keys in zip(query, key)]
    largest, entropies, gradients = [], [], []
    for row in scores:
        powers = [math.exp(score - max(row)) for score in row]
        weights = [power / sum(powers) for power in powers]
        largest.append(max(weights))
        entropies.append(-sum(weight * math.log(weight) for weight in weights if weight))
        jacobian = [weights[i] * ((i == j) - weights[j]) for i in range(len(row)) for j in range(len(row))]
        gradients.append(math.sqrt(sum(x * x for x in jacobian)))
    flat = [score for row in scores for score in row]
    return {
        "variance": statistics.variance(flat),
        "largest_weight": statistics.mean(largest),
        "entropy": statistics.mean(entropies),
        "mean_gradient": statistics.mean(gradients),
        "median_gradient": statistics.median_low(gradients),
    }


@pytest.mark.parametrize("kind, scale", [(Dot, 1.0), (ScaledDot, 6**-0.5)])
def test_measures_are_those_computed_number_by_number(kind, scale):
    query, key = torch.randn(9, 1, 1, 6), torch.randn(9, 1, 5, 6)
    expected = by_hand(query[:, 0, 0].tolist(), key[:, 0].tolist(), scale)
    assert scaling.measure(kind(6, 6), query, key) == pytest.approx(expected, rel=1e-4)


def test_the_variances_of_the_lecture_from_its_own_random_numbers():
    torch.manual_seed(42)
    torch.randn(3, 6)  # W_c of the five steps
    for width, plain, scaled in ((4, 4.11, 1.028), (64, 64.15, 1.002), (512, 503.42, 0.983)):
        query, key = torch.randn(10_000, 1, 1, width), torch.randn(10_000, 1, 1, width)
        assert Dot(width, width)(query, key).var().item() == pytest.approx(plain, abs=0.006)
        assert ScaledDot(width, width)(query, key).var().item() == pytest.approx(scaled, abs=0.0006)


def test_without_scaling_one_key_takes_nearly_everything_and_no_gradient_passes():
    rows = {(row["width"], row["score"]): row for row in scaling.run(widths=(4, 64, 1024), samples=800)["rows"]}
    plain, scaled = scaling.SCORES
    for width, largest, largest_scaled in ((4, 0.520, 0.337), (64, 0.870, 0.357), (1024, 0.968, 0.357)):
        assert rows[width, plain]["largest_weight"] == pytest.approx(largest, abs=0.03)
        assert rows[width, scaled]["largest_weight"] == pytest.approx(largest_scaled, abs=0.03)
        assert rows[width, plain]["variance"] == pytest.approx(width, rel=0.15)
        assert rows[width, scaled]["variance"] == pytest.approx(1, rel=0.15)
    assert rows[1024, plain]["median_gradient"] < 1e-3 < 0.3 < rows[1024, scaled]["median_gradient"]
    assert rows[1024, plain]["entropy"] < 0.15 and abs(rows[1024, scaled]["entropy"] - rows[4, scaled]["entropy"]) < 0.1
