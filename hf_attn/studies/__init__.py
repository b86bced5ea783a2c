# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The claims and worked numbers of lectures on attention as small experiments with the package's own parts.

A study is a file of this folder with three functions: `run(**options)` computes plain numbers, `show(numbers)` writes
them as a table, `draw(numbers)` as a figure; `QUICK` holds options for a run of a second. The worksheet has
`files(numbers)` in place of a figure: the texts to print. `scripts/lecture_studies.py` runs them all.
Read next: `five_steps.py`, the equation by hand.
"""

from importlib import import_module
from types import ModuleType

STUDIES = {
    "five_steps": "attention in five steps, by hand; the causal mask",
    "scaling": "why scores are divided by sqrt(d_k)",
    "temperature": "the softmax between a mean and a choice",
    "score_functions": "dot, general and additive scores: what they cost",
    "heads": "heads, parameters and ranks",
    "permutation": "a set or a sequence",
    "positions": "position vectors and distances",
    "bottleneck": "what a last state still knows of the first word",
    "layer_types": "operations, steps and paths of each kind of layer",
    "recurrence": "time and memory of a recurrent network and of self-attention",
    "chain_rule": "the probability of a sentence, and perplexity",
    "perplexity_bleu": "perplexity and BLEU, and where they disagree",
    "alignment": "attention as word alignment",
    "python": "one word, two meanings",
    "worksheet": "exercises in attention with small numbers, and their solutions",
}


def load_study(name: str) -> ModuleType:
    """Import a study.

    Args:
        name: one of `STUDIES`.

    Raises:
        ValueError: there is no such study.
    """
    if name not in STUDIES:
        raise ValueError(f"study is {name!r}; it must be one of {', '.join(STUDIES)}")
    return import_module(f".{name}", __name__)
