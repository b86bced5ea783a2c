# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Tables of text, fits and seeds."""

import pytest
import torch

from hf_attn.studies import STUDIES, load_study
from hf_attn.studies.tables import growth, seeded, text_table


def test_a_table_has_texts_to_the_left_and_numbers_to_the_right():
    rows = [{"name": "a", "big_number": 1234.5}, {"name": "long", "big_number": None}]
    assert text_table(rows, {"big_number": ",.1f", "name": ""}) == "big number  name\n   1,234.5  a\n            long"


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_is_found(exponent):
    sizes = [16, 32, 64, 512]
    assert growth(sizes, [7 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_a_seeded_block_leaves_the_random_numbers_of_others_alone():
    torch.manual_seed(1)
    expected = torch.randn(2)
    torch.manual_seed(1)
    with seeded(5):
        first = torch.randn(3)
    assert torch.equal(torch.randn(2), expected)
    with seeded(5):
        assert torch.equal(torch.randn(3), first)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_says_its_sources_and_what_to_look_at(name):
    study = load_study(name)
    described = " ".join((study.__doc__ or "").split())
    assert "Look at: " in described and ("Source" in described or name == "worksheet")
    assert hasattr(study, "draw") != hasattr(study, "files")


def test_an_unknown_study_is_refused():
    with pytest.raises(ValueError, match="study is 'heat'; it must be one of five_steps, scaling, "):
        load_study("heat")
