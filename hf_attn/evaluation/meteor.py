# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""METEOR: words are aligned in stages, recall counts more than precision, and scattered matches cost.

    precision = matches / words of the translation      recall = matches / words of the reference
    F = precision * recall / (alpha * precision + (1 - alpha) * recall)
    METEOR = F * (1 - gamma * (chunks / matches) ** beta)

A word is linked to an equal one first, then to one of the same stem, then to a synonym; each stage has what the ones
before left over. A chunk is a run of links that is unbroken on both sides. Of all alignments with as many links as
possible in each stage, in this order, the one with the fewest chunks counts; it is found exactly.

Papers: Banerjee and Lavie 2005 (stages, formula: alpha 0.9, beta 3, gamma 0.5); Lavie and Agarwal 2007 (the names of
the parameters; tuned for English: 0.81, 0.83, 0.28); Denkowski and Lavie 2014 (for any language: 0.7, 1.4, 0.3).
Differs from the papers: fewest chunks as in 2014, where 2005 wants the fewest crossing links; the stages weigh alike,
as in 2005 and 2007, and there are neither paraphrases nor lists of function words, as in 2014.
Read next: `translation.py`, whose tokenizers split the words.
"""

from __future__ import annotations

import functools
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .translation import _bleu_scorer, default_tokenizer, group_references

STAGES = ("exact", "stem", "synonym")
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "en": "porter", "es": "spanish", "fi": "finnish", "fr": "french",
    "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish",
}  # fmt: skip
"""By language, the stemmer of nltk."""

Pair = tuple[str, str]
Links = dict[Pair, int]  # (word of the translation, word of the reference) -> 1 the same stem, 2 synonyms


class Alignment(NamedTuple):
    """What METEOR needs to know of two sentences: matches and chunks, and the number of words of each."""

    matches: int
    chunks: int
    hypothesis_len: int
    reference_len: int

    def score(self, alpha: float, beta: float, gamma: float) -> float:
        """Compute METEOR, from 0 to 1; 0 without a match."""
        if self.matches == 0:
            return 0.0
        precision, recall = self.matches / self.hypothesis_len, self.matches / self.reference_len
        mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
        return mean * (1 - gamma * (self.chunks / self.matches) ** beta)


def align_words(
    hypothesis: Sequence[str],
    reference: Sequence[str],
    stem: Callable[[str], str] | None = None,
    synsets: Callable[[str], Iterable[Any]] | None = None,
) -> Alignment:
    """Align two sentences with as many links as possible in each stage, and then with the fewest chunks.

    To find the fewest chunks takes exponential time in the worst case, whoever does it (it contains the minimum common
    string partition); that needs long sentences which repeat whole phrases on both sides in different order.

    Args:
        hypothesis: the words of the translation.
        reference: the words of the reference.
        stem: gives the stem of a word; None leaves the stage out.
        synsets: gives the sets of synonyms that a word belongs to; two words with a set in common are synonyms. None
            leaves the stage out.
    """
    own, other = Counter(hypothesis), Counter(reference)
    links: Links = {}
    surplus, wanted = own - other, other - own
    for word in surplus:
        for partner in wanted:
            if stem and stem(word) == stem(partner):
                links[word, partner] = 1
            elif synsets and not set(synsets(word)).isdisjoint(synsets(partner)):
                links[word, partner] = 2
    leftovers = _Leftovers(surplus, wanted, links)
    matches = (own & other).total() + leftovers.matches
    return Alignment(matches, matches - _most_bonds(hypothesis, reference, leftovers), len(hypothesis), len(reference))


class _Leftovers:
    """The words that have no equal partner left, and how they can be linked.

    Attributes:
        links: what may be linked.
        matches: how many links there are at most, those of stems first.
    """

    def __init__(self, own: Counter[str], other: Counter[str], links: Links):
        self.links = links
        self._own = Counter({word: own[word] for word, _ in links})
        self._other = Counter({word: other[word] for _, word in links})
        self._weights = {1: sum(self._own.values()) + 1, 2: 1}  # one more stem is worth more than all synonyms
        self._most, self.matches = self._best(())
        self._allowed = functools.lru_cache(maxsize=None)(self._check)

    def allow(self, chosen: tuple[Pair, ...]) -> bool:
        """Say whether an alignment with the most links can contain these."""
        return not chosen or self._allowed(chosen)

    def _check(self, chosen: tuple[Pair, ...]) -> bool:
        own, other = (Counter(words) for words in zip(*chosen))
        if not (own <= self._own and other <= self._other):
            return False
        return self._best(chosen)[0] + sum(self._weights[self.links[pair]] for pair in chosen) == self._most

    def _best(self, chosen: tuple[Pair, ...]) -> tuple[int, int]:
        """Find the largest weight of links beside the chosen ones, and their number: augmenting paths, best first."""
        lefts = list((self._own - Counter(word for word, _ in chosen)).elements())
        rights = list((self._other - Counter(word for _, word in chosen)).elements())
        weight = {
            (i, j): self._weights[self.links[word, partner]]
            for i, word in enumerate(lefts)
            for j, partner in enumerate(rights)
            if (word, partner) in self.links
        }
        total, taken = 0, dict[int, int]()  # taken: right -> left
        while True:
            gain = {i: 0 for i in range(len(lefts)) if i not in taken.values()}
            best: dict[int, tuple[int, int]] = {}  # right -> what the best path to it gains, the left it comes from
            changed = True
            while changed:
                changed = False
                for (i, j), value in weight.items():
                    if i in gain and taken.get(j) != i and (j not in best or gain[i] + value > best[j][0]):
                        best[j] = (gain[i] + value, i)
                        changed = True
                        if j in taken:
                            gain[taken[j]] = best[j][0] - weight[taken[j], j]
            gained, j = max(((best[j][0], j) for j in best if j not in taken), default=(0, None))
            if gained <= 0:
                return total, len(taken)
            total += gained
            right_of = {left: right for right, left in taken.items()}
            while j is not None:
                i = best[j][1]
                taken[j] = i
                j = right_of.get(i)


def _most_bonds(hypothesis: Sequence[str], reference: Sequence[str], leftovers: _Leftovers) -> int:
    """Count the pairs of neighbours that an alignment can leave neighbours: matches - chunks.

    Best-first search from left to right over the runs of words that both sentences have, with a bound that counts the
    pairs of neighbours still to come on both sides (A*).
    """
    runs = _runs(hypothesis, reference, leftovers.links)
    if not runs:
        return 0
    kind = _kinds(leftovers.links)
    own = {i: (kind(hypothesis[i]), kind(hypothesis[i + 1])) for i in runs}
    last = max(runs)
    alive = [0] * (last + 2)  # by position: the words of the reference that later runs can use
    for i in range(last, -1, -1):
        alive[i] = alive[i + 1]
        for j, length in runs.get(i, {}).items():
            alive[i] |= ((1 << length) - 1) << j

    def bound(i: int, used: int) -> int:
        to_come = Counter(own[k] for k in own if k >= i)
        free = alive[min(i, last + 1)] & ~used
        pairs = free & free >> 1
        there = Counter(
            (kind(reference[j]), kind(reference[j + 1])) for j in range(len(reference) - 1) if pairs >> j & 1
        )
        return (to_come & there).total()

    # (minus the bonds that are possible, minus position, bonds, words of the reference in use, links of leftovers)
    waiting: list[tuple[int, int, int, int, tuple[Pair, ...]]] = [(-bound(0, 0), 0, 0, 0, ())]
    seen: dict[tuple[int, int, tuple[Pair, ...]], int] = {}
    while True:
        negative, position, bonds, used, chosen = heapq.heappop(waiting)
        i = -position
        if bonds == -negative:  # nothing is left to gain here, and nothing else can give more
            return bonds
        if seen.get((i, used, chosen), bonds) > bonds:
            continue
        following = [(i + 1, bonds, used, chosen)]
        for j, length in runs.get(i, {}).items():
            picked = chosen
            for k in range(length):
                if used >> (j + k) & 1:
                    break
                pair = (hypothesis[i + k], reference[j + k])
                picked = picked if pair[0] == pair[1] else tuple(sorted((*picked, pair)))
                if not leftovers.allow(picked):
                    break
                if k:
                    following.append((i + k + 1, bonds + k, used | ((2 << k) - 1) << j, picked))
        for i, bonds, used, chosen in following:
            state = (i, used & alive[min(i, last + 1)], chosen)
            if seen.get(state, -1) < bonds:
                seen[state] = bonds
                heapq.heappush(waiting, (-bonds - bound(*state[:2]), -i, bonds, state[1], chosen))


def _runs(hypothesis: Sequence[str], reference: Sequence[str], links: Links) -> dict[int, dict[int, int]]:
    """Find the runs of two words or more that can be linked: start -> start in the reference -> greatest length."""
    places: dict[str, list[int]] = {}
    for j, word in enumerate(reference):
        places.setdefault(word, []).append(j)
    partners: dict[str, list[str]] = {word: [word] for word in hypothesis}
    for word, partner in links:
        partners[word].append(partner)
    lengths: dict[tuple[int, int], int] = {}
    for i in range(len(hypothesis) - 1, -1, -1):
        for partner in partners[hypothesis[i]]:
            for j in places.get(partner, ()):
                lengths[i, j] = 1 + lengths.get((i + 1, j + 1), 0)
    runs: dict[int, dict[int, int]] = {}
    for (i, j), length in lengths.items():
        if length > 1:
            runs.setdefault(i, {})[j] = length
    return runs


def _kinds(links: Links) -> Callable[[str], str]:
    """Put words that links join, directly or not, into one kind."""
    kinds: dict[str, str] = {}
    for pair in links:
        first, second = (kinds.get(word, word) for word in pair)
        kinds |= {word: first for word in (*pair, *(word for word in kinds if kinds[word] == second))}
    return lambda word: kinds.get(word, word)


def _choose_stages(lang: str | None, stages: Sequence[str] | None) -> tuple[list[str], Any, Any]:
    """Return the names of the stages, and the functions that give stems and sets of synonyms, or None."""
    base = (lang or "").replace("_", "-").split("-")[0].lower()
    wanted = list(STAGES if stages is None else stages)
    if isinstance(stages, str) or wanted[:1] != ["exact"] or not set(wanted) <= set(STAGES):
        raise ValueError(f"stages is {stages!r}; allowed is a list of 'exact' and, after it, 'stem' and 'synonym'")
    possible = {"exact": True, "stem": base in STEMMERS, "synonym": base == "en"}
    if stages is not None and not all(possible[name] for name in stages):
        raise ValueError(
            f"stages is {stages!r} and lang {lang!r}; 'stem' is for {', '.join(STEMMERS)}, 'synonym' for en"
        )
    stem = synsets = None
    if "stem" in wanted and possible["stem"]:
        from nltk.stem.snowball import SnowballStemmer

        stem = functools.lru_cache(maxsize=None)(SnowballStemmer(STEMMERS[base]).stem)
    if "synonym" in wanted and possible["synonym"]:
        from nltk.corpus import wordnet

        try:
            wordnet.ensure_loaded()
            synsets = functools.lru_cache(maxsize=None)(lambda word: frozenset(wordnet.synsets(word)))
        except LookupError as error:
            if stages is not None:
                raise ImportError("stages has 'synonym', which needs the data 'wordnet' of nltk: none found") from error
    used = {"exact": True, "stem": stem is not None, "synonym": synsets is not None}
    return [name for name in STAGES if name in wanted and used[name]], stem, synsets


def meteor_scores(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    lang: str | None = None,
    tokenize: str | None = None,
    stages: Sequence[str] | None = None,
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
    sentence_scores: bool = False,
) -> dict[str, Any]:
    """Compute the METEOR of a corpus and of its sentences. Capitals do not count.

    Args:
        hypotheses: one translation a source sentence.
        references: for each, a text or a list of texts, of which the best counts.
        lang: language code of the translations; chooses the tokenizer, as for BLEU, and the stemmer. None: words match
            if they are equal.
        tokenize: a tokenizer of sacrebleu, instead of the one for `lang`; "none" splits at blanks.
        stages: some of `STAGES`, "exact" first. None: all that the language and this machine have. Synonyms are for
            English, and need the data "wordnet" of nltk, which is never downloaded here. Name them to get the same
            score on every machine.
        alpha: how much more recall weighs than precision, 0 to 1.
        beta: how steeply scattered matches cost.
        gamma: what they cost at most, 0 to 1.
        sentence_scores: also return the score of each sentence.

    Returns:
        `score`, from the sums of matches, chunks and words over the corpus, so that long sentences count more, and
        `sentence_meteor`, the mean of the sentences (both 0 to 100); the sums `matches`, `chunks`, `hypothesis_len` and
        `reference_len`; `stages`, those that were used; `tokenize`; and `sentence_scores` if asked for.

    Raises:
        ValueError: an argument is not allowed, see also `group_references`.
        ImportError: something asked for is not installed.
    """
    for name, value, most in (("alpha", alpha, 1.0), ("beta", beta, float("inf")), ("gamma", gamma, 1.0)):
        if isinstance(value, str) or not 0 <= value <= most:
            raise ValueError(f"{name} is {value!r}; allowed are numbers from 0 to {most:g}")
    grouped = group_references(hypotheses, references)
    tokenize = tokenize or default_tokenizer(lang)
    used, stem, synsets = _choose_stages(lang, stages)
    tokenizer = _bleu_scorer(tokenize, False, "exp", 4, True).tokenizer

    def words(text: str) -> list[str]:
        return tokenizer(text).lower().split()

    best = []
    for hypothesis, its_references in zip(hypotheses, grouped, strict=True):
        own = words(hypothesis)
        alignments = [align_words(own, words(reference), stem, synsets) for reference in its_references]
        best.append(max(alignments, key=lambda alignment: alignment.score(alpha, beta, gamma)))
    corpus = Alignment(*map(sum, zip(*best, strict=True)))
    each = [100 * alignment.score(alpha, beta, gamma) for alignment in best]
    scores: dict[str, Any] = {
        "score": 100 * corpus.score(alpha, beta, gamma),
        "sentence_meteor": sum(each) / len(each),
        **corpus._asdict(),
        "stages": used,
        "tokenize": tokenize,
    }
    if sentence_scores:
        scores["sentence_scores"] = each
    return scores
