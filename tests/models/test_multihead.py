# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Multi-head attention against loops over single vectors and torch's layer, and step by step against all at once."""

import copy

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import PreTrainedConfig, T5Config
from transformers.cache_utils import DynamicCache, EncoderDecoderCache, StaticCache
from transformers.models.t5.modeling_t5 import T5Attention

from hf_attn.models.masks import AttentionMask
from hf_attn.models.multihead import MultiHeadAttention
from hf_attn.models.positions import AlibiBias, rotary_angles

BATCH, QUERY_LEN, KEY_LEN, WIDTH, DATA_WIDTH, HEADS = 2, 4, 5, 6, 10, 3
NAMES = ("query", "key", "value", "output")
SELF_MASKS = {
    "none": None,
    "padding": AttentionMask(torch.tensor([[True, True, True, False], [False, True, True, True]])),
    "causal": AttentionMask(causal=True),
    "causal padding": AttentionMask(torch.tensor([[True, True, True, False], [False, True, True, True]]), causal=True),
    "window": AttentionMask(causal=True, window=2),
}


def projections(layer):
    """Weights and biases by the reference's names."""
    linears = {name: getattr(layer, f"{name}_projection") for name in NAMES}
    return {name: (linear.weight, linear.bias) for name, linear in linears.items()}


def expected(layer, states, data, mask=None, bias=None, position=None):
    """The reference for a batch, one sentence after the other."""
    dense = None if mask is None else mask.dense(states.shape[1], data.shape[1])
    outputs, weights = [], []
    for b in range(states.shape[0]):
        allowed = (
            None if dense is None else dense.expand(states.shape[0], 1, states.shape[1], data.shape[1])[b, 0].tolist()
        )
        one_bias = None if bias is None else bias.expand(states.shape[0], -1, -1, -1)[b]
        result = reference.multi_head(
            states[b], data[b], projections(layer), layer.num_heads, allowed, one_bias, position
        )
        outputs.append(result[0])
        weights.append(result[1])
    return torch.stack(outputs), torch.stack(weights)


def copy_to_torch(layer, width, data_width):
    """torch's layer with the weights of ours; queries and data may differ in width."""
    theirs = nn.MultiheadAttention(width, layer.num_heads, kdim=data_width, vdim=data_width, batch_first=True).double()
    weights, biases = zip(*projections(layer).values(), strict=True)
    with torch.no_grad():
        if width == data_width:
            theirs.in_proj_weight.copy_(torch.cat(weights[:3]))
        else:
            for name, weight in zip(("q", "k", "v"), weights[:3], strict=True):
                getattr(theirs, f"{name}_proj_weight").copy_(weight)
        theirs.in_proj_bias.copy_(torch.cat(biases[:3]))
        theirs.out_proj.weight.copy_(weights[3])
        theirs.out_proj.bias.copy_(biases[3])
    return theirs


def gradients(output, *inputs):
    direction = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return torch.autograd.grad((output * direction).sum(), inputs)


def make(**kwargs):
    """A float64 layer whose biases are not zero."""
    layer = MultiHeadAttention(WIDTH, HEADS, **kwargs).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.7)
    return layer


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("mask", SELF_MASKS)
def test_self_attention_is_the_loop(mask, implementation):
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH).double()
    output, _ = layer(states, mask=SELF_MASKS[mask], implementation=implementation)
    _, weights = layer(states, mask=SELF_MASKS[mask], output_attentions=True, implementation=implementation)
    expected_output, expected_weights = expected(layer, states, states, SELF_MASKS[mask])
    torch.testing.assert_close(output, expected_output)
    torch.testing.assert_close(weights, expected_weights)


@pytest.mark.parametrize("kwargs", [{}, {"bias": False}, {"head_dim": 4}])
def test_cross_attention_to_data_of_other_width_and_length_is_the_loop(kwargs):
    layer = make(data_size=DATA_WIDTH, **kwargs)
    states, data = torch.randn(BATCH, QUERY_LEN, WIDTH).double(), torch.randn(BATCH, KEY_LEN, DATA_WIDTH).double()
    mask = AttentionMask(torch.tensor([[True] * 5, [True, True, False, False, False]]))
    output, weights = layer(states, data, mask, output_attentions=True)
    assert output.shape == states.shape and weights.shape == (BATCH, HEADS, QUERY_LEN, KEY_LEN)
    torch.testing.assert_close((output, weights), expected(layer, states, data, mask))
    assert (layer.query_projection.bias is None) == (kwargs.get("bias") is False)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_bias_on_the_scores_and_rotated_queries_and_keys_are_the_loop(implementation):
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH).double()
    positions = torch.arange(QUERY_LEN)[None]
    bias = AlibiBias(HEADS)(positions, positions).double()
    output, _ = layer(states, bias=bias, implementation=implementation)
    torch.testing.assert_close(output, expected(layer, states, states, bias=bias)[0])
    output, _ = layer(states, angles=rotary_angles(positions, layer.head_dim), implementation=implementation)
    # the package's angles are float32
    torch.testing.assert_close(
        output, expected(layer, states, states, position=reference.rotate)[0], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("data_width", [WIDTH, DATA_WIDTH])
def test_torch_s_layer_with_the_same_weights(data_width, implementation, training):
    layer = make(data_size=data_width).train(training)
    theirs = copy_to_torch(layer, WIDTH, data_width).train(training)
    states = torch.randn(BATCH, QUERY_LEN, WIDTH, dtype=torch.float64, requires_grad=True)
    data = torch.randn(BATCH, KEY_LEN, data_width, dtype=torch.float64, requires_grad=True)
    padding = torch.tensor([[True] * 5, [True, True, True, False, False]])
    output, _ = layer(states, data, AttentionMask(padding), implementation=implementation)
    _, weights = layer(states, data, AttentionMask(padding), implementation=implementation, output_attentions=True)
    expected_output, expected_weights = theirs(
        states, data, data, key_padding_mask=~padding, need_weights=True, average_attn_weights=False
    )
    torch.testing.assert_close(output, expected_output)
    torch.testing.assert_close(weights, expected_weights)
    torch.testing.assert_close(gradients(output, states, data), gradients(expected_output, states, data))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_torch_s_layer_with_a_causal_mask(implementation):
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH, dtype=torch.float64, requires_grad=True)
    forbidden = torch.ones(QUERY_LEN, QUERY_LEN, dtype=torch.bool).triu(1)
    expected_output, _ = copy_to_torch(layer, WIDTH, WIDTH)(states, states, states, attn_mask=forbidden)
    output, _ = layer(states, mask=AttentionMask(causal=True), implementation=implementation)
    torch.testing.assert_close(output, expected_output)
    torch.testing.assert_close(gradients(output, states), gradients(expected_output, states))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_without_a_scale_it_is_the_attention_of_t5(implementation):
    layer = make(head_dim=4, bias=False, scaled=False)
    settings = T5Config(d_model=WIDTH, d_kv=4, num_heads=HEADS, dropout_rate=0.0)
    settings._attn_implementation = "eager"
    theirs = T5Attention(settings).double()
    for letter, (weight, _) in zip("qkvo", projections(layer).values(), strict=True):
        getattr(theirs, letter).load_state_dict({"weight": weight})
    states = torch.randn(BATCH, QUERY_LEN, WIDTH, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(1, HEADS, QUERY_LEN, QUERY_LEN, dtype=torch.float64, requires_grad=True)
    output, _ = layer(states, bias=bias, implementation=implementation)
    _, weights = layer(states, bias=bias, implementation=implementation, output_attentions=True)
    expected_output, _, expected_weights = theirs(states, position_bias=bias)
    torch.testing.assert_close((output, weights), (expected_output, expected_weights))
    torch.testing.assert_close(gradients(output, states, bias), gradients(expected_output, states, bias))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("mask", SELF_MASKS)
@pytest.mark.parametrize("biased, scaled", [(False, True), (True, True), (True, False)])
def test_sdpa_is_eager_in_values_and_gradients(mask, training, biased, scaled):
    layer, states = (
        make(scaled=scaled).train(training),
        torch.randn(BATCH, QUERY_LEN, WIDTH, dtype=torch.float64, requires_grad=True),
    )
    bias = torch.randn(1, HEADS, QUERY_LEN, QUERY_LEN).double().requires_grad_() if biased else None
    leaves = [states, *layer.parameters(), *([bias] if biased else [])]
    results = []
    for implementation in ("eager", "sdpa"):
        output, weights = layer(states, mask=SELF_MASKS[mask], bias=bias, implementation=implementation)
        assert weights is None
        results.append((output, *gradients(output, *leaves)))
    assert all(torch.isfinite(gradient).all() for gradient in results[0])
    torch.testing.assert_close(results[1], results[0])


def test_gradcheck():
    layer = MultiHeadAttention(2, 2, data_size=2).double()
    states = torch.randn(1, 2, 2, dtype=torch.float64, requires_grad=True)
    data = torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True)
    mask = AttentionMask(torch.tensor([[True, False, True]]))

    def run(states, data, *parameters):
        return layer(states, data, mask, output_attentions=True)

    assert torch.autograd.gradcheck(run, (states, data, *layer.parameters()))


def test_a_sentence_with_nothing_to_attend_to_gets_the_output_bias_and_finite_gradients():
    layer, states = make(), torch.randn(1, QUERY_LEN, WIDTH, dtype=torch.float64, requires_grad=True)
    mask = AttentionMask(torch.zeros(1, QUERY_LEN, dtype=torch.bool))
    for implementation in ("eager", "sdpa"):
        output, _ = layer(states, mask=mask, implementation=implementation)
        torch.testing.assert_close(output, layer.output_projection.bias.expand_as(output))
        assert all(torch.isfinite(gradient).all() for gradient in gradients(output, states, *layer.parameters()))


def test_dropout_is_on_weights_in_training_only_and_keeps_the_mean():
    layer, many = MultiHeadAttention(WIDTH, HEADS, dropout=0.5), 4000
    states = torch.randn(1, QUERY_LEN, WIDTH)
    for implementation in ("eager", "sdpa"):
        clean, _ = layer.eval()(states, implementation=implementation)
        assert torch.equal(clean, layer(states, implementation=implementation)[0])
        noisy, _ = layer.train()(states.expand(many, -1, -1), implementation=implementation)
        assert noisy.std(0).min() > 1e-3
        assert ((noisy.mean(0) - clean[0]).abs() < 5 * noisy.std(0) / many**0.5).all()
    _, weights = layer(states, output_attentions=True)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, HEADS, QUERY_LEN))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_bfloat16(implementation):
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH).double()
    wide, _ = layer(states, mask=SELF_MASKS["causal padding"])
    narrow, _ = layer.bfloat16()(states.bfloat16(), mask=SELF_MASKS["causal padding"], implementation=implementation)
    assert narrow.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.double(), wide, rtol=0.1, atol=0.1)


@given(
    st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**31), st.randoms(use_true_random=False)
)
def test_moving_the_words_moves_the_outputs(batch, length, heads, seed, random):
    torch.manual_seed(seed)
    layer, states = MultiHeadAttention(6 * heads, heads).double(), torch.randn(batch, length, 6 * heads).double()
    order = random.sample(range(length), length)
    output, weights = layer(states, output_attentions=True)
    moved_output, moved_weights = layer(states[:, order], output_attentions=True)
    torch.testing.assert_close(moved_output, output[:, order])
    torch.testing.assert_close(moved_weights, weights[:, :, order][..., order])


@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 2**31), st.sampled_from(["eager", "sdpa"]))
def test_under_a_causal_mask_later_words_change_nothing(length, now, seed, implementation):
    torch.manual_seed(seed)
    layer, states = MultiHeadAttention(WIDTH, HEADS).double(), torch.randn(1, length, WIDTH).double()
    changed = states.clone()
    changed[:, now + 1 :] = torch.randn_like(changed[:, now + 1 :])
    first, second = (
        layer(x, mask=AttentionMask(causal=True), implementation=implementation)[0][:, : now + 1]
        for x in (states, changed)
    )
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_padding_changes_nothing_for_the_real_words(implementation):
    layer, states = make(), torch.randn(1, QUERY_LEN, WIDTH).double()
    alone, _ = layer(states[:, :2], implementation=implementation)
    mask = AttentionMask(torch.tensor([[True, True, False, False]]))
    torch.testing.assert_close(layer(states, mask=mask, implementation=implementation)[0][:, :2], alone)


# caches


def config(layers=1):
    return PreTrainedConfig(
        num_hidden_layers=layers, num_attention_heads=HEADS, hidden_size=WIDTH, num_key_value_heads=HEADS
    )


def rotary(layer, start, length):
    return rotary_angles(torch.arange(start, start + length)[None], layer.head_dim)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("steps", [[1, 1, 1, 1], [2, 1, 1], [3, 1]])
def test_with_a_cache_steps_are_all_at_once(steps, implementation):
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH).double()
    together, weights = layer(
        states, mask=AttentionMask(causal=True), angles=rotary(layer, 0, QUERY_LEN), output_attentions=True
    )
    cache, parts, start = DynamicCache(), [], 0
    for step in steps:
        output, step_weights = layer(
            states[:, start : start + step],
            mask=AttentionMask(causal=True, query_offset=start),
            angles=rotary(layer, start, step),
            cache=cache,
            output_attentions=start % 2 == 1,
            implementation=implementation,
        )
        if step_weights is not None:
            torch.testing.assert_close(step_weights, weights[:, :, start : start + step, : start + step])
        parts.append(output)
        start += step
    torch.testing.assert_close(torch.cat(parts, dim=1), together)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_with_a_static_cache_unused_slots_have_weight_zero(implementation):
    layer, states = make().float(), torch.randn(BATCH, QUERY_LEN, WIDTH)
    together, weights = layer(states, mask=AttentionMask(causal=True), output_attentions=True)
    cache, parts = StaticCache(config(), max_cache_len=7), []
    for i in range(QUERY_LEN):
        mask = AttentionMask(causal=True, query_offset=torch.tensor(i))
        output, step_weights = layer(
            states[:, i : i + 1], mask=mask, cache=cache, output_attentions=i % 2 == 0, implementation=implementation
        )
        if step_weights is not None:
            assert step_weights.shape == (BATCH, HEADS, 1, 7)
            torch.testing.assert_close(step_weights[..., : i + 1], weights[:, :, i : i + 1, : i + 1])
            assert (step_weights[..., i + 1 :] == 0).all()
        parts.append(output)
    torch.testing.assert_close(torch.cat(parts, dim=1), together)


def test_the_source_is_projected_once_per_sentence_and_layer():
    layers = [make(data_size=DATA_WIDTH, layer_index=i) for i in range(2)]
    states, data = torch.randn(BATCH, QUERY_LEN, WIDTH).double(), torch.randn(BATCH, KEY_LEN, DATA_WIDTH).double()
    cache, calls = EncoderDecoderCache(DynamicCache(), DynamicCache()), []
    for layer in layers:
        layer.key_projection.register_forward_hook(lambda *_: calls.append("key"))
        layer.value_projection.register_forward_hook(lambda *_: calls.append("value"))
    steps = [[layer(states[:, i : i + 1], data, cache=cache)[0] for layer in layers] for i in range(QUERY_LEN)]
    assert calls == ["key", "value"] * 2
    for layer, parts in zip(layers, zip(*steps, strict=True), strict=True):
        torch.testing.assert_close(torch.cat(parts, dim=1), layer(states, data)[0])
    assert cache.get_seq_length() == 0  # the target's own cache is not touched


def test_nothing_is_kept_on_the_module():
    layer, states = make(), torch.randn(BATCH, QUERY_LEN, WIDTH).double()
    before = {name: dict(vars(module)) for name, module in layer.named_modules()}
    for implementation in ("eager", "sdpa"):
        layer(
            states,
            mask=SELF_MASKS["causal"],
            cache=DynamicCache(),
            output_attentions=True,
            implementation=implementation,
        )
    assert {name: dict(vars(module)) for name, module in layer.named_modules()} == before
    assert not list(layer.buffers())


def test_a_width_that_heads_do_not_divide_is_refused_unless_the_head_s_width_is_given():
    with pytest.raises(ValueError, match="hidden_size=6 must be a multiple of num_heads=4"):
        MultiHeadAttention(6, 4)
    assert MultiHeadAttention(6, 4, head_dim=2)(torch.randn(1, 2, 6))[0].shape == (1, 2, 6)


def test_value_norms_are_what_each_key_adds_alone():
    """With one key all the weight is on it: the output without its bias is the sum over heads of what they add."""
    torch.manual_seed(0)
    for heads in (1, 4):
        layer = MultiHeadAttention(8, heads, data_size=6)
        data = torch.randn(2, 5, 6)
        norms = layer.value_norms(data)
        assert norms.shape == (2, heads, 5)
        for head in range(heads):
            alone = copy.deepcopy(layer)  # all other heads are cut from the output projection
            with torch.no_grad():
                width = layer.head_dim
                alone.output_projection.weight[:, : head * width] = 0
                alone.output_projection.weight[:, (head + 1) * width :] = 0
            for key in range(5):
                output, _ = alone(torch.randn(2, 1, 8), data[:, key : key + 1])
                added = (output - alone.output_projection.bias)[:, 0]
                torch.testing.assert_close(norms[:, head, key], added.square().sum(dim=-1).sqrt())
