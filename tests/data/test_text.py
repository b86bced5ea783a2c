"""Texts of one language: where they come from, who is held out, and that no piece is lost on the way to rows."""

import json
import re
import unicodedata

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertTokenizer

from hf_attn.data import phrasebook, split_words, train_tokenizer
from hf_attn.data.text import (
    count_words,
    hold_out,
    load_texts,
    phrasebook_texts,
    text_blocks,
    text_rows,
    train_text_tokenizer,
    typed_ids,
)

TEXTS = phrasebook_texts("en", size=200)
CAUSAL = train_text_tokenizer(TEXTS, 400)
MASKED = train_text_tokenizer(TEXTS, 400, masked=True)
PAD, BOS, EOS = 0, 1, 2
SOME_TEXTS = st.lists(st.sampled_from([*TEXTS[:30], "a", "été ✓"]), min_size=1, max_size=6)


def plain(text):
    """Ids of a text by the tokenizer's own encoder, without special tokens."""
    return CAUSAL.backend_tokenizer.encode(text, add_special_tokens=False).ids


def test_a_line_ends_with_a_line_feed_and_nothing_else(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_bytes("\ufeffone\u2028two\r\n\n  \nthree\x0bfour \n\u0085".encode())
    assert load_texts(file) == ["one\u2028two", "three\x0bfour "]


def test_objects_give_the_text_of_their_column(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"verse": text, "number": 3}) for text in ("a\nb", "", "c")) + "\n")
    assert load_texts(file, column="verse") == ["a\nb", "c"]
    half = tmp_path / "half.jsonl"
    half.write_text('{"text": "a"}\n{"text": "half of a pair: \\ud83d"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="half.jsonl, line 2: column 'text' must hold a text"):
        load_texts(half)
    with pytest.raises(ValueError, match=r"line 1: column 'text' must hold a text.*number.*verse"):
        load_texts(file)
    file.write_text('{"text": "a"}\n{"text": \n')
    with pytest.raises(ValueError, match="line 2: must be one JSON object"):
        load_texts(file)


def test_a_dataset_gives_the_texts_of_its_split(monkeypatch):
    rows = Dataset.from_dict({"sentence": ["one", " ", "two"]})
    monkeypatch.setattr("datasets.load_dataset", lambda name, split: {("verses", "train"): rows}[name, split])
    assert load_texts("verses", column="sentence", split="train") == ["one", "two"]


@pytest.mark.parametrize("source", ["missing.txt", "missing"])
def test_what_is_neither_file_nor_split_of_a_dataset_is_refused(source):
    with pytest.raises(FileNotFoundError, match=source):
        load_texts(source)


def test_a_file_without_texts_is_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(ValueError, match="got none"):
        load_texts(tmp_path / "empty.txt")


@pytest.mark.parametrize("language", ["en", "it", "fr", "ko"])
def test_the_phrasebook_gives_the_sentences_of_a_language(language):
    pair = "en-it" if language == "en" else f"en-{language}"
    expected = [row[language] for row in phrasebook(pair, "validation", size=20)["translation"]]
    assert phrasebook_texts(language, "validation", 20) == expected


def test_a_language_that_the_phrasebook_has_not_is_refused():
    with pytest.raises(ValueError, match="language='de'"):
        phrasebook_texts("de")


@given(texts=st.lists(st.sampled_from("abcdefghij"), min_size=2), share=st.floats(0.01, 0.6), seed=st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_held_out_texts_are_a_share_of_the_different_ones_and_stand_on_one_side(texts, share, seed):
    different = len(set(texts))
    if different < 2 or max(round(share * different), 1) == different:
        with pytest.raises(ValueError, match="two kinds"):
            hold_out(texts, share, seed)
        return
    kept, held_out = hold_out(texts, share, seed)
    assert sorted(kept + held_out) == sorted(texts)
    assert not set(kept) & set(held_out)
    assert len(set(held_out)) == max(round(share * different), 1)
    for part in (kept, held_out):  # in their order
        assert part == [text for text in texts if text in set(part)]
    assert (kept, held_out) == hold_out(texts, share, seed)


def test_another_seed_holds_out_others_and_new_texts_change_little():
    _, held_out = hold_out(TEXTS, 0.2)
    assert held_out != hold_out(TEXTS, 0.2, seed=1)[1]
    _, with_more = hold_out([*TEXTS, "one more"], 0.2)
    assert len(set(held_out) ^ set(with_more)) <= 2


@pytest.mark.parametrize("share", [0, 1, -0.1])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        hold_out(TEXTS, share)


@given(texts=SOME_TEXTS, length=st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_rows_hold_every_piece_once_and_each_begins_like_a_text(texts, length):
    rows = text_rows(texts, CAUSAL, length)
    assert all(row[0] == BOS and 2 <= len(row) <= length for row in rows)
    found, left = [], []
    for row in rows:
        left += row[1:]
        if row[-1] == EOS:
            found.append(left[:-1])
            left = []
        else:
            assert len(row) == length  # a text goes on in another row only if this one is full
    assert not left
    assert found == [plain(text) for text in texts]


@given(texts=SOME_TEXTS, length=st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_blocks_are_full_and_put_together_are_the_texts(texts, length):
    blocks = text_blocks(texts, CAUSAL, length)
    assert all(len(block) == length for block in blocks[:-1]) and 1 <= len(blocks[-1]) <= length
    assert sum(blocks, []) == [token for text in texts for token in (BOS, *plain(text), EOS)]


def test_rows_need_a_length_and_both_ends():
    for make in (text_rows, text_blocks):
        with pytest.raises(ValueError, match="length"):
            make(TEXTS, CAUSAL, 1)
    tokenizer = train_text_tokenizer(TEXTS, 400)
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="eos"):
        text_rows(TEXTS, tokenizer, 8)


def test_a_prompt_is_not_closed_and_a_text_to_be_read_is_framed():
    text = TEXTS[0]
    assert CAUSAL(text)["input_ids"] == [BOS, *plain(text)]
    assert CAUSAL([text, "a"], padding=True)["input_ids"][1] == [*[PAD] * (len(plain(text)) - 1), BOS, *plain("a")]
    for place in range(1, len(plain(text))):  # what goes on with it stands behind it as it is
        start, rest = CAUSAL.decode(plain(text)[:place]), CAUSAL.decode(plain(text)[place:])
        assert start + rest == " " + text
    ids = MASKED(text)["input_ids"]
    assert (ids[0], ids[-1]) == (BOS, EOS) and ids[1:-1] == text_rows([text], MASKED, 100)[0][1:-1]
    assert MASKED.decode(ids, skip_special_tokens=True) == text.lower()
    pair = MASKED("a", "b")
    assert pair["token_type_ids"][0] == 0 and pair["token_type_ids"][-1] == 1


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("before", ["", "The ", "I see the old "])
@pytest.mark.parametrize("after", ["", ".", " reads", ", and he <mask>."])
def test_a_typed_mask_is_a_mask_and_the_pieces_around_it_stay(tmp_path, saved, before, after):
    tokenizer = MASKED
    if saved:
        MASKED.save_pretrained(tmp_path)
        tokenizer = type(MASKED).from_pretrained(tmp_path)
    whole = tokenizer.convert_ids_to_tokens(tokenizer(before + "house" + after)["input_ids"])
    masked = tokenizer.convert_ids_to_tokens(tokenizer(before + "<mask>" + after)["input_ids"])
    hidden = len(whole) - len(masked) + 1
    place = masked.index("<mask>")
    assert whole[:place] + whole[place + hidden :] == masked[:place] + masked[place + 1 :]
    assert "".join(whole[place : place + hidden]) == "▁house"


def test_pieces_are_those_of_the_tokenizer_of_the_package():
    lower = train_tokenizer(TEXTS, 400, mask_token=True, lowercase=True)
    for text in TEXTS[:50]:
        assert MASKED(text)["input_ids"][1:-1] == lower(text)["input_ids"][:-1]


def test_words_are_those_of_the_package_and_an_end():
    assert count_words(["one two three.", "Yes"]) == (3 + 1 + 1) + (1 + 1)
    assert count_words(TEXTS) == sum(len(split_words(text)) for text in TEXTS) + len(TEXTS)


TYPED_TEXTS = ["the girl reads a letter", "the old teacher"]
TYPED = ["<mask>", "<MASK>", "<mas\u212a>", "</s>", "<s>", "<pad>", "<unk>", "<mask></s>", "x<mask>y"]


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("typed", TYPED)
def test_a_special_token_that_was_typed_is_text(masked, typed):
    tokenizer = train_text_tokenizer(TYPED_TEXTS, 320, masked=masked)
    ids = typed_ids(tokenizer, f"the girl {typed} reads", "_{3,}" if masked else None)
    assert [number for number in ids if number in tokenizer.all_special_ids] == ([1, 2] if masked else [1])
    shown = tokenizer.decode(ids, skip_special_tokens=True)
    expected = unicodedata.normalize("NFC", f"the girl {typed} reads")
    assert shown.replace(" ", "").lower() == expected.replace(" ", "").lower()


@pytest.mark.parametrize("text", ["the girl reads", "The GIRL,  é 소녀 ▁ 🙂", "", "[MASK] __ _"])
@pytest.mark.parametrize("masked", [True, False])
def test_other_text_has_the_ids_that_the_tokenizer_gives_it(text, masked):
    tokenizer = train_text_tokenizer(TYPED_TEXTS, 320, masked=masked)
    assert typed_ids(tokenizer, text, "_{3,}" if masked else None) == tokenizer(text)["input_ids"]


@pytest.mark.parametrize(
    "text", ["the ___ reads a <mask>.", "___", "______ the___girl <pad> ___?", "<mask> ___\u0338 ___"]
)
def test_blanks_are_masks_and_nothing_else_is(text):
    tokenizer = train_text_tokenizer(TYPED_TEXTS, 320, masked=True)
    ids = typed_ids(tokenizer, text, "_{3,}")
    assert ids.count(tokenizer.mask_token_id) == len(re.findall("_{3,}", text))
    plain = "the ___ reads a ___, the girl."
    assert typed_ids(tokenizer, plain, "_{3,}") == tokenizer(plain.replace("___", "<mask>"))["input_ids"]


def test_tokenizers_that_read_special_tokens_in_texts_read_none_that_was_typed():
    """BERT's own do; each typed one is spelled in letters."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "girl", "[", "]", *"maskep"]
    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)})
    assert tokenizer("the [MASK] [SEP]")["input_ids"].count(3) == 2, "it does read them"
    ids = typed_ids(tokenizer, "the ___ [MASK] [SEP]", "_{3,}")
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "the", "[MASK]", *"[mask]", *"[sep]", "[SEP]"]


def test_without_a_mask_there_are_no_blanks():
    tokenizer = train_text_tokenizer(TYPED_TEXTS, 320, masked=False)
    with pytest.raises(ValueError, match="no mask token"):
        typed_ids(tokenizer, "the ___", "_{3,}")
    assert typed_ids(tokenizer, "the girl", "_{3,}") == tokenizer("the girl")["input_ids"]
