"""The training script, end to end: from sentence pairs to a saved model, translations and numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch
from datasets import Dataset
from scripting import load_script
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_attn.training import DataTrainingArguments

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_translation.py"
TINY_TRANSFORMER = (
    "hidden_size=16,encoder_layers=1,decoder_layers=1,encoder_intermediate_size=16,decoder_intermediate_size=16"
)
TINY_RNN = "hidden_size=16,embedding_size=16,attention_size=16"
TINY_CONTROL = "d_model=16,encoder_layers=1,decoder_layers=1,encoder_ffn_dim=16,decoder_ffn_dim=16"


@pytest.fixture(scope="module")
def script():
    return load_script("scripts/train_translation.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    subjects = {"the cat": "le chat", "the dog": "le chien", "Mary": "Marie", "the bird": "l'oiseau"}
    verbs = {"sleeps": "dort", "eats": "mange", "sings": "chante", "runs away now": "s'enfuit maintenant"}
    pairs = [f"{s} {v}.\t{subjects[s]} {verbs[v]}." for s in subjects for v in verbs]
    (folder / "train.tsv").write_text("\n".join(pairs * 5) + "\n", encoding="utf-8")
    (folder / "dev.tsv").write_text("\n".join(pairs[::3]) + "\n", encoding="utf-8")
    # the first source has two references, and the test set is not in the order of length
    test = ["the dog runs away now.\tle chien s'enfuit.", "Mary sleeps.\tMarie dort.", *pairs[3:7]]
    test.append("the dog runs away now.\tle chien s'enfuit maintenant.")
    (folder / "test.tsv").write_text("\n".join(test) + "\n", encoding="utf-8")
    return folder


def command(data, output, *words, test=True):
    return [
        *("--source_lang", "en", "--target_lang", "fr", "--train_file", str(data / "train.tsv")),
        *("--validation_file", str(data / "dev.tsv"), "--output_dir", str(output)),
        *(("--test_file", str(data / "test.tsv")) if test else ()),
        *("--vocab_size", "320", "--tokens_per_batch", "120", "--max_target_length", "16", "--logging_steps", "1"),
        *("--disable_tqdm", "true", "--use_cpu", "--bf16", "false", *words),
    ]


@pytest.mark.slow
def test_first_run_in_its_own_process_then_resume(script, data, tmp_path):
    output = tmp_path / "out"
    words = ["--recipe", "transformer-small", "--config_overrides", TINY_TRANSFORMER, "--save_steps", "2"]
    words += ["--eval_steps", "2"]
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[1]), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, str(SCRIPT), *command(data, output, *words, "--max_steps", "4")],
        capture_output=True, text=True, encoding="utf-8", env=environment, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "attn-transformer" in run.stdout
    results = {name: json.loads((output / f"{name}_results.json").read_text()) for name in ("train", "eval", "all")}
    assert {"eval_bleu", "eval_chrf", "eval_loss", "train_loss", "predict_bleu_signature"} <= set(results["all"])

    # the numbers are sacrebleu's, of the lines in the file, with both references of the source that has two
    lines = (output / "generated_predictions.txt").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [line.split("\t") for line in (data / "test.tsv").read_text(encoding="utf-8").splitlines()]
    sources = list(dict.fromkeys(source for source, _ in rows))
    references = [[target for source, target in rows if source == wanted] for wanted in sources]
    assert len(lines) == len(sources) == 6 and len(references[0]) == 2
    streams = [[group[0] for group in references], [group[1] if len(group) > 1 else None for group in references]]
    assert results["all"]["predict_chrf"] == pytest.approx(sacrebleu.corpus_chrf(lines, streams).score)
    assert results["all"]["predict_bleu"] == pytest.approx(sacrebleu.corpus_bleu(lines, streams).score)

    # the folder is a model that opens by itself, and its translations are the lines of the file, in the file's order
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(output), AutoTokenizer.from_pretrained(output)
    for source, line in zip(sources, lines, strict=True):
        ids = model.generate(**tokenizer(source, return_tensors="pt"), num_beams=1)
        assert " ".join(tokenizer.decode(ids[0], skip_special_tokens=True).split()) == line

    script.main(command(data, output, *words, "--max_steps", "6"))  # the same command again goes on at step 4
    state = json.loads((output / "trainer_state.json").read_text())
    assert state["global_step"] == 6
    assert [entry["step"] for entry in state["log_history"] if "loss" in entry] == [1, 2, 3, 4, 5, 6]
    whole = tmp_path / "whole"
    script.main(command(data, whole, *words, "--max_steps", "6", test=False))
    for (name, one), other in zip(
        AutoModelForSeq2SeqLM.from_pretrained(whole).state_dict().items(),
        AutoModelForSeq2SeqLM.from_pretrained(output).state_dict().values(),
        strict=True,
    ):
        assert torch.equal(one, other), name


def test_separate_vocabularies_and_average(script, data, tmp_path):
    words = ["--recipe", "bahdanau-small", "--config_overrides", TINY_RNN, "--separate_vocabularies"]
    words += ["--max_steps", "4", "--save_steps", "1", "--average_checkpoints", "3", "--num_beams", "2"]
    results = script.main(command(data, tmp_path, *words))
    assert 0 <= results["predict_bleu"] <= 100
    folders = [tmp_path, tmp_path / "target_tokenizer", tmp_path / "checkpoint-4" / "target_tokenizer"]
    source, target, saved = map(AutoTokenizer.from_pretrained, folders)
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert (model.config.vocab_size, model.config.decoder_vocab_size) == (len(source), len(target))
    assert source.get_vocab() != target.get_vocab() == saved.get_vocab()
    last = [AutoModelForSeq2SeqLM.from_pretrained(tmp_path / f"checkpoint-{step}").state_dict() for step in (2, 3, 4)]
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, sum(state[name] for state in last) / 3, rtol=1e-5, atol=1e-7)


def test_control_without_generation_and_further_training(script, data, tmp_path):
    words = ["--max_steps", "2", "--predict_with_generate", "false", "--early_stopping_patience", "1"]
    words += ["--eval_steps", "1", "--save_steps", "1"]
    marian = ["--recipe", "marian-small", "--config_overrides", TINY_CONTROL]
    first = script.main(command(data, tmp_path / "a", *marian, *words, test=False))
    assert set(first) & {"eval_loss", "eval_bleu"} == {"eval_loss"}
    words += ["--model_name_or_path", str(tmp_path / "a"), "--learning_rate", "0"]
    again = script.main(command(data, tmp_path / "b", *words, test=False))
    assert again["eval_loss"] == pytest.approx(first["eval_loss"], rel=1e-4)  # it began with the trained weights


def test_reinforcement_of_a_trained_model_resumes(script, data, tmp_path):
    words = ["--eval_steps", "2", "--save_steps", "2", "--label_smoothing_factor", "0"]
    first = ["--recipe", "bahdanau-small", "--config_overrides", TINY_RNN, "--max_steps", "2"]
    script.main(command(data, tmp_path / "first", *words, *first, test=False))
    words += [
        "--model_name_or_path",
        str(tmp_path / "first"),
        "--reinforcement",
        "gleu",
        "--reinforcement_samples",
        "3",
    ]
    results = script.main(command(data, tmp_path / "second", *words, "--max_steps", "2"))
    assert {"eval_bleu", "eval_gleu", "eval_sentence_gleu", "predict_sentence_gleu"} <= set(results)
    script.main(command(data, tmp_path / "second", *words, "--max_steps", "4", test=False))
    state = json.loads((tmp_path / "second" / "trainer_state.json").read_text())
    rewards = [entry["reward"] for entry in state["log_history"] if "reward" in entry]
    assert len(rewards) == state["global_step"] == 4 and 0 <= min(rewards) <= max(rewards) <= 1
    settings = json.loads((tmp_path / "second" / "run.json").read_text())["settings"]
    assert (settings["reinforcement"], settings["reinforcement_samples"]) == ("gleu", 3)
    assert "reinforcement_samples" not in json.loads((tmp_path / "first" / "run.json").read_text())["settings"]


def test_phrasebook(script, tmp_path):
    results = script.main(
        ["--phrasebook", "en-ko", "--recipe", "luong-small", "--config_overrides", "hidden_size=8,embedding_size=8"]
        + ["--max_train_samples", "60", "--max_eval_samples", "5", "--max_predict_samples", "6", "--max_steps", "1"]
        + ["--output_dir", str(tmp_path), "--vocab_size", "400", "--use_cpu", "--bf16", "false"]
        + ["--max_target_length", "20", "--save_strategy", "no", "--disable_tqdm", "true"]
    )
    assert results["predict_sentences"] == 6
    assert "tok:char" in results["predict_bleu_signature"]  # Korean
    lines = (tmp_path / "generated_predictions.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("recipe", "shape"),
    [("transformer-small", TINY_TRANSFORMER + ",alignment_method=shifted"), ("bahdanau-small", TINY_RNN)],
)
def test_alignment_supervision_by_ibm_model_1_resumes(script, data, tmp_path, recipe, shape):
    words = ["--recipe", recipe, "--config_overrides", shape, "--alignment_supervision", "ibm1", "--save_steps", "2"]
    words += ["--alignment_weight", "0.5", "--eval_steps", "2", "--gradient_accumulation_steps", "2"]
    results = script.main(command(data, tmp_path, *words, "--max_steps", "2"))
    assert {"eval_bleu", "eval_loss"} <= set(results)
    script.main(command(data, tmp_path, *words, "--max_steps", "4", test=False))
    state = json.loads((tmp_path / "trainer_state.json").read_text())
    assert state["global_step"] == 4
    config = json.loads((tmp_path / "config.json").read_text())
    method = "shifted" if recipe == "transformer-small" else "weights"
    assert (config["alignment_method"], config["alignment_layer"], config["alignment_heads"]) == (method, 0, [0])


def test_links_that_teach_a_head(script):
    """On pairs in which every word has its translation, both ways of IBM Model 1 agree on them."""
    pairs = Dataset.from_list(
        [
            {"translation": {"en": f"{a} {b}.", "xx": f"{b.upper()} {a.upper()}."}}
            for a in "one two six".split()
            for b in "red green blue".split()
        ]
    )
    arguments = DataTrainingArguments("en", "xx", alignment_supervision="ibm1")
    assert script.align_words(arguments, pairs) == [{(0, 1), (1, 0), (2, 2)}] * 9


def test_phrasebook_links_teach_a_head(script, tmp_path):
    words = ["--phrasebook", "en-it", "--recipe", "transformer-small", "--config_overrides", TINY_TRANSFORMER]
    words += ["--alignment_supervision", "links", "--max_train_samples", "40", "--do_eval", "false", "--do_predict"]
    words += ["false", "--eval_strategy", "no", "--max_steps", "1", "--save_strategy", "no", "--vocab_size", "400"]
    script.main([*words, "--output_dir", str(tmp_path), "--use_cpu", "--bf16", "false", "--disable_tqdm", "true"])
    assert json.loads((tmp_path / "config.json").read_text())["alignment_heads"] == [0]
