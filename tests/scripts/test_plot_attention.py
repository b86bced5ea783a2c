"""scripts/plot_attention.py writes a picture and a page for every line, from a saved model."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("matplotlib")

from hf_attn.data import train_tokenizer
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A tiny model with random weights, saved with its tokenizer."""
    tokenizer = train_tokenizer(["the cat sleeps.", "il gatto dorme."] * 4, 300)
    torch.manual_seed(0)
    config = AttnTransformerConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_intermediate_size=16,
        decoder_intermediate_size=16,
        max_position_embeddings=32,
    )
    folder = tmp_path_factory.mktemp("model")
    AttnTransformerForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def script():
    """The script as a module."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import plot_attention
    finally:
        sys.path.pop(0)
    return plot_attention


def plot(script, model_folder, output_dir, **options):
    script.main(script.PlotArguments(model_name_or_path=str(model_folder), output_dir=str(output_dir), **options))


def test_a_given_target(script, model_folder, tmp_path, capsys):
    options = {"text": ["the cat"], "target": ["il gatto"], "layer": 0, "heads": [1], "method": "shifted"}
    plot(script, model_folder, tmp_path / "new", **options)
    picture, page = tmp_path / "new" / "alignment.png", tmp_path / "new" / "alignment.html"
    assert picture.read_bytes().startswith(b"\x89PNG")
    document = page.read_text(encoding="utf-8")
    assert ">gatto</span>" in document and "reads the word, layer 1 of 2, head 2 of 2" in document
    printed = capsys.readouterr().out
    assert "the cat\nil gatto\n" in printed and str(picture) in printed and str(page) in printed


def test_several_texts_and_lines(script, model_folder, tmp_path):
    plot(script, model_folder, tmp_path, text=["the cat\n\nthe cat sleeps.", "sleeps."], num_beams=2, pieces=True)
    expected = [f"alignment-{number}.{kind}" for number in (1, 2, 3) for kind in ("html", "png")]
    assert sorted(file.name for file in tmp_path.iterdir()) == expected


def test_mistakes_are_named(script, model_folder, tmp_path):
    for options, message in (
        ({"text": [""]}, "nothing to translate"),
        ({"text": ["the cat"], "layer": 2}, "layer is 2"),
        ({"text": ["the cat"], "target": ["a", "b"]}, "1 sources and 2 targets"),
    ):
        with pytest.raises(ValueError, match=message):
            plot(script, model_folder, tmp_path, **options)


def test_the_command_line(model_folder, tmp_path, monkeypatch):
    file = str(ROOT / "scripts" / "plot_attention.py")
    command = [file, "--model_name_or_path", str(model_folder), "--output_dir", str(tmp_path), "--text", "the cat"]
    monkeypatch.setattr(sys, "argv", [*command, "--heads", "0", "1"])
    runpy.run_path(file, run_name="__main__")
    assert {path.name for path in tmp_path.iterdir()} == {"alignment.html", "alignment.png"}
    monkeypatch.setattr(sys, "argv", [*command, "--layer", "9"])
    with pytest.raises(SystemExit, match="error: layer is 9"):
        runpy.run_path(file, run_name="__main__")
