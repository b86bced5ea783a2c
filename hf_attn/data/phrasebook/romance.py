"""What Italian and French have in common: the order of the clause, agreement, adjectives on both sides of the noun.

`Romance` puts a sentence tree into words; ``italian.py`` and ``french.py`` supply articles, contractions, clitics,
negation and questions. Each word comes with the marks it surely and possibly translates (``realise.py``).
"""

from abc import ABC, abstractmethod

from . import tree
from .english import person
from .lexicon import Entry
from .realise import TargetWord, expression
from .tree import Clause, NounPhrase, Sentence, mark

SLOTS = {"1s": 0, "3s": 1, "1p": 2, "3p": 3}


def heads(phrase: NounPhrase) -> tuple[int, ...]:
    """Return the marks of the nouns of a phrase.

    Args:
        phrase: a simple phrase or one joined by "and".
    """
    return tuple(mark(part.key, tree.HEAD) for part in phrase.members or (phrase,))


def feminine(phrase: NounPhrase) -> bool:
    """Tell whether words that agree with a phrase are feminine.

    Args:
        phrase: a simple phrase or one joined by "and", which is feminine only if all its members are.
    """
    return all("f" in part.entry.target_tags for part in phrase.members or (phrase,))


def _is_pronoun(phrase: NounPhrase) -> bool:
    """An object pronoun is a clitic: the verb group says it."""
    return phrase.entry.kind == "pronoun"


class Romance(ABC):
    """Shared realiser; the tables are indexed by person: 1st and 3rd singular, 1st and 3rd plural."""

    COPULA: dict[str, tuple[str, ...]]
    HAVE: tuple[str, ...]
    BE: tuple[str, ...]
    MODALS: dict[str, tuple[str, ...]]
    FUTURE: tuple[str, ...]
    CONJUNCTIONS: dict[str, str]
    MORE: str
    THAN: str
    OF: str
    TO: str
    IN: str
    THAT: str
    WHO: tuple[str, str]  # relative pronoun as subject, as object
    SPACE_BEFORE = ""

    def sentence_words(self, sentence: Sentence) -> list[TargetWord]:
        """Say a sentence, final punctuation included.

        Args:
            sentence: the tree.
        """
        words: list[TargetWord] = []
        for unit in sentence.units:
            if unit.conjunction:
                words.append((",", (mark(unit.key, tree.COMMA),), ()))
                words.append((self.CONJUNCTIONS[unit.conjunction], (mark(unit.key, tree.CONJUNCTION),), ()))
            main = self.clause(unit.main)
            if unit.subordinate is None:
                words += main
                continue
            key = unit.subordinate.key
            first, *rest = self.CONJUNCTIONS[unit.subordinator].split(" ")
            under: list[TargetWord] = [(first, (mark(key, tree.CONJUNCTION),), ())]
            under += [(word, (), (mark(key, tree.CONJUNCTION),)) for word in rest]
            under += self.clause(unit.subordinate)
            if unit.subordinate_first:
                words += [*under, (",", (mark(key, tree.COMMA),), ()), *main]
            else:
                words += main + under
        words.append(("?" if sentence.question else ".", (mark(sentence.key, tree.STOP),), ()))
        return self.finish(words)

    def clause(self, clause: Clause) -> list[TargetWord]:
        """Say a clause.

        Args:
            clause: main, subordinate or relative.
        """
        time = self.fixed(clause.time, clause.key, tree.TIME) if clause.time else []
        words = list(time) if clause.time_first else []
        if clause.frame == "existence":
            words += self.existence(clause)
        elif clause.asks:
            words += self.question(clause)
        else:
            words += self.subject(clause) + self.verb_group(clause)
        words += self._complements(clause)
        return words if clause.time_first else words + time

    def _complements(self, clause: Clause) -> list[TargetWord]:
        words: list[TargetWord] = []
        if clause.adjective:
            words += self._predicate_adjective(clause)
        if clause.frame == "comparison":
            words += self.phrase(clause.object, self.THAN, mark(clause.key, tree.THAN))
        elif clause.frame == "profession":
            words += self.profession(clause)
        elif clause.object and not _is_pronoun(clause.object):
            words += self.object(clause)
        if clause.recipient and not _is_pronoun(clause.recipient):
            words += self.phrase(clause.recipient, self.TO, mark(clause.recipient.key, tree.PREPOSITION))
        if clause.manner:
            words += self.fixed(clause.manner, clause.key, tree.MANNER)
        if clause.place:
            words += self.phrase(clause.place, self._preposition(clause), mark(clause.place.key, tree.PREPOSITION))
        if clause.complement is not None:
            words.append((self.THAT, (mark(clause.key, tree.THAT),), ()))
            words += self.clause(clause.complement)
        return words

    def _predicate_adjective(self, clause: Clause) -> list[TargetWord]:
        subject = clause.subject or clause.antecedent
        key = mark(clause.key, tree.ADJECTIVE)
        words: list[TargetWord] = []
        if clause.very:
            words.append((clause.very.target, (mark(clause.key, tree.VERY),), ()))
        if clause.frame == "comparison":
            words.append((self.MORE, (), (key,)))
        form = adjective_form(clause.adjective, feminine(subject), person(subject) in ("1p", "3p"))
        words.append((form, (key,), ()))
        return words

    def _preposition(self, clause: Clause) -> str:
        if clause.frame == "motion" or clause.place.entry.kind == "city":
            return self.TO
        if clause.preposition:
            return clause.preposition.target
        return self.TO if "at" in clause.place.entry.tags else self.IN

    def fixed(self, entry: Entry, key: int, role: int) -> list[TargetWord]:
        """Say an adverb or an expression of time.

        Args:
            entry: the expression.
            key: the clause it stands in.
            role: the role of its first word.
        """
        return expression(entry.target, entry.target_tags, mark(key, role))

    def agreement(self, clause: Clause) -> tuple[int, bool, bool]:
        """Return the person slot, whether the subject is feminine, and whether it is plural.

        Args:
            clause: its subject is the one it has, the noun before a relative clause, or "who".
        """
        subject = clause.subject or clause.antecedent
        if clause.asks == "who" or not subject:
            return 1, False, False
        agree = person(subject)
        return SLOTS[agree], feminine(subject), agree in ("1p", "3p")

    def clitic(self, clause: Clause) -> list[TargetWord]:
        """Return the object pronoun that stands before the verb, if any.

        Args:
            clause: with a pronoun as object or recipient.
        """
        for phrase, form, preposition in ((clause.object, 0, False), (clause.recipient, 1, True)):
            if _is_pronoun(phrase):
                helps = (mark(phrase.key, tree.PREPOSITION),) if preposition else ()
                return [(phrase.entry.target_forms[form], (mark(phrase.key, tree.HEAD),), helps)]
        return []

    def verb_forms(self, clause: Clause) -> tuple[TargetWord, list[TargetWord]]:
        """Return the finite verb and the participle or infinitive that may follow it.

        Args:
            clause: any frame but "existence".
        """
        slot, is_feminine, is_plural = self.agreement(clause)
        head, auxiliary = mark(clause.key, tree.HEAD), mark(clause.key, tree.AUXILIARY)
        helped = (auxiliary, *self.dropped(clause))
        if not clause.verb:
            return (self.COPULA[clause.tense][slot], (head,), helped), []
        verb = clause.verb
        if clause.modal:
            particle = mark(clause.key, tree.PARTICLE)
            finite = (self.MODALS[clause.modal][slot], (mark(clause.key, tree.MODAL),), helped)
            return finite, [(verb.target, (head,), (particle,))]
        if clause.tense == "future":
            return (verb.target_forms[5] + self.FUTURE[slot], (head,), helped), []
        if clause.tense == "present":
            return (verb.target_forms[slot], (head,), helped), []
        if "be" in verb.target_tags:
            participle = self.participle(verb.target_forms[4], is_feminine, is_plural)
            finite = (self.BE[slot], (), (head, *helped))
        else:
            participle = self.participle(verb.target_forms[4], *self.object_agreement(clause))
            finite = (self.HAVE[slot], (), (head, *helped))
        return finite, [(participle, (head,), (auxiliary,))]

    def frequency(self, clause: Clause) -> list[TargetWord]:
        """Return the adverb of frequency, which follows the finite verb.

        Args:
            clause: with or without one.
        """
        return self.fixed(clause.frequency, clause.key, tree.FREQUENCY) if clause.frequency else []

    def phrase(self, phrase: NounPhrase, preposition: str = "", preposition_mark: int = -1) -> list[TargetWord]:
        """Say a noun phrase, with its preposition.

        Args:
            phrase: what to say.
            preposition: put before it, and contracted with a definite article.
            preposition_mark: what the preposition translates.
        """
        if phrase.members:
            first, second = phrase.members
            joined = (self.CONJUNCTIONS["and"], (mark(phrase.key, tree.CONJUNCTION),), ())
            return [*self.phrase(first), joined, *self.phrase(second)]
        head = mark(phrase.key, tree.HEAD)
        entry = phrase.entry
        helps = () if preposition_mark < 0 else (preposition_mark,)
        if entry.kind != "noun":
            before = [(word, (), (*helps, head)) for word in preposition.split()]
            return [*before, (entry.target, (head,), ())]
        is_feminine = "f" in entry.target_tags
        noun = (entry.target_forms[0] if phrase.plural else entry.target, (head,), ())
        core: list[TargetWord] = [noun]
        if phrase.adjective:
            adjective = phrase.adjective
            ahead = "ahead" in adjective.target_tags
            form = self.attributive(adjective, is_feminine, phrase.plural, noun[0] if ahead else "")
            word = (form, (mark(phrase.key, tree.ADJECTIVE),), ())
            core.insert(0 if ahead else 1, word)
        words = self.determiner(phrase, core, preposition, helps) + core
        if phrase.owner is not None:
            words += self.phrase(phrase.owner, self.OF)
        if phrase.relative is not None:
            relative = phrase.relative
            pronoun = self.WHO[0 if relative.gap == "subject" else 1]
            words.append((pronoun, (mark(phrase.key, tree.RELATIVE),), ()))
            words += self.clause(relative)
        return words

    # What the languages do differently.

    @abstractmethod
    def finish(self, words: list[TargetWord]) -> list[TargetWord]:
        """Elide what elides before the next word.

        Args:
            words: the sentence.
        """

    @abstractmethod
    def determiner(
        self, phrase: NounPhrase, core: list[TargetWord], preposition: str, helps: tuple[int, ...]
    ) -> list[TargetWord]:
        """Say what stands before adjective and noun.

        Args:
            phrase: the whole phrase.
            core: its adjective and noun.
            preposition: contracted with a definite article, or "".
            helps: the mark of the preposition, if there is one.
        """

    @abstractmethod
    def attributive(self, adjective: Entry, is_feminine: bool, is_plural: bool, noun: str) -> str:
        """Return an adjective that stands beside its noun.

        Args:
            adjective: the entry.
            is_feminine: the noun is feminine.
            is_plural: the noun is plural.
            noun: the noun behind it; "" if the adjective follows the noun.
        """

    @abstractmethod
    def participle(self, masculine: str, is_feminine: bool, is_plural: bool) -> str:
        """Return the form of a past participle.

        Args:
            masculine: its masculine singular.
            is_feminine: it agrees with something feminine.
            is_plural: it agrees with something plural.
        """

    @abstractmethod
    def object_agreement(self, clause: Clause) -> tuple[bool, bool]:
        """Return whether a participle after "have" is feminine and plural by its object.

        Args:
            clause: transitive, in the past.
        """

    @abstractmethod
    def dropped(self, clause: Clause) -> tuple[int, ...]:
        """Return the mark of a subject pronoun that only the verb ending expresses.

        Args:
            clause: any.
        """

    @abstractmethod
    def subject(self, clause: Clause) -> list[TargetWord]:
        """Say the subject.

        Args:
            clause: a statement.
        """

    @abstractmethod
    def verb_group(self, clause: Clause) -> list[TargetWord]:
        """Say negation, clitics and verb.

        Args:
            clause: any frame but "existence".
        """

    @abstractmethod
    def existence(self, clause: Clause) -> list[TargetWord]:
        """Say "there is" and what there is.

        Args:
            clause: of the frame "existence".
        """

    @abstractmethod
    def question(self, clause: Clause) -> list[TargetWord]:
        """Say question word, subject and verb.

        Args:
            clause: a question.
        """

    @abstractmethod
    def profession(self, clause: Clause) -> list[TargetWord]:
        """Say the profession of the subject.

        Args:
            clause: of the frame "profession".
        """

    @abstractmethod
    def object(self, clause: Clause) -> list[TargetWord]:
        """Say an object that is not a pronoun.

        Args:
            clause: with an object.
        """


def adjective_form(adjective: Entry, is_feminine: bool, is_plural: bool) -> str:
    """Return the form of an adjective that agrees.

    Args:
        adjective: an entry with four forms.
        is_feminine: what it agrees with is feminine.
        is_plural: what it agrees with is plural.
    """
    return adjective.target_forms[is_plural * 2 + is_feminine]
