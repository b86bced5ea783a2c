# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The page of the attention within a text: its numbers are those of a forward pass of the model, its text is text."""

import functools
import io
import re

import numpy as np
import pytest
import torch
from contract import cases
from PIL import Image
from tokenizers import AddedToken
from visualization.stepping import leaves_nothing
from visualization.test_alignment_html import Page, words_of

from hf_attn.data import train_tokenizer
from hf_attn.data.text import train_text_tokenizer
from hf_attn.data.tokenizer import readable_tokens
from hf_attn.inference.what_if import candidates
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM
from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM
from hf_attn.visualization import text_attention_html, text_steps_html

TEXT = "the <old> cat sees a red bird & 새"
NASTY = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "&amp;", "{style}", "</s>"]
KOREAN = "소녀는 정원에서 긴 편지를 읽습니다."
ARABIC = "تقرأ الفتاة رسالة طويلة"
CASES = [case for case in cases(seq2seq=False) if case.values[0].family in ("bert", "gpt")]
HEADS = {case.id: case.values[0] for case in CASES}
BERT, GPT = HEADS["AttnBertForMaskedLM-devlin"], HEADS["AttnGptForCausalLM-radford"]


@functools.cache
def words(mask_token=True):
    """Whole words, as many as the models of the contract know."""
    numbers = " ".join(f"w{number}" for number in range(50))
    return train_tokenizer([TEXT, numbers], 43, kind="word", mask_token=mask_token)


@functools.cache
def model_of(case):
    """A model whose outputs are distinct."""
    return case.model(sharpness=3.0 if case.family == "gpt" else 1.0)


def run(model, ids):
    """What the model itself computes."""
    with torch.no_grad():
        return model(torch.tensor([ids]), output_attentions=True, return_dict=True)


def hidden(ids, *places):
    return [words().mask_token_id if place in places else number for place, number in enumerate(ids)]


def columns(page):
    """What the model says: by piece, the rows (piece, probability, whether it is marked)."""
    found = re.findall(r'<ol data-piece="(\d+)"[^>]*>(.*?)</ol>', page.document)
    item = r"<li([^>]*)><bdi[^>]*>(.*?)</bdi><small>(.*?)</small></li>"
    return {
        int(n): [(text, float(p), "chosen" in mark) for mark, text, p in re.findall(item, rows)] for n, rows in found
    }


@pytest.mark.parametrize("case", CASES)
def test_all_weights_are_in_the_page(case):
    model, ids = model_of(case), words()(TEXT).input_ids
    page = Page(text_attention_html(model, words(), TEXT, masked=[3]).document)
    attentions = run(model, hidden(ids, 3)).attentions
    data = page.data()
    assert len(data["weights"]) == 1 and len(data["weights"][0]) == len(attentions) == 2
    for layer, weights in enumerate(attentions):
        expected = torch.stack([weights[0].mean(dim=0), *weights[0]])
        shown = torch.tensor(data["weights"][0][layer]) / 10000
        torch.testing.assert_close(shown, expected, atol=0.5e-4 + 1e-6, rtol=0)
        heads = ["mean of 2 heads", "head 1 of 2", "head 2 of 2"]
        assert data["captions"][0][layer] == [f"self-attention weights, layer {layer + 1} of 2, {n}" for n in heads]
    assert words_of(page) == readable_tokens(words(), hidden(ids, 3)) * 2
    window = getattr(model.config, "sliding_window", None)
    assert (data["causal"], data["window"]) == (case.family == "gpt", window)
    assert any("Grey: what a piece cannot see" in text for text in page.texts) == (case.family == "gpt")


@pytest.mark.parametrize(("options", "layer", "heads"), [
    ({}, "2", "mean of 2 heads"), ({"layer": 0}, "1", "mean of 2 heads"), ({"layer": 0, "head": 1}, "1", "head 2 of 2"),
])  # fmt: skip
@pytest.mark.parametrize("case", [BERT, GPT], ids=["bert", "gpt"])
def test_what_is_shown_first_and_the_table_of_it(case, options, layer, heads):
    page = Page(text_attention_html(model_of(case), words(), TEXT, **options).document)
    assert [text for attributes, text in page.find("option") if "selected" in attributes] == [layer, heads]
    weights = run(model_of(case), words()(TEXT).input_ids).attentions[int(layer) - 1][0]
    expected = weights[options["head"]] if "head" in options else weights.mean(dim=0)
    cells = torch.tensor([float(text) for _, text in page.find("td")])
    torch.testing.assert_close(cells, expected.flatten(), atol=0.0051, rtol=0)


@pytest.mark.parametrize("masked", [[], [0], [3, 6]])
def test_a_bert_says_what_fits_the_masked_places(masked):
    ids = words()(TEXT).input_ids
    page = text_attention_html(model_of(BERT), words(), TEXT, masked=masked)
    logits = run(model_of(BERT), hidden(ids, *masked)).logits[0]
    assert list(columns(page)) == masked and ("The likeliest" in page.document) == bool(masked)
    for place, rows in columns(page).items():
        says_the_likeliest(rows, logits[place], ids[place])


def says_the_likeliest(rows, logits, written):
    probabilities = logits.double().softmax(dim=0)
    assert [p for _, p, _ in rows[:5]] == pytest.approx(probabilities.sort(descending=True).values[:5], abs=0.0051)
    marked = [(text, p) for text, p, mark in rows if mark]
    assert len(rows) == (5 if written is None or probabilities.argsort(descending=True)[:5].eq(written).any() else 6)
    if written is None:
        assert marked == []
    else:
        assert [p for _, p in marked] == pytest.approx([float(probabilities[written])], abs=0.0051)


def test_a_gpt_says_what_comes_next_after_every_piece():
    ids = words()(TEXT).input_ids
    page = text_attention_html(model_of(GPT), words(), TEXT)
    logits = run(model_of(GPT), ids).logits[0]
    assert list(columns(page)) == list(range(len(ids)))
    for place, rows in columns(page).items():
        says_the_likeliest(rows, logits[place], ids[place + 1] if place + 1 < len(ids) else None)


def test_a_mask_in_the_text_is_a_masked_place_of_which_nothing_is_known():
    ids = hidden(words()(TEXT).input_ids, 4)
    page = text_attention_html(model_of(BERT), words(), ids)
    ((place, rows),) = columns(page).items()
    assert place == 4 and len(rows) == 5 and not any(mark for *_, mark in rows)
    assert "underlined" not in page.document


def test_models_without_words_to_say_say_none():
    for case in (HEADS["AttnBertModel-devlin"], HEADS["AttnBertForSequenceClassification-devlin"]):
        page = text_attention_html(model_of(case), words(), TEXT, masked=[2])
        assert columns(page) == {} and 'class="said"' not in page.document


@pytest.mark.parametrize("token", NASTY)
@pytest.mark.parametrize("family", ["bert", "gpt"])
def test_pieces_stay_text(token, family):
    """A piece of the vocabulary that is markup, in the text and among what the model says."""
    config, model = (AttnBertConfig, AttnBertForMaskedLM) if family == "bert" else (AttnGptConfig, AttnGptForCausalLM)
    tokenizer = train_tokenizer(["a b"], 8, kind="word", mask_token=True)
    tokenizer.backend_tokenizer.add_tokens([AddedToken(token, normalized=False)])
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    tiny = model(config(vocab_size=len(tokenizer), **sizes)).eval()
    number = tokenizer.convert_tokens_to_ids(token)
    result = text_attention_html(tiny, tokenizer, [5, number, 5, number], masked=[3])
    page = Page(result.document)
    assert token in [text for _, text in page.find("bdi")]
    assert words_of(page)[1] == token and len(page.find("script")) == 2
    assert not {"img", "b", "iframe"} & {name for name, _ in page.elements}
    for _, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("src", "href") for name in attributes)
    assert not re.search(r"[^\x00-\x7f]", page.find("script", id="data")[0][1])
    assert [attributes["id"] for attributes, _ in page.find("select")] == []


@pytest.mark.parametrize(("text", "side"), [(ARABIC, "rtl"), (KOREAN, "ltr"), ("the girl", "ltr")])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("learned", [ARABIC, "the girl"])
def test_a_text_runs_as_its_letters_do_whatever_the_names_of_special_pieces(text, side, masked, learned):
    """In letters and in bytes, of a BERT that begins with <s> and a GPT, on both pages of a text."""
    tokenizer = train_text_tokenizer([learned, "a"], 320, masked=masked)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config, model = (AttnBertConfig, AttnBertForMaskedLM) if masked else (AttnGptConfig, AttnGptForCausalLM)
    tiny = model(config(vocab_size=len(tokenizer), **sizes)).eval()
    page = Page(text_attention_html(tiny, tokenizer, text).document)
    assert [page.find("div", id=name)[0][0]["dir"] for name in ("source", "target")] == [side, side]
    steps = text_steps_html(tiny, tokenizer, text, 1).document
    assert f'<p class="sentence" dir="{side}"' in steps


def test_bytes_among_the_likeliest_pieces_are_not_read_as_one_character():
    tokenizer = train_tokenizer(["a"], 261)
    first, second = tokenizer.convert_tokens_to_ids(["<0xD9>", "<0x8A>"])
    logits = torch.zeros(len(tokenizer)).index_fill(0, torch.tensor([first, second]), 9.0)
    logits[first] += 1
    assert [one.token for one in candidates(tokenizer, logits, 2)] == ["<0xD9>", "<0x8A>"]
    assert [one.id for one in candidates(tokenizer, logits, 2, written=7)] == [first, second, 7]
    assert [one.id for one in candidates(tokenizer, logits, 2, written=second)] == [first, second]


def test_a_text_is_its_pieces_and_nothing_is_left_on_the_model():
    for case in (BERT, GPT):
        model, ids = model_of(case), words()(TEXT).input_ids
        page = text_attention_html(model, words(), TEXT, masked=[1])
        assert text_attention_html(model, words(), ids, masked=[1]).document == page.document
        leaves_nothing(model, functools.partial(text_attention_html, model, words(), TEXT, masked=[1]))


def test_numbers_of_numpy_are_numbers():
    one = np.int64(1)
    page = text_attention_html(model_of(BERT), words(), TEXT, masked=np.array([1]), layer=one, head=one)
    assert page == text_attention_html(model_of(BERT), words(), TEXT, masked=[1], layer=1, head=1)


def test_mistakes_are_named():
    def error(case, **options):
        options = {"tokenizer": words(), "text": TEXT} | options
        with pytest.raises(ValueError) as caught:
            text_attention_html(options.pop("model", model_of(case)), **options)
        return str(caught.value)

    for name in ("layer", "head"):
        for wrong in (-1, 2, True, 0.0):
            assert error(BERT, **{name: wrong}) == f"{name} is {wrong!r}; here it must be a whole number from 0 to 1"
    assert error(BERT, text=[]) == "text has no pieces"
    assert error(BERT, masked=[99]).startswith("masked is 99; here")
    message = "masked is [1], but the tokenizer has no mask token"
    assert error(BERT, tokenizer=words(mask_token=False), masked=[1]) == message
    assert "tokens" in error(GPT, text=[5] * 49)
    assert "training mode" in error(BERT, model=BERT.model().train())
    (other,) = [one.values[0] for one in cases(seq2seq=True, heads=True) if one.id.endswith("Generation-bahdanau")]
    assert error(other) == "model is of type 'attn-rnn'; the steps of a text are known for attn-bert, attn-gpt"


# In a browser


def lit(page, side):
    read = "all => all.map(word => Number(word.style.getPropertyValue('--weight')))"
    return torch.tensor(page.locator(f"#{side} .word").evaluate_all(read))


def close(actual, expected):
    torch.testing.assert_close(actual, expected.float(), atol=1e-4, rtol=0)


@pytest.mark.browser
def test_pointing_and_menus(open_page):
    ids = words()(TEXT).input_ids
    for case, masked in ((BERT, [2, 5]), (GPT, [])):
        outputs = run(model_of(case), hidden(ids, *masked))
        page = open_page(text_attention_html(model_of(case), words(), TEXT, masked=masked).document)
        mean = outputs.attentions[1][0].mean(dim=0)
        page.locator("#target .word").nth(5).hover()
        close(lit(page, "source"), mean[5])
        numbers = page.locator("#source .number").all_text_contents()
        assert numbers == [f"{weight:.2f}" if weight >= 0.005 else "" for weight in mean[5].tolist()]
        best = float(outputs.logits[0, 5].softmax(dim=0).max())
        said = page.locator("#status").text_content().split(" · ")[1]
        assert said.startswith("fits: " if masked else "next: ") and f"\u2069 {best:.2f}" in said
        assert page.locator("ol.active").get_attribute("data-piece") == "5"
        page.locator("#source .word").nth(1).hover()
        close(lit(page, "target"), mean[:, 1])
        assert page.locator("ol.active").count() == 0
        page.get_by_label("Layer").select_option("1")
        page.get_by_label("Heads").select_option("head 2 of 2")
        page.locator("#target .word").nth(4).focus()
        close(lit(page, "source"), outputs.attentions[0][0, 1, 4])
        page.keyboard.press("ArrowRight")
        close(lit(page, "source"), outputs.attentions[0][0, 1, 5])
        caption = "self-attention weights, layer 1 of 2, head 2 of 2"
        assert {text.text_content() for text in page.locator(".describes").all()} == {caption}


@pytest.mark.browser
@pytest.mark.parametrize(
    "name", ["AttnBertForMaskedLM-devlin", "AttnGptForCausalLM-radford", "AttnGptForCausalLM-window"]
)
@pytest.mark.parametrize("dark", [False, True])
def test_what_a_piece_cannot_see_is_grey(open_page, name, dark):
    """The colour in the middle of each cell of the heatmap."""
    case = HEADS[name]
    length, window = len(words()(TEXT).input_ids), getattr(model_of(case).config, "sliding_window", None)
    page = open_page(text_attention_html(model_of(case), words(), TEXT).document, dark=dark)
    read = "all => all.map(cell => cell.getBoundingClientRect().toJSON())"
    boxes = page.locator("#heatmap .cell").evaluate_all(read)
    middles = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    grey = [picture.getpixel((int(x), int(y))) == ((74, 78, 87) if dark else (201, 204, 209)) for x, y in middles]
    seen = [
        case.family == "bert" or (key <= query and (window is None or query - key < window))
        for query in range(length)
        for key in range(length)
    ]
    assert grey == [not one for one in seen]


@pytest.mark.browser
@pytest.mark.parametrize("text", [ARABIC * 2, KOREAN * 2, "the girl " * 20], ids=["arabic", "korean", "long"])
@pytest.mark.parametrize("dark", [False, True])
def test_narrow_screens_of_every_script(open_page, text, dark):
    tokenizer = train_text_tokenizer([ARABIC, KOREAN, "the girl"], 420, masked=False)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    tiny = AttnGptForCausalLM(AttnGptConfig(vocab_size=len(tokenizer), **sizes)).eval()
    page = open_page(text_attention_html(tiny, tokenizer, text).document, width=320, dark=dark)
    page.locator("#target .word").nth(-2).hover()
    column = page.locator("ol.active").bounding_box()
    assert 0 <= column["x"] + column["width"] / 2 <= 320, "what the model says there is scrolled to"
    page.locator("summary").click()
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    boxes = page.locator("#target .word").evaluate_all("all => all.map(word => word.getBoundingClientRect().toJSON())")
    assert all(0 <= box["left"] and box["right"] <= 320 for box in boxes)
    assert (boxes[1]["left"] < boxes[0]["left"]) == (text == ARABIC * 2), "the second piece is where one reads on"
    pieces = page.locator("#target .text").all_text_contents()
    assert "".join(pieces[1:]).replace("▁", " ").strip() == text.strip()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 384) == dark
