# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""transformers' ViT against our encoder of pictures: imported weights, equal outputs, equal training, and the way
back."""

import random
from functools import partial

import pytest
import torch
import transformers

from hf_attn.hub import export_checkpoint, import_checkpoint
from hf_attn.hub.conversion import place_of
from hf_attn.hub.image_twins import VIT

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
CHOICES = {
    "image_size": (8, 12),
    "patch_size": (2, 4),
    "num_channels": (1, 3),
    "hidden_size": (16, 24),
    "num_hidden_layers": (1, 2, 3),
    "num_attention_heads": (1, 2, 8),
    "intermediate_size": (20, 32),
    "layer_norm_eps": (1e-12, 1e-5),
    "hidden_act": ("gelu", "relu", "gelu_new"),
    "pooler_act": ("tanh", "gelu"),
    "qkv_bias": (True, False),
}
CASES = [(our_class, seed) for our_class in VIT.heads for seed in range(6)]


def random_model(our_class, seed, **options):
    """A model of transformers in evaluation mode, of which every tensor is random."""
    model_class = getattr(transformers, VIT.heads[our_class][0])
    drawn = {name: random.Random(f"{name}{seed}").choice(choices) for name, choices in CHOICES.items()}
    config = model_class.config_class(encoder_stride=drawn["patch_size"], num_labels=3, **drawn | options)
    model = model_class._from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.3, generator=generator)
            if "norm" in name and name.endswith("weight"):
                tensor.add_(1.0)
    return model


def inputs_of(model, our_class, seed=0, wide=False):
    """Pictures, square or not, and what is to be said about them."""
    config, generator = model.config, torch.Generator().manual_seed(seed)
    size = (config.patch_size, 4 * config.patch_size) if wide else (config.image_size, config.image_size)
    inputs = {"pixel_values": torch.randn(4, config.num_channels, *size, generator=generator)}
    if wide:
        inputs["interpolate_pos_encoding"] = True
    if our_class == "AttnVitForImageClassification":
        inputs["labels"] = torch.randint(3, (4,), generator=generator)
    elif our_class == "AttnVitForMaskedImageModeling":
        patches = (config.image_size // config.patch_size) ** 2
        inputs["bool_masked_pos"] = torch.rand(4, patches, generator=generator) < 0.5
    return inputs


def loss_of(outputs):
    """The loss, or without one a number that every state, and the pooled vector, has a part in."""
    loss = outputs.get("loss")
    return outputs[0].square().mean() + outputs.pooler_output.square().mean() if loss is None else loss


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("our_class", "seed"), CASES)
def test_states_logits_weights_loss_and_gradients_are_equal(our_class, seed, implementation):
    theirs = random_model(our_class, seed)
    ours, _ = import_checkpoint(theirs)
    assert type(ours).__name__ == our_class
    ours.set_attn_implementation(implementation)
    wanted = {"output_attentions": True, "output_hidden_states": True}
    for wide in (False, True):
        if wide and our_class == "AttnVitForMaskedImageModeling":
            break  # theirs paint square pictures alone
        inputs = inputs_of(theirs, our_class, seed, wide)
        expected, got = theirs(**inputs, **wanted), ours(**inputs, **wanted)
        for field in ("hidden_states", "attentions"):
            for one, other in zip(getattr(got, field), getattr(expected, field), strict=True):
                torch.testing.assert_close(one, other, **CLOSE)
        assert got.attentions[0].max() > 0.2, "the weights are all alike"
        for name in ("last_hidden_state", "pooler_output", "logits", "reconstruction"):
            one, other = got.get(name), expected.get(name)
            assert (one is None) == (other is None), name
            if one is not None:
                torch.testing.assert_close(one, other, **CLOSE)
        plain = ours(**inputs)
        torch.testing.assert_close(loss_of(plain), loss_of(expected), **CLOSE)
        for model, loss in ((ours, loss_of(plain)), (theirs, loss_of(expected))):
            model.zero_grad()
            loss.backward()
        gradients = dict(theirs.named_parameters())
        for name, parameter in ours.named_parameters():
            other = gradients[place_of(VIT, our_class, name, gradients).name].grad
            close = {"atol": 1e-5, "rtol": 1e-4, "msg": partial("{}: {}".format, name)}
            torch.testing.assert_close(parameter.grad, other.view(parameter.shape), **close)


def test_two_hundred_updates_are_equal():
    theirs = random_model("AttnVitForImageClassification", 1, image_size=8, num_hidden_layers=1).double()
    ours, _ = import_checkpoint(theirs)
    batches = [inputs_of(theirs, "AttnVitForImageClassification", seed) for seed in range(4)]
    optimizers = [torch.optim.Adam(model.train().parameters(), lr=1e-3) for model in (theirs, ours)]
    losses = []
    for step in range(200):
        losses.append([])
        for model, optimizer in zip((theirs, ours), optimizers, strict=True):
            loss = model(**batches[step % 4]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    losses = torch.tensor(losses)
    assert losses[-1, 0] < 0.7 * losses[0, 0]  # it learned something
    assert (losses[:, 0] - losses[:, 1]).abs().max() < 1e-4


@pytest.mark.parametrize("our_class", VIT.heads)
def test_a_checkpoint_is_imported_with_its_image_processor_and_goes_back(our_class, tmp_path):
    theirs = random_model(our_class, 2).to(torch.bfloat16)
    theirs.save_pretrained(tmp_path / "theirs")
    size = {"height": theirs.config.image_size, "width": theirs.config.image_size}
    transformers.ViTImageProcessorPil(size=size, image_mean=[0.25] * 3).save_pretrained(tmp_path / "theirs")
    ours, processor = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert type(ours).__name__ == our_class and ours.dtype == torch.bfloat16
    assert type(processor).__name__.startswith("ViTImageProcessor") and list(processor.image_mean) == [0.25] * 3
    pixels = inputs_of(theirs, "")["pixel_values"]
    again = type(ours).from_pretrained(tmp_path / "ours")
    assert torch.equal(again(pixels)[0], ours(pixels)[0])
    assert transformers.AutoImageProcessor.from_pretrained(tmp_path / "ours").to_dict() == processor.to_dict()

    back, processor = export_checkpoint(tmp_path / "ours", tmp_path / "back")
    assert type(back) is type(theirs) and list(processor.image_mean) == [0.25] * 3
    state = theirs.state_dict()
    assert back.state_dict().keys() == state.keys()
    for name, tensor in back.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    for name, value in theirs.config.to_dict().items():
        if name not in ("_name_or_path", "architectures", "encoder_stride", "transformers_version"):
            assert back.config.to_dict()[name] == value, name
    assert list(transformers.AutoImageProcessor.from_pretrained(tmp_path / "back").image_mean) == [0.25] * 3


def test_a_stack_without_a_pooler_stays_without_one(tmp_path):
    theirs = transformers.ViTModel(random_model("AttnVitModel", 0).config, add_pooling_layer=False).eval()
    theirs.save_pretrained(tmp_path)
    for source in (theirs, tmp_path):
        ours, _ = import_checkpoint(source)
        assert ours.pooler is None and not ours.config.use_pooler
        back, _ = export_checkpoint(ours)
        assert back.pooler is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": (8, 12)}, r"image_size=\(8, 12\) \(it must be as high as it is wide\)"),
        ({"image_size": 10, "patch_size": 4}, "image_size=10 must be a multiple of patch_size=4"),
        ({"encoder_stride": 8, "patch_size": 4, "image_size": 8}, "other shape: .*pixels"),
    ],
)
def test_a_setting_without_a_counterpart_is_refused(options, message):
    model_class = transformers.ViTForMaskedImageModeling
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with pytest.raises(ValueError, match=message):
        import_checkpoint(model_class(model_class.config_class(**small | options)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "mean"}, r"vit: pooling='mean' \(it must be 'cls'\)"),
        ({"position_type": "sinusoidal"}, r"position_type='sinusoidal' \(it must be 'learned'\)"),
        ({"norm_type": "rms"}, r"norm_type='rms' \(it must be 'layer'\)"),
    ],
)
def test_an_option_that_theirs_does_not_have_is_refused(options, message):
    ours, _ = import_checkpoint(random_model("AttnVitForImageClassification", 0))
    config = type(ours.config)(**ours.config.to_dict() | options)
    with pytest.raises(ValueError, match=message):
        export_checkpoint(type(ours)(config))
