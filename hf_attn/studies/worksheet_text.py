# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Write exercises and solutions of `worksheet.py` down, in English and Korean, as Markdown and as a page to print.

A text is a list of blocks: a heading ("h", text), a paragraph ("p", text) or a table ("t", rows of cells, the first of
them a header). Read before: `worksheet.py`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

Block = tuple[str, Any]

LANGUAGES = {
    "en": {
        "worksheet": "Attention by hand, sheet {seed}",
        "solutions": "Attention by hand, solutions of sheet {seed}",
        "exercise": "Exercise {number}: {kind}",
        "solution": "Solution {number}: {kind}",
        "dot": "dot product",
        "scaled_dot": "scaled dot product",
        "additive": "additive score (Bahdanau)",
        "general": "general score (Luong)",
        "causal": "self-attention under a causal mask",
        "two_heads": "two heads",
        "given": "Given:",
        "ask": "Compute the scores {formula}, the weights and the context. Round the weights to three places.",
        "ask_causal": "Query, key and value of a word are all its vector x. Compute the scores {formula} of every "
        "pair, mask what comes later, then the weights and the context of each word, to three places.",
        "ask_two_heads": "Head 1 reads coordinates 1 and 2 of every vector, head 2 coordinates 3 and 4. Compute scores "
        "{formula}, weights and context of each head, and join the contexts. Round the weights to three places.",
        "table": "e^x:",
        "tanh": "tanh(0) = 0, tanh(1) = 0.762, tanh(2) = 0.964, tanh(3) = 0.995, tanh(4) = 0.999, tanh(-x) = -tanh(x); "
        "for e^x, a calculator",
        "head": "head {head}",
        "query_row": "word {row}",
        "products": "q · k",
        "scores": "score",
        "powers": "e^score",
        "weights": "weight",
        "key": "key",
        "context": "context",
        "joined": "joined context",
        "masked": "masked",
    },
    "ko": {
        "worksheet": "손으로 계산하는 Attention, 문제지 {seed}",
        "solutions": "손으로 계산하는 Attention, 문제지 {seed} 풀이",
        "exercise": "문제 {number}: {kind}",
        "solution": "풀이 {number}: {kind}",
        "dot": "내적",
        "scaled_dot": "스케일된 내적",
        "additive": "덧셈형 점수 (Bahdanau)",
        "general": "general 점수 (Luong)",
        "causal": "causal mask를 씌운 self-attention",
        "two_heads": "헤드 두 개",
        "given": "주어진 값:",
        "ask": "점수 {formula}, 가중치, 문맥 벡터를 차례로 구하시오. 가중치는 소수 셋째 자리까지 반올림한다.",
        "ask_causal": "각 단어의 query, key, value는 모두 벡터 x이다. 모든 쌍의 점수 {formula}를 구하고 "
        "뒤에 오는 단어를 가린 다음, 단어마다 가중치와 문맥 벡터를 소수 셋째 자리까지 구하시오.",
        "ask_two_heads": "헤드 1은 모든 벡터의 1, 2번째 성분을, 헤드 2는 3, 4번째 성분을 읽는다. "
        "헤드마다 점수 {formula}, 가중치, 문맥 벡터를 구하고 두 문맥 벡터를 이어 붙이시오. "
        "가중치는 소수 셋째 자리까지 반올림한다.",
        "table": "e^x 표:",
        "tanh": "tanh(0) = 0, tanh(1) = 0.762, tanh(2) = 0.964, tanh(3) = 0.995, tanh(4) = 0.999, tanh(-x) = -tanh(x). "
        "e^x는 계산기로 구한다.",
        "head": "헤드 {head}",
        "query_row": "단어 {row}",
        "products": "q · k",
        "scores": "점수",
        "powers": "e^점수",
        "weights": "가중치",
        "key": "key",
        "context": "문맥 벡터",
        "joined": "이어 붙인 문맥 벡터",
        "masked": "가림",
    },
}
FORMULAS = {
    "dot": "q · k",
    "scaled_dot": "q · k / √4",
    "additive": "v · tanh(W q + U k)",
    "general": "q · (W k)",
    "causal": "x · x' / √4",
    "two_heads": "q · k",
}


COLUMNS = 9  # of a table of exponentials, which then fits a printed page


def _vector(numbers: Sequence[float]) -> str:
    return "(" + ", ".join(f"{number:.3f}" if isinstance(number, float) else str(number) for number in numbers) + ")"


def write_exercise(exercise: dict[str, Any], number: int, language: str) -> list[Block]:
    """Write what is given and what is asked."""
    words, kind, numbers = LANGUAGES[language], exercise["kind"], exercise["numbers"]
    names = {"query": "q", "key": "k", "value": "v"}
    if kind == "causal":
        given = [f"x{place} = {_vector(row)}" for place, row in enumerate(numbers["query"], start=1)]
    else:
        given = [f"q = {_vector(numbers['query'][0])}"]
        for name in ("key", "value"):
            # the values are called u where v is the vector of the score
            letter = "u" if (kind, name) == ("additive", "value") else names[name]
            given += [f"{letter}{place} = {_vector(row)}" for place, row in enumerate(numbers[name], start=1)]
        given += [f"{name} = [{'; '.join(_vector(row) for row in numbers[name])}]" for name in "WU" if name in numbers]
        given += [f"v = {_vector(numbers['v'])}"] if "v" in numbers else []
    ask = words.get(f"ask_{kind}", words["ask"]).format(formula=FORMULAS[kind])
    scores = [score for head in exercise["solution"]["scores"] for row in head for score in row]
    blocks: list[Block] = [
        ("h", words["exercise"].format(number=number, kind=words[kind])),
        ("p", f"{words['given']} {',  '.join(given)}"),
        ("p", ask),
    ]
    if kind == "additive":
        return [*blocks, ("p", words["tanh"])]
    # more than is needed, so that the table does not give the scores away
    step = 0.5 if kind in ("scaled_dot", "causal") else 1
    first = math.floor(min(scores)) - 1
    powers = [first + step * place for place in range(round((math.ceil(max(scores)) + 1 - first) / step) + 1)]
    blocks.append(("p", words["table"]))
    columns = math.ceil(len(powers) / math.ceil(len(powers) / COLUMNS))
    for start in range(0, len(powers), columns):
        part = powers[start : start + columns]
        blocks.append(("t", [["x", *(f"{x:g}" for x in part)], ["e^x", *(f"{math.exp(x):.3f}" for x in part)]]))
    return blocks


def write_solution(exercise: dict[str, Any], number: int, language: str) -> list[Block]:
    """Write every step of a solution: a table for each head and query, and its context."""
    words, kind, solution = LANGUAGES[language], exercise["kind"], exercise["solution"]
    blocks: list[Block] = [("h", words["solution"].format(number=number, kind=words[kind]))]
    scaled = kind in ("scaled_dot", "causal")
    header = [
        words["key"],
        *([words["products"]] if scaled else []),
        words["scores"],
        words["powers"],
        words["weights"],
    ]
    for head, rows in enumerate(solution["scores"]):
        for row, scores in enumerate(rows):
            if len(solution["scores"]) > 1:
                blocks.append(("p", words["head"].format(head=head + 1)))
            if len(rows) > 1:
                blocks.append(("p", words["query_row"].format(row=row + 1)))
            table = [header]
            for place, score in enumerate(scores):
                weight = solution["weights"][head][row][place]
                masked = kind == "causal" and place > row
                cells = [f"{score:.4g}", words["masked"] if masked else f"{math.exp(score):.3f}", f"{weight:.3f}"]
                product = [f"{solution['products'][head][row][place]:g}"] if scaled else []
                table.append([str(place + 1), *product, *cells])
            blocks += [("t", table), ("p", f"{words['context']}: {_vector(solution['context'][head][row])}")]
    if kind == "two_heads":
        joined = [number for head in solution["context"] for number in head[0]]
        blocks.append(("p", f"{words['joined']}: {_vector(joined)}"))
    return blocks


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """Write a text as Markdown."""
    parts = [f"# {title}"] if title else []
    for kind, content in blocks:
        if kind == "t":
            lines = ["| " + " | ".join(row) + " |" for row in content]
            parts.append("\n".join([lines[0], "|" + "---|" * len(content[0]), *lines[1:]]))
        else:
            parts.append(f"## {content}" if kind == "h" else content)
    return "\n\n".join(parts) + "\n"


STYLE = """body { font: 12pt/1.5 serif; max-width: 44em; margin: 2em auto; padding: 0 1em; }
h2 { font-size: 1.1em; margin-top: 2em; } h2, p { break-after: avoid; } table { border-collapse: collapse; }
td, th { border: 1px solid #999; padding: 0.2em 0.8em; text-align: right; }
table + table { margin-top: 0.5em; }"""


def to_html(title: str, blocks: Sequence[Block], language: str) -> str:
    """Write a text as a page that prints well."""
    parts = []
    for kind, content in blocks:
        if kind == "t":
            rows = [[html.escape(cell) for cell in row] for row in content]
            cells = ["".join(f"<th>{cell}</th>" for cell in rows[0])]
            cells += ["".join(f"<td>{cell}</td>" for cell in row) for row in rows[1:]]
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>")
        else:
            tag = "h2" if kind == "h" else "p"
            parts.append(f"<{tag}>{html.escape(content)}</{tag}>")
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    body = f"<h1>{html.escape(title)}</h1>" + "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="{language}"><head>{head}</head><body>\n{body}\n</body></html>\n'
