"""Model cards: what a user types breaks neither metadata nor Markdown, and the shipped ones are of their numbers."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hub.runs import trained
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt
from scripting import load_script

from hf_attn.hub import model_card, publish
from hf_attn.hub.card import LANGUAGES, TRANSFORMERS, literal, paragraph, plain

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.parent.name for path in (ROOT / "space" / "models").glob("*/results.json"))
NASTY = [
    "---",
    "--- a: b",
    "a\n---\nlicense: mit\n---\n# title",
    'it\'s "quoted" \\ and \\n',
    "a | b || c",
    "`code` ``` and ~~~",
    "# heading",
    "- item",
    "1. item",
    "> quote",
    "<script>alert(1)</script> <!-- open",
    "[link](javascript:x) ![i](y) _e_ *s* $m$ &lt;",
    "{metadata} {0} %s",
    "key: value, [a, b]",
    "no",
    "null",
    "2026-11-30",
    "한국어 \u2028 🙂 \u00a0 \t tab",
    "x" * 300,
    "word " * 60,
]
MARKDOWN = MarkdownIt("commonmark").enable("table")


def one_line(text):
    return " ".join(text.split())


def inline_text(tokens):
    """The text that a reader sees of each paragraph, heading and table cell."""
    shown = {"text", "code_inline"}
    return [
        "".join(" " if child.type == "softbreak" else child.content for child in token.children
                if child.type in shown | {"softbreak"})
        for token in tokens if token.type == "inline"
    ]  # fmt: skip


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize(
    ("around", "shown"), [("Trained on @.", "Trained on @."), ("# @", "@"), ("| a | @ |\n|---|---|\n| b | c |", "@")]
)
def test_plain_text_is_shown_as_it_was_typed(text, around, shown):
    tokens = MARKDOWN.parse(around.replace("@", plain(text)))
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    table = {f"{name}_{end}" for name in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}
    prose = {"paragraph_open", "paragraph_close", "heading_open", "heading_close", "inline", "text"}
    assert kinds <= (prose | table if around.startswith("|") else prose)
    assert shown.replace("@", one_line(text)) in inline_text(tokens)


@pytest.mark.parametrize("text", NASTY)
def test_a_paragraph_stays_one(text):
    tokens = MARKDOWN.parse("Before.\n\n" + paragraph(text) + "\n\nAfter.")
    assert [token.type for token in tokens if token.nesting >= 0 and token.type != "inline"] == ["paragraph_open"] * 3
    assert inline_text(tokens)[2] == "After."
    assert not any(child.type == "html_inline" for token in tokens for child in token.children or ())


def test_a_paragraph_keeps_its_links():
    (_, inline, _) = MARKDOWN.parse(paragraph("By [the *zoo*](https://zoo.example),\nCC-BY."))
    assert [child.attrs["href"] for child in inline.children if child.type == "link_open"] == ["https://zoo.example"]


@pytest.mark.parametrize("text", NASTY)
def test_a_literal_is_python_of_the_text(text):
    assert eval(literal(text)) == one_line(text) and "\n" not in literal(text)


def card_of(text):
    """The card of a run whose publisher typed this text in every field."""
    fields = ("data_name", "data_license", "attribution", "test_set", "description", "example", "limits")
    return publish(trained("rnn"), dry_run=True, license="mit", **dict.fromkeys(fields, text)).card


@pytest.fixture(scope="module")
def calm():
    return card_of("calm")


@pytest.mark.parametrize("text", NASTY)
def test_whatever_is_typed_the_card_keeps_its_metadata_and_its_sections(text, calm):
    card = card_of(text)
    _, front, body = card.split("---\n", 2)
    metadata, expected = yaml.safe_load(front), yaml.safe_load(calm.split("---\n", 2)[1])
    for result, other in zip(metadata["model-index"][0]["results"], expected["model-index"][0]["results"]):
        assert result["dataset"].pop("name") == one_line(text)
        assert re.fullmatch(r"[\w]+", result["dataset"].pop("type")) and other["dataset"].pop("name") == "calm"
        other["dataset"].pop("type")
    assert metadata == expected
    assert ModelCard(card).data.to_dict()["license"] == "mit" and ModelCard(card).text == body

    def shape(text):  # of the document: headings, tables with as many cells, blocks of code
        return [(token.type, token.tag, token.info) for token in MARKDOWN.parse(text)]

    assert shape(body) == shape(calm.split("---\n", 2)[2])
    codes = [token.content for token in MARKDOWN.parse(body) if token.type == "fence"]
    for code in codes:
        compile(code, "card", "exec")
        assert literal(text) in code


def numbers(**measured):
    return {"recipe": "r", "updates": 1200, "parameters": 34567, "dtype": "float32", "measured": measured}


DATA = dict.fromkeys(("name", "type", "example", "training", "test", "attribution", "limits"), "words") | {
    "license": "mit"
}


def make_card(results, languages=("en", "fr")):
    return model_card(
        "m", languages=languages, description="It is one.", data=DATA, results=results, has_attention=False
    )


def test_only_measured_scores_are_in_a_card():
    card = make_card(numbers(chrf=40.5, sentences=9))
    assert "| chrF | 40.5 |" in card and "BLEU" not in card and "erplexity" not in card and "beams" not in card
    assert ModelCard(card).data.metrics == ["chrf"]
    (result,) = ModelCard(card).data.eval_results
    assert (result.metric_type, result.metric_value, result.metric_args) == ("chrf", 40.5, None)
    card = make_card(numbers())
    assert "None was measured." in card and ModelCard(card).data.eval_results is None


@pytest.mark.parametrize(
    ("codes", "words", "listed"),
    [
        (("en", "ko"), "English into Korean", ["en", "ko"]),
        (("xx", "tlh"), "xx into tlh", ["xx", "tlh"]),
        (("eng_Latn", "pt-BR"), "eng_Latn into pt-BR", ["eng", "pt"]),
        (("no", "| english"), "Norwegian into \\| english", ["no"]),
    ],
)
def test_languages(codes, words, listed):
    card = make_card(numbers(), codes)
    assert f"Translates {words}. It is one. 34,567 parameters, stored in float32." in card
    assert ModelCard(card).data.language == listed
    assert all(re.fullmatch("[a-z]{2}", code) for code in LANGUAGES)


def test_a_score_that_must_not_be_taken_at_face_value_says_so():
    card = make_card(numbers(bleu=0.0, sentences=2, num_beams=1, note="Too short for BLEU-4."))
    assert "| BLEU | 0.0 |" in card and "Too short for BLEU-4." in card and "by greedy search." in card


def test_the_range_of_transformers_is_that_of_the_package():
    assert f'"transformers{TRANSFORMERS}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_card_is_that_of_its_numbers(name):
    script, folder = load_script("scripts/ship_models.py"), ROOT / "space" / "models" / name
    plan = yaml.safe_load((ROOT / "space" / "models.yaml").read_text(encoding="utf-8"))
    assert (folder / "README.md").read_text(encoding="utf-8") == script.card(name, folder, plan)
    measured = json.loads((folder / "results.json").read_text(encoding="utf-8"))["measured"]
    if "bleu" not in measured:  # it does not translate
        return
    found = {
        result.metric_type: result.metric_value for result in ModelCard.load(folder / "README.md").data.eval_results
    }
    assert found == {score: measured[score] for score in ("bleu", "chrf", "perplexity")}
