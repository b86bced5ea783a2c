# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The convolutional model against explicit loops, and what the paper says of its scales and first weights."""

import math

import pytest
import reference_convs2s
import torch
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import BaseModelOutput

import hf_attn
from hf_attn.models.configuration_attn_convs2s import AttnConvS2SConfig
from hf_attn.models.modeling_attn_convs2s import (
    AttnConvS2SEncoderOutput,
    AttnConvS2SForConditionalGeneration,
    AttnConvS2SModel,
    ConvolutionCache,
)

FAMILY = {
    "plain": {},
    "narrow": dict(embedding_size=4, encoder_layers=1, decoder_layers=3),
    "wide": dict(embedding_size=9, encoder_kernel_size=5, decoder_kernel_size=4),
    "pointwise": dict(encoder_kernel_size=1, decoder_kernel_size=1, share_embeddings=True, tie_word_embeddings=True),
}
VOCAB = 17


def make(name="plain", scale=4.0, head=AttnConvS2SForConditionalGeneration, **changes):
    """A tiny model in double precision; its embeddings multiplied by `scale`, its biases random."""
    options = {"vocab_size": VOCAB, "hidden_size": 6, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    model = head(AttnConvS2SConfig(**options | FAMILY[name] | changes)).double().eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(std=0.3)
            elif "embed" in parameter_name or "lm_head" in parameter_name:
                parameter.mul_(scale)
    return model


def random_ids(*shape):
    """Ids without padding."""
    return torch.randint(3, VOCAB, shape)


def placed(ids, places, length):
    """The row of ids at these places of a longer row; and the mask that says so."""
    longer, mask = torch.zeros(1, length, dtype=torch.long), torch.zeros(1, length, dtype=torch.long)
    longer[0, places], mask[0, places] = ids[0], 1
    return longer, mask


@pytest.mark.parametrize("name", FAMILY)
@torch.no_grad()
def test_logits_and_weights_are_the_equations(name):
    """In a ragged batch, whose rows are padded on the right, on the left and in the middle."""
    model = make(name)
    table = dict(model.named_parameters(remove_duplicate=False))
    rows, places = [random_ids(1, length) for length in (5, 2, 3, 1)], ([0, 1, 2, 3, 4], [0, 1], [0, 2, 4], [4])
    source = torch.cat([placed(row, place, 5)[0] for row, place in zip(rows, places, strict=True)])
    target = random_ids(4, 4)
    out = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
    assert out.encoder_attentions is None and out.decoder_attentions is None
    assert [layer.shape for layer in out.cross_attentions] == [(4, 1, 4, 5)] * model.config.decoder_layers
    for row, place in enumerate(places):
        logits, weights = reference_convs2s.translate(model.config, table, rows[row][0].tolist(), target[row].tolist())
        torch.testing.assert_close(out.logits[row], logits)
        ours = torch.stack(out.cross_attentions)[:, row, 0]
        torch.testing.assert_close(ours[..., place], weights)
        elsewhere = [column for column in range(5) if column not in place]
        assert ours[..., elsewhere].eq(0).all()


@pytest.mark.parametrize("name", FAMILY)
@torch.no_grad()
def test_the_encoder_returns_the_keys_and_values_of_the_equations(name):
    model, ids = make(name), random_ids(1, 5)
    encoded = model.get_encoder()(ids)
    keys, values = reference_convs2s.encode(model.config, dict(model.named_parameters()), ids[0].tolist())
    torch.testing.assert_close(encoded.key[0], torch.stack(keys))
    torch.testing.assert_close(encoded.last_hidden_state[0], torch.stack(values))


@pytest.mark.parametrize("name", ["plain", "wide"])
@pytest.mark.parametrize("places", [[0, 1, 2], [2, 3, 4], [1, 2, 3], [0, 2, 4]])
@torch.no_grad()
def test_padding_of_the_source_changes_nothing_wherever_it_stands(name, places):
    model, ids, target = make(name), random_ids(1, 3), random_ids(1, 4)
    alone = model(input_ids=ids, decoder_input_ids=target, output_attentions=True, output_hidden_states=True)
    padded, mask = placed(ids, places, 5)
    explicit = {"input_ids": torch.where(mask > 0, padded, 9), "attention_mask": mask}
    embedded = {"inputs_embeds": model.get_input_embeddings()(explicit["input_ids"]), "attention_mask": mask}
    for source in ({"input_ids": padded}, explicit, embedded):
        out = model(**source, decoder_input_ids=target, output_attentions=True, output_hidden_states=True)
        torch.testing.assert_close(out.logits, alone.logits)
        for weights, expected in zip(out.cross_attentions, alone.cross_attentions, strict=True):
            torch.testing.assert_close(weights[..., places], expected)
        for states, expected in zip(out.encoder_hidden_states, alone.encoder_hidden_states, strict=True):
            torch.testing.assert_close(states[:, places], expected)
        assert out.encoder_last_hidden_state[mask == 0].eq(0).all()


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("places", [[0, 1, 2], [2, 3, 4], [1, 2, 3]])
@torch.no_grad()
def test_padding_at_the_ends_of_the_target_changes_nothing(name, places):
    """At once, and in steps from a cache whose first tokens were padding."""
    model, source, target = make(name), random_ids(1, 3), random_ids(1, 3)
    alone = model(input_ids=source, decoder_input_ids=target).logits
    padded, mask = placed(target, places, 5)
    padded = torch.where(mask > 0, padded, 9)
    whole = model(input_ids=source, decoder_input_ids=padded, decoder_attention_mask=mask)
    torch.testing.assert_close(whole.logits[:, places], alone)
    cache, steps = None, []
    for start, end in ((0, 2), (2, 3), (3, 5)):
        options = {"decoder_attention_mask": mask[:, :end], "cache": cache, "use_cache": True}
        out = model(input_ids=source, decoder_input_ids=padded[:, start:end], **options)
        cache = out.cache
        steps.append(out.logits)
    torch.testing.assert_close(torch.cat(steps, dim=1)[:, places], alone)


@pytest.mark.parametrize("mask", [[1, 0, 1], [0, 1, 0, 1]])
def test_padding_between_target_tokens_is_refused(mask):
    model, mask = make(), torch.tensor([mask, [1] * len(mask)])
    with pytest.raises(ValueError, match="decoder_attention_mask has padding between real tokens"):
        model(input_ids=random_ids(2, 3), decoder_input_ids=random_ids(*mask.shape), decoder_attention_mask=mask)


def test_a_position_hears_of_no_more_than_the_layers_reach():
    """One layer more, one window more; the decoder hears of nothing that comes after."""
    for layers in (1, 2, 3):
        model = make(encoder_layers=layers, decoder_layers=layers, decoder_kernel_size=2)
        embeddings = torch.randn(1, 9, 6, dtype=torch.float64, requires_grad=True)
        model.get_encoder()(inputs_embeds=embeddings).key[0, 4].sum().backward()
        heard = embeddings.grad[0].ne(0).any(dim=-1).nonzero()[:, 0].tolist()
        assert heard == list(range(4 - layers, 4 + layers + 1))
        embeddings.grad = None
        model(input_ids=random_ids(1, 3), decoder_inputs_embeds=embeddings).logits[0, 5].sum().backward()
        heard = embeddings.grad[0].ne(0).any(dim=-1).nonzero()[:, 0].tolist()
        assert heard == list(range(5 - layers, 5 + 1))


def test_gradients_are_exact():
    """Against finite differences, through padding and all layers; in training the encoder's are scaled on purpose."""
    model, source, mask = make("narrow"), torch.randn(2, 3, 4).double(), torch.tensor([[1, 1, 1], [0, 1, 1]])
    target = torch.randn(2, 3, 4).double()
    names = [name for name, parameter in model.named_parameters() if parameter.dim() == 1 and "lm_head" not in name]

    def run(source, target, *parameters):
        arguments = dict(inputs_embeds=source, attention_mask=mask, decoder_inputs_embeds=target, use_cache=False)
        table = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(model, table, kwargs=arguments).logits.sum(dim=-1)

    parameters = [model.get_parameter(name) for name in names]
    assert torch.autograd.gradcheck(run, (source.requires_grad_(), target.requires_grad_(), *parameters))


@pytest.mark.parametrize("layers", [1, 3])
def test_the_encoders_gradient_is_divided_by_the_attentions_in_training(layers):
    """By two for each decoder layer, which reads keys and values; but not what the value says of the token itself."""
    model = make(decoder_layers=layers)
    source, target = random_ids(2, 5), random_ids(2, 4)
    embeds = model.get_input_embeddings()(source).detach().requires_grad_()
    within = [*model.get_encoder().layers.parameters(), *model.get_encoder().output_projection.parameters()]
    found = []
    for training in (False, True):
        loss = model.train(training)(inputs_embeds=embeds, labels=target).loss
        found.append(torch.autograd.grad(loss, [embeds, *within]))
    (exact_embeds, *exact), (scaled_embeds, *scaled) = found
    for expected, gradient in zip(exact, scaled, strict=True):
        assert expected.abs().max() > 0
        torch.testing.assert_close(gradient, expected / (2 * layers))

    # the token itself, with the keys held fixed: what is left of the gradient came through the encoder
    encoder = model.eval().get_encoder()
    key = encoder(source).key.detach()
    value = (key + embeds + encoder.embed_positions(torch.arange(5))) * math.sqrt(0.5)
    outputs = AttnConvS2SEncoderOutput(last_hidden_state=value, key=key)
    (direct,) = torch.autograd.grad(model(encoder_outputs=outputs, labels=target).loss, embeds)
    assert direct.abs().max() > 0
    torch.testing.assert_close(scaled_embeds - direct, (exact_embeds - direct) / (2 * layers))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_first_weights_are_those_of_the_paper(dropout):
    """Section 3.5: N(0, 0.1) for embeddings; sqrt(1 / inputs), and with p kept by dropout before it and a gate after
    it, sqrt(4 p / inputs)."""
    config = AttnConvS2SConfig(vocab_size=900, hidden_size=120, embedding_size=80, encoder_layers=2, decoder_layers=2)
    config.dropout = dropout
    model, keep = AttnConvS2SForConditionalGeneration(config), 1 - dropout
    expected = {
        "embed_tokens.weight": 0.1,
        "embed_positions.weight": 0.1,
        "lm_head.weight": 0.1,
        "input_projection.weight": math.sqrt(keep / 80),
        "convolution.projection.weight": math.sqrt(4 * keep / 360),
        "query_projection.weight": math.sqrt(1 / 120),
        "context_projection.weight": math.sqrt(1 / 80),
        "output_projection.weight": math.sqrt(1 / 120),
    }
    seen = set()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert parameter.eq(0).all(), name
            continue
        (kind,) = [kind for kind in expected if name.endswith(kind)]
        seen.add(kind)
        assert parameter.std().item() == pytest.approx(expected[kind], rel=0.05), name
        assert abs(parameter.mean().item()) < 0.05 * expected[kind], name
    assert seen == set(expected)


@torch.no_grad()
def test_the_variance_is_kept_through_many_layers():
    """Section 3.4: also after ten layers the states are about as large as the embeddings, keys as the values."""
    config = AttnConvS2SConfig(vocab_size=500, hidden_size=128, encoder_layers=10, decoder_layers=10, dropout=0.0)
    model, ids = AttnConvS2SForConditionalGeneration(config).eval(), torch.randint(3, 500, (4, 40))
    out = model(input_ids=ids, decoder_input_ids=ids, output_hidden_states=True)
    embedded = math.sqrt(0.1**2 + 0.1**2)  # token and position
    for states in (*out.encoder_hidden_states, *out.decoder_hidden_states, out.encoder_last_hidden_state):
        assert 0.5 < states.std().item() / embedded < 1.5


@pytest.mark.parametrize("name", FAMILY)
def test_the_cache_holds_the_last_inputs_whatever_the_length(name):
    model, source = make(name), random_ids(2, 4)
    window, config = model.config.decoder_kernel_size - 1, model.config
    cache = None
    for step in range(1, 6):
        cache = model(input_ids=source, decoder_input_ids=random_ids(2, 1), cache=cache, use_cache=True).cache
        assert isinstance(cache, ConvolutionCache) and (cache.get_seq_length(), len(cache)) == (
            step,
            2 + (name == "narrow"),
        )
        assert [inputs.shape for (inputs,) in cache.memory.states] == [(2, window, config.hidden_size)] * len(cache)
    assert repr(cache) == f"ConvolutionCache(layers={config.decoder_layers}, length=5)"


@torch.no_grad()
def test_a_cache_is_moved_with_the_rows():
    model, source, target = make(), random_ids(3, 4), random_ids(3, 4)
    expected = model(input_ids=source, decoder_input_ids=target).logits[:, -1:]
    order = torch.tensor([2, 0, 0])
    changes = {
        "reorder_cache": (order, order),
        "batch_select_indices": (torch.tensor([1]), torch.tensor([1])),
        "batch_repeat_interleave": (2, torch.tensor([0, 0, 1, 1, 2, 2])),
    }
    for change, (argument, rows) in changes.items():
        cache = model(input_ids=source, decoder_input_ids=target[:, :-1], use_cache=True).cache
        getattr(cache, change)(argument)
        moved = model(input_ids=source[rows], decoder_input_ids=target[rows, -1:], cache=cache).logits
        torch.testing.assert_close(moved, expected[rows])
    cache.reset()
    assert (cache.get_seq_length(), cache.is_initialized, cache.batch_size) == (0, False, -1)
    with pytest.raises(ValueError, match="ConvolutionCache cannot be cropped"):
        cache.crop(1)
    assert not cache.is_croppable


@pytest.mark.parametrize("name", FAMILY)
@torch.no_grad()
def test_value_norms_are_the_length_of_what_a_value_adds(name):
    """The context projection of one value alone, for each layer."""
    model, source = make(name), random_ids(2, 5)
    values = model.get_encoder()(source).last_hidden_state
    norms = model.get_decoder().value_norms(values)
    assert [layer.shape for layer in norms] == [(2, 1, 5)] * model.config.decoder_layers
    for index, layer in enumerate(norms):
        projection = model.get_decoder().layers[index].context_projection
        for row in range(2):
            for position in range(5):
                added = projection(values[row, position]) - projection.bias
                torch.testing.assert_close(layer[row, 0, position], added.square().sum().sqrt())


def test_a_translator_shows_every_layer_whatever_stands_in_the_batch():
    texts = ["the old cat sees the dog", "the cat"]
    tokenizer = hf_attn.data.train_tokenizer(texts, 40, kind="word")
    model = make("narrow", vocab_size=len(tokenizer))
    translator = hf_attn.Translator(model, tokenizer)
    for text, together in zip(texts, translator(texts, num_beams=2, max_new_tokens=5), strict=True):
        alone = translator(text, num_beams=2, max_new_tokens=5)
        source_len, target_len = len(alone.source_tokens), len(alone.target_tokens)
        assert together.cross_attentions.shape == (3, 1, target_len, source_len)
        assert together.encoder_attentions is None and together.decoder_attentions is None
        assert together.value_norms.shape == (3, 1, source_len)
        torch.testing.assert_close(together.cross_attentions, alone.cross_attentions)
        torch.testing.assert_close(together.value_norms, alone.value_norms)
        values = model.get_encoder()(torch.tensor([alone.source_ids])).last_hidden_state
        expected = torch.stack(model.get_decoder().value_norms(values), dim=1)[0]
        torch.testing.assert_close(alone.value_norms, expected.float().detach())


def test_hidden_states_are_what_each_layer_read_and_the_last_output():
    model = make("narrow", head=AttnConvS2SModel)
    out = model(input_ids=random_ids(2, 5), decoder_input_ids=random_ids(2, 3), output_hidden_states=True)
    assert [states.shape for states in out.encoder_hidden_states] == [(2, 5, 6), (2, 5, 4)]
    assert [states.shape for states in out.decoder_hidden_states] == [(2, 3, 6)] * 3 + [(2, 3, 4)]
    assert torch.equal(out.decoder_hidden_states[-1], out.last_hidden_state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(encoder_kernel_size=2), "encoder_kernel_size=2 must be odd"),
        (dict(encoder_kernel_size=0), "encoder_kernel_size=0 must be at least 1"),
        (dict(decoder_kernel_size=0), "decoder_kernel_size=0 must be at least 1"),
        (dict(num_attention_heads=4), "num_attention_heads=4 .*1"),
        (dict(max_position_embeddings=0), "max_position_embeddings=0 must be at least 1"),
        (dict(alignment_layer=20), "alignment_layer=20 must be at least 0 and less than 20"),
        (dict(alignment_heads=[1]), r"alignment_heads=\[1\] must be heads of 0 to 0"),
        (dict(share_embeddings=True, decoder_vocab_size=9), "share_embeddings=True needs a joint vocabulary"),
    ],
)
def test_bad_configurations_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        AttnConvS2SConfig(**options)


def test_arguments_that_do_not_fit_are_refused():
    model, source, target = make(), random_ids(2, 4), random_ids(2, 3)
    encoded = BaseModelOutput(last_hidden_state=torch.zeros(2, 4, 6))
    with pytest.raises(
        ValueError, match="encoder_outputs must be what this model's encoder returned .*BaseModelOutput"
    ):
        model(encoder_outputs=encoded, decoder_input_ids=target)
    with pytest.raises(ValueError, match="cache must be a ConvolutionCache, .*DynamicCache"):
        model(input_ids=source, decoder_input_ids=target, cache=DynamicCache())
    short = make(max_position_embeddings=4)
    with pytest.raises(ValueError, match="has 5 tokens, but there are only max_position_embeddings=4"):
        short(input_ids=random_ids(2, 5), decoder_input_ids=target)
    cache = short(input_ids=source, decoder_input_ids=target, use_cache=True).cache
    with pytest.raises(ValueError, match="has 5 tokens, but there are only max_position_embeddings=4"):
        short(input_ids=source, decoder_input_ids=target[:, :2], cache=cache)


def test_it_learns_to_reverse():
    """For which it has to look from end to end: two layers of windows of three do not reach that far."""
    torch.manual_seed(1)
    model = make(scale=1.0, hidden_size=32, dropout=0.0).float().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(120):
        ids = random_ids(32, 6)
        loss = model(input_ids=ids, labels=ids.flip(1)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    ids = random_ids(64, 6)
    out = model.eval()(input_ids=ids, labels=ids.flip(1), output_attentions=True)
    assert out.loss < 0.3
    looked_at = torch.stack(out.cross_attentions).amax(dim=0)[:, 0].argmax(dim=-1)
    assert (looked_at == torch.tensor([5, 4, 3, 2, 1, 0])).float().mean() > 0.8
