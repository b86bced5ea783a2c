# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page that computes BLEU and perplexity by hand: every n-gram, what is clipped, the brevity penalty, every factor.

    BLEU       = brevity penalty * (p_1 * p_2 * .. * p_N) ** (1 / N)     Papineni 2002, sections 2.1 to 2.3
    perplexity = (P_1 * P_2 * .. * P_n) ** (-1 / n)

The numbers are those of `hf_attn/evaluation/from_scratch.py`, where both formulas are written out; from 0 to 1 and
without smoothing. Read next: `page.py` for what all pages share.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hf_attn.evaluation.from_scratch import brevity_penalty, clipped_matches, ngrams, perplexity, sentence_bleu

from .page import HtmlPage, direction, escape, make_page

MATCHED, CLIPPED, MISSING = "matched", "clipped", "missing"
SIGNS = {MATCHED: "✓", CLIPPED: "clipped", MISSING: "✗"}
STYLE = """
:root { --good: light-dark(#0b7a3e, #57d993); --bad: light-dark(#b42318, #fda29b); }
h1 { font-size: 20px; margin: 0 0 4px; }
h2 { font-size: 17px; margin: 0 0 6px; overflow-wrap: anywhere; }
h3 { font-size: 15px; margin: 12px 0 4px; }
p { margin: 0 0 8px; overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: 14px; }
.hypotheses { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
section { border: 1px solid var(--edge); border-radius: 10px; padding: 12px 14px; min-width: 0; }
.grams { display: flex; flex-wrap: wrap; gap: 5px; margin: 0 0 6px; padding: 0; list-style: none; }
.grams li { border: 1px solid; border-radius: 7px; padding: 1px 7px; max-width: 100%; overflow-wrap: anywhere; }
.grams .matched { color: var(--good); background: color-mix(in srgb, var(--good) 12%, var(--paper)); }
.grams .clipped, .grams .missing { color: var(--bad); border-style: dashed; }
.grams small { font-size: 11px; }
.formula { font-family: "Cambria Math", "STIX Two Math", Georgia, serif; font-size: 17px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--edge); padding: 3px 12px 3px 0; text-align: end; }
th:first-child { text-align: start; font-weight: 400; }
td.better { font-weight: 700; color: var(--good); }
.bar { display: inline-block; height: 9px; width: calc(70px * var(--share)); background: var(--line); }
.factors td:last-child { text-align: start; min-width: 80px; }
"""


@dataclass(frozen=True)
class Factors:
    """The probability of each piece after those before it.

    Attributes:
        pieces: what is predicted, one by one.
        probabilities: of each, from 0 to 1.
    """

    pieces: Sequence[str]
    probabilities: Sequence[float]


def metrics_html(
    reference: Sequence[str],
    hypotheses: Sequence[Sequence[str]],
    *,
    factors: Sequence[Factors] | None = None,
    factors_from: str = "",
    max_order: int = 4,
) -> HtmlPage:
    """Compute BLEU, and perplexity where factors are given, of hypotheses on a page that shows every step.

    Args:
        reference: words of a right translation.
        hypotheses: words of each translation to be judged, one or more.
        factors: for each hypothesis the probabilities whose perplexity stands beside its BLEU.
        factors_from: a sentence that says whose probabilities they are.
        max_order: the longest n-grams.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if a sentence is a string or empty, there is no hypothesis, or not one entry of factors for each.
    """
    for name, words in (("reference", reference), *((f"hypotheses[{i}]", one) for i, one in enumerate(hypotheses))):
        if isinstance(words, str) or len(words) == 0:
            raise ValueError(f"{name} is {words!r}; it must be a list of words, at least one")
    if len(hypotheses) == 0 or (factors is not None and len(factors) != len(hypotheses)):
        count = None if factors is None else len(factors)
        raise ValueError(f"there are {len(hypotheses)} hypotheses and {count} factors; give at least one, and as many")
    scores = [_scores(reference, words, max_order) for words in hypotheses]
    perplexities = None if factors is None else [perplexity(one.probabilities) for one in factors]
    sections = []
    for number, words in enumerate(hypotheses):
        parts = [_words(words, f"Translation {number + 1}")]
        parts += [_order(reference, words, order) for order in range(1, max_order + 1)]
        parts.append(_bleu(reference, words, max_order))
        if factors is not None:
            parts.append(_perplexity(factors[number], factors_from, number + 1))
        sections.append(f"<section>{''.join(parts)}</section>")
    body = (
        f"<h1>BLEU{'' if factors is None else ' and perplexity'}, by hand</h1>"
        f'<p><span class="faint">Reference</span> <span dir="auto" lang="">{escape(" ".join(reference))}</span></p>'
        f"{_verdict(scores, perplexities, max_order)}"
        f'<div class="hypotheses">{"".join(sections)}</div>'
    )
    return make_page("BLEU and perplexity, by hand", body, style=STYLE, height=900)


def judge_ngrams(reference: Sequence[str], hypothesis: Sequence[str], order: int) -> list[tuple[tuple[str, ...], str]]:
    """Say of each n-gram of a hypothesis, from left to right, whether BLEU counts it.

    Args:
        reference: words.
        hypothesis: words.
        order: n, at least 1.

    Returns:
        Each n-gram with "matched", "clipped" (the reference has it, but not so often) or "missing".
    """
    there, used = ngrams(reference, order), Counter()
    judged = []
    for start in range(len(hypothesis) - order + 1):
        gram = tuple(hypothesis[start : start + order])
        used[gram] += 1
        judged.append((gram, MATCHED if used[gram] <= there[gram] else CLIPPED if there[gram] else MISSING))
    return judged


def _scores(reference: Sequence[str], words: Sequence[str], max_order: int) -> dict[int, float]:
    """Give BLEU with n-grams up to 2 and up to max_order, as far as they differ."""
    return {order: sentence_bleu(words, [reference], order) for order in sorted({min(2, max_order), max_order})}


def _words(words: Sequence[str], title: str) -> str:
    return f'<h2>{title}: <span dir="auto" lang="">{escape(" ".join(words))}</span></h2>'


def _order(reference: Sequence[str], words: Sequence[str], order: int) -> str:
    matches, total = clipped_matches(words, [reference], order)
    if total == 0:
        return f"<h3>p<sub>{order}</sub>: no {order}-gram in {len(words)} words</h3>"
    items = "".join(
        f'<li class="{verdict}" dir="auto"><span lang="">{escape(" ".join(gram))}</span> '
        f"<small>{SIGNS[verdict]}</small></li>"
        for gram, verdict in judge_ngrams(reference, words, order)
    )
    heading = f"p<sub>{order}</sub> = {matches} / {total} = {matches / total:.3f}"
    way = f' dir="{direction(list(words))}"'
    return f'<h3>{heading}</h3><ul class="grams"{way} aria-label="{order}-grams">{items}</ul>'


def _bleu(reference: Sequence[str], words: Sequence[str], max_order: int) -> str:
    """Write the brevity penalty and the product."""
    short, long = len(words), len(reference)
    penalty = brevity_penalty(short, long)
    reason = f"c = {short} ≥ r = {long}" if short >= long else f"exp(1 − {long} / {short})"
    lines = [f"brevity penalty = {penalty:.4f} <span class='faint'>({reason})</span>"]
    for order, score in _scores(reference, words, max_order).items():
        pairs = [clipped_matches(words, [reference], n) for n in range(1, order + 1)]
        product = " · ".join(f"{matches}/{total}" for matches, total in pairs)
        lines.append(f"BLEU-{order} = {penalty:.4f} · ({product})<sup>1/{order}</sup> = <b>{score:.4f}</b>")
    return "<h3>BLEU</h3>" + "".join(f'<p class="formula">{line}</p>' for line in lines)


def _perplexity(factors: Factors, factors_from: str, number: int) -> str:
    """Write the factors and their geometric mean."""
    rows = "".join(
        f'<tr><th scope="row" dir="auto" lang="">{escape(piece)}</th><td>{_number(probability)}</td>'
        f'<td><span class="bar" style="--share: {probability:.4f}"></span></td></tr>'
        for piece, probability in zip(factors.pieces, factors.probabilities, strict=True)
    )
    count = len(factors.probabilities)
    result = f"perplexity = (product of {count} factors)<sup>−1/{count}</sup>"
    return (
        f'<h3>Perplexity</h3><p class="faint">{escape(factors_from)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="factors of translation {number}">'
        f'<table class="factors">{rows}</table></div>'
        f'<p class="formula">{result} = <b>{_number(perplexity(factors.probabilities))}</b></p>'
    )


def _number(value: float) -> str:
    """Write a number with four decimals, a small one by its power of ten, a large one shorter."""
    if 0 < value < 5e-4:
        return f"{value:.1e}"
    return f"{value:.4f}" if value < 1000 else f"{value:,.1f}"


def _verdict(scores: list[dict[int, float]], perplexities: list[float] | None, max_order: int) -> str:
    """Put the scores side by side, and say so where the two disagree."""
    rows = {f"BLEU-{order} (higher is better)": [one[order] for one in scores] for order in scores[0]}
    best = {name: max(values) for name, values in rows.items()}
    if perplexities is not None:
        rows["perplexity (lower is better)"] = perplexities
        best["perplexity (lower is better)"] = min(perplexities)
    cells = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(
            f'<td class="{"better" if value == best[name] and len(set(values)) > 1 else ""}">{_number(value)}</td>'
            for value in values
        )
        + "</tr>"
        for name, values in rows.items()
    )
    head = "".join(f'<th scope="col">{number + 1}</th>' for number in range(len(scores)))
    table = (
        '<div class="scroll" tabindex="0" role="region" aria-label="scores">'
        f'<table><tr><th scope="col">translation</th>{head}</tr>{cells}</table></div>'
    )
    if perplexities is None or len(scores) < 2:
        return table
    bleu = _preferred([[one[order] for order in sorted(one)] for one in scores])
    other = _preferred([[-value] for value in perplexities])
    if not bleu or not other:
        named = [f"translation {number}" if number else "no single one" for number in (bleu, other)]
        sentence = f"BLEU prefers {named[0]}, perplexity {named[1]}."
    elif bleu == other:
        sentence = f"Both prefer translation {bleu}."
    else:
        sentence = f"They disagree: BLEU prefers translation {bleu}, perplexity translation {other}."
    return f'{table}<p role="status"><b>{sentence}</b></p>'


def _preferred(values: list[list[float]]) -> int | None:
    """Give the number of the translation with the largest values, counted from 1; None where several have them."""
    best = max(values)
    return values.index(best) + 1 if values.count(best) == 1 else None
