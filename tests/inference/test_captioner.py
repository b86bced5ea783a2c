"""Captions are what the model's own search finds, and their weights and log-probabilities are those of every step."""

import copy
import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTImageProcessorPil,
    ViTModel,
)

from hf_attn.data import train_tokenizer
from hf_attn.inference import Captioner
from hf_attn.inference.captioner import lay_out

SIDE, PATCH = 64, 16
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


CAPTIONS = {
    "red": "a red cross",
    "green": "green",
    "blue": "a small blue circle left of a ring",
    "yellow": "a large yellow star",
    "black": "black and blue",
}


@functools.cache
def pictures():
    return [Image.new("RGB", (SIDE, SIDE), colour) for colour in CAPTIONS]


@functools.cache
def tokenizer():
    return train_tokenizer(CAPTIONS.values(), 100, kind="word")


def image_processor():
    mean = [0.5, 0.5, 0.5]
    return ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}, image_mean=mean, image_std=mean)


def our_parts():
    encoder = AutoConfig.for_model("attn-vit", image_size=SIDE, patch_size=PATCH, use_pooler=False, **SIZES)
    decoder = AutoConfig.for_model(
        "attn-gpt", vocab_size=len(tokenizer()), max_position_embeddings=16, add_cross_attention=True, **SIZES
    )
    return AutoModel.from_config(encoder), AutoModelForCausalLM.from_config(decoder)


def their_parts():
    encoder = ViTConfig(image_size=SIDE, patch_size=PATCH, attn_implementation="eager", **SIZES)
    decoder = GPT2Config(
        vocab_size=len(tokenizer()), n_positions=16, n_embd=32, n_layer=2, n_head=2, add_cross_attention=True,
        bos_token_id=1, eos_token_id=2, attn_implementation="eager",
    )  # fmt: skip
    return ViTModel(encoder, add_pooling_layer=False), GPT2LMHeadModel(decoder)


@functools.cache
def new_model(parts):
    """A tiny model that learned a caption for each colour, so that its captions vary and end."""
    torch.manual_seed(3)
    encoder, decoder = parts()
    model = VisionEncoderDecoderModel(encoder=encoder, decoder=decoder)
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 1, 0, 2
    model.generation_config.max_length = 12
    pixel_values = image_processor()(pictures(), return_tensors="pt")["pixel_values"]
    ids = [torch.tensor(some) for some in tokenizer()(list(CAPTIONS.values()))["input_ids"]]
    labels = pad_sequence(ids, batch_first=True, padding_value=-100)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(25):  # well enough to end, not well enough to be sure
        optimizer.zero_grad()
        model(pixel_values=pixel_values, labels=labels).loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module", params=[our_parts, their_parts], ids=["ours", "theirs"])
def captioner(request):
    return Captioner(new_model(request.param), tokenizer(), image_processor())


def pixels(captioner, images):
    return captioner.image_processor(images, return_tensors="pt")["pixel_values"]


def ids_of(caption) -> list[int]:
    return tokenizer().convert_tokens_to_ids(caption.tokens)


def step_by_step(captioner, picture, ids):
    """Run the model on one piece more at a time, without a cache: the weights of each step, and how probable it was."""
    cross, log_probs = [], []
    for length in range(len(ids)):
        with torch.no_grad():
            outputs = captioner.model(
                pixel_values=pixels(captioner, [picture]), decoder_input_ids=torch.tensor([[1, *ids[:length]]]),
                output_attentions=True, use_cache=False,
            )  # fmt: skip
        cross.append(torch.stack([layer[0, :, -1] for layer in outputs.cross_attentions]))
        log_probs.append(outputs.logits[0, -1].log_softmax(dim=-1)[ids[length]].item())
    return torch.stack(cross, dim=2), log_probs


@pytest.mark.parametrize("beams", [1, 3])
def test_a_caption_is_what_generate_writes_with_the_weights_of_each_step(captioner, beams):
    captions = captioner(pictures(), num_beams=beams)
    wanted = captioner.model.generate(
        pixel_values=pixels(captioner, pictures()), num_beams=beams, return_dict_in_generate=True, output_scores=True
    )
    assert [caption.text for caption in captions] == tokenizer().batch_decode(
        wanted.sequences, skip_special_tokens=True
    )
    assert len({caption.text for caption in captions}) > 2
    for number, (picture, caption) in enumerate(zip(pictures(), captions, strict=True)):
        assert caption.image is picture
        cross, log_probs = step_by_step(captioner, picture, ids_of(caption))
        assert caption.cross_attentions.shape == (2, 2, len(caption.tokens), 1 + (SIDE // PATCH) ** 2)
        torch.testing.assert_close(caption.cross_attentions, cross, rtol=1e-4, atol=1e-5)
        assert caption.token_log_probs == pytest.approx(log_probs, rel=1e-3, abs=1e-4)
        assert caption.score == pytest.approx(sum(log_probs) / len(log_probs), rel=1e-3, abs=1e-4)
        if beams > 1:
            assert caption.score == pytest.approx(wanted.sequences_scores[number].item(), rel=1e-3, abs=1e-4)


def test_weights_of_the_encoder_are_its_own(captioner):
    with torch.no_grad():
        wanted = captioner.model.encoder(pixel_values=pixels(captioner, pictures()), output_attentions=True).attentions
    for number, caption in enumerate(captioner(pictures())):
        expected = torch.stack([layer[number] for layer in wanted])
        torch.testing.assert_close(caption.vision_attentions, expected, rtol=1e-4, atol=1e-5)
        assert caption.grid == (SIDE // PATCH, SIDE // PATCH)


def test_a_picture_is_described_alike_alone_and_among_others(captioner):
    together, apart = captioner(pictures(), batch_size=2), [captioner(picture) for picture in pictures()]
    for one, other in zip(together, apart, strict=True):
        assert (one.text, one.tokens) == (other.text, other.tokens)
        torch.testing.assert_close(one.cross_attentions, other.cross_attentions, rtol=1e-4, atol=1e-5)
    assert captioner([]) == []


def test_scores_are_those_of_the_models_own_loss(captioner):
    texts = [*list(CAPTIONS.values())[1:], "a cross"]
    for picture, text, caption in zip(pictures(), texts, captioner.score(pictures(), texts), strict=True):
        labels = torch.tensor([tokenizer()(text)["input_ids"]])
        with torch.no_grad():
            loss = captioner.model(pixel_values=pixels(captioner, [picture]), labels=labels).loss.item()
        assert caption.text == text and not caption.truncated
        assert caption.score == pytest.approx(-loss, rel=1e-4)
        assert len(caption.tokens) == labels.shape[1] == caption.cross_attentions.shape[2]
        assert captioner.score(picture, text, length_penalty=0.0).score == pytest.approx(-loss * labels.shape[1], 1e-4)


def test_a_caption_that_is_cut_off_says_so(captioner):
    whole, cut = captioner(pictures()), captioner(pictures(), max_new_tokens=2)
    for one, other in zip(whole, cut, strict=True):
        assert other.tokens == one.tokens[:2] and other.truncated == (len(one.tokens) > 2 or one.truncated)
    assert captioner(pictures()[0], max_new_tokens=100).cross_attentions.shape[2] <= 16  # the positions end there
    with pytest.warns(UserWarning, match="longer than 11"):
        assert captioner.score(pictures()[0], "a small red circle " * 5).truncated


def test_pictures_of_any_size_and_kind_are_described(captioner):
    picture = pictures()[0]
    for other in (picture.resize((100, 40)), picture.convert("L"), picture.convert("RGBA"), picture.convert("P")):
        assert math.isfinite(captioner(other).score)
    assert captioner(picture.convert("RGBA")).text == captioner(picture).text


def test_a_saved_folder_describes_alike(tmp_path):
    model = new_model(our_parts)
    for part in (model, tokenizer(), image_processor()):
        part.save_pretrained(tmp_path)
    picture = pictures()[1]
    ours, opened = Captioner(model, tokenizer(), image_processor())(picture), Captioner(tmp_path)(picture)
    assert (ours.text, ours.token_log_probs) == (opened.text, pytest.approx(opened.token_log_probs, abs=1e-5))
    torch.testing.assert_close(ours.cross_attentions, opened.cross_attentions)


def test_patches_are_laid_out_row_by_row_behind_the_special_positions():
    weights = torch.arange(2 * 3 * 4 * 8, dtype=torch.float32).reshape(
        2, 3, 4, 8
    )  # two special positions, 2 x 3 patches
    laid = lay_out(weights, (2, 3), layer=0, heads=2)
    for query in range(4):
        for row in range(2):
            for column in range(3):
                assert laid[query, row, column] == weights[0, 2, query, 2 + 3 * row + column]
    mean = (weights[1, 0] + weights[1, 2]) / 2
    assert torch.equal(lay_out(weights, (2, 3), heads=[0, 2]).flatten(1), mean[:, 2:])
    assert torch.equal(lay_out(weights, (2, 3)).flatten(1), weights[1].mean(dim=0)[:, 2:])
    for heads in (np.int64(2), [np.int64(2)], (2,)):
        assert torch.equal(lay_out(weights, (2, 3), 0, heads), laid)


def test_where_the_model_recommends_a_head_that_is_laid_out(captioner):
    (caption,) = captioner(pictures()[:1])
    one = dataclasses.replace(caption, alignment_layer=0, alignment_heads=[1])
    torch.testing.assert_close(one.over_picture(), caption.over_picture(0, 1))
    torch.testing.assert_close(
        one.over_picture(-1), caption.over_picture(-1, list(range(one.cross_attentions.shape[1])))
    )
    torch.testing.assert_close(one.over_picture(heads=0), caption.over_picture(0, 0))


@pytest.mark.parametrize(
    "options",
    [{"layer": 2}, {"layer": -3}, {"heads": 3}, {"heads": -1}, {"heads": []}, {"heads": "2"}, {"heads": [True]}],
)
def test_layers_and_heads_that_are_not_there(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        lay_out(torch.ones(2, 3, 1, 4), (2, 2), **options)


def test_the_model_goes_to_the_device_that_is_named(captioner):
    moved = Captioner(copy.deepcopy(captioner.model), tokenizer(), image_processor(), device="meta")
    assert {parameter.device.type for parameter in moved.model.parameters()} == {"meta"}


def test_clear_errors(captioner, tmp_path):
    picture = pictures()[0]
    for options in ({"num_beams": 0}, {"max_new_tokens": 0}, {"batch_size": 0}, {"length_penalty": math.nan}):
        with pytest.raises(ValueError, match=next(iter(options))):
            captioner(picture, **options)
    for other in ("picture.png", None, np.zeros((8, 8, 3), dtype=np.uint8), ["picture.png"]):
        with pytest.raises(TypeError, match="image must be a picture of PIL"):
            captioner(other)
    for captions in ("a", ["a", "b"]):
        with pytest.raises(ValueError, match="as many captions"):
            captioner.score([picture], captions)
    with pytest.raises(ValueError, match="as many captions"):
        captioner.score(picture, ["a"])
    for caption in ("a \ud800", 3):
        with pytest.raises(ValueError, match="valid Unicode"):
            captioner.score([picture], [caption])
    with pytest.raises(ValueError, match="tokenizer and image processor"):
        Captioner(captioner.model)
    with pytest.raises(ValueError, match="device is 'gpu'"):
        Captioner(captioner.model, tokenizer(), image_processor(), device="gpu")
    with pytest.raises(ValueError, match="'vision-encoder-decoder'"):
        Captioner(captioner.model.decoder, tokenizer(), image_processor())


def test_an_implementation_without_weights_is_refused():
    encoder, decoder = their_parts()
    model = VisionEncoderDecoderModel(encoder=encoder, decoder=decoder)
    model.set_attn_implementation("sdpa")
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 1, 0, 2
    with pytest.raises(ValueError, match="attn_implementation=.eager"):
        Captioner(model, tokenizer(), image_processor())(pictures()[0])
