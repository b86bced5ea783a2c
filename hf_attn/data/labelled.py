"""Load labelled examples: texts or pairs of texts with a class, words with tags, images with a class.

Read `labels.py` for examples that nobody has to label.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.checks import check_choice
from .translation import read_lines
from .words import is_text

if TYPE_CHECKING:
    from datasets import Dataset

TASKS = ("text", "tokens", "images")
# by task: the column to read, the column of labels, and what data sets call them too
_COLUMNS = {
    "text": (("text", "sentence", "sentence1", "premise"), ("label", "labels")),
    "tokens": (("tokens", "words"), ("tags", "ner_tags", "pos_tags", "labels")),
    "images": (("image", "img"), ("label", "labels", "fine_label")),
}
_SECOND_TEXTS = ("text_pair", "sentence2", "hypothesis")


def load_labelled(source: str | os.PathLike, task: str, *, split: str | None = None) -> Dataset:
    """Load labelled examples, in their order.

    The source may be

    - for texts a `.tsv` file: text and label, or text, second text and label;
    - for texts and tokens a `.jsonl` or `.json` file of one object a line: `{"text": ..., "label": ...}`, where there
      may be a "text_pair", or `{"tokens": [...], "tags": [...]}`;
    - for images a folder that holds one folder of images for each class;
    - the name of a dataset for `datasets.load_dataset`, with a split.

    Args:
        source: where the examples are.
        task: "text", "tokens" or "images".
        split: of a dataset; None for files and folders.

    Returns:
        A dataset with the columns "text" (and "text_pair") and "label", "tokens" and "tags", or "image" and "label".
        Labels and tags are names.

    Raises:
        FileNotFoundError: if there is no such file or folder.
        ValueError: for a file that is not what it should be, with its name and the number of the line.
    """
    from datasets import Dataset, load_dataset

    check_choice("task", task, TASKS)
    path = Path(source)
    if split is not None:
        dataset: Any = load_dataset(str(source), split=split)
        dataset = _usual_columns(dataset, task)
    elif task == "images" and path.is_dir():
        dataset = _read_folder(path)
    elif task != "images" and path.is_file():
        dataset = Dataset.from_list(list(_read_rows(path, task)))
    else:
        raise FileNotFoundError(f"there is no {'folder' if task == 'images' else 'file'} {source}")
    if not len(dataset):
        raise ValueError(f"{source} holds no examples")
    return dataset


def _read_rows(path: Path, task: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file."""
    pairs = None
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        if not line.strip():
            continue
        if path.suffix.lower() == ".tsv" and task == "text":
            cells = line.split("\t")
            if len(cells) not in (2, 3):
                raise ValueError(
                    f"{place}: must be a text and a label, or two texts and a label, got {len(cells)} cells"
                )
            row: dict[str, Any] = {"text": cells[0], "label": cells[-1].strip()}
            if len(cells) == 3:
                row["text_pair"] = cells[1]
        elif path.suffix.lower() in (".jsonl", ".json"):
            row = _read_object(line, task, place)
        else:
            kinds = ".tsv or JSON lines (.jsonl)" if task == "text" else "JSON lines (.jsonl)"
            raise ValueError(f"{path} must be {kinds}")
        if pairs not in (None, "text_pair" in row):
            raise ValueError(f"{place}: all lines must have two texts, or none")
        pairs = "text_pair" in row
        yield row


def _read_object(line: str, task: str, place: str) -> dict[str, Any]:
    """Read one line of JSON."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}: must be one JSON object a line ({error})") from None
    wanted = {"text": ("text", "label"), "tokens": ("tokens", "tags")}[task]
    if not isinstance(row, dict) or not set(wanted) <= set(row):
        raise ValueError(f"{place}: must have {wanted[0]!r} and {wanted[1]!r}")
    if task == "text":
        texts = {name: row[name] for name in ("text", "text_pair") if name in row}
        if not all(is_text(text) for text in texts.values()) or not (
            is_text(row["label"]) or isinstance(row["label"], int)
        ):
            raise ValueError(f"{place}: the texts must be strings, and the label a string or a number")
        return texts | {"label": str(row["label"])}
    tokens, tags = row["tokens"], row["tags"]
    lists = isinstance(tokens, list) and isinstance(tags, list) and len(tokens) == len(tags) > 0
    if not lists or not all(is_text(one) for one in (*tokens, *tags)):
        raise ValueError(f"{place}: tokens and tags must be lists of as many strings")
    return {"tokens": tokens, "tags": tags}


def _read_folder(path: Path) -> Dataset:
    """Read images, in the order of their names, from a folder for each class."""
    from datasets import Dataset, Features, Image, Value
    from PIL import Image as Picture

    known = set(Picture.registered_extensions())
    files = sorted(file for file in path.glob("*/*") if file.suffix.lower() in known)
    columns = {"image": [str(file) for file in files], "label": [file.parent.name for file in files]}
    return Dataset.from_dict(columns, features=Features({"image": Image(), "label": Value("string")}))


def _usual_columns(dataset: Any, task: str) -> Dataset:
    """Rename the columns of a dataset, drop the others, and give labels by their names."""
    inputs, labels = _COLUMNS[task]
    chosen = {}
    for usual, names in ((inputs[0], inputs), (labels[0], labels)):
        found = [name for name in names if name in dataset.column_names]
        if not found:
            raise ValueError(f"the dataset has the columns {dataset.column_names}, but none of {', '.join(names)}")
        chosen[found[0]] = usual
    if task == "text":
        chosen |= {name: "text_pair" for name in _SECOND_TEXTS if name in dataset.column_names}
    dataset = dataset.select_columns(list(chosen))
    return name_labels(dataset.rename_columns({old: new for old, new in chosen.items() if old != new}), task)


def name_labels(dataset: Any, task: str) -> Dataset:
    """Give the labels of a dataset by their names, where it has numbers for them.

    Args:
        dataset: with a column "label", or of tokens "tags".
        task: "text", "tokens" or "images".
    """
    from datasets import List, Value

    column = _COLUMNS[task][1][0]
    feature = dataset.features[column]
    classes = getattr(feature, "feature", feature)  # of a list, the feature of what it holds
    to_name = getattr(classes, "int2str", str)
    if task == "tokens":
        names, kind = [[to_name(tag) for tag in tags] for tags in dataset[column]], List(Value("string"))
    else:
        names, kind = [to_name(label) for label in dataset[column]], Value("string")
    return dataset.remove_columns(column).add_column(column, names, feature=kind)


def label_names(dataset: Any, task: str) -> list[str]:
    """List the labels of a dataset: numbers by size, then the others by the alphabet."""
    column = list(dataset[_COLUMNS[task][1][0]])
    found = {tag for tags in column for tag in tags} if task == "tokens" else set(column)
    return sorted(found, key=lambda name: (int(name) if name.isdecimal() else math.inf, name))
