"""The page holds the words as they are, the weights as they are, and nothing from outside."""

import base64
import dataclasses
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_attn.inference import Translation
from hf_attn.visualization import alignment_html

NASTY = [
    "<img src=x onerror=alert(1)>",
    '"><b>',
    "</script><script>alert(1)</script>",
    "<!--",
    "a\u2028b",
    "&amp;",
    "{style}",
    "학생이",
    "🙂",
]
ELEMENTS = set(
    "html head meta title style body main h1 div p svg button span label select option details summary table caption "
    "thead tbody tr th td script".split()
)


class Page(HTMLParser):
    """What a page consists of: its elements, and the text directly inside each."""

    def __init__(self, document):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.open = [], [], []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        if tag != "meta":
            self.open.append(len(self.texts) - 1)

    def handle_endtag(self, tag):
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] += data

    def find(self, tag, **attributes):
        return [
            (found, text)
            for (name, found), text in zip(self.elements, self.texts, strict=True)
            if name == tag and attributes.items() <= found.items()
        ]

    def data(self):
        return json.loads(self.find("script", id="data")[0][1])


def words_of(page):
    return [text for _, text in page.find("span", **{"class": "text"})]


def translation_of(source_tokens, target_tokens, layers=1, heads=1):
    random = torch.Generator().manual_seed(0)
    shape = (layers, heads, len(target_tokens), len(source_tokens))
    weights = torch.randn(shape, generator=random).softmax(dim=-1)
    return Translation("", "", source_tokens, target_tokens, [], 0.0, cross_attentions=weights)


@pytest.mark.parametrize("norms", [False, True])
def test_all_weights_are_in_the_page(make_translation, norms):
    translation = make_translation("the cat sleeps.", "il gatto dorme.", layers=2, heads=3)
    methods = ["weights", "shifted"]
    if norms:
        translation.value_norms = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(0)) + 0.1
        methods = ["weights", "value_norm", "shifted", "shifted_value_norm"]
    page = Page(alignment_html(translation).document)
    data = page.data()
    assert len(data["weights"]) == len(methods)
    for number, method in enumerate(methods):
        assert len(data["weights"][number]) == 2
        for layer in range(2):
            for choice, heads in enumerate([None, 0, 1, 2]):
                expected = translation.alignment(layer=layer, heads=heads, method=method)
                shown = torch.tensor(data["weights"][number][layer][choice]) / 10000
                torch.testing.assert_close(shown, expected.weights, atol=0.5e-4 + 1e-7, rtol=0)
                assert data["captions"][number][layer][choice] == expected.description
            assert len(data["weights"][number][layer]) == 4
    menus = {attributes["id"] for attributes, _ in page.find("select")}
    assert menus == {"method", "layer", "heads"}
    assert len(page.find("option")) == len(methods) + 2 + 4


@pytest.mark.parametrize(
    ("recommended", "options", "layer", "heads"),
    [
        ({}, {}, "2", "mean of 3 heads"),
        ({}, {"layer": 0, "heads": 2}, "1", "head 3 of 3"),
        ({}, {"heads": [0, 2]}, "2", "mean of heads 1, 3 of 3"),
        ({}, {"heads": [2, 0, 1]}, "2", "mean of heads 3, 1, 2 of 3"),
        ({"alignment_layer": 0, "alignment_heads": [1]}, {}, "1", "head 2 of 3"),
        ({"alignment_layer": 0, "alignment_heads": [1, 2]}, {}, "1", "mean of heads 2, 3 of 3"),
        ({"alignment_layer": 0, "alignment_heads": [1, 2]}, {"layer": 1}, "2", "mean of 3 heads"),
        ({"alignment_layer": 0, "alignment_heads": [1, 2]}, {"heads": 0}, "1", "head 1 of 3"),
    ],
)
@pytest.mark.parametrize("method", ["weights", "shifted"])
def test_what_is_shown_first(make_translation, recommended, options, layer, heads, method):
    translation = make_translation("the cat sleeps", "il gatto dorme", layers=2, heads=3)
    for name, value in {**recommended, "alignment_method": method}.items():
        setattr(translation, name, value)
    expected = translation.alignment(**options)
    page = Page(alignment_html(translation, **options).document)
    called = {"weights": "weights", "shifted": "weights one step later"}[method]
    assert [text for attributes, text in page.find("option") if "selected" in attributes] == [called, layer, heads]
    assert page.find("p", **{"class": "caption describes"})[0][1] == expected.description
    cells = [float(text) for _, text in page.find("td")]
    torch.testing.assert_close(torch.tensor(cells), expected.weights.flatten(), atol=0.0051, rtol=0)
    scopes = [(attributes["scope"], text) for attributes, text in page.find("th")]
    assert scopes[0] == ("col", "target")
    assert [text for scope, text in scopes[1:] if scope == "col"] == expected.source_words
    assert [text for scope, text in scopes if scope == "row"] == expected.target_words


def test_a_single_head_needs_no_menu(make_translation):
    page = Page(alignment_html(make_translation("a b", "c", layers=1, heads=1), heads=0).document)
    assert [attributes["id"] for attributes, _ in page.find("select")] == ["method"]
    assert page.data()["captions"][0] == [["cross-attention weights, layer 1 of 1, head 1 of 1"]]


def test_words_or_pieces(make_translation):
    translation = make_translation("the cat", "il gatto")
    translation.source_tokens[0] = "▁the"
    assert words_of(Page(alignment_html(translation).document))[0] == "the"
    assert words_of(Page(alignment_html(translation, words=False).document))[0] == "▁the"


@pytest.mark.parametrize("token", NASTY)
def test_tokens_stay_text(token):
    result = alignment_html(translation_of([token, "x"], ["y", token]), words=False)
    page = Page(result.document)
    assert words_of(page) == [token, "x", "y", token]
    assert {name for name, _ in page.elements} <= ELEMENTS
    assert len(page.find("script")) == 2
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("src", "href") for name in attributes)
    assert not re.search(r"[^\x00-\x7f]", page.find("script", id="data")[0][1])
    frame = Page(result._repr_html_())
    ((attributes, _),) = frame.find("iframe")
    assert attributes["srcdoc"] == result.document and len(frame.elements) == 1


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"])), min_size=1, max_size=3))
def test_any_text_is_kept(tokens):
    page = Page(alignment_html(translation_of(tokens, tokens), words=False).document)
    assert words_of(page) == tokens * 2
    assert {name for name, _ in page.elements} <= ELEMENTS


def test_what_no_file_can_hold_is_replaced(tmp_path):
    result = alignment_html(translation_of(["a\ud800", "b\0"], ["c\x1b"]), words=False)
    result.save(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_bytes().decode("utf-8"))
    assert words_of(page) == ["a\ufffd", "b\ufffd", "c\ufffd"]


def test_saved_file_is_the_document(make_translation, tmp_path):
    result = alignment_html(make_translation("학생이 책을", "l'été 🙂"))
    result.save(str(tmp_path / "page.html"))
    saved = (tmp_path / "page.html").read_bytes()
    assert saved == result.document.encode("utf-8")
    assert b'<meta charset="utf-8">' in saved[:200]


def test_nothing_comes_from_outside(make_translation):
    document = alignment_html(make_translation("the cat", "il gatto")).document
    for allowed in ("http-equiv", "http://www.w3.org/2000/svg"):  # a header, and the name of SVG
        document = document.replace(allowed, "")
    document = re.sub(r"(?m)(^| +)// .*$", "", document)  # comments of the script
    for outside in ("http", "//", "@import", "url(", "src=", "href="):
        assert outside not in document


def test_only_its_own_script_may_run(make_translation):
    """The header names the hash of the one script of the page; data blocks do not run."""
    page = Page(alignment_html(make_translation("the cat", "il gatto")).document)
    ((policy, _),) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    scripts = [text for attributes, text in page.find("script") if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    rules = dict(rule.split(" ", 1) for rule in policy["content"].split("; "))
    assert rules["default-src"] == "'none'" and len(digests) == 1
    assert rules["script-src"] == f"'sha256-{digests[0]}'"


def test_direction_is_that_of_the_text(make_translation):
    page = Page(alignment_html(make_translation("this is new", "هذا جديد")).document)
    assert page.find("div", id="source")[0][0]["dir"] == "ltr"
    assert page.find("div", id="target")[0][0]["dir"] == "rtl"
    for attributes, _ in [*page.find("span", **{"class": "text"}), *page.find("th")[1:]]:
        assert attributes["dir"] == "auto" and attributes["lang"] == ""


@pytest.mark.parametrize(
    ("words", "side"),
    [("שלום עולם טוב", "rtl"), ("مرحبا بالعالم", "rtl"), ("नमस्ते दुनिया", "ltr"), ("학생이 책을", "ltr")],
)
def test_words_of_every_script_stay_whole_and_say_their_direction(make_translation, words, side):
    page = Page(alignment_html(make_translation("this is new", words)).document)
    assert page.find("div", id="target")[0][0]["dir"] == side
    shown = [text for _, text in page.find("span", **{"class": "text"})]
    assert shown[4:-1] == words.split()  # after the source and its </s>
    assert [text for attributes, text in page.find("th", scope="row")][:-1] == words.split()


def test_frame_is_as_high_as_its_text(make_translation):
    short, long = make_translation("a", "b"), make_translation("a long word " * 30, "b")
    assert alignment_html(short).height < alignment_html(long).height
    assert f"height: {alignment_html(long).height}px" in html.unescape(alignment_html(long)._repr_html_())


def test_what_cannot_be_shown(make_translation):
    with pytest.raises(ValueError, match="no cross-attention"):
        alignment_html(Translation("a", "b", ["a"], ["b"], [0.0], 0.0))
    line = make_translation("a", "b")
    for number in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="not all finite"):
            alignment_html(dataclasses.replace(line, cross_attentions=line.cross_attentions * number))
    with pytest.raises(ValueError, match="2 lines"):
        alignment_html(Translation("a\nb", "a\nb", [], [], [], 0.0, segments=[line, line]))
    for options in ({"layer": 2}, {"heads": 3}, {"heads": [0, 7]}):
        with pytest.raises(ValueError, match=next(iter(options))):
            alignment_html(line, **options)
