"""The script that trains language models, from texts to saved folders, numbers and filled blanks."""

import json
import math
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file
from scripting import load_script
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoTokenizer,
    pipeline,
)

from hf_attn.data.text import count_words, phrasebook_texts, text_rows

TINY = "hidden_size=16,num_hidden_layers=1,num_attention_heads=2,intermediate_size=16"
AUTO = {"clm": AutoModelForCausalLM, "mlm": AutoModelForMaskedLM, "electra": AutoModelForPreTraining}
CODE = {"clm": "modeling_attn_gpt.py", "mlm": "modeling_attn_bert.py", "electra": "modeling_attn_bert.py"}


@pytest.fixture(scope="module")
def script():
    return load_script("scripts/train_language_model.py")


def command(objective, output, *words, steps=4):
    return [
        *("--objective", objective, "--recipe", "tiny", "--output_dir", str(output), "--max_steps", str(steps)),
        *(() if "--model_name_or_path" in words else ("--config_overrides", TINY)),
        *(() if "--train_file" in words else ("--phrasebook", "en", "--max_train_samples", "150")),
        *("--max_eval_samples", "12", "--vocab_size", "340", "--pseudo_samples", "2", "--tokens_per_batch", "400"),
        *("--save_steps", "2", "--eval_steps", "2", "--logging_steps", "1", "--disable_tqdm", "true", "--use_cpu"),
        *("--bf16", "false", "--report_to", "none", *words),
    ]


@pytest.fixture(scope="module")
def runs(script, tmp_path_factory):
    """A short run of each objective: its folder and the numbers it returned."""
    folder = tmp_path_factory.mktemp("runs")
    return {kind: (folder / kind, script.main(command(kind, folder / kind, "--floors", "true"))) for kind in AUTO}


@pytest.mark.parametrize("kind", AUTO)
def test_the_folder_is_a_model_with_tokenizer_code_numbers_and_record(runs, kind):
    folder, results = runs[kind]
    model, info = AUTO[kind].from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.config.vocab_size == len(tokenizer) <= 340 and model.config.hidden_size == 16
    assert (folder / CODE[kind]).is_file() and "auto_map" in json.loads((folder / "config.json").read_text())
    saved = json.loads((folder / "all_results.json").read_text())
    assert results.items() <= saved.items() and saved["train_steps"] == 4 and 0 < saved["train_loss"] < math.inf
    record = json.loads((folder / "run.json").read_text())
    assert (record["objective"], record["recipe"], record["phrasebook"]) == (kind, "tiny", "en")
    assert record["settings"]["max_steps"] == 4 and str(folder) not in json.dumps(record)
    if kind == "electra":
        generator = AutoModelForMaskedLM.from_pretrained(folder / "generator")
        assert generator.config.hidden_size == 8
        assert torch.equal(generator.model.embed_tokens.weight, model.model.embed_tokens.weight)


def test_numbers_of_a_causal_run_are_those_of_its_saved_model(runs):
    folder, results = runs["clm"]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    texts, losses = phrasebook_texts("en", "validation", 12), []
    for row in text_rows(texts, tokenizer, 64):
        ids = torch.tensor([row])
        with torch.no_grad():
            log_probs = model(input_ids=ids).logits[0, :-1].double().log_softmax(dim=-1)
        losses += (-log_probs[range(ids.shape[1] - 1), ids[0, 1:]]).tolist()
    assert results["eval_perplexity"] == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-5)
    assert results["eval_word_perplexity"] == pytest.approx(math.exp(sum(losses) / count_words(texts)), rel=1e-5)


def test_every_objective_has_its_numbers_and_floors(runs):
    expected = {
        "clm": {"eval_perplexity", "eval_word_perplexity", "eval_floor_unigram_word_perplexity",
                "eval_floor_5gram_word_perplexity"},
        "mlm": {"eval_accuracy", "eval_perplexity", "eval_pseudo_perplexity", "eval_pseudo_word_perplexity",
                "eval_floor_commonest_accuracy", "eval_floor_neighbours_accuracy"},
        "electra": {"eval_accuracy", "eval_recall", "eval_generator_perplexity", "eval_floor_neighbours_accuracy"},
    }  # fmt: skip
    for kind, names in expected.items():
        assert names <= set(runs[kind][1])


@pytest.mark.parametrize("kind", AUTO)
def test_an_interrupted_run_goes_on_to_the_same_weights(script, runs, tmp_path, capsys, kind):
    folder = runs[kind][0]
    shutil.copytree(folder / "checkpoint-2", tmp_path / "checkpoint-2")  # as if it had been killed after two updates
    script.main(command(kind, tmp_path, "--do_eval", "false"))
    assert re.search(r"Resuming from \S*checkpoint-2", capsys.readouterr().out)
    whole, resumed = (load_file(where / "model.safetensors") for where in (folder, tmp_path))
    numbers = [json.loads((where / "train_results.json").read_text()) for where in (folder, tmp_path)]
    assert numbers[0] == pytest.approx(numbers[1])  # the loss is that of the whole run
    assert whole.keys() == resumed.keys() and all(torch.equal(whole[name], resumed[name]) for name in whole)
    first = load_file(folder / "checkpoint-2" / "model.safetensors")
    assert not any(torch.equal(first[name], whole[name]) for name in whole.keys() & first.keys())


@pytest.mark.parametrize("kind", AUTO)
def test_a_saved_model_is_measured_alike_and_trained_further(script, runs, tmp_path, kind):
    folder, results = runs[kind]
    again = script.main(command(kind, tmp_path / "a", "--model_name_or_path", str(folder), "--do_train", "false"))
    for name in ("eval_loss", "eval_accuracy"):
        assert again[name] == pytest.approx(results[name], rel=1e-5)
    further = command(kind, tmp_path / "b", "--model_name_or_path", str(folder), "--do_eval", "false", steps=1)
    script.main([*further, "--learning_rate", "0"])
    before, after = (load_file(where / "model.safetensors") for where in (folder, tmp_path / "b"))
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def test_texts_of_a_file_are_held_out_and_checkpoints_averaged(script, tmp_path, capsys):
    texts = phrasebook_texts("fr", size=100)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    words = ("--train_file", str(tmp_path / "texts.txt"), "--held_out", "0.1", "--average_checkpoints", "2")
    script.main(command("mlm", tmp_path / "out", *words))
    out = capsys.readouterr().out
    assert "90 texts of" in out and "10 held out" in out
    assert len(re.findall(r"<mask>.*\n    \S+: \[", out)) == 5  # filled blanks
    parts = [load_file(tmp_path / "out" / f"checkpoint-{step}" / "model.safetensors") for step in (2, 4)]
    for name, tensor in load_file(tmp_path / "out" / "model.safetensors").items():
        torch.testing.assert_close(tensor, (parts[0][name] + parts[1][name]) / 2)


def test_pipelines_go_on_with_a_text_and_fill_a_mask(runs):
    writer = pipeline("text-generation", str(runs["clm"][0]))
    assert writer("The old man", max_new_tokens=3, do_sample=False)[0]["generated_text"].startswith("The old man")
    filler = pipeline("fill-mask", str(runs["mlm"][0]))
    found = filler("The old <mask> reads.")
    assert len(found) == 5 and all("reads" in one["sequence"] for one in found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--phrasebook", "en", "--train_file", "x.txt"], "give one of train_file, dataset_name, phrasebook"),
        (["--objective", "mlm"], "give one of"),
        (["--phrasebook", "de"], "phrasebook='de'"),
        (["--train_file", "nowhere.txt"], "there is no file nowhere.txt"),
        (["--phrasebook", "en", "--recipe", "huge"], "recipe must be one of base, small, tiny"),
        (["--phrasebook", "en", "--mask_ratio", "0"], "mask_ratio"),
        (["--phrasebook", "en", "--max_length", "2"], "max_length must be 4"),
        (["--phrasebook", "en", "--max_minutes", "0"], "max_minutes"),
        (["--phrasebook", "en", "--do_train", "false"], "needs model_name_or_path"),
        (["--phrasebook", "en", "--average_checkpoints", "9"], "average_checkpoints=9"),
        (["--phrasebook", "en", "--model_name_or_path", "a", "--tokenizer_name", "b"], "leave out"),
        (["--phrasebook", "en", "--config_overrides", "wings=2", "--max_train_samples", "9"], "no config field wings"),
    ],
)
def test_a_mistake_is_one_sentence(script, tmp_path, words, message):
    with pytest.raises(SystemExit, match="^error: .*" + re.escape(message)):
        script.main([*words, "--output_dir", str(tmp_path)])


def test_an_output_folder_is_asked_for(script):
    with pytest.raises(SystemExit, match="output_dir is missing"):
        script.main(["--phrasebook", "en"])
