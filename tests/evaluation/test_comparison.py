# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Learning curves read from a log, and BLEU by sentence length against scoring each length by itself."""

import pytest
import sacrebleu

from hf_attn.evaluation import bleu_by_length, bleu_statistics, learning_curve

# 100 updates a minute, and 3 seconds an evaluation
CLOCKED = [
    {"loss": 9.0, "step": 50, "seconds": 30.0},
    {"loss": 8.0, "step": 100, "seconds": 60.0},
    {"eval_bleu": 5.0, "eval_runtime": 3.0, "step": 100, "seconds": 63.0},
    {"loss": 7.0, "step": 200, "seconds": 123.0},
    {"eval_bleu": 9.0, "eval_runtime": 3.0, "step": 200, "seconds": 126.0},
    {"train_runtime": 126.0, "step": 200, "seconds": 126.0},
    {"eval_bleu": 9.5, "eval_runtime": 20.0, "step": 200, "seconds": 150.0},  # the final evaluation, with beams
]


def test_learning_curve_counts_training_time_only():
    curve = learning_curve(CLOCKED)
    assert curve == {"steps": [100, 200], "seconds": [60, 120], "bleu": [5, 9], "total_seconds": 120, "clocked": True}
    without = [{name: value for name, value in entry.items() if name != "seconds"} for entry in CLOCKED]
    assert learning_curve(without) == curve | {"clocked": False}
    # a resumed run: the Trainer's runtime is that of its last part
    resumed = [entry | ({"train_runtime": 33.0} if "train_runtime" in entry else {}) for entry in CLOCKED]
    assert learning_curve(resumed) == curve
    with pytest.raises(ValueError, match="5 entries and no train_runtime"):
        learning_curve(CLOCKED[:5])


def test_bleu_by_length_scores_each_range_by_itself():
    sources = ["a", "a b", "a b c", "a b c d e", "a b c d e f", "a b c d e f g h"]
    targets = [source.replace("c", "x") + " w w" for source in sources]
    references = [source + " w w" for source in sources]
    lengths = [len(source.split()) for source in sources]
    ranges = bleu_by_length(bleu_statistics(targets, references), lengths, [1, 2, 3, 6])
    assert [part["range"] for part in ranges] == ["1", "2", "3 to 5", "6 or more"]
    assert [part["sentences"] for part in ranges] == [1, 1, 2, 2]
    for part, rows in zip(ranges, ([0], [1], [2, 3], [4, 5])):
        expected = sacrebleu.corpus_bleu([targets[row] for row in rows], [[references[row] for row in rows]]).score
        assert part["bleu"] == pytest.approx(expected)
        assert part["low"] <= part["bleu"] + 1e-9 and part["bleu"] <= part["high"] + 1e-9
    assert [part["range"] for part in bleu_by_length(bleu_statistics(targets, references), lengths, [4, 7])] == [
        "4 to 6",
        "7 or more",
    ]
    with pytest.raises(ValueError, match="it must be one or more ascending numbers"):
        bleu_by_length(bleu_statistics(targets, references), lengths, [5, 3])
    with pytest.raises(ValueError, match="give one a sentence"):
        bleu_by_length(bleu_statistics(targets, references), lengths[1:], [1])
