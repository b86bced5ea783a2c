import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.data.words import split_words

FAMILY = "👨‍👩‍👧‍👦"


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\u2028\u3000", []),
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("  two  spaces ", ["two", "spaces"]),
        ("“Hi”, she said...", ["“", "Hi", "”", ",", "she", "said", ".", ".", "."]),
        ("a-t-il x != y 3,5€", ["a", "-", "t", "-", "il", "x", "!", "=", "y", "3", ",", "5", "€"]),
        # English contractions stay whole, with either apostrophe
        ("don't it's I'm we'll they've she'd you're", ["don't", "it's", "I'm", "we'll", "they've", "she'd", "you're"]),
        ("DON’T shouldn't've", ["DON’T", "shouldn't've"]),
        ("o'clock O'Brien ma'am y'all", ["o'clock", "O'Brien", "ma'am", "y'all"]),
        ("the dogs' 'quoted'", ["the", "dogs", "'", "'", "quoted", "'"]),
        # French and Italian elisions end after the apostrophe
        ("l'homme", ["l'", "homme"]),
        ("J'ai qu’il s'est", ["J'", "ai", "qu’", "il", "s'", "est"]),
        ("d'aujourd'hui", ["d'", "aujourd'hui"]),
        ("Aujourd’hui, l'île", ["Aujourd’hui", ",", "l'", "île"]),
        ("c'è dell'amico un'altra nient'altro", ["c'", "è", "dell'", "amico", "un'", "altra", "nient'", "altro"]),
        ("l'11 settembre", ["l'", "11", "settembre"]),
        ("d'sole l'treno", ["d'", "sole", "l'", "treno"]),
        ("Oh, d'accord", ["Oh", ",", "d'", "accord"]),
        ("po'amica", ["po'", "amica"]),
        # Korean: the particle stays, punctuation goes
        ("저는 학교에 갑니다.", ["저는", "학교에", "갑니다", "."]),
        ("LibreOffice의 확대/축소", ["LibreOffice의", "확대", "/", "축소"]),
        # emoji
        (f"hi{FAMILY}!", ["hi", FAMILY, "!"]),
        ("👍🏽👍🏽 ❤️ 1️⃣", ["👍🏽", "👍🏽", "❤️", "1️⃣"]),
        ("🇰🇷🇮🇹🇫🇷", ["🇰🇷", "🇮🇹", "🇫🇷"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿🏳️‍🌈", ["🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏳️‍🌈"]),
        # combining marks and joiners inside a word
        ("cafe\u0301 है क्‍ष", ["cafe\u0301", "है", "क्‍ष"]),
        ("日本語。文", ["日本語", "。", "文"]),
        ("▁a_b", ["▁", "a", "_", "b"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_decomposed_korean_has_the_same_words() -> None:
    text = "학교에서, 집까지"
    decomposed = unicodedata.normalize("NFD", text)
    assert len(decomposed) > len(text)
    assert [unicodedata.normalize("NFC", word) for word in words(decomposed)] == words(text)


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_words_cover_all_but_whitespace(text: str) -> None:
    position = 0
    for start, end in split_words(text):
        assert start >= position and end > start
        assert not text[position:start].strip()
        assert not any(character.isspace() and character not in "\x1c\x1d\x1e\x1f" for character in text[start:end])
        position = end
    assert not text[position:].strip()


@given(st.text(st.sampled_from("abà'’ 학.,-!😀1"), max_size=12))
@settings(max_examples=300, deadline=None)
def test_a_word_is_letters_or_one_mark(text: str) -> None:
    for word in words(text):
        marks = [character for character in word if unicodedata.category(character)[0] in "PS"]
        assert len(word) == 1 or set(marks) <= set("'’")
