"""Split a sentence into the words that attention matrices and gold alignments speak about.

A word is a whitespace-separated token with its punctuation and symbols split off one by one. The same pattern cuts the
text before a tokenizer learns its pieces, so a piece does not belong to two words. Read `tokenizer.py` next.
"""

import unicodedata
from typing import TypeGuard

import regex

# Literal characters, not escapes: `regex` and Oniguruma write escapes above U+FFFF differently.
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"  # two regional indicators
_MODIFIER = "[\\p{M}\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"  # marks, variation selectors, skin tones, flag tags
_JOINER = "\u200d"
_SYMBOL = rf"[\p{{P}}\p{{S}}]{_MODIFIER}*(?:{_JOINER}\p{{S}}{_MODIFIER}*)*"

_LETTER = r"[^\s\p{P}\p{S}]"  # digits, marks and format characters count as letters
_END = rf"(?!{_LETTER})"
_APOSTROPHE = "['\u2019]"
# Before one of these the apostrophe is English ("don't", "it's", "we'll"); before anything else it closes an elision.
_ENGLISH_ENDING = rf"(?:[sS]|[tT]|[mM]|[dD]|[rR][eE]|[vV][eE]|[lL][lL]){_END}"
# Words that look like elisions and are not: o'clock and O'Brien, ma'am, y'all, aujourd'hui.
_EXCEPTION = (
    rf"(?<!{_LETTER})(?:[oO]{_APOSTROPHE}(?={_LETTER})|[mM][aA]{_APOSTROPHE}(?=[aA][mM]{_END})"
    rf"|[yY]{_APOSTROPHE}(?=[aA][lL][lL]{_END})|[aA][uU][jJ][oO][uU][rR][dD]{_APOSTROPHE}(?=[hH][uU][iI]{_END}))"
)
_LETTERS = (
    rf"(?:{_EXCEPTION})?{_LETTER}+(?:{_APOSTROPHE}(?={_ENGLISH_ENDING}){_LETTER}+)*(?:{_APOSTROPHE}(?={_LETTER}))?"
)

WORD_PATTERN = rf"{_FLAG}|{_SYMBOL}|{_LETTERS}"
_WORD = regex.compile(WORD_PATTERN)


def check_text(name: str, text: object) -> None:
    """Raise TypeError unless text is a string."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, got {type(text).__name__}")


def split_words(text: str) -> list[tuple[int, int]]:
    """Split a text into words and give the characters that each covers.

    - Every punctuation mark and symbol (Unicode categories P and S) is a word of its own; an emoji stays together with
      its modifiers and with what a zero-width joiner ties to it.
    - A French or Italian elision ends after its apostrophe: "l'" + "homme", "c'" + "è".
    - An English contraction is one word: "don't", "it's", "we'll".
    - A combining mark stays with its letter, a Korean eojeol with its particles. Text written without spaces (Chinese,
      Japanese) is cut at punctuation only.

    Args:
        text: one sentence or more; whitespace belongs to no word.

    Returns:
        The (start, end) character spans of the words, in order, not overlapping.

    Raises:
        TypeError: if the text is no string.
    """
    check_text("text", text)
    return [match.span() for match in _WORD.finditer(text)]


def text_words(text: str) -> list[str]:
    """Split a text into words, in Unicode form NFC: those that gold links and alignment matrices count.

    Args:
        text: one sentence or more.

    Raises:
        TypeError: if the text is no string.
    """
    check_text("text", text)
    text = unicodedata.normalize("NFC", text)
    return [text[start:end] for start, end in split_words(text)]


def is_text(value: object) -> TypeGuard[str]:
    """Tell whether a value is a string of characters: half of a surrogate pair is none, and no tokenizer takes it."""
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)
