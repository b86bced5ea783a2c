# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Import and export of encoders and decoders from folders: tokenizers, code, and what is refused. Their numbers are
compared in tests/parity."""

import json
import shutil

import pytest
import torch
from hub.checkpoints import SENTENCES
from hub.single_stacks import KINDS, write_single_stack
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from hf_attn.hub import export_checkpoint, import_checkpoint

TYPED = ["typed [CLS] and [MASK] and [SEP]", "<|endoftext|> in the middle <mask>", "café, Ünder, Ἑλλάς"]


@pytest.fixture(scope="module", params=KINDS)
def folders(request, tmp_path_factory):
    """The original tokenizer, and the folders of theirs, ours and theirs again."""
    place = tmp_path_factory.mktemp(request.param)
    _, tokenizer = write_single_stack(request.param, place / "theirs")
    import_checkpoint(place / "theirs", place / "ours")
    export_checkpoint(place / "ours", place / "back", model_type=request.param)
    return tokenizer, place


def test_ids_and_text_are_those_of_the_original_tokenizer(folders):
    original, place = folders
    assert len({tuple(original(sentence)["input_ids"]) for sentence in SENTENCES}) == len(SENTENCES)
    for name in ("ours", "back"):
        tokenizer = AutoTokenizer.from_pretrained(place / name)
        assert type(tokenizer) is type(original)
        for options in ({}, {"split_special_tokens": True}, {"text_pair": SENTENCES[0]}):
            for sentence in (*SENTENCES, *TYPED):
                wanted = original(sentence, **options)
                assert tokenizer(sentence, **options) == wanted, (name, sentence)
                for skip in (False, True):
                    text = original.decode(wanted["input_ids"], skip_special_tokens=skip)
                    assert tokenizer.decode(wanted["input_ids"], skip_special_tokens=skip) == text
        for field in ("all_special_ids", "model_max_length", "padding_side", "model_input_names"):
            assert getattr(tokenizer, field) == getattr(original, field), field


def test_a_tokenizer_of_its_vocabulary_alone_is_found(folders, tmp_path):
    original, place = folders
    shutil.copytree(place / "theirs", tmp_path / "theirs")
    (tmp_path / "theirs" / "tokenizer.json").unlink()
    (tmp_path / "theirs" / "tokenizer_config.json").unlink()
    ours = import_checkpoint(tmp_path / "theirs")[1]
    assert ours(SENTENCES)["input_ids"] == AutoTokenizer.from_pretrained(tmp_path / "theirs")(SENTENCES)["input_ids"]


def test_nothing_that_was_written_knows_where_it_came_from(folders):
    _, place = folders
    for name in ("ours", "back"):
        for path in (place / name).rglob("*.json"):
            assert str(place) not in path.read_text(encoding="utf-8"), path.name


def test_code_beside_the_weights_never_runs(folders, tmp_path):
    _, place = folders
    shutil.copytree(place / "theirs", tmp_path / "theirs")
    trap = tmp_path / "it-ran"
    (tmp_path / "theirs" / "trap.py").write_text(f"open({str(trap)!r}, 'w')\nclass Config: ...\nclass Model: ...\n")
    path = tmp_path / "theirs" / "config.json"
    names = ("AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM")
    auto = {"AutoConfig": "trap.Config"} | {name: "trap.Model" for name in names}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": auto}))
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not trap.exists() and not (tmp_path / "ours" / "trap.py").exists()


# What is refused


@pytest.fixture(params=("distilbert", "gpt2", "llama"))
def broken(request, tmp_path):
    """A function that changes the tensors of a checkpoint, and its folder."""
    write_single_stack(request.param, tmp_path / "theirs", tokenizer=False)
    path = tmp_path / "theirs" / "model.safetensors"

    def change(function):
        tensors = load_file(path)
        name = next(name for name in sorted(tensors) if tensors[name].dim() == 2 and ".1." in name)
        function(tensors, name)
        save_file(tensors, path, metadata={"format": "pt"})
        return name

    return change, tmp_path


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda tensors, name: tensors.pop(name), "missing: {name}"),
        (lambda tensors, name: tensors.update(adapter=torch.zeros(3, 5)), r"unknown: adapter \(3, 5\)"),
        (lambda tensors, name: tensors.update({name: tensors[name][:3].clone()}), r"other shape: {name} \(3, \d+\)"),
    ],
    ids=["missing", "unknown", "other shape"],
)
def test_every_missing_unknown_or_other_tensor_is_named(broken, function, message):
    change, place = broken
    name = change(function)
    with pytest.raises(ValueError, match=message.format(name=name)):
        import_checkpoint(place / "theirs", place / "ours")
    assert not (place / "ours").exists()


def test_broken_files_and_pickles_are_refused(broken):
    change, place = broken
    path = place / "theirs" / "model.safetensors"
    whole = path.read_bytes()
    for data in (b"", whole[:-100], b"version https://git-lfs.github.com/spec/v1"):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="its weights cannot be read from safetensors"):
            import_checkpoint(place / "theirs", place / "ours")
    path.unlink()
    torch.save({}, place / "theirs" / "pytorch_model.bin")
    with pytest.raises(ValueError, match="has its weights in pytorch_model.bin, a format that can run code"):
        import_checkpoint(place / "theirs", place / "ours")
    assert not (place / "ours").exists()


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("gpt2", {"architectures": ["GPT2DoubleHeadsModel"]}, "architectures='GPT2DoubleHeadsModel' has no twin here"),
        ("bert", {"architectures": ["BertForMultipleChoice"]}, "architectures='BertForMultipleChoice' has no twin"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "'linear'.* .it must be without any scaling"),
        ("gpt2", {"n_layer": "two"}, "its config.json has a setting that cannot be"),
        ("mistral", {"quantization_config": {"quant_method": "fbgemm_fp8"}}, "quantised weights"),
    ],
)
def test_a_setting_in_a_file_without_a_counterpart_is_named(kind, values, message, tmp_path):
    write_single_stack(kind, tmp_path / "theirs", tokenizer=False)
    path = tmp_path / "theirs" / "config.json"
    config = json.loads(path.read_text())
    if "rope_scaling" in values:
        del config["rope_parameters"]  # as files were written before transformers 5
    path.write_text(json.dumps(config | values))
    with pytest.raises(ValueError, match=message):
        import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
