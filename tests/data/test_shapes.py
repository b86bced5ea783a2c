"""Pictures of shapes: boxes hold the pixels, captions say what the pixels show, and what is held out is held out."""

import re

import numpy as np
import pytest

from hf_attn.data import shapes
from hf_attn.data.shapes import COLOURS, HELD_OUT, SHAPES, SIDE, SPLITS, generate

NAME = r"a (small|large) (\w+) (\w+)"
CAPTION = re.compile(f"{NAME}(?: (above|left of) {NAME}| (above|below) {NAME} and (left of|right of) {NAME})?")


@pytest.fixture(scope="module")
def scenes():
    return [scene for split in SPLITS for scene in generate(split, 60, seed=3)]


def inked(picture) -> np.ndarray:
    """Where a picture differs from its background, the colour of its corner."""
    pixels = np.asarray(picture).astype(int)
    return (pixels != pixels[0, 0]).any(axis=-1)


def test_boxes_are_the_smallest_around_all_pixels_of_an_object(scenes):
    for scene in scenes:
        ink = inked(scene.picture)
        for thing in scene.things:
            left, top, right, bottom = thing.box
            inside = ink[top:bottom, left:right]
            assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()
            ink[top:bottom, left:right] = False
        assert not ink.any()  # nothing is drawn outside the boxes


def test_boxes_do_not_touch(scenes):
    for scene in scenes:
        covered = np.zeros((SIDE, SIDE), dtype=int)
        for thing in scene.things:
            left, top, right, bottom = thing.box
            covered[top - 1 : bottom + 1, left - 1 : right + 1] += 1
        assert covered.max() == 1


def test_an_object_has_the_colour_of_its_name(scenes):
    names = list(COLOURS)
    for scene in scenes:
        pixels, ink = np.asarray(scene.picture).astype(int), inked(scene.picture)
        for thing in scene.things:
            left, top, right, bottom = thing.box
            drawn = pixels[top:bottom, left:right][ink[top:bottom, left:right]]
            colours, counts = np.unique(drawn, axis=0, return_counts=True)
            distance = np.abs(np.array([COLOURS[name] for name in names]) - colours[counts.argmax()]).sum(axis=1)
            assert names[distance.argmin()] == thing.colour


def test_an_object_has_the_shape_and_size_of_its_name(scenes):
    """Told by what is known of a shape without drawing it: how much of its box is full, its corners and its middle."""
    shares = {shape: [] for shape in SHAPES}
    for scene in scenes:
        ink = inked(scene.picture)
        for thing in scene.things:
            left, top, right, bottom = thing.box
            inside = ink[top:bottom, left:right]
            shares[thing.shape].append(inside.mean())
            height, width = inside.shape
            assert inside[height // 2, width // 2] == (thing.shape != "ring")
            corners = inside[[0, 0, -1, -1], [0, -1, 0, -1]].tolist()
            expected = {"square": [True] * 4, "triangle": [False, False, True, True]}
            assert corners == expected.get(thing.shape, [False] * 4), thing
            assert (thing.size == "large") == (max(height, width) > 15)
    # a circle fills pi / 4 of its box, a triangle a half, a cross of thirds five ninths; edge pixels count as full
    means = {shape: float(np.mean(values)) for shape, values in shares.items()}
    assert means["square"] == 1
    assert {"star", "cross", "triangle", "ring"} == {shape for shape in SHAPES if means[shape] < 0.75}
    assert np.pi / 4 <= means["circle"] < 0.9


def test_the_caption_names_the_objects_and_how_they_stand(scenes):
    seen = set()
    for scene in scenes:
        match = CAPTION.fullmatch(scene.caption)
        assert match, scene.caption
        words = [word for word in match.groups() if word]
        named = [words[start : start + 3] for start in range(0, len(words), 4)]
        assert named == [[thing.size, thing.colour, thing.shape] for thing in scene.things]
        first, others = scene.things[0].box, [thing.box for thing in scene.things[1:]]
        for relation, other in zip(words[3::4], others, strict=True):
            stands = {
                "above": first[3] < other[1],
                "below": first[1] > other[3],
                "left of": first[2] < other[0],
                "right of": first[0] > other[2],
            }
            assert stands[relation], scene.caption
            seen.add((len(others), relation))
    assert seen == {(1, "above"), (1, "left of"), *((2, way) for way in ("above", "below", "left of", "right of"))}


def test_no_other_caption_is_right(scenes):
    """Of three objects, one alone stands in line with both others."""
    for scene in scenes:
        centres = np.array([[sum(thing.box[::2]), sum(thing.box[1::2])] for thing in scene.things]) / 2
        lines = [
            [(abs(one - other) <= 7).any() for number, other in enumerate(centres) if number != place]
            for place, one in enumerate(centres)
        ]
        if len(scene.things) == 3:
            assert [all(some) for some in lines] == [True, False, False]
        assert len({(thing.colour, thing.shape) for thing in scene.things}) == len(scene.things)


def test_links_lead_from_words_to_what_they_name(scenes):
    for scene in scenes:
        words = scene.caption.split(" ")
        assert len(words) == len(scene.links)
        for number, thing in enumerate(scene.things):
            linked = [word for word, link in zip(words, scene.links, strict=True) if link == number]
            assert linked == [thing.size, thing.colour, thing.shape]
        rest = {word for word, link in zip(words, scene.links, strict=True) if link == -1}
        assert rest <= {"a", "above", "below", "left", "right", "of", "and"}


def test_held_out_pairs_are_never_trained_on_and_always_tested():
    assert len(HELD_OUT) == len({colour for colour, _ in HELD_OUT}) == len(SHAPES)
    assert {shape for _, shape in HELD_OUT} == set(SHAPES)

    def pairs(split):
        return [{(thing.colour, thing.shape) for thing in scene.things} for scene in generate(split, 300)]

    for split in ("train", "validation", "test"):
        assert not HELD_OUT & set().union(*pairs(split))
    compositional = pairs("compositional")
    assert all(HELD_OUT & some for some in compositional)
    assert set().union(*compositional) == {(colour, shape) for colour in COLOURS for shape in SHAPES}
    assert set().union(*pairs("train")) == set().union(*compositional) - HELD_OUT


def test_the_dataset_has_the_scenes():
    dataset, scenes = shapes("validation", 20, seed=5), list(generate("validation", 20, seed=5))
    assert dataset.column_names == ["image", "caption", "objects", "links"]
    for row, scene in zip(dataset, scenes, strict=True):
        assert row["image"].tobytes() == scene.picture.tobytes() and row["image"].mode == "RGB"
        assert (row["caption"], row["links"]) == (scene.caption, scene.links)
        assert [(one["size"], one["colour"], one["shape"], tuple(one["box"])) for one in row["objects"]] == [
            (thing.size, thing.colour, thing.shape, thing.box) for thing in scene.things
        ]


def test_splits_and_seeds_differ_and_repeat():
    def bytes_of(*arguments):
        return [scene.picture.tobytes() for scene in generate(*arguments)]

    assert bytes_of("train", 10) == bytes_of("train", 12)[:10] == bytes_of("train", 10, 0)
    drawn = [set(bytes_of(split, 10, seed)) for split in SPLITS for seed in (0, 1)]
    assert len(set().union(*drawn)) == 10 * len(drawn)
    assert len(shapes("train", 0)) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"split": "dev"}, "split='dev'"), ({"size": -1}, "size.*-1"), ({"seed": 0.5}, "seed.*0.5")],
)
def test_clear_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        shapes(**arguments)
