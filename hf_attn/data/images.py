# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Pictures with class labels that need no download: scikit-learn's handwritten digits, 8 x 8 pixels of 17 greys.

They are the test set of Alpaydin and Kaynak's collection (UCI repository, 1998): 1,797 digits by 13 writers. Read
`shapes.py` for pictures with captions.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..models.checks import check_choice, is_whole

if TYPE_CHECKING:
    from datasets import Dataset

HELD_OUT = {"test": range(0, 30), "validation": range(30, 45)}  # of the shuffled pictures of each class


def digits(split: str = "train", seed: int = 0) -> Dataset:
    """Give the handwritten digits that come with scikit-learn.

    Of each digit 30 pictures are for testing and 15 for validation, always the same ones, which leaves 1,347 for
    training. The splits share the writers.

    Args:
        split: "train", "validation" or "test".
        seed: another seed gives the same pictures in another order.

    Returns:
        A dataset with the columns "image" (grey, 8 x 8; white ink on black; `image.convert("RGB")` before an image
        processor of three channels) and "label", whose classes are named "0" to "9".

    Raises:
        ValueError: for another split, or a seed that is no whole number.
    """
    from datasets import ClassLabel, Dataset, Features, Image
    from PIL import Image as Picture
    from sklearn.datasets import load_digits

    check_choice("split", split, ("train", *HELD_OUT))
    if not is_whole(seed):
        raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")
    data = cast(Any, load_digits())
    chosen = []
    for label in range(10):
        numbers = np.flatnonzero(data.target == label).tolist()
        random.Random(label).shuffle(numbers)
        held_out = HELD_OUT.get(split)
        start = max(part.stop for part in HELD_OUT.values())
        chosen += numbers[held_out.start : held_out.stop] if held_out else numbers[start:]
    random.Random(seed).shuffle(chosen)
    pixels = np.rint(data.images * 255 / 16).astype(np.uint8)
    columns = {
        "image": [Picture.fromarray(pixels[number]) for number in chosen],
        "label": [int(data.target[number]) for number in chosen],
    }
    features = Features({"image": Image(), "label": ClassLabel(names=[str(label) for label in range(10)])})
    return Dataset.from_dict(columns, features=features)


def convert_image(image: Any, mode: str) -> Any:
    """Bring a picture of PIL to 8 bits a channel.

    Args:
        image: of any mode. One of 16 bits is made coarser, where PIL itself would make everything above 255 white.
        mode: of PIL: "L" for grey, "RGB".

    Raises:
        TypeError: if it is no picture of PIL.
    """
    from PIL import Image as Picture

    if not isinstance(image, Picture.Image):
        raise TypeError(f"image must be a picture of PIL, got {type(image).__name__}")
    if image.mode.startswith("I;16"):
        image = Picture.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert(mode)
