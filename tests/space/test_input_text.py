# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A text with blanks, a word in several senses, a text that goes on: right numbers on the page, by mouse and keyboard,
and plain sentences for what cannot be done."""

import html
import math
import re
import sys

import gradio as gr
import pytest
import torch
from space.driving import choose, close, fits, framed, is_dark, lit, open_tab, quantity, redrawn, slide, unfold
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

BYTES = "The model has never seen most of these characters: it reads the bytes that they are stored in."
BLANKS = "The old ___ reads a ___ letter."
BEGINNING = "Where is the girl"
KOREAN = "소녀는 ___ 어디에 있습니까?"
LONGEST = 64  # pieces that the tiny models read


@pytest.fixture(scope="module")
def texts(app):
    """The module of the tabs."""
    return sys.modules["input_text"]


@pytest.fixture(scope="module")
def fill_in_tab(texts, space):
    return texts.FillInTab(space)


@pytest.fixture(scope="module")
def continue_tab(texts, space):
    return texts.ContinueTab(space)


@pytest.fixture(scope="module")
def answers(space):
    """The endpoints."""
    return sys.modules["endpoints_text"].TextEndpoints(space)


@torch.no_grad()
def read(folder, ids, kind=AutoModelForMaskedLM, name="tiny-bert"):
    """Logits (pieces, vocab_size), weights (layers, heads, pieces, pieces) and states, by the model alone."""
    model = kind.from_pretrained(folder / name, dtype=torch.float32).eval()
    outputs = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    return outputs.logits[0], torch.cat(outputs.attentions), torch.cat(outputs.hidden_states)


def masked_ids(folder, text):
    tokenizer = AutoTokenizer.from_pretrained(folder / "tiny-bert")
    return tokenizer, tokenizer(text.replace("___", tokenizer.mask_token))["input_ids"]


def goes_on(folder, text, count):
    """The pieces of a text and of what follows it, by repeated forward passes."""
    tokenizer = AutoTokenizer.from_pretrained(folder / "tiny-gpt")
    ids = tokenizer(text)["input_ids"]
    given = len(ids)
    while len(ids) < given + count and ids[-1] != tokenizer.eos_token_id:
        ids.append(int(read(folder, ids, AutoModelForCausalLM, "tiny-gpt")[0][-1].argmax()))
    return tokenizer, ids, given


def refused(call, *arguments):
    with pytest.raises(gr.Error) as error:
        call(*arguments)
    assert "<img" not in error.value.message and not error.value.print_exception
    return html.unescape(error.value.message)


def document(shown):
    """The page in the first frame of a piece of HTML."""
    return html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1])


def test_each_blank_gets_its_likeliest_piece(fill_in_tab, others_folder):
    tokenizer, ids = masked_ids(others_folder, BLANKS)
    logits, _, _ = read(others_folder, ids)
    notices, shown, kept, pieces, steps = fill_in_tab.show(BLANKS)
    blanks = [place for place, number in enumerate(ids) if number == tokenizer.mask_token_id]
    assert kept == ids and len(blanks) == 2 and not notices.visible and steps == ""
    best = [float(logits[place].softmax(dim=0).max()) for place in blanks]
    assert f"probability {best[0]:.2f}, {best[1]:.2f}." in shown
    whole = [int(logits[place].argmax()) if place in blanks else number for place, number in enumerate(ids)]
    assert html.escape(tokenizer.decode(whole, skip_special_tokens=True)) in shown
    assert re.findall(r'data-piece="(\d+)"', document(shown)) == [str(place) for place in blanks]
    assert [place for _, place in pieces.choices] == list(range(len(ids)))


@pytest.mark.parametrize("typed", ["<mask>", "<MASK>", "[MASK]", "</s>", "<s> <pad>"])
def test_the_name_of_a_special_piece_is_text(answers, typed):
    found = answers.fill_in(f"the girl {typed} reads ___ now")
    assert len(found["blanks"]) == 1 and found["pieces"].count("<mask>") == 1
    assert [piece for piece in found["pieces"] if piece in ("<s>", "</s>", "<pad>")] == ["<s>", "</s>"]
    assert typed.lower().replace(" ", "") in found["text"].replace(" ", "")
    gone = answers.continue_text(f"the girl {typed}", 1)
    assert gone["pieces"][: gone["given"]].count("<s>") == 1 and "</s>" not in gone["pieces"][: gone["given"]]


def test_blanks_are_one_to_eight(fill_in_tab, answers):
    for call in (fill_in_tab.show, answers.fill_in):
        for text in ("The girl reads.", "The __ girl _", "[MASK] <mask>"):
            assert refused(call, text).startswith("There is no blank: write ___")
        assert refused(call, "___ " * 9) == "There are 9 blanks; 8 at most are filled in."
    assert len(answers.fill_in("___ " * 8)["blanks"]) == len(answers.fill_in("______a___")["blanks"]) * 4 == 8
    assert refused(answers.fill_in, BLANKS, 0) == refused(answers.fill_in, BLANKS, 21)


def test_what_is_not_read_is_said(fill_in_tab, answers):
    found = answers.fill_in("___ " + "한국어로 " * 30)
    assert LONGEST - 3 <= len(found["pieces"]) <= LONGEST and found["pieces"][-1] == "</s>"
    cut, spelled = found["notices"]
    end = re.search(r"The model read \d+ pieces, up to “(.*)”; what comes after was cut off.", cut)[1]
    assert end and end in "한국어로 " * 30  # to the end of a letter
    assert spelled == BYTES
    notices, *_ = fill_in_tab.show("___ " + "the girl reads a letter " * 40)
    assert "of 964 characters were read" in notices.value
    message = refused(fill_in_tab.show, "한국어로 " * 30 + "___")
    assert message.startswith("There is no blank") and f"The model read {LONGEST} pieces" in message


@pytest.mark.parametrize(
    ("text", "said"), [("ㅂㅃㅍㅎ", True), ("Где девочка", True), ("The girl é", False), ("?!", False)]
)
def test_characters_that_a_model_reads_as_bytes(fill_in_tab, continue_tab, answers, text, said):
    expected = [BYTES] if said else []
    assert answers.fill_in(f"___ {text}")["notices"] == answers.continue_text(text, 2)["notices"] == expected
    for notices, *_ in (fill_in_tab.show(f"___ {text}"), continue_tab.show(text, 2)):
        assert (BYTES in notices.value) == said


@pytest.mark.parametrize("length", range(30, 40))
def test_a_text_is_cut_between_letters(continue_tab, length):
    tokenizer = continue_tab.other.processor
    ids = tokenizer("한국어로 쓴 글😀" * 20)["input_ids"]
    kept, (notice,) = sys.modules["input_text"].within(continue_tab.other, ids, length)
    end = [ids[-1]] if ids[-1] == tokenizer.eos_token_id else []
    broken = [count for count in range(length + 1) if tokenizer.decode(ids[:count]).endswith("\ufffd")]
    whole = max(count for count in range(length - len(end) + 1) if count not in broken)
    assert kept == ids[:whole] + end and len(kept) > length - 4  # as much as there is room for
    assert "\ufffd" not in notice


def test_a_text_goes_on_by_the_likeliest_pieces(continue_tab, others_folder):
    tokenizer, ids, given = goes_on(others_folder, BEGINNING, 7)
    notices, shown, kept, pieces, _ = continue_tab.show(BEGINNING, 7)
    assert kept == ids and len(ids) == given + 7 and len(pieces.choices) == len(ids)
    before, after = (
        html.escape(tokenizer.decode(part, skip_special_tokens=True)) for part in (ids[:given], ids[given:])
    )
    assert f"{before}<b>{after}</b>" in shown and "7 pieces written;" in shown
    probabilities = read(others_folder, ids, AutoModelForCausalLM, "tiny-gpt")[0].softmax(dim=-1)
    chosen = [float(probabilities[place - 1, ids[place]]) for place in range(given, len(ids))]
    assert f"geometric mean): {math.prod(chosen) ** (1 / 7):.2f}" in shown


def test_how_much_is_written_has_its_limits(continue_tab, answers):
    for wrong in (0, 41, 1.5, "x", None, True):
        assert refused(continue_tab.show, BEGINNING, wrong) == "Pieces must be a whole number from 1 to 40."
    found = answers.continue_text("the girl reads " * 25, 40)
    assert len(found["pieces"]) <= LONGEST and found["given"] == LONGEST - 1
    cut, room = found["notices"]
    assert cut.startswith(f"The model read {LONGEST - 1} pieces, up to “") and "so it could write 1 at most." in room
    assert answers.continue_text(BEGINNING, 3)["notices"] == []


def test_one_piece_is_taken_apart(fill_in_tab, others_folder):
    _, ids = masked_ids(others_folder, BLANKS)
    _, weights, _ = read(others_folder, ids)
    page = document(fill_in_tab.apart.show(ids, 3, 1, 0))
    figure = re.search(r'<figure data-name="weights">.*?</figure>', page, re.DOTALL)[0]
    close(torch.tensor([float(cell) for cell in re.findall(r"</th><td>([\d.]+)</td>", figure)]), weights[1, 0, 3])
    assert fill_in_tab.apart.show(ids, None, 0, 0) == ""
    assert refused(fill_in_tab.apart.show, None, 0, 0, 0).startswith("There is no text yet")
    for wrong in ((99, 0, 0), (0, 2, 0), (0, 0, 2), ("<img src=x>", 0, 0), (0, "x", 0), (0, 0, [1])):
        assert "must be a whole number" in refused(fill_in_tab.apart.show, ids, *wrong)


def cosines(folder, word, sentences):
    """The cosines of a word's mean states between pairs of sentences, (layers + 1, pairs), by the model alone."""
    states = []
    for sentence in sentences:
        tokenizer = AutoTokenizer.from_pretrained(folder / "tiny-bert")
        encoded = tokenizer(sentence, return_offsets_mapping=True)
        start = sentence.index(word)
        spans = enumerate(encoded["offset_mapping"])
        places = [place for place, (first, end) in spans if first < start + len(word) and end > start]
        states.append(read(folder, encoded["input_ids"])[2][:, places].mean(dim=1))
    pairs = [(a, b) for a in range(len(sentences)) for b in range(a + 1, len(sentences))]
    return torch.stack([torch.cosine_similarity(states[a], states[b], dim=-1) for a, b in pairs], dim=1)


SENSES = ["The girl reads.", "Where is the girl now?", "We see a girl."]


def test_a_word_in_two_or_three_sentences(fill_in_tab, others_folder):
    for sentences in (SENSES, SENSES[:2]):
        third = sentences[2] if len(sentences) > 2 else " "
        notices, shown = fill_in_tab.compare("girl", sentences[0], sentences[1], third)
        numbers = [float(number) for number in re.findall(r"<td>([\d.]+)<", document(shown))]
        expected = cosines(others_folder, "girl", sentences)
        torch.testing.assert_close(
            torch.tensor(numbers).view(-1, expected.shape[1])[1:], expected, atol=0.00051, rtol=0
        )
        assert not notices.visible


def test_what_cannot_be_compared_is_said(fill_in_tab):
    attack = "<img src=x>"
    assert "the word 'cat' is not in the sentence 'a girl'" in refused(
        fill_in_tab.compare, "cat", "a cat", "a girl", ""
    )
    assert attack in refused(fill_in_tab.compare, attack, "a", "b", "c")
    assert refused(fill_in_tab.compare, "a", "", "b", "c").startswith("The first sentence is empty")
    assert refused(fill_in_tab.compare, "", "a", "b", "c").startswith("The word is empty")
    long = refused(fill_in_tab.compare, "한국어", "한국어로 " * 30, "한국어", "")
    assert re.fullmatch(rf"The first sentence has \d+ pieces; the model reads at most {LONGEST}.", long)
    notices, _ = fill_in_tab.compare("girl", "the\ngirl", "a girl", "")
    assert "read as one" in notices.value


def test_the_examples_are_what_the_tab_takes(app):
    written = sys.modules["texts"]
    assert all(1 <= len(re.findall("_{3,}", text)) <= 8 for text in written.BLANKS)
    for word, *sentences in written.SENSES:
        assert len(sentences) == 3 and all(re.search(rf"\b{word}\b", sentence) for sentence in sentences)


# In a browser


def shown_text(page, area):
    return page.locator(f"{area} .translation").text_content()


@pytest.mark.browser
def test_blanks_as_a_person_fills_them(visit, server, others_folder):
    page = visit(server)
    open_tab(page, "Other inputs")
    framed(page, "#filled", "The likeliest pieces")
    for text in (BLANKS, KOREAN):
        tokenizer, ids = masked_ids(others_folder, text)
        logits, weights, _ = read(others_folder, ids)
        page.locator("#blank-text textarea").fill(text)
        with redrawn(page, "#filled"):
            page.get_by_role("button", name="Fill in", exact=True).click()
        frame = framed(page, "#filled", "The likeliest pieces")
        frame.locator("#target .word").nth(3).hover()
        close(lit(frame, "source"), weights[1].mean(dim=0)[3])
        frame.get_by_label("Layer").select_option("1")
        frame.get_by_label("Heads").select_option("head 2 of 2")
        frame.locator("#target .word").nth(4).focus()
        page.keyboard.press("ArrowLeft")
        close(lit(frame, "source"), weights[0, 1, 3])
        frame.locator("#source .word").nth(2).hover()
        close(lit(frame, "target"), weights[0, 1, :, 2])
        blanks = [place for place, number in enumerate(ids) if number == tokenizer.mask_token_id]
        said = [float(number) for number in frame.locator("ol[data-piece] small").all_text_contents()]
        likeliest = torch.cat([logits[place].softmax(dim=0).sort(descending=True).values[:5] for place in blanks])
        torch.testing.assert_close(torch.tensor(said), likeliest, atol=0.0051, rtol=0)

    unfold(page, "One piece, step by step")
    page.locator("#filled-piece label").nth(3).click()
    close(quantity(framed(page, "#filled-steps", "How the model read"), "weights"), weights[1, 0, 3])
    with redrawn(page, "#filled-steps"):
        choose(page, "Head", "2")
    close(quantity(framed(page, "#filled-steps", "head 2 (below)"), "weights"), weights[1, 1, 3])


@pytest.mark.browser
def test_a_word_is_compared_as_a_person_does(visit, server, others_folder):
    page = visit(server)
    open_tab(page, "Other inputs")
    unfold(page, "One word, two meanings")
    page.get_by_role("button", name="Compare").click()
    framed(page, "#senses", "He got bit by Python")
    page.get_by_label("Word", exact=True).fill("girl")
    for number, sentence in enumerate(SENSES, start=1):
        page.get_by_label(f"Sentence {number}").fill(sentence)
    page.keyboard.press("Tab")
    with redrawn(page, "#senses"):
        page.get_by_role("button", name="Compare").click()
    frame = framed(page, "#senses", SENSES[0])
    assert frame.locator("mark").all_text_contents() == ["girl"] * 3
    numbers = torch.tensor([float(text) for text in frame.locator("td").all_text_contents()]).view(-1, 3)
    close(numbers[1:], cosines(others_folder, "girl", SENSES))
    page.get_by_label("Word", exact=True).fill("cat")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("the word 'cat' is not in the sentence").wait_for()


@pytest.mark.browser
def test_a_text_goes_on_as_a_person_lets_it(visit, server, others_folder):
    page = visit(server)
    open_tab(page, "Other inputs")
    open_tab(page, "What comes next")
    framed(page, "#continued", "The likeliest next pieces")
    page.locator("#beginning textarea").fill(BEGINNING)
    with redrawn(page, "#continued"):
        page.get_by_role("button", name="Go on").click()
    slide(page, "Pieces to write", 6)
    tokenizer, ids, _ = goes_on(others_folder, BEGINNING, 6)
    page.get_by_text("6 pieces written").wait_for()
    frame = framed(page, "#continued", "The likeliest next pieces")
    assert shown_text(page, "#continued") == tokenizer.decode(ids, skip_special_tokens=True)
    _, weights, _ = read(others_folder, ids, AutoModelForCausalLM, "tiny-gpt")
    frame.get_by_label("Layer").select_option("1")
    frame.get_by_label("Heads").select_option("head 1 of 2")
    for place in (0, 4, len(ids) - 1):
        frame.locator("#target .word").nth(place).hover()
        close(lit(frame, "source").float(), weights[0, 0, place])
        assert not lit(frame, "source")[place + 1 :].any(), "nothing that comes later"


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(320, True), (320, False), (1280, True)])
def test_narrow_and_dark_with_korean_explanations(visit, server, width, dark):
    page = visit(server, width=width, dark=dark)
    page.get_by_label("한국어").check()
    open_tab(page, "Other inputs")
    framed(page, "#filled", "The likeliest pieces")
    page.get_by_text("BERT는 글을 양쪽 방향으로 읽습니다").wait_for()
    unfold(page, "One word, two meanings")
    page.get_by_role("button", name="Compare").click()
    assert is_dark(framed(page, "#senses", "He got bit by Python")) == dark and fits(page, width)
    open_tab(page, "What comes next")
    assert is_dark(framed(page, "#continued", "The likeliest next pieces")) == dark and fits(page, width)
    page.get_by_text("GPT는 왼쪽에서 오른쪽으로 읽습니다").wait_for()


@pytest.mark.browser
def test_a_text_without_a_blank_gets_a_sentence(visit, server):
    page = visit(server)
    open_tab(page, "Other inputs")
    framed(page, "#filled", "The likeliest pieces")
    page.locator("#blank-text textarea").fill("The girl <img src=x onerror=alert(1)> reads.")
    page.get_by_role("button", name="Fill in", exact=True).click()
    page.get_by_text("There is no blank: write ___").wait_for()
