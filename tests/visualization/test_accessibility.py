# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Every page for everybody: axe-core finds nothing, the keyboard reaches everything, every script is laid out well."""

import importlib
import inspect
import pkgutil

import pytest
import torch
from axe import violations
from PIL import Image

import hf_attn.visualization
from hf_attn.data import train_tokenizer
from hf_attn.inference import Caption, Translator, hide_words, next_pieces
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SConfig, AttnConvS2SForConditionalGeneration
from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM
from hf_attn.models.modeling_attn_rnn import AttnRnnConfig, AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerConfig, AttnTransformerForConditionalGeneration
from hf_attn.visualization import (
    Entry,
    Factors,
    HtmlPage,
    alignment_html,
    beams_html,
    caption_html,
    failure_sheet,
    history_html,
    metrics_html,
    next_pieces_html,
    patches_html,
    steps_html,
    text_attention_html,
    text_steps_html,
    what_if_html,
    word_html,
)

pytestmark = pytest.mark.browser

ENGLISH = "The girl, whose name is 수지, reads a long letter."
ARABIC = "تقرأ الفتاة رسالة طويلة في الحديقة الكبيرة."
HEBREW = "הילדה קוראת מכתב ארוך בגינה הגדולה."
WIDTHS = (1280, 320)
SHARED = {"make_page", "weights_page"}  # what makers of pages call


def softmax(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).mul(2).softmax(dim=-1)


@pytest.fixture(scope="module")
def translators():
    """One of each family, of random weights, with pieces of four scripts."""
    tokenizer = train_tokenizer([ENGLISH, ARABIC, HEBREW] * 4, 420, mask_token=True)
    torch.manual_seed(0)
    common = {"vocab_size": len(tokenizer), "hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_intermediate_size": 32}
    models = {
        "rnn": AttnRnnForConditionalGeneration(AttnRnnConfig(**common, embedding_size=16, attention_type="bahdanau")),
        "convs2s": AttnConvS2SForConditionalGeneration(AttnConvS2SConfig(**common)),
        "transformer": AttnTransformerForConditionalGeneration(
            AttnTransformerConfig(**common, **heads, decoder_intermediate_size=32)
        ),
    }
    return {name: Translator(model, tokenizer) for name, model in models.items()}


@pytest.fixture(scope="module")
def pages(translators):
    """A page of every maker in this package, by its name and what it shows; each has words of other scripts."""
    transformer, tokenizer = translators["transformer"], translators["transformer"].tokenizer
    line, back = transformer.score(ENGLISH, ARABIC), transformer.score(ARABIC, ENGLISH)
    stack = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    bert = AttnBertForMaskedLM(AttnBertConfig(**stack, intermediate_size=32)).eval()
    gpt = AttnGptForCausalLM(AttnGptConfig(**stack, intermediate_size=32)).eval()
    recurrent = translators["rnn"].score(ARABIC, ENGLISH)
    convolutional = translators["convs2s"].score(ENGLISH, HEBREW)
    answer = hide_words(transformer, line, [1], max_new_tokens=12)
    failures = [line.failures(source_lang="en", target_lang="fr"), [], back.failures()]
    caption = Caption(
        Image.new("RGB", (30, 20), "teal"), "소녀 فتاة girl", ["▁소녀", "▁فتاة", "▁girl"], [-0.1] * 3, -0.1, False,
        softmax(2, 2, 3, 7), softmax(2, 2, 7, 7), (2, 3),
    )  # fmt: skip
    growth = {"Bahdanau": [(4, 0.5), (9, 0.25)], "Transformer": [(4, 0.75), (9, 0.5)]}
    entries = [
        Entry("Bahdanau", translators["rnn"].score(ENGLISH, HEBREW), 0.25),
        Entry("Transformer", line, 0.5, ["x"]),
    ]
    words = ARABIC.split()
    return {
        "alignment_html": alignment_html(line),
        "alignment_html back": alignment_html(back, words=False),
        "beams_html": beams_html([line, transformer.score(ENGLISH, ARABIC[:20])]),
        "caption_html": caption_html(caption),
        "failure_sheet": failure_sheet([ENGLISH, ARABIC, "x"], [ARABIC, HEBREW, ""], failures),
        "history_html": history_html(entries, growth, "share of the words"),
        "metrics_html": metrics_html(words, [words[::-1], words], factors=[Factors(words, [0.5] * len(words))] * 2),
        "next_pieces_html": next_pieces_html(line, next_pieces(transformer, line)),
        "steps_html recurrent": steps_html(translators["rnn"], recurrent, 2),
        "steps_html convolutional": steps_html(translators["convs2s"], convolutional, 2),
        "steps_html cross": steps_html(transformer, line, 2),
        "steps_html decoder": steps_html(transformer, line, 2, kind="decoder"),
        "steps_html encoder": steps_html(transformer, back, 2, kind="encoder"),
        "text_attention_html both ways": text_attention_html(bert, tokenizer, ARABIC, masked=[1]),
        "text_attention_html left": text_attention_html(gpt, tokenizer, ENGLISH),
        "text_steps_html both ways": text_steps_html(bert, tokenizer, ARABIC, 2, masked=[2]),
        "text_steps_html left": text_steps_html(gpt, tokenizer, ENGLISH, 3),
        "what_if_html": what_if_html(answer, f"without “{HEBREW.split()[0]}”"),
        "patches_html": patches_html(
            caption.image, softmax(2, 2, 7, 7), (2, 3), probabilities={"소녀": 0.75, "girl": 0.25}
        ),
        "word_html": word_html(bert, tokenizer, words[1], [ARABIC, " ".join(words[1:])]),
    }


NAMES = [
    *("alignment_html", "alignment_html back", "beams_html", "caption_html", "failure_sheet", "history_html"),
    *("metrics_html", "next_pieces_html", "what_if_html", "steps_html recurrent", "steps_html convolutional"),
    *("steps_html cross", "steps_html decoder", "steps_html encoder", "text_attention_html both ways"),
    *("text_attention_html left", "text_steps_html both ways", "text_steps_html left"),
    *("patches_html", "word_html"),
]


@pytest.fixture(scope="module")
def view(browser, pages, tmp_path_factory):
    """A function that opens one of the pages in a window of its own, which is kept; the mouse is elsewhere."""
    folder, opened = tmp_path_factory.mktemp("pages"), {}

    def view(name, width=1280, dark=False):
        if name not in opened:
            path = folder / f"{len(opened)}.html"
            pages[name].save(path)
            opened[name] = browser.new_page(offline=True)
            opened[name].goto(path.as_uri())
        page = opened[name]
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_viewport_size({"width": width, "height": 800})
        return page

    yield view
    for page in opened.values():
        page.close()


def test_no_maker_of_pages_is_forgotten(pages):
    makers = set()
    for module in pkgutil.iter_modules(hf_attn.visualization.__path__, "hf_attn.visualization."):
        for name, member in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(member) and inspect.signature(member).return_annotation in (HtmlPage, "HtmlPage"):
                makers.add(name)
    assert {name.split(" ")[0] for name in pages} == {name for name in makers if name[0] != "_"} - SHARED
    assert sorted(pages) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing(view, name):
    page = view(name)
    page.evaluate("document.querySelector('button, input, select, summary')?.focus()")  # what lights up is lit
    found = violations(page, worst=False)
    found += violations(view(name, 320), worst=False, contrasts=False)
    assert found + violations(view(name, 320, dark=True), contrasts=True) == []


def test_what_is_wrong_is_found(browser):
    page = browser.new_page()
    inner = (
        "<html lang=en><title>t</title><p style='color: #aaa; background: #fff'>pale</p><svg><text y=20>p</text></svg>"
    )
    page.set_content(f'<html lang=en><title>t</title><h1>one</h1><iframe title="inner" srcdoc="{inner}"></iframe>')
    found = violations(page)
    assert len(found) == 1 and found[0].startswith("inner: color-contrast: <p")
    page.frames[1].locator("p").evaluate("element => { element.style.color = '#000'; }")
    assert violations(page) == []
    page.frames[1].locator("text").evaluate("element => { element.style.fill = '#ccc'; }")
    assert [each.split(">")[0] for each in violations(page)] == [
        'inner: color-contrast: <text y="20" style="fill: rgb(204, 204, 204);"'
    ]
    page.locator("h1").evaluate("element => { element.outerHTML = '<button></button>'; }")
    assert any(each.startswith("page: button-name") for each in violations(page))
    page.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [320, 640])
def test_nothing_moves_the_page_sideways(view, name, width):
    page = view(name, width)
    assert page.evaluate("document.scrollingElement.scrollWidth") == width


LANGUAGES = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!/[\\u0590-\\u06ff\\uac00-\\ud7a3]/.test(node.data) || element.closest("script, title")) continue;
    if (element.closest("[lang]").getAttribute("lang") === "en") found.push(element.outerHTML.slice(0, 120));
  }
  return found;
}"""


@pytest.mark.parametrize("name", NAMES)
def test_words_of_other_languages_are_not_called_english(view, name):
    page = view(name)
    assert page.evaluate(LANGUAGES) == []
    page.evaluate("(document.querySelector('.word') ?? document.querySelector('button'))?.focus()")  # it is told of
    assert page.evaluate(LANGUAGES) == []


CUT = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = new Range();
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    const other = /[\\u0590-\\u06ff\\uac00-\\ud7a3]/.test(node.data);
    if (!(other || element.matches("text")) || !element.checkVisibility()) continue;
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each), box = each.getBoundingClientRect();
      if (style.textOverflow === "ellipsis" || each.matches(".scroll, .unseen")) break;
      if (!/hidden|clip/.test(style.overflow)) continue;
      const inside = [text.left - box.left, text.top - box.top, box.right - text.right, box.bottom - text.bottom];
      if (Math.min(...inside) < -1) found.push(`${node.data}: ${inside} in ${each.outerHTML.slice(0, 80)}`);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_no_label_and_no_word_of_another_script_is_cut_off(view, name, width):
    assert view(name, width).evaluate(CUT) == []


ORDERED = {
    "alignment_html": "#target .word",
    "beams_html": "tr:first-child td",
    "next_pieces_html": ".steps ol",
    "metrics_html": "section:first-child ul:first-of-type li",
    "text_attention_html both ways": "#target .word",
}


@pytest.mark.parametrize("name", ORDERED)
def test_pieces_that_are_read_from_right_to_left_follow_one_another_so(view, name):
    boxes = (
        view(name)
        .locator(ORDERED[name])
        .evaluate_all("all => all.map(each => each.getBoundingClientRect()).map(box => [box.top, box.left])")
    )
    in_first_row = [left for top, left in boxes if top == boxes[0][0]]
    assert len(in_first_row) > 2 and in_first_row == sorted(in_first_row, reverse=True)


REACHED = """() => {  // what the tab key should reach, and before the next press nothing has been
  const first = document.createElement("button");
  window.expected = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter(each => !each.disabled && each.tabIndex >= 0 && each.checkVisibility());
  document.body.prepend(first);
  first.focus();
  first.remove();
  return window.expected.length;
}"""
FOCUS = """() => {
  const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
  return {
    number: window.expected.indexOf(element), element: element.outerHTML.slice(0, 100),
    outline: [style.outlineStyle, style.outlineWidth, style.outlineColor].join(" "),
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""


@pytest.mark.parametrize("name", NAMES)
def test_the_tab_key_reaches_everything_in_order_and_shows_where_it_is(view, name):
    page = view(name, 320)
    for number in range(page.evaluate(REACHED)):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        assert focus["number"] == number and focus["seen"], focus
        assert focus["outline"] == "solid 3px rgb(26, 86, 219)", focus  # a contrast of 6 on white


@pytest.mark.parametrize("name", NAMES)
def test_every_drawing_is_told_in_words(view, name):
    told = (
        view(name)
        .locator("svg:not([aria-hidden]), img, canvas, [role=img]")
        .evaluate_all(
            """all => all.map(each => [
          each.getAttribute("aria-label") || each.alt || each.querySelector("title")?.textContent || "",
          !!document.querySelector("table, output:not(:empty)"),
        ])"""
        )
    )
    for name, has_numbers in told:
        assert name and (has_numbers or "looks at" in name), name


@pytest.mark.parametrize("name", NAMES)
def test_nothing_moves_by_itself(view, name):
    page = view(name)
    page.evaluate("document.querySelector('button, summary')?.click()")
    assert page.evaluate("document.getAnimations().length") == 0
