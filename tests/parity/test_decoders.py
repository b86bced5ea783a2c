# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""transformers' GPT-2, Llama and Mistral against our decoder: imported weights, equal outputs, equal training, and the
way back."""

import dataclasses
from functools import partial

import pytest
import torch
from parity.twin_decoders import CHOICES, SEEDS, batch_of, options_of, random_decoder
from transformers import AutoConfig, GPT2Model, LlamaConfig, LlamaForQuestionAnswering, PreTrainedConfig

from hf_attn.hub import export_checkpoint, import_checkpoint
from hf_attn.hub.conversion import option_values, place_of
from hf_attn.hub.decoder_twins import DECODER_TWINS
from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
HEADS = ("AttnGptModel", "AttnGptForCausalLM", "AttnGptForSequenceClassification")
CASES = [(kind, our_class, seed) for kind in CHOICES for our_class in HEADS for seed in SEEDS]
CASES = [case for case in CASES if case[1] == "AttnGptForCausalLM" or case[2] < 2]
sides = pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
kinds = pytest.mark.parametrize("kind", CHOICES)


@kinds
def test_the_random_models_have_every_choice(kind):
    drawn = [options_of(kind, seed) for seed in SEEDS]
    for name, choices in CHOICES[kind].items():
        for choice in choices:
            wanted = choice if isinstance(choice, dict) and name != "rope_parameters" else {name: choice}
            assert any(wanted.items() <= options.items() for options in drawn), (name, choice)


@kinds
def test_a_table_has_every_field_of_the_configuration(kind):
    twin = DECODER_TWINS[kind]
    theirs = {field.name for field in dataclasses.fields(AutoConfig.for_model(kind))}
    theirs -= {field.name for field in dataclasses.fields(PreTrainedConfig)}
    said = {*twin.fields.values(), *twin.converted.values(), *twin.required, *twin.ignored}
    assert theirs - said <= {"embd_pdrop", "mlp_bias"}  # each has to be what another field is
    assert {*twin.fields, *twin.fixed, *twin.converted} <= option_values(AttnGptConfig()).keys()


@sides
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("kind", "our_class", "seed"), CASES)
def test_states_logits_weights_loss_and_gradients_are_equal(kind, our_class, seed, implementation, left):
    theirs = random_decoder(kind, seed, our_class, num_labels=3)
    ours, _ = import_checkpoint(theirs)
    assert type(ours).__name__ == our_class
    ours.set_attn_implementation(implementation)
    batch, labels, positions = batch_of(left, seed)
    real = batch["attention_mask"].bool()
    wanted = {"output_attentions": True, "output_hidden_states": True}
    got, expected = ours(**batch, **wanted), theirs(**batch, **positions, **wanted)
    for one, other in zip(got.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(one.transpose(1, 2)[real], other.transpose(1, 2)[real], atol=1e-5, rtol=0)
    for one, other in zip(got.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(one[real], other[real], **CLOSE)

    if our_class == "AttnGptModel":
        losses = [model.last_hidden_state[real].square().mean() for model in (got, expected)]
    else:
        at_tokens = got.logits.dim() == 3
        one, other = (out.logits[real] if at_tokens else out.logits for out in (got, expected))
        assert other.std() > 0.3, "the logits are all alike"
        torch.testing.assert_close(one, other, **CLOSE)
        labels = labels if at_tokens else torch.tensor([2, 0, 1])
        losses = [ours(**batch, labels=labels).loss, theirs(**batch, **positions, labels=labels).loss]
    torch.testing.assert_close(*losses, **CLOSE)
    for loss in losses:
        loss.backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters(remove_duplicate=False)}
    for name, parameter in ours.named_parameters():
        place = place_of(DECODER_TWINS[kind], our_class, name, gradients)
        gradient = place.read(gradients[place.name])
        assert gradient.abs().max() > 0, name
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-4, msg=partial("{}: {}".format, name))


@kinds
def test_generate_is_token_equal(kind):
    for seed in (1, 3, 4):
        theirs = random_decoder(kind, seed)
        ours, _ = import_checkpoint(theirs)
        batch, _, _ = batch_of(True, seed)
        for settings in ({}, {"num_beams": 4}, {"num_beams": 4, "num_return_sequences": 3, "length_penalty": 0.3}):
            expected = theirs.generate(**batch, max_new_tokens=14, **settings)
            assert expected[:, 9:].unique().numel() > 6, "the outputs repeat a few tokens"
            assert torch.equal(ours.generate(**batch, max_new_tokens=14, **settings), expected), (seed, settings)


@pytest.mark.parametrize("seed", range(2))
def test_a_gpt_2_that_attends_to_an_encoder_does_so_in_ours(seed):
    theirs = random_decoder("gpt2", seed, add_cross_attention=True)
    ours, _ = import_checkpoint(theirs)
    batch, labels, _ = batch_of(False, seed)
    source = torch.randn(3, 4, theirs.config.n_embd)
    inputs = batch | {"encoder_hidden_states": source, "labels": labels, "output_attentions": True}
    inputs["encoder_attention_mask"] = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    got, expected, real = ours(**inputs), theirs(**inputs), batch["attention_mask"].bool()
    torch.testing.assert_close(got.logits[real], expected.logits[real], **CLOSE)
    torch.testing.assert_close(got.loss, expected.loss, **CLOSE)
    for one, other in zip(got.cross_attentions, expected.cross_attentions, strict=True):
        torch.testing.assert_close(one.transpose(1, 2)[real], other.transpose(1, 2)[real], atol=1e-5, rtol=0)
    back, _ = export_checkpoint(ours)
    assert all(torch.equal(back.state_dict()[name], tensor) for name, tensor in theirs.state_dict().items())


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_two_hundred_updates_are_equal(kind):
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0} if kind == "gpt2" else {"attention_dropout": 0.0}
    theirs = random_decoder(kind, 3, sharpness=1.0, **still)
    ours, _ = import_checkpoint(theirs)
    ours, theirs = ours.train().double(), theirs.train().double()
    optimizers = [torch.optim.Adam(model.parameters(), lr=3e-3) for model in (ours, theirs)]
    losses = []
    for step in range(200):
        batch, labels, positions = batch_of(False, step % 8)  # of padding on the left Llama's float64 gradients are NaN
        pair = [ours(**batch, labels=labels).loss, theirs(**batch, **positions, labels=labels).loss]
        for optimizer, loss in zip(optimizers, pair, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append([loss.item() for loss in pair])
    losses = torch.tensor(losses)
    torch.testing.assert_close(losses[:, 0], losses[:, 1], atol=1e-4, rtol=0)
    assert losses[-8:, 0].mean() < losses[:8, 0].mean() / 2


@pytest.mark.parametrize(("kind", "our_class", "seed"), CASES)
def test_there_and_back_nothing_changes(kind, our_class, seed, tmp_path):
    theirs = random_decoder(kind, seed, our_class, num_labels=3)
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        ours, _ = import_checkpoint(tmp_path / "theirs")
    # a Mistral without a window is a Llama
    back, _ = export_checkpoint(ours, tmp_path / "back", model_type=kind if kind == "mistral" else None)
    assert type(back) is type(theirs)
    opened = type(theirs).from_pretrained(tmp_path / "back")
    assert opened.state_dict().keys() == theirs.state_dict().keys()
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(opened.state_dict()[name], tensor), name
    for field in dataclasses.fields(theirs.config):
        if field.name not in ("dtype", "transformers_version", "architectures"):
            assert getattr(opened.config, field.name) == getattr(theirs.config, field.name), field.name

    again, _ = import_checkpoint(opened)
    assert option_values(again.config) == option_values(ours.config)
    for name, tensor in ours.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@kinds
def test_neither_side_has_the_memory_of_the_other(kind):
    models = [random_decoder(kind, 1)]
    models += [import_checkpoint(models[0])[0]]
    models += [export_checkpoint(models[1], model_type=kind)[0]]
    places = [{one.untyped_storage().data_ptr() for one in model.parameters()} for model in models]
    assert not places[0] & places[1] and not places[1] & places[2]


@kinds
def test_generation_settings_labels_and_dtype_come_along_both_ways(kind, tmp_path):
    theirs = random_decoder(kind, 0).to(torch.bfloat16)
    theirs.generation_config.update(
        num_beams=3, length_penalty=0.5, max_length=12, suppress_tokens=[7], eos_token_id=[2, 9]
    )
    theirs.save_pretrained(tmp_path / "theirs")
    with pytest.warns(UserWarning, match="has no tokenizer"):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    ours = AttnGptForCausalLM.from_pretrained(tmp_path / "ours")
    back, _ = export_checkpoint(ours)
    assert ours.dtype == back.dtype == torch.bfloat16
    wanted = theirs.generation_config.to_dict()
    assert ours.generation_config.to_dict() == back.generation_config.to_dict() == wanted
    batch, _, _ = batch_of(True)
    assert torch.equal(ours.float().generate(**batch), theirs.float().generate(**batch))

    named = {"id2label": {0: "bad", 1: "good"}, "problem_type": "single_label_classification"}
    ours, _ = import_checkpoint(random_decoder(kind, 0, "AttnGptForSequenceClassification", **named))
    back, _ = export_checkpoint(ours)
    for config in (ours.config, back.config):
        assert config.id2label == named["id2label"] and config.problem_type == named["problem_type"]


def test_what_ours_say_comes_back_from_the_first_that_can_say_it():
    sizes = {"vocab_size": 41, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama = {
        "position_type": "rotary", "norm_type": "rms", "gated_feed_forward": True, "activation_function": "silu",
        "use_bias": False, "dropout": 0.0, "num_key_value_heads": 2, "intermediate_size": 24, "rope_theta": 700.0,
    }  # fmt: skip
    for kind, options in (("gpt2", {}), ("llama", llama), ("mistral", llama | {"sliding_window": 3})):
        ours = AttnGptForCausalLM(AttnGptConfig(**sizes | options)).eval()
        theirs, _ = export_checkpoint(ours)
        assert theirs.config.model_type == kind
        batch, _, positions = batch_of(False)
        real = batch["attention_mask"].bool()
        torch.testing.assert_close(theirs(**batch, **positions).logits[real], ours(**batch).logits[real], **CLOSE)
        again, _ = import_checkpoint(theirs)
        assert option_values(again.config) == option_values(ours.config)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("gpt2", {"scale_attn_weights": False}, r"scale_attn_weights=False \(it must be True\)"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, r"scale_attn_by_inverse_layer_idx=True \(it must be False"),
        ("gpt2", {"reorder_and_upcast_attn": True}, r"reorder_and_upcast_attn=True \(it must be False\)"),
        ("gpt2", {"embd_pdrop": 0.3, "resid_pdrop": 0.1}, r"embd_pdrop=0.3 \(it must be resid_pdrop=0.1\)"),
        ("llama", {"pretraining_tp": 2}, r"pretraining_tp=2 \(it must be 1\)"),
        ("llama", {"attention_bias": True, "mlp_bias": False}, r"mlp_bias=False \(it must be attention_bias=True\)"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
            r"rope_parameters=.*'linear'.* \(it must be without any scaling\)",
        ),
        (
            "mistral",
            {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0}},
            r"rope_parameters=.*'yarn'.* \(it must be without any scaling\)",
        ),
    ],
)
def test_a_setting_without_a_counterpart_is_named(kind, options, message, tmp_path):
    theirs = random_decoder(kind, 0, **options)
    with pytest.raises(ValueError, match=f"this {kind} has settings without a counterpart here: .*{message}"):
        import_checkpoint(theirs, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


LIKE_LLAMA = {"position_type": "rotary", "norm_type": "rms", "gated_feed_forward": True, "dropout": 0.0}


@pytest.mark.parametrize(
    ("kind", "options", "obstacle"),
    [
        ("gpt2", {"position_type": "alibi"}, r"position_type='alibi' \(it must be 'learned'\)"),
        ("gpt2", {"head_dim": 6}, r"head_dim=6 \(it must be None\)"),
        ("gpt2", {"num_key_value_heads": 2}, r"num_key_value_heads=2 \(it must be None\)"),
        ("gpt2", {"norm_first": False}, r"norm_first=False \(it must be True\)"),
        ("gpt2", {"add_cross_attention": True, "cross_attention_hidden_size": 8}, "cross_attention_hidden_size=8"),
        ("llama", LIKE_LLAMA | {"sliding_window": 4, "use_bias": True}, "sliding_window=4"),
        ("llama", LIKE_LLAMA | {"scale_embedding": True}, r"scale_embedding=True \(it must be False\)"),
        ("llama", LIKE_LLAMA | {"dropout": 0.1}, r"dropout=0.1 \(it must be 0.0\)"),
        ("mistral", LIKE_LLAMA | {"use_bias": True, "sliding_window": 4}, r"use_bias=True \(it must be False\)"),
        ("llama", LIKE_LLAMA | {"hidden_size": 18, "head_dim": 4}, "hidden_size=18 .*divisible by num_attention_heads"),
    ],
)
def test_an_option_without_a_twin_is_named(kind, options, obstacle, tmp_path):
    sizes = {"vocab_size": 41, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4}
    ours = AttnGptForCausalLM(AttnGptConfig(**sizes | options))
    with pytest.raises(ValueError, match=f"no model of transformers does what this one does; .*{obstacle}"):
        export_checkpoint(ours, tmp_path / "theirs")
    with pytest.raises(ValueError, match=f"in the way of {kind}: [^;]*{obstacle}[^;]*$"):
        export_checkpoint(ours, tmp_path / "theirs", model_type=kind)
    assert not (tmp_path / "theirs").exists()


def test_a_class_without_a_twin_and_a_decoder_start_are_refused():
    config = LlamaConfig(vocab_size=41, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    with pytest.raises(ValueError, match="source is LlamaForQuestionAnswering, which has no twin here; .*LlamaModel"):
        import_checkpoint(LlamaForQuestionAnswering(config))
    with pytest.raises(ValueError, match="decoder_start_token_id=3: a gpt2 has no such decoder"):
        import_checkpoint(random_decoder("gpt2", 0), decoder_start_token_id=3)


def test_masks_in_old_files_are_left_out_and_a_prefix_may_lack(tmp_path):
    theirs = random_decoder("gpt2", 0, tie_word_embeddings=True)
    body = theirs.transformer
    for block in body.h:
        block.attn.register_buffer("masked_bias", torch.tensor(-1e4))
    theirs.config.architectures = ["GPT2LMHeadModel"]
    body.config = theirs.config
    GPT2Model.save_pretrained(body, tmp_path / "theirs")
    path = tmp_path / "theirs" / "config.json"
    path.write_text(path.read_text().replace("GPT2Model", "GPT2LMHeadModel"))
    with pytest.warns(UserWarning, match="has no tokenizer"):
        ours, _ = import_checkpoint(tmp_path / "theirs")
    batch, _, _ = batch_of(False)
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(ours(**batch).logits[real], theirs(**batch).logits[real], **CLOSE)
