# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Solutions against plain floats, from the numbers that stand in the exercise."""

import math
import re
from html.parser import HTMLParser

import pytest

from hf_attn.studies import worksheet


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def score(kind, numbers, query, key):
    if kind == "additive":
        inner = zip(times(numbers["W"], query), times(numbers["U"], key))
        return dot(numbers["v"], [math.tanh(a + b) for a, b in inner])
    if kind == "general":
        return dot(query, times(numbers["W"], key))
    return dot(query, key) / (2 if kind in ("scaled_dot", "causal") else 1)


def attend_by_hand(kind, numbers, queries, keys, values):
    """Scores, weights and contexts of each query."""
    found = []
    for place, query in enumerate(queries):
        scores = [score(kind, numbers, query, key) for key in keys]
        seen = [kind != "causal" or other <= place for other in range(len(keys))]
        powers = [math.exp(one) if may else 0.0 for one, may in zip(scores, seen)]
        weights = [power / sum(powers) for power in powers]
        context = [sum(w * value[k] for w, value in zip(weights, values)) for k in range(len(values[0]))]
        found.append((scores, weights, context))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_every_solution_is_right(seed):
    exercises = worksheet.run(seed=seed)["exercises"]
    assert [one["kind"] for one in exercises] == [kind for kind in worksheet.KINDS for _ in range(2)]
    for one in exercises:
        kind, numbers = one["kind"], one["numbers"]
        rows = [numbers[name] for name in ("query", "key", "value")]
        heads = [[[row[:2] for row in part] for part in rows], [[row[2:] for row in part] for part in rows]]
        for head, parts in enumerate(heads if kind == "two_heads" else [rows]):
            for place, expected in enumerate(attend_by_hand(kind, numbers, *parts)):
                for name, values in zip(("scores", "weights", "context"), expected):
                    assert one["solution"][name][head][place] == pytest.approx(values, abs=1e-6), (kind, name)


def test_numbers_are_small_and_whole():
    for seed in range(5):
        for one in worksheet.run(seed=seed)["exercises"]:
            given = [
                x for rows in one["numbers"].values() for row in rows for x in (row if isinstance(row, list) else [row])
            ]
            assert all(isinstance(x, int) and abs(x) <= 4 for x in given)
            if one["kind"] != "additive":
                products = [x for head in one["solution"]["products"] for row in head for x in row]
                assert all(x == int(x) for x in products)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_worksheets_ask_and_solutions_answer(language):
    result = worksheet.run(count=1, languages=[language])
    texts = worksheet.files(result)
    assert set(texts) == {f"{name}-{language}.{kind}" for name in ("worksheet", "solutions") for kind in ("md", "html")}
    asked, answered = texts[f"worksheet-{language}.md"], texts[f"solutions-{language}.md"]
    assert asked.count("\n## ") == answered.count("\n## ") == len(worksheet.KINDS)
    for one in result["exercises"]:
        for head in one["solution"]["context"]:
            for row in head:
                written = "(" + ", ".join(f"{x:.3f}" for x in row) + ")"
                assert written in answered and written not in asked
    assert bool(re.search("[가-힣]", asked)) == bool(re.search("[가-힣]", answered)) == (language == "ko")


def test_the_table_of_exponentials_has_all_that_is_needed_and_more():
    result = worksheet.run(kinds=["scaled_dot"], count=1, languages=["en"])
    (scores,) = result["exercises"][0]["solution"]["scores"][0]
    table = worksheet.files(result)["worksheet-en.md"]
    assert all(f"| {x:g} " in table and f"| {math.exp(x):.3f} " in table for x in scores)
    assert table.count(" |", table.index("| e^x |")) > 2 * len(scores)


def test_pages_are_whole_and_in_their_language():
    class Tags(HTMLParser):
        open_tags: list = []

        def handle_starttag(self, tag, attrs):
            if tag != "meta":
                self.open_tags.append(tag)

        def handle_endtag(self, tag):
            assert self.open_tags.pop() == tag

    for name, text in worksheet.files(worksheet.run(count=1)).items():
        if name.endswith(".html"):
            parser = Tags()
            parser.feed(text)
            assert parser.open_tags == [] and f'<html lang="{name[-7:-5]}">' in text


def test_a_seed_makes_a_sheet():
    first, again, other = (worksheet.run(seed=seed) for seed in (1, 1, 2))
    assert first == again and first["exercises"] != other["exercises"]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="kind is 'cosine'; it must be one of dot, scaled_dot"):
        worksheet.run(kinds=["cosine"])
    with pytest.raises(ValueError, match="language is 'fr'; it must be one of en, ko"):
        worksheet.run(languages=["fr"])
