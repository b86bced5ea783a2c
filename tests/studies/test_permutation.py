# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Which layers see a set: torch's own layers say the same, and a running sum has known differences."""

import pytest
import torch

from hf_attn.models.configuration_attn_bert import POSITION_TYPES
from hf_attn.studies import permutation


def test_only_attention_without_positions_and_mask_sees_a_set():
    rows = permutation.run(length=6, orders=3)["rows"]
    sets = {row["layer"] for row in rows if row["of_words"] < 1e-5}
    assert sets == {"self-attention", "3 encoder layers, positions: none"}
    for row in rows:
        small = [row[name] < 1e-5 for name in ("of_words", "of_mean", "of_sentences")]
        assert small == [row["layer"] in sets] * 3, row
    assert {f"3 encoder layers, positions: {kind}" for kind in POSITION_TYPES} < {row["layer"] for row in rows}


def test_the_measure_knows_torchs_own_layers():
    states, orders = torch.randn(1, 7, 8), [torch.arange(7).flip(0), torch.randperm(7)]
    attention, rnn = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.GRU(8, 8, batch_first=True)
    of_set = permutation.measure(lambda x: attention(x, x, x)[0], states, orders)
    of_sequence = permutation.measure(lambda x: rnn(x)[0], states, orders)
    assert max(of_set.values()) < 1e-5 and min(of_sequence.values()) > 1e-2


def test_the_measure_of_a_running_sum():
    states, backwards = torch.tensor([[[1.0], [2.0], [3.0]]]), [torch.tensor([2, 1, 0])]
    # sums 1, 3, 6; of 3, 2, 1 they are 3, 5, 6: the words' own differ by 3 - 6, 5 - 3, 6 - 1, the means by 14/3 - 10/3
    measured = permutation.measure(lambda x: x.cumsum(dim=1), states, backwards)
    assert measured == pytest.approx({"of_words": 5 / 6, "of_mean": 0.4})
