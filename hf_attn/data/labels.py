"""Make labelled examples of plain text, one sentence or verse a line: nobody has to annotate anything.

    punctuation   words in lower case without marks; tags say case and mark of each: restoring them is a published task
    questions     a line without its marks; the label says whether a question mark ended it, as often as not
    parts         a line of an ordered text; the label is the part it stands in, found by where the parts begin

The tags follow Tilk & Alumae 2016 (Bidirectional Recurrent Neural Network with Attention Mechanism for Punctuation
Restoration): a comma stands for commas, colons, semicolons and dashes, a period for periods and exclamation marks.
Here a tag says also whether the word has a capital: "upper," is a capital word before a comma.
Read next: `text.py` for where lines come from and how they are split.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import regex

from ..models.checks import is_whole
from .words import check_text

if TYPE_CHECKING:
    from datasets import Dataset

MARKS = ("", ",", ".", "?")
TAGS = tuple(f"{case}{mark}" for case in ("lower", "upper") for mark in MARKS)
QUESTIONS = ("statement", "question")

# marks and the word after them, which holds apostrophes, hyphens and the marks between digits
_WORD = regex.compile(r"(\p{P}*)([^\s\p{P}](?:[^\s\p{P}]|['’\-](?=[^\s\p{P}])|(?<=\d)[.,](?=\d))*|(?<=\p{P})(?!\p{P}))")
_MARK_OF = {**dict.fromkeys(",:;–—", ","), **dict.fromkeys(".!…", "."), "?": "?"}


def tag_words(text: str) -> tuple[list[str], list[str]]:
    """Take case and punctuation away from a text.

    Args:
        text: as people write it.

    Returns:
        Its words in lower case, hyphens and apostrophes within them kept, and one of TAGS for each. Of several marks
        after a word the one that says most counts: a question mark, then a period, then a comma.

    Raises:
        TypeError: if the text is no string.
    """
    check_text("text", text)
    words: list[str] = []
    capitals: list[bool] = []
    marks: list[str] = []
    for before, word in _WORD.findall(text):
        if marks:  # opening quotes and brackets are no marks; a dash between words is
            marks[-1] = max([marks[-1], *(_MARK_OF.get(one, "") for one in before)], key=MARKS.index)
        if word:
            words.append(word.lower())
            capitals.append(word[0].isupper())
            marks.append("")
    return words, [f"{'upper' if capital else 'lower'}{mark}" for capital, mark in zip(capitals, marks)]


def restore(words: Sequence[str], tags: Sequence[str]) -> str:
    """Write words with the case and the marks that their tags say.

    Args:
        words: in lower case.
        tags: one of TAGS for each.

    Raises:
        ValueError: if there are not as many tags as words, or one is unknown.
    """
    if len(words) != len(tags) or not set(tags) <= set(TAGS):
        raise ValueError(f"tags must be one of {', '.join(TAGS)} for each of the {len(words)} words, got {list(tags)}")
    shown = []
    for word, tag in zip(words, tags):
        shown.append((word[:1].upper() + word[1:] if tag.startswith("upper") else word) + tag[len("lower") :])
    return " ".join(shown)


def punctuation_examples(lines: Iterable[str], words: int = 40) -> Dataset:
    """Cut a text into runs of words with the tags of case and punctuation.

    Runs go on across lines, so that where a run ends tells nothing about where a sentence does.

    Args:
        lines: of a text, in its order.
        words: in each run; what is left over is not used.

    Returns:
        A dataset with the columns "tokens" and "tags".

    Raises:
        ValueError: if a run would have no word, or there is not one whole run.
    """
    from datasets import Dataset

    if not is_whole(words, 1):
        raise ValueError(f"words={words!r} must be a whole number of at least 1")
    tokens: list[str] = []
    tags: list[str] = []
    for line in lines:
        found, theirs = tag_words(line)
        tokens += found
        tags += theirs
    starts = range(0, len(tokens) - words + 1, words)
    if not starts:
        raise ValueError(f"lines must have at least words={words} words, got {len(tokens)}")
    rows = {"tokens": tokens, "tags": tags}
    return Dataset.from_dict({name: [all_[at : at + words] for at in starts] for name, all_ in rows.items()})


def question_examples(lines: Iterable[str], seed: int = 0) -> Dataset:
    """Take questions and as many statements, in lower case and without marks.

    Args:
        lines: of a text; a line counts as what its last mark says, closing quotes and brackets apart.
        seed: of the choice among what there is more of.

    Returns:
        A dataset with the columns "text" and "label", one of QUESTIONS, in the order of the lines.

    Raises:
        ValueError: if there are no questions or no statements.
    """
    from datasets import Dataset

    rows: list[tuple[str, str]] = []
    for line in lines:
        words, tags = tag_words(line)
        if words and tags[-1].endswith(("?", ".")):
            rows.append((" ".join(words), QUESTIONS[tags[-1].endswith("?")]))
    rows = list(dict.fromkeys(rows))
    of_kind = [[number for number, row in enumerate(rows) if row[1] == kind] for kind in QUESTIONS]
    count = min(map(len, of_kind))
    if count == 0:
        raise ValueError(f"lines must have statements and questions, got {len(of_kind[0])} and {len(of_kind[1])}")
    draw = random.Random(seed)
    chosen = sorted(number for numbers in of_kind for number in draw.sample(numbers, count))
    return Dataset.from_dict({"text": [rows[at][0] for at in chosen], "label": [rows[at][1] for at in chosen]})


def part_labels(lines: Sequence[str], boundaries: Sequence[tuple[str, str]]) -> list[str]:
    """Name the part of an ordered text that each of its lines stands in.

    Args:
        lines: the whole text, in its order.
        boundaries: for each part how its first line begins, and the label, in the order of the text; two parts may
            have one label. The first part begins with the first line.

    Returns:
        A label for each line.

    Raises:
        ValueError: if the text does not begin with the first part, or a part does not begin in one place alone after
            the part before it.
    """
    starts: list[int] = []
    for opening, label in boundaries:
        begin = starts[-1] + 1 if starts else 0
        found = [number for number in range(begin, len(lines)) if lines[number].startswith(opening)]
        if len(found) != 1:
            raise ValueError(f"boundaries: {len(found)} lines begin with {opening!r} ({label}), but one must")
        starts += found
    if not starts or starts[0] != 0:
        raise ValueError("boundaries must begin with the first line of the text")
    ends = [*starts[1:], len(lines)]
    return [label for (_, label), start, end in zip(boundaries, starts, ends) for _ in range(start, end)]
