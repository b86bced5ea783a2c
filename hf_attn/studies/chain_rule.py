# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The probability of a sentence, word by word, and what perplexity makes of it.

    P(x_1 ... x_n) = prod_i P(x_i | x_1 ... x_(i-1));   log P = sum of the logarithms
    perplexity = P^(-1 / n) = exp(mean cross-entropy);  of a model that guesses among V words: V

Sources: Shannon 1948; Jelinek 1977 for perplexity. Look at: 3.34, among so many words the lecture's model hesitates;
and at how few words the product is 0 in a computer, where the sum of logarithms still knows everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ..evaluation.from_scratch import chain_rule, perplexity, sentence_log_probability, sentence_probability
from ..evaluation.likelihood import corpus_perplexity, sequence_log_probs
from .tables import text_table

SENTENCE = (("나는", 0.2), ("학교에", 0.1), ("갑니다", 0.5), ("EOS", 0.8))
QUICK: dict[str, Any] = {}


def words_until_zero(probability: float) -> int:
    """Count how many words of a probability it takes until their product is 0 in double precision."""
    words = 1
    while sentence_probability([probability] * words) > 0:
        words += 1
    return words


def run(sentence: Sequence[tuple[str, float]] = SENTENCE, vocab_size: int = 10_000) -> dict[str, Any]:
    """Compute the lecture's example, by the definitions and by a loss of torch.

    Args:
        sentence: words, each with its probability after those before it.
        vocab_size: of the model that guesses.
    """
    words, known = zip(*sentence)
    factors = chain_rule(words, lambda word, before: known[len(before)])
    # a vocabulary of two: the right word, and all others; the loss sees logits, as of a model
    logits = torch.tensor([[math.log(p), math.log(1 - p)] for p in known], dtype=torch.float64)[None]
    labels = torch.zeros(1, len(words), dtype=torch.long)
    log_probs, counts = sequence_log_probs(logits, labels)
    rows = []
    for place, (word, factor) in enumerate(zip(words, factors), start=1):
        so_far = factors[:place]
        row = {"word": word, "probability": factor, "of_all_so_far": sentence_probability(so_far)}
        rows.append({**row, "log": sentence_log_probability(so_far), "perplexity": perplexity(so_far)})
    return {
        "rows": rows,
        "probability": sentence_probability(factors),
        "perplexity": perplexity(factors),
        "perplexity_of_the_metric": corpus_perplexity(log_probs.tolist(), counts.tolist())["perplexity"],
        "exp_of_torch_loss": math.exp(float(F.cross_entropy(logits[0], labels[0]))),
        "vocab_size": vocab_size,
        "perplexity_of_guessing": perplexity([1 / vocab_size] * len(words)),
        "words_until_zero": {str(p): words_until_zero(p) for p in (0.5, 0.1, 1 / vocab_size)},
    }


def show(result: dict[str, Any]) -> str:
    """Write the sentence word by word, and the perplexities."""
    columns = {"probability": ".2f", "of_all_so_far": ".4f", "log": ".4f", "perplexity": ".4f", "word": ""}
    until = ", ".join(f"{words} of {p}" for p, words in result["words_until_zero"].items())
    return "\n".join(
        [
            text_table(result["rows"], columns),
            f"P = {result['probability']:.4g}, perplexity = {result['perplexity']:.4f} = exp of the mean cross-entropy "
            f"{result['exp_of_torch_loss']:.4f}; guessing among {result['vocab_size']:,} words: "
            f"{result['perplexity_of_guessing']:,.1f}",
            f"words until the product is 0: {until}",
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw the probability of each word, and the perplexity so far."""
    from .figures import drawable, panels

    rows = result["rows"]
    figure, axes = panels(1, 2, 4.4, 3.2)
    labels, families = drawable([row["word"] for row in rows])
    for one, name, title in ((axes[0], "probability", "after the words before"), (axes[1], "perplexity", "so far")):
        drawn = one.bar(range(len(rows)), [row[name] for row in rows], color="C0" if name == "probability" else "C1")
        one.bar_label(drawn, [f"{row[name]:.3g}" for row in rows], fontsize=8)
        one.set_xticks(range(len(rows)), labels, fontfamily=families)
        one.set(ylabel=name, title=f"{name} {title}")
        one.margins(y=0.15)
    return figure
