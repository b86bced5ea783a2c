# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Measure classifiers and taggers: accuracy, F1 of each class and of entities, with intervals.

    precision = right / predicted    recall = right / gold    F1 = 2 * right / (predicted + gold)

All are functions of counts that add up over the examples: of a confusion matrix, or of how many entities are right,
predicted and gold. So they are counted once for each example, and a bootstrap resample adds them up again: the examples
are resampled, which for taggers are whole texts, since the tags of one text depend on each other.
Papers: Tjong Kim Sang and De Meulder 2003 (CoNLL-2003) for entities. Read next: `bootstrap.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.heads import IGNORED
from .bootstrap import SAMPLES, SEED, _interval, _resampled


def confusion_statistics(gold: Sequence[Any], predicted: Sequence[Any], classes: int) -> np.ndarray:
    """Count, for each example, which classes were taken for which.

    Args:
        gold: for each example a class, or a list of classes, in which -100 counts for nothing.
        predicted: the same, with anything in those places.
        classes: how many there are.

    Returns:
        (examples, classes, classes), whole numbers: gold class, predicted class.

    Raises:
        ValueError: if the two are not of the same lengths, or a class is not one.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"gold has {len(gold)} examples and predicted {len(predicted)}; both must be the same")
    matrices = np.zeros((len(gold), classes, classes), dtype=np.int64)
    for matrix, right, said in zip(matrices, gold, predicted):
        right, said = np.atleast_1d(right), np.atleast_1d(said)
        if right.shape != said.shape:
            raise ValueError(f"an example has {right.size} gold classes and {said.size} predicted ones")
        said, right = said[right != IGNORED], right[right != IGNORED]
        for name, values in (("gold", right), ("predicted", said)):
            if values.size and not 0 <= values.min() <= values.max() < classes:
                raise ValueError(f"{name} has {values.tolist()}; classes are 0 to {classes - 1}")
        np.add.at(matrix, (right, said), 1)
    return matrices


def accuracy_from_statistics(statistics: np.ndarray) -> float:
    """Compute the share of what was predicted rightly, from (examples, classes, classes); 0 where nothing was."""
    matrix = statistics.sum(axis=0)
    return float(np.trace(matrix) / max(matrix.sum(), 1))


def macro_f1_from_statistics(statistics: np.ndarray) -> float:
    """Compute the mean F1 of the classes that are gold or predicted somewhere, from (examples, classes, classes)."""
    matrix = statistics.sum(axis=0)
    named = matrix.sum(axis=0) + matrix.sum(axis=1)
    return float((2 * np.diagonal(matrix)[named > 0] / named[named > 0]).mean()) if named.any() else 0.0


def entity_f1_from_statistics(statistics: np.ndarray) -> float:
    """Compute the F1 of entities, from (examples, 3): right, predicted, gold; 0 where there are none."""
    right, predicted, gold = statistics.sum(axis=0).tolist()
    return 2 * right / max(predicted + gold, 1)


def is_bio(names: Sequence[str]) -> bool:
    """Say whether tags tell entities: "O" outside, "B-kind" where one begins, "I-kind" where it goes on."""
    return any(name.startswith("B-") for name in names) and all(
        name == "O" or name.startswith(("B-", "I-")) for name in names
    )


def entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Read the entities of a text off its tags.

    Args:
        tags: "O", "B-kind", "I-kind". An "I-" that goes on from nothing of its kind begins an entity, as in CoNLL's own
            script.

    Returns:
        (kind, first word, word after the last) of each.
    """
    found, kind, start = set(), "", 0
    for number, tag in enumerate([*tags, "O"]):
        goes_on = tag == f"I-{kind}" and kind != ""
        if kind and not goes_on:
            found.add((kind, start, number))
        if not goes_on:
            kind, start = ("" if tag == "O" else tag[2:]), number
    return found


def entity_statistics(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> np.ndarray:
    """Count the entities of each text, (examples, 3): right, predicted, gold. Only whole ones are right."""
    pairs = [(entities(its), entities(said)) for its, said in zip(gold, predicted, strict=True)]
    return np.array([[len(its & said), len(said), len(its)] for its, said in pairs])


def evaluate_classes(
    gold: Sequence[Any], predicted: Sequence[Any], names: Sequence[str], *, samples: int = SAMPLES, seed: int = SEED
) -> dict[str, Any]:
    """Measure predicted classes.

    Args:
        gold: for each example the number of its class, or of a text those of its words, -100 where none counts.
        predicted: the same, with anything in those places.
        names: of the classes.
        samples: how many bootstrap resamples make the intervals; 0 leaves them out.
        seed: makes them repeatable.

    Returns:
        `accuracy` and `macro_f1` and, where the names are BIO tags, `entity_f1`, each with `_low` and `_high`, its 95%
        interval; `f1` of each class by its name; and the `confusion` matrix, of a row for each gold class.

    Raises:
        ValueError: if there is no example, or see `confusion_statistics`.
    """
    if not len(gold):
        raise ValueError("gold must have at least one example")
    matrices = confusion_statistics(gold, predicted, len(names))
    measures = {"accuracy": (accuracy_from_statistics, matrices), "macro_f1": (macro_f1_from_statistics, matrices)}
    if is_bio(names):
        texts = [
            [[names[int(tag)] for tag, right in zip(tags, its) if right != IGNORED] for tags, its in zip(side, gold)]
            for side in (gold, predicted)
        ]
        measures["entity_f1"] = (entity_f1_from_statistics, entity_statistics(*texts))
    results: dict[str, Any] = {}
    for name, (score, statistics) in measures.items():
        results[name] = score(statistics)
        if samples:
            low_high = _interval(_resampled(statistics, score, samples, seed))
            results |= dict(zip((f"{name}_low", f"{name}_high"), low_high))
    matrix = matrices.sum(axis=0)
    named = matrix.sum(axis=0) + matrix.sum(axis=1)
    results["f1"] = {name: float(2 * matrix[at, at] / max(named[at], 1)) for at, name in enumerate(names)}
    results["confusion"] = matrix.tolist()
    return results
