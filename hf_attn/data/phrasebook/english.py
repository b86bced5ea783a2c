"""Put a sentence tree into English.

Each word comes with the marks (``tree.mark``) it expresses. Next: ``romance.py`` and ``korean.py`` do the same for the
other side.
"""

from . import tree
from .lexicon import Entry
from .tree import Clause, NounPhrase, Sentence, mark

Word = tuple[str, tuple[int, ...]]

_BE = {"present": {"1s": "am", "3s": "is", "1p": "are", "3p": "are"}, "past": {"1s": "was", "3s": "was"}}
_COPULA_FRAMES = frozenset({"adjective", "comparison", "profession", "location", "existence"})


def person(phrase: NounPhrase) -> str:
    """Return "1s", "3s", "1p" or "3p".

    Args:
        phrase: the subject of a verb.
    """
    if phrase.members:
        return "3p"
    entry = phrase.entry
    if entry.kind == "pronoun":
        return next(tag for tag in ("1s", "3s", "1p", "3p") if tag in entry.tags)
    return "3p" if phrase.plural else "3s"


def sentence_words(sentence: Sentence) -> list[Word]:
    """Say a sentence in English, final punctuation included.

    Args:
        sentence: the tree.
    """
    words: list[Word] = []
    for unit in sentence.units:
        if unit.conjunction:
            words.append((",", (mark(unit.key, tree.COMMA),)))
            words.append((unit.conjunction, (mark(unit.key, tree.CONJUNCTION),)))
        main = _clause(unit.main)
        if unit.subordinate is None:
            words += main
            continue
        under = [(unit.subordinator, (mark(unit.subordinate.key, tree.CONJUNCTION),)), *_clause(unit.subordinate)]
        if unit.subordinate_first:
            words += [*under, (",", (mark(unit.subordinate.key, tree.COMMA),)), *main]
        else:
            words += main + under
    words.append(("?" if sentence.question else ".", (mark(sentence.key, tree.STOP),)))
    return words


def _clause(clause: Clause) -> list[Word]:
    time = phrase_words(clause.time, mark(clause.key, tree.TIME)) if clause.time else []
    words = list(time) if clause.time_first else []
    if clause.asks in ("what", "where", "when"):
        words.append((clause.asks, (mark(clause.key, tree.QUESTION),)))
    if clause.frame == "existence":
        words.append(("there", (mark(clause.key, tree.PARTICLE),)))
        subject: list[Word] = []
        finite, rest = _verb_group(clause, person(clause.subject or clause.antecedent))
        words += finite + rest + _noun_phrase(clause.subject)
    else:
        if clause.asks == "who":
            subject = [("who", (mark(clause.key, tree.QUESTION),))]
            agree = "3s"
        elif clause.gap == "subject":
            subject = []
            agree = person(clause.antecedent)
        else:
            subject = _noun_phrase(clause.subject)
            agree = person(clause.subject)
        finite, rest = _verb_group(clause, agree)
        if clause.asks in ("truth", "what", "where", "when"):
            words += finite + subject + rest
        else:
            words += subject + finite + rest
    words += _complements(clause)
    return words if clause.time_first else words + time


def _complements(clause: Clause) -> list[Word]:
    words: list[Word] = []
    if clause.adjective:
        if clause.very:
            words.append((clause.very.english, (mark(clause.key, tree.VERY),)))
        if clause.frame == "comparison":
            words.append((clause.adjective.english_forms[0], (mark(clause.key, tree.ADJECTIVE),)))
            words.append(("than", (mark(clause.key, tree.THAN),)))
        else:
            words.append((clause.adjective.english, (mark(clause.key, tree.ADJECTIVE),)))
    if clause.object:
        words += _noun_phrase(clause.object, objective=True)
    if clause.recipient:
        words.append(("to", (mark(clause.recipient.key, tree.PREPOSITION),)))
        words += _noun_phrase(clause.recipient, objective=True)
    if clause.manner:
        words.append((clause.manner.english, (mark(clause.key, tree.MANNER),)))
    if clause.place:
        words.append((_preposition(clause), (mark(clause.place.key, tree.PREPOSITION),)))
        words += _noun_phrase(clause.place)
    if clause.complement is not None:
        words.append(("that", (mark(clause.key, tree.THAT),)))
        words += _clause(clause.complement)
    return words


def _preposition(clause: Clause) -> str:
    if clause.frame == "motion":
        return "to"
    if clause.preposition:
        return clause.preposition.english
    return "at" if "at" in clause.place.entry.tags else "in"


def _verb_group(clause: Clause, agree: str) -> tuple[list[Word], list[Word]]:
    """Return the words that a question puts before the subject, and those that stay behind it."""
    verb = (mark(clause.key, tree.HEAD),)
    auxiliary = (mark(clause.key, tree.AUXILIARY),)
    negation: list[Word] = [("not", (mark(clause.key, tree.NEGATION),))] if clause.negated else []
    often: list[Word] = [(clause.frequency.english, (mark(clause.key, tree.FREQUENCY),))] if clause.frequency else []
    question = clause.asks in ("truth", "what", "where", "when")
    if clause.frame in _COPULA_FRAMES:
        if clause.tense == "future":
            return [("will", auxiliary)], [*negation, ("be", verb)]
        form = _BE[clause.tense].get(agree, "were")
        return [(form, verb)], negation + often
    base = clause.verb.english
    modal = (mark(clause.key, tree.MODAL),)
    if clause.modal == "can" and clause.negated:
        return [("cannot", modal + negation[0][1])], [(base, verb)]
    if clause.modal in ("can", "must"):
        return [(clause.modal, modal)], [*negation, (base, verb)]
    if clause.modal == "want":
        to: list[Word] = [("to", (mark(clause.key, tree.PARTICLE),)), (base, verb)]
        do = "does" if agree == "3s" else "do"
        if clause.negated or question:
            return [(do, auxiliary)], [*negation, ("want", modal), *to]
        return [], [("wants" if agree == "3s" else "want", modal), *to]
    if clause.tense == "future":
        return [("will", auxiliary)], [*negation, (base, verb)]
    if clause.negated or question:
        do = "did" if clause.tense == "past" else "does" if agree == "3s" else "do"
        return [(do, auxiliary)], [*negation, *often, (base, verb)]
    return [], [*often, (_finite(clause.verb, clause.tense, agree), verb)]


def _finite(verb: Entry, tense: str, agree: str) -> str:
    if tense == "past":
        return verb.english_forms[1]
    return verb.english_forms[0] if agree == "3s" else verb.english


def _noun_phrase(phrase: NounPhrase, objective: bool = False) -> list[Word]:
    if phrase.members:
        first, second = phrase.members
        joined = ("and", (mark(phrase.key, tree.CONJUNCTION),))
        return [*_noun_phrase(first), joined, *_noun_phrase(second)]
    entry = phrase.entry
    head = (mark(phrase.key, tree.HEAD),)
    if entry.kind == "pronoun":
        return [(entry.english_forms[0] if objective else entry.english, head)]
    if entry.kind in ("name", "city"):
        return [(entry.english, head)]
    words: list[Word] = []
    if phrase.adjective:
        words.append((phrase.adjective.english, (mark(phrase.key, tree.ADJECTIVE),)))
    words.append((entry.english_forms[0] if phrase.plural else entry.english, head))
    words = _determiner(phrase, words[0][0]) + words
    if phrase.relative is not None:
        relative = phrase.relative
        pronoun = "who" if relative.gap == "subject" and "person" in entry.tags else "that"
        words.append((pronoun, (mark(phrase.key, tree.RELATIVE),)))
        words += _clause(relative)
    return words


def _determiner(phrase: NounPhrase, following: str) -> list[Word]:
    key = (mark(phrase.key, tree.DETERMINER),)
    if phrase.owner is not None:
        *before, (name, head) = _noun_phrase(phrase.owner)
        return [*before, (f"{name}'s", head)]
    if phrase.determiner == "a":
        return [("an" if following[0] in "aeiou" or following == "honest" else "a", key)]
    if phrase.word:
        word = phrase.word
        return [(word.english_forms[0] if phrase.plural and word.english_forms else word.english, key)]
    return [(phrase.determiner, key)] if phrase.determiner else []


def phrase_words(entry: Entry, first_mark: int) -> list[Word]:
    """Say a fixed expression of one or more words.

    Args:
        entry: the expression.
        first_mark: the mark of its first word; the others follow one by one.
    """
    return [(word, (first_mark + index,)) for index, word in enumerate(entry.english.split(" "))]
