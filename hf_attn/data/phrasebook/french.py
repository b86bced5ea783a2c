"""Put a sentence tree into French.

Elision (l', d', qu', j', n'), contraction (au, aux, du, des), partitives (de l'eau) that become "de" under negation,
"ne ... pas" around the finite verb, clitics before the verb they belong to ("je peux le voir"), avoir or être,
participles that agree with être's subject and with an object that comes before them, questions with "est-ce que".
"""

from . import tree
from .lexicon import Entry
from .realise import TargetWord
from .romance import Romance, adjective_form, heads
from .tree import Clause, NounPhrase, mark

_ELIDED = {word: word[:-1] + "'" for word in ("je", "me", "le", "la", "ne", "de", "que")}
_CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}
_VOWELS = frozenset("aeiouyàâéèêëîïôûùœhAEIOUÉÈÊÎÔH")  # a capital Y is a consonant: "de Yuna"
_NO_ELISION = ("huit", "onze", "haut", "homard", "héros", "hibou", "yaourt")


def starts_with_vowel(word: str) -> bool:
    """Tell whether words elide before this one.

    Args:
        word: the next word; h is mute except in a short list.
    """
    return word[0] in _VOWELS and not word.startswith(_NO_ELISION)


def definite(word: str, is_feminine: bool, is_plural: bool) -> str:
    """Return the definite article.

    Args:
        word: the word that follows.
        is_feminine: the noun is feminine.
        is_plural: the noun is plural.
    """
    if is_plural:
        return "les"
    return "l'" if starts_with_vowel(word) else "la" if is_feminine else "le"


class French(Romance):
    """The French realiser."""

    COPULA = {
        "present": ("suis", "est", "sommes", "sont"),
        "past": ("étais", "était", "étions", "étaient"),
        "future": ("serai", "sera", "serons", "seront"),
    }
    HAVE = ("ai", "a", "avons", "ont")
    BE = COPULA["present"]
    MODALS = {
        "can": ("peux", "peut", "pouvons", "peuvent"),
        "must": ("dois", "doit", "devons", "doivent"),
        "want": ("veux", "veut", "voulons", "veulent"),
    }
    FUTURE = ("ai", "a", "ons", "ont")
    CONJUNCTIONS = {"and": "et", "but": "mais", "because": "parce que", "when": "quand", "if": "si"}
    MORE, THAN, OF, TO, IN, THAT = "plus", "que", "de", "à", "dans", "que"
    WHO = ("qui", "que")
    SPACE_BEFORE = "?"

    def finish(self, words: list[TargetWord]) -> list[TargetWord]:
        for index in range(len(words) - 1):
            text, sure, possible = words[index]
            following = words[index + 1][0]
            if text in _ELIDED and starts_with_vowel(following):
                words[index] = (_ELIDED[text], sure, possible)
            elif text == "si" and following in ("il", "ils"):
                words[index] = ("s'", sure, possible)
        return words

    def determiner(
        self, phrase: NounPhrase, core: list[TargetWord], preposition: str, helps: tuple[int, ...]
    ) -> list[TargetWord]:
        key, head = mark(phrase.key, tree.DETERMINER), mark(phrase.key, tree.HEAD)
        is_feminine = "f" in phrase.entry.target_tags
        kind = phrase.determiner
        following = core[0][0]
        vowel = starts_with_vowel(following)
        *before, last = preposition.split() if preposition else [""]
        words: list[TargetWord] = []
        if kind in ("the", "owner"):
            article = definite(following, is_feminine, phrase.plural)
            joined = _CONTRACTED.get((last, article), f"{last} {article}")
            return [(word, (), (*helps, key, head)) for word in (*before, *joined.split())]
        if kind == "possessive":
            like_masculine = is_feminine and vowel and not phrase.plural  # "mon amie"
            words.append((adjective_form(phrase.word, is_feminine and not like_masculine, phrase.plural), (key,), ()))
        elif kind == "this":
            words.append((self.attributive(phrase.word, is_feminine, phrase.plural, following), (key,), ()))
        elif kind == "many":
            words += [("beaucoup", (key,), ()), ("de", (), (key, head))]
        elif kind == "number":
            words.append((phrase.word.target, (key,), ()))
        elif kind == "a":
            words.append(("une" if is_feminine else "un", (), (key, head)))
        return [(word, (), (*helps, head)) for word in (*before, *last.split())] + words

    def attributive(self, adjective: Entry, is_feminine: bool, is_plural: bool, noun: str) -> str:
        if noun and len(adjective.target_forms) > 4 and not is_feminine and not is_plural and starts_with_vowel(noun):
            return adjective.target_forms[4]
        return adjective_form(adjective, is_feminine, is_plural)

    def participle(self, masculine: str, is_feminine: bool, is_plural: bool) -> str:
        form = masculine + "e" if is_feminine else masculine
        return form + "s" if is_plural and not form.endswith("s") else form

    def object_agreement(self, clause: Clause) -> tuple[bool, bool]:
        if clause.gap == "object":
            return "f" in clause.antecedent.entry.target_tags, clause.antecedent.plural
        if clause.object.entry.kind == "pronoun":
            return "f" in clause.object.entry.target_tags, "3p" in clause.object.entry.tags
        return False, False

    def dropped(self, clause: Clause) -> tuple[int, ...]:
        return ()

    def subject(self, clause: Clause) -> list[TargetWord]:
        return self.phrase(clause.subject) if clause.subject else []

    def verb_group(self, clause: Clause) -> list[TargetWord]:
        finite, rest = self.verb_forms(clause)
        before, after = self._negation(clause)
        clitic = self.clitic(clause)
        if clause.modal:
            return [*before, finite, *after, *clitic, *rest]
        return [*before, *clitic, finite, *after, *self.frequency(clause), *rest]

    def _negation(self, clause: Clause) -> tuple[list[TargetWord], list[TargetWord]]:
        if not clause.negated:
            return [], []
        key = mark(clause.key, tree.NEGATION)
        return [("ne", (), (key,))], [("pas", (key,), ())]

    def existence(self, clause: Clause) -> list[TargetWord]:
        before, after = self._negation(clause)
        have = {"present": "a", "past": "avait", "future": "aura"}[clause.tense]
        there, head = mark(clause.key, tree.PARTICLE), mark(clause.key, tree.HEAD)
        finite = (have, (head,), (mark(clause.key, tree.AUXILIARY),))
        words = [("il", (), (there, head)), *before, ("y", (there,), (head,)), finite, *after]
        return words + self._with_partitive(clause.subject, clause.negated)

    def question(self, clause: Clause) -> list[TargetWord]:
        key, do = mark(clause.key, tree.QUESTION), mark(clause.key, tree.AUXILIARY)
        if clause.asks == "who":
            return [("qui", (key,), ()), *self.verb_group(clause)]
        if clause.asks == "where" and clause.frame == "location":
            return [("où", (key,), ()), *self.verb_group(clause), *self.subject(clause)]
        asked: list[TargetWord] = []
        if clause.asks != "truth":
            asked = [({"what": "que", "where": "où", "when": "quand"}[clause.asks], (key,), ())]
        helps = (do, key, mark(clause.key, tree.MODAL), mark(clause.key, tree.HEAD))
        asked += [(word, (), helps) for word in ("est", "-", "ce", "que")]
        return asked + self.subject(clause) + self.verb_group(clause)

    def profession(self, clause: Clause) -> list[TargetWord]:
        phrase = clause.object
        _, is_feminine, _ = self.agreement(clause)
        noun = phrase.entry.target_forms[1] if is_feminine else phrase.entry.target
        return [(noun, heads(phrase), (mark(phrase.key, tree.DETERMINER),))]

    def object(self, clause: Clause) -> list[TargetWord]:
        return self._with_partitive(clause.object, clause.negated)

    def _with_partitive(self, phrase: NounPhrase, negated: bool) -> list[TargetWord]:
        """Say a direct object: "de l'eau", "un livre", and "pas d'eau", "pas de livre"."""
        if phrase.members:
            first, second = phrase.members
            joined = (self.CONJUNCTIONS["and"], (mark(phrase.key, tree.CONJUNCTION),), ())
            return [*self._with_partitive(first, negated), joined, *self._with_partitive(second, negated)]
        words = self.phrase(phrase)
        mass = phrase.determiner == "" and phrase.entry.kind == "noun"
        helps = (mark(phrase.key, tree.DETERMINER), mark(phrase.key, tree.HEAD))
        if negated and (mass or phrase.determiner == "a"):
            return [("de", (), helps), *(words if mass else words[1:])]
        if mass:
            article = definite(words[0][0], "f" in phrase.entry.target_tags, False)
            joined = _CONTRACTED.get(("de", article), f"de {article}")
            return [(word, (), helps) for word in joined.split()] + words
        return words
