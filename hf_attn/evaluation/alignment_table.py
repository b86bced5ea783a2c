# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Find out which attention to believe: measure every method, layer and head as a word aligner, beside two baselines.

The model reads given translations (teacher forcing); each target word is linked to the source word with most weight.
Layer and head are chosen on one part of the data and measured on another, so that the choice is not flattered.

Papers: see `hf_attn/inference/translation.py` for the methods; single heads, Garg et al. 2019 (arXiv 1909.02074).
Read before: `alignment.py` and `anchors.py`, the two ways to measure links; `ibm_model_1.py`, the baseline to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..data.words import text_words
from ..models.checks import ALIGNMENT_METHODS
from .alignment import Links, alignment_scores, diagonal_links, links_from_weights
from .anchors import AnchoredPair, anchor_accuracy, join_tokens, token_links
from .ibm_model_1 import train_ibm_model_1

Scorer = Callable[[list[str], list[str]], Sequence[Any]]  # texts -> their `Translation` objects, as `Translator.score`
_AT_A_TIME = 200  # sentence pairs whose weights are in memory together


class Place(NamedTuple):
    """Where an alignment is read: a method, a layer and a head, counted from 0; head None is the mean of all."""

    method: str
    layer: int
    head: int | None

    def __str__(self) -> str:
        return f"layer {self.layer + 1}, {'mean of heads' if self.head is None else f'head {self.head + 1}'}"


@dataclass(frozen=True)
class GoldPairs:
    """Sentence pairs with gold word links.

    Attributes:
        sources: texts.
        targets: texts.
        sure: for each pair the links that must be found.
        possible: for each pair the links that may be found.
    """

    sources: list[str]
    targets: list[str]
    sure: list[Links]
    possible: list[Links]
    metric = "alignment_error_rate"

    def words(self) -> list[tuple[list[str], list[str]]]:
        """Give the words that the links count."""
        return [(text_words(source), text_words(target)) for source, target in zip(self.sources, self.targets)]

    def read(self, number: int, weights: Any) -> Links:
        """Link the words of one pair by weights (target_words, source_words), "</s>" included on both sides."""
        return links_from_weights(weights)

    def measure(self, hypotheses: Sequence[Links]) -> dict[str, float | int]:
        """Compare links with the gold ones."""
        return alignment_scores(hypotheses, self.sure, self.possible)


@dataclass(frozen=True)
class AnchoredPairs:
    """Sentence pairs with anchors.

    Attributes:
        pairs: the pairs, as from `load_anchors`.
    """

    pairs: list[AnchoredPair]
    metric = "anchor_accuracy"

    @property
    def sources(self) -> list[str]:
        """The sources as texts."""
        return [join_tokens(pair.source)[0] for pair in self.pairs]

    @property
    def targets(self) -> list[str]:
        """The targets as texts."""
        return [join_tokens(pair.target)[0] for pair in self.pairs]

    def words(self) -> list[tuple[list[str], list[str]]]:
        """Give the tokens that the anchors count."""
        return [(pair.source, pair.target) for pair in self.pairs]

    def read(self, number: int, weights: Any) -> Links:
        """Link the tokens of one pair by weights of words; to attend to "</s>" is no answer, so it is left out."""
        links = links_from_weights(weights[:-1, :-1], end_of_sentence=False) if weights.shape[1] > 1 else set()
        return token_links(links, self.pairs[number].source, self.pairs[number].target)

    def measure(self, hypotheses: Sequence[Links]) -> dict[str, float | int]:
        """Compare links with the anchors."""
        return anchor_accuracy(hypotheses, self.pairs)


AlignmentData = GoldPairs | AnchoredPairs


def compare_aligners(
    score: Scorer,
    validation: AlignmentData,
    test: AlignmentData,
    training_words: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> dict[str, Any]:
    """Measure every way to align words by a model's attention, and the baselines.

    Args:
        score: reads sources and given translations, as `Translator.score`.
        validation: data on which layer, head and method are chosen.
        test: data that is measured.
        training_words: the words of sentence pairs from which IBM Model 1 learns, beside the measured ones.

    Returns:
        `metric`; `table`, one row an aligner with the numbers of `AlignmentData.measure`: the model's recommendation
        (`Translation.alignment` without arguments), each method at the last layer with the mean of all heads and at the
        layer and head that are best on the validation data, the diagonal and IBM Model 1; `chosen`, the `method`,
        `layer` and `heads` that are best there; and `by_layer_and_head`, the metric of each on the test data.
    """
    sign = 1 if validation.metric == "alignment_error_rate" else -1

    def loss(links: list[Links], data: AlignmentData) -> float:
        return sign * data.measure(links)[data.metric]

    _, on_validation = attention_links(score, validation)
    recommended, on_test = attention_links(score, test)
    losses = {place: loss(links, validation) for place, links in on_validation.items()}
    methods = list(dict.fromkeys(place.method for place in losses))
    best_of = {method: min((p for p in losses if p.method == method), key=losses.__getitem__) for method in methods}
    best = min(best_of.values(), key=losses.__getitem__)
    last = max(place.layer for place in losses)

    rows = [_row("recommended by the model", "", recommended, test)]
    for method in methods:
        mean = Place(method, last, None if Place(method, last, None) in on_test else 0)
        if best_of[method] != mean:
            rows.append(_row(method, f"{mean} (last)", on_test[mean], test))
        rows.append(_row(method, f"{best_of[method]} (best on validation)", on_test[best_of[method]], test))
    words = test.words()
    rows.append(_row("diagonal", "", [diagonal_links(len(source), len(target)) for source, target in words], test))
    model = train_ibm_model_1([*training_words, *words])
    rows.append(_row("IBM Model 1", "", [model.links(source, target) for source, target in words], test))
    return {
        "metric": test.metric,
        "table": rows,
        "chosen": {
            "method": best.method,
            "layer": best.layer,
            "heads": None if best.head is None else [best.head],
        },
        "by_layer_and_head": {
            method: {
                str(place): test.measure(links)[test.metric]
                for place, links in on_test.items()
                if place.method == method
            }
            for method in methods
        },
    }


def attention_links(score: Scorer, data: AlignmentData) -> tuple[list[Links], dict[Place, list[Links]]]:
    """Link the words of given translations by the attention of a model.

    Args:
        score: reads sources and given translations.
        data: the sentence pairs.

    Returns:
        For each pair the links that the model recommends; and those of every method, layer and head.

    Raises:
        ValueError: the model has no attention to the source.
    """
    recommended: list[Links] = []
    found: dict[Place, list[Links]] = {}
    for number, forced in enumerate(_read_translations(score, data)):
        recommended.append(data.read(number, forced.alignment().weights))
        layers, heads = forced.cross_attentions.shape[:2]
        view = forced.words()
        for method in ALIGNMENT_METHODS:
            if "value_norm" in method and forced.value_norms is None:
                continue
            for layer in range(layers):
                for head in [None, *range(heads)] if heads > 1 else [0]:
                    chosen = list(range(heads)) if head is None else head
                    pieces = forced.alignment(layer=layer, heads=chosen, words=False, method=method).weights
                    found.setdefault(Place(method, layer, head), []).append(data.read(number, view.merge(pieces)))
    return recommended, found


def _read_translations(score: Scorer, data: AlignmentData) -> Iterator[Any]:
    sources, targets = data.sources, data.targets
    for start in range(0, len(sources), _AT_A_TIME):
        yield from score(sources[start : start + _AT_A_TIME], targets[start : start + _AT_A_TIME])


def _row(aligner: str, place: str, links: list[Links], data: AlignmentData) -> dict[str, Any]:
    return {"aligner": aligner, "place": place, **data.measure(links)}


def format_table(rows: Sequence[dict[str, Any]]) -> str:
    """Write rows as a Markdown table.

    Args:
        rows: dictionaries with the same keys; shares are written with three decimals.

    Returns:
        The table, one line a row.

    Raises:
        ValueError: there is no row.
    """
    if not rows:
        raise ValueError("rows is empty; a table needs at least one row")
    columns = list(rows[0])
    lines = [columns, ["---:" if isinstance(rows[0][name], (int, float)) else "---" for name in columns]]
    for row in rows:
        lines.append([f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()])
    return "\n".join(f"| {' | '.join(line)} |".replace("_", " ") for line in lines)
