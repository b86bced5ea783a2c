"""Documents with summaries that need no file: which three sentences speak of the same?

A document is some sentences of the phrasebook. Three of them have one name in common, of a person, a place or a day;
every other name stands in a single sentence. The summary is these three. A sentence alone does not tell whether it is
one of them: they must be compared. This is no summarising as people do it, but it takes what an extractive summariser
is made of, and has a right answer.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ..models.checks import is_whole
from .text import phrasebook_texts
from .words import text_words

if TYPE_CHECKING:
    from datasets import Dataset

SHARED = 3


def names_of(sentence: str, known: frozenset[str] = frozenset()) -> set[str]:
    """Return the names in a sentence: its capitalised words but the first, which is one only if it is known as such."""
    words = text_words(sentence)
    names = {word for word in words[1:] if word[0].isupper()} - {"I"}
    return names | ({words[0]} & known)


def shared_name_documents(split: str = "train", size: int = 2000, sentences: int = 8, seed: int = 0) -> Dataset:
    """Make documents.

    Args:
        split: of the phrasebook: "train", "validation" or "test".
        size: how many documents.
        sentences: in each, at least 4.
        seed: another seed gives other documents of the same sentences.

    Returns:
        A dataset with the columns "sentences", a list of strings, and "summary".

    Raises:
        ValueError: if a document would have fewer than 4 sentences, or there are no documents.
    """
    from datasets import Dataset

    for name, value, least in (("size", size, 1), ("sentences", sentences, SHARED + 1)):
        if not is_whole(value, least):
            raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    texts = phrasebook_texts("en", split, 4000)
    known = frozenset(name for text in texts for name in names_of(text))
    names = [(text, names_of(text, known)) for text in texts]
    named = [(text, its) for text, its in names if its]
    having = {name: [text for text, its in named if its == {name}] for name in sorted(known)}
    subjects = [name for name, some in having.items() if len(some) >= SHARED]
    draw = random.Random(f"{split} {seed}")
    documents, summaries = [], []
    for _ in range(size):
        name = draw.choice(subjects)
        about = draw.sample(having[name], SHARED)
        used, others = {name}, []
        while len(others) < sentences - SHARED:
            text, its = draw.choice(named)
            if not its & used:
                others.append(text)
                used |= its
        together = [*about, *others]
        draw.shuffle(together)
        documents.append(together)
        summaries.append(" ".join(text for text in together if text in about))
    return Dataset.from_dict({"sentences": documents, "summary": summaries})
