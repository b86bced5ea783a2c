"""Sentences before any language has put them into words: noun phrases, clauses, and the order they hang together in.

Every node has a number of its own, and ``mark(node, role)`` names one thing the node says ("the adjective of noun
phrase 3"). The English realiser writes down which marks each English word expresses, the other language which marks
each of its words answers to; equal marks are the word links (``realise.py``). Next: ``grammar.py``.
"""

from dataclasses import dataclass
from typing import Literal

from .lexicon import NO_ENTRY, Entry

# Roles: what a word expresses of its node.
HEAD, DETERMINER, ADJECTIVE, RELATIVE, PREPOSITION, AUXILIARY, NEGATION, MODAL = range(8)
PARTICLE, VERY, FREQUENCY, MANNER, QUESTION, CONJUNCTION, COMMA, THAT, THAN, STOP = range(8, 18)
TIME = 20  # TIME + i is word i of an expression of time
ROLES = 32

Tense = Literal["present", "past", "future"]


def mark(key: int, role: int) -> int:
    """Name one thing that a node says.

    Args:
        key: the number of the node.
        role: one of the roles of this module.
    """
    return key * ROLES + role


@dataclass(slots=True, eq=False)
class NounPhrase:
    """Something talked about; `NOBODY` is false.

    `determiner` is "the", "a", "this", "that", "many", "number", "owner" (``Maria's``), "possessive" or "" (names,
    pronouns, masses such as water); `word` is the entry of a number, a possessive, "this", "that" or "many". If
    `members` are given, the phrase joins them with "and" and nothing else is set.
    """

    key: int
    entry: Entry = NO_ENTRY
    plural: bool = False
    determiner: str = ""
    word: Entry = NO_ENTRY
    owner: "NounPhrase | None" = None
    adjective: Entry = NO_ENTRY
    relative: "Clause | None" = None
    members: "tuple[NounPhrase, ...]" = ()

    def __bool__(self) -> bool:
        return self.key >= 0


NOBODY = NounPhrase(-1)


@dataclass(slots=True)
class Clause:
    """Somebody does or is something.

    `frame` says which parts there are: "intransitive", "transitive", "give" (object and recipient), "motion" (place is
    the goal), "adjective", "comparison" (object is what the subject is compared with), "profession" (object is the
    profession), "location", "existence", "say" (complement). In a relative clause the part that the noun stands for,
    named by `gap` ("subject" or "object"), is `NOBODY`. `asks` is "" or what a question asks for: "truth", "who",
    "what", "where", "when".
    """

    key: int
    frame: str
    verb: Entry = NO_ENTRY
    subject: NounPhrase = NOBODY
    object: NounPhrase = NOBODY
    recipient: NounPhrase = NOBODY
    adjective: Entry = NO_ENTRY
    complement: "Clause | None" = None
    tense: Tense = "present"
    negated: bool = False
    modal: Literal["", "can", "must", "want"] = ""
    gap: str = ""
    antecedent: NounPhrase = NOBODY
    asks: str = ""
    very: Entry = NO_ENTRY
    frequency: Entry = NO_ENTRY
    manner: Entry = NO_ENTRY
    preposition: Entry = NO_ENTRY
    place: NounPhrase = NOBODY
    time: Entry = NO_ENTRY
    time_first: bool = False


@dataclass(slots=True)
class Unit:
    """A main clause with at most one subordinate clause ("because", "when", "if"), after "and", "but" or nothing."""

    key: int
    main: Clause
    conjunction: Literal["", "and", "but"] = ""
    subordinate: Clause | None = None
    subordinator: Literal["", "because", "when", "if"] = ""
    subordinate_first: bool = False


@dataclass(slots=True)
class Sentence:
    """Units joined into one sentence; a question is a single unit."""

    key: int
    units: list[Unit]
    question: bool = False
