"""ROUGE against Google's package, and the sentences that it chooses against every choice there is."""

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from hf_attn.evaluation.rouge import oracle_sentences, rouge_scores

WORDS = "the old man reads a red book and the woman sees it 3 times".split()


def sentence(draw, length):
    return (" ".join(draw.choice(WORDS) for _ in range(length)) + ".").capitalize()


def test_scores_are_those_of_googles_package():
    scorer, draw = RougeScorer(["rouge1", "rouge2", "rougeL"]), random.Random(0)
    for _ in range(100):
        summary, reference = sentence(draw, draw.randint(1, 12)), sentence(draw, draw.randint(1, 12))
        expected = {name: score.fmeasure for name, score in scorer.score(reference, summary).items()}
        assert rouge_scores(summary, reference) == pytest.approx(expected)


@pytest.mark.parametrize(("summary", "reference"), [("", "a b"), ("a b", ""), ("", ""), ("...", "a"), ("a", "b")])
def test_what_shares_nothing_scores_nothing(summary, reference):
    assert set(rouge_scores(summary, reference).values()) == {0.0}


def test_letters_of_all_scripts_are_words():
    assert rouge_scores("L'été, 노인은 읽는다", "l'ÉTÉ 노인은 쓴다")["rouge1"] == pytest.approx(3 / 4)


def test_the_oracle_takes_what_raises_the_score_most_each_time():
    draw = random.Random(1)

    def score(sentences, numbers, reference):
        scores = rouge_scores(" ".join(sentences[number] for number in sorted(numbers)), reference)
        return scores["rouge1"] + scores["rouge2"]

    for _ in range(40):
        sentences = [sentence(draw, draw.randint(2, 8)) for _ in range(6)]
        reference = sentence(draw, 10)
        chosen, best = [], 0.0
        while len(chosen) < 3:
            options = {n: score(sentences, [*chosen, n], reference) for n in range(6) if n not in chosen}
            place = max(options, key=lambda number: (options[number], -number))
            if options[place] <= best:
                break
            best = options[place]
            chosen.append(place)
        assert oracle_sentences(sentences, reference) == sorted(chosen)


def test_the_oracle_finds_the_sentences_of_which_a_summary_is_made():
    sentences = ["A cat sleeps.", "It rains in Rome.", "Nobody came.", "The sun is red."]
    assert oracle_sentences(sentences, "It rains in Rome. The sun is red.") == [1, 3]
    assert oracle_sentences(sentences, "It rains in Rome. The sun is red.", most=1) == [1]
    assert oracle_sentences(sentences, "something else") == oracle_sentences([], "a") == []
