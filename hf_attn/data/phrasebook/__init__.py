"""A bilingual corpus that comes with the package: English with Italian, French or Korean, and gold word links.

A synchronous grammar draws sentence trees (``grammar.py``) and puts each into both languages (``english.py``,
``romance.py``, ``korean.py``) with the words of a lexicon (``lexicon/``). Which word translates which is known by
construction. Conventions that keep one translation a sentence: "they" is masculine, so are nouns of profession unless
they say what a woman is; the English past is the passato prossimo or passé composé, of "be" the imperfect.
"""

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ...models.checks import is_whole
from ..words import split_words
from .english import sentence_words
from .french import French
from .grammar import Grammar
from .italian import Italian
from .korean import Korean
from .lexicon import LANGUAGES
from .realise import capitalise, link, spell

if TYPE_CHECKING:
    from datasets import Dataset

SPLITS = {"train": 20_000, "validation": 1_000, "test": 1_000, "compositional": 1_000}
PAIRS = tuple(f"en-{language}" for language in LANGUAGES)
SHORTEST, LONGEST = 3, 40

_REALISERS = {"it": Italian(), "fr": French(), "ko": Korean()}
_PUNCTUATION = frozenset(",.?-")
_PATIENCE = 3_000  # draws without a new sentence before giving up


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, its translation, and their word links as [source_word, target_word].

    `combinations` are the English (adjective or verb, noun) pairs that the compositional split is about.
    """

    source: str
    target: str
    sure: list[list[int]]
    possible: list[list[int]]
    combinations: list[tuple[str, str]]


def split_of(source: str) -> str:
    """Return the split to which an English sentence without held-out combinations belongs.

    Args:
        source: the sentence.
    """
    return {0: "validation", 1: "test"}.get(zlib.crc32(source.encode()) % 10, "train")


def generate(
    pair: str = "en-ko",
    split: str = "train",
    size: int | None = None,
    seed: int = 0,
    *,
    words: tuple[int, int] | None = None,
) -> Iterator[Pair]:
    """Generate sentence pairs, all different, one by one.

    Args:
        pair: "en-it", "en-fr" or "en-ko".
        split: "train", "validation", "test" or "compositional".
        size: how many; None takes 20,000 for training and 1,000 otherwise.
        seed: another seed gives other sentences of the same split.
        words: fewest and most words of the English sentence, punctuation not counted; None takes sentences of 3 to 40
            words, about ten on average.

    Returns:
        An iterator of `Pair`.

    Raises:
        ValueError: If an argument is not one of these, or there are not as many sentences.
    """
    if pair not in PAIRS:
        raise ValueError(f"pair={pair!r} is not in the phrasebook; choose one of {', '.join(PAIRS)}.")
    if split not in SPLITS:
        raise ValueError(f"split={split!r} is not in the phrasebook; choose one of {', '.join(SPLITS)}.")
    size = SPLITS[split] if size is None else size
    if not is_whole(size):
        raise ValueError(f"size={size!r} must be a whole number, not negative.")
    range_given = (SHORTEST, LONGEST) if words is None else words
    pair_given = isinstance(range_given, (tuple, list)) and [is_whole(end) for end in range_given] == [True, True]
    low, high = range_given if pair_given else (0, 0)
    if not SHORTEST <= low <= high <= LONGEST:
        raise ValueError(f"words={words!r} must be (fewest, most) with {SHORTEST} <= fewest <= most <= {LONGEST}.")
    return _draw(pair, split, size, seed, low, high, guided=words is not None)


@cache
def training_words(pair: str) -> frozenset[str]:
    """Return all words, of both languages, that the default training split contains; it takes some seconds, once.

    Args:
        pair: "en-it", "en-fr" or "en-ko".
    """
    words: set[str] = set()
    for one in generate(pair):
        for text in (one.source, one.target):
            words.update(text[start:end] for start, end in split_words(text))
    return frozenset(words)


def _draw(pair: str, split: str, size: int, seed: int, low: int, high: int, guided: bool) -> Iterator[Pair]:
    language = pair[3:]
    realiser = _REALISERS[language]
    rng = random.Random(f"{pair} {split} {seed}")
    grammar = Grammar(language, rng, compositional=split == "compositional")
    seen: set[str] = set()
    tried = 0
    while len(seen) < size:
        tried += 1
        if tried > _PATIENCE:
            raise ValueError(
                f"size={size} is more than there are: {len(seen)} sentences of {low} to {high} words found."
            )
        tree = grammar.sentence(low + int(rng.random() * (high - low + 1)) if guided else None)
        if split == "compositional" and not grammar.holds_out():
            continue
        source = sentence_words(tree)
        source_words = capitalise([word for word, _ in source])
        if not low <= sum(word not in _PUNCTUATION for word in source_words) <= high:
            continue
        text = spell(source_words)
        if text in seen or (split != "compositional" and split_of(text) != split):
            continue
        target = realiser.sentence_words(tree)
        target_words = capitalise([word for word, _, _ in target])
        if split == "compositional" and not training_words(pair).issuperset((*source_words, *target_words)):
            continue
        seen.add(text)
        tried = 0
        sure, possible = link(source, target)
        translation = spell(target_words, realiser.SPACE_BEFORE)
        yield Pair(text, translation, sure, possible, grammar.combinations)


def phrasebook(
    pair: str = "en-ko",
    split: str = "train",
    size: int | None = None,
    seed: int = 0,
    *,
    words: tuple[int, int] | None = None,
) -> "Dataset":
    """Make a corpus of short sentences with gold word alignments; it needs no download.

    The sentences depend on the arguments alone, so every machine makes the same corpus. The splits have no English
    sentence in common, whatever the seeds. The compositional split combines words of the training split as this one
    never does, adjectives with nouns and verbs with objects; each of its words occurs in the default training split,
    which makes its first use some seconds slower. For the alignment error rate, the possible links of the literature
    are the union of "sure" and "possible".

    Args:
        pair: "en-it", "en-fr" or "en-ko".
        split: "train", "validation", "test" or "compositional".
        size: how many sentence pairs; None takes 20,000 for training and 1,000 otherwise.
        seed: another seed gives other sentences of the same split.
        words: fewest and most words of the English sentence, punctuation not counted; None takes sentences of 3 to 40
            words, about ten on average.

    Returns:
        A dataset with the columns "translation" (a dictionary from language code to sentence), "sure" (links of words
        that translate each other) and "possible" (links of articles, particles, prepositions and auxiliaries; no sure
        link among them). A link is [source_word, target_word], counting the words of `hf_attn.data.split_words`.

    Raises:
        ValueError: If an argument is not one of these, or there are not as many sentences.
    """
    from datasets import Dataset, Features, List, Translation, Value

    pairs = list(generate(pair, split, size, seed, words=words))
    links = List(List(Value("int32")))
    columns = {
        "translation": [{"en": one.source, pair[3:]: one.target} for one in pairs],
        "sure": [one.sure for one in pairs],
        "possible": [one.possible for one in pairs],
    }
    features = Features({"translation": Translation(pair.split("-")), "sure": links, "possible": links})
    return Dataset.from_dict(columns, features=features)
