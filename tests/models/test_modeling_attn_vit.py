# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The encoder of pictures: patches and their order, positions at any size, hidden patches, refusals, pipelines."""

import functools
import json
import math

import pytest
import torch
import transformers
from contract import Case, cases
from PIL import Image
from reference import feed_forward, layer_norm, linear, multi_head, rms_norm, sublayer
from torch.nn import functional as F
from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

from hf_attn.models.configuration_attn_vit import POSITION_TYPES, AttnVitConfig
from hf_attn.models.modeling_attn_vit import (
    AttnVitForImageClassification,
    AttnVitModel,
    from_patches,
    resize_grid,
    sinusoidal_grid,
    to_patches,
)

VIT = [param for param in cases() if param.values[0].family == "vit"]
STACKS = [param for param in VIT if param.values[0].auto_name == "AutoModel"]
STACK = Case("vit", "AutoModel", "dosovitskiy")
CLASSIFIER = Case("vit", "AutoModelForImageClassification", "dosovitskiy")
MASKED = Case("vit", "AutoModelForMaskedImageModeling", "dosovitskiy")


@functools.cache
def model_of(case, **options):
    return case.model(sharpness=2.0, **options)


def pictures(rows=2, height=6, width=6, seed=0):
    return torch.randn(rows, 2, height, width, generator=torch.Generator().manual_seed(seed))


def close(one, other, **tolerance):
    torch.testing.assert_close(one, other, **{"atol": 1e-5, "rtol": 1e-4, **tolerance})


def run(model, *arguments, **options):
    with torch.no_grad():
        return model(*arguments, output_attentions=True, **options)


def test_the_default_is_vit_base():
    with torch.device("meta"):
        model = AttnVitForImageClassification(AttnVitConfig(num_labels=1000))
    assert model.num_parameters() == 86_567_656  # 86M in table 1


# Against explicit loops


def cut(picture, size):
    """The patches of one picture, (channels, height, width), from the upper left to the lower right."""
    channels, height, width = picture.shape
    found = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            numbers = [picture[c, top + i, left + j] for c in range(channels) for i in range(size) for j in range(size)]
            found.append(torch.stack(numbers))
    return found


def wave(row, column, width):
    """One position: a quarter of sines and one of cosines for the row, the same for the column."""
    quarter = width // 4
    angles = [[number / 10000 ** (k / quarter) for k in range(quarter)] for number in (row, column)]
    numbers = [function(angle) for half in angles for function in (math.sin, math.cos) for angle in half]
    return torch.tensor(numbers, dtype=torch.float64)


def explicit(model, picture):
    """Equations 1 to 4 of the paper for one picture: the states, and the weights of each layer."""
    config, state = model.config, {name: tensor.detach() for name, tensor in model.state_dict().items()}

    def matrix(name):
        return state[f"{name}.weight"], state.get(f"{name}.bias")

    def norm(name):
        if config.norm_type == "rms":
            return lambda vector: rms_norm(vector, state[f"{name}.weight"], 1e-6)
        return lambda vector: layer_norm(vector, *matrix(name), config.layer_norm_eps)

    states = [linear(patch, *matrix("embeddings.patch_embeddings")) for patch in cut(picture, config.patch_size)]
    if config.position_type == "sinusoidal":
        places = [(row, column) for row in range(config.grid_size) for column in range(config.grid_size)]
        states = [one + wave(*place, config.hidden_size) for one, place in zip(states, places, strict=True)]
    if config.pooling == "cls":
        states = [state["embeddings.class_token"], *states]
    if config.position_type == "learned":
        states = [one + position for one, position in zip(states, state["embeddings.positions"], strict=True)]
    states, weights = torch.stack(states), []
    for number in range(config.num_hidden_layers):
        name = f"layers.{number}"
        projections = {
            part: matrix(f"{name}.self_attention.{part}_projection") for part in ("query", "key", "value", "output")
        }

        def attention(rows, projections=projections):
            outputs, layer = multi_head(rows, rows, projections, config.num_attention_heads)
            weights.append(layer)
            return outputs

        def network(rows, name=name):
            parts = matrix(f"{name}.feed_forward.inner"), matrix(f"{name}.feed_forward.outer")
            return torch.stack([feed_forward(row, *parts, activation=F.gelu) for row in rows])

        states = sublayer(states, attention, norm(f"{name}.self_attention_norm"), norm_first=True)
        states = sublayer(states, network, norm(f"{name}.feed_forward_norm"), norm_first=True)
    return torch.stack([norm("final_norm")(row) for row in states]), weights


@pytest.mark.parametrize("case", STACKS)
def test_a_picture_is_read_as_the_equations_say(case):
    model, pixels = case.model(sharpness=2.0).double(), pictures().double()
    outputs = run(model, pixels)
    for row, picture in enumerate(pixels):
        states, weights = explicit(model, picture)
        close(outputs.last_hidden_state[row], states, atol=1e-6)  # waves are computed in float32
        for layer, expected in zip(outputs.attentions, weights, strict=True):
            close(layer[row], expected, atol=1e-6)
    first = outputs.last_hidden_state[:, 0] if case.config().pooling == "cls" else outputs.last_hidden_state.mean(1)
    if model.pooler is not None:
        close(outputs.pooler_output, torch.tanh(F.linear(first, *model.pooler.dense.parameters())))
    head = Case("vit", "AutoModelForImageClassification", case.variant).model().double()
    head.model.load_state_dict(model.state_dict(), strict=False)
    close(run(head, pixels).logits, F.linear(first, *head.classifier.parameters()))


def test_patches_are_cut_row_by_row_and_put_together_again():
    pixels = pictures(2, height=6, width=8)
    patches = to_patches(pixels, 2)
    assert patches.shape == (2, 12, 8)
    for row, picture in enumerate(pixels):
        assert torch.equal(patches[row], torch.stack(cut(picture, 2)))
    assert torch.equal(patches, F.unfold(pixels, kernel_size=2, stride=2).transpose(1, 2))
    assert torch.equal(from_patches(patches, 2, rows=3), pixels)
    # a matrix times patches is a convolution that does not overlap
    matrix = torch.randn(5, 8)
    convolved = F.conv2d(pixels, matrix.view(5, 2, 2, 2), stride=2).flatten(2).transpose(1, 2)
    close(F.linear(patches, matrix), convolved)


@pytest.mark.parametrize(("dim", "rows", "columns"), [(8, 3, 3), (16, 5, 2), (20, 2, 7)])
def test_waves_are_those_of_masked_autoencoders_in_transformers(dim, rows, columns):
    grid = sinusoidal_grid(rows, columns, dim, torch.device("cpu"))
    close(grid, build_2d_sinusoidal_position_embedding(rows, columns, dim))


# Positions


@pytest.mark.parametrize("kind", POSITION_TYPES)
@pytest.mark.parametrize("case", STACKS)
def test_without_positions_patches_are_a_set(case, kind):
    model, pixels = model_of(case, position_type=kind), pictures()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(3))
    moved = from_patches(to_patches(pixels, 2)[:, order], 2, rows=3)
    before, after = (run(model, one).last_hidden_state for one in (pixels, moved))
    first = case.config().class_tokens
    if kind == "none":
        close(before[:, first:][:, order], after[:, first:])
        close(before[:, :first], after[:, :first])
    else:
        assert (before[:, first:][:, order] - after[:, first:]).abs().max() > 1e-2


@pytest.mark.parametrize("case", VIT)
def test_pictures_of_other_sizes_have_interpolated_positions(case):
    model, first = model_of(case), case.config().class_tokens
    for height, width in ((6, 6), (8, 8), (4, 10), (2, 2), (18, 2)):
        pixels = pictures(2, height, width)
        outputs = run(model, pixels, interpolate_pos_encoding=True)
        length = first + height * width // 4
        assert [layer.shape for layer in outputs.attentions] == [(2, 2, length, length)] * 2
        if (height, width) == (6, 6):
            assert torch.equal(outputs[0], run(model, pixels)[0])
            continue
        for answer in (False, None):
            with pytest.raises(ValueError, match=f"pictures of {height} x {width}; the model has image_size=6"):
                model(pixels, interpolate_pos_encoding=answer)


def test_a_stretched_grid_goes_through_the_vectors_and_keeps_what_is_alike():
    """Of a grid stretched to three times its size the middle of each nine is the vector itself."""
    table = torch.randn(16, 3)
    assert torch.equal(resize_grid(table, 4, 4), table)
    centres = resize_grid(table, 12, 12).view(12, 12, 3)[1::3, 1::3]
    close(centres.flatten(0, 1), table)
    by_row = resize_grid(torch.arange(4.0).repeat_interleave(4)[:, None], 3, 7).view(3, 7)
    close(by_row, by_row[:, :1].expand(3, 7))
    assert (by_row.diff(dim=0) > 0.5).all()


# Hidden patches


@pytest.mark.parametrize("variant", ["dosovitskiy", "plain"])
def test_the_loss_is_the_distance_of_the_pixels_of_hidden_patches(variant):
    model = model_of(Case("vit", "AutoModelForMaskedImageModeling", variant))
    for height, width in ((6, 6), (4, 10)):
        pixels = pictures(3, height, width)
        patches = height * width // 4
        masked = torch.rand(3, patches, generator=torch.Generator().manual_seed(1)) < 0.4
        outputs = run(model, pixels, masked, interpolate_pos_encoding=True)
        assert outputs.reconstruction.shape == pixels.shape
        distances = []
        for row in range(3):
            pairs = zip(cut(pixels[row], 2), cut(outputs.reconstruction[row], 2), strict=True)
            for hidden, (true, predicted) in zip(masked[row], pairs, strict=True):
                if hidden:
                    distances.append(float((true - predicted).abs().sum() / 8))
        assert outputs.loss.item() == pytest.approx(sum(distances) / len(distances), rel=1e-5)
        for items in (50, torch.tensor(50)):
            again = run(model, pixels, masked, interpolate_pos_encoding=True, num_items_in_batch=items)
            assert again.loss.item() == pytest.approx(sum(distances) / 50, rel=1e-5)
        for kind in (torch.int64, torch.uint8):
            same = run(model, pixels, masked.to(kind), interpolate_pos_encoding=True)
            assert torch.equal(same.loss, outputs.loss) and torch.equal(same.reconstruction, outputs.reconstruction)

        # what is hidden is not seen, and what is not hidden is
        noise = from_patches(masked[..., None] * torch.randn(3, patches, 8), 2, rows=height // 2)
        other = run(model, pixels + noise, masked, interpolate_pos_encoding=True)
        assert torch.equal(other.reconstruction, outputs.reconstruction) and other.loss > outputs.loss
        seen = from_patches(~masked[..., None] * torch.randn(3, patches, 8), 2, rows=height // 2)
        other = run(model, pixels + seen, masked, interpolate_pos_encoding=True)
        assert (other.reconstruction - outputs.reconstruction).abs().max() > 1e-2


def test_where_nothing_is_hidden_the_loss_is_0_and_where_nothing_is_said_there_is_none():
    model, pixels = MASKED.model(), pictures()
    assert model(pixels).loss is None
    nothing = model(pixels, torch.zeros(2, 9, dtype=torch.bool))
    nothing.loss.backward()
    assert nothing.loss == 0 and all(not one.grad.any() for one in model.parameters() if one.grad is not None)
    close(nothing.reconstruction, model(pixels).reconstruction)
    model.zero_grad()
    model(pixels, torch.arange(9).expand(2, 9) % 2).loss.backward()
    assert [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()] == []


def test_a_stack_hides_patches_if_it_is_opened_with_the_token_for_it(tmp_path):
    head, masked = model_of(MASKED), torch.arange(9).expand(2, 9) < 4
    head.save_pretrained(tmp_path, include_code=False)
    stack = AttnVitModel.from_pretrained(tmp_path, add_pooler=False, use_mask_token=True)
    expected = F.linear(run(stack, pictures(), masked)[0][:, 1:], head.pixels.weight, head.pixels.bias)
    close(from_patches(expected, 2, rows=3), run(head, pictures(), masked).reconstruction)


# Refusals

BAD = {
    "no picture": (lambda: {"pixel_values": None}, TypeError, "pixel_values must be a tensor .*NoneType"),
    "a picture as a list": (lambda: {"pixel_values": pictures().tolist()}, TypeError, "must be a tensor .*got list"),
    "one picture without its batch": (
        lambda: {"pixel_values": pictures()[0]},
        ValueError,
        r"pixel_values must be \(batch, channels, height, width\), got shape \(2, 6, 6\)",
    ),
    "bytes": (
        lambda: {"pixel_values": pictures().byte()},
        TypeError,
        "pixel_values must be floating-point numbers, as image processors make, got torch.uint8",
    ),
    "channels last": (
        lambda: {"pixel_values": pictures().permute(0, 2, 3, 1)},
        ValueError,
        "pixel_values has 6 channels; the model has num_channels=2",
    ),
    "one channel": (
        lambda: {"pixel_values": pictures()[:, :1]},
        ValueError,
        "pixel_values has 1 channels; the model has num_channels=2",
    ),
    "a larger picture": (
        lambda: {"pixel_values": pictures(2, 8, 8)},
        ValueError,
        "pictures of 8 x 8; the model has image_size=6. Resize them, or set interpolate_pos_encoding=True",
    ),
    "a picture on its side": (
        lambda: {"pixel_values": pictures(2, 4, 9)},
        ValueError,
        "pictures of 4 x 9; the model has image_size=6",
    ),
    "half a patch": (
        lambda: {"pixel_values": pictures(2, 6, 7), "interpolate_pos_encoding": True},
        ValueError,
        "pictures of 6 x 7; both must be multiples of patch_size=2",
    ),
    "no pixel": (
        lambda: {"pixel_values": pictures(2, 0, 6), "interpolate_pos_encoding": True},
        ValueError,
        "pictures of 0 x 6; both must be multiples of patch_size=2, at least 1",
    ),
}
BAD_MASKS = {
    "a mask as a list": (lambda: [[True] * 9] * 2, TypeError, "bool_masked_pos must be a tensor .*list"),
    "a mask of numbers": (
        lambda: torch.ones(2, 9),
        TypeError,
        "bool_masked_pos must be boolean, or 0 and 1, got torch.float32",
    ),
    "a mask with another number": (
        lambda: torch.full((2, 9), 2),
        ValueError,
        "bool_masked_pos has other numbers than 0 and 1",
    ),
    "a mask of the class token too": (
        lambda: torch.ones(2, 10).bool(),
        ValueError,
        r"bool_masked_pos must have the shape \(2, 9\) of the patches, got \(2, 10\)",
    ),
    "a mask of pixels": (
        lambda: torch.ones(2, 6, 6).bool(),
        ValueError,
        r"bool_masked_pos must be \(batch, patches\), got shape \(2, 6, 6\)",
    ),
    "a mask of another batch": (
        lambda: torch.ones(1, 9).bool(),
        ValueError,
        r"bool_masked_pos must have the shape \(2, 9\) of the patches, got \(1, 9\)",
    ),
}


@pytest.mark.parametrize("case", [param for param in VIT if param.values[0].variant == "dosovitskiy"])
@pytest.mark.parametrize("rule", BAD)
def test_what_is_no_picture_is_refused_by_name(case, rule):
    arguments, error, message = BAD[rule]
    with pytest.raises(error, match=message):
        model_of(case)(**arguments())


@pytest.mark.parametrize("rule", BAD_MASKS)
def test_what_is_no_mask_of_patches_is_refused_by_name(rule):
    masked, error, message = BAD_MASKS[rule]
    for model in (model_of(MASKED), model_of(MASKED).model):
        with pytest.raises(error, match=message):
            model(pictures(), bool_masked_pos=masked())


def test_a_stack_without_a_mask_token_hides_nothing():
    masked = torch.ones(2, 9, dtype=torch.bool)
    with pytest.raises(ValueError, match="bool_masked_pos hides patches, but the model has no mask token: open it wi"):
        model_of(STACK)(pictures(), bool_masked_pos=masked)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (torch.tensor([0, 7]), ValueError, "labels has 7; it must be at least 0 and less than 2, or -100"),
        (torch.tensor([0]), ValueError, r"labels must have the shape \(2,\), got \(1,\)"),
        ([0, 1], TypeError, "labels must be a tensor, got list"),
        (torch.tensor([0, 1]).int(), TypeError, "labels must be torch.int64, got torch.int32"),
    ],
)
def test_what_is_no_class_is_refused(labels, error, message):
    with pytest.raises(error, match=message):
        model_of(CLASSIFIER)(pictures(), labels=labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": 7}, "image_size=7 must be a multiple of patch_size=2"),
        ({"hidden_size": 15}, "hidden_size=15 must be a multiple of num_attention_heads=2"),
        ({"hidden_size": 14, "position_type": "sinusoidal"}, "hidden_size=14 must be a multiple of .*=4"),
        ({"position_type": "rotary"}, "position_type='rotary' is not allowed; choose one of 'none', 'sinusoidal', 'le"),
        ({"pooling": "max"}, "pooling='max' is not allowed; choose one of 'cls', 'mean'"),
        ({"patch_size": 0}, "patch_size=0 must be at least 1"),
        ({"num_channels": 0}, "num_channels=0 must be at least 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        STACK.config(**options)


# Precision, compiled code


@pytest.mark.parametrize("case", VIT)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_compute_nearly_the_same_of_the_same_pixels(case, dtype):
    expected, got = run(case.model(), pictures())[0], run(case.model().to(dtype), pictures())[0]
    assert got.dtype == dtype
    scale = expected.abs().max().item()
    close(got.float(), expected, rtol=0, atol=(0.08 if dtype == torch.bfloat16 else 1e-4) * scale)


@pytest.mark.parametrize("variant", ["dosovitskiy", "plain"])
def test_gradcheck_of_the_whole(variant):
    case = Case("vit", "AutoModelForImageClassification", variant)
    model = case.model(hidden_size=4, intermediate_size=6, image_size=4, layer_norm_eps=1e-5, num_channels=1).double()
    pixels = torch.randn(2, 1, 4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: model(x, interpolate_pos_encoding=True).logits, (pixels,))


def test_one_graph_holds_the_whole_at_any_size():
    model = MASKED.model()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for options in ({"bool_masked_pos": torch.arange(9).expand(2, 9) < 4}, {"interpolate_pos_encoding": True}):
        size = (4, 10) if "interpolate_pos_encoding" in options else (6, 6)
        with torch.no_grad():
            for one, other in zip(
                compiled(pictures(2, *size), **options).to_tuple(), model(pictures(2, *size), **options).to_tuple()
            ):
                close(one, other)


# Image processors and pipelines


@pytest.fixture
def folder(tmp_path):
    """A classifier of red and blue, beside the image processor that makes its inputs."""
    labels = {"id2label": {0: "red", 1: "blue"}, "label2id": {"red": 0, "blue": 1}}
    model = CLASSIFIER.model_class(CLASSIFIER.config(num_channels=3, **labels)).eval()
    torch.manual_seed(0)
    pixels = torch.full((2, 3, 6, 6), -1.0)
    pixels[0, 0] = pixels[1, 2] = 1.0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        model(pixels, labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
    model.save_pretrained(tmp_path)
    transformers.ViTImageProcessorPil(size={"height": 6, "width": 6}).save_pretrained(tmp_path)
    return tmp_path


def test_the_pipeline_classifies_pictures_of_any_size(folder):
    classify = transformers.pipeline("image-classification", str(folder))
    assert type(classify.model) is AttnVitForImageClassification
    found = classify([Image.new("RGB", (31, 17), colour) for colour in ("red", "blue")])
    assert [answer[0]["label"] for answer in found] == ["red", "blue"]
    assert all(answer[0]["score"] > 0.8 for answer in found)
    extract = transformers.pipeline("image-feature-extraction", str(folder), return_tensors=True)
    assert extract(Image.new("RGB", (20, 20), "red")).shape == (1, 10, 16)


def test_the_image_processor_is_found_by_the_model_alone(folder):
    named = transformers.AutoImageProcessor.from_pretrained(folder)
    file = folder / "preprocessor_config.json"
    settings = json.loads(file.read_text())
    assert settings.pop("image_processor_type").startswith("ViTImageProcessor")
    file.write_text(json.dumps(settings))
    found = transformers.AutoImageProcessor.from_pretrained(folder)
    assert type(found) is type(named) and type(found).__name__.startswith("ViTImageProcessor")
    picture = Image.new("RGB", (9, 12), "purple")
    pixels = found(picture, return_tensors="pt").pixel_values
    assert pixels.shape == (1, 3, 6, 6) and torch.equal(pixels, named(picture, return_tensors="pt").pixel_values)
