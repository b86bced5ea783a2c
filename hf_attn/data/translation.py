"""Load sentence pairs from files or the Hub and turn them into the ids that a model trains on.

Read `tokenizer.py` for the ids and `synthetic.py` for pairs that need no file.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedTokenizerBase

from ..models.checks import is_whole

if TYPE_CHECKING:
    from datasets import Dataset

_SUFFIXES = (".tsv", ".jsonl", ".json")
_SPLIT_NAMES = (("train", "training"), ("validation", "valid", "val", "dev"), ("test", "testing"))
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_Pair = tuple[str, str]


def load_pairs(
    source: str | os.PathLike | tuple | list,
    source_lang: str,
    target_lang: str,
    *,
    split: str | None = None,
    group_references: bool = False,
) -> Dataset:
    """Load sentence pairs, in their order.

    The source may be

    - a `.tsv` file of two columns, the source language first. If the file's name says otherwise ("news.en-fr.tsv" with
      source_lang "fr"), the columns are what the name says;
    - a `.jsonl` or `.json` file of one object a line, `{"translation": {"en": ..., "fr": ...}}` or
      `{"en": ..., "fr": ...}`;
    - two plain text files, (source, target), of as many lines each;
    - a folder that holds one such `.tsv` or JSON file for the split, named `train.tsv` or `<anything>.train.tsv`
      ("dev", "valid" and "validation" mean the same);
    - if there is no such path: the name of a dataset for `datasets.load_dataset`, in its "en-fr" or "fr-en"
      configuration where it has one.

    Files are UTF-8, with or without byte order mark. Lines end with a line feed, or a carriage return and line feed,
    and with nothing else: other line separators belong to the sentence. Text is not changed. Pairs with an empty side
    are dropped, and a warning says how many.

    Args:
        source: where the pairs are.
        source_lang: key of the source sentence in each row, such as "en".
        target_lang: key of the target sentence.
        split: "train", "validation", "test" for a folder or a dataset name; None for files.
        group_references: give one row for each distinct source sentence, with all its translations.

    Returns:
        A dataset with the column "translation", `{source_lang: text, target_lang: text}`; with `group_references` also
        "references", a list of the distinct target sentences, the first of which stands in "translation".

    Raises:
        TypeError: if the source is no path.
        ValueError: for a file that is not what it should be, with its name and the number of the line.
        FileNotFoundError: for a file name that does not exist.
    """
    names = [name for name in (source_lang, target_lang) if isinstance(name, str) and name]
    if len(set(names)) != 2:
        raise ValueError(
            f"source_lang and target_lang must be two different names, got {source_lang!r} and {target_lang!r}"
        )
    languages = (source_lang, target_lang)
    pairs, dropped = [], 0
    for pair in _find_pairs(source, languages, split):
        if pair[0].strip() and pair[1].strip():
            pairs.append(pair)
        else:
            dropped += 1
    if dropped:
        warnings.warn(f"{dropped} pairs with an empty side were dropped from {_name(source)}", stacklevel=2)
    if not pairs:
        raise ValueError(f"source must hold sentence pairs, got none from {_name(source)}")
    return _to_dataset(pairs, languages, group_references)


def tokenize_pairs(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    source_lang: str,
    target_lang: str,
    *,
    target_tokenizer: PreTrainedTokenizerBase | None = None,
    max_source_length: int | None = None,
    max_target_length: int | None = None,
    num_proc: int | None = None,
) -> Dataset:
    """Turn sentence pairs into ids. Each sentence ends with the end-of-sentence token, also when it was cut.

    A warning says how many sentences were cut.

    Args:
        dataset: with a "translation" column, as from `load_pairs`.
        tokenizer: for the source and, unless there is a `target_tokenizer`, the target.
        source_lang: key of the source sentence in "translation".
        target_lang: key of the target sentence.
        target_tokenizer: for a model with two vocabularies.
        max_source_length: longest source in tokens, the last included; None cuts nothing.
        max_target_length: the same for the target.
        num_proc: number of processes; None works in this one.

    Returns:
        A dataset with the columns "input_ids", "attention_mask" and "labels", lists of different lengths, not padded.

    Raises:
        TypeError: if dataset is no dataset, or tokenizer no tokenizer.
        ValueError: for a length below 2, a tokenizer without end-of-sentence token, or a dataset that is empty or
            lacks a language.
    """
    from datasets import Dataset, Features, List, Value

    for name, length in (("max_source_length", max_source_length), ("max_target_length", max_target_length)):
        if length is not None and not is_whole(length, 2):
            raise ValueError(
                f"{name} must be a whole number of at least 2 (a piece and the end of the sentence), got {length!r}"
            )
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a datasets.Dataset, as from load_pairs, got {type(dataset).__name__}")
    if not len(dataset) or "translation" not in dataset.column_names:
        raise ValueError(
            f"dataset must have rows and a 'translation' column, got {len(dataset)}, {dataset.column_names}"
        )
    for name, language in (("source_lang", source_lang), ("target_lang", target_lang)):
        if language not in dataset[0]["translation"]:
            raise ValueError(f"{name} must be one of {sorted(dataset[0]['translation'])}, got {language!r}")
    encode_source = _encoder(tokenizer, "text", max_source_length)
    if target_tokenizer is None:
        encode_target = _encoder(tokenizer, "text_target", max_target_length)
    else:
        encode_target = _encoder(target_tokenizer, "text", max_target_length)

    def encode(batch: dict[str, list]) -> dict[str, list]:
        sources, sources_cut = encode_source([row[source_lang] for row in batch["translation"]])
        targets, targets_cut = encode_target([row[target_lang] for row in batch["translation"]])
        return {
            "input_ids": sources,
            "attention_mask": [[1] * len(ids) for ids in sources],
            "labels": targets,
            "source_cut": sources_cut,
            "target_cut": targets_cut,
        }

    features = Features(
        input_ids=List(Value("int32")),
        attention_mask=List(Value("int8")),
        labels=List(Value("int64")),
        source_cut=Value("bool"),
        target_cut=Value("bool"),
    )
    encoded = dataset.map(
        encode,
        batched=True,
        remove_columns=dataset.column_names,
        features=features,
        num_proc=num_proc,
        desc="Tokenizing",
    )
    cut = {name: sum(encoded[f"{name}_cut"]) for name in ("source", "target")}
    if any(cut.values()):
        warnings.warn(
            f"of {len(encoded)} pairs, {cut['source']} sources were cut to {max_source_length} tokens "
            f"and {cut['target']} targets to {max_target_length}",
            stacklevel=2,
        )
    return encoded.remove_columns(["source_cut", "target_cut"])


def _encoder(
    tokenizer: PreTrainedTokenizerBase, argument: str, max_length: int | None
) -> Callable[[list[str]], tuple[list[list[int]], list[bool]]]:
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise TypeError(f"tokenizer must be a tokenizer of transformers, got {type(tokenizer).__name__}")
    end = tokenizer.eos_token_id
    if end is None:
        raise ValueError("tokenizer must have an end-of-sentence token, got one without eos_token")

    def encode(texts: list[str]) -> tuple[list[list[int]], list[bool]]:
        rows, cut = [], []
        arguments: dict[str, Any] = {argument: texts, "truncation": False, "verbose": False}
        for ids in tokenizer(**arguments)["input_ids"]:
            if not ids or ids[-1] != end:
                ids = [*ids, end]
            if max_length is not None and len(ids) > max_length:
                rows.append([*ids[: max_length - 1], end])
                cut.append(True)
            else:
                rows.append(ids)
                cut.append(False)
        return rows, cut

    return encode


def _name(source: Any) -> str:
    return " and ".join(map(str, source)) if isinstance(source, (tuple, list)) else str(source)


def _find_pairs(source: Any, languages: _Pair, split: str | None) -> Iterator[_Pair]:
    """Decide what `source` is and read it."""
    if isinstance(source, (tuple, list)):
        if len(source) != 2:
            raise ValueError(f"source must be one path or (source file, target file), got {len(source)} items")
        _refuse_split(split)
        yield from _read_two_files(_path(source[0]), _path(source[1]))
        return
    path = _path(source)
    if path.is_dir():
        path = _file_in_folder(path, split)
    elif path.exists():
        _refuse_split(split)
    elif isinstance(source, str) and _HUB_NAME.fullmatch(source) and path.suffix.lower() not in _SUFFIXES:
        yield from _read_hub(source, languages, split)
        return
    else:
        raise FileNotFoundError(f"source: there is no file or folder {source}")
    if path.suffix.lower() == ".tsv":
        yield from _read_tsv(path, languages)
    elif path.suffix.lower() in _SUFFIXES:
        yield from _read_json_lines(path, languages)
    else:
        raise ValueError(f"source must be a {', '.join(_SUFFIXES)} file or two plain text files, got {path}")


def _path(source: Any) -> Path:
    if not isinstance(source, (str, os.PathLike)) or not os.fspath(source):
        raise TypeError(f"source must be a path, a pair of paths or the name of a dataset, got {source!r}")
    return Path(source)


def _refuse_split(split: str | None) -> None:
    if split is not None:
        raise ValueError(f"split must be None where source is a file, got {split!r}")


def _file_in_folder(folder: Path, split: str | None) -> Path:
    if split is None:
        raise ValueError(f"split must be given where source is a folder ({folder})")
    names = next((names for names in _SPLIT_NAMES if split in names), (split,))
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in _SUFFIXES and path.is_file() and path.stem.rpartition(".")[2] in names
    )
    if len(found) != 1:
        patterns = ", ".join(f"*.{name}.tsv|jsonl|json" for name in names)
        got = ", ".join(path.name for path in found) or "none"
        raise ValueError(f"source folder {folder} must hold exactly one file {patterns} for split={split!r}, got {got}")
    return found[0]


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbers, from 1, and the texts of the lines."""
    with open(path, "rb") as file:  # as bytes: the text modes of Python end lines at more than "\n"
        for number, raw in enumerate(file, start=1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            raw = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                reason = f"{error.reason} at byte {error.start + 1}"
                raise ValueError(f"{path}, line {number}: not valid UTF-8 ({reason})") from None
            if "\0" in line:
                raise ValueError(f"{path}, line {number}: holds a NUL byte; is this a text file in UTF-8?")
            yield number, line


def _read_two_files(source: Path, target: Path) -> Iterator[_Pair]:
    sources = [line for _, line in read_lines(source)]
    targets = [line for _, line in read_lines(target)]
    if len(sources) != len(targets):
        raise ValueError(
            f"the two files must have as many lines each, got {len(sources)} in {source} and {len(targets)} in {target}"
        )
    yield from zip(sources, targets, strict=True)


def _read_tsv(path: Path, languages: _Pair) -> Iterator[_Pair]:
    named = re.split(r"[._]", path.name)
    swapped = f"{languages[1]}-{languages[0]}" in named and f"{languages[0]}-{languages[1]}" not in named
    for number, line in read_lines(path):
        columns = line.split("\t") if line.strip() else ["", ""]
        if len(columns) != 2:
            raise ValueError(f"{path}, line {number}: must have 2 columns, got {len(columns)}")
        first, second = reversed(columns) if swapped else columns
        yield first, second


def _read_json_lines(path: Path, languages: _Pair) -> Iterator[_Pair]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{place}: must be one JSON object a line ({error})") from None
        yield _pair_of(row, languages, place)


def _read_hub(name: str, languages: _Pair, split: str | None) -> Iterator[_Pair]:
    import datasets

    if split is None:
        raise ValueError(f"split must be given where source is a dataset name; there is no file or folder {name!r}")
    configurations = datasets.get_dataset_config_names(name)
    wanted = [f"{languages[0]}-{languages[1]}", f"{languages[1]}-{languages[0]}"]
    configuration = next((item for item in wanted if item in configurations), None)
    rows = datasets.load_dataset(name, configuration, split=split)
    for number, row in enumerate(rows):
        yield _pair_of(row, languages, f"{name}, row {number}")


def _pair_of(row: Any, languages: _Pair, place: str) -> _Pair:
    texts = row.get("translation", row) if isinstance(row, dict) else None
    if not isinstance(texts, dict):
        raise ValueError(f"{place}: must be an object with the keys {languages[0]!r} and {languages[1]!r}")
    for language in languages:
        text = texts.get(language)
        if not isinstance(text, str):
            raise ValueError(f"{place}: {language!r} must be a string, got {text!r}; the keys are {sorted(texts)}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(f"{place}: {language!r} holds half of a surrogate pair, which is no character") from None
        if "\0" in text:
            raise ValueError(f"{place}: {language!r} holds a NUL character")
    return texts[languages[0]], texts[languages[1]]


def _to_dataset(pairs: list[_Pair], languages: _Pair, group_references: bool) -> Dataset:
    from datasets import Dataset, Features, List, Translation, Value

    features = Features(translation=Translation(languages=list(languages)))
    columns: dict[str, list] = {}
    if group_references:
        references: dict[str, dict[str, None]] = {}  # a dict for an ordered set
        for source, target in pairs:
            references.setdefault(source, {})[target] = None
        pairs = [(source, next(iter(targets))) for source, targets in references.items()]
        columns["references"] = [list(targets) for targets in references.values()]
        features["references"] = List(Value("string"))
    columns["translation"] = [dict(zip(languages, pair, strict=True)) for pair in pairs]
    return Dataset.from_dict(columns, features=features)
