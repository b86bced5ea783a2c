"""Put a sentence tree into Korean.

The verb comes last, what modifies a noun comes before it, and the roles are told by particles that fit the final
consonant of their noun. Formal polite style (-습니다). Main subjects are topics (은/는), all others subjects (이/가).
Predicates are a chain of words of which the last takes tense and ending: 읽고 싶지 않았기 때문에.
"""

from dataclasses import dataclass

from . import tree
from .english import person
from .hangul import attach, close, final, formal, without_rieul
from .realise import TargetWord, expression
from .tree import Clause, NounPhrase, Sentence, mark


@dataclass(frozen=True, slots=True)
class Stem:
    """A predicate before its endings.

    `plain` is the stem, `joined` the stem with 아/어, `linked` the stem with (으). `kind` is "verb", "adjective",
    "being" (있다, 없다) or "copula" (이다, 아니다).
    """

    plain: str
    joined: str
    linked: str
    kind: str = "verb"


_DO = Stem("하", "해", "하")
_BECOME = Stem("되", "돼", "되")
_EXIST = Stem("있", "있어", "있으", "being")
_LACK = Stem("없", "없어", "없으", "being")
_IS_NOT = Stem("아니", "아니어", "아니", "copula")


def copula(noun: str) -> Stem:
    """Return a noun with 이다.

    Args:
        noun: what somebody is.
    """
    return Stem(noun + "이", noun + ("이어" if final(noun) else "여"), noun + "이", "copula")


def inflect(stem: Stem, tense: str, ending: str) -> list[str]:
    """Add tense and ending to a stem.

    Args:
        stem: the last word of a predicate.
        tense: "present" or "past"; the future is a stem of its own (것이다).
        ending: "statement", "question", "relative", "says", "knows" (what is said or known), or the conjunction that
            the ending expresses: "and", "but", "because", "when", "if".

    Returns:
        One word, or two where the ending brings a noun (때, 때문에, 것을).
    """
    past = close(stem.joined, "ㅆ") if tense == "past" else ""
    plain, linked = (past, past + "으") if past else (stem.plain, stem.linked)
    if ending == "statement":
        return [formal(plain) + "다"]
    if ending == "question":
        return [formal(plain) + "까"]
    if ending in ("and", "but"):
        return [plain + {"and": "고", "but": "지만"}[ending]]
    if ending == "because":
        return [plain + "기", "때문에"]
    if ending == "when":
        return [close(linked, "ㄹ"), "때"]
    if ending == "if":
        return [linked + "면"]
    if ending == "relative":
        return [_adnominal(stem, past)]
    return [_quoted(stem, past) + "고"] if ending == "says" else [_quoted(stem, past) + "는", "것을"]


def _adnominal(stem: Stem, past: str) -> str:
    if past:
        return close(stem.linked, "ㄴ") if stem.kind == "verb" else past + "던"
    if stem.kind in ("verb", "being"):
        return without_rieul(stem.plain) + "는"
    return close(stem.linked, "ㄴ")


def _quoted(stem: Stem, past: str) -> str:
    if past:
        return past + "다"
    if stem.kind == "copula":
        bare = stem.plain[:-1]  # 의사이다 contracts to 의사라, 학생이다 and 아니다 do not
        return bare + "라" if stem != _IS_NOT and not final(bare) else stem.plain + "라"
    if stem.kind != "verb":
        return stem.plain + "다"
    return stem.plain + "는다" if final(without_rieul(stem.plain)) else close(stem.plain, "ㄴ") + "다"


class Korean:
    """The Korean realiser."""

    SPACE_BEFORE = ""

    def sentence_words(self, sentence: Sentence) -> list[TargetWord]:
        """Say a sentence, final punctuation included.

        Args:
            sentence: the tree.
        """
        words: list[TargetWord] = []
        for unit, following in zip(sentence.units, [*sentence.units[1:], None], strict=True):
            if unit.subordinate is not None:
                key = (mark(unit.subordinate.key, tree.CONJUNCTION),)
                words += self.clause(unit.subordinate, unit.subordinator, "이", key)
            if following is None:
                words += self.clause(unit.main, "question" if sentence.question else "statement", "은")
            else:
                key = (mark(following.key, tree.CONJUNCTION),)
                words += self.clause(unit.main, following.conjunction, "은", key)
        words.append(("?" if sentence.question else ".", (mark(sentence.key, tree.STOP),), ()))
        return words

    def clause(self, clause: Clause, ending: str, particle: str, ending_marks: tuple = ()) -> list[TargetWord]:
        """Say a clause.

        Args:
            clause: main, subordinate or relative.
            ending: as `inflect` takes it.
            particle: of its subject: "은" or "이".
            ending_marks: what the ending translates.
        """
        words: list[TargetWord] = []
        location = clause.frame in ("existence", "location")
        if clause.asks == "who":
            words.append(("누가", (mark(clause.key, tree.QUESTION),), ()))
        elif clause.subject and clause.frame != "existence":
            words += self.phrase(clause.subject, particle)
        if clause.time:
            words += expression(clause.time.target, clause.time.target_tags, mark(clause.key, tree.TIME))
        if clause.asks in ("where", "when"):
            asked = {"when": "언제", "where": "어디에" if location else "어디에서"}[clause.asks]
            words.append((asked, (mark(clause.key, tree.QUESTION),), ()))
        if clause.frequency:
            words += expression(clause.frequency.target, clause.frequency.target_tags, mark(clause.key, tree.FREQUENCY))
        words += self._place(clause)
        if clause.frame == "existence":
            words += self.phrase(clause.subject, "이")
        if clause.recipient:
            words += self.phrase(clause.recipient, "에게", mark(clause.recipient.key, tree.PREPOSITION))
        if clause.asks == "what":
            words.append(("무엇을", (mark(clause.key, tree.QUESTION),), ()))
        if clause.complement is not None:
            quote = "knows" if "know" in clause.verb.tags else "says"
            words += self.clause(clause.complement, quote, "이", (mark(clause.key, tree.THAT),))
        if clause.frame == "comparison":
            words += self.phrase(clause.object, "보다", mark(clause.key, tree.THAN))
            words.append(("더", (), (mark(clause.key, tree.ADJECTIVE),)))
        elif clause.object and clause.frame != "profession":
            words += self.phrase(clause.object, "을")
        if clause.very:
            words.append((clause.very.target, (mark(clause.key, tree.VERY),), ()))
        if clause.manner:
            words += expression(clause.manner.target, clause.manner.target_tags, mark(clause.key, tree.MANNER))
        return words + self._predicate(clause, ending, ending_marks)

    def _place(self, clause: Clause) -> list[TargetWord]:
        if not clause.place:
            return []
        key = mark(clause.place.key, tree.PREPOSITION)
        if clause.preposition:
            return [*self.phrase(clause.place, ""), (clause.preposition.target, (), (key,))]
        still = clause.frame in ("existence", "location", "motion")
        if clause.verb and "toward" in clause.verb.target_tags:  # 돌아가다 names its goal with (으)로
            return self.phrase(clause.place, "으로", key)
        return self.phrase(clause.place, "에" if still else "에서", key)

    def _predicate(self, clause: Clause, ending: str, ending_marks: tuple) -> list[TargetWord]:
        head, auxiliary = (mark(clause.key, tree.HEAD),), mark(clause.key, tree.AUXILIARY)
        negation, modal = mark(clause.key, tree.NEGATION), mark(clause.key, tree.MODAL)
        chain: list[TargetWord] = []
        helps: tuple = (auxiliary,)
        stem, negated = self._stem(clause), clause.negated
        if clause.frame == "profession":
            noun = clause.object.entry.target
            head, helps = (mark(clause.object.key, tree.HEAD),), (*head, mark(clause.object.key, tree.DETERMINER))
            if negated:
                chain.append((attach(noun, "이"), head, helps[1:]))
                stem, head, helps, negated = _IS_NOT, (negation,), helps[:1], False
        elif clause.frame in ("adjective", "comparison"):
            head, helps = (mark(clause.key, tree.ADJECTIVE),), (*head, auxiliary)
        elif clause.frame in ("existence", "location"):
            helps = (mark(clause.key, tree.PARTICLE), auxiliary)
            if negated:
                stem, head, negated = _LACK, (*head, negation), False
        if clause.modal:
            before, stem = self._modal(clause, stem)
            chain.append((before[0], head, (mark(clause.key, tree.PARTICLE),)))
            chain += [(word, (), (modal,)) for word in before[1:]]
            head, helps = (modal, negation) if negated and clause.modal != "want" else (modal,), (auxiliary,)
            negated = negated and clause.modal == "want"
        if negated:
            chain.append((stem.plain + "지", head, helps))
            stem = Stem("않", "않아", "않으", "adjective" if stem.kind == "adjective" else "verb")
            head, helps = (negation,), (auxiliary,)
        if clause.tense == "future":
            if ending == "relative":
                return [*chain, (close(stem.linked, "ㄹ"), head, (*helps, *ending_marks))]
            chain.append((close(stem.linked, "ㄹ"), head, helps))
            stem, head, helps = copula("것"), (), (auxiliary,)
        first, *rest = inflect(stem, clause.tense, ending)
        chain.append((first, head, (*helps, *ending_marks)))
        lexical = ending in ("because", "when")  # 때문에, 때 say "because", "when"; 것을 only helps to say "that"
        return chain + [(word, ending_marks if lexical else (), () if lexical else ending_marks) for word in rest]

    def _stem(self, clause: Clause) -> Stem:
        if clause.frame in ("existence", "location"):
            return _EXIST
        if clause.frame == "profession":
            return copula(clause.object.entry.target)
        if clause.adjective:
            plain, joined, linked, adnominal = clause.adjective.target_forms
            return Stem(plain, joined, linked, "being" if adnominal.endswith("있는") else "adjective")
        plain, joined, linked = clause.verb.target_forms
        return Stem(plain, joined, linked)

    def _modal(self, clause: Clause, stem: Stem) -> tuple[list[str], Stem]:
        """Return the words before the last and the stem of the last: 읽을 수 | 있, 읽고 싶어 | 하, 읽어야 | 하."""
        if clause.modal == "can":
            return [close(stem.linked, "ㄹ"), "수"], _LACK if clause.negated else _EXIST
        if clause.modal == "must":
            return ([stem.linked + "면", "안"], _BECOME) if clause.negated else ([stem.joined + "야"], _DO)
        subject = clause.subject or clause.antecedent
        if subject and person(subject) in ("1s", "1p"):
            return [stem.plain + "고"], Stem("싶", "싶어", "싶으", "adjective")
        return [stem.plain + "고", "싶어"], _DO

    def phrase(self, phrase: NounPhrase, particle: str, particle_mark: int = -1) -> list[TargetWord]:
        """Say a noun phrase with its particle.

        Args:
            phrase: what to say.
            particle: attached to its last word, as `hangul.attach` takes it.
            particle_mark: what the particle translates.
        """
        helps = () if particle_mark < 0 else (particle_mark,)
        if phrase.members:
            first, second = phrase.members
            joined = self.phrase(first, "과", mark(phrase.key, tree.CONJUNCTION))
            return joined + self.phrase(second, particle)
        entry = phrase.entry
        head, key = mark(phrase.key, tree.HEAD), mark(phrase.key, tree.DETERMINER)
        if entry.kind == "pronoun" and entry.english == "I" and particle == "이":
            return [("제가", (head,), helps)]
        words: list[TargetWord] = []
        if phrase.relative is not None:
            words += self.clause(phrase.relative, "relative", "이", (mark(phrase.key, tree.RELATIVE),))
        if phrase.owner is not None:
            words += self.phrase(phrase.owner, "의")
        elif phrase.word and phrase.determiner != "number":
            words.append((phrase.word.target, (key,), ()))
        if phrase.adjective:
            words.append((phrase.adjective.target_forms[3], (mark(phrase.key, tree.ADJECTIVE),), ()))
        if phrase.determiner == "number":
            counter = entry.target_forms[0]
            words += [(entry.target, (head,), ()), (phrase.word.target, (key,), ())]
            return [*words, (attach(counter, particle), (), (head, key, *helps))]
        plural = phrase.plural and "person" in entry.tags and phrase.determiner != "many"
        helps = (*helps, key) if phrase.determiner in ("the", "a") else helps
        return [*words, (attach(entry.target + "들" if plural else entry.target, particle), (head,), helps)]
