# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the Transformer's options do outside of its layers: embeddings, norms, output, initial weights."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from hf_attn.models.modeling_attn_transformer import (
    AttnTransformerConfig,
    AttnTransformerForConditionalGeneration,
    PositionedEmbedding,
)

BATCH, LENGTH, WIDTH, VOCABULARY = 2, 5, 8, 20


def config(**options):
    sizes = {
        "vocab_size": VOCABULARY, "hidden_size": WIDTH, "encoder_layers": 1, "decoder_layers": 2,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_intermediate_size": 6,
        "decoder_intermediate_size": 6, "max_position_embeddings": 12, "dropout": 0.0,
    }  # fmt: skip
    return AttnTransformerConfig(**sizes | options)


def make(**options):
    """A model with no parameter at a special value."""
    torch.manual_seed(0)
    model = AttnTransformerForConditionalGeneration(config(**options)).eval()
    with torch.no_grad():
        for parameter in {id(parameter): parameter for parameter in model.parameters()}.values():
            parameter.normal_()
    return model


def ids(seed=0):
    return torch.randint(3, VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(seed))


def gradients(output, inputs):
    return torch.autograd.grad((output * torch.linspace(-1, 1, output.numel()).view_as(output)).sum(), inputs)


# embeddings


def test_bart_s_embedding_is_normed_after_its_position_is_added():
    ours = PositionedEmbedding(config(position_type="learned", scale_embedding=False, normalize_embedding=True))
    theirs, norm = BartLearnedPositionalEmbedding(12, WIDTH), nn.LayerNorm(WIDTH)
    for parameter in (theirs.weight, *norm.parameters()):
        nn.init.normal_(parameter)
    ours.norm.load_state_dict(norm.state_dict())
    ours.learned.load_state_dict({"weight": theirs.weight[2:]})  # BART's first two rows are of no position
    embeds = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    output, expected = ours(embeds, torch.arange(LENGTH)[None]), norm(embeds + theirs(ids()))
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(gradients(output, [embeds]), gradients(expected, [embeds]))


def test_what_is_dropped_of_an_embedding_is_dropped_after_its_norm():
    embedding = PositionedEmbedding(config(normalize_embedding=True, dropout=0.5)).train()
    states = embedding(torch.randn(BATCH, LENGTH, WIDTH), torch.arange(LENGTH)[None])
    assert 0.2 < (states == 0).float().mean() < 0.8


def test_marian_s_embedding_is_scaled_before_its_position_is_added():
    ours = PositionedEmbedding(config(sinusoidal_order="concatenated"))
    theirs = MarianSinusoidalPositionalEmbedding(12, WIDTH)
    theirs.weight = nn.Parameter(theirs.create_weight(), requires_grad=False)
    embeds = torch.randn(BATCH, LENGTH, WIDTH)
    expected = WIDTH**0.5 * embeds + theirs((BATCH, LENGTH))
    torch.testing.assert_close(ours(embeds, torch.arange(LENGTH)[None]), expected)


def test_a_start_that_is_padding_is_seen_and_learned():
    options = {"decoder_start_token_id": 0, "share_embeddings": False, "tie_word_embeddings": False}
    model = AttnTransformerForConditionalGeneration(config(**options))
    outputs = model(input_ids=ids(), labels=ids(1), output_attentions=True)
    for weights in outputs.decoder_attentions:
        assert (weights[:, :, 0, 0] == 1).all() and (weights[:, :, :, 0] > 0).all()
    outputs.loss.backward()
    assert (model.model.decoder.embed_tokens.weight.grad[0] != 0).all()


def test_padding_that_begins_no_target_stays_zero():
    model = AttnTransformerForConditionalGeneration(config())
    model(input_ids=ids(), decoder_input_ids=torch.zeros(BATCH, 2).long()).logits[..., 1:].sum().backward()
    for stack in (model.model.encoder, model.model.decoder):
        assert (stack.embed_tokens.weight[0] == 0).all() and (stack.embed_tokens.weight.grad[0] == 0).all()


# norms and biases


@pytest.mark.parametrize(
    "norm_type, given, expected", [("layer", None, 1e-5), ("rms", None, 1e-6), ("layer", 0.3, 0.3), ("rms", 0.3, 0.3)]
)
def test_every_norm_has_the_eps_of_the_configuration(norm_type, given, expected):
    model = make(norm_type=norm_type, layer_norm_eps=given, norm_first=True, normalize_embedding=True)
    norms = [module for module in model.modules() if isinstance(module, (nn.LayerNorm, nn.RMSNorm))]
    assert len(norms) == 2 + 1 * 2 + 2 * 3 + 2  # embeddings, encoder, decoder, last norms
    assert {norm.eps for norm in norms} == {expected}


def test_without_biases_only_norms_and_the_output_layer_have_any():
    model = make(use_bias=False, output_bias=True, gated_feed_forward=True)
    biased = {name for name, _ in model.named_parameters() if name.endswith("bias")}
    assert "lm_head.bias" in biased and all("norm" in name for name in biased - {"lm_head.bias"})
    assert any("gate.weight" in name for name, _ in model.named_parameters())


# output


@pytest.mark.parametrize("embedding_size", [WIDTH, 6])
def test_the_output_is_scaled_and_has_a_bias(embedding_size):
    model = make(scale_output=True, output_bias=True, embedding_size=embedding_size)
    outputs = model(input_ids=ids(), decoder_input_ids=ids(1), output_hidden_states=True)
    states = outputs.decoder_hidden_states[-1] / WIDTH**0.5
    if embedding_size != WIDTH:
        states = F.linear(states, model.output_projection.weight)
    expected = F.linear(states, model.model.decoder.embed_tokens.weight, model.lm_head.bias)
    torch.testing.assert_close(outputs.logits, expected)
    assert model.lm_head.weight is model.model.decoder.embed_tokens.weight


@pytest.mark.parametrize("tied", [True, False])
def test_the_output_s_bias_is_resized_and_saved_with_the_vocabulary(tied, tmp_path):
    for size in (VOCABULARY + 7, VOCABULARY - 7):
        model = make(output_bias=True, tie_word_embeddings=tied)
        before, kept = model.lm_head.bias.detach().clone(), min(size, VOCABULARY)
        model.resize_token_embeddings(size)
        model.save_pretrained(tmp_path / str(size), include_code=False)
        loaded = AttnTransformerForConditionalGeneration.from_pretrained(tmp_path / str(size))
        for head in (model.lm_head, loaded.lm_head):
            assert head.bias.shape == (size,) and torch.equal(head.bias[:kept], before[:kept])
            assert head.bias.isfinite().all()
        assert torch.equal(loaded.lm_head.bias, model.lm_head.bias)


# initial weights


def queries(model):
    return {name: tensor for name, tensor in model.state_dict().items() if name.endswith("query_projection.weight")}


def test_initial_queries_are_smaller_where_dot_products_are_not_divided():
    options = {"hidden_size": 128, "head_dim": 16, "scale_attention": False}
    torch.manual_seed(0)
    model = AttnTransformerForConditionalGeneration(config(**options))
    for name, tensor in queries(model).items():
        assert tensor.std().item() == pytest.approx(128**-0.5 / 4, rel=0.1), name
        key = model.state_dict()[name.replace("query", "key")]
        assert key.std().item() == pytest.approx(128**-0.5, rel=0.1)


def test_queries_that_are_loaded_stay_and_those_that_are_missing_are_new(tmp_path):
    model = make(hidden_size=128, scale_attention=False)
    missing, *present = queries(model)
    state = {name: tensor for name, tensor in model.state_dict().items() if name != missing}
    model.save_pretrained(tmp_path, state_dict=state, include_code=False)
    loaded = AttnTransformerForConditionalGeneration.from_pretrained(tmp_path)
    for name in present:
        assert torch.equal(loaded.state_dict()[name], model.state_dict()[name])
    assert loaded.state_dict()[missing].std().item() == pytest.approx(128**-0.5 / 8, rel=0.1)  # heads are 64 wide
