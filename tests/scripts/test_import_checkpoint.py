"""import_checkpoint: there and back from the command line, translations with what it wrote, mistakes in one line."""

import runpy
import sys

import pytest
import torch
from hub.checkpoints import write_checkpoint
from hub.single_stacks import write_single_stack
from safetensors.torch import load_file
from scripting import ROOT
from transformers import AutoModelForSeq2SeqLM

SENTENCE = "The old man reads a book."


@pytest.fixture
def call(monkeypatch, capsys):
    """Run a script with these words, and give what it printed."""

    def call(script, *words):
        file = str(ROOT / "scripts" / f"{script}.py")
        monkeypatch.setattr(sys, "argv", [file, *map(str, words)])
        capsys.readouterr()
        runpy.run_path(file, run_name="__main__")
        return capsys.readouterr().out

    return call


def test_there_and_back(call, tmp_path):
    theirs, tokenizer = write_checkpoint("marian-separate", tmp_path / "theirs")
    printed = call("import_checkpoint", "--checkpoint", tmp_path / "theirs", "--output_dir", tmp_path / "ours")
    assert f"= {theirs.config.encoder_ffn_dim} " in printed and "<- encoder_ffn_dim" in printed
    assert "tokenizer: MarianTokenizer and MarianTokenizer" in printed
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "ours")
    last = f"{tmp_path / 'ours'}: {type(model).__name__}, {model.num_parameters():,} parameters, float32\n"
    assert printed.endswith(last)

    ids = theirs.generate(**tokenizer(SENTENCE, return_tensors="pt"), max_length=5, forced_eos_token_id=None)[0, 1:]
    translate = ("--model_name_or_path", tmp_path / "ours", "--text", SENTENCE, "--max_new_tokens", 4)
    assert call("translate", *translate).strip() == tokenizer.decode(ids, skip_special_tokens=True)

    printed = call(
        "import_checkpoint", "--export", "--checkpoint", tmp_path / "ours", "--output_dir", tmp_path / "back"
    )
    assert "<- encoder_intermediate_size" in printed and "MarianMTModel" in printed
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    assert all(torch.equal(back.state_dict()[name], tensor) for name, tensor in theirs.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("gpt2", ["= 16         <- n_embd", "tokenizer: GPT2Tokenizer", "AttnGptForCausalLM"]),
        ("llama", ["<- rope_parameters", "tokenizer: TokenizersBackend", "AttnGptForCausalLM"]),
        ("bert", ["<- hidden_act", "tokenizer: BertTokenizer", "AttnBertForMaskedLM"]),
    ],
)
def test_single_stacks_there_and_back(call, kind, lines, tmp_path):
    write_single_stack(kind, tmp_path / "theirs")
    printed = call("import_checkpoint", "--checkpoint", tmp_path / "theirs", "--output_dir", tmp_path / "ours")
    assert all(line in printed for line in lines), printed
    back = ("--export", "--checkpoint", tmp_path / "ours", "--output_dir", tmp_path / "back")
    assert "<- hidden_size" in call("import_checkpoint", *back)
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "back"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_an_imported_model_is_evaluated(call, tmp_path):
    write_checkpoint("marian-separate", tmp_path / "theirs")
    call("import_checkpoint", "--checkpoint", tmp_path / "theirs", "--output_dir", tmp_path / "ours")
    words = ("--phrasebook", "en-ko", "--max_samples", 2, "--num_beams", 1, "--output_dir", tmp_path / "test")
    call("evaluate_translation", "--model_name_or_path", tmp_path / "ours", *words)
    assert (tmp_path / "test").is_dir()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--checkpoint", "./nowhere"], "there is no such folder"),
        (["--checkpoint", "."], "holds no config.json"),
        (["--checkpoint", "a", "--model_type", "bart"], "model_type='bart' goes with export"),
        (["--checkpoint", "a", "--export", "--decoder_start_token_id", "ko_KR"], "goes with an import alone"),
        (["--checkpoint", "a", "--exports"], "--exports"),
    ],
)
def test_a_mistake_is_one_sentence(call, words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        call("import_checkpoint", *words, "--output_dir", "out")
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)
    assert not (tmp_path / "out").exists()
