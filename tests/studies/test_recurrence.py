# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""How time and memory are taken, on calls of known cost; and that they grow as they must."""

import time

import pytest
import torch

from hf_attn.studies import recurrence


def test_the_peak_of_calls_of_known_size():
    megabyte = 2**18  # numbers of four bytes

    def both():
        first, second = torch.empty(megabyte), torch.empty(2 * megabyte)
        del first, second

    def one_after_the_other():
        first = torch.empty(megabyte)
        del first
        torch.empty(2 * megabyte)

    assert recurrence.peak_bytes(both) == 3 * 2**20
    assert recurrence.peak_bytes(one_after_the_other) == 2 * 2**20


def test_rounds_take_all_calls_in_turn_and_leave_the_first_round_out():
    called = []
    calls = {"a": lambda: called.append("a"), "b": lambda: (called.append("b"), time.sleep(0.02))}
    taken = recurrence.time_in_rounds(calls, repeats=3)
    assert called == ["a", "b"] * 4
    assert [len(times) for times in taken.values()] == [3, 3]
    assert all(clock >= 20 for clock, _ in taken["b"])
    assert min(busy for _, busy in taken["b"]) < 20  # asleep, the processor does other things


def test_time_and_memory_grow_and_the_weights_are_the_memory_of_eager():
    lengths, heads, width = (16, 64, 256), 2, 16
    result = recurrence.run(width, heads, length=32, batch=2, lengths=lengths, repeats=3)
    assert [row["reader"] for row in result["rows"]] == ["nn.RNN", "eager", "sdpa"]
    assert result["rows"][0]["ratio"] == 1 and all(row["training"] > 0 for row in result["rows"])
    for name in ("nn.RNN", "eager", "sdpa"):
        own = [row for row in result["growth"] if row["reader"] == name]
        assert [row["length"] for row in own] == list(lengths)
        assert own[-1]["processor"] > own[0]["processor"] > 0
        assert [row["steps"] for row in own] == (list(lengths) if name == "nn.RNN" else [4] * 3)
        for row in own if name == "eager" else ():
            assert row["megabytes"] * 2**20 >= 2 * heads * row["length"] ** 2 * 4  # the weights of two texts
    memory = {row["reader"]: row["memory"] for row in result["exponents"]}
    assert memory["nn.RNN"] == pytest.approx(1, abs=0.15) and memory["sdpa"] == pytest.approx(1, abs=0.15)
    assert 1.4 < memory["eager"] < 2.1
