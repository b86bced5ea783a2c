import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from hf_attn.data import digits
from hf_attn.data.images import convert_image

SPLITS = ("train", "validation", "test")


def pictures(dataset) -> list[tuple[bytes, int]]:
    return [(image.tobytes(), label) for image, label in zip(dataset["image"], dataset["label"], strict=True)]


def test_the_splits_together_are_scikit_learns_digits_each_once():
    source = load_digits()
    theirs = sorted((grey.astype(int).tolist(), int(label)) for grey, label in zip(source.images, source.target))
    ours = []
    for split in SPLITS:
        dataset = digits(split)
        assert {image.size for image in dataset["image"]} == {(8, 8)}
        assert {image.mode for image in dataset["image"]} == {"L"}
        # 255 greys are cut back into the 16 steps that they were made of
        ours += [
            (np.rint(np.asarray(image, dtype=float) * 16 / 255).astype(int).tolist(), label)
            for image, label in zip(dataset["image"], dataset["label"], strict=True)
        ]
    assert sorted(ours) == theirs


def test_every_class_is_held_out_alike_and_has_its_name():
    for split, size in (("validation", 15), ("test", 30)):
        dataset = digits(split)
        assert np.bincount(dataset["label"]).tolist() == [size] * 10
        assert dataset.features["label"].names == list("0123456789")
    assert len(digits("train")) == 1797 - 450


def test_a_seed_changes_the_order_alone():
    for split in SPLITS:
        first, again, other = (pictures(digits(split, seed=seed)) for seed in (1, 1, 2))
        assert first == again != other
        assert sorted(first) == sorted(other)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"split": "dev"}, "split='dev'.*train"), ({"seed": -1}, "seed.*-1")]
)
def test_clear_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        digits(**arguments)


def test_the_data_package_opens_where_scikit_learn_and_pillow_are_missing():
    code = "import sys; sys.modules['sklearn'] = sys.modules['PIL'] = None; from hf_attn.data import digits, copy_task"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_a_picture_of_16_bits_is_that_of_8_bits(mode, order):
    """PIL itself makes a grey of more than 255 of 65535 white."""
    greys = np.arange(256, dtype=np.uint8).reshape(16, 16)
    fine = Image.fromarray((greys.astype(np.uint16) * 257).astype("<u2"))
    if order == ">u2":
        fine = Image.frombytes("I;16B", (16, 16), (greys.astype(np.uint16) * 257).astype(">u2").tobytes())
    found = convert_image(fine, mode)
    assert found.mode == mode and found.tobytes() == Image.fromarray(greys).convert(mode).tobytes()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_other_pictures_are_what_pil_makes_of_them(mode):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (1, 3, 3), dtype=np.uint8)).convert(mode)
    assert convert_image(picture, "RGB").tobytes() == picture.convert("RGB").tobytes()


@pytest.mark.parametrize("other", ["picture.png", None, np.zeros((2, 2, 3), dtype=np.uint8)])
def test_what_is_no_picture_is_named(other):
    with pytest.raises(TypeError, match=f"got {type(other).__name__}"):
        convert_image(other, "RGB")
