"""Draw random sentence trees that make sense: people read texts, dogs run, soup is warm.

Ordinary sentences contain no held-out combination of words (``vocabulary.py``), compositional ones at least one.

Two trees never give the same English sentence, so that every sentence has one translation. This is why a clause
after a comma is always a new unit, why nothing follows an object with a relative clause, and why "you" is missing.
Next: ``english.py``, ``romance.py`` and ``korean.py`` put the trees into words.
"""

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

from .lexicon import Entry
from .tree import NOBODY, Clause, NounPhrase, Sentence, Tense, Unit
from .vocabulary import TENSES, Partners, held_out, vocabulary

_T = TypeVar("_T")
_SAME_PERSON = {"I": "we", "we": "I"}


class Grammar:
    """Draws sentence trees.

    Args:
        language: "it", "fr" or "ko".
        rng: source of all choices; only its `random()` is used, which is the same on every machine.
        compositional: whether held-out combinations may be drawn.
    """

    def __init__(self, language: str, rng: random.Random, compositional: bool = False):
        self.words = vocabulary(language)
        self.random = rng.random
        self.compositional = compositional
        self.combinations: list[tuple[str, str]] = []
        self._key = 0

    def sentence(self, length: int | None = None) -> Sentence:
        """Draw a sentence; `combinations` then lists its (adjective or verb, noun) pairs.

        Args:
            length: about how many words it should have; None leaves it to chance, about ten on average.
        """
        self._key = 0
        self.combinations = []
        question = self.random() < (0.12 if length is None or length < 10 else 0)
        if question:
            return Sentence(self._new(), [Unit(self._new(), self._question())], question=True)
        if length is not None:
            clauses = max(1, int(length / 8.5 + self.random()))
        else:
            draw = self.random()
            clauses = 1 if draw < 0.76 else 2 if draw < 0.94 else 3 if draw < 0.98 else 4
        return Sentence(self._new(), self._units(clauses))

    def _units(self, clauses: int) -> list[Unit]:
        units: list[Unit] = []
        while clauses > 0:
            conjunction: Literal["", "and", "but"] = ""
            if units:
                said = any(unit.conjunction == "but" for unit in units)
                conjunction = "and" if said or self.random() < 0.55 else "but"
            if clauses > 1 and self.random() < 0.6:
                units.append(self._complex_unit(conjunction))
                clauses -= 2
            else:
                units.append(Unit(self._new(), self._statement(), conjunction))
                clauses -= 1
        return units

    def _complex_unit(self, conjunction: Literal["", "and", "but"]) -> Unit:
        subordinator: Literal["because", "when", "if"] = self._pick(("because", "because", "when", "if"))
        tenses: dict[str, tuple[Tense, Tense]] = {"if": ("future", "present"), "when": ("past", "past")}
        same = self._pick(TENSES[:2])
        main_tense, tense = tenses.get(subordinator, (same, same))
        first = subordinator != "because" and self.random() < 0.5
        main, subordinate = self._statement(main_tense), self._statement(tense)
        return Unit(self._new(), main, conjunction, subordinate, subordinator, first)

    # Clauses.

    def _statement(self, tense: Tense | None = None) -> Clause:
        """Draw a statement; one whose tense is given stands in or beside another clause and has no time of its own."""
        timed = tense is None
        tense = tense or self._pick(("present", "present", "present", "past", "past", "future"))
        draw = self.random()
        if draw < 0.42:
            clause = self._transitive(tense)
        elif draw < 0.54:
            clause = self._intransitive(tense)
        elif draw < 0.62:
            clause = self._motion(tense)
        elif draw < 0.71:
            clause = self._give(tense)
        elif draw < 0.82:
            clause = self._adjective(tense)
        elif draw < 0.85:
            clause = self._comparison(tense)
        elif draw < 0.89:
            clause = self._profession(tense) if tense != "future" else self._location(tense)
        elif draw < 0.93:
            clause = self._location(tense)
        elif draw < 0.96:
            clause = self._existence(tense)
        elif timed:
            return self._say()
        else:
            clause = self._intransitive(tense)
        clause.negated = not clause.very and self.random() < 0.15
        if clause.verb:
            self._furnish(clause, timed)
        return clause

    def _furnish(self, clause: Clause, timed: bool) -> None:
        """Add a modal, or adverbs and a time."""
        closed = clause.object.relative is not None
        draw = self.random()
        if clause.tense == "present" and draw < 0.2:
            clause.modal = self._pick(("can", "must", "want"))
        elif clause.tense == "present" and draw < 0.4 and not clause.negated:
            clause.frequency = self._pick(self.words.kinds["frequency"])
        elif timed and draw > 0.6:
            clause.time = self._pick(self.words.times[clause.tense])
            clause.time_first = closed or self.random() < 0.3

    def _say(self) -> Clause:
        verb = self._pick(self.words.verbs["say", "present"])
        subject = self._subject(verb, "present")
        return Clause(self._new(), "say", verb, subject, complement=self._statement(self._pick(TENSES)))

    def _question(self) -> Clause:
        draw = self.random()
        tense = self._pick(("present", "present", "past", "future"))
        if draw < 0.4:
            clause = self._pick((self._transitive, self._intransitive, self._adjective, self._give))(tense)
            clause.asks = "truth"
        elif draw < 0.6:
            verb = self._pick(self.words.verbs["transitive", tense])
            clause = Clause(self._new(), "transitive", verb, object=self._object(verb), tense=tense, asks="who")
        elif draw < 0.75:
            verb = self._pick(self.words.verbs_of_things[tense])
            clause = Clause(self._new(), "transitive", verb, self._subject(verb, tense), tense=tense, asks="what")
        elif draw < 0.87:
            clause = self._location(self._pick(TENSES[:2]), placed=False)
            clause.asks = "where"
        else:
            verb = self._pick(self.words.verbs["intransitive", tense])
            clause = Clause(self._new(), "intransitive", verb, self._subject(verb, tense), tense=tense)
            clause.asks = "where" if self.random() < 0.5 or "dwells" in verb.tags else "when"
        if clause.subject.entry is self.words.me:
            clause.subject.entry = self.words.us  # nobody asks "Do I sleep?"
        return clause

    def _transitive(self, tense: Tense) -> Clause:
        verb = self._pick(self.words.verbs["transitive", tense])
        subject = self._subject(verb, tense)
        draw = self.random()
        if "o:person" in verb.tags and draw < 0.3:
            # "saw me": gender unknown, where a French participle would show it.
            pronouns = self.words.third_person if tense == "past" else self.words.kinds["pronoun"]
            patient = self._other(pronouns, subject)
        elif "o:person" in verb.tags and draw < 0.45:
            patient = self._other(self.words.kinds["name"], subject)
        else:
            patient = self._object(verb)
        clause = Clause(self._new(), "transitive", verb, subject, patient, tense=tense)
        if patient.relative is None and "placed" in verb.tags and self.random() < 0.2:
            clause.place = self._place(self.words.places)
        return clause

    def _intransitive(self, tense: Tense) -> Clause:
        verb = self._pick(self.words.verbs["intransitive", tense])
        clause = Clause(self._new(), "intransitive", verb, self._subject(verb, tense), tense=tense)
        if "dwells" in verb.tags or ("placed" in verb.tags and self.random() < 0.5):
            clause.place = self._place(self.words.places)
        elif "manner" in verb.tags and self.random() < 0.6:
            clause.manner = self._pick(self.words.kinds["manner"])
        return clause

    def _motion(self, tense: Tense) -> Clause:
        verb = self._pick(self.words.verbs["motion", tense])
        subject = self._subject(verb, tense)
        return Clause(self._new(), "motion", verb, subject, tense=tense, place=self._place(self.words.goals))

    def _give(self, tense: Tense) -> Clause:
        verb = self._pick(self.words.verbs["give", tense])
        subject = self._subject(verb, tense)
        gift = self._object(verb, plain=True)
        draw = self.random()
        if draw < 0.3:
            recipient = self._other(self.words.kinds["pronoun"], subject)
        elif draw < 0.55:
            recipient = self._other(self.words.kinds["name"], subject)
        else:
            recipient = self._noun(self._pick(self.words.nouns["person"]), plain=True)
        return Clause(self._new(), "give", verb, subject, gift, recipient, tense=tense)

    def _adjective(self, tense: Tense) -> Clause:
        if self.random() < 0.4:
            pool = self.words.third_person if self.random() < 0.5 else self.words.kinds["name"]
            subject = NounPhrase(self._new(), self._pick(pool))
            adjective = self._pick(self.words.personal)
        else:
            noun = self._pick(self.words.described)
            subject = self._noun(noun, described=False)
            adjective = self._combine(self.words.predicates[noun], noun)
        clause = Clause(self._new(), "adjective", subject=subject, adjective=adjective, tense=tense)
        if self.random() < 0.25:
            clause.very = self._pick(self.words.kinds["degree"])
        return clause

    def _comparison(self, tense: Tense) -> Clause:
        if self.random() < 0.5:
            subject = NounPhrase(self._new(), self._pick(self.words.kinds["name"]))
            fits = self.words.personal
        else:
            noun = self._pick(self.words.nouns["person"])
            subject = self._noun(noun, plain=True, described=False)
            fits = self.words.predicates[noun][0]
        adjective = self._pick([a for a in fits if a.english_forms[0] != "-"])
        if subject.entry.kind == "noun":
            self._note(adjective, subject.entry)
        other = self._other(self.words.kinds["name"], subject)
        return Clause(self._new(), "comparison", subject=subject, object=other, adjective=adjective, tense=tense)

    def _profession(self, tense: Tense) -> Clause:
        if self.random() < 0.35:
            subject = self._noun(self._pick(self.words.nouns["kin"]), plain=True, plural=False)
        else:
            pool = self.words.kinds["name"] if self.random() < 0.7 else self.words.he_and_she
            subject = NounPhrase(self._new(), self._pick(pool))
        profession = NounPhrase(self._new(), self._pick(self.words.nouns["profession"]), determiner="a")
        return Clause(self._new(), "profession", subject=subject, object=profession, tense=tense)

    def _location(self, tense: Tense, placed: bool = True) -> Clause:
        subject = self._noun(self._pick(self.words.nouns["movable"]), plain=True, determiner="the")
        clause = Clause(self._new(), "location", subject=subject, tense=tense)
        if placed:
            self._put(clause)
        return clause

    def _existence(self, tense: Tense) -> Clause:
        plural = self.random() < 0.3
        determiner = "number" if plural else "a"
        subject = self._noun(self._pick(self.words.nouns["movable"]), plain=True, determiner=determiner, plural=plural)
        clause = Clause(self._new(), "existence", subject=subject, tense=tense)
        self._put(clause)
        return clause

    def _put(self, clause: Clause) -> None:
        """Choose where something is: in a place, or on, under, behind a piece of furniture."""
        if self.random() < 0.5:
            clause.place = self._place(self.words.nouns["place"])
            return
        clause.preposition = self._pick(self.words.kinds["preposition"])
        tag = "container" if clause.preposition.english == "in" else "furniture"
        places = [noun for noun in self.words.nouns[tag] if noun is not clause.subject.entry]
        clause.place = self._noun(self._pick(places), plain=True, determiner="the", plural=False)

    # Noun phrases.

    def _subject(self, verb: Entry, tense: Tense) -> NounPhrase:
        draw = self.random()
        if draw < 0.28:
            # "I went": gender unknown, where a participle would show it.
            shown = "gendered" in verb.tags and tense == "past"
            return NounPhrase(
                self._new(), self._pick(self.words.third_person if shown else self.words.kinds["pronoun"])
            )
        if draw < 0.5:
            return NounPhrase(self._new(), self._pick(self.words.kinds["name"]))
        nouns = self.words.nouns["animal" if "animal" in verb.tags and self.random() < 0.4 else "person"]
        noun = self._pick(nouns)
        phrase = self._noun(noun, verb)
        if phrase.relative is None and self.random() < 0.1:
            second = self._pick(nouns)
            if second is not noun:
                return NounPhrase(self._new(), members=(phrase, self._noun(second, plain=True)))
        return phrase

    def _object(self, verb: Entry, plain: bool = False) -> NounPhrase:
        noun = self._combine(self.words.objects[verb], verb)
        phrase = self._noun(noun, verb, plain=plain)
        if not plain and phrase.relative is None and self.random() < 0.08:
            second = self._pick(self.words.objects[verb][0])
            if second is not noun:
                self._note(verb, second)
                return NounPhrase(self._new(), members=(phrase, self._noun(second, plain=True)))
        return phrase

    def _noun(
        self,
        noun: Entry,
        verb: Entry | None = None,
        plain: bool = False,
        determiner: str = "",
        plural: bool | None = None,
        described: bool = True,
    ) -> NounPhrase:
        """Draw a phrase around a noun.

        Args:
            noun: its head.
            verb: of the clause; a relative clause takes another one.
            plain: leave out relative clauses and owners.
            determiner: its determiner; "" leaves it to chance.
            plural: its number; None leaves it to chance.
            described: whether it may have an adjective.
        """
        phrase = NounPhrase(self._new(), noun)
        if noun.english_forms[0] != "-":
            phrase.plural = self.random() < 0.25 if plural is None else plural
        phrase.determiner = determiner or self._determiner(phrase, plain)
        if phrase.determiner == "possessive":
            phrase.word = self._pick(self.words.kinds["possessive"])
        elif phrase.determiner == "this":
            phrase.word = self._pick(self.words.pointers)
            phrase.determiner = phrase.word.english
        elif phrase.determiner == "many":
            phrase.word = self.words.many
        elif phrase.determiner == "number":
            phrase.word = self._pick(self.words.kinds["number"])
        elif phrase.determiner == "owner":
            phrase.owner = self._owner(noun)
        if described and self.words.adjectives[noun][0] and self.random() < (0.15 if plain else 0.28):
            phrase.adjective = self._combine(self.words.adjectives[noun], noun)
        if not plain and phrase.determiner == "the" and self.random() < 0.25:
            phrase.relative = self._relative(phrase, verb)
        return phrase

    def _determiner(self, phrase: NounPhrase, plain: bool) -> str:
        tags = phrase.entry.tags
        draw = self.random()
        if "kin" in tags:
            return "owner" if draw < 0.25 and not plain else "possessive"
        if draw < 0.5 or (draw < 0.78 and "unowned" in tags):
            return "the" if draw < 0.65 else "this"
        if "mass" in tags:
            return ""
        if draw < 0.64:
            return "possessive"
        if draw < 0.71:
            return "this"
        if draw < 0.78 and not plain:
            return "owner"
        if phrase.plural:
            return "many" if draw < 0.86 else "number"
        return "a"

    def _owner(self, noun: Entry) -> NounPhrase:
        if self.random() < 0.65:
            return NounPhrase(self._new(), self._pick(self.words.kinds["name"]))
        owner = self._pick(self.words.nouns["profession"])
        return NounPhrase(self._new(), owner, determiner="the")

    def _relative(self, phrase: NounPhrase, taken: Entry | None) -> Clause | None:
        """Draw "who reads a book" or "that Maria reads"; None if no verb fits but the one that is taken."""
        noun = phrase.entry
        tense = self._pick(TENSES[:2])
        if "person" in noun.tags and self.random() < 0.65:
            verb = self._pick(self.words.verbs["transitive", tense])
            if verb is taken:
                return None
            patient = self._noun(self._combine(self.words.objects[verb], verb), plain=True)
            return Clause(
                self._new(), "transitive", verb, NOBODY, patient, tense=tense, gap="subject", antecedent=phrase
            )
        verbs = [verb for verb in self.words.relatives[noun, tense] if verb is not taken]
        if not verbs:
            return None
        verb = self._pick(verbs)
        self._note(verb, noun)
        pool = self.words.kinds["name" if self.random() < 0.5 else "pronoun"]
        subject = NounPhrase(self._new(), self._pick(pool))
        return Clause(self._new(), "transitive", verb, subject, tense=tense, gap="object", antecedent=phrase)

    def _place(self, pool: Sequence[Entry]) -> NounPhrase:
        place = self._pick(pool)
        if place.kind == "city":
            return NounPhrase(self._new(), place)
        return self._noun(place, plain=True, determiner="the", plural=False)

    def _other(self, pool: Sequence[Entry], subject: NounPhrase) -> NounPhrase:
        """Draw a pronoun or name that cannot be the subject itself ("I see us")."""
        own = subject.entry.english
        taken = (own, _SAME_PERSON.get(own, own))
        return NounPhrase(self._new(), self._pick([entry for entry in pool if entry.english not in taken]))

    # Choices.

    def _new(self) -> int:
        self._key += 1
        return self._key

    def _pick(self, options: Sequence[_T]) -> _T:
        return options[int(self.random() * len(options))]

    def _combine(self, partners: Partners, word: Entry) -> Entry:
        ordinary, held = partners
        chosen = self._pick(held if held and self.compositional and self.random() < 0.3 else ordinary)
        self._note(chosen, word)
        return chosen

    def _note(self, one: Entry, other: Entry) -> None:
        word, noun = (other, one) if one.kind == "noun" else (one, other)
        self.combinations.append((word.english, noun.english))

    def holds_out(self) -> bool:
        """Tell whether the sentence drawn last contains a held-out combination."""
        return any(held_out(word, noun) for word, noun in self.combinations)
