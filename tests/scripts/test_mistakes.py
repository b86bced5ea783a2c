"""A mistake of the user ends every script with a sentence, not with a traceback."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
NO_MODEL = ["--model_name_or_path", "./nowhere"]
OUTPUT = ["--output_dir", "out"]
FEW = ["--phrasebook", "en-it", "--recipe", "transformer-tiny", "--max_train_samples", "50", "--use_cpu"]


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("translate", [*NO_MODEL, "--text", "a"], "there is no such folder"),
        ("translate", [*NO_MODEL, "--input", "nowhere.txt"], "nowhere.txt"),
        ("translate", [*NO_MODEL, "--text", "a", "--input", "b"], "give one of them"),
        ("translate", [*NO_MODEL, "--texts", "a"], "--texts"),
        ("plot_attention", [*NO_MODEL, *OUTPUT, "--text", "a"], "there is no such folder"),
        ("evaluate_translation", [*NO_MODEL, *OUTPUT], "exactly one of test_file, phrasebook and anchors_file"),
        ("evaluate_translation", [*NO_MODEL, *OUTPUT, "--phrasebook", "en-de"], "choose one of en-it, en-fr, en-ko"),
        (
            "evaluate_translation",
            [*NO_MODEL, *OUTPUT, "--test_file", "a.tsv", "--source_lang", "en", "--target_lang", "fr"],
            "no file or folder a.tsv",
        ),
        ("compare_architectures", OUTPUT, "exactly one of config and quick"),
        ("length_study", [*OUTPUT, "--pair", "en-de"], "choose one of en-it, en-fr, en-ko"),
        ("length_study", [*OUTPUT, "--recipes", "none-tiny", "gpt-9"], "recipe must be one of"),
        ("train_translation", [*OUTPUT], "no data"),
        ("train_translation", [*OUTPUT, "--phrasebook", "en-it", "--recipe", "gpt-9"], "recipe must be one of"),
        ("train_translation", [*OUTPUT, "--phrasebook", "en-de"], "must be one of en-it, en-fr, en-ko"),
        ("train_translation", [*OUTPUT, "--phrasebook", "en-it", "--steps", "3"], "--steps"),
        ("train_translation", [*OUTPUT, *FEW, "--config_overrides", "hidden_size=abc"], "expected int, got str"),
        ("train_translation", [*OUTPUT, *FEW, "--config_overrides", "hidden_sise=8"], "no config field hidden_sise"),
        (
            "train_translation",
            [*OUTPUT, *FEW, "--config_overrides", "hidden_size=30,encoder_attention_heads=4"],
            "hidden_size=30 must be a multiple of encoder_attention_heads=4",
        ),
        ("train_translation", [*OUTPUT, *FEW, "--attn_implementation", "fast"], '"fast"'),
        ("train_translation", [*OUTPUT, *FEW, *NO_MODEL], "nowhere"),
        (
            "train_translation",
            [*OUTPUT, "--train_file", "wrong.tsv", "--source_lang", "en", "--target_lang", "fr"],
            "wrong.tsv, line 2: must have 2 columns, got 1",
        ),
        ("train_language_model", ["--objective", "clm", "--phrasebook", "en"], "output_dir is missing"),
        ("train_captioner", [], "output_dir is missing"),
        ("train_captioner", [*OUTPUT, "--test_samples", "0"], "test_samples=0 must be at least 1"),
        ("summarize", [], "output_dir is missing"),
        ("retrieve", [*NO_MODEL, "--pairs", "halves"], "output_dir is missing"),
        ("retrieve", [*NO_MODEL, *OUTPUT, "--pairs", "same", "--text_file", "words.txt"], "lines of two words"),
        *(
            ("measure_space", [f"--{name}", "-1"], f"{name}=-1 must be at least")
            for name in ("sentences", "parallel", "clients", "calls")
        ),
        ("measure_space", ["--url", "http://127.0.0.1:9/"], "http://127.0.0.1:9/ does not answer"),
        ("lecture_studies", ["all", "--no_such", "1"], "--no_such"),
    ],
)
def test_a_mistake_is_one_sentence(script, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("one\ntwo\nthree\n")
    Path("wrong.tsv").write_text("a\tb\nno second column\n")
    file = str(SCRIPTS / f"{script}.py")
    monkeypatch.setattr(sys, "argv", [file, *arguments])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(file, run_name="__main__")
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)
