"""What a classifier trains on and how it is made: ids of texts and of tagged words, pixels, models and measurements.

    text     one label for a text or a pair of texts
    tokens   one label for each word; it stands at the first piece of the word, and -100 at the others (Devlin 2019,
             arXiv 1810.04805, section 5.3)
    images   one label for an image, shifted by chance in training if asked for

Read next: ``scripts/train_classifier.py``.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForImageClassification,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..data.images import convert_image
from ..models.heads import IGNORED

if TYPE_CHECKING:
    from datasets import Dataset

AUTO_MODELS: dict[str, Any] = {
    "text": AutoModelForSequenceClassification,
    "tokens": AutoModelForTokenClassification,
    "images": AutoModelForImageClassification,
}
# a new encoder small enough for one core
SMALL_ENCODER = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 384}
SMALL_IMAGES = {"image_size": 8, "patch_size": 2}  # the digits of scikit-learn


def label_numbers(labels: Sequence[str], names: Sequence[str]) -> list[int]:
    """Give each label its number.

    Raises:
        ValueError: If a label is none of the names.
    """
    numbers = {name: number for number, name in enumerate(names)}
    unknown = sorted(set(labels) - set(numbers))
    if unknown:
        raise ValueError(f"the label {unknown[0]!r} is not in the training set, whose labels are {', '.join(names)}")
    return [numbers[label] for label in labels]


def encode_texts(
    dataset: Dataset, tokenizer: PreTrainedTokenizerBase, names: Sequence[str], max_length: int
) -> Dataset:
    """Turn texts, or pairs of texts, and their labels into what a model takes.

    Args:
        dataset: With the columns "text", "label", and perhaps "text_pair".
        tokenizer: Of the model.
        names: Of the labels.
        max_length: Longer texts are cut to so many tokens, of a pair the longer one first; a warning says how many.

    Returns:
        A dataset with ``input_ids``, what else the tokenizer gives, and ``labels``.
    """
    from datasets import Dataset

    tokenizer = copy.deepcopy(tokenizer)  # encoding sets truncation on it; the one that is saved stays as it is
    texts: list[Any] = [list(dataset[name]) for name in ("text", "text_pair") if name in dataset.column_names]
    encoded: Any = tokenizer(*texts, truncation=True, max_length=max_length)
    whole: Any = tokenizer(*texts, truncation=False, verbose=False)
    _warn_of_cut(sum(len(ids) > max_length for ids in whole["input_ids"]), max_length)
    return Dataset.from_dict({**encoded, "labels": label_numbers(list(dataset["label"]), names)})


def encode_tokens(
    dataset: Dataset, tokenizer: PreTrainedTokenizerBase, names: Sequence[str], max_length: int
) -> Dataset:
    """Turn tagged words into what a model takes: the tag of a word stands at its first piece, -100 elsewhere.

    Args:
        dataset: With the columns "tokens" and "tags".
        tokenizer: Of the model; one that says which word a piece is of (a fast one).
        names: Of the tags.
        max_length: Longer texts are cut to so many tokens, and the tags of the words that are lost are not measured; a
            warning says how many texts.

    Returns:
        A dataset with ``input_ids``, what else the tokenizer gives, and ``labels``, one for each piece.

    Raises:
        ValueError: If the tokenizer is slow.
    """
    from datasets import Dataset

    if not tokenizer.is_fast:
        raise ValueError(f"task=tokens needs a fast tokenizer, which {type(tokenizer).__name__} is not")
    tokenizer = copy.deepcopy(tokenizer)
    encoded: Any = tokenizer(list(dataset["tokens"]), is_split_into_words=True, truncation=True, max_length=max_length)
    labels, cut = [], 0
    for number, tags in enumerate(dataset["tags"]):
        words, previous, row = encoded.word_ids(number), None, []
        tag_numbers = label_numbers(tags, names)
        for word in words:
            row.append(IGNORED if word is None or word == previous else tag_numbers[word])
            previous = word
        labels.append(row)
        cut += (
            len(words) == max_length and max((word for word in words if word is not None), default=-1) < len(tags) - 1
        )
    _warn_of_cut(cut, max_length)
    return Dataset.from_dict({**encoded, "labels": labels})


def _warn_of_cut(count: int, max_length: int) -> None:
    if count:
        warnings.warn(f"{count} texts were cut to max_length={max_length} tokens", stacklevel=3)


def image_transform(
    processor: Any, names: Sequence[str], channels: int, max_shift: int = 0
) -> Callable[[dict[str, list[Any]]], dict[str, list[Any]]]:
    """Make what turns images and labels into what a model takes, whenever a batch is asked for.

    Args:
        processor: Image processor of the model.
        names: Of the labels.
        channels: 1 for grey images; otherwise they are brought to red, green and blue.
        max_shift: By how many pixels at most an image is moved each way, by chance, before anything else; what comes
            in is black. 0 moves nothing.

    Returns:
        For ``Dataset.with_transform``: columns "image" and "label" -> ``pixel_values`` and ``labels``.
    """

    def transform(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        images = [convert_image(image, "L" if channels == 1 else "RGB") for image in rows["image"]]
        if max_shift:
            shifts = torch.randint(-max_shift, max_shift + 1, (len(images), 2)).tolist()
            images = [
                image.transform(image.size, 0, (1, 0, -right, 0, 1, -down))  # 0: affine
                for image, (right, down) in zip(images, shifts)
            ]
        pixels = processor(images, return_tensors="pt")["pixel_values"]
        return {"pixel_values": list(pixels), "labels": label_numbers(rows["label"], names)}

    return transform


def stack_images(rows: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Make a batch of images."""
    return {
        "pixel_values": torch.stack([torch.as_tensor(row["pixel_values"]) for row in rows]),
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def make_classifier(
    task: str, names: Sequence[str], config: Any, folder: str | None = None, **hub: Any
) -> PreTrainedModel:
    """Make a classifier.

    Args:
        task: "text", "tokens" or "images".
        names: Of the labels.
        config: Of the model.
        folder: Folder or Hub id of a model whose weights it begins with, where it has weights of the same name and
            shape; None for new weights.
        **hub: As for ``from_pretrained``.
    """
    config.num_labels = len(names)
    config.id2label = dict(enumerate(names))
    config.label2id = {name: number for number, name in enumerate(names)}
    config.problem_type = None if task != "text" else "single_label_classification"
    if folder is None:
        trust = {name: hub[name] for name in ("trust_remote_code",) if name in hub}
        return AUTO_MODELS[task].from_config(config, **trust)
    return AUTO_MODELS[task].from_pretrained(
        folder, config=config, dtype="float32", ignore_mismatched_sizes=True, **hub
    )


def new_config(task: str, model_type: str, tokenizer: PreTrainedTokenizerBase | None, **overrides: Any) -> Any:
    """Write the config of a small new encoder of a model type.

    Args:
        task: "text", "tokens" or "images".
        model_type: Of this package or of transformers.
        tokenizer: Gives the size of the vocabulary and the special ids; None for images.
        **overrides: Config fields that replace those of SMALL_ENCODER and SMALL_IMAGES.

    Raises:
        ValueError: If there is no such config field, or a value is refused by the config.
    """
    values: dict[str, Any] = SMALL_ENCODER | (SMALL_IMAGES if task == "images" else {})
    if tokenizer is not None:
        values["vocab_size"] = len(tokenizer)
        values |= {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    if model_type == "attn-bert":  # both learn faster from few examples
        values |= {"position_type": "rotary", "norm_first": True}
    default = AutoConfig.for_model(model_type)
    unknown = [name for name in overrides if not hasattr(default, name)]
    if unknown:
        raise ValueError(f"{model_type} has no config field {', '.join(unknown)}")
    return AutoConfig.for_model(model_type, **(values | overrides))


def best_classes(logits: Any, labels: torch.Tensor) -> torch.Tensor:
    """Keep of the logits (..., classes) which class is the largest: for ``preprocess_logits_for_metrics``."""
    return (logits[0] if isinstance(logits, tuple) else logits).argmax(dim=-1)
