"""The page of steps in a real browser: narrow and wide, light and dark, by keyboard."""

import pytest

from hf_attn.inference import Translator
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SConfig, AttnConvS2SForConditionalGeneration
from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM
from hf_attn.models.modeling_attn_transformer import AttnTransformerConfig, AttnTransformerForConditionalGeneration
from hf_attn.visualization import steps_html, text_steps_html

pytestmark = pytest.mark.browser

SOURCE = "the old teacher who had read the book wrote a letter to Donaudampfschifffahrtsgesellschaftskapitän"


KOREAN = "나이 많은 선생님이 정원에서 긴 편지를 읽습니다."
SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 32}


@pytest.fixture(scope="module")
def pages():
    """Pages by name: of a long sentence in a Transformer of many heads, of ConvS2S, of a Korean text in BERT and GPT;
    all of random weights."""
    from hf_attn.data import train_tokenizer

    tokenizer = train_tokenizer([SOURCE, KOREAN] * 4, 400, mask_token=True)
    common = {"vocab_size": len(tokenizer), "hidden_size": 64, "encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
    inner = {"encoder_intermediate_size": 32, "decoder_intermediate_size": 32}
    transformer = Translator(
        AttnTransformerForConditionalGeneration(AttnTransformerConfig(**common, **heads, **inner)), tokenizer
    )
    convolutional = Translator(AttnConvS2SForConditionalGeneration(AttnConvS2SConfig(**common)), tokenizer)
    bert = AttnBertForMaskedLM(AttnBertConfig(vocab_size=len(tokenizer), **SIZES)).eval()
    gpt = AttnGptForCausalLM(AttnGptConfig(vocab_size=len(tokenizer), **SIZES)).eval()
    line = transformer.score(SOURCE, SOURCE)
    return {
        "decoder": steps_html(transformer, line, 5, kind="decoder"),
        "encoder": steps_html(transformer, line, 3, kind="encoder"),
        "convs2s": steps_html(convolutional, convolutional.score(SOURCE, KOREAN), 4),
        "bert": text_steps_html(bert, tokenizer, KOREAN, 2, masked=[2]),
        "gpt": text_steps_html(gpt, tokenizer, KOREAN, 3),
    }


@pytest.fixture
def page_of_steps(pages):
    """The masked attention of one piece of a long sentence."""
    return pages["decoder"]


@pytest.mark.parametrize("name", ["decoder", "encoder", "convs2s", "bert", "gpt"])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_is_cut_off(pages, open_page, name, width, dark):
    page = open_page(pages[name].document, width=width, dark=dark)
    assert page.evaluate("document.scrollingElement.scrollWidth") == width
    boxes = page.locator("li, h2, figcaption, .scroll, pre, p").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) > 40
    for box in boxes:
        assert 0 <= box["left"] and box["right"] <= width
    paper, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    assert [sum(map(int, colour[4:-1].split(","))) > 384 for colour in (paper, ink)] == [not dark, dark]


def test_bars_and_colours_are_as_large_as_their_numbers(page_of_steps, open_page):
    page = open_page(page_of_steps.document, width=1200)
    rows = page.locator("figure[data-name=weights] tr").evaluate_all(
        """all => all.map(row => [Number(row.cells[1].textContent), row.querySelector('.bar').offsetWidth,
                                  row.cells[2].offsetWidth - 5])"""  # less its padding
    )
    largest = max(weight for weight, _, _ in rows)
    for weight, bar, room in rows:
        assert bar == pytest.approx(max(1, room * weight / largest), abs=3)
    assert sum(weight for weight, _, _ in rows) == pytest.approx(1, abs=0.01)
    hidden = page.locator("figure[data-name='masked scores'] tr", has_text="−∞")
    assert hidden.count() == len(rows) - 6 and hidden.locator(".bar").count() == 0


def test_what_scrolls_is_reached_by_keyboard(page_of_steps, open_page):
    page = open_page(page_of_steps.document, width=320)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "scroll"
    for _ in range(3):
        page.keyboard.press("Tab")
    summary = page.locator("summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert not page.locator("pre").first.is_visible()
