# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""METEOR against NLTK, every alignment there is, and examples worked out by hand."""

import nltk.corpus
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.corpus.util import LazyCorpusLoader
from nltk.translate.meteor_score import meteor_score

from hf_attn.evaluation import load_metric, meteor_scores
from hf_attn.evaluation.meteor import align_words

# invented words: a letter that is the stem, and a digit; the sets that a stem belongs to
WORDS = st.lists(st.sampled_from(["a1", "a2", "a3", "b1", "b2", "c1", "d1"]), max_size=5)
SETS = {"a": {1}, "b": {1, 2}, "c": {2, 3}, "d": {3}}


def stem_of(word):
    return word[0]


def sets_of(word):
    return SETS[word[0]]


def best_of_all(hypothesis, reference, stem, synsets):
    """Try every alignment: the most links of each stage in turn, then the fewest chunks."""

    def stage(word, partner):
        if word == partner:
            return 0
        if stem and stem(word) == stem(partner):
            return 1
        return 2 if synsets and synsets(word) & synsets(partner) else None

    def alignments(i, free):
        if i == len(hypothesis):
            yield {}
            return
        for rest in alignments(i + 1, free):
            yield rest
        for j in free:
            if stage(hypothesis[i], reference[j]) is not None:
                for rest in alignments(i + 1, free - {j}):
                    yield {i: j, **rest}

    def value(links):
        stages = [stage(hypothesis[i], reference[j]) for i, j in links.items()]
        chunks = sum(not (i - 1 in links and links[i - 1] == j - 1) for i, j in links.items())
        return stages.count(0), stages.count(1), stages.count(2), -chunks

    *matches, chunks = max(map(value, alignments(0, frozenset(range(len(reference))))))
    return sum(matches), -chunks


@settings(max_examples=300, deadline=None)
@given(hypothesis=WORDS, reference=WORDS, stem=st.sampled_from([None, stem_of]), sets=st.sampled_from([None, sets_of]))
def test_no_alignment_has_more_links_or_fewer_chunks(hypothesis, reference, stem, sets):
    alignment = align_words(hypothesis, reference, stem, sets)
    assert alignment[:2] == best_of_all(hypothesis, reference, stem, sets)
    assert alignment[2:] == (len(hypothesis), len(reference))


def test_a_later_stage_does_not_take_a_word_from_an_earlier_one():
    # a1 with b2 and b1 with c1 would be two links, but of synonyms; b1 and b2 have the same stem
    assert align_words(["a1", "b1"], ["b2", "c1"], stem_of, sets_of) == (1, 1, 2, 2)
    # either word may be the one that has a partner of the same stem; what makes one chunk is chosen
    assert align_words(["b1", "b3"], ["b2", "c1"], stem_of, sets_of) == (2, 1, 2, 2)
    assert align_words(["b1", "b3"], ["c1", "b2"], stem_of, sets_of) == (2, 1, 2, 2)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "matches", "chunks"),
    [
        ("la " * 60, "la " * 50, 50, 1),
        ("a b " * 30, "b a " * 30, 60, 2),
        ("a b c " * 20, "c b a " * 20, 60, 60),  # no pair of neighbours in common
        ("the cat of the house of the cat " * 5, "the house of the cat of the house", 8, 2),
        (" ".join(map(str, [*range(60, 120), *range(60)])), " ".join(map(str, range(120))), 120, 2),
    ],
)
def test_long_sentences_that_repeat_themselves_are_aligned_at_once(hypothesis, reference, matches, chunks):
    assert align_words(hypothesis.split(), reference.split())[:2] == (matches, chunks)


class NoSynonyms:
    @staticmethod
    def synsets(word):
        return []


ENDINGS = st.sampled_from(["", "s", "ed", "ing"])
STEMS = ["walk", "talk", "jump", "house", "garden", "want", "help", "paint"]
PARAMETERS = st.tuples(st.floats(0.05, 0.95), st.floats(0.1, 4), st.floats(0, 1))


@st.composite
def sentences(draw, unique):
    words = draw(st.lists(st.sampled_from(STEMS), min_size=1, max_size=7, unique=unique))
    return [word + draw(ENDINGS) for word in words]


@settings(max_examples=60, deadline=None)
@given(sentences(unique=True), st.lists(sentences(unique=True), min_size=1, max_size=3), PARAMETERS)
def test_where_words_occur_once_it_is_the_score_of_nltk(hypothesis, references, parameters):
    options = dict(zip(("alpha", "beta", "gamma"), parameters))
    expected = meteor_score(references, hypothesis, wordnet=NoSynonyms, **options)
    texts = [" ".join(words) for words in (hypothesis, *references)]
    scores = meteor_scores(texts[:1], [texts[1:]], lang="en", tokenize="none", stages=["exact", "stem"], **options)
    assert scores["score"] == scores["sentence_meteor"] == pytest.approx(100 * expected)


@settings(max_examples=60, deadline=None)
@given(sentences(unique=False), sentences(unique=False))
def test_where_words_repeat_it_has_as_many_links_as_nltk_and_never_more_chunks(hypothesis, reference):
    texts = [" ".join(words) for words in (hypothesis, reference)]
    options = {"lang": "en", "tokenize": "none", "stages": ["exact", "stem"]}
    # without a penalty the score is a matter of links alone
    links = meteor_scores(texts[:1], texts[1:], gamma=0, **options)["score"]
    assert links == pytest.approx(100 * meteor_score([reference], hypothesis, wordnet=NoSynonyms, gamma=0))
    score = meteor_scores(texts[:1], texts[1:], **options)["score"]
    assert score >= 100 * meteor_score([reference], hypothesis, wordnet=NoSynonyms) - 1e-9


def test_the_example_of_the_paper():
    """Banerjee and Lavie 2005, section 2.2: two chunks, "the president" and "spoke to the audience"."""
    scores = meteor_scores(
        ["the president spoke to the audience"], ["the president then spoke to the audience"], lang="en"
    )
    assert [scores[name] for name in ("matches", "chunks", "hypothesis_len", "reference_len")] == [6, 2, 6, 7]
    precision, recall = 1, 6 / 7
    mean = 10 * precision * recall / (recall + 9 * precision)
    assert scores["score"] == pytest.approx(100 * mean * (1 - 0.5 * (2 / 6) ** 3))


def test_the_penalty_is_half_at_most_and_least_for_one_chunk():
    backwards = meteor_scores(["d c b a"], ["a b c d"])
    assert (backwards["chunks"], backwards["score"]) == (4, pytest.approx(50))
    assert meteor_scores(["a b c d"], ["a b c d"])["score"] == pytest.approx(100 * (1 - 0.5 / 4**3))
    # NLTK and a search for the fewest crossing links align each "the" with the nearer one: six chunks
    moved = meteor_scores(["on the mat sat the cat"], ["the cat sat on the mat"])
    assert (moved["matches"], moved["chunks"]) == (6, 3)


def test_the_parameters_of_2007_and_2014():
    texts = (["the president spoke to the audience"], ["the president then spoke to the audience"])
    precision, recall = 1, 6 / 7
    for alpha, beta, gamma in ((0.81, 0.83, 0.28), (0.7, 1.4, 0.3)):
        mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
        expected = 100 * mean * (1 - gamma * (2 / 6) ** beta)
        assert meteor_scores(*texts, alpha=alpha, beta=beta, gamma=gamma)["score"] == pytest.approx(expected)


def test_the_corpus_adds_up_the_best_reference_of_each_sentence():
    hypotheses = ["a b", "x c d e"]
    references = [["c d", "a b z"], "c d e"]  # 2 links in 1 chunk of 2 and 3 words; 3 in 1 of 4 and 3
    scores = meteor_scores(hypotheses, references, sentence_scores=True)
    first = (2 / 2) * (2 / 3) / (0.9 * 2 / 2 + 0.1 * 2 / 3) * (1 - 0.5 * (1 / 2) ** 3)
    second = (3 / 4) * (3 / 3) / (0.9 * 3 / 4 + 0.1 * 3 / 3) * (1 - 0.5 * (1 / 3) ** 3)
    corpus = (5 / 6) * (5 / 6) / (0.9 * 5 / 6 + 0.1 * 5 / 6) * (1 - 0.5 * (2 / 5) ** 3)
    assert scores["sentence_scores"] == pytest.approx([100 * first, 100 * second])
    assert scores["sentence_meteor"] == pytest.approx(50 * (first + second))
    assert scores["score"] == pytest.approx(100 * corpus)


def test_without_a_common_word_or_any_word_it_is_zero():
    scores = meteor_scores(["", "a", "", "a"], ["a", "", "", "b"], sentence_scores=True)
    assert scores["sentence_scores"] == [0, 0, 0, 0] and scores["score"] == 0


def test_words_are_those_of_bleu_in_small_letters():
    assert meteor_scores(["The END."], ["the end ."], lang="en")["matches"] == 3
    korean = meteor_scores(["고양이가 잔다"], ["고양이는 잔다"], lang="ko")
    assert (korean["matches"], korean["hypothesis_len"], korean["tokenize"]) == (5, 6, "char")


@pytest.mark.parametrize(
    ("lang", "hypothesis", "reference", "stages"),
    [
        ("en", "computer", "computers", ["exact", "stem"]),
        ("it_IT", "gatto", "gatti", ["exact", "stem"]),
        ("fr", "continue", "continuer", ["exact", "stem"]),
        ("ko", "a", "b", ["exact"]),
        (None, "computer", "computers", ["exact"]),
    ],
)
def test_words_of_one_stem_match_where_the_language_has_a_stemmer(lang, hypothesis, reference, stages, no_wordnet):
    scores = meteor_scores([hypothesis], [reference], lang=lang)
    assert scores["stages"] == stages
    assert scores["matches"] == ("stem" in stages)


@pytest.fixture
def no_wordnet(monkeypatch):
    use_wordnet(monkeypatch, [])


def use_wordnet(monkeypatch, folders):
    """Let NLTK find its data in these folders only, and nowhere else, whatever this machine has."""
    monkeypatch.setattr(nltk.data, "path", [str(folder) for folder in folders])
    monkeypatch.setattr(nltk, "download", None)
    monkeypatch.setattr(nltk.corpus, "wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))


@pytest.fixture
def small_wordnet(tmp_path, monkeypatch):
    """A WordNet of two sets of nouns: car, auto; auto, machine. In the file format of the real one."""
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    files = ["cntlist.rev", "index.sense", *(f"{kind}.exc" for kind in ("adj", "adv", "noun", "verb"))]
    files += [f"{name}.{kind}" for name in ("index", "data") for kind in ("adj", "adv", "verb")]
    for name in files:
        (folder / name).write_text("")
    (folder / "lexnames").write_text("00\tnoun.all\t1\n")
    first = "00000000 00 n 02 car 0 auto 0 000 | a set  \n"
    second = f"{len(first):08d} 00 n 02 auto 0 machine 0 000 | another  \n"
    (folder / "data.noun").write_text(first + second)
    offsets = {"auto": [0, len(first)], "car": [0], "machine": [len(first)]}
    lines = [
        f"{word} n {len(places)} 0 {len(places)} 0 {' '.join(f'{place:08d}' for place in places)}  \n"
        for word, places in offsets.items()
    ]
    (folder / "index.noun").write_text("".join(lines))
    use_wordnet(monkeypatch, [tmp_path])


@pytest.mark.filterwarnings("ignore:The multilingual functions are not available")
def test_synonyms_match_where_the_data_is_on_the_machine(small_wordnet):
    scores = meteor_scores(["the cars", "a machine", "a car"], ["the auto", "an auto", "a machine"], lang="en")
    assert scores["stages"] == ["exact", "stem", "synonym"]
    assert scores["matches"] == 2 + 1 + 1  # "car" and "machine" have no set in common
    without = meteor_scores(["the cars"], ["the auto"], lang="en", stages=["exact", "stem"])
    assert without["matches"] == 1 and without["stages"] == ["exact", "stem"]
    assert meteor_scores(["car"], ["auto"], lang="en", stages=["exact"])["stages"] == ["exact"]
    assert meteor_scores(["car"], ["auto"], lang="fr")["stages"] == ["exact", "stem"]


def test_synonyms_that_are_asked_for_and_not_there_are_an_error(no_wordnet):
    with pytest.raises(ImportError, match="needs the data 'wordnet' of nltk"):
        meteor_scores(["car"], ["auto"], lang="en", stages=["exact", "synonym"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.1}, "alpha is 1.1; allowed are numbers from 0 to 1"),
        ({"beta": -1}, "beta is -1"),
        ({"gamma": "x"}, "gamma is 'x'"),
        ({"stages": "exact"}, "stages is 'exact'; allowed is a list"),
        ({"stages": ["stem"]}, "stages is .*'exact' and, after it"),
        ({"stages": ["exact", "paraphrase"], "lang": "en"}, "stages is .*allowed"),
        ({"stages": ["exact", "stem"]}, "lang None; 'stem' is for ar, "),
        ({"stages": ["exact", "synonym"], "lang": "fr"}, "'synonym' for en"),
        ({"tokenize": "x"}, "tokenize is 'x'"),
    ],
)
def test_what_is_not_allowed_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        meteor_scores(["a"], ["a"], **options)


def test_the_metric_gives_the_same():
    texts = {"predictions": ["the cats sat", "a dog"], "references": [["the cat sat", "x"], "the dog"]}
    options = {"lang": "en", "stages": ["exact", "stem"], "sentence_scores": True}
    assert load_metric("meteor").compute(**texts, **options) == meteor_scores(*texts.values(), **options)
