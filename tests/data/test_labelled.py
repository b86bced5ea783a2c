"""Labelled examples from files, folders and data sets: what is in them arrives, what is wrong with them is said."""

import json

import numpy as np
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value
from PIL import Image

from hf_attn.data.labelled import label_names, load_labelled, name_labels


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_a_table_gives_texts_or_pairs_of_texts(tmp_path):
    rows = load_labelled(
        write(tmp_path / "a.tsv", "It rains.\tweather", "", "Buon giorno\u2028a tutti\tgreeting"), "text"
    )
    assert rows.to_list() == [
        {"text": "It rains.", "label": "weather"}, {"text": "Buon giorno\u2028a tutti", "label": "greeting"},
    ]  # fmt: skip
    rows = load_labelled(write(tmp_path / "b.tsv", "a\tb\t1"), "text")
    assert rows.to_list() == [{"text": "a", "text_pair": "b", "label": "1"}]


def test_json_lines_give_texts_and_tagged_words(tmp_path):
    lines = [{"text": "a", "label": 1, "more": 0}, {"text": "b", "label": 0}]
    assert list(load_labelled(write(tmp_path / "a.jsonl", *map(json.dumps, lines)), "text")["label"]) == ["1", "0"]
    words = {"tokens": ["New", "York"], "tags": ["B-place", "I-place"]}
    assert load_labelled(write(tmp_path / "b.jsonl", json.dumps(words)), "tokens").to_list() == [words]


@pytest.mark.parametrize(
    ("name", "task", "lines", "message"),
    [
        ("a.tsv", "text", ["a\tb", "a"], "a.tsv, line 2: .* got 1 cells"),
        ("a.tsv", "text", ["a\tb", "a\tb\tc"], "line 2: all lines must have two texts, or none"),
        ("a.jsonl", "text", ['{"text": "a"}'], "line 1: must have 'text' and 'label'"),
        ("a.jsonl", "text", ['{"text": 1, "label": "a"}'], "texts must be strings"),
        ("a.jsonl", "text", ["{"], "line 1: must be one JSON object"),
        ("a.jsonl", "tokens", ['{"tokens": ["a", "b"], "tags": ["O"]}'], "lists of as many strings"),
        ("a.jsonl", "tokens", ['{"tokens": "ab", "tags": "OO"}'], "lists of as many strings"),
        ("a.jsonl", "text", ['{"text": "a \\ud83d", "label": "a"}'], "line 1: the texts must be strings"),
        ("a.jsonl", "text", ['{"text": "a", "label": "\\ud83d"}'], "line 1: the texts must be strings"),
        ("a.jsonl", "tokens", ['{"tokens": ["\\ud83d"], "tags": ["O"]}'], "line 1: tokens and tags must be lists"),
        ("a.tsv", "tokens", ["a\tb"], "must be JSON lines"),
        ("a.txt", "text", ["a\tb"], "must be .tsv or JSON lines"),
        ("a.tsv", "text", [""], "holds no examples"),
        ("a.tsv", "sound", ["a\tb"], "task='sound'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(tmp_path, name, task, lines, message):
    with pytest.raises(ValueError, match=message):
        load_labelled(write(tmp_path / name, *lines), task)


@pytest.mark.parametrize(("task", "what"), [("text", "file"), ("images", "folder")])
def test_what_is_not_there_is_said(tmp_path, task, what):
    with pytest.raises(FileNotFoundError, match=f"no {what} .*nowhere"):
        load_labelled(tmp_path / "nowhere", task)


def test_a_folder_for_each_class_gives_its_images(tmp_path):
    for number, label in enumerate(["cat", "dog", "cat"]):
        folder = tmp_path / label
        folder.mkdir(exist_ok=True)
        Image.fromarray(np.full((4, 5), number * 90, dtype=np.uint8)).save(folder / f"{number}.png")
    write(tmp_path / "cat" / "notes.txt", "no image")
    rows = load_labelled(tmp_path, "images")
    assert list(rows["label"]) == ["cat", "cat", "dog"]
    assert [np.asarray(image)[0, 0] for image in rows["image"]] == [0, 180, 90]


def test_a_data_set_gives_the_usual_columns_and_names(tmp_path):
    names = ClassLabel(names=["no", "yes"])
    text = Value("string")
    features = Features({"premise": text, "hypothesis": text, "label": names, "idx": Value("int64")})
    columns = {"premise": ["a", "b"], "hypothesis": ["c", "d"], "label": [1, 0], "idx": [5, 6]}
    Dataset.from_dict(columns, features=features).to_parquet(str(tmp_path / "train.parquet"))
    rows = load_labelled(str(tmp_path), "text", split="train")
    assert rows.to_list() == [
        {"text": "a", "text_pair": "c", "label": "yes"}, {"text": "b", "text_pair": "d", "label": "no"},
    ]  # fmt: skip
    with pytest.raises(ValueError, match="none of tokens, words"):
        load_labelled(str(tmp_path), "tokens", split="train")


def test_numbers_of_tags_become_names():
    features = Features({"tokens": List(Value("string")), "tags": List(ClassLabel(names=["O", "B-who"]))})
    rows = Dataset.from_dict({"tokens": [["a", "b"]], "tags": [[1, 0]]}, features=features)
    assert list(name_labels(rows, "tokens")["tags"]) == [["B-who", "O"]]


def test_labels_are_listed_by_size_or_by_the_alphabet():
    assert label_names(Dataset.from_dict({"label": ["10", "2", "b", "a", "2"]}), "text") == ["2", "10", "a", "b"]
    assert label_names(Dataset.from_dict({"tags": [["b"], ["a", "b"]]}), "tokens") == ["a", "b"]
