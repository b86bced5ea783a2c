# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What scores cost, against the formulas."""

import pytest

from hf_attn.studies import score_functions


def test_parameters_and_multiplications_are_those_of_the_formulas():
    n, d = 10, 8
    result = score_functions.run(widths=(d,), length=n, repeats=1)
    counted = {row["score"]: (row["parameters"], row["multiplications"]) for row in result["rows"]}
    pairs = n * n * d
    assert counted == {
        "dot": (0, pairs),
        "scaled_dot": (0, pairs),
        "general": (d * d, n * d * d + pairs),
        "additive": (2 * d * d + d, 2 * n * d * d + pairs),
        "concat": (2 * d * d + d, 4 * n * d * d + pairs),  # the half that is zero is multiplied too
    }


def test_a_network_for_each_pair_keeps_its_hidden_layer():
    n, d = 64, 32
    megabytes = {row["score"]: row["megabytes"] for row in score_functions.run((d,), n, repeats=1)["rows"]}
    hidden = 4 * n * n * d / 2**20
    assert megabytes["additive"] >= hidden and megabytes["concat"] >= hidden
    assert max(megabytes[name] for name in ("dot", "scaled_dot", "general")) < hidden / 4


def test_additive_and_concat_are_one_function():
    assert score_functions.same_function(width=5, length=7) == pytest.approx(0, abs=1e-6)
