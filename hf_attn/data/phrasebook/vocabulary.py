"""The words of a lexicon by what they can do in a sentence, and which combinations of them are held out.

Combinations of an adjective with a noun, and of a verb with the noun of its object, are divided once and for all by a
checksum of the two words: one in eight is held out. No word is held out. Next: ``grammar.py``.
"""

import zlib
from functools import cache

from .lexicon import Entry, load_lexicon
from .tree import Tense

HELD_OUT_IN = 8
FRAMES = ("transitive", "intransitive", "motion", "give", "say")
TENSES: tuple[Tense, ...] = ("present", "past", "future")

Partners = tuple[list[Entry], list[Entry]]  # in ordinary, in held-out combinations


def held_out(word: str, noun: str) -> bool:
    """Tell whether a combination occurs in compositional sentences only.

    Args:
        word: the English adjective, or the English verb.
        noun: the English noun that it describes, or has as its object.
    """
    return zlib.crc32(f"{word} {noun}".encode()) % HELD_OUT_IN == 0


class Vocabulary:
    """The entries of a lexicon by what they can do in a sentence.

    Args:
        language: "it", "fr" or "ko".
    """

    def __init__(self, language: str):
        self.kinds: dict[str, list[Entry]] = {}
        for entry in load_lexicon(language):
            self.kinds.setdefault(entry.kind, []).append(entry)
        nouns, verbs, adjectives = self.kinds["noun"], self.kinds["verb"], self.kinds["adjective"]
        self.nouns: dict[str, list[Entry]] = {}
        for noun in nouns:
            for tag in noun.tags:
                self.nouns.setdefault(tag, []).append(noun)
        self.verbs = {
            (frame, tense): [v for v in verbs if frame in v.tags and _has(v, tense)]
            for frame in FRAMES
            for tense in TENSES
        }
        self.verbs_of_things = {
            tense: [v for v in self.verbs["transitive", tense] if "o:person" not in v.tags] for tense in TENSES
        }
        self.objects: dict[Entry, Partners] = {}
        for verb in verbs:
            fits = [n for n in nouns if any(f"o:{tag}" in verb.tags for tag in n.tags)]
            held = [n for n in fits if held_out(verb.english, n.english)]
            self.objects[verb] = ([n for n in fits if n not in held], held)
        self.adjectives: dict[Entry, Partners] = {}
        self.predicates: dict[Entry, Partners] = {}
        self.relatives: dict[tuple[Entry, Tense], list[Entry]] = {}
        for noun in nouns:
            fits = [a for a in adjectives if a.tags & noun.tags]
            held = [a for a in fits if held_out(a.english, noun.english)]
            self.adjectives[noun] = ([a for a in fits if a not in held], held)
            ordinary, held = ([a for a in part if "attributive" not in a.tags] for part in self.adjectives[noun])
            self.predicates[noun] = (ordinary, held)
            for tense in TENSES:
                ordinary = [v for v in self.verbs["transitive", tense] if noun in self.objects[v][0]]
                self.relatives[noun, tense] = ordinary
        self.described = [n for n in nouns if self.predicates[n][0]]
        self.personal = [a for a in adjectives if a.tags & {"person", "personal"}]
        self.times = {tense: [t for t in self.kinds["time"] if tense in t.tags] for tense in TENSES}
        self.places = self.nouns["place"] + self.kinds["city"]
        self.goals = self.nouns["goal"] + self.kinds["city"]
        self.me, self.us = (p for tag in ("1s", "1p") for p in self.kinds["pronoun"] if tag in p.tags)
        self.third_person = [p for p in self.kinds["pronoun"] if p.tags & {"3s", "3p"}]
        self.he_and_she = [p for p in self.third_person if "3s" in p.tags]
        self.pointers = [w for w in self.kinds["determiner"] if w.english in ("this", "that")]
        self.many = next(w for w in self.kinds["determiner"] if w.english == "many")


def _has(verb: Entry, tense: Tense) -> bool:
    """Verbs whose past looks like their present ("read") have no past here: "they read" must mean one thing."""
    return tense != "past" or verb.english_forms[1] != verb.english


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of a language, built once.

    Args:
        language: "it", "fr" or "ko".
    """
    return Vocabulary(language)
