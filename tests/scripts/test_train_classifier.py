"""The classifier script, end to end: from examples to a saved model that pipelines open, labels and numbers."""

import itertools
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from scripting import load_script
from sklearn.metrics import accuracy_score, f1_score
from transformers import AutoModelForTokenClassification, pipeline

from hf_attn.data.labels import TAGS

TINY = "hidden_size=16,num_hidden_layers=1,num_attention_heads=2,intermediate_size=16"
ANIMALS, THINGS = ("cat", "dog", "bird", "horse"), ("lamp", "table", "book", "house")
TEXTS = [(f"the {name} {verb} today", "animal") for name in ANIMALS for verb in ("is", "was", "seems")]
TEXTS += [(f"the {name} {verb} today", "thing") for name in THINGS for verb in ("is", "was", "seems")]


@pytest.fixture(scope="module")
def script():
    return load_script("scripts/train_classifier.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, rows in (("train", TEXTS * 2), ("dev", TEXTS[::3]), ("test", TEXTS[1::2])):
        lines = [f"{text}\t{label}\n" for text, label in rows]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        tags = {"animal": "B-animal", "thing": "O"}
        words = [{"tokens": text.split(), "tags": ["O", tags[label], "O", "O"]} for text, label in rows]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in words), encoding="utf-8")
    return folder


def command(task, output, *words, data=None, suffix="tsv"):
    files = [] if data is None else ["--train_file", f"{data}/train.{suffix}"]
    if data is not None:
        files += ["--validation_file", f"{data}/dev.{suffix}", "--test_file", f"{data}/test.{suffix}"]
    small = ["--vocab_size", "300", "--disable_tqdm", "true", "--use_cpu", "--bf16", "false", "--logging_steps", "1"]
    return ["--task", task, "--output_dir", str(output), *files, *small, *words]


def scratch(task, output, *words, **options):
    return command(task, output, "--config_overrides", TINY, "--learning_rate", "0.01", *words, **options)


@pytest.mark.parametrize("model_type", ["attn-bert", "attn-gpt", "bert"])
def test_texts_are_learned_and_the_folder_is_a_pipeline(script, data, tmp_path, model_type):
    words = ["--model_type", model_type, "--num_train_epochs", "6", "--per_device_train_batch_size", "8"]
    results = script.main(scratch("text", tmp_path, *words, data=data))
    gold = [label for _, label in TEXTS[1::2]]
    said = (tmp_path / "predictions.txt").read_text().split("\n")[:-1]
    assert results["test_accuracy"] == pytest.approx(accuracy_score(gold, said)) and results["test_accuracy"] > 0.9
    assert results["test_macro_f1"] == pytest.approx(f1_score(gold, said, average="macro"))
    assert results["test_accuracy_low"] <= results["test_accuracy"] <= results["test_accuracy_high"]
    written = json.loads((tmp_path / "all_results.json").read_text())
    assert written["test_confusion"] == results["test_confusion"] and {"train_loss", "eval_accuracy"} <= set(written)
    classify = pipeline("text-classification", model=str(tmp_path), device="cpu")
    assert [one["label"] for one in classify([text for text, _ in TEXTS[1::2]])] == said


def test_tagged_words_are_learned_by_entities(script, data, tmp_path):
    words = ["--num_train_epochs", "6", "--per_device_train_batch_size", "8"]
    results = script.main(scratch("tokens", tmp_path, *words, data=data, suffix="jsonl"))
    assert results["test_entity_f1"] > 0.9 and set(results["test_f1"]) == {"B-animal", "O"}
    said = [line.split() for line in (tmp_path / "predictions.txt").read_text().split("\n")[:-1]]
    assert [len(tags) for tags in said] == [4] * len(TEXTS[1::2])
    gold = ["B-animal" if label == "animal" else "O" for _, label in TEXTS[1::2] for _ in range(1)]
    assert accuracy_score(gold, [tags[1] for tags in said]) > 0.9
    assert AutoModelForTokenClassification.from_pretrained(tmp_path).config.id2label == {0: "B-animal", 1: "O"}


def test_a_run_that_was_interrupted_ends_where_the_whole_one_does(script, data, tmp_path):
    steps = ["--max_steps", "4", "--save_strategy", "steps", "--save_steps", "2", "--eval_strategy", "steps"]
    steps += ["--eval_steps", "2", "--save_total_limit", "4"]
    whole = script.main(scratch("text", tmp_path / "whole", *steps, data=data))
    shutil.copytree(tmp_path / "whole" / "checkpoint-2", tmp_path / "cut" / "checkpoint-2")
    resumed = script.main(scratch("text", tmp_path / "cut", *steps, data=data))
    weights = [load_file(tmp_path / name / "checkpoint-4" / "model.safetensors") for name in ("whole", "cut")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    again = script.main(scratch("text", tmp_path / "cut", *steps, data=data))  # is at its end: takes no step
    assert whole["test_accuracy"] == resumed["test_accuracy"] == again["test_accuracy"]
    assert json.loads((tmp_path / "cut" / "trainer_state.json").read_text())["global_step"] == 4


def test_from_scratch_takes_the_architecture_and_leaves_the_weights(script, data, tmp_path):
    script.main(scratch("text", tmp_path / "first", "--max_steps", "1", data=data))
    first = load_file(tmp_path / "first" / "model.safetensors")
    still = ["--model_name_or_path", str(tmp_path / "first"), "--learning_rate", "0", "--max_steps", "1"]
    for name, extra in (("tuned", []), ("scratch", ["--from_scratch"])):
        output = tmp_path / name
        script.main(command("tokens", output, *still, *extra, data=data, suffix="jsonl"))
        weights = load_file(output / "model.safetensors")
        same = torch.equal(weights["model.embed_tokens.weight"], first["model.embed_tokens.weight"])
        assert same == (name == "tuned")
        assert (output / "tokenizer.json").read_text() == (tmp_path / "first" / "tokenizer.json").read_text()
        record = json.loads((output / "run.json").read_text())
        assert record["trained_further"] == (name == "tuned") and str(tmp_path) not in json.dumps(record)


def test_a_model_is_measured_without_training(script, data, tmp_path):
    trained = script.main(scratch("text", tmp_path / "first", "--max_steps", "8", data=data))
    words = ["--model_name_or_path", str(tmp_path / "first"), "--do_train", "false", "--test_file", f"{data}/test.tsv"]
    measured = script.main(command("text", tmp_path / "second", *words))
    assert measured["test_confusion"] == trained["test_confusion"]


@pytest.mark.parametrize("do_train", ["true", "false"])
def test_without_examples_to_measure_on_nothing_is_measured(script, data, tmp_path, do_train):
    train, model = ["--train_file", f"{data}/train.tsv"], str(tmp_path / "model")
    script.main(scratch("text", model, "--max_steps", "1", *train))
    more = ["--model_name_or_path", model, "--do_train", do_train, "--max_steps", "1"]
    assert script.main(command("text", tmp_path / "out", *more, *train)) == {}


@pytest.mark.parametrize(
    ("task", "name", "row"),
    [("text", "one.tsv", "a\tx\n"), ("tokens", "one.jsonl", '{"tokens": ["a"], "tags": ["x"]}\n')],
)
def test_a_single_label_is_nothing_to_learn(script, tmp_path, task, name, row):
    """A model with one output would be taken for one that learns numbers."""
    (tmp_path / name).write_text(row * 3, encoding="utf-8")
    with pytest.raises(SystemExit, match="two labels at least, got x alone"):
        script.main(scratch(task, tmp_path / "out", "--train_file", str(tmp_path / name)))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    place, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for split, count in (("train", 24), ("validation", 8), ("test", 8)):
        for label, side in (("left", 0), ("right", 4)):
            folder = place / split / label
            folder.mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 60, (8, 8)).astype(np.uint8)
                pixels[:, side : side + 4] += 150
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return place


def picture_words(place, model_type):
    files = [word for split in ("train", "validation", "test") for word in (f"--{split}_file", str(place / split))]
    return [*files, "--model_type", model_type, "--per_device_train_batch_size", "8"]


def test_images_of_a_folder_are_learned(script, pictures, tmp_path):
    words = [*picture_words(pictures, "attn-vit"), "--num_train_epochs", "6", "--max_shift", "1"]
    results = script.main(scratch("images", tmp_path, *words))
    said = (tmp_path / "predictions.txt").read_text().split()
    assert results["test_accuracy"] == accuracy_score(["left"] * 8 + ["right"] * 8, said) > 0.9
    classify = pipeline("image-classification", model=str(tmp_path), device="cpu")
    files = [str(pictures / "test" / label / "3.png") for label in ("left", "right")]
    assert [one[0]["label"] for one in classify(files)] == [said[3], said[11]]


@pytest.mark.parametrize("model_type", ["attn-vit", "vit"])  # transformers' ViT is saved under names of its past
def test_the_model_that_was_measured_as_the_best_is_kept(script, pictures, tmp_path, model_type, monkeypatch):
    worse = itertools.count(0, -1)  # the first of the two is the best
    monkeypatch.setattr(script, "metrics_function", lambda names, samples=0: lambda _: {"macro_f1": float(next(worse))})
    script.main(scratch("images", tmp_path, *picture_words(pictures, model_type), "--num_train_epochs", "2"))
    folders = ("checkpoint-6", "checkpoint-12", "")
    best, last, kept = (load_file(tmp_path / folder / "model.safetensors") for folder in folders)
    assert all(torch.equal(kept[name], best[name]) for name in kept)
    assert not any(torch.equal(kept[name], last[name]) for name in kept if name.endswith("weight"))


def test_examples_of_a_plain_text_are_split_by_its_lines(script, tmp_path):
    lines = [f"The {name} of {other} is here, {name}." for name in ANIMALS + THINGS for other in ANIMALS + THINGS]
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "parts.tsv").write_text("The cat of cat\tanimals\nThe lamp of cat\tthings\n", encoding="utf-8")
    arguments = ["--text_file", str(tmp_path / "text.txt"), "--held_out", "0.25", "--labels", "parts"]
    arguments += ["--boundaries_file", str(tmp_path / "parts.tsv")]
    args, _ = script.parse(command("text", tmp_path, *arguments))
    splits = script.load_splits(args)
    rows = {split: list(zip(dataset["text"], dataset["label"])) for split, dataset in splits.items()}
    assert sorted(row for some in rows.values() for row in some) == sorted(
        zip(lines, ["animals"] * 32 + ["things"] * 32)
    )
    assert len(rows["test"]) == 16 and len(rows["validation"]) == 12
    args, _ = script.parse(command("tokens", tmp_path, "--text_file", arguments[1], "--words_per_example", "5"))
    splits = script.load_splits(args)
    assert all({tag for tags in dataset["tags"] for tag in tags} <= set(TAGS) for dataset in splits.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--task", "text"], "output_dir is missing"),
        (["--task", "sound", "--output_dir", "out"], "sound"),
        (["--from_scratch"], "from_scratch needs model_name_or_path"),
        (["--model_name_or_path", "a", "--model_type", "bert"], "leave out model_name_or_path"),
        (["--model_name_or_path", "./nowhere"], "nowhere"),
        (["--train_file", "a.tsv", "--text_file", "b.txt"], "give one of train_file"),
        (["--train_file", "nowhere.tsv"], "no file nowhere.tsv"),
        (["--test_file", __file__], "must be .tsv or JSON lines"),
        (["--text_file", "nowhere.txt"], "nowhere.txt"),
        (["--labels", "punctuation"], "do not go with task=text"),
        (["--labels", "parts"], "go together"),
        (["--config_overrides", "hidden_sise=8"], "no config field hidden_sise"),
        (["--config_overrides", "hidden_size=9"], "hidden_size=9"),
    ],
)
def test_a_mistake_is_one_sentence(script, data, words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = words if "--task" in words else ["--task", "text", "--output_dir", "out", *words]
    if not any(word.endswith("_file") or word == "--labels" for word in words):
        words = [*words, "--train_file", f"{data}/train.tsv"]
    with pytest.raises(SystemExit) as stopped:
        script.main(words)
    assert message in f"{stopped.value}{capsys.readouterr().err}"
