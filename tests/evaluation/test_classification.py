"""Accuracy, F1 and entities against scikit-learn, NLTK's chunks and hand counts; intervals against exact ones."""

import math

import numpy as np
import pytest
from nltk.chunk import conlltags2tree
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

from hf_attn.evaluation.classification import (
    confusion_statistics,
    entities,
    evaluate_classes,
    is_bio,
)

BIO = ["O", "B-who", "I-who", "B-where", "I-where"]


@pytest.mark.parametrize("present", [5, 3])
def test_scores_of_classes_are_scikit_learns(present):
    random = np.random.default_rng(present)
    gold, predicted = random.integers(0, present, (2, 200))
    results = evaluate_classes(gold.tolist(), predicted.tolist(), list("abcde"), samples=0)
    assert results["accuracy"] == pytest.approx(accuracy_score(gold, predicted))
    assert results["macro_f1"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    every = f1_score(gold, predicted, average=None, labels=range(5), zero_division=0)
    assert list(results["f1"].values()) == pytest.approx(every) and list(results["f1"]) == list("abcde")
    assert results["confusion"] == confusion_matrix(gold, predicted, labels=range(5)).tolist()
    assert not [name for name in results if name.endswith(("low", "high"))]


def test_words_are_counted_one_by_one_and_ignored_ones_not_at_all():
    random = np.random.default_rng(0)
    gold, predicted = random.integers(0, 4, (2, 30, 7))
    gold[random.random(gold.shape) < 0.4] = -100
    gold[3] = -100
    predicted[gold == -100] = random.choice([-100, 0, 9], (gold == -100).sum())
    results = evaluate_classes(gold, predicted, list("abcd"), samples=0)
    real = gold != -100
    assert results["accuracy"] == pytest.approx(accuracy_score(gold[real], predicted[real]))
    assert results["macro_f1"] == pytest.approx(f1_score(gold[real], predicted[real], average="macro"))


def test_entities_are_nltks_chunks():
    random = np.random.default_rng(1)
    for _ in range(200):
        tags = random.choice(BIO, 8).tolist()
        tree = conlltags2tree([(str(number), "x", tag) for number, tag in enumerate(tags)])
        chunks = {(node.label(), int(node[0][0]), int(node[-1][0]) + 1) for node in tree if hasattr(node, "label")}
        assert entities(tags) == chunks


def test_only_whole_entities_of_the_right_kind_are_right():
    gold = [["B-who", "I-who", "O", "B-where"], ["B-who", "B-who", "O", "O"]]
    said = [["B-who", "O", "O", "B-where"], ["B-who", "B-where", "O", "B-who"]]
    numbers = [[[BIO.index(tag) for tag in tags] for tags in side] for side in (gold, said)]
    results = evaluate_classes(*numbers, BIO, samples=0)  # 2 right of 4 gold and 5 predicted
    assert results["entity_f1"] == pytest.approx(2 * 2 / 9)


def test_only_tags_of_that_form_tell_entities():
    assert is_bio(BIO) and not is_bio(["O", "I-who"]) and not is_bio(["lower", "B-who"])


def test_an_interval_is_that_of_the_binomial_distribution():
    gold = [1] * 400
    predicted = [1] * 320 + [0] * 80
    results = evaluate_classes(gold, predicted, ["no", "yes"])
    width = 1.96 * math.sqrt(0.8 * 0.2 / 400)
    assert results["accuracy_low"] == pytest.approx(0.8 - width, abs=0.006)
    assert results["accuracy_high"] == pytest.approx(0.8 + width, abs=0.006)
    assert results["macro_f1_low"] < results["macro_f1"] < results["macro_f1_high"]


def test_texts_are_resampled_whole():
    """Tags that are right or wrong together say as little as one of them."""
    gold, predicted = [[0] * 50] * 40, [[0] * 50] * 20 + [[1] * 50] * 20
    whole = evaluate_classes(gold, predicted, ["a", "b"])
    single = evaluate_classes([0] * 40, [0] * 20 + [1] * 20, ["a", "b"])
    assert (whole["accuracy_low"], whole["accuracy_high"]) == (single["accuracy_low"], single["accuracy_high"])
    assert whole["accuracy_high"] - whole["accuracy_low"] > 0.2


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([0], [0, 1], "gold has 1 examples and predicted 2"),
        ([[0, 1]], [[0]], "2 gold classes and 1 predicted"),
        ([0], [2], "predicted has"),
        ([2], [0], "gold has"),
        ([0], [-100], "predicted has"),
    ],
)
def test_classes_that_are_none_are_refused(gold, predicted, message):
    with pytest.raises(ValueError, match=message):
        confusion_statistics(gold, predicted, 2)


def test_nothing_cannot_be_measured():
    with pytest.raises(ValueError, match="at least one example"):
        evaluate_classes([], [], ["a"])
