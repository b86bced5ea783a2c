"""What else might have been written, and what a change does, on pages: numbers, marks, and text that stays text."""

import html
import math
import re

import pytest

from hf_attn.inference import Translation
from hf_attn.inference.what_if import Candidate, WhatIf
from hf_attn.visualization.what_if_html import next_pieces_html, what_if_html


def written(text, probabilities, tokens=None):
    """A translation with these probabilities; its pieces are its words."""
    tokens = text.split() if tokens is None else tokens
    ids = [sum(map(ord, token)) for token in tokens]
    log_probs = [math.log(value) for value in probabilities]
    return Translation("a b", text, ["a", "b"], tokens, log_probs, 0.0, target_ids=ids)


def rows_of(page):
    """The cells of each row of the page's table, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.document)
    return [
        [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows
    ]


def test_each_step_lists_its_candidates_and_marks_the_piece_that_was_written():
    translation = written("le chat", [0.5, 0.01])
    first, second = translation.target_ids
    steps = [
        [Candidate(first, "le", 0.5), Candidate(1, "un", 0.25)],
        [Candidate(2, "chien", 0.6), Candidate(3, "rat", 0.3)],
    ]
    page = next_pieces_html(translation, steps)
    lists = [
        re.findall(r'<li(.*?)><bdi lang="">(.*?)</bdi><small>(.*?)</small>', one)
        for one in page.document.split("<ol>")[1:]
    ]
    assert [[(text, number) for _, text, number in rows] for rows in lists] == [
        [("le", "0.50"), ("un", "0.25")],
        [("chien", "0.60"), ("rat", "0.30"), ("chat", "0.01")],
    ]
    assert [["chosen" in mark for mark, *_ in rows] for rows in lists] == [[True, False], [False, False, True]]
    assert second == translation.target_ids[1]
    with pytest.raises(ValueError, match="candidates has 1 entries for 2 pieces"):
        next_pieces_html(translation, steps[:1])


def test_before_after_and_change_of_every_piece():
    before, rescored = written("le chat dort", [0.9, 0.8, 0.501]), written("le chat dort", [0.95, 0.1, 0.5])
    page = what_if_html(WhatIf(before, rescored, written("le chien dort", [0.5] * 3)), "without “cat”")
    head, *rows = rows_of(page)
    assert head == ["", "before", "after", "change", ""]
    assert [row[:4] for row in rows] == [
        ["le", "0.90", "0.95", "+0.05"],
        ["chat", "0.80", "0.10", "-0.70"],
        ["dort", "0.50", "0.50", "0.00"],
    ]
    assert "le <ins>chien</ins> dort" in page.document and "without “<bdi" in page.document
    totals = [sum(translation.token_log_probs) for translation in (before, rescored)]
    assert f"{totals[0]:.2f} before, {totals[1]:.2f} after" in page.document


@pytest.mark.parametrize(
    ("old", "new", "marked"),
    [
        ("a b c", "a b c", "a b c"),
        ("a b c", "a x y c", "a <ins>x y</ins> c"),
        ("a b c", "a c", "a c"),
        ("a a", "a a a", "a a <ins>a</ins>"),
        ("a b", "", "(nothing)"),
        ("", "a", "<ins>a</ins>"),
    ],
)
def test_what_is_new_is_marked(old, new, marked):
    before, after = written(old, [0.5] * len(old.split())), written(new, [0.5] * len(new.split()))
    page = what_if_html(WhatIf(before, None, after), "after another piece").document
    assert f'<p class="after" dir="auto" lang="">{marked}</p>' in page and "<table>" not in page
    assert ("another piece: the same" in page) == (old == new)


def test_text_is_text_and_nothing_else():
    hostile = written("<b>x</b> &lt;", [0.5], ["<img src=x onerror=alert(1)>\ud800"])
    page = what_if_html(WhatIf(hostile, hostile, hostile), "<script>alert(1)</script>").document
    page += next_pieces_html(hostile, [[Candidate(1, "</bdi><script>", 0.5)]]).document
    assert "<b>x" not in page and "<img" not in page and "<script>alert" not in page and "</bdi><script>" not in page
    page.encode("utf-8")
