# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What holds of every whole model, whatever its family, sizes, masks and precision.

The same of single blocks is in tests/models: `attend` and its executions in test_attention.py, positions in
test_positions.py, heads in test_multihead.py, layers in test_layers.py, scores in test_scores.py.
"""

import functools
import inspect
import itertools

import pytest
import torch
from contract import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.models.attention import run_attention
from hf_attn.models.masks import AttentionMask
from hf_attn.models.scores import SCORE_FUNCTIONS, make_score
from hf_attn.registry import family_module

HEADS = pytest.mark.parametrize("case", cases(generates=True, seq2seq=True))
KINDS = ("encoder_attentions", "decoder_attentions", "cross_attentions")
PLAIN = {"dropout": 0.0, "attention_dropout": 0.0}
lengths = st.integers(1, 6)


@functools.cache
def model_of(case, sharpness=2.0, **options):
    """A model whose outputs differ visibly from token to token."""
    return case.model(sharpness=sharpness, **options)


def random_ids(model, rows, length, seed, target=False):
    """Ids without padding."""
    size = model.config.target_vocab_size if target else model.config.vocab_size
    return torch.randint(3, size, (rows, length), generator=torch.Generator().manual_seed(seed))


def run(model, **arguments):
    with torch.no_grad():
        return model(**arguments, output_attentions=True)


def weights_of(output):
    """Every tensor of attention weights, with its kind."""
    return [(kind, layer) for kind in KINDS for layer in getattr(output, kind) or ()]


def close(first, second, **tolerance):
    torch.testing.assert_close(first, second, **{"rtol": 1e-4, "atol": 1e-5, **tolerance})


# order


@HEADS
@settings(max_examples=6)
@given(lengths, lengths, st.integers(0, 99), st.randoms())
def test_what_is_not_written_yet_changes_nothing(case, source_len, target_len, seed, random):
    model = model_of(case)
    source, target = random_ids(model, 2, source_len, seed), random_ids(model, 2, target_len + 1, seed + 1, target=True)
    kept = random.randint(1, target_len)
    other = target.clone()
    other[:, kept:] = 3 + (target[:, kept:] - 2) % (model.config.target_vocab_size - 3)
    first, second = (run(model, input_ids=source, decoder_input_ids=ids) for ids in (target, other))
    close(first.logits[:, :kept], second.logits[:, :kept])
    assert (first.logits[:, kept:] - second.logits[:, kept:]).abs().amax(-1).min() > 1e-4
    for (kind, before), (_, after) in zip(weights_of(first), weights_of(second), strict=True):
        if kind != "encoder_attentions":
            close(before[:, :, :kept], after[:, :, :kept])
        if kind == "decoder_attentions":
            assert (before.triu(1) == 0).all()


@HEADS
@settings(max_examples=6)
@given(st.integers(2, 6), lengths, st.integers(0, 99), st.randoms())
def test_states_are_attended_to_as_a_set(case, source_len, target_len, seed, random):
    """Attention does not see the order of what it attends to: all that tells it is in the states themselves."""
    model = model_of(case)
    source, target = random_ids(model, 2, source_len, seed), random_ids(model, 2, target_len, seed, target=True)
    order = random.sample(range(source_len), source_len)
    with torch.no_grad():
        encoded = model.get_encoder()(source)
    states = {name: encoded[name][:, order] for name in ("last_hidden_state", "key") if encoded.get(name) is not None}
    moved = type(encoded)(**encoded | states)
    first, second = (run(model, encoder_outputs=states, decoder_input_ids=target) for states in (encoded, moved))
    close(first.logits, second.logits)
    for before, after in zip(first.cross_attentions or (), second.cross_attentions or (), strict=True):
        close(before[..., order], after)


def with_positions():
    """The families that take positions as an option, in their first variant."""
    found = [
        one
        for one in cases(heads=True, variants=False, seq2seq=True)
        if hasattr(one.values[0].config(), "position_type")
    ]
    assert found
    return found


@pytest.mark.parametrize("case", with_positions())
@settings(max_examples=6)
@given(st.integers(3, 7), st.integers(0, 99), st.randoms())
def test_without_positions_an_encoder_reads_a_set_and_with_them_a_sequence(case, length, seed, random):
    def states(kind, order):
        model = model_of(case, position_type=kind)
        source = torch.arange(3, 3 + length)[None] + seed % 30  # all different, so that the order can matter
        with torch.no_grad():
            return model.get_encoder()(source).last_hidden_state[:, order], model.get_encoder()(source[:, order])[0]

    close(*states("none", random.sample(range(length), length)))
    first_word_last = [*range(1, length), 0]  # ALiBi alone does not tell a sentence from its mirror image
    for kind in ("sinusoidal", "learned", "rotary", "alibi", "relative"):
        before, after = states(kind, first_word_last)
        assert (before - after).abs().max() > 1e-3, kind


@pytest.mark.parametrize("case", with_positions())
@pytest.mark.parametrize("kind", ["none", "rotary", "alibi", "relative", "sinusoidal", "learned"])
def test_scores_of_rotated_and_biased_positions_depend_on_distances_only(case, kind, monkeypatch):
    """Every position is moved by the same number. A target with padding at its end is numbered as the source is."""
    model, module = model_of(case, position_type=kind), family_module(case.family)
    batch = {
        "input_ids": random_ids(model, 2, 5, 0),
        "decoder_input_ids": random_ids(model, 2, 4, 1, target=True),
        "decoder_attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]]),
    }
    before, number = run(model, **batch), module.token_positions
    monkeypatch.setattr(module, "token_positions", lambda *arguments: number(*arguments) + 23)
    after = run(model, **batch)
    if kind in ("sinusoidal", "learned"):
        assert (before.logits - after.logits).abs().max() > 1e-2
    else:
        close(before.logits, after.logits, atol=1e-4)
        for (_, first), (_, second) in zip(weights_of(before), weights_of(after), strict=True):
            close(first, second, atol=1e-4)


# padding


def padded(tensor, where, count, value):
    columns = tensor.new_full((len(tensor), count), value)
    return torch.cat([columns, tensor] if where == "left" else [tensor, columns], dim=1)


@HEADS
@settings(max_examples=6)
@given(lengths, lengths, st.integers(1, 3), st.sampled_from(["left", "right"]), st.integers(0, 99))
def test_padding_of_the_source_changes_nothing(case, source_len, target_len, count, where, seed):
    model = model_of(case)
    source, target = random_ids(model, 2, source_len, seed), random_ids(model, 2, target_len, seed, target=True)
    longer = padded(source, where, count, model.config.pad_token_id)
    masks = {"with its mask": padded(torch.ones_like(source), where, count, 0), "inferred from the ids": None}
    plain = run(model, input_ids=source, decoder_input_ids=target)
    real = slice(count, None) if where == "left" else slice(source_len)
    for mask in masks.values():
        output = run(model, input_ids=longer, attention_mask=mask, decoder_input_ids=target)
        close(output.logits, plain.logits)
        for (kind, expected), (_, weights) in zip(weights_of(plain), weights_of(output), strict=True):
            if kind == "encoder_attentions":
                weights = weights[:, :, real]
            if kind != "decoder_attentions":
                close(weights[..., real], expected)
                close(weights.sum(-1), weights[..., real].sum(-1))
            else:
                close(weights, expected)


@HEADS
@settings(max_examples=6)
@given(lengths, lengths, st.integers(1, 3), st.sampled_from(["left", "right"]), st.integers(0, 99))
def test_padding_of_the_target_changes_nothing(case, source_len, target_len, count, where, seed):
    model = model_of(case)
    source, target = random_ids(model, 2, source_len, seed), random_ids(model, 2, target_len, seed, target=True)
    longer = padded(target, where, count, model.config.pad_token_id)
    mask = padded(torch.ones_like(target), where, count, 0)
    arguments = {"input_ids": source, "decoder_input_ids": longer, "decoder_attention_mask": mask}
    if where == "left" and not hasattr(model.config, "max_position_embeddings"):  # a recurrent decoder
        with pytest.raises(ValueError, match="decoder_attention_mask has padding before a real token"):
            run(model, **arguments)
        return
    plain, output = run(model, input_ids=source, decoder_input_ids=target), run(model, **arguments)
    real = slice(count, None) if where == "left" else slice(target_len)
    close(output.logits[:, real], plain.logits)
    for (kind, expected), (_, weights) in zip(weights_of(plain), weights_of(output), strict=True):
        if kind == "decoder_attentions":
            close(weights[:, :, real, real], expected)
        elif kind == "cross_attentions":
            close(weights[:, :, real], expected)


@HEADS
@settings(max_examples=8)
@given(lengths, lengths, st.integers(0, 999), st.data())
def test_rows_sum_to_one_or_are_zero_where_nothing_is_real_and_all_is_finite(case, source_len, target_len, seed, data):
    """Any mask of the source, rows without a real token among them; in training, so that dropout is on."""
    model = model_of(case).train()
    rows = data.draw(
        st.lists(st.lists(st.booleans(), min_size=source_len, max_size=source_len), min_size=1, max_size=3)
    )
    mask = torch.tensor([*rows, [False] * source_len])
    labels = random_ids(model, len(mask), target_len, seed, target=True)
    model.zero_grad()
    torch.manual_seed(seed)
    source = random_ids(model, len(mask), source_len, seed)
    output = model(input_ids=source, attention_mask=mask.long(), labels=labels, output_attentions=True)
    output.loss.backward()
    model.eval()
    assert torch.isfinite(output.logits).all() and torch.isfinite(output.loss)
    assert all(torch.isfinite(one.grad).all() for one in model.parameters() if one.grad is not None)
    for kind, weights in weights_of(output):
        some = mask.any(-1) if kind != "decoder_attentions" else torch.ones(len(mask), dtype=torch.bool)
        close(weights.sum(-1), some[:, None, None].expand(weights.shape[:-1]).float())
        assert (weights >= 0).all()
        if kind != "decoder_attentions":
            assert (weights.masked_select(~mask[:, None, None]) == 0).all()


# precision


@HEADS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_compute_nearly_the_same(case, dtype):
    batch = case.batch()
    plain = case.model(**PLAIN)
    other = case.model(**PLAIN).to(dtype)
    expected, output = run(plain, **batch), run(other, **batch)
    assert output.logits.dtype == dtype
    scale = expected.logits.abs().max().item()
    tolerance = {"rtol": 0, "atol": (0.03 if dtype == torch.bfloat16 else 1e-4) * scale}
    close(output.logits.float(), expected.logits, **tolerance)
    close(output.loss.float(), expected.loss, rtol=0.02, atol=0)
    for (_, weights), (_, wanted) in zip(weights_of(output), weights_of(expected), strict=True):
        close(weights.float(), wanted, rtol=0, atol=0.02 if dtype == torch.bfloat16 else 1e-4)


@HEADS
def test_gradcheck_of_the_whole(case):
    """By its embeddings, source and target; the last source token is padding in the second row."""
    small = {"hidden_size": 4, "encoder_layers": 1, "decoder_layers": 1, "decoder_attention_heads": 2} | PLAIN
    names = inspect.signature(case.model_class.config_class).parameters
    model = case.model(**{name: small[name] for name in small if name in names}, embedding_size=4, vocab_size=7,
                       **({"decoder_vocab_size": 6} if case.config().decoder_vocab_size else {})).double()  # fmt: skip
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    source, target = (torch.randn(2, length, 4, dtype=torch.float64, requires_grad=True) for length in (3, 2))

    def logits(source, target):
        return model(inputs_embeds=source, attention_mask=mask, decoder_inputs_embeds=target, use_cache=False).logits

    assert torch.autograd.gradcheck(logits, (source, target))


@pytest.mark.parametrize("implementation, name", list(itertools.product(["eager", "sdpa"], SCORE_FUNCTIONS)))
def test_gradcheck_of_run_attention(implementation, name):
    """With a bias, and with a query that has nothing to attend to."""
    score = make_score(name, 4, 4, 3).double()
    mask = AttentionMask(torch.tensor([[False, True, True]]), causal=True)
    sizes = ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 2), (1, 2, 3, 3))
    inputs = tuple(torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in sizes)

    def context(query, key, value, bias):
        key = score.project_keys(key)
        return run_attention(query, key, value, score, mask, bias=bias, implementation=implementation)[0]

    assert (context(*inputs)[:, :, 0] == 0).all()
    assert torch.autograd.gradcheck(context, inputs)
