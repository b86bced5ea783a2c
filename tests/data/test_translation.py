import json
import warnings
from pathlib import Path

import datasets
import pytest
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from hf_attn.data import load_pairs, tokenize_pairs, train_tokenizer

PAIRS = [
    ("The cat.", "Le chat."),
    ("A line\u2028inside.", "Une ligne\u2028dedans.\x85"),
    ("  kept  ", "gardé\x0b\x1c "),
]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def tsv(pairs: list[tuple[str, str]], end: str = "\n") -> str:
    return "".join(f"{source}\t{target}{end}" for source, target in pairs)


def rows(dataset: Dataset, first: str = "en", second: str = "fr") -> list[tuple[str, str]]:
    return [(row[first], row[second]) for row in dataset["translation"]]


def flat_json(pairs: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"en": source, "fr": target}) + "\n" for source, target in pairs)


def nested_json(pairs: list[tuple[str, str]]) -> str:
    lines = ({"id": 1, "translation": {"en": source, "fr": target, "it": "x"}} for source, target in pairs)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n\n" for line in lines)


# every form gives the same pairs


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_tsv(tmp_path: Path, end: str, mark: str) -> None:
    path = write(tmp_path / "a.tsv", mark + tsv(PAIRS, end))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = load_pairs(path, "en", "fr")
    assert dataset.column_names == ["translation"]
    assert rows(dataset) == PAIRS
    assert rows(load_pairs(str(path), "en", "fr")) == PAIRS


def test_tsv_without_last_line_feed_and_with_a_lone_carriage_return(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\rb\tc\nd\te")
    assert rows(load_pairs(path, "en", "fr")) == [("a\rb", "c"), ("d", "e")]


@pytest.mark.parametrize("content", [flat_json, nested_json])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_json_lines(tmp_path: Path, content, name: str) -> None:
    path = write(tmp_path / name, "\ufeff" + content(PAIRS))
    assert rows(load_pairs(path, "en", "fr")) == PAIRS


@pytest.mark.parametrize("kind", [tuple, list])
def test_two_files(tmp_path: Path, kind: type) -> None:
    paths = [
        write(tmp_path / "text.en", "\ufeff" + "".join(f"{source}\r\n" for source, _ in PAIRS)),
        write(tmp_path / "text.fr", "\n".join(target for _, target in PAIRS)),
    ]
    assert rows(load_pairs(kind(paths), "en", "fr")) == PAIRS


def test_the_name_of_a_file_gives_the_order_of_its_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "small.en-fr.train.tsv", tsv(PAIRS))
    assert rows(load_pairs(path, "en", "fr")) == PAIRS
    assert rows(load_pairs(path, "fr", "en")) == PAIRS
    other = write(tmp_path / "fr-en.tsv", tsv(PAIRS))
    assert rows(load_pairs(other, "fr", "en"), "fr", "en") == PAIRS


@pytest.mark.parametrize("name", ["small.dev.tsv", "validation.tsv", "a.b.valid.TSV"])
@pytest.mark.parametrize("split", ["dev", "valid", "validation"])
def test_folder(tmp_path: Path, name: str, split: str) -> None:
    write(tmp_path / name, tsv(PAIRS))
    write(tmp_path / "small.train.tsv", "x\ty\n")
    write(tmp_path / "small.dev.txt", "not this")
    assert rows(load_pairs(tmp_path, "en", "fr", split=split)) == PAIRS


def test_dataset_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load_dataset(name: str, configuration: str | None, split: str) -> list[dict]:
        asked.append((name, configuration, split))
        return [{"id": "1", "translation": {"en": "a", "fr": "b"}}]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda name: ["de-en", "en-fr"])
    assert rows(load_pairs("user/books", "fr", "en", split="train")) == [("a", "b")]
    monkeypatch.setattr(datasets, "get_dataset_config_names", lambda name: ["default"])
    load_pairs("books", "en", "fr", split="test")
    assert asked == [("user/books", "en-fr", "train"), ("books", None, "test")]


def test_references_are_grouped(tmp_path: Path) -> None:
    pairs = [("go", "va"), ("stop", "arrête"), ("go", "allez"), ("go", "va"), ("Go", "pars")]
    dataset = load_pairs(write(tmp_path / "a.tsv", tsv(pairs)), "en", "fr", group_references=True)
    assert rows(dataset) == [("go", "va"), ("stop", "arrête"), ("Go", "pars")]
    assert dataset["references"][:] == [["va", "allez"], ["arrête"], ["pars"]]


def test_empty_sides_are_dropped_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\n\tb\na\t \u3000\n\nc\td\n")
    with pytest.warns(UserWarning, match="3 pairs with an empty side .*a.tsv") as caught:
        dataset = load_pairs(path, "en", "fr")
    assert len(caught) == 1
    assert rows(dataset) == [("a", "b"), ("c", "d")]


# errors say what is wrong and where


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\tb\na\tb\tc\n", "a.tsv, line 2.*2 columns.*3"),
        ("a.tsv", "a\tb\n\nalone\n", "a.tsv, line 3.*2 columns.*1"),
        ("a.tsv", b"a\tb\nc\t\xe9t\xe9\n", "a.tsv, line 2.*UTF-8"),
        ("a.tsv", "a\tb\na\0\tb\n", "a.tsv, line 2.*NUL"),
        ("a.tsv", "a\tb\n".encode("utf-16"), "a.tsv, line 1.*UTF-8"),
        ("a.tsv", "", "none"),
        ("a.txt", "a\n", r"\.tsv.*a\.txt"),
        ("a.json", '[{"en": "a", "fr": "b"}]\n', "a.json, line 1.*'en'"),
        ("a.json", '{\n"en": "a"}', "a.json, line 1.*JSON"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n{"en": "a"}\n', "a.jsonl, line 2.*'fr'.*None"),
        ("a.jsonl", '{"en": "a", "fr": ["b"]}\n', "a.jsonl, line 1.*'fr'.*string"),
        ("a.jsonl", '{"translation": "a"}\n', "a.jsonl, line 1"),
        ("a.jsonl", '{"en": "a", "fr": "\\ud83d"}\n', "a.jsonl, line 1.*surrogate"),
        ("a.jsonl", '{"en": "a\\u0000", "fr": "b"}\n', "a.jsonl, line 1.*NUL"),
        ("a.jsonl", "[" * 100_000 + "\n", "a.jsonl, line 1.*JSON"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_pairs(write(tmp_path / name, content), "en", "fr")


def test_unequal_files(tmp_path: Path) -> None:
    paths = write(tmp_path / "a.en", "1\n2\u20282\n3\n"), write(tmp_path / "a.fr", "1\n2\n")
    with pytest.raises(ValueError, match="3 in .*a.en and 2 in .*a.fr"):
        load_pairs(paths, "en", "fr")


def test_bad_arguments(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(ValueError, match="split.*'train'"):
        load_pairs(path, "en", "fr", split="train")
    with pytest.raises(ValueError, match="split.*folder"):
        load_pairs(tmp_path, "en", "fr")
    with pytest.raises(ValueError, match="split.*dataset name"):
        load_pairs("user/books", "en", "fr")
    with pytest.raises(ValueError, match="exactly one file.*none"):
        load_pairs(tmp_path, "en", "fr", split="train")
    for name in ("b.train.tsv", "c.train.jsonl"):
        write(tmp_path / name, "a\tb\n")
    with pytest.raises(ValueError, match="exactly one file.*b.train.tsv, c.train.jsonl"):
        load_pairs(tmp_path, "en", "fr", split="train")
    with pytest.raises(ValueError, match="source_lang and target_lang.*'en' and 'en'"):
        load_pairs(path, "en", "en")
    with pytest.raises(ValueError, match="3 items"):
        load_pairs((path, path, path), "en", "fr")
    for missing in ("none.tsv", tmp_path / "none", "./none", str(tmp_path / "none"), ("none.en", "none.fr")):
        with pytest.raises(FileNotFoundError, match="none"):
            load_pairs(missing, "en", "fr")


# ids

TEXTS = ["one two three four five", "un deux trois quatre cinq", "one", "un"]
DATASET = Dataset.from_dict(
    {
        "translation": [{"en": TEXTS[0], "fr": TEXTS[1]}, {"en": TEXTS[2], "fr": TEXTS[3]}],
        "references": [["a"], ["b"]],
    }
)


def test_ids_are_those_of_the_tokenizer() -> None:
    tokenizer = train_tokenizer(TEXTS, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = tokenize_pairs(DATASET, tokenizer, "en", "fr")
    assert sorted(encoded.column_names) == ["attention_mask", "input_ids", "labels"]
    for row, pair in zip(encoded, DATASET["translation"], strict=True):
        assert row["input_ids"] == tokenizer(pair["en"])["input_ids"]
        assert row["labels"] == tokenizer(text_target=pair["fr"])["input_ids"]
        assert row["attention_mask"] == [1] * len(row["input_ids"])


@pytest.mark.parametrize("num_proc", [None, 2])
def test_cut_sentences_end_with_eos_and_are_counted(num_proc: int | None) -> None:
    tokenizer = train_tokenizer(TEXTS, 50, kind="word")
    with pytest.warns(UserWarning, match="of 2 pairs, 1 sources were cut to 4 tokens and 1 targets to 3") as caught:
        encoded = tokenize_pairs(
            DATASET, tokenizer, "en", "fr", max_source_length=4, max_target_length=3, num_proc=num_proc
        )
    assert len([warning for warning in caught if "were cut" in str(warning.message)]) == 1
    assert [tokenizer.decode(ids) for ids in encoded["input_ids"]] == ["one two three</s>", "one</s>"]
    assert [tokenizer.decode(ids) for ids in encoded["labels"]] == ["un deux</s>", "un</s>"]
    assert [len(mask) for mask in encoded["attention_mask"]] == [4, 2]


def test_two_tokenizers_one_of_which_adds_no_eos() -> None:
    source = train_tokenizer(TEXTS, 50, kind="word")
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "un": 1, "deux": 2, "[END]": 3}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    target = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", eos_token="[END]")
    assert target("un")["input_ids"] == [1]
    encoded = tokenize_pairs(DATASET, source, "en", "fr", target_tokenizer=target)
    assert encoded["labels"][:] == [[1, 2, 0, 0, 0, 3], [1, 3]]
    assert encoded["input_ids"][1] == source("one")["input_ids"]
    endless = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    with pytest.raises(ValueError, match="eos_token"):
        tokenize_pairs(DATASET, source, "en", "fr", target_tokenizer=endless)


def test_bad_arguments_of_tokenize_pairs() -> None:
    tokenizer = train_tokenizer(TEXTS, 50, kind="word")
    with pytest.raises(ValueError, match="rows.*0"):
        tokenize_pairs(DATASET.select([]), tokenizer, "en", "fr")
    with pytest.raises(ValueError, match="max_target_length.*1"):
        tokenize_pairs(DATASET, tokenizer, "en", "fr", max_target_length=1)
    with pytest.raises(ValueError, match="target_lang.*'en', 'fr'.*'it'"):
        tokenize_pairs(DATASET, tokenizer, "en", "it")
    with pytest.raises(ValueError, match="translation.*references"):
        tokenize_pairs(DATASET.remove_columns("translation"), tokenizer, "en", "fr")
