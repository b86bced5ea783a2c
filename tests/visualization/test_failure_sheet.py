"""The sheet of translations and their flags: what is in the file, and what a browser makes of it."""

import html
import re

import pytest

from hf_attn.evaluation import Failure, find_failures
from hf_attn.visualization import failure_sheet

ATTACK = '<img src=x onerror=alert(1)> </script><script>alert(2)</script> "><b> <!-- \u2028'
ROWS = [
    ("He sleeps.", "Il dort.", ["Il dort.", "Il est endormi."]),
    ("He has three cats.", "Il a des chats.", ["Il a trois chats."]),
    ("Where is it?", "", ["Où est-ce ?"]),
    ("Tom didn't see 12 dogs.", "Il a vu.", ["Tom n'a pas vu 12 chiens."]),
    ("그는 학교에 가지 않는다.", "He goes to school.", ["He does not go to school."]),
]
LANGS = [("en", "fr")] * 4 + [("ko", "en")]


def sheet(rows=ROWS, **options):
    failures = [
        find_failures(source, text, source_lang=langs[0], target_lang=langs[1])
        for (source, text, _), langs in zip(rows, LANGS, strict=False)
    ]
    sources, texts, references = zip(*rows, strict=True)
    return failure_sheet(sources, texts, failures, references, **options)


def table(document):
    """The kinds of each row, and the text of its cells."""
    rows = re.findall(r'<tr data-kinds="([^"]*)">(.*?)</tr>', document)
    return [(kinds, re.findall(r"<td[^>]*>(.*?)</td>", cells)) for kinds, cells in rows]


def test_every_translation_is_in_the_table_flagged_ones_first():
    rows = table(sheet().document)
    assert [cells[0] for _, cells in rows] == ["2", "3", "4", "5", "1"]
    assert [kinds for kinds, _ in rows] == [
        "lost_number",
        "empty",
        "lost_number lost_negation",
        "lost_negation",
        "no_flag",
    ]
    number, source, text, references, flags = rows[4][1]
    assert re.findall(r">([^<]+)</div>", references) == ["Il dort.", "Il est endormi."]
    assert "He sleeps." in source and "Il dort." in text and flags == ""
    assert "<b>lost number</b> " in rows[0][1][4] and ">3<" in rows[0][1][4]


def test_no_references_and_languages():
    page = failure_sheet(["a"], ["b"], [[]], source_lang="en", target_lang="ko", title="A < B")
    assert 'lang="en"><div dir="auto">a</div>' in page.document and 'lang="ko"></td>' in page.document
    assert "<title>A &lt; B</title>" in page.document and "<h1>A &lt; B</h1>" in page.document
    assert table(failure_sheet([], [], []).document) == []


def test_lists_that_differ_in_length_are_refused():
    with pytest.raises(ValueError, match="sources 2, texts 1, failures 1, references 2"):
        failure_sheet(["a", "b"], ["c"], [[]])


def test_nothing_outside_is_asked_for_and_all_text_is_escaped():
    page = failure_sheet([ATTACK], [ATTACK], [[Failure("lost_name", ATTACK)]], [[ATTACK]], source_lang=ATTACK)
    document = page.document
    assert "http://" not in document and "https://" not in document
    assert (
        document.count("<script") == 1
        and "<img" not in document
        and "<b>" not in document.replace("<b>lost name</b>", "")
    )
    assert document.count(html.escape(ATTACK)) == 5


@pytest.mark.browser
def test_boxes_and_search_filter_the_rows(open_page):
    page = open_page(sheet().document)

    def shown():
        return [row.locator("td.number").text_content() for row in page.locator("tbody tr:visible").all()]

    assert shown() == ["2", "3", "4", "5", "1"]
    page.get_by_label("lost negation (2)").check()
    assert shown() == ["4", "5"]
    assert page.get_by_role("status").text_content() == "2 of 5 translations"
    page.get_by_label("empty (1)").check()
    assert shown() == ["3", "4", "5"]
    page.get_by_label("Search").fill("학교")
    assert shown() == ["5"]
    page.get_by_label("Search").fill("")
    page.get_by_label("lost negation (2)").uncheck()
    page.get_by_label("empty (1)").uncheck()
    page.get_by_label("no flag (1)").check()
    assert shown() == ["1"]
    page.get_by_label("Search").fill("SCHOOL")
    page.get_by_label("Search").press("Enter")
    assert shown() == [] and page.get_by_role("status").text_content() == "0 of 5 translations"
    page.get_by_label("no flag (1)").uncheck()
    assert shown() == ["5"]


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens(open_page, dark):
    long = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik " * 8
    page = open_page(sheet([(long, long, [long]), *ROWS[1:]]).document, width=320, dark=dark)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    for box in page.locator("td:visible, label").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().toJSON())"
    ):
        assert 0 <= box["left"] and box["right"] <= 320
    page.get_by_label("lost number").check()
    assert page.locator("tbody tr:visible").count() == 2
    paper, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    assert [sum(map(int, colour[4:-1].split(","))) > 384 for colour in (paper, ink)] == [not dark, dark]


@pytest.mark.browser
def test_markup_in_a_sentence_stays_text(open_page):
    page = open_page(failure_sheet([ATTACK], [ATTACK], [[Failure("copied", ATTACK)]], [[ATTACK]]).document)
    assert page.locator("tbody td[data-label] div").all_text_contents() == [ATTACK] * 3
    assert page.locator(".flag span").text_content() == ATTACK
    assert page.locator("img, iframe").count() == 0 and page.locator("script").count() == 1
