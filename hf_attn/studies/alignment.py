# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attention as word alignment: does a trained translator look at the word that it translates?

    alignment error rate = 1 - (|A and S| + |A and P|) / (|A| + |S|);  A links each target word to where it looked most
    near the diagonal = mean weight on source words at most a tenth of the sentence off the same relative place

Sources: Bahdanau 2015 (arXiv 1409.0473) figure 3; Och and Ney 2003 for the rate. Look at: the picture, which a lecture
describes as a diagonal; and how far the trained weights are better than the diagonal itself, which knows no language.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..evaluation import alignment_scores, diagonal_links, links_from_weights
from .perplexity_bleu import PAIRS
from .tables import text_table

QUICK: dict[str, Any] = {"sentences": 2}


def near_the_diagonal(weights: torch.Tensor) -> float:
    """Add up what each target word gives to source words near its own relative place, and average over target words.

    Args:
        weights: (target_words, source_words), rows with sum 1.
    """
    targets, sources = weights.shape
    rows = (torch.arange(targets) / max(targets - 1, 1))[:, None]
    columns = (torch.arange(sources) / max(sources - 1, 1))[None]
    return float((weights * ((rows - columns).abs() <= 0.1)).sum(dim=1).mean())


def measure(folder: Path, pair: str, sentences: int) -> dict[str, Any] | None:
    """Measure the attention of one translator on given translations; None if it has none."""
    from ..data import phrasebook
    from ..inference import Translator

    source_lang, target_lang = pair.split("-")
    test = phrasebook(pair, "test", size=sentences)
    sources, targets = ([row[lang] for row in test["translation"]] for lang in (source_lang, target_lang))
    translations = Translator(str(folder)).score(sources, targets)
    if translations[0].cross_attentions is None:
        return None
    found = [one.alignment() for one in translations]
    sure = [{(a, b) for a, b in links} for links in test["sure"]]
    possible = [{(a, b) for a, b in links} | own for links, own in zip(test["possible"], sure)]
    # the last word of either side is "</s>"
    diagonal = [diagonal_links(len(one.source_words) - 1, len(one.target_words) - 1) for one in found]
    read = [links_from_weights(one.weights) for one in found]
    shown = min(range(len(found)), key=lambda place: abs(len(found[place].source_words) - 8))
    return {
        "model": folder.name,
        "error_rate": alignment_scores(read, sure, possible)["alignment_error_rate"],
        "of_the_diagonal": alignment_scores(diagonal, sure, possible)["alignment_error_rate"],
        "near_the_diagonal": sum(near_the_diagonal(one.weights) for one in found) / len(found),
        "read_from": found[0].description,
        "weights": found[shown].weights.tolist(),
        "source_words": found[shown].source_words,
        "target_words": found[shown].target_words,
    }


def run(models: str | None = None, sentences: int = 100) -> dict[str, Any]:
    """Measure the translators of a folder.

    Args:
        models: a folder of folders with translators, whose names begin with their languages: "en-fr-luong".
        sentences: of the phrasebook's test split, with gold links.

    Raises:
        ValueError: there is no translator with attention.
    """
    folders = sorted(path.parent for path in Path(models).glob("*/config.json")) if models else []
    named = [(folder, folder.name[:5]) for folder in folders if folder.name[:5] in PAIRS]
    rows = [row for folder, pair in named if (row := measure(folder, pair, sentences)) is not None]
    if not rows:
        raise ValueError(f"models is {models!r}; give --models, a folder with translators such as en-fr-bahdanau")
    return {"sentences": sentences, "rows": rows}


def show(result: dict[str, Any]) -> str:
    """Write a row for each model."""
    columns = {"model": "", "error_rate": ".3f", "of_the_diagonal": ".3f", "near_the_diagonal": ".3f", "read_from": ""}
    return f"{result['sentences']} sentences of the phrasebook:\n{text_table(result['rows'], columns)}"


def draw(result: dict[str, Any]) -> Any:
    """Draw one sentence of each model."""
    from .figures import heatmap, panels

    rows = result["rows"]
    figure, axes = panels(-(-len(rows) // 3), min(len(rows), 3), 5, 4.2)
    for one, row in zip(axes, rows):
        heatmap(one, row["weights"], row["target_words"], row["source_words"], title=row["model"])
        one.tick_params(axis="x", rotation=50)
    for one in axes[len(rows) :]:
        one.remove()
    return figure
