# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The five scores against their formulas for one query and one key at a time."""

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_attn.models.scores import SCORE_FUNCTIONS, Additive, Concat, Dot, General, ScaledDot, make_score

EQUAL_WIDTHS = ("dot", "scaled_dot")
NAMES = ("dot", "scaled_dot", "general", "additive", "concat")


def one_pair(score):
    """The formula of a module for one query and one key, with the module's own parameters."""
    weights = dict(score.named_parameters())
    if isinstance(score, ScaledDot):
        return reference.scaled_dot
    if isinstance(score, Dot):
        return reference.dot
    if isinstance(score, General):
        return lambda q, k: reference.general(q, k, weights["key_projection.weight"])
    energy = weights["energy.weight"][0]
    if isinstance(score, Additive):
        return lambda q, k: reference.additive(
            q, k, weights["query_projection.weight"], weights["key_projection.weight"], energy
        )
    return lambda q, k: reference.concat(q, k, weights["pair_projection.weight"], energy)


def example(name, query_dim=3, key_dim=4, attention_size=5):
    """A float64 module with queries (2, 1, 3, query_dim) and keys (2, 1, 4, key_dim)."""
    key_dim = query_dim if name in EQUAL_WIDTHS else key_dim
    score = make_score(name, query_dim, key_dim, attention_size).double()
    return score, torch.randn(2, 1, 3, query_dim).double(), torch.randn(2, 1, 4, key_dim).double()


def test_the_five_names():
    assert set(SCORE_FUNCTIONS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_pair_has_the_score_of_the_formula(name):
    score, query, key = example(name)
    torch.testing.assert_close(score(query, score.project_keys(key)), reference.score_all(query, key, one_pair(score)))


@given(st.sampled_from(NAMES), *[st.integers(1, 4)] * 6, st.integers(0, 2**31))
def test_any_shape(name, batch, heads, query_len, key_len, query_dim, key_dim, seed):
    torch.manual_seed(seed)
    key_dim = query_dim if name in EQUAL_WIDTHS else key_dim
    score = make_score(name, query_dim, key_dim, attention_size=3).double()
    query = torch.randn(batch, heads, query_len, query_dim).double()
    key = torch.randn(batch, heads, key_len, key_dim).double()
    scores = score(query, score.project_keys(key))
    torch.testing.assert_close(scores, reference.score_all(query, key, one_pair(score)))


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    score, query, key = example(name, query_dim=2, key_dim=3, attention_size=2)
    query, key = query.requires_grad_(), key.requires_grad_()
    parameters = list(score.parameters())

    def scores(query, key, *parameters):
        return score(query, score.project_keys(key))

    assert torch.autograd.gradcheck(scores, (query, key, *parameters))


def test_concat_is_additive_written_as_one_matrix():
    additive, concat = Additive(3, 4, 5), Concat(3, 4, 5)
    with torch.no_grad():
        concat.pair_projection.weight.copy_(
            torch.cat([additive.query_projection.weight, additive.key_projection.weight], dim=1)
        )
        concat.energy.weight.copy_(additive.energy.weight)
    query, key = torch.randn(2, 1, 6, 3), torch.randn(2, 1, 7, 4)
    torch.testing.assert_close(concat(query, concat.project_keys(key)), additive(query, additive.project_keys(key)))
    assert sum(p.numel() for p in concat.parameters()) == sum(p.numel() for p in additive.parameters())


def test_general_with_the_identity_is_dot_and_scaled_dot_is_dot_over_root_width():
    general, query, key = General(9, 9), torch.randn(2, 1, 3, 9), torch.randn(2, 1, 4, 9)
    with torch.no_grad():
        general.key_projection.weight.copy_(torch.eye(9))
    dot = Dot(9, 9)(query, key)
    torch.testing.assert_close(general(query, general.project_keys(key)), dot)
    torch.testing.assert_close(ScaledDot(9, 9)(query, key), dot / 3)


@pytest.mark.parametrize("name", NAMES)
def test_scale_names_the_dot_products_and_only_them(name):
    score, query, key = example(name)
    projected = score.project_keys(key)
    if name in ("additive", "concat"):
        assert score.scale is None
    else:
        torch.testing.assert_close(
            score(query, projected), score.scale * torch.einsum("bhqd,bhkd->bhqk", query, projected)
        )


@pytest.mark.parametrize("name", NAMES)
def test_keys_are_projected_once_and_nothing_is_kept(name):
    score, query, key = example(name)
    before = {module: dict(vars(part)) for module, part in score.named_modules()}
    projected = score.project_keys(key)
    together = score(query, projected)
    one_by_one = torch.cat([score(query[:, :, i : i + 1], projected) for i in range(query.shape[2])], dim=2)
    torch.testing.assert_close(one_by_one, together)
    assert {module: dict(vars(part)) for module, part in score.named_modules()} == before


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16(name):
    score, query, key = example(name)
    expected = score(query, score.project_keys(key))
    score, query, key = score.bfloat16(), query.bfloat16(), key.bfloat16()
    scores = score(query, score.project_keys(key))
    assert scores.dtype == torch.bfloat16
    torch.testing.assert_close(scores.double(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("score", [Dot, ScaledDot])
def test_dot_products_refuse_different_widths(score):
    with pytest.raises(ValueError, match="query_dim == key_dim, got query_dim=3 and key_dim=4"):
        score(3, 4)


def test_an_unknown_score_is_refused_with_the_known_ones():
    with pytest.raises(ValueError) as error:
        make_score("cosine", 3, 3, 3)
    for word in ("score_function='cosine'", *NAMES):
        assert word in str(error.value)
