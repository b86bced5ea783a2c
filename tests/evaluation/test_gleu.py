# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""GLEU against explicit loops, published examples and numbers worked out by hand; the interval of a difference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_attn.evaluation import (
    evaluate_translations,
    gleu_scores,
    gleu_statistics,
    load_metric,
    paired_bootstrap,
    sentence_gleu,
    sentence_gleu_from_statistics,
)

WORDS = st.lists(st.sampled_from("abc"), max_size=7)


def counted(hypothesis, reference):
    """Matching n-grams, and those of either side: each n-gram of the reference is crossed out once it is used."""
    ngrams = [
        [words[i : i + n] for n in (1, 2, 3, 4) for i in range(len(words) - n + 1)] for words in (hypothesis, reference)
    ]
    left, matches = list(ngrams[1]), 0
    for ngram in ngrams[0]:
        if ngram in left:
            left.remove(ngram)
            matches += 1
    return matches, len(ngrams[0]), len(ngrams[1])


def by_definition(hypothesis, reference):
    matches, own, other = counted(hypothesis, reference)
    return min(matches / own, matches / other) if own and other else 0.0


@settings(max_examples=100, deadline=None)
@given(hypothesis=WORDS, references=st.lists(WORDS, min_size=1, max_size=3))
def test_it_is_the_lesser_of_precision_and_recall_for_the_best_reference(hypothesis, references):
    expected = max(by_definition(hypothesis, reference) for reference in references)
    assert sentence_gleu(hypothesis, references) == pytest.approx(expected)
    ids = [["abc".index(word) for word in words] for words in (hypothesis, *references)]
    assert sentence_gleu(ids[0], ids[1:]) == sentence_gleu(hypothesis, references)
    # either may be the translation
    assert sentence_gleu(hypothesis, references[:1]) == sentence_gleu(references[0], [hypothesis])


def test_worked_examples():
    # "a b c d" has 4 + 3 + 2 + 1 n-grams, "a b x d" matches a, b, d and "a b"
    assert sentence_gleu("abcd", ["abxd"]) == pytest.approx(4 / 10)
    # two words: 3 n-grams, all of which match, of the 10
    assert sentence_gleu("ab", ["abcd"]) == pytest.approx(3 / 10)
    assert sentence_gleu("abcd", ["ab"]) == pytest.approx(3 / 10)
    assert sentence_gleu("ab", ["abcd", "ab", "zz"]) == 1
    assert sentence_gleu("", ["ab"]) == sentence_gleu("ab", [""]) == sentence_gleu("", [""]) == 0
    # NLTK's documentation gives these, cut after four digits
    assert sentence_gleu(["the"] * 7, ["the cat is on the mat".split()]) == pytest.approx(0.0909, abs=1e-4)
    reference = "It is a guide to action that ensures that the military will forever heed Party commands".split()
    close = "It is a guide to action which ensures that the military always obeys the commands of the party".split()
    far = "It is to insure the troops forever hearing the activity guidebook that party direct".split()
    assert sentence_gleu(close, [reference]) == pytest.approx(0.4393, abs=1e-4)
    assert sentence_gleu(far, [reference]) == pytest.approx(0.1206, abs=1e-4)


def test_a_corpus_adds_up_and_sentences_are_averaged():
    """The corpus of NLTK's documentation, 0.5673; its sentences with one reference each, 0.6144."""
    hypotheses = [
        "It is a guide to action which ensures that the military always obeys the commands of the party",
        "he read the book because he was interested in world history",
    ]
    references = [
        [
            "It is a guide to action that ensures that the military will forever heed Party commands",
            "It is the guiding principle which guarantees the military forces always being under the command of the "
            "Party",
            "It is the practical guide for the army always to heed the directions of the party",
        ],
        "he was interested in world history because he read the book",
    ]
    scores = gleu_scores(hypotheses, references, sentence_scores=True)
    assert scores["score"] == pytest.approx(56.73, abs=1e-2)
    assert scores["score"] == 100 * scores["matches"] / scores["total"]
    assert scores["sentence_gleu"] == pytest.approx(sum(scores["sentence_scores"]) / 2)
    single = gleu_scores(hypotheses, [references[0][0], references[1]])
    assert single["sentence_gleu"] == pytest.approx(61.44, abs=1e-2)
    metric = load_metric("gleu")
    metric.add_batch(predictions=hypotheses[:1], references=references[:1])
    metric.add(prediction=hypotheses[1], reference=references[1])
    assert metric.compute(sentence_scores=True) == scores
    reported = evaluate_translations(hypotheses, references, target_lang="en")
    assert (reported["gleu"], reported["sentence_gleu"]) == (scores["score"], scores["sentence_gleu"])


def test_words_are_those_of_bleu():
    assert gleu_scores(["le chat, oui"], ["le chat , oui"])["score"] == 100
    korean = gleu_scores(["나는 가"], ["나는 가다"], lang="ko", sentence_scores=True)
    assert korean["tokenize"] == "char" and korean["score"] == pytest.approx(60)  # 6 of 10: 3 characters of 4
    assert gleu_scores(["나는 가"], ["나는 가다"], lang="fr")["score"] == pytest.approx(100 / 3)
    assert gleu_scores(["", "a"], ["a", "a"], sentence_scores=True)["sentence_scores"] == [0, 100]


def test_interval_of_a_difference_in_the_mean_of_sentences():
    generator = np.random.default_rng(3)
    references = [" ".join(generator.choice(list("abcdefgh"), size=8)) for _ in range(60)]

    def damaged(rate):
        return [" ".join("x" if generator.random() < rate else word for word in text.split()) for text in references]

    good, bad = damaged(0.2), damaged(0.4)
    statistics = [gleu_statistics(texts, references) for texts in (good, bad)]
    result = paired_bootstrap(*statistics, score=sentence_gleu_from_statistics, samples=200)
    gains = np.array(
        [
            100 * (by_definition(one.split(), its.split()) - by_definition(two.split(), its.split()))
            for one, two, its in zip(good, bad, references, strict=True)
        ]
    )
    drawn = np.random.default_rng(12345).choice(60, size=(200, 60))
    means = sorted(gains[rows].mean() for rows in drawn)
    assert result["difference"] == pytest.approx(gains.mean())
    assert (result["low"], result["high"]) == pytest.approx((means[5], means[-6]))
    assert 0 < result["low"]
