# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the decoder that stands alone has of its own: shared keys and values, a window, an encoder's states, a class of
the whole text."""

import math

import pytest
import torch
from torch.nn import functional as F
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertModel,
    EncoderDecoderModel,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTModel,
)
from transformers.cache_utils import EncoderDecoderCache

from hf_attn.models.masks import AttentionMask
from hf_attn.models.modeling_attn_gpt import (
    AttnGptConfig,
    AttnGptForCausalLM,
    AttnGptForSequenceClassification,
    AttnGptModel,
)
from hf_attn.models.multihead import MultiHeadAttention

SIZES = {
    "vocab_size": 41, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
    "max_position_embeddings": 32, "dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip
IDS = torch.tensor([[7, 3, 9, 12, 5, 30, 8], [4, 4, 20, 11, 6, 2, 0]])
MASK = IDS.ne(0).long()


def make(model_class=AttnGptForCausalLM, seed=0, sharpness=10.0, **options):
    """A small model whose outputs are distinct."""
    torch.manual_seed(seed)
    model = model_class(AttnGptConfig(**SIZES | options)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(sharpness)
    return model


def test_the_default_is_the_smallest_gpt_2():
    with torch.device("meta"):
        model = AttnGptForCausalLM(AttnGptConfig())
    assert model.num_parameters() == 124_439_808  # the published one: 117M in the paper, whose count leaves some out


def test_what_writes_into_the_states_starts_narrower_by_the_root_of_their_number():
    torch.manual_seed(0)
    model = AttnGptModel(AttnGptConfig(**SIZES | {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 8}))
    for layer in model.layers:
        for matrix in (layer.self_attention.output_projection.weight, layer.feed_forward.outer.weight):
            assert matrix.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.1)
        assert layer.self_attention.query_projection.weight.std().item() == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("shared", [1, 2])
def test_shared_keys_are_those_of_a_model_that_has_each_several_times(shared):
    ours = MultiHeadAttention(16, 4, num_key_value_heads=shared)
    plain = MultiHeadAttention(16, 4)
    state = ours.state_dict()
    for name in ("key_projection", "value_projection"):
        for leaf in ("weight", "bias"):
            heads = state[f"{name}.{leaf}"].unflatten(0, (shared, 4))
            state[f"{name}.{leaf}"] = heads.repeat_interleave(4 // shared, dim=0).flatten(0, 1)
    plain.load_state_dict(state)
    states, mask = torch.randn(2, 5, 16), AttentionMask(causal=True)
    for implementation in ("eager", "sdpa"):
        for wanted in (False, True):
            options = {"mask": mask, "output_attentions": wanted, "implementation": implementation}
            torch.testing.assert_close(ours(states, **options), plain(states, **options))
    torch.testing.assert_close(ours.value_norms(states), plain.value_norms(states))
    with pytest.raises(ValueError, match="num_heads=4 must be a multiple of num_key_value_heads=3"):
        MultiHeadAttention(16, 4, num_key_value_heads=3)


def test_a_cache_holds_the_shared_heads_alone():
    cache = make(num_key_value_heads=2)(IDS, use_cache=True).cache
    assert [layer.keys.shape for layer in cache.layers] == [(2, 2, 7, 4)] * 2


@pytest.mark.parametrize("options", [{}, {"num_key_value_heads": 2}, {"head_dim": 6}], ids=str)
def test_the_configuration_says_what_a_cache_holds(options):
    model = make(**options)
    keys = model(IDS, use_cache=True).cache.layers[0].keys
    assert keys.shape == (2, model.config.num_key_value_heads, 7, model.config.head_dim)


@pytest.mark.parametrize("window", [1, 3])
def test_a_window_is_as_far_as_the_layers_are_deep(window):
    model, changed = make(sliding_window=window), IDS.clone()
    changed[:, 0] = 33
    reach = 2 * (window - 1)  # of two layers
    with torch.no_grad():
        first, second = model(IDS).logits, model(changed).logits
    torch.testing.assert_close(first[:, reach + 1 :], second[:, reach + 1 :])
    assert not torch.allclose(first[:, reach], second[:, reach], atol=1e-4)


@pytest.mark.parametrize(
    "options", [{}, {"sliding_window": 3}, {"sliding_window": 2, "position_type": "alibi"}], ids=str
)
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_every_implementation_generates_the_same(options, left):
    model = make(tie_word_embeddings=False, eos_token_id=None, **options)
    batch = {"input_ids": IDS, "attention_mask": MASK}
    batch = {name: value.flip(1) if left else value for name, value in batch.items()}
    found = {}
    for implementation in ("eager", "sdpa", "flex_attention"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            logits = model(**batch).logits[batch["attention_mask"].bool()]
        found[implementation] = logits, model.generate(**batch, max_new_tokens=6)
    for logits, ids in found.values():
        torch.testing.assert_close(logits, found["eager"][0], atol=1e-4, rtol=1e-4)
        assert torch.equal(ids, found["eager"][1])
    assert len(set(found["eager"][1][:, 7:].flatten().tolist())) > 3
    assert AttnGptModel(AttnGptConfig(**SIZES, attn_implementation="flex_attention")).layers is not None


# With an encoder


def sharpen(model, factor=8.0):
    """Make the outputs of a new model distinct."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)
    return model.eval()


def with_bert(**options):
    """transformers' BERT, of another width, before our decoder."""
    torch.manual_seed(0)
    bert = BertModel(
        BertConfig(vocab_size=37, hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    )
    decoder = AttnGptForCausalLM(
        AttnGptConfig(**SIZES, add_cross_attention=True, tie_word_embeddings=False, eos_token_id=None, **options)
    )
    model = EncoderDecoderModel(encoder=bert, decoder=decoder)
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id = 1, 0
    return sharpen(model)


SOURCE = {
    "input_ids": torch.tensor([[5, 9, 30, 2], [8, 2, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
}


@pytest.mark.parametrize("width", [None, 12])
def test_it_is_a_decoder_for_transformers_encoders(width, tmp_path):
    model = with_bert(cross_attention_hidden_size=width)
    assert hasattr(model, "enc_to_dec_proj") == (width is None)
    labels = torch.tensor([[7, 8, 9, 2], [11, 2, -100, -100]])
    output = model(**SOURCE, labels=labels, output_attentions=True)
    states = model.encoder(**SOURCE).last_hidden_state
    states = model.enc_to_dec_proj(states) if width is None else states
    read = torch.tensor([[1, 7, 8, 9], [1, 11, 2, 0]])
    own = model.decoder(
        read, read.ne(0), encoder_hidden_states=states, encoder_attention_mask=SOURCE["attention_mask"],
        output_attentions=True,
    )  # fmt: skip
    torch.testing.assert_close(output.loss, F.cross_entropy(own.logits.flatten(0, 1), labels.flatten()))
    assert [layer.shape for layer in output.cross_attentions] == [(2, 4, 4, 4)] * 2
    for layer, expected in zip(output.cross_attentions, own.cross_attentions, strict=True):
        torch.testing.assert_close(layer, expected)
        assert (layer[1, :, :, 2:] == 0).all() and (layer[0] > 0).all()
    output.loss.backward()
    assert all(parameter.grad is not None for parameter in model.decoder.parameters())
    assert model.encoder.embeddings.word_embeddings.weight.grad.abs().max() > 0

    model.save_pretrained(tmp_path)
    loaded = EncoderDecoderModel.from_pretrained(tmp_path).eval()
    assert type(loaded.decoder) is AttnGptForCausalLM
    torch.testing.assert_close(loaded(**SOURCE, labels=labels).logits, output.logits)


@pytest.mark.parametrize("beams", [1, 3])
def test_an_encoder_decoder_generates_what_the_plain_loop_does(beams):
    model = with_bert()
    options = {"max_new_tokens": 5, "num_beams": beams, "return_dict_in_generate": True, "output_attentions": True}
    output = model.generate(**SOURCE, **options)
    assert torch.equal(output.sequences, model.generate(**SOURCE, **options, use_cache=False).sequences)
    assert isinstance(output.cache, EncoderDecoderCache)
    assert [layer.shape[-1] for layer in output.cross_attentions[-1]] == [4, 4]
    if beams > 1:
        return
    for row, sequence in enumerate(output.sequences.tolist()):
        source = {name: value[row : row + 1] for name, value in SOURCE.items()}
        source = {name: value[:, : int(SOURCE["attention_mask"][row].sum())] for name, value in source.items()}
        ids = [1]
        for _ in range(5):
            with torch.no_grad():
                logits = model(**source, decoder_input_ids=torch.tensor([ids]), use_cache=False).logits
            ids.append(logits[0, -1].argmax().item())
        assert sequence == ids
    assert len(set(output.sequences.flatten().tolist())) > 4


def test_it_describes_images():
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=8, patch_size=4
    )
    decoder = AttnGptForCausalLM(AttnGptConfig(**SIZES, add_cross_attention=True, eos_token_id=None))
    model = sharpen(VisionEncoderDecoderModel(encoder=ViTModel(config), decoder=decoder))
    model.config.decoder_start_token_id, model.config.pad_token_id = 1, 0
    pixels = torch.randn(2, 3, 8, 8)
    output = model(pixel_values=pixels, labels=IDS, output_attentions=True)
    assert output.loss.isfinite() and output.cross_attentions[0].shape == (2, 4, 7, 5)
    ids = model.generate(pixels, decoder_start_token_id=1, max_new_tokens=4)
    assert torch.equal(ids, model.generate(pixels, decoder_start_token_id=1, max_new_tokens=4, use_cache=False))


def test_without_states_of_an_encoder_cross_attention_is_left_out():
    decoder = make(add_cross_attention=True)
    alone = make()
    alone.load_state_dict({name: value for name, value in decoder.state_dict().items() if "cross" not in name})
    output = decoder(IDS, output_attentions=True)
    torch.testing.assert_close(output.logits, alone(IDS).logits)
    assert output.cross_attentions is None
    for states, message in (
        (torch.zeros(2, 3, 5), r"\(2, source_len, 16\)"),
        (torch.zeros(1, 3, 16), "for each target"),
    ):
        with pytest.raises(ValueError, match=f"encoder_hidden_states must be .*{message}"):
            decoder(IDS, encoder_hidden_states=states)


# A class of the text


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize(
    "labels, problem",
    [
        (torch.tensor([2, 0]), "single_label_classification"),
        (torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), "multi_label_classification"),
        (torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, 1.0]]), "regression"),
    ],
    ids=["single", "multi", "regression"],
)
def test_a_class_is_read_off_the_last_real_token(labels, problem, left):
    model = make(AttnGptForSequenceClassification, num_labels=3, problem_type=problem)
    batch = {"input_ids": IDS, "attention_mask": MASK}
    batch = {name: value.roll(1, dims=1) if left else value for name, value in batch.items()}
    batch["input_ids"][0], batch["attention_mask"][0] = IDS[0], MASK[0]
    output = model(**batch, labels=labels)
    for row, length in enumerate((7, 6)):
        states = model.model(IDS[row : row + 1, :length]).last_hidden_state[:, -1]
        torch.testing.assert_close(output.logits[row : row + 1], model.classifier(states), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(model(batch["input_ids"]).logits, output.logits)  # the padding is known by its id
    if problem == "single_label_classification":
        expected = F.cross_entropy(output.logits, labels)
    elif problem == "regression":
        expected = F.mse_loss(output.logits, labels)
    else:
        expected = F.binary_cross_entropy_with_logits(output.logits, labels)
    torch.testing.assert_close(output.loss, expected)


def test_the_auto_classes_know_the_family():
    config = AttnGptConfig(**SIZES, num_labels=5)
    assert type(AutoModelForCausalLM.from_config(config)) is AttnGptForCausalLM
    classifier = AutoModelForSequenceClassification.from_config(config)
    assert type(classifier) is AttnGptForSequenceClassification and classifier.classifier.out_features == 5


@pytest.mark.gpu
@pytest.mark.parametrize("window", [None, 3, 100])
def test_flex_attention_has_the_gradients_of_the_equation_on_a_gpu(window):
    gradients = []
    ids = torch.randint(3, 41, (2, 300), generator=torch.Generator().manual_seed(0))
    for implementation in ("eager", "flex_attention"):
        model = make(sliding_window=window, hidden_size=64, max_position_embeddings=300).cuda()
        model.set_attn_implementation(implementation)
        model(ids.cuda(), labels=ids.cuda()).loss.backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-3, rtol=1e-2, msg=name)
