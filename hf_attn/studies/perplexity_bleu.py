# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Perplexity asks for the reference's word in its place, BLEU for pieces of the reference anywhere: they disagree.

    perplexity = exp(-mean log P(reference word | words before))        lower is better
    BLEU = BP (p_1 ... p_N)^(1/N),  BP = 1 if c >= r else exp(1 - r / c)   higher is better

Source: Papineni 2002, sections 2.1 to 2.3. Look at: translation 1 moves one word to the end and keeps the meaning,
translation 2 keeps the order and says the opposite; a model sure of its own words has the lower perplexity with 2, BLEU
prefers 1. Below, real models: perplexity and BLEU of several on the same sentences mostly agree, but not in every pair
(compare only models of one language pair and one tokenizer).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from ..evaluation.from_scratch import brevity_penalty, chain_rule, clipped_matches, perplexity, sentence_bleu
from .tables import text_table

REFERENCE = "나는 학교에 가는 것을 좋아한다 ."
TRANSLATIONS = {
    "translation 1": "학교에 가는 것을 좋아한다 나는 .",
    "translation 2": "나는 오락실에 가는 것을 싫어한다 .",
    "two sure words": "나는 학교에",
    "one word four times": "나는 나는 나는 나는",
}
PAIRS = ("en-it", "en-fr", "en-ko")
QUICK: dict[str, Any] = {"sentences": 2}


def sure_of(output: Sequence[str], confidence: float, vocab_size: int):
    """Make a translator sure of its own output: word i of it has `confidence` at step i, all others share the rest."""

    def conditional(word: str, before: Sequence[str]) -> float:
        own = len(before) < len(output) and word == output[len(before)]
        return confidence if own else (1 - confidence) / (vocab_size - 1)

    return conditional


def score_translation(name: str, translation: str, confidence: float, vocab_size: int) -> dict[str, Any]:
    """Score one translation of the lecture, by both measures."""
    reference, words = REFERENCE.split(), translation.split()
    factors = chain_rule(reference, sure_of(words, confidence, vocab_size))
    ends = [["BOS", *one, "EOS"] for one in (words, reference)]
    precisions = [clipped_matches(words, [reference], order) for order in (1, 2, 3, 4)]
    return {
        "translation": name,
        "text": translation,
        "right_in_place": factors.count(confidence),
        "perplexity": perplexity(factors),
        "precisions": " ".join(f"{hits}/{total}" for hits, total in precisions),
        "bigrams_with_ends": "{}/{}".format(*clipped_matches(ends[0], [ends[1]], 2)),
        "brevity_penalty": brevity_penalty(len(words), len(reference)),
        "BLEU-2": sentence_bleu(words, [reference], 2),
        "BLEU-4": sentence_bleu(words, [reference], 4),
    }


def score_model(folder: Path, pair: str, sentences: int) -> dict[str, Any]:
    """Score a trained translator on the phrasebook: perplexity of the references, BLEU of what it writes itself."""
    from ..data import phrasebook
    from ..evaluation import corpus_perplexity, evaluate_translations
    from ..inference import Translator

    source_lang, target_lang = pair.split("-")
    test = phrasebook(pair, "test", size=sentences)["translation"]
    sources, targets = ([row[lang] for row in test] for lang in (source_lang, target_lang))
    translator = Translator(str(folder))
    given = translator.score(sources, targets)
    log_probs = [sum(one.token_log_probs) for one in given]
    measured = corpus_perplexity(log_probs, [len(one.token_log_probs) for one in given])
    outputs = [one.text for one in translator(sources, return_attention=False)]
    bleu = evaluate_translations(outputs, targets, target_lang=target_lang)["bleu"]
    return {"model": folder.name, "pair": pair, "perplexity": measured["perplexity"], "BLEU": bleu}


def run(
    models: str | None = None, sentences: int = 100, confidence: float = 0.5, vocab_size: int = 10_000
) -> dict[str, Any]:
    """Score the lecture's translations, and the trained models of a folder.

    Args:
        models: a folder of folders with translators, whose names begin with their languages: "en-fr-luong".
        sentences: of the phrasebook's test split.
        confidence: of the imagined translators in their own words.
        vocab_size: the words that they know.
    """
    rows = [score_translation(name, text, confidence, vocab_size) for name, text in TRANSLATIONS.items()]
    folders = [] if models is None else sorted(path.parent for path in Path(models).glob("*/config.json"))
    named = [(folder, folder.name[:5]) for folder in folders if folder.name[:5] in PAIRS]
    measured = [score_model(folder, pair, sentences) for folder, pair in named]
    couples = [(a, b) for a, b in combinations(measured, 2) if a["pair"] == b["pair"]]
    disagree = [
        f"{a['model']} and {b['model']}"
        for a, b in couples
        if (a["perplexity"] - b["perplexity"]) * (a["BLEU"] - b["BLEU"]) > 0
    ]
    return {"reference": REFERENCE, "rows": rows, "models": measured, "couples": len(couples), "disagree": disagree}


def show(result: dict[str, Any]) -> str:
    """Write the lecture's translations, and the models."""
    columns = {
        "translation": "",
        "right_in_place": "d",
        "perplexity": ",.1f",
        "bigrams_with_ends": "",
        "precisions": "",
    }
    columns |= {"brevity_penalty": ".4f", "BLEU-2": ".4f", "BLEU-4": ".4f", "text": ""}
    lines = [f"reference: {result['reference']}", text_table(result["rows"], columns)]
    if result["models"]:
        lines.append(text_table(result["models"], {"model": "", "perplexity": ".2f", "BLEU": ".1f"}))
        named = f": {', '.join(result['disagree'])}" if result["disagree"] else ""
        lines.append(f"they disagree on {len(result['disagree'])} of {result['couples']} couples of models{named}")
    return "\n".join(lines)


def draw(result: dict[str, Any]) -> Any:
    """Draw the two translations by both measures, and the models as points."""
    from .figures import bars, drawable, panels

    figure, axes = panels(1, 3 if result["models"] else 2, 5, 3.6)
    rows = result["rows"][:2]
    names = [f"{row['translation']}: {row['text']}" for row in rows]
    labels, families = drawable([*names, f"reference: {result['reference']}"])
    for one, name, title in (
        (axes[0], "perplexity", "perplexity (lower is better)"),
        (axes[1], "BLEU-2", "BLEU-2 (higher is better)"),
    ):
        bars(one, [row["translation"] for row in rows], [row[name] for row in rows], title=title)
    figure.supxlabel("\n".join([labels[-1], *labels[:-1]]), fontsize=9, fontfamily=families, x=0.02, ha="left")
    if result["models"]:
        for row in result["models"]:
            marker = "osD"[PAIRS.index(row["pair"])]
            axes[2].plot(row["perplexity"], row["BLEU"], marker, label=row["model"])
        axes[2].set(xlabel="perplexity", ylabel="BLEU", title="trained models", xscale="log")
        axes[2].grid(alpha=0.3)
        figure.legend(*axes[2].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    return figure
