# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Masks against single decisions, and against transformers' definition of a sliding window."""

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.masking_utils import sliding_window_causal_mask_function

from hf_attn.models.masks import AttentionMask, padding_mask


@st.composite
def descriptions(draw):
    """A batch's padding (unused cache columns follow it), lengths, and order restrictions."""
    columns = draw(st.integers(1, 6))
    padding = draw(st.lists(st.lists(st.booleans(), min_size=columns, max_size=columns), min_size=1, max_size=3))
    causal = draw(st.booleans())
    return {
        "padding": padding,
        "query_len": draw(st.integers(1, 5)),
        "key_len": columns + draw(st.integers(0, 3)),
        "causal": causal,
        "window": draw(st.none() | st.integers(1, 5)) if causal else None,
        "offset": draw(st.integers(0, 5)),
    }


@given(descriptions())
def test_dense_says_what_each_single_decision_says(case):
    expected = reference.mask(**case)
    offset = case["offset"]
    for query_offset in (offset, torch.tensor(offset)):
        mask = AttentionMask(torch.tensor(case["padding"]), case["causal"], case["window"], query_offset)
        dense = mask.dense(case["query_len"], case["key_len"])
        assert dense.dtype == torch.bool
        assert torch.equal(dense.expand(expected.shape), expected)


@given(descriptions())
def test_dense_without_padding_allows_every_real_key(case):
    everything_real = [[True] * case["key_len"]]
    expected = reference.mask(**{**case, "padding": everything_real})
    dense = AttentionMask(None, case["causal"], case["window"], case["offset"]).dense(
        case["query_len"], case["key_len"]
    )
    if dense is None:
        assert expected.all()
    else:
        assert torch.equal(dense, expected[:, :1])


def test_nothing_is_written_out_when_everything_may_be_attended():
    assert AttentionMask().dense(3, 4) is None
    assert AttentionMask(query_offset=2).dense(3, 4) is None
    # one query behind three cached keys sees all four, with padding as it is
    assert AttentionMask(causal=True, query_offset=3).dense(1, 4) is None
    padding = torch.tensor([[False, True, True, True]])
    assert torch.equal(AttentionMask(padding, causal=True, query_offset=3).dense(1, 4)[:, 0, 0], padding)


def test_causal_rows_of_the_fourth_query():
    assert AttentionMask(causal=True).dense(4, 4)[0, 0].tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]


def test_unused_slots_of_a_static_cache_are_not_attended():
    padding = torch.tensor([[True, True, True], [False, True, True]])
    dense = AttentionMask(padding).dense(1, 6)
    assert dense[:, 0, 0].tolist() == [
        [True, True, True, False, False, False],
        [False, True, True, False, False, False],
    ]


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_window_is_the_one_of_transformers(window):
    allowed = sliding_window_causal_mask_function(window)
    position = torch.arange(7)
    expected = allowed(0, 0, position[:, None], position[None, :])
    assert torch.equal(AttentionMask(causal=True, window=window).dense(7, 7)[0, 0], expected)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"padding": torch.ones(2, 3)}, ["padding", "torch.float32", "(2, 3)", "boolean"]),
        ({"padding": torch.ones(2, 1, 1, 3, dtype=torch.bool)}, ["padding", "(2, 1, 1, 3)", "(batch, key_len)"]),
        ({"causal": True, "window": 0}, ["window=0", "at least 1"]),
        ({"window": 2}, ["window=2", "causal=True"]),
    ],
)
def test_a_wrong_description_is_refused_with_name_value_and_remedy(arguments, words):
    with pytest.raises(ValueError) as error:
        AttentionMask(**arguments)
    for word in words:
        assert word in str(error.value)


def test_padding_of_more_keys_than_there_are_is_refused():
    with pytest.raises(ValueError, match="5 keys, but there are 4"):
        AttentionMask(torch.ones(1, 5, dtype=torch.bool)).dense(1, 4)


def test_padding_mask_is_none_exactly_when_nothing_is_padded():
    assert padding_mask(None) is None
    assert padding_mask(torch.ones(2, 3, dtype=torch.long)) is None
    for dtype in (torch.long, torch.bool, torch.float32):
        padded = torch.tensor([[1, 1, 0], [1, 1, 1]]).to(dtype)
        assert torch.equal(padding_mask(padded), torch.tensor([[True, True, False], [True, True, True]]))


def test_padding_mask_refuses_a_written_out_mask():
    with pytest.raises(ValueError, match=r"attention_mask must be \(batch, length\), got shape \(2, 1, 3, 3\)"):
        padding_mask(torch.ones(2, 1, 3, 3))


def test_compiled_code_keeps_the_mask_and_never_looks_at_its_values():
    def model(attention_mask):
        return AttentionMask(padding_mask(attention_mask), causal=True).dense(3, 3)

    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for attention_mask in (torch.ones(2, 3), torch.tensor([[1, 1, 0], [1, 1, 1]])):
        causal = torch.ones(3, 3, dtype=torch.bool).tril()
        assert torch.equal(compiled(attention_mask), attention_mask.bool()[:, None, None] & causal)
