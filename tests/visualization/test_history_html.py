"""One sentence through several models on a page: numbers, small heatmaps, growth, and text that stays text."""

import html
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from hf_attn.inference import Translation
from hf_attn.inference.translation import Alignment
from hf_attn.visualization.history_html import Entry, alignment_svg, history_html

SVG = "{http://www.w3.org/2000/svg}"


def written(text="le chat", source="the cat", weights=((0.75, 0.25), (0.1, 0.9))):
    """A translation of two words with these weights."""
    words, read = text.split(" "), source.split(" ")
    ends = [sum(len(word) + 1 for word in words[: number + 1]) - 1 for number in range(len(words))]
    spans = [(end - len(word), end) for end, word in zip(ends, words, strict=True)]
    read_ends = [sum(len(word) + 1 for word in read[: number + 1]) - 1 for number in range(len(read))]
    read_spans = [(end - len(word), end) for end, word in zip(read_ends, read, strict=True)]
    cross = None if weights is None else torch.tensor(weights)[None, None]
    return Translation(
        source, text, read, words, [-0.5] * len(words), -0.5, cross_attentions=cross,
        source_spans=read_spans, target_spans=spans, target_ids=list(range(len(words))),
    )  # fmt: skip


def test_each_cell_is_as_dark_as_its_weight_and_lies_in_its_row_and_column():
    alignment = written().alignment()
    root = ElementTree.fromstring(alignment_svg(alignment, cell=10))
    paper = next(one for one in root.iter(f"{SVG}rect") if one.get("class") == "paper")
    left, top = float(paper.get("x")), float(paper.get("y"))
    cells = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "cell"]
    found = {
        (round((float(one.get("y")) - top) / 10), round((float(one.get("x")) - left) / 10)): float(one.get("opacity"))
        for one in cells
    }
    assert found == {(0, 0): 0.75, (0, 1): 0.25, (1, 0): 0.1, (1, 1): 0.9}
    assert [one.text for one in root.iter(f"{SVG}text")] == ["the", "cat", "le", "chat"]
    assert root.find(f"{SVG}title").text.endswith("le looks at the, chat looks at cat")


@pytest.mark.parametrize("count", [1, 40])
@pytest.mark.parametrize("word", ["소녀는", "supercalifragilistic", "x"])
def test_labels_have_room(word, count):
    alignment = Alignment(torch.ones(1, count), [word], [word] * count, "weights")
    root = ElementTree.fromstring(alignment_svg(alignment))
    paper = next(one for one in root.iter(f"{SVG}rect"))
    shown = [one.text for one in root.iter(f"{SVG}text")][-1]
    size = 11 if count == 1 else 9  # pixels of a letter
    width = sum(size if "가" <= letter <= "힣" else 0.59 * size for letter in shown)
    assert float(paper.get("x")) >= width and len(shown) <= 14


def test_every_model_has_its_text_its_seconds_and_its_flags():
    entries = [
        Entry("No attention", written("un chien", weights=None), 0.5, ["repetition"]),
        Entry("Bahdanau", written(), 0.25),
    ]
    growth = {"No attention": [(2, 0.5), (8, 0.125)], "Bahdanau": [(2, 1.0), (8, 0.75)]}
    document = history_html(entries, growth, "share").document
    sections = re.findall(r"<section>(.*?)</section>", document)
    assert [re.search("<h2>(.*?)</h2>", one)[1] for one in sections] == ["No attention", "Bahdanau"]
    assert "un chien" in sections[0] and "0.50 s" in sections[0] and "repetition" in sections[0]
    assert "no attention to draw" in sections[0] and "<svg" not in sections[0]
    assert "0.25 s" in sections[1] and "<svg" in sections[1] and "probability of a piece 0.61" in sections[1]
    rows = re.findall(r"<tr>(.*?)</tr>", document)
    table = [
        [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows
    ]
    assert table == [["words", "2", "8"], ["No attention", "0.50", "0.12"], ["Bahdanau", "1.00", "0.75"]]
    lines = re.findall(r'<polyline points="([^"]+)"', document)
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    assert heights[0][1] > heights[0][0] > heights[1][1] > heights[1][0]  # down is less


def test_without_growth_there_is_no_chart():
    assert "<polyline" not in history_html([Entry("a", written(), 1.0)], {"a": [(2, 0.5)]}).document


def test_text_is_text_and_nothing_else():
    hostile = written("<b>x</b> </svg><script>", "<img> \ud800")
    page = history_html([Entry("<i>", hostile, 1.0, ["<u>"])], {"<i>": [(1, 0.5), (2, 0.5)]}, "<s>").document
    for mark in ("<b>", "<img>", "</svg><script>", "<i>", "<u>", "<s>"):
        assert mark not in page
    page.encode("utf-8")


def test_mistakes_are_named():
    for entries in ([], [Entry("a", written(), 1.0), Entry("b", written(source="a dog"), 1.0)]):
        with pytest.raises(ValueError, match="translations of one sentence, at least one"):
            history_html(entries)
