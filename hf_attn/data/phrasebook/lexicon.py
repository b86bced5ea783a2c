"""The bilingual lexicons: one tab-separated file a language pair, one entry a line.

Columns: ``kind`` (noun, verb, adjective, ...), ``english`` (lemma), ``english_forms``, ``tags`` (what the entry means
and combines with), ``target`` (lemma), ``target_forms``, ``target_tags``. The forms, separated by spaces, are

    kind        english_forms            Italian and French                              Korean
    noun        plural (- if none)       plural, feminine of a profession (- if none)    counter
    verb        3rd singular, past       present 1s 3s 1p 3p, participle, future stem    stem, with 아/어, with (으)
    adjective   comparative (- if none)  masculine, feminine, and their plurals; then    stem, with 아/어, with (으),
                                         the masculine before a vowel, if it differs     before a noun
    pronoun     object                   direct object, indirect object
    possessive                           as adjectives
    determiner  plural                   as adjectives

Of other kinds an entry is its lemma; an expression of time may have several words, whose links are in ``target_tags``:
``english_word-target_word``, with ``?`` behind a link that is only possible. Genders are there too, and
"ahead" (the adjective comes before the noun), "be" (its past is formed with "be"), "toward" (its goal takes 으로).
Next: ``grammar.py`` builds sentences from these entries.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANGUAGES = ("it", "fr", "ko")
COLUMNS = ("kind", "english", "english_forms", "tags", "target", "target_forms", "target_tags")


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One line of a lexicon. Two entries are the same only if they are the same line."""

    kind: str
    english: str
    english_forms: tuple[str, ...]
    tags: frozenset[str]
    target: str
    target_forms: tuple[str, ...]
    target_tags: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.english)


NO_ENTRY = Entry("", "", (), frozenset(), "", (), ())


@cache
def load_lexicon(language: str) -> tuple[Entry, ...]:
    """Read the lexicon from English to one language.

    Args:
        language: "it", "fr" or "ko".

    Returns:
        The entries, in the order of the file.

    Raises:
        ValueError: If there is no lexicon for the language.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language={language!r} has no lexicon; choose one of {', '.join(LANGUAGES)}.")
    path = Path(__file__).parent / "lexicon" / f"en-{language}.tsv"
    header, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    if tuple(header.split("\t")) != COLUMNS:
        raise ValueError(f"{path.name} has the header {header!r}; expected {' '.join(COLUMNS)} separated by tabs.")
    entries = []
    for line in lines:
        kind, english, english_forms, tags, target, target_forms, target_tags = line.split("\t")
        entries.append(
            Entry(
                kind,
                english,
                tuple(english_forms.split()),
                frozenset(tags.split()),
                target,
                tuple(target_forms.split()),
                tuple(target_tags.split()),
            )
        )
    return tuple(entries)
