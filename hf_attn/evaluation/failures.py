# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Find what is plainly wrong with a translation by looking at source and translation alone, without a reference.

    empty          no word at all
    looping        words repeated again and again, as the source does not repeat its own
    copied         the source, in its own language
    truncated      cut off before its end
    lost_number    a number of the source, in digits or words, that is nowhere in the translation
    lost_name      a name of the source that is nowhere in the translation
    lost_url       the same of a web or e-mail address
    lost_negation  the source says not and the translation does not, or the other way round

A flag says where to look, and silence is no praise: the checks read words, not meaning, and every doubt is decided for
the translation. Of sentences translated by people they accuse about one in a hundred (tests/evaluation/test_failures.py
measures it). Numbers in words, names and negation need the languages, and know English, French, Italian and Korean;
names written in Korean letters, and a name that is the first word of its sentence, are not looked for.
Read next: `numbers.py` and `negation.py`, where the words are.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hf_attn.data.words import check_text, split_words

from . import negation, numbers
from .names import lost_names

KINDS = ("empty", "looping", "copied", "truncated", "lost_number", "lost_name", "lost_url", "lost_negation")
"""All kinds of failure, in the order in which they are reported."""


@dataclass(frozen=True)
class Failure:
    """Something that looks wrong.

    Attributes:
        kind: one of `KINDS`.
        detail: what it was found by, for a person to read.
    """

    kind: str
    detail: str


def find_failures(
    source: str,
    text: str,
    *,
    source_lang: str | None = None,
    target_lang: str | None = None,
    truncated: bool = False,
) -> list[Failure]:
    """Find what looks wrong with a translation.

    Args:
        source: the sentence that was translated.
        text: its translation.
        source_lang: language code of the source, such as "en" or "en-GB"; None leaves out what needs it.
        target_lang: the same of the translation.
        truncated: whether the source or the translation is known to be cut off, as `Translation.truncated` says.

    Returns:
        The failures in the order of `KINDS`, several of a kind where several things are lost; none for a source without
        a word.

    Raises:
        TypeError: if a text or a language code is no string.
    """
    for name, value in {"source": source, "text": text, "source_lang": source_lang, "target_lang": target_lang}.items():
        if value is not None or "lang" not in name:
            check_text(name, value)
    source, text = (unicodedata.normalize("NFC", side) for side in (source, text))
    langs = [None if lang is None else re.split("[-_]", lang)[0].lower() for lang in (source_lang, target_lang)]
    if not _words(source):
        return []
    found = [Failure("truncated", "the source or the translation is cut off")] if truncated else []
    if not _words(text):
        return [Failure("empty", f"no word in {text!r}" if text.strip() else "nothing"), *found]
    found += [Failure("looping", detail) for detail in _loops(source, text)]
    if _is_copy(source, text, *langs):
        found.append(Failure("copied", "the words of the source"))
    else:
        for kind, check in _CHECKS.items():
            found += [Failure(kind, detail) for detail in check(source, text, *langs)]
    return sorted(found, key=lambda failure: KINDS.index(failure.kind))


def count_failures(failures: Iterable[Iterable[Failure]]) -> dict[str, int]:
    """Count the translations that have a failure of each kind.

    Args:
        failures: for each translation, its failures.

    Returns:
        A number for each kind, in the order of `KINDS`, and for "any".
    """
    kinds = [{failure.kind for failure in its} for its in failures]
    return {kind: sum(kind in its for its in kinds) for kind in KINDS} | {"any": sum(map(bool, kinds))}


def _words(text: str) -> list[str]:
    """Give the words of a text in lower case, without punctuation."""
    words = (text[start:end].lower() for start, end in split_words(text))
    return [word for word in words if any(character.isalnum() for character in word)]


def _loops(source: str, text: str) -> Iterator[str]:
    """Yield what the translation repeats more often than the source repeats anything."""
    times, group = _most_repeated(text)
    # a word or two may stand twice ("nous nous"), and a few words too ("plus loin et plus loin")
    if times > max(_most_repeated(source)[0], 1.9 if len(group) >= 5 else 2.5):
        yield f"{' '.join(group)!r} {round(times)} times"
    else:
        count, group = _most_frequent(_words(text), 4)
        if count >= 3 and count > _most_frequent(_words(source), 3)[0]:
            yield f"{' '.join(group)!r} {count} times"
    letters = re.compile(r"([^\W\d_]{1,4}?)\1{5,}")
    match = letters.search(text.lower())
    if match and not letters.search(source.lower()):
        yield f"{match.group(1)!r} again and again"


def _most_repeated(text: str, longest: int = 12) -> tuple[float, list[str]]:
    """Find the group of words that stands most often one after another: how often, the beginning of a last one counted
    as its share, and the group."""
    words = [text[start:end].lower() for start, end in split_words(text)]
    words = [word for word in words if word[0].isalnum() or word in ".!?…:;-–—/"]  # a new sentence is no repetition
    best: tuple[float, list[str]] = (1.0, [])
    for size in range(1, min(longest, len(words) // 2) + 1):
        equal = 0  # how many words in a row equal the word `size` places before
        for place in range(size, len(words)):
            equal = equal + 1 if words[place] == words[place - size] else 0
            group = words[place - size + 1 : place + 1]
            if equal / size + 1 > best[0] and any(word[0].isalpha() for word in group):
                best = (equal / size + 1, group)
    return best


def _most_frequent(words: list[str], size: int) -> tuple[int, tuple[str, ...]]:
    """Find the group of `size` words that occurs most often, anywhere: how often, and the group."""
    groups = Counter(zip(*(words[start:] for start in range(size)), strict=False))
    return max(((count, group) for group, count in groups.items()), default=(0, ()))


def _is_copy(source: str, text: str, source_lang: str | None, target_lang: str | None) -> bool:
    """Tell whether (nearly) all words are those of the source; names, numbers and one or two words do not count."""
    if source_lang is not None and source_lang == target_lang:
        return False
    text = _ADDRESS.sub(" ", text)
    words = {word for word in re.findall(r"(?<![\w.(=])[^\W\d_]+(?![\w(=])", text) if word == word.lower()}
    shared = words & set(_words(source))
    return len(shared) >= 3 and len(shared) >= 0.8 * len(words)


def _lost_numbers(source: str, text: str, source_lang: str | None, target_lang: str | None) -> Iterator[str]:
    source = _ADDRESS.sub(" ", source)
    for number in sorted(numbers.numbers_in(source, source_lang)):
        if not numbers.mentions(text, number, target_lang):
            yield str(number)


def _lost_names(source: str, text: str, source_lang: str | None, target_lang: str | None) -> Iterator[str]:
    if source_lang in ("en", "fr", "it") and target_lang in ("en", "fr", "it", "ko"):
        yield from lost_names(source, text, target_lang)


_ADDRESS = re.compile(r"\bhttps?://[^\s<>\"»”]+|\bwww\.[^\s<>\"»”]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def _lost_addresses(source: str, text: str, source_lang: str | None, target_lang: str | None) -> Iterator[str]:
    kept = text.lower()
    for address in _ADDRESS.findall(source):
        address = address.rstrip(".,;:!?)]}'’/")
        if address.lower() not in kept:
            yield address


def _lost_negation(source: str, text: str, source_lang: str | None, target_lang: str | None) -> Iterator[str]:
    if not (source_lang and target_lang and negation.knows(source_lang) and negation.knows(target_lang)):
        return
    before, after = negation.is_negated(source, source_lang), negation.is_negated(text, target_lang)
    if before and not after and not negation.may_be_negated(text, target_lang):
        yield "only the source is negated"
    if after and not before and not negation.may_be_negated(source, source_lang):
        yield "only the translation is negated"


_CHECKS = {
    "lost_number": _lost_numbers,
    "lost_name": _lost_names,
    "lost_url": _lost_addresses,
    "lost_negation": _lost_negation,
}
