# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""attn-vit reads and attn-gpt writes in transformers' own `VisionEncoderDecoderModel`: training, generation, weights
over the patches, saving and loading, with the package and without."""

import json
import subprocess
import sys

import pytest
import torch
from transformers import (
    AutoModelForImageTextToText,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    VisionEncoderDecoderModel,
)

from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM
from hf_attn.models.modeling_attn_vit import AttnVitConfig, AttnVitModel

END = 2
COLOURS, PLACES = (3, 4, 5), (6, 7)
CAPTIONS = torch.tensor([[colour, place, END] for colour in COLOURS for place in PLACES])


def pictures():
    """Each half of a picture in each colour: the pictures of the captions."""
    pixels = torch.full((6, 3, 6, 6), -1.0)
    for row in range(6):
        left = 3 * (row % 2)
        pixels[row, row // 2, :, left : left + 3] = 1.0
    return pixels


def make_pair(**decoder):
    """A new model."""
    torch.manual_seed(0)
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "initializer_range": 0.15}
    encoder = AttnVitConfig(image_size=6, patch_size=3, hidden_size=16, use_pooler=False, **layers)
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": END}
    options = {"vocab_size": 8, "hidden_size": 24, "max_position_embeddings": 9, "add_cross_attention": True}
    options |= {"dropout": 0.0, "attention_dropout": 0.0} | decoder
    pair = VisionEncoderDecoderModel(
        encoder=AttnVitModel(encoder), decoder=AttnGptForCausalLM(AttnGptConfig(**layers, **options, **ids))
    )
    pair.config.decoder_start_token_id, pair.config.pad_token_id = 1, 0
    for name, value in (ids | {"decoder_start_token_id": 1}).items():
        setattr(pair.generation_config, name, value)
    return pair.eval()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model that has learned the captions, and what its trainer measured."""
    rows = [{"pixel_values": one, "labels": label} for one, label in zip(pictures(), CAPTIONS, strict=True)]
    arguments = Seq2SeqTrainingArguments(
        str(tmp_path_factory.mktemp("trained")), max_steps=100, learning_rate=1e-2, per_device_train_batch_size=6,
        predict_with_generate=True, generation_max_length=5, use_cpu=True, disable_tqdm=True, save_strategy="no",
        logging_steps=1, lr_scheduler_type="constant", report_to="none",
    )  # fmt: skip
    trainer = Seq2SeqTrainer(make_pair(cross_attention_hidden_size=16), arguments, train_dataset=rows)
    trainer.train()
    return trainer.model.eval(), trainer.state.log_history, trainer.predict(rows)


def test_the_trainer_teaches_it_to_say_what_is_in_a_picture(trained):
    _, log, result = trained
    losses = [entry["loss"] for entry in log if "loss" in entry]
    assert losses[0] > 1.5 and losses[-1] < 0.1
    assert result.predictions[:, 1:4].tolist() == CAPTIONS.tolist()
    assert result.metrics["test_loss"] < 0.1


def test_every_parameter_of_both_parts_has_a_gradient():
    pair = make_pair()
    assert pair.enc_to_dec_proj.weight.shape == (24, 16)  # of a decoder that is not told the width of the encoder
    pair(pixel_values=pictures(), labels=CAPTIONS).loss.backward()
    assert [name for name, one in pair.named_parameters() if one.grad is None or not one.grad.any()] == []
    ids = pair.generate(pictures(), max_new_tokens=3)
    assert torch.equal(ids, pair.generate(pictures(), max_new_tokens=3, use_cache=False))


def test_greedy_search_takes_the_best_token_of_each_step(trained):
    model, ids = trained[0], torch.ones(6, 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(3):
            logits = model(pixel_values=pictures(), decoder_input_ids=ids).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(dim=-1)], dim=1)
    for use_cache in (True, False):
        assert torch.equal(model.generate(pictures(), use_cache=use_cache, max_new_tokens=3), ids)
    assert torch.equal(ids[:, 1:], CAPTIONS)


def test_beam_search_finds_the_most_probable_captions(trained):
    model = trained[0]
    pixels = 0.3 * pictures()  # pale: less is certain
    output = model.generate(
        pixels, num_beams=25, num_return_sequences=2, max_new_tokens=3, suppress_tokens=[0, 1, END], length_penalty=0.0,
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    every = torch.cartesian_prod(*[torch.arange(3, 8)] * 3)  # what can be said at all
    for row in range(6):
        with torch.no_grad():
            picture = pixels[row : row + 1].expand(len(every), -1, -1, -1)
            logits = model(pixel_values=picture, labels=every).logits
        probabilities = logits.log_softmax(dim=-1).gather(2, every[..., None]).sum(dim=(1, 2))
        best = probabilities.topk(2)
        assert torch.equal(output.sequences[2 * row : 2 * row + 2, 1:], every[best.indices])
        torch.testing.assert_close(output.sequences_scores[2 * row : 2 * row + 2], best.values, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_weights_over_the_patches_come_from_generation_and_are_those_of_a_forced_pass(trained, beams):
    model = trained[0]
    options = {"num_beams": beams, "max_new_tokens": 3, "return_dict_in_generate": True, "output_attentions": True}
    output = model.generate(pictures(), **options)
    with torch.no_grad():
        forced = model(pixel_values=pictures(), decoder_input_ids=output.sequences[:, :-1], output_attentions=True)
    assert [layer.shape for layer in forced.cross_attentions] == [(6, 2, 3, 5)] * 2  # a class token and four patches
    assert [layer.shape for layer in forced.encoder_attentions] == [(6, 2, 5, 5)] * 2
    assert [layer.shape for layer in forced.decoder_attentions] == [(6, 2, 3, 3)] * 2
    for number, layer in enumerate(forced.cross_attentions):
        torch.testing.assert_close(layer.sum(dim=-1), torch.ones(6, 2, 3))
        for step, layers in enumerate(output.cross_attentions):
            rows = torch.arange(6) if beams == 1 else output.beam_indices[:, step]
            torch.testing.assert_close(layers[number][rows][:, :, 0], layer[:, :, step], atol=1e-5, rtol=1e-4)
    assert forced.cross_attentions[0].std() > 0.05, "the weights are all alike"


@pytest.mark.parametrize("auto_class", [VisionEncoderDecoderModel, AutoModelForImageTextToText])
def test_a_saved_pair_opens_with_the_same_captions(trained, auto_class, tmp_path):
    model = trained[0]
    model.save_pretrained(tmp_path)
    loaded, info = auto_class.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    assert (type(loaded.encoder), type(loaded.decoder)) == (AttnVitModel, AttnGptForCausalLM)
    with torch.no_grad():
        expected, got = (one(pixel_values=pictures(), labels=CAPTIONS) for one in (model, loaded))
    assert torch.equal(got.logits, expected.logits)
    assert torch.equal(loaded.generate(pictures(), num_beams=2), model.generate(pictures(), num_beams=2))


ELSEWHERE = """
import json, sys
sys.modules["hf_attn"] = None
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, VisionEncoderDecoderModel

encoder = AutoModel.from_pretrained("encoder", trust_remote_code=True)
decoder = AutoModelForCausalLM.from_pretrained("decoder", trust_remote_code=True)
assert {type(part).__module__.split(".")[0] for part in (encoder, decoder)} == {"transformers_modules"}
for part in (encoder, decoder):
    AutoConfig.register(part.config.model_type, type(part.config))
AutoModel.register(type(encoder.config), type(encoder))
AutoModelForCausalLM.register(type(decoder.config), type(decoder))

pair = VisionEncoderDecoderModel(encoder=encoder, decoder=decoder).eval()
whole = VisionEncoderDecoderModel.from_pretrained("whole")
pixels, labels = (torch.tensor(values) for values in json.load(open("batch.json")))
answers = []
for model in (pair, whole):
    options = {"decoder_start_token_id": 1, "pad_token_id": 0, "eos_token_id": 2, "max_new_tokens": 3}
    answers.append([model.generate(pixels, num_beams=beams, **options).tolist() for beams in (1, 3)])
logits = whole(pixel_values=pixels, labels=labels).logits
json.dump([answers, logits.tolist()], open("answers.json", "w"))
"""


@pytest.mark.slow
def test_the_parts_and_then_the_whole_open_without_the_package(trained, tmp_path):
    model = trained[0]
    model.encoder.save_pretrained(tmp_path / "encoder")
    model.decoder.save_pretrained(tmp_path / "decoder")
    model.save_pretrained(tmp_path / "whole")
    (tmp_path / "batch.json").write_text(json.dumps([pictures().tolist(), CAPTIONS.tolist()]))
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers, logits = json.loads((tmp_path / "answers.json").read_text())
    expected = [model.generate(pictures(), num_beams=beams, max_new_tokens=3).tolist() for beams in (1, 3)]
    assert answers == [expected, expected]
    with torch.no_grad():
        forced = model(pixel_values=pictures(), labels=CAPTIONS).logits
    torch.testing.assert_close(torch.tensor(logits), forced, atol=1e-5, rtol=1e-5)
