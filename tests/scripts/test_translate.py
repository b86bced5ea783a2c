"""scripts/translate.py: one line out for each line in."""

import io
import json
import sys

import pytest
from scripting import load_script
from transformers import HfArgumentParser, MarianConfig, MarianMTModel

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    return load_script("scripts/translate.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model that was not trained: its output is noise, but always the same."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(["the cat sleeps", "le chat dort"], 300)
    config = MarianConfig(
        vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        max_position_embeddings=40, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        forced_eos_token_id=None,
    )  # fmt: skip
    MarianMTModel(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


def run(script, *arguments):
    (parsed,) = HfArgumentParser(script.TranslateArguments).parse_args_into_dataclasses(list(arguments))
    script.main(parsed)


def expected_lines(folder, lines, **options):
    return [result.text.replace("\n", " ").replace("\r", " ") for result in Translator(folder)(lines, **options)]


def test_files_keep_their_lines(script, folder, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes("\ufeffthe cat\r\n\r\na\u2028b\n  \nle chat".encode())
    arguments = ["--model_name_or_path", folder, "--max_new_tokens", "6"]
    run(script, *arguments, "--input", str(source), "--output", str(target))
    lines = target.read_bytes().decode().split("\n")
    assert lines == [*expected_lines(folder, ["the cat", "", "a\u2028b", "", "le chat"], max_new_tokens=6), ""]
    assert lines[1] == lines[3] == "" and lines[0]


def test_standard_input_and_output(script, folder, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("고양이\nthe cat\n".encode())))
    run(script, "--model_name_or_path", folder, "--max_new_tokens", "6", "--num_beams", "2")
    captured = capsysbinary.readouterr()
    lines = captured.out.decode().split("\n")
    assert lines == [*expected_lines(folder, ["고양이", "the cat"], max_new_tokens=6, num_beams=2), ""]
    assert b"2/2" in captured.err


def test_empty_input_gives_empty_output(script, folder, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"")
    run(script, "--model_name_or_path", folder, "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b""


def test_json_and_several_translations(script, folder, capsysbinary):
    run(script, "--model_name_or_path", folder, "--text", "the cat\nle chat", "--json", "--num_beams", "3",
        "--num_return_sequences", "2", "--max_new_tokens", "4")  # fmt: skip
    captured = capsysbinary.readouterr()
    records = [json.loads(line) for line in captured.out.decode().splitlines()]
    assert [(record["line"], record["source"]) for record in records] == [
        (1, "the cat"), (1, "the cat"), (2, "le chat"), (2, "le chat"),
    ]  # fmt: skip
    assert records[0]["score"] >= records[1]["score"]
    assert records[0]["score"] == pytest.approx(sum(records[0]["token_log_probs"]) / 4)
    assert b"sentence" not in captured.err  # no progress bar for a text on the command line


def test_ensemble_prefix_and_coverage(script, folder, capsysbinary):
    options = {"num_beams": 3, "max_new_tokens": 6, "prefix": "le chat", "coverage_penalty": 0.3}
    run(script, "--model_name_or_path", folder, folder, "--text", "the cat\nsleeps", "--num_beams", "3",
        "--max_new_tokens", "6", "--prefix", "le chat", "--coverage_penalty", "0.3", "--json")  # fmt: skip
    records = [json.loads(line) for line in capsysbinary.readouterr().out.decode().splitlines()]
    expected = Translator([folder, folder])(["the cat", "sleeps"], **options)
    for record, result in zip(records, expected, strict=True):
        assert record["text"] == result.text and result.text.startswith("le chat")
        assert record["score"] == pytest.approx(result.score)


def test_text_and_input_exclude_each_other(script, folder):
    with pytest.raises(ValueError, match="give one of them"):
        run(script, "--model_name_or_path", folder, "--text", "a", "--input", "b.txt")
