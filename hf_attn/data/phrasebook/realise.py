"""From words and marks to a sentence pair with its gold links.

A source and a target word are linked where they carry the same mark: surely, if the target word is the translation of
what the mark stands for; possibly, if it only helps to say it (articles, particles, prepositions, auxiliaries).
"""

from collections.abc import Sequence

TargetWord = tuple[str, tuple[int, ...], tuple[int, ...]]  # text, sure marks, possible marks
Links = list[list[int]]


def capitalise(words: Sequence[str]) -> list[str]:
    """Give the first word of a sentence a capital letter.

    Args:
        words: words and punctuation marks.
    """
    return [words[0][0].upper() + words[0][1:], *words[1:]]


def spell(words: Sequence[str], space_before: str = "") -> str:
    """Join words into a sentence.

    Args:
        words: words and punctuation marks; an elided word ends with its apostrophe.
        space_before: punctuation marks that stand apart from the word before (French "?").
    """
    parts = [words[0]]
    for before, word in zip(words, words[1:], strict=False):
        glued = word in ",.-" or (word == "?" and word not in space_before)
        parts.append(word if glued or before[-1] in "'-" else f" {word}")
    return "".join(parts)


def link(source: Sequence[tuple[str, tuple[int, ...]]], target: Sequence[TargetWord]) -> tuple[Links, Links]:
    """Link source and target words by their marks.

    Args:
        source: words with what they express.
        target: words with what they surely and what they possibly translate; marks that the source lacks are ignored.

    Returns:
        The sure links and the links that are possible but not sure, both as sorted [source_word, target_word] pairs.
    """
    where: dict[int, int] = {}
    for index, (_, marks) in enumerate(source):
        for one in marks:
            where[one] = index
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for index, (_, sure_marks, possible_marks) in enumerate(target):
        sure.update((where[one], index) for one in sure_marks if one in where)
        possible.update((where[one], index) for one in possible_marks if one in where)
    return [list(pair) for pair in sorted(sure)], [list(pair) for pair in sorted(possible - sure)]


def expression(target: str, links: Sequence[str], first_mark: int) -> list[TargetWord]:
    """Say a fixed expression of the lexicon.

    Args:
        target: its words, separated by spaces.
        links: "english-target" or "english-target?" pairs of word numbers; none means the first word for the first.
        first_mark: the mark of the expression's first English word; the others follow one by one.
    """
    sure: dict[int, list[int]] = {}
    possible: dict[int, list[int]] = {}
    for pair in links or ("0-0",):
        english, _, other = pair.rstrip("?").partition("-")
        (possible if pair.endswith("?") else sure).setdefault(int(other), []).append(first_mark + int(english))
    return [
        (word, tuple(sure.get(index, ())), tuple(possible.get(index, ())))
        for index, word in enumerate(target.split(" "))
    ]
