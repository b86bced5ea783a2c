"""The record of a run: what a model card needs, with the values that the run had, and no path of the machine."""

import json

import pytest

from hf_attn.training import parse_arguments
from hf_attn.training.record import RECORD, SETTINGS, write_record


def record(tmp_path, *words):
    write_record(tmp_path, *parse_arguments([*words, "--output_dir", str(tmp_path), "--use_cpu", "--bf16", "false"]))
    text = (tmp_path / RECORD).read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    return json.loads(text)


def test_the_settings_are_those_of_the_run(tmp_path):
    written = record(
        tmp_path,
        "--phrasebook",
        "en-ko",
        "--recipe",
        "transformer-tiny",
        "--learning_rate",
        "0.003",
        "--num_beams",
        "4",
    )
    assert (written["recipe"], written["phrasebook"]) == ("transformer-tiny", "en-ko")
    assert (written["source_lang"], written["target_lang"], written["trained_further"]) == ("en", "ko", False)
    settings = written["settings"]
    assert settings["learning_rate"] == 0.003 and settings["num_beams"] == 4  # of the command line
    assert settings["max_steps"] == 2600 and settings["lr_scheduler_type"] == "cosine"  # of the recipe
    assert settings["tokenizer_kind"] == "bpe" and settings["optim"].startswith("adamw")
    assert not {"num_train_epochs", "alignment_weight", "bf16", "max_minutes"} & set(settings)  # not used
    assert set(settings) < set(SETTINGS) and set(written["versions"]) == {"torch", "transformers", "tokenizers"}


def test_files_and_folders_are_not_named(tmp_path):
    for name in ("train.tsv", "test.tsv"):
        (tmp_path / name).write_text("a\tb\n")
    (tmp_path / "older").mkdir()
    words = ["--source_lang", "en", "--target_lang", "fr", "--train_file", str(tmp_path / "train.tsv")]
    written = record(tmp_path, *words, "--model_name_or_path", str(tmp_path / "older"))
    assert written["trained_further"] and written["base_model"] is None and written["dataset_name"] is None
    assert "num_train_epochs" in written["settings"] and "tokenizer_kind" not in written["settings"]
    assert record(tmp_path, *words, "--model_name_or_path", "jane/older")["base_model"] == "jane/older"


@pytest.mark.parametrize("supervised", [False, True])
def test_the_weight_of_a_loss_that_is_not_there_is_no_setting(supervised, tmp_path):
    words = ["--alignment_supervision", "links"] if supervised else []
    assert ("alignment_weight" in record(tmp_path, "--phrasebook", "en-it", *words)["settings"]) == supervised
