"""Put a sentence tree into Italian.

Articles by the sound that follows (il, lo, l'), articulated prepositions (del, nella, agli), possessives with their
article except before close kin in the singular, dropped subject pronouns, clitics before the verb (also before a
modal: "lo può vedere"), essere or avere, participles that agree with essere's subject and with lo, la, li, le.
"""

from . import tree
from .lexicon import Entry
from .realise import TargetWord
from .romance import Romance, adjective_form, heads
from .tree import Clause, NounPhrase, mark

_ARTICULATED = {"di": "de", "a": "a", "da": "da", "in": "ne", "su": "su"}
_BEAUTIFUL = {"il": "bel", "lo": "bello", "l'": "bell'", "la": "bella", "i": "bei", "gli": "begli", "le": "belle"}
_THAT = {"il": "quel", "lo": "quello", "l'": "quell'", "la": "quella", "i": "quei", "gli": "quegli", "le": "quelle"}


def _vowel(word: str) -> bool:
    return word[0] in "aeiouàèéìòùh"


def _impure(word: str) -> bool:
    """Whether "lo" rather than "il" stands before a consonant."""
    return word[0] in "zxyj" or word[:2] in ("gn", "ps", "pn") or (word[0] == "s" and not _vowel(word[1]))


def definite(word: str, is_feminine: bool, is_plural: bool) -> str:
    """Return the definite article.

    Args:
        word: the word that follows.
        is_feminine: the noun is feminine.
        is_plural: the noun is plural.
    """
    if is_plural:
        return "le" if is_feminine else "gli" if _vowel(word) or _impure(word) else "i"
    if _vowel(word):
        return "l'"
    return "la" if is_feminine else "lo" if _impure(word) else "il"


def indefinite(word: str, is_feminine: bool) -> str:
    """Return the indefinite article.

    Args:
        word: the word that follows.
        is_feminine: the noun is feminine.
    """
    if is_feminine:
        return "un'" if _vowel(word) else "una"
    return "uno" if _impure(word) else "un"


def articulated(preposition: str, article: str) -> str:
    """Contract a preposition and a definite article.

    Args:
        preposition: "di", "a", "da", "in" or "su"; others do not contract.
        article: "il", "lo", "l'", "la", "i", "gli" or "le".
    """
    if preposition not in _ARTICULATED:
        return f"{preposition} {article}"
    tail = {"il": "l", "lo": "llo", "l'": "ll'", "la": "lla", "i": "i", "gli": "gli", "le": "lle"}[article]
    return _ARTICULATED[preposition] + tail


class Italian(Romance):
    """The Italian realiser."""

    COPULA = {
        "present": ("sono", "è", "siamo", "sono"),
        "past": ("ero", "era", "eravamo", "erano"),
        "future": ("sarò", "sarà", "saremo", "saranno"),
    }
    HAVE = ("ho", "ha", "abbiamo", "hanno")
    BE = COPULA["present"]
    MODALS = {
        "can": ("posso", "può", "possiamo", "possono"),
        "must": ("devo", "deve", "dobbiamo", "devono"),
        "want": ("voglio", "vuole", "vogliamo", "vogliono"),
    }
    FUTURE = ("ò", "à", "emo", "anno")
    CONJUNCTIONS = {"and": "e", "but": "ma", "because": "perché", "when": "quando", "if": "se"}
    MORE, THAN, OF, TO, IN, THAT = "più", "di", "di", "a", "in", "che"
    WHO = ("che", "che")

    def finish(self, words: list[TargetWord]) -> list[TargetWord]:
        for index in range(len(words) - 1):
            text, sure, possible = words[index]
            following = words[index + 1][0]
            if text in ("lo", "la") and following in self.HAVE:
                words[index] = ("l'", sure, possible)
            elif text in ("ci", "dove") and following[0] in "eè":
                words[index] = (text[:-1] + "'", sure, possible)
            elif text == "e" and following[0] in "eE":
                words[index] = ("ed", sure, possible)
            elif text == "a" and following[0] in "aA" and not sure:
                words[index] = ("ad", sure, possible)
        return words

    def determiner(
        self, phrase: NounPhrase, core: list[TargetWord], preposition: str, helps: tuple[int, ...]
    ) -> list[TargetWord]:
        key, head = mark(phrase.key, tree.DETERMINER), mark(phrase.key, tree.HEAD)
        is_feminine = "f" in phrase.entry.target_tags
        kind = phrase.determiner
        words: list[TargetWord] = []
        article = kind in ("the", "owner")
        if kind == "possessive":
            possessive = adjective_form(phrase.word, is_feminine, phrase.plural)
            words.append((possessive, (key,), ()))
            close_kin = "kin" in phrase.entry.tags and not phrase.plural and not phrase.adjective
            article = not close_kin or phrase.word.english == "their"
        elif kind in ("this", "many"):
            words.append((adjective_form(phrase.word, is_feminine, phrase.plural), (key,), ()))
        elif kind == "that":
            words.append((_THAT[definite(core[0][0], is_feminine, phrase.plural)], (key,), ()))
        elif kind == "number":
            words.append((phrase.word.target, (key,), ()))
        elif kind == "a":
            words.append((indefinite(core[0][0], is_feminine), (), (key, head)))
        *before, last = preposition.split() if preposition else [""]
        if article:
            form = definite((words or core)[0][0], is_feminine, phrase.plural)
            last = articulated(last, form) if last else form
        marks = (*helps, key, head) if article else (*helps, head)
        return [(word, (), marks) for word in (*before, *last.split())] + words

    def attributive(self, adjective: Entry, is_feminine: bool, is_plural: bool, noun: str) -> str:
        form = adjective_form(adjective, is_feminine, is_plural)
        if noun and adjective.target == "bello":
            return _BEAUTIFUL[definite(noun, is_feminine, is_plural)]
        if noun and form == "buono" and not _impure(noun):
            return "buon"
        return form

    def participle(self, masculine: str, is_feminine: bool, is_plural: bool) -> str:
        return masculine[:-1] + "oaie"[is_plural * 2 + is_feminine]

    def object_agreement(self, clause: Clause) -> tuple[bool, bool]:
        if clause.object.entry.kind == "pronoun":
            return "f" in clause.object.entry.target_tags, "3p" in clause.object.entry.tags
        return False, False

    def dropped(self, clause: Clause) -> tuple[int, ...]:
        subject = clause.subject
        if subject.entry.kind == "pronoun":
            return heads(subject)
        return ()

    def subject(self, clause: Clause) -> list[TargetWord]:
        if not clause.subject or self.dropped(clause):
            return []
        return self.phrase(clause.subject)

    def verb_group(self, clause: Clause) -> list[TargetWord]:
        finite, rest = self.verb_forms(clause)
        negation: list[TargetWord] = [("non", (mark(clause.key, tree.NEGATION),), ())] if clause.negated else []
        return [*negation, *self.clitic(clause), finite, *self.frequency(clause), *rest]

    def existence(self, clause: Clause) -> list[TargetWord]:
        negation: list[TargetWord] = [("non", (mark(clause.key, tree.NEGATION),), ())] if clause.negated else []
        finite, _ = self.verb_forms(clause)
        there = ("ci", (mark(clause.key, tree.PARTICLE),), (mark(clause.key, tree.HEAD),))
        return [*negation, there, finite, *self.phrase(clause.subject)]

    def question(self, clause: Clause) -> list[TargetWord]:
        key = mark(clause.key, tree.QUESTION)
        if clause.asks == "truth":
            return self.subject(clause) + self.verb_group(clause)
        asked: list[TargetWord]
        if clause.asks == "what":
            asked = [("che", (), (key,)), ("cosa", (key,), ())]
        else:
            asked = [({"who": "chi", "where": "dove", "when": "quando"}[clause.asks], (key,), ())]
        return asked + self.verb_group(clause) + self.subject(clause)

    def profession(self, clause: Clause) -> list[TargetWord]:
        phrase = clause.object
        _, is_feminine, _ = self.agreement(clause)
        noun = phrase.entry.target_forms[1] if is_feminine else phrase.entry.target
        key, head = mark(phrase.key, tree.DETERMINER), mark(phrase.key, tree.HEAD)
        return [(indefinite(noun, is_feminine), (), (key, head)), (noun, (head,), ())]

    def object(self, clause: Clause) -> list[TargetWord]:
        return self.phrase(clause.object)
