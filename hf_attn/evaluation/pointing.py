# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure whether attention over a picture is where the object is that a word names.

    inside = weights of the patches that the object's box touches, of all weights of the step that writes the word
    chance = patches that the box touches / all patches: what evenly spread weights give

A number per layer and head. Which one to believe has to be chosen on other pictures than those that are measured.
Related: the pointing game (Zhang 2016, arXiv 1608.00507), which asks for the maximum alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Box = Sequence[int]


def touched(box: Box, side: tuple[int, int], grid: tuple[int, int]) -> np.ndarray:
    """Find the patches that a box touches.

    Args:
        box: (left, top, right, bottom) in pixels; right and bottom are outside.
        side: width and height of the picture in pixels.
        grid: rows and columns of patches.

    Returns:
        (rows, columns), boolean.
    """
    rows, columns = grid
    across, down = (np.arange(count + 1) * length / count for count, length in ((columns, side[0]), (rows, side[1])))
    left, top, right, bottom = box
    return np.outer((down[1:] > top) & (down[:-1] < bottom), (across[1:] > left) & (across[:-1] < right))


def attention_inside(
    weights: Sequence[Any],
    links: Sequence[Sequence[int]],
    boxes: Sequence[Sequence[Box]],
    *,
    side: tuple[int, int],
    grid: tuple[int, int],
) -> dict[str, Any]:
    """Average how much of the attention of linked words is inside the boxes that they are linked to.

    Args:
        weights: for each picture (layers, heads, words, special positions + patches); further rows, as that of an end
            piece, are ignored.
        links: for each picture and word the number of its box, or -1.
        boxes: for each picture its boxes, in pixels.
        side: width and height of all pictures in pixels.
        grid: rows and columns of patches.

    Returns:
        `inside` (layers, heads) and `chance`, means over all linked words, whose number is `words`.

    Raises:
        ValueError: if no word is linked.
    """
    inside, chance = [], []
    for matrix, numbers, some in zip(weights, links, boxes, strict=True):
        over_patches = np.asarray(matrix)[..., -grid[0] * grid[1] :]
        fields = [touched(box, side, grid).ravel() for box in some]
        for word, number in enumerate(numbers):
            if number >= 0:
                inside.append(over_patches[:, :, word] @ fields[number])
                chance.append(fields[number].mean())
    if not inside:
        raise ValueError("links has no word that is linked to a box")
    return {"inside": np.mean(inside, axis=0), "chance": float(np.mean(chance)), "words": len(inside)}
