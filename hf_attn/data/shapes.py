# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Pictures of coloured shapes with captions: "a small red circle above a large blue square".

A picture has one to three objects, and exactly one right caption. Two objects stand below or beside one another, and
the upper or left one is named first. Of three the one at the corner is named first, then the one above or below it,
then the one beside it. Which words of the caption name which object, and where in the picture that is, is known by
construction, so that attention can be compared with it. Some colours never come with some shapes in training: who
learns whole names by heart fails on them.

Read `images.py` for pictures with class labels.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.checks import check_choice, is_whole

if TYPE_CHECKING:
    from datasets import Dataset
    from PIL.Image import Image as Picture

    Box = tuple[int, int, int, int]

SPLITS = {"train": 30_000, "validation": 500, "test": 1_000, "compositional": 1_000}
SIDE = 64  # pixels of a picture
SIZES = {"small": (10, 13), "large": (18, 23)}  # fewest and most pixels of a side
COLOURS = {
    "red": (214, 39, 40),
    "orange": (247, 140, 30),
    "yellow": (240, 210, 50),
    "green": (44, 150, 60),
    "blue": (40, 95, 205),
    "purple": (130, 60, 170),
    "pink": (245, 150, 195),
    "black": (25, 25, 25),
}
SHAPES = ("circle", "square", "triangle", "star", "cross", "ring")
HELD_OUT = frozenset(zip(COLOURS, SHAPES))
"""Pairs of colour and shape, one for each shape, which the compositional split is about; the others never have them."""

_PAIRS = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)
_GAP, _OFFSET = 3, 6  # pixels: least distance of two objects, and how far from one line their centres may be
_TINT = 20  # how far a level of a colour may be from the colour of its name
_FINE = 4  # shapes are drawn as many times larger, and shrunk to have smooth edges


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a picture.

    Attributes:
        size: "small" or "large".
        colour: one of COLOURS.
        shape: one of SHAPES.
        box: the smallest box around its pixels, (left, top, right, bottom); right and bottom are outside.
    """

    size: str
    colour: str
    shape: str
    box: Box


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and what is on it.

    Attributes:
        picture: the picture.
        caption: what it shows, words with single spaces.
        things: its objects, as the caption names them.
        links: for each word of the caption the number of the object whose size, colour or shape it names, or -1.
    """

    picture: Picture
    caption: str
    things: list[Thing]
    links: list[int]


def shapes(split: str = "train", size: int | None = None, seed: int = 0) -> Dataset:
    """Make pictures of shapes with captions; it needs no download.

    The pictures depend on the arguments alone. The splits are drawn apart, and only the compositional one has the pairs
    of colour and shape in HELD_OUT, at least one in each picture.

    Args:
        split: "train", "validation", "test" or "compositional".
        size: how many; None takes 30,000 for training, 500 for validation, and 1,000 otherwise.
        seed: another seed gives other pictures of the same split.

    Returns:
        A dataset with the columns "image" (64 x 64, colours), "caption", "objects" (a list of dictionaries of size,
        colour, shape and box, as in `Thing`) and "links" (as in `Scene`).

    Raises:
        ValueError: for another split, or a size or seed that is no whole number of at least 0.
    """
    from datasets import Dataset, Features, Image, List, Value

    text, number = Value("string"), Value("int32")
    thing = {"size": text, "colour": text, "shape": text, "box": List(number, length=4)}
    features = Features({"image": Image(), "caption": text, "objects": List(thing), "links": List(number)})
    columns: dict[str, list[Any]] = {name: [] for name in features}
    for scene in generate(split, size, seed):
        file = io.BytesIO()
        scene.picture.save(file, format="png", compress_level=1)
        columns["image"].append({"bytes": file.getvalue(), "path": None})
        columns["caption"].append(scene.caption)
        columns["objects"].append([{name: getattr(one, name) for name in thing} for one in scene.things])
        columns["links"].append(scene.links)
    return Dataset.from_dict(columns, features=features)


def generate(split: str = "train", size: int | None = None, seed: int = 0) -> Iterator[Scene]:
    """Draw the scenes of a split one by one; arguments and errors as for `shapes`."""
    check_choice("split", split, tuple(SPLITS))
    size = SPLITS[split] if size is None else size
    for name, value in (("size", size), ("seed", seed)):
        if not is_whole(value):
            raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}")
    rng = random.Random(f"shapes {split} {seed}")
    return (_scene(rng, split == "compositional") for _ in range(size))


def _scene(rng: random.Random, compositional: bool) -> Scene:
    """Draw one scene: what is on it, then where, then the picture and its caption."""
    from PIL import Image

    count = rng.choice((1, 2, 2, 3, 3))
    pairs: list[tuple[str, str]] = []
    while not pairs or compositional == HELD_OUT.isdisjoint(pairs):
        pairs = rng.sample(_PAIRS, count)  # two objects of one picture differ in colour or shape
    sizes = [rng.choice(tuple(SIZES)) for _ in pairs]
    places, relations = _arrange(rng, [rng.randint(*SIZES[size]) for size in sizes])

    grey = rng.randint(225, 245)
    picture = Image.new("RGB", (SIDE, SIDE), (grey, grey, grey))
    things, words, links = [], [], []
    for number, ((colour, shape), size, (left, top, right, _)) in enumerate(zip(pairs, sizes, places, strict=True)):
        ink = tuple(min(255, max(0, level + rng.randint(-_TINT, _TINT))) for level in COLOURS[colour])
        stencil = Image.new("L", (SIDE, SIDE))
        stencil.paste(_stencil(shape, right - left), (left, top))
        picture.paste(ink, mask=stencil)
        things.append(Thing(size, colour, shape, stencil.getbbox()))  # type: ignore[arg-type]
        joint = relations[number - 1].split() if number else []
        words += [*joint, "a", size, colour, shape]
        links += [*[-1] * (len(joint) + 1), number, number, number]
    return Scene(picture, " ".join(words), things, links)


def _arrange(rng: random.Random, sides: list[int]) -> tuple[list[Box], list[str]]:
    """Find places for squares of the given sides, and the words between their names."""
    while True:
        first = (rng.randint(1, SIDE - 1 - sides[0]), rng.randint(1, SIDE - 1 - sides[0]))
        places = [(*first, first[0] + sides[0], first[1] + sides[0])]
        turn = rng.randrange(2) if len(sides) == 2 else 0
        for number, side in enumerate(sides[1:]):
            axis = (number + turn) % 2  # along which this one is in line with the first
            corner = [rng.randint(1, SIDE - 1 - side), rng.randint(1, SIDE - 1 - side)]
            corner[axis] = first[axis] + (sides[0] - side) // 2 + rng.randint(-_OFFSET, _OFFSET)
            places.append((corner[0], corner[1], corner[0] + side, corner[1] + side))
        found = [_relation(places[0], other) for other in places[1:]]
        inside = all(1 <= box[axis] and box[axis + 2] < SIDE for box in places for axis in (0, 1))
        if not inside or None in found:
            continue
        if not found or found in (["above"], ["left of"]):
            return places, found  # type: ignore[return-value]
        if len(found) == 2 and _apart(places[1], places[2]):
            return places, [str(found[0]), f"and {found[1]}"]


def _relation(one: Box, other: Box) -> str | None:
    """Say how one box stands to another if they stand in one line."""
    across, down = (abs(one[axis] + one[axis + 2] - other[axis] - other[axis + 2]) / 2 for axis in (0, 1))
    if across <= _OFFSET:
        return "above" if one[3] + _GAP <= other[1] else "below" if other[3] + _GAP <= one[1] else None
    if down <= _OFFSET:
        return "left of" if one[2] + _GAP <= other[0] else "right of" if other[2] + _GAP <= one[0] else None
    return None


def _apart(one: Box, other: Box) -> bool:
    """Tell whether two boxes have a gap between them."""
    return any(
        first[axis + 2] + _GAP <= second[axis] for axis in (0, 1) for first, second in ((one, other), (other, one))
    )


def _stencil(shape: str, side: int) -> Picture:
    """Draw a shape, white on black, as large as a square of `side` pixels."""
    from PIL import Image, ImageDraw

    fine = side * _FINE
    picture = Image.new("L", (fine, fine))
    pen = ImageDraw.Draw(picture)
    if shape in ("circle", "ring"):
        pen.ellipse((0, 0, fine - 1, fine - 1), fill=255)
        if shape == "ring":
            edge = 0.27 * fine
            pen.ellipse((edge, edge, fine - 1 - edge, fine - 1 - edge), fill=0)
    elif shape == "cross":
        edge = 0.33 * fine
        pen.rectangle((edge, 0, fine - 1 - edge, fine - 1), fill=255)
        pen.rectangle((0, edge, fine - 1, fine - 1 - edge), fill=255)
    else:
        pen.polygon([(x * (fine - 1), y * (fine - 1)) for x, y in _corners(shape)], fill=255)
    return picture.reduce(_FINE)


def _corners(shape: str) -> list[tuple[float, float]]:
    """Give the corners of a shape in a square of side 1."""
    if shape == "square":
        return [(0.04, 0.04), (0.96, 0.04), (0.96, 0.96), (0.04, 0.96)]
    if shape == "triangle":
        return [(0.5, 0.0), (1.0, 0.95), (0.0, 0.95)]
    points = []  # of the star, outer and inner in turn
    for number in range(10):
        radius, angle = (0.2, 0.53)[number % 2 == 0], math.pi * number / 5
        points.append((0.5 + radius * math.sin(angle), 0.53 - radius * math.cos(angle)))
    return points
