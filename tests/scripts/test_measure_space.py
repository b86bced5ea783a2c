# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""scripts/measure_space.py starts the Space, asks what it says it asks, and reports what it found."""

import json
import shutil
from pathlib import Path

import pytest
from scripting import load_script
from space.questions import GOOD

MODELS = Path(__file__).parents[2] / "space" / "models"


def test_no_sentence_comes_twice_and_each_has_ten_words():
    script = load_script("scripts/measure_space.py")
    sentences = list(script.sentences())
    assert len(sentences) == len(set(sentences)) == 6**6
    assert {len(sentence.split()) for sentence in sentences} == {10}


def test_every_endpoint_is_asked():
    script = load_script("scripts/measure_space.py")
    named = {"/" + name for name in GOOD}
    models = ["en-fr-none", "en-fr-luong", "en-it-transformer"]
    asked = script.questions(models, named, script.sentences(), 1301)
    assert {question[0] for question in asked} == named and len(named) == 12
    of = {name: {question[2] for question in asked if question[0] == name} for name in ("/attention", "/remove_heads")}
    assert of == {"/attention": set(models), "/remove_heads": {"en-it-transformer"}}
    assert {question[2] for question in asked if question[0] == "/hide_words"} == set(models[1:])
    assert all(any(map(any, question[1])) for question in asked if question[0] == "/classify_digit")  # none is empty
    without = script.questions(["en-fr-none"], named, script.sentences(), 60)
    assert named - {question[0] for question in without} == {"/hide_words", "/remove_heads"}


@pytest.mark.slow
def test_it_measures_a_space_that_it_starts(tmp_path, monkeypatch, capsys):
    script = load_script("scripts/measure_space.py")
    for name, value in (("WARM_UP", 4), ("EVERY", 4)):
        monkeypatch.setattr(script, name, value)
    for name in ("en-fr-bahdanau", "en-it-transformer"):
        shutil.copytree(MODELS / name, tmp_path / name)
    settings = script.MeasureArguments(sentences=3, parallel=6, clients=2, calls=8)
    with script.running_space(tmp_path) as (url, process):
        report = script.main(settings, url, process)
    assert list(report["latency"]) == ["en-fr-bahdanau", "en-it-transformer"]
    assert all(0 < found["median_ms"] <= found["p95_ms"] for found in report["latency"].values())
    assert report["parallel"]["equal"] == report["parallel"]["calls"] == 6
    assert report["memory"]["calls"] == [0, 4, 8] and min(report["memory"]["megabytes"]) > 100
    assert json.loads(json.dumps(report)) == report
    printed = capsys.readouterr().out
    assert "en-it-transformer" in printed and "6 equal to the serial answers" in printed and "in 1,000 calls" in printed


@pytest.mark.slow
def test_a_space_that_does_not_start_is_told_of(tmp_path):
    script = load_script("scripts/measure_space.py")
    shutil.copytree(MODELS / "en-fr-none", tmp_path / "nameless")
    with pytest.raises(ValueError, match="the Space ended with status 1"):
        with script.running_space(tmp_path):
            raise AssertionError("started")
