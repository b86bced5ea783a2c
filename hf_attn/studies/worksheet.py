# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Exercises in attention with numbers small enough for a pencil, and their solutions, computed by `attend`.

    1 scores   2 scale   3 mask   4 softmax: weights_i = e^scores_i / sum_k e^scores_k   5 weighted sum of the values

Six kinds: dot, scaled dot (Vaswani 2017, arXiv 1706.03762, eq. 1), additive (Bahdanau 2015, 1409.0473, A.1.2), general
(Luong 2015, 1508.04025, eq. 8), self-attention under a causal mask, two heads. Vectors and matrices have whole numbers,
scores too but for tanh and the scale, which is 2; no two scores of the last query are the same, and none lies more than
4 above another. Look at: solutions round to three places at the end only, so that a sum of rounded weights may miss 1
by 0.001. `worksheet_text.py` writes them down, in English or Korean.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from ..models.attention import attend
from ..models.masks import AttentionMask
from ..models.scores import Additive, Dot, General, ScaledDot, Score
from .worksheet_text import LANGUAGES, to_html, to_markdown, write_exercise, write_solution

KINDS = ("dot", "scaled_dot", "additive", "general", "causal", "two_heads")
QUICK: dict[str, Any] = {}
Matrix = list[list[int]]


def draw_numbers(kind: str, random: random.Random) -> dict[str, Any]:
    """Draw the vectors and matrices of an exercise; each row of `query`, `key` and `value` is a vector."""

    def matrix(rows: int, columns: int, least: int = -1, most: int = 2) -> Matrix:
        return [[random.randint(least, most) for _ in range(columns)] for _ in range(rows)]

    if kind == "causal":
        states = matrix(3, 4, 0, 2)
        return {"query": states, "key": states, "value": states}
    width = 4 if kind in ("scaled_dot", "two_heads") else 2
    numbers: dict[str, Any] = {"query": matrix(1, width), "key": matrix(3, width), "value": matrix(3, width, 0, 4)}
    if kind == "additive":
        numbers |= {"W": matrix(2, 2, -1, 1), "U": matrix(2, 2, -1, 1), "v": [random.choice((-2, -1, 1, 2, 3)), 2]}
    if kind == "general":
        numbers |= {"W": matrix(2, 2, -1, 2)}
    return numbers


def make_score_module(kind: str, numbers: dict[str, Any]) -> Score:
    """Build the score of an exercise, with its matrices."""
    width = len(numbers["query"][0])
    if kind in ("scaled_dot", "causal"):
        return ScaledDot(width, width)
    if kind == "general":
        general = General(width, width)
        general.key_projection.weight.data = torch.tensor(numbers["W"], dtype=torch.float32)
        return general
    if kind == "additive":
        additive = Additive(width, width, 2)
        additive.query_projection.weight.data = torch.tensor(numbers["W"], dtype=torch.float32)
        additive.key_projection.weight.data = torch.tensor(numbers["U"], dtype=torch.float32)
        additive.energy.weight.data = torch.tensor([numbers["v"]], dtype=torch.float32)
        return additive
    width = width // 2 if kind == "two_heads" else width
    return Dot(width, width)


@torch.no_grad()
def solve(kind: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """Compute scores, weights and contexts, a list for each head of a list for each query."""
    score = make_score_module(kind, numbers).double()
    heads = 2 if kind == "two_heads" else 1
    query, key, value = (
        torch.tensor(numbers[name], dtype=torch.float64).unflatten(1, (heads, -1)).transpose(0, 1)[None]
        for name in ("query", "key", "value")
    )
    scores = score(query, score.project_keys(key))
    mask = AttentionMask(causal=kind == "causal").dense(query.shape[-2], key.shape[-2])
    context, weights = attend(scores, value, mask)
    before = scores / score.scale if kind in ("scaled_dot", "causal") and score.scale else scores
    found = {"products": before, "scores": scores, "weights": weights, "context": context}
    return {name: tensor[0].tolist() for name, tensor in found.items()}


def is_doable(kind: str, numbers: dict[str, Any], solution: dict[str, Any]) -> bool:
    """Tell whether an exercise is worth doing: scores differ, none drowns the others, and no vector is zero."""
    rows = [head[-1] for head in solution["scores"]]
    apart = all(len({round(score, 6) for score in row}) == len(row) and max(row) - min(row) <= 4 for row in rows)
    vectors = [*numbers["query"], *numbers["key"], *numbers.get("W", [[1]]), *numbers.get("U", [[1]])]
    whole = kind == "additive" or all(score == int(score) for row in solution["products"][0] for score in row)
    return apart and whole and all(any(vector) for vector in vectors)


def run(
    kinds: Sequence[str] = KINDS, count: int = 2, seed: int = 0, languages: Sequence[str] = tuple(LANGUAGES)
) -> dict[str, Any]:
    """Make exercises with their solutions.

    Args:
        kinds: some of `KINDS`.
        count: exercises of each.
        seed: another one gives other numbers.
        languages: "en", "ko" or both.

    Raises:
        ValueError: there is no such kind or language.
    """
    for name, value, allowed in [
        *(("kind", kind, KINDS) for kind in kinds),
        *(("language", one, tuple(LANGUAGES)) for one in languages),
    ]:
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    source, exercises = random.Random(seed), []
    for kind in kinds:
        for _ in range(count):
            while True:
                numbers = draw_numbers(kind, source)
                solution = solve(kind, numbers)
                if is_doable(kind, numbers, solution):
                    break
            exercises.append({"kind": kind, "numbers": numbers, "solution": solution})
    return {"seed": seed, "languages": list(languages), "exercises": exercises}


def files(result: dict[str, Any]) -> dict[str, str]:
    """Write worksheets and solutions, apart, as Markdown and as pages to print; text by file name."""
    texts = {}
    for language in result["languages"]:
        for name, write in (("worksheet", write_exercise), ("solutions", write_solution)):
            blocks = [
                block for place, one in enumerate(result["exercises"], start=1) for block in write(one, place, language)
            ]
            title = LANGUAGES[language][name].format(seed=result["seed"])
            texts[f"{name}-{language}.md"] = to_markdown(title, blocks)
            texts[f"{name}-{language}.html"] = to_html(title, blocks, language)
    return texts


def show(result: dict[str, Any]) -> str:
    """Write the first exercise and its solution, in the first language."""
    language, first = result["languages"][0], result["exercises"][0]
    blocks = [*write_exercise(first, 1, language), *write_solution(first, 1, language)]
    return f"{len(result['exercises'])} exercises; the first:\n" + to_markdown("", blocks).strip()
