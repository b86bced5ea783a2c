"""Labels made of plain text: what is taken away comes back, and nothing that is left tells the label."""

import unicodedata

import pytest

from hf_attn.data import phrasebook
from hf_attn.data.labels import (
    TAGS,
    part_labels,
    punctuation_examples,
    question_examples,
    restore,
    tag_words,
)


def sentences(count=300):
    return [pair["en"] for pair in phrasebook("en-it", "train", count)["translation"]]


@pytest.mark.parametrize(
    ("text", "words", "tags"),
    [
        ("Yes.", "yes", "upper."),
        ("And God said, “Let there be light.”", "and god said let there be light",
         "upper upper lower, upper lower lower lower."),
        ("Who—who is it?", "who who is it", "upper, lower lower lower?"),
        ("“Is it?” he asked.", "is it he asked", "upper lower? lower lower."),
        ("Don’t! It’s (so) well-known…", "don’t it’s so well-known", "upper. upper lower lower."),
        ("5,000 men: 3.5", "5,000 men 3.5", "lower lower, lower"),
        ("ÉTÉ, l'été", "été l'été", "upper, lower"),
        ("a,?! b", "a b", "lower? lower"),
        ("— Why", "why", "upper"),
        ("...", "", ""),
    ],
)  # fmt: skip
def test_words_and_tags_say_what_is_written(text, words, tags):
    assert tag_words(text) == (words.split(), tags.split())


def test_what_a_tagger_reads_has_neither_case_nor_marks():
    for sentence in sentences():
        words, tags = tag_words(sentence)
        assert set(tags) <= set(TAGS) and len(words) == len(tags) == len(sentence.split())
        for word in words:
            assert word == word.lower()
            assert not any(unicodedata.category(letter).startswith("P") for letter in word.replace("'", ""))


def test_a_sentence_comes_back_from_words_and_tags():
    for sentence in sentences():
        assert restore(*tag_words(sentence)) == sentence


def test_tags_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="for each of the 2 words"):
        restore(["a", "b"], ["lower"])
    with pytest.raises(ValueError, match="must be one of lower, "):
        restore(["a"], ["B-place"])


def test_runs_of_words_go_on_across_lines_and_lose_nothing_but_the_rest():
    lines = sentences(50)
    examples = punctuation_examples(lines, words=7)
    words, tags = tag_words(" ".join(lines))
    whole = len(words) // 7 * 7
    assert len(words) % 7 and len(examples) == len(words) // 7
    assert [word for run in examples["tokens"] for word in run] == words[:whole]
    assert [tag for run in examples["tags"] for tag in run] == tags[:whole]
    assert any(not run[-1].endswith((".", "?")) for run in examples["tags"])
    with pytest.raises(ValueError, match="at least words=7 words, got 1"):
        punctuation_examples(["One."], words=7)
    with pytest.raises(ValueError, match="words=0"):
        punctuation_examples(lines, words=0)


def test_there_are_as_many_questions_as_statements_and_no_mark_tells_them_apart():
    lines = sentences(400)
    examples = question_examples(lines, seed=1)
    labels = list(examples["label"])
    assert labels.count("question") == labels.count("statement") == sum(line.endswith("?") for line in lines)
    written = {" ".join(tag_words(line)[0]): line for line in lines}
    for text, label in zip(examples["text"], labels):
        assert (label == "question") == written[text].endswith("?")
        assert text == text.lower() and "?" not in text and "." not in text
    assert list(question_examples(lines, seed=2)["text"]) != list(examples["text"])


def test_questions_need_both_kinds():
    with pytest.raises(ValueError, match="got 1 and 0"):
        question_examples(["It is.", "It is."])


def test_lines_get_the_part_that_they_stand_in():
    lines = ["In the beginning", "it was", "One day", "In the end", "it was not"]
    boundaries = [("In the beg", "first"), ("One", "second"), ("In the end", "first")]
    assert part_labels(lines, boundaries) == ["first", "first", "second", "first", "first"]


@pytest.mark.parametrize(
    ("boundaries", "message"),
    [
        ([("it was", "a")], "2 lines begin with 'it was'"),
        ([("In", "a"), ("Nowhere", "b")], "0 lines begin with 'Nowhere'"),
        ([("One", "a")], "first line of the text"),
        ([("In", "a"), ("Then", "b"), ("One", "c")], "0 lines begin with 'One'"),
        ([], "first line of the text"),
    ],
)
def test_boundaries_that_are_not_in_one_place_are_refused(boundaries, message):
    lines = ["In the beginning", "it was", "One day", "it was not", "Then"]
    with pytest.raises(ValueError, match=message):
        part_labels(lines, boundaries)
