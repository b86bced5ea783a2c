"""All beams of a sentence on a page: what is shared, its order, its numbers, and that text stays text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_attn.inference import Translation
from hf_attn.visualization.beams_html import arrange, beams_html, shared_cells


def output(ids, source="a b", tokens=None):
    """An output of the given pieces; the probability of a piece is 1 / (its number + 1)."""
    log_probs = [-math.log(number + 1) for number in ids]
    tokens = [f"<{number}>" for number in ids] if tokens is None else tokens
    return Translation(source, "x", ["a", "b"], tokens, log_probs, sum(log_probs), target_ids=list(ids))


outputs = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=1, max_size=7, unique_by=tuple)


@given(outputs)
def test_those_that_begin_alike_are_neighbours_and_better_branches_come_first(rows):
    order = arrange([output(row) for row in rows])
    assert sorted(order) == list(range(len(rows))) and order[0] == 0
    arranged = [tuple(rows[index]) for index in order]
    for depth in range(1, 5):
        for start in {row[:depth] for row in arranged}:
            places = [place for place, row in enumerate(arranged) if row[:depth] == start]
            assert places == list(range(places[0], places[-1] + 1))
            best = min(order[place] for place in places)  # the rank of the branch
            before = [order[place] for place in range(places[0]) if arranged[place][: depth - 1] == start[:-1]]
            assert all(min(order[p] for p in range(len(order)) if arranged[p][:depth] == arranged[q][:depth]) < best
                       for q in range(places[0]) if order[q] in before)  # fmt: skip


@given(outputs)
def test_the_cells_read_back_as_the_outputs(rows):
    translations = [output(row) for row in rows]
    translations = [translations[index] for index in arrange(translations)]
    above: list = []  # the cells that the row stands in, as a browser lays out rowspan
    for translation, cells in zip(translations, shared_cells(translations), strict=True):
        here = [above[place][0] if cell is None else cell for place, cell in enumerate(cells)]
        left = [above[place][1] - 1 if cell is None else cell.rows - 1 for place, cell in enumerate(cells)]
        assert [cell.token for cell in here] == translation.target_tokens and min(left) >= 0
        assert [cell.probability for cell in here] == pytest.approx([1 / (n + 1) for n in translation.target_ids])
        above = list(zip(here, left, strict=True))


def test_the_page_says_ranks_scores_and_probabilities():
    page = beams_html([output([1, 2]), output([1, 3])]).document
    assert page.count("<tr") == 2 and page.count('rowspan="2"') == 1 and page.count("0.50") >= 1
    for translation in (output([1, 2]), output([1, 3])):
        assert f"{translation.score:.3f}</bdi></th>" in page


def test_pieces_are_text_and_nothing_else():
    page = beams_html([output([1], source="<b>\ud800", tokens=["</td><script>alert(1)</script>"])]).document
    assert "<script>alert" not in page and "&lt;script&gt;" in page and "&lt;b&gt;" in page
    page.encode("utf-8")


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="translations is empty"):
        beams_html([])
    with pytest.raises(ValueError, match="different sources"):
        beams_html([output([1]), output([1], source="c")])
    lines = output([1])
    lines.segments = [output([1])]
    with pytest.raises(ValueError, match="several lines"):
        beams_html([lines])
