# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Encoder and decoder layers against loops over single vectors and against torch's own layers."""

import functools
import itertools
import math

import pytest
import reference
import torch
from torch import nn
from torch.nn import functional as F
from transformers import T5Config
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.models.t5.modeling_t5 import T5Block, T5DenseActDense, T5DenseGatedActDense, T5LayerNorm

from hf_attn.models.layers import NORMS, DecoderLayer, EncoderLayer, FeedForward
from hf_attn.models.masks import AttentionMask
from hf_attn.models.multihead import MultiHeadAttention

BATCH, SOURCE_LEN, TARGET_LEN, WIDTH, HEADS, INNER = 2, 4, 3, 6, 2, 5
SOURCE_MASK = AttentionMask(torch.tensor([[True, True, True, True], [True, True, False, False]]))
CAUSAL = AttentionMask(causal=True)
KINDS = list(itertools.product([False, True], ["layer", "rms"]))  # norm_first, norm_type


def make(layer_class, *, norm_type="layer", attention=None, network=None, **kwargs):
    """A float64 layer with no parameter at a special value; `attention` and `network` are the options of its parts."""
    names = ("self_attention",) if layer_class is EncoderLayer else ("self_attention", "cross_attention")
    parts = {name: MultiHeadAttention(WIDTH, HEADS, **attention or {}) for name in names}
    parts["feed_forward"] = FeedForward(WIDTH, INNER, **network or {})
    layer = layer_class(**parts, make_norm=lambda: NORMS[norm_type](WIDTH), **kwargs)
    for parameter in layer.double().parameters():
        nn.init.normal_(parameter, std=0.7)
    return layer


def source(length=SOURCE_LEN):
    return torch.randn(BATCH, length, WIDTH, dtype=torch.float64, requires_grad=True)


def projections(attention):
    names = ("query", "key", "value", "output")
    linears = {name: getattr(attention, f"{name}_projection") for name in names}
    return {name: (linear.weight, linear.bias) for name, linear in linears.items()}


def norm(module):
    """The reference's norm with a module's parameters."""
    if isinstance(module, nn.LayerNorm):
        return lambda vector: reference.layer_norm(vector, module.weight, module.bias)
    return lambda vector: reference.rms_norm(vector, module.weight, module.eps)


def attention(module, mask, b, data=None):
    """The reference's attention of sentence b, as a function of its states."""

    def run(states):
        keys = states if data is None else data
        allowed = mask.dense(len(states), len(keys)).expand(BATCH, 1, len(states), len(keys))[b, 0].tolist()
        return reference.multi_head(states, keys, projections(module), HEADS, allowed)[0]

    return run


def feed_forward(module):
    inner, outer = (module.inner.weight, module.inner.bias), (module.outer.weight, module.outer.bias)
    return lambda states: torch.stack([reference.feed_forward(x, inner, outer) for x in states])


def gradients(output, inputs):
    direction = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return torch.autograd.grad((output * direction).sum(), inputs)


def test_feed_forward_is_the_loop():
    network, states = FeedForward(WIDTH, INNER).double(), source()
    expected = torch.stack([feed_forward(network)(sentence) for sentence in states])
    torch.testing.assert_close(network(states), expected)


@pytest.mark.parametrize("name, function", [("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu), ("tanh", torch.tanh)])
def test_feed_forward_takes_activations_by_the_names_of_transformers(name, function):
    network, states = FeedForward(WIDTH, INNER, name).double(), source()
    torch.testing.assert_close(network(states), network.outer(function(network.inner(states))))


def test_an_unknown_activation_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="activation_function='rleu' is unknown; choose one of .*gelu.*relu"):
        FeedForward(WIDTH, INNER, "rleu")


@pytest.mark.parametrize("norm_first, norm_type", KINDS)
def test_encoder_layer_is_the_loop(norm_first, norm_type):
    layer, states = make(EncoderLayer, norm_first=norm_first, norm_type=norm_type), source()
    expected = []
    for b, sentence in enumerate(states):
        sentence = reference.sublayer(
            sentence, attention(layer.self_attention, SOURCE_MASK, b), norm(layer.self_attention_norm), norm_first
        )
        expected.append(
            reference.sublayer(sentence, feed_forward(layer.feed_forward), norm(layer.feed_forward_norm), norm_first)
        )
    torch.testing.assert_close(layer(states, mask=SOURCE_MASK)[0], torch.stack(expected))


@pytest.mark.parametrize("norm_first, norm_type", KINDS)
def test_decoder_layer_is_the_loop(norm_first, norm_type):
    layer, states, data = make(DecoderLayer, norm_first=norm_first, norm_type=norm_type), source(TARGET_LEN), source()
    expected = []
    for b, sentence in enumerate(states):
        for function, sublayer_norm in (
            (attention(layer.self_attention, CAUSAL, b), layer.self_attention_norm),
            (attention(layer.cross_attention, SOURCE_MASK, b, data[b]), layer.cross_attention_norm),
            (feed_forward(layer.feed_forward), layer.feed_forward_norm),
        ):
            sentence = reference.sublayer(sentence, function, norm(sublayer_norm), norm_first)
        expected.append(sentence)
    output, _, _ = layer(states, data, mask=CAUSAL, source_mask=SOURCE_MASK)
    torch.testing.assert_close(output, torch.stack(expected))


def test_rms_norm_is_that_of_t5():
    ours, theirs, states = NORMS["rms"](WIDTH), T5LayerNorm(WIDTH), 0.001 * torch.randn(5, WIDTH)
    torch.testing.assert_close(ours(states), theirs(states))
    narrow = ours.bfloat16()(states.bfloat16())
    torch.testing.assert_close(narrow.float(), theirs(states), rtol=0.02, atol=0.02)


# T5


def t5_config(gated, is_decoder=False, dropout=0.0):
    config = T5Config(
        d_model=WIDTH, d_kv=4, num_heads=HEADS, d_ff=INNER, feed_forward_proj="gated-gelu" if gated else "relu",
        dropout_rate=dropout, is_decoder=is_decoder,
    )  # fmt: skip
    config._attn_implementation = "eager"
    return config


def copy_network_to_t5(ours, theirs):
    names = {"wi": "inner"} if ours.gate is None else {"wi_0": "gate", "wi_1": "inner"}
    for name, own in (names | {"wo": "outer"}).items():
        getattr(theirs, name).load_state_dict(getattr(ours, own).state_dict())


def copy_to_t5(ours, theirs):
    """Give T5's block the weights of our layer."""
    kinds = {"SelfAttention": "self_attention", "EncDecAttention": "cross_attention", "DenseReluDense": "feed_forward"}
    for sublayer in theirs.layer:
        (name,) = (name for name in kinds if hasattr(sublayer, name))
        sublayer.layer_norm.load_state_dict(getattr(ours, f"{kinds[name]}_norm").state_dict())
        module, own = getattr(sublayer, name), getattr(ours, kinds[name])
        if name == "DenseReluDense":
            copy_network_to_t5(own, module)
        else:
            for letter, (weight, bias) in zip("qkvo", projections(own).values(), strict=True):
                assert bias is None
                getattr(module, letter).load_state_dict({"weight": weight})
    return theirs


@pytest.mark.parametrize("gated, activation", [(False, "relu"), (True, "gelu_new")])
def test_feed_forward_is_that_of_t5_also_in_what_it_drops(gated, activation):
    ours = FeedForward(WIDTH, INNER, activation, bias=False, gated=gated, dropout=0.4).double().train()
    theirs = (T5DenseGatedActDense if gated else T5DenseActDense)(t5_config(gated, dropout=0.4)).double().train()
    copy_network_to_t5(ours, theirs)
    states, outputs = source(), []
    for network in (ours, theirs):
        torch.manual_seed(3)
        outputs.append(network(states))
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(gradients(outputs[0], [states]), gradients(outputs[1], [states]))
    assert not torch.equal(outputs[0], ours.eval()(states))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_t5_s_blocks_with_the_same_weights(gated, implementation):
    close = functools.partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)  # T5's norm computes in float32
    options = {
        "attention": {"head_dim": 4, "bias": False, "scaled": False},
        "network": {"activation": "gelu_new" if gated else "relu", "bias": False, "gated": gated},
        "norm_type": "rms", "norm_first": True,
    }  # fmt: skip
    states, data = source(TARGET_LEN), source()
    hidden = torch.zeros(BATCH, 1, 1, SOURCE_LEN).double().masked_fill(~SOURCE_MASK.padding[:, None, None], -math.inf)
    future = torch.full((1, 1, TARGET_LEN, TARGET_LEN), -math.inf).double().triu(1)

    bias = torch.randn(1, HEADS, SOURCE_LEN, SOURCE_LEN, dtype=torch.float64, requires_grad=True)
    ours = make(EncoderLayer, **options)
    theirs = copy_to_t5(ours, T5Block(t5_config(gated), layer_idx=0).double().eval())
    output, _ = ours(data, bias, mask=SOURCE_MASK, implementation=implementation)
    expected = theirs(data, hidden, bias)[0]
    close(output, expected)
    close(gradients(output, [data, bias]), gradients(expected, [data, bias]))

    bias = torch.randn(1, HEADS, TARGET_LEN, TARGET_LEN, dtype=torch.float64, requires_grad=True)
    ours = make(DecoderLayer, **options)
    theirs = copy_to_t5(ours, T5Block(t5_config(gated, is_decoder=True), layer_idx=0).double().eval())
    output, _, _ = ours(states, data, bias, mask=CAUSAL, source_mask=SOURCE_MASK, implementation=implementation)
    expected = theirs(states, future, bias, data, hidden)[0]
    close(output, expected)
    close(gradients(output, [states, data, bias]), gradients(expected, [states, data, bias]))


# torch


def copy_attention(theirs, ours):
    for parameter, part in ((theirs.in_proj_weight, 0), (theirs.in_proj_bias, 1)):
        parameter.copy_(torch.cat([projections(ours)[name][part] for name in ("query", "key", "value")]))
    theirs.out_proj.load_state_dict(ours.output_projection.state_dict())


def copy_to_torch(ours, theirs):
    """Give torch's layer the weights of ours; its norms are numbered in the order of the sublayers."""
    theirs = theirs.double()
    norms = [ours.self_attention_norm, ours.feed_forward_norm]
    with torch.no_grad():
        copy_attention(theirs.self_attn, ours.self_attention)
        if isinstance(ours, DecoderLayer):
            copy_attention(theirs.multihead_attn, ours.cross_attention)
            norms.insert(1, ours.cross_attention_norm)
    for number, module in enumerate(norms, start=1):
        getattr(theirs, f"norm{number}").load_state_dict(module.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    return theirs


@pytest.mark.parametrize(
    "norm_first, activation, training, implementation",
    list(itertools.product([False, True], ["relu", "gelu"], [False, True], ["eager", "sdpa"])),
)
def test_torch_s_layers_with_the_same_weights(norm_first, activation, training, implementation):
    settings = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": norm_first}
    states, data = source(TARGET_LEN), source()
    padding, future = ~SOURCE_MASK.padding, torch.ones(TARGET_LEN, TARGET_LEN, dtype=torch.bool).triu(1)

    ours = make(EncoderLayer, network={"activation": activation}, norm_first=norm_first).train(training)
    theirs = copy_to_torch(ours, nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, **settings)).train(training)
    output, _ = ours(data, mask=SOURCE_MASK, implementation=implementation)
    expected = theirs(data, src_key_padding_mask=padding)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(gradients(output, [data]), gradients(expected, [data]))

    ours = make(DecoderLayer, network={"activation": activation}, norm_first=norm_first).train(training)
    theirs = copy_to_torch(ours, nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, **settings)).train(training)
    output, _, _ = ours(states, data, mask=CAUSAL, source_mask=SOURCE_MASK, implementation=implementation)
    expected = theirs(states, data, tgt_mask=future, memory_key_padding_mask=padding)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(gradients(output, [states, data]), gradients(expected, [states, data]))


@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_s_layer_drops_the_same_in_the_same_places(norm_first):
    """Weights, the output of attention, what is inside the feed-forward network, and its output; of one sentence, since
    torch's layer has the batch on another axis in between."""
    dropout = {"dropout": 0.3}
    ours = make(EncoderLayer, attention=dropout, network=dropout, norm_first=norm_first, **dropout).train()
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, norm_first=norm_first, **dropout)
    theirs, states, outputs = copy_to_torch(ours, theirs).train(), source()[:1], []
    for run in (lambda: ours(states)[0], lambda: theirs(states)):
        torch.manual_seed(5)
        outputs.append(run())
    torch.testing.assert_close(outputs[0], outputs[1])
    assert not torch.allclose(outputs[0], ours.eval()(states)[0])


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_sdpa_is_eager_in_values_and_gradients_of_all_parameters(norm_first, training):
    encoder = make(EncoderLayer, norm_first=norm_first).train(training)
    decoder = make(DecoderLayer, norm_first=norm_first).train(training)
    states, data = source(TARGET_LEN), source()
    results = []
    for implementation in ("eager", "sdpa"):
        encoded, _ = encoder(data, mask=SOURCE_MASK, implementation=implementation)
        output, _, _ = decoder(states, encoded, mask=CAUSAL, source_mask=SOURCE_MASK, implementation=implementation)
        results.append((output, *gradients(output, [states, data, *encoder.parameters(), *decoder.parameters()])))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_weights_come_back_when_asked_for_and_are_those_of_the_attentions(implementation):
    encoder, decoder, states, data = make(EncoderLayer), make(DecoderLayer), source(TARGET_LEN), source()
    assert encoder(data, implementation=implementation)[1] is None
    assert decoder(states, data, implementation=implementation)[1:] == (None, None)
    wanted = {"output_attentions": True, "implementation": implementation}
    _, weights = encoder(data, mask=SOURCE_MASK, **wanted)
    torch.testing.assert_close(weights, encoder.self_attention(data, mask=SOURCE_MASK, output_attentions=True)[1])
    _, self_weights, cross_weights = decoder(states, data, mask=CAUSAL, source_mask=SOURCE_MASK, **wanted)
    assert self_weights.shape == (BATCH, HEADS, TARGET_LEN, TARGET_LEN)
    assert cross_weights.shape == (BATCH, HEADS, TARGET_LEN, SOURCE_LEN)
    assert (self_weights.triu(1) == 0).all() and (cross_weights[1, :, :, 2:] == 0).all()
    for rows in (weights, self_weights, cross_weights):
        torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:-1], dtype=torch.float64))


@pytest.mark.parametrize("norm_first", [False, True])
def test_what_is_padded_in_the_source_changes_no_target(norm_first):
    layer, states, data = make(DecoderLayer, norm_first=norm_first), source(TARGET_LEN), source()
    changed = data.detach().clone()
    changed[1, 2:] = 100.0
    outputs = [layer(states, x, mask=CAUSAL, source_mask=SOURCE_MASK)[0] for x in (data, changed)]
    assert torch.equal(outputs[0], outputs[1])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_decoding_step_by_step_is_decoding_all_at_once(norm_first, implementation):
    layer, states, data = make(DecoderLayer, norm_first=norm_first), source(TARGET_LEN), source()
    together, _, _ = layer(states, data, mask=CAUSAL, source_mask=SOURCE_MASK)
    cache, steps = EncoderDecoderCache(DynamicCache(), DynamicCache()), []
    for i in range(TARGET_LEN):
        mask = AttentionMask(causal=True, query_offset=i)
        how = {"mask": mask, "source_mask": SOURCE_MASK, "cache": cache, "implementation": implementation}
        steps.append(layer(states[:, i : i + 1], data, **how)[0])
    torch.testing.assert_close(torch.cat(steps, dim=1), together)


@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer])
def test_every_dropout_works_in_training_only(layer_class):
    states, data = source(TARGET_LEN), source()
    inputs = (states,) if layer_class is EncoderLayer else (states, data)
    for options in ({"dropout": 0.5}, {"attention": {"dropout": 0.5}}, {"network": {"dropout": 0.5}}):
        layer = make(layer_class, **options)
        assert torch.equal(layer.eval()(*inputs)[0], layer(*inputs)[0])
        assert not torch.equal(layer.train()(*inputs)[0], layer(*inputs)[0])


def test_dropout_zeroes_coordinates_of_each_sublayer_s_output():
    """With everything dropped a pre-norm layer is its residual path."""
    states, data = source(TARGET_LEN), source()
    assert torch.equal(make(EncoderLayer, norm_first=True, dropout=1.0)(states)[0], states)
    assert torch.equal(make(DecoderLayer, norm_first=True, dropout=1.0)(states, data)[0], states)


@pytest.mark.parametrize("layer_class", [EncoderLayer, DecoderLayer])
def test_gradient_checkpointing_changes_no_gradient(layer_class):
    layer, states, data = make(layer_class).train(), source(TARGET_LEN), source()
    inputs = (states,) if layer_class is EncoderLayer else (states, data)
    plain = gradients(layer(*inputs, mask=CAUSAL)[0], [*inputs, *layer.parameters()])
    layer.gradient_checkpointing = True
    layer._gradient_checkpointing_func = lambda function, *args: torch.utils.checkpoint.checkpoint(
        function, *args, use_reentrant=False
    )
    torch.testing.assert_close(gradients(layer(*inputs, mask=CAUSAL)[0], [*inputs, *layer.parameters()]), plain)
