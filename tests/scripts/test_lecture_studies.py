# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""scripts/lecture_studies.py runs all studies and writes numbers, figures in which nothing is cut off, and sheets."""

import json
import runpy
import sys
import warnings

import pytest
from scripting import ROOT, load_script

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from hf_attn.studies import STUDIES
from hf_attn.visualization.heatmap import AttentionFigure

FILE = str(ROOT / "scripts" / "lecture_studies.py")
NEED_MORE = {"python", "alignment"}


def assert_whole(figure):
    """Nothing of a figure lies outside it, and every panel says what it shows."""
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert drawn.x0 > -0.02 and drawn.y0 > -0.02 and drawn.x1 < width + 0.02 and drawn.y1 < height + 0.02
    assert all(axes.get_xlabel() or axes.get_title() for axes in figure.axes if axes.get_label() != "<colorbar>")


def test_all_studies_run_quickly_and_write_their_files(tmp_path, capsys, monkeypatch):
    def save(figure, path):
        figures[path.stem] = figure
        Figure.savefig(figure, path)

    figures = {}
    monkeypatch.setattr(AttentionFigure, "savefig", save)
    script = load_script("scripts/lecture_studies.py")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*[Gg]lyph.*")  # a letter drawn as a box
        written = script.main(["all"], script.StudyArguments(output_dir=str(tmp_path), quick=True))
    assert all(path.stat().st_size > 100 for path in written)
    names = {path.name for path in written}
    sheets = {
        f"{name}-{lang}.{kind}"
        for name in ("worksheet", "solutions")
        for lang in ("en", "ko")
        for kind in ("md", "html")
    }
    for study in set(STUDIES) - NEED_MORE:
        kinds = ["json"] if study == "worksheet" else ["json", "png", "svg"]
        assert {f"{study}.{kind}" for kind in kinds} <= names
        json.loads((tmp_path / f"{study}.json").read_text(encoding="utf-8"))
    assert sheets <= names and len(names) == 3 * (len(STUDIES) - 3) + 1 + len(sheets)
    assert set(figures) == set(STUDIES) - NEED_MORE - {"worksheet"}
    for figure in figures.values():
        assert_whole(figure)
    printed = capsys.readouterr().out
    assert "Left out python: encoder is None; give --encoder" in printed
    assert "Left out alignment: models is None; give --models" in printed
    assert all(f"\n{study}: {what}\n" in printed for study, what in STUDIES.items() if study not in NEED_MORE)


def test_the_options_reach_the_studies(tmp_path):
    script = load_script("scripts/lecture_studies.py")
    arguments = script.StudyArguments(output_dir=str(tmp_path), seed=3, languages=["ko"], quick=True)
    script.main(["worksheet", "temperature"], arguments)
    assert json.loads((tmp_path / "worksheet.json").read_text(encoding="utf-8"))["seed"] == 3
    assert (tmp_path / "worksheet-ko.md").exists() and not (tmp_path / "worksheet-en.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scaling"], "give --output_dir"),
        (["heat", "--output_dir", "out"], "study is 'heat'"),
        (["python", "--output_dir", "out", "--quick"], "give --encoder"),
        (["alignment", "--output_dir", "out", "--quick"], "give --models"),
        (["python", "--output_dir", "out", "--encoder", "nowhere"], "must be a folder or a wheel"),
        (["temperature", "--output_dir", "out", "--seed", "1"], "seed is 1; none of temperature takes it"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [FILE, *arguments])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(FILE, run_name="__main__")
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)


def test_the_list_names_every_study(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [FILE, "list"])
    runpy.run_path(FILE, run_name="__main__")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(STUDIES)
