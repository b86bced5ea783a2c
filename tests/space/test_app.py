# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space without a browser: its models, its tabs, and what they show."""

import html
import re
import shutil
from pathlib import Path

import gradio as gr
import pytest
import yaml
from hostile import Tags
from scripting import load_script
from transformers import MarianConfig, MarianMTModel

from hf_attn import Translator

LONGEST_TEXT = 400
ROOT = Path(__file__).parents[2]
SENTENCE = "The old teacher reads a long letter in the garden."


TRANSLATORS = ["Translate", "Step by step", "History", "What if", "Metrics lab"]
OTHERS = ["Other inputs", "Fill in a blank", "What comes next", "A digit", "A caption"]


def tabs(app, folder):
    """The labels of all tabs, in the order in which they are laid out."""
    return [block.label for block in app.build(folder).blocks.values() if isinstance(block, gr.Tab)]


def test_the_tabs_are_those_that_the_models_allow(app, space_folder, models_folder, others_folder, tmp_path):
    assert tabs(app, space_folder) == TRANSLATORS + OTHERS
    assert tabs(app, models_folder) == TRANSLATORS
    assert tabs(app, others_folder) == OTHERS
    assert tabs(app, tmp_path) == []
    shutil.copytree(others_folder / "tiny-gpt", tmp_path / "tiny-gpt")
    assert tabs(app, tmp_path) == ["Other inputs", "What comes next"]
    shutil.copytree(models_folder / "en-fr-none", tmp_path / "en-fr-none")
    assert tabs(app, tmp_path) == [
        "Translate",
        "Step by step",
        "What if",
        "Metrics lab",
        "Other inputs",
        "What comes next",
    ]


def test_a_model_whose_steps_are_not_known_translates_and_is_not_taken_apart(app, models_folder, tmp_path):
    tokenizer = Translator(models_folder / "en-fr-bahdanau").tokenizer
    ids = {"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2}
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = MarianConfig(vocab_size=len(tokenizer), **ids, **sizes, **heads)
    for part in (MarianMTModel(config), tokenizer):
        part.save_pretrained(tmp_path / "en-fr-transformer")

    assert tabs(app, tmp_path) == ["Translate", "What if", "Metrics lab"]
    space = app.Space(app.load_models(tmp_path))
    assert list(space.models) == ["en-fr-transformer"]
    weights = app.Endpoints(space).attention(SENTENCE, "en-fr-transformer")["cross_attentions"]
    assert len(weights) == 2 and len(weights[0]) == 2  # layers, heads


def test_models_are_found_by_their_names(app, space_folder, models_folder, tmp_path):
    assert list(app.load_models(models_folder)) == [
        "en-fr-none",
        "en-fr-bahdanau",
        "en-fr-luong",
        "en-fr-convs2s",
        "en-fr-transformer",
        "en-ko-none",
        "en-ko-bahdanau",
    ]
    (tmp_path / "notes").mkdir()
    assert app.load_models(tmp_path) == {} and app.load_models(tmp_path / "missing") == {}
    others = app.load_others(space_folder)
    assert {name: other.kind for name, other in others.items()} == {
        "tiny-bert": "fill-in",
        "tiny-captioner": "caption",
        "tiny-gpt": "continue",
        "tiny-vit": "classify",
    }
    assert app.load_others(models_folder) == app.load_others(tmp_path / "missing") == {}
    shutil.copytree(models_folder / "en-fr-none", tmp_path / "mymodel")
    with pytest.raises(ValueError, match="'mymodel'.*en-fr-bahdanau"):
        app.load_models(tmp_path)


@pytest.mark.parametrize(("named", "expected"), [(None, "space/models"), ("", "space/models"), ("/a/b", "/a/b")])
def test_the_models_lie_beside_the_app_unless_a_folder_is_named(monkeypatch, named, expected):
    if named is None:
        monkeypatch.delenv("SPACE_MODELS", raising=False)
    else:
        monkeypatch.setenv("SPACE_MODELS", named)
    assert load_script("space/app.py").MODELS.as_posix().endswith(expected)


def test_the_notice_about_letters_is_of_what_was_typed(app, space):
    for count in (0, 2):  # the clauses are English
        notice, _ = app.HistoryTab(space).show("나는 학교에 간다.", "en-fr", count)
        assert notice.value.count("The model reads English; most of this text is written in other letters.") == 1


@pytest.mark.parametrize("content", ["{", "", "[]", "null", "\ufeff{}", '{"a": 1}}'])
def test_a_configuration_that_is_none_is_named(app, tmp_path, content):
    (tmp_path / "en-fr-luong").mkdir()
    (tmp_path / "en-fr-luong" / "config.json").write_text(content, encoding="utf-8")
    for load in (app.load_models, app.load_others):
        with pytest.raises(ValueError, match="en-fr-luong/config.json is no "):
            load(tmp_path)


@pytest.mark.parametrize(
    ("text", "language", "other"),
    [
        ("한국어로 씁니다.", "en", True),
        ("한국어 three words here", "en", False),
        ("The girl reads.", "ko", True),
        ("김 선생님은 AI를 봅니다.", "ko", False),
        ("Où est l'élève ?", "fr", False),
        ("Где девочка?", "it", True),
        ("Где девочка?", "ru", False),  # nobody knows in which letters
        ("Где девочка?", None, False),
        ("7318 !? 😀", "en", False),
    ],
)
def test_a_text_in_letters_of_another_language(service, text, language, other):
    assert service.in_other_letters(text, language) is other


def test_what_is_said_about_the_text(service):
    assert service.clean("  The  girl\treads. ") == ("The girl reads.", [])
    line, (notice,) = service.clean("The girl\nreads.\n")
    assert line == "The girl reads." and "one sentence at a time" in notice
    line, (notice,) = service.clean("the girl reads " * 7000)
    assert LONGEST_TEXT - 10 < len(line) <= LONGEST_TEXT and line.endswith((" the", " girl", " reads"))
    assert f"first {len(line)} of 105,000 characters" in notice and f"“{line[-20:]}”" in notice
    line, (notice,) = service.clean("x" * 100_000)
    assert line == "x" * LONGEST_TEXT and "100,000" in notice
    assert service.clean("x" * LONGEST_TEXT)[1] == []


def test_side_by_side(endpoints, translate_tab):
    names = ["en-fr-none", "en-fr-bahdanau", "en-fr-transformer", "en-fr-luong"]
    notices, page = translate_tab.show(SENTENCE, names, 1, "words")
    assert "first 3 models" in notices.value
    titles = re.findall(r"<h3>(.*?)</h3>", page)
    assert titles == ["No attention (2014)", "Bahdanau (2015)", "Transformer (2017)"]
    assert len(Tags(page).frames) == 2 and "no attention to show" in page
    assert len(set(re.findall(r'title="(.*?)"', page))) == 2, "each frame has a name of its own"
    for name in names[:3]:
        assert html.escape(endpoints.translate(SENTENCE, name, 1)["text"]) in page
    with pytest.raises(gr.Error, match="at least one model"):
        translate_tab.show(SENTENCE, [], 1, "words")


def test_what_a_model_does_not_read_is_said(endpoints, translate_tab, steps_tab):
    """A language that the tokenizer spells in bytes reaches the limit of pieces before that of characters."""
    text = "한국어로 쓴 아주 긴 문장은 바이트로 나뉘어 읽힙니다. " * 4
    result = endpoints.attention(text, "en-fr-bahdanau")
    letters, notice = result["notices"]
    assert letters == "The model reads English; most of this text is written in other letters."
    assert len(result["source_tokens"]) == 120 and result["truncated"]
    read = re.search("up to “(.*)”", notice)[1]
    assert len(read) == 20 and read in text and not result["source"].endswith(read)
    _, page = translate_tab.show(text, ["en-fr-bahdanau"], 4, "words")
    assert notice in page and letters in page and notice in steps_tab.take_apart(text, "en-fr-bahdanau")[0].value
    assert len(page.encode("utf-8")) < 1_500_000


def test_what_a_model_does_not_read_of_a_text_that_it_scores_is_said(app, space):
    tab, source, target = app.MetricsTab(space), "입력 문장입니다. " * 20, "번역된 문장입니다. " * 20
    assert not tab.show("We eat.", "Nous mangeons.", "Nous mangeons.", "Nous", "en-fr-bahdanau")[0].visible
    for texts in (
        (source, "Nous", "Nous", "Nous"),
        ("We eat.", "Nous", target, "Nous"),
        ("We", "Nous", "Nous", target),
    ):
        notice, page = tab.show(*texts, "en-fr-bahdanau")
        long = next(text for text in texts if len(text) > 50)
        read = re.search("The model read 120 pieces, up to “(.*)”; what", notice.value)[1]
        assert ("written in other letters" in notice.value) == (texts[0] == source)
        assert notice.visible and len(read) == 20 and read in long and page.startswith("<iframe")


def test_the_end_of_the_sentence_is_no_word_to_hide_at_first(app, space):
    for text in ("We.", "I"):
        *_, page = app.WhatIfTab(space).begin(text, "en-fr-bahdanau", "Hide source words")
        assert f"without attention to “&lt;bdi lang=&quot;&quot;&gt;{text[:1]}" in page


def test_failures_are_flagged(endpoints, translate_tab, space, monkeypatch):
    class Flag:
        kind, detail = "lost_number", "<3>"

    monkeypatch.setattr(space, "failures", lambda name, translation: [Flag])
    _, page = translate_tab.show(SENTENCE, ["en-fr-none"], 1, "words")
    assert "<li>lost number: &lt;3&gt;</li>" in page
    assert endpoints.translate(SENTENCE, "en-fr-none", 1)["failures"] == [{"kind": "lost_number", "detail": "<3>"}]


def test_a_number_that_is_lost(endpoints):
    """A model of 4 sentences cannot write 7318."""
    failures = endpoints.translate("There are 7318 girls.", "en-fr-bahdanau", 1)["failures"]
    assert "lost_number" in [flag["kind"] for flag in failures]


def test_steps_of_every_model(endpoints, steps_tab, space):
    for name in space.models:
        *_, kind, layer, head, steps = steps_tab.take_apart(SENTENCE, name)
        transformer = name.endswith("transformer")
        layers = transformer or name.endswith("convs2s")
        assert (kind.visible, layer.visible, head.visible) == (transformer, layers, transformer)
        (document,) = Tags(steps).frames
        assert html.escape(endpoints.translate(SENTENCE, name)["target_tokens"][0]) in document
    shown = {"model": "en-fr-transformer", "line": SENTENCE}
    first = steps_tab.show_step(shown, 1, "cross", 0, 0)
    assert first != steps_tab.show_step(shown, 1, "cross", 0, 1) != steps_tab.show_step(shown, 1, "decoder", 0, 1)


def test_the_space_runs_what_is_tested():
    _, front, _ = (ROOT / "space" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "gradio" and card["app_file"] == "app.py" and len(card["short_description"]) <= 60
    assert (ROOT / "space" / card["app_file"]).is_file()
    pinned, required = (
        dict(re.findall(r"(?m)^([\w-]+)==(.*)$", (ROOT / file).read_text(encoding="utf-8")))
        for file in ("scripts/constraints.txt", "space/requirements.txt")
    )
    assert set(required) == {"gradio", "torch", "transformers"} and required.items() <= pinned.items()
    assert card["sdk_version"] == required["gradio"]
