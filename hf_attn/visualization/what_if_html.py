# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Two pages of pieces and probabilities: what else might have been written, and what a change does to a translation.

Read `hf_attn/inference/what_if.py` for where the numbers come from.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from . import saving
from .page import HtmlPage, direction, escape, make_page

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.what_if import Candidate, WhatIf

CHOSEN = ' class="chosen" aria-current="true"'
COLUMNS_STYLE = """
.steps { display: flex; gap: 6px; align-items: flex-start; }
.steps ol { list-style: none; margin: 0; padding: 0; border: 1px solid var(--edge); border-radius: 8px; flex: none;
  min-width: 84px; }
.steps li { display: flex; justify-content: space-between; gap: 8px; padding: 2px 7px; white-space: pre;
  background: color-mix(in srgb, var(--glow) calc(100% * var(--p)), var(--paper)); }
.steps li:first-child { border-radius: 7px 7px 0 0; } .steps li:last-child { border-radius: 0 0 7px 7px; }
.steps .chosen bdi { font-weight: 700; text-decoration: underline; text-underline-offset: 3px; }
.steps small { font-size: 12px; padding-top: 2px; }
"""
STYLE = (
    """
:root { --less: light-dark(#b42318, #fda29b); --more: light-dark(#0b7a3e, #57d993); }
h1 { font-size: 17px; font-weight: 600; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 8px; overflow-wrap: anywhere; }
.faint { color: var(--faint); font-size: 14px; }
.after { font-size: 18px; }
ins { text-decoration: none; background: color-mix(in srgb, var(--glow) 45%, var(--paper)); border-radius: 4px;
  padding: 0 3px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 15px; }
th, td { border-bottom: 1px solid var(--edge); padding: 2px 12px 2px 0; text-align: end; white-space: pre; }
th { font-weight: 400; color: var(--faint); }
th[scope=row] { color: var(--ink); text-align: start; }
td.less { color: var(--less); } td.more { color: var(--more); }
td.bars { min-width: 110px; text-align: start; }
.bar { display: block; height: 6px; margin: 2px 0; border-radius: 2px; width: calc(100px * var(--share)); }
.old { background: var(--edge); } .new { background: var(--line); }
"""
    + COLUMNS_STYLE
)


def next_pieces_html(translation: "Translation", candidates: Sequence[Sequence["Candidate"]]) -> HtmlPage:
    """Draw, for every step of a translation, the likeliest pieces with their probabilities.

    Args:
        translation: of one line.
        candidates: for each target piece, as `next_pieces` gives them.

    Returns:
        The page; the piece that was written is underlined, and stands below where it is not among the likeliest.

    Raises:
        ValueError: if there is not one entry for each target piece.
    """
    if len(candidates) != len(translation.target_tokens):
        raise ValueError(f"candidates has {len(candidates)} entries for {len(translation.target_tokens)} pieces")
    columns = []
    chosen = zip(translation.target_ids, translation.target_tokens, translation.token_log_probs, strict=True)
    for (written, token, log_prob), step in zip(chosen, candidates, strict=True):
        rows = [(one.token, one.probability, one.id == written) for one in step]
        if not any(mine for *_, mine in rows):
            rows.append((token, math.exp(log_prob), True))
        columns.append(f"<ol>{likely_items(rows)}</ol>")
    body = (
        f'<h1 dir="auto" lang="">{escape(translation.text) or "(nothing)"}</h1>'
        '<p class="faint">Each column: what might have been written at that step, after the underlined pieces before '
        "it.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="next pieces" '
        f'dir="{direction(translation.target_tokens)}"><div class="steps">{"".join(columns)}</div></div>'
    )
    numbers = {**translation.to_dict(), "candidates": [[asdict(one) for one in step] for step in candidates]}
    saves = ("png", "svg")
    return make_page("Next pieces", body, style=STYLE, script=saving.DRAW, height=320, numbers=numbers, saves=saves)


def likely_items(rows: Sequence[tuple[str, float, bool]]) -> str:
    """Write pieces with their probabilities as items of a list, (piece, probability, whether it was written) each."""
    return "".join(
        f'<li{CHOSEN if mine else ""} style="--p: {0.75 * probability:.3f}"><bdi lang="">{escape(text)}</bdi>'
        f"<small>{probability:.2f}</small></li>"
        for text, probability, mine in rows
    )


def what_if_html(answer: "WhatIf", condition: str) -> HtmlPage:
    """Draw a translation before and after a change.

    Args:
        answer: as `hide_words`, `remove_heads` or `force_piece` gives it.
        condition: what was changed, as a phrase: "without the word “cat”".

    Returns:
        The page: the new text with what is new in it marked, and, where the old one was scored under the new condition,
        the probability of each of its pieces before and after.
    """
    before, after = answer.before, answer.after
    same = before.target_ids == after.target_ids
    told = re.sub("“([^”]*)”", r'“<bdi lang="">\1</bdi>”', escape(condition))
    body = (
        f'<p class="faint">Before</p><p class="after" dir="auto" lang="">{escape(before.text) or "(nothing)"}</p>'
        f'<p class="faint">{told}{": the same" if same else ""}</p>'
        f'<p class="after" dir="auto" lang="">{_marked(before, after)}</p>'
        f"{_table(answer)}"
    )
    parts = {"before": before, "after": after, "rescored": answer.rescored}
    numbers = {"condition": condition} | {name: one.to_dict() for name, one in parts.items() if one}
    return make_page(
        "What if", body, style=STYLE, script=saving.DRAW, height=560, numbers=numbers, saves=("png", "svg")
    )


def _marked(before: "Translation", after: "Translation") -> str:
    """Write the new text; what the old one does not have at the same distance from either end is marked."""
    old, new = before.text.split(" "), after.text.split(" ")
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    stop = len(new) - end
    parts = [" ".join(new[:start]), " ".join(new[start:stop]), " ".join(new[stop:])]
    marked = [escape(parts[0]), f"<ins>{escape(parts[1])}</ins>" if parts[1] else "", escape(parts[2])]
    return " ".join(part for part in marked if part) or "(nothing)"


def _table(answer: "WhatIf") -> str:
    """Write the probability of each piece before and after."""
    if answer.rescored is None:
        return ""
    rows = []
    probabilities = zip(answer.before.token_log_probs, answer.rescored.token_log_probs, strict=True)
    for token, (old, new) in zip(answer.before.target_tokens, probabilities, strict=True):
        old, new = math.exp(old), math.exp(new)
        kind = "" if abs(new - old) < 0.005 else "more" if new > old else "less"
        change = f"{new - old:+.2f}" if kind else "0.00"
        rows.append(
            f'<tr><th scope="row"><bdi lang="">{escape(token)}</bdi></th><td>{old:.2f}</td><td>{new:.2f}</td>'
            f'<td class="{kind}">{change}</td><td class="bars"><span class="bar old" style="--share: {old:.3f}"></span>'
            f'<span class="bar new" style="--share: {new:.3f}"></span></td></tr>'
        )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("before", "after", "change"))
    total = sum(answer.before.token_log_probs), sum(answer.rescored.token_log_probs)
    return (
        '<p class="faint">The probability of each piece of the first translation, before and after</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="probabilities">'
        f"<table><tr><td></td>{head}<td></td></tr>{''.join(rows)}</table></div>"
        f'<p class="faint">log-probability of the whole: {total[0]:.2f} before, {total[1]:.2f} after</p>'
    )
