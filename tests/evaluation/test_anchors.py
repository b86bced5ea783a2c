# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Anchor accuracy by hand, tokens and words, and the floors that were measured with other code."""

import json
from pathlib import Path

import pytest

from hf_attn.data import load_pairs, text_words
from hf_attn.evaluation import anchor_accuracy, diagonal_links, load_anchors, train_ibm_model_1
from hf_attn.evaluation.anchors import AnchoredPair, anchor_tokens, join_tokens, token_links

DATA = Path(__file__).parents[3] / "shared" / "data"


def test_accuracy_by_hand():
    pairs = [
        AnchoredPair(list("abcd"), list("wxyz"), [(1, 2, 0, 1), (3, 3, 3, 3)]),
        AnchoredPair(list("ab"), list("yz"), [(0, 0, 1, 1)]),
    ]
    # token 0: 1, inside; token 1: 3, outside; token 2: not anchored; token 3: no link. Second pair: right.
    hypotheses = [{(1, 0), (3, 1), (0, 2)}, {(0, 1), (1, 0)}]
    assert anchor_accuracy(hypotheses, pairs) == {"anchor_accuracy": 2 / 4, "anchored_tokens": 4}
    with pytest.raises(ValueError, match="hypotheses has 1 sentences and pairs 2"):
        anchor_accuracy(hypotheses[:1], pairs)
    with pytest.raises(ValueError, match="no anchored token"):
        anchor_accuracy([set()], [AnchoredPair(["a"], ["b"], [])])


def test_tokens_are_written_as_people_type():
    text, spans = join_tokens(["Fate", "clic", "su", "(", "OK", ")", ".", "L", "'", "icona", "“", "A", "”", "!"])
    assert text == "Fate clic su (OK). L'icona “A”!"
    assert [text[start:end] for start, end in spans] == anchor_tokens(text)
    assert join_tokens([]) == ("", [])


def test_links_of_words_become_links_of_tokens():
    source, target = ["the", "don", "'", "t", "box"], ["nell", "'", "elenco", "sf_test", "."]
    assert text_words(join_tokens(source)[0]) == ["the", "don't", "box"]
    assert text_words(join_tokens(target)[0]) == ["nell'", "elenco", "sf", "_", "test", "."]
    links = {(2, 0), (1, 1), (0, 2), (2, 3), (2, 4)}
    # "nell'" is two tokens; "don't" stands for its first; "sf_test" takes the word with the lowest source word
    assert token_links(links, source, target) == {(4, 0), (4, 1), (1, 2), (0, 3)}


def test_a_file_and_its_mistakes(tmp_path):
    path = tmp_path / "anchors.jsonl"
    row = {"src": ["e\u0301", "b"], "tgt": ["c"], "spans": [[0, 1, 0, 0]]}
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert load_anchors(path) == [AnchoredPair(["é", "b"], ["c"], [(0, 1, 0, 0)])]
    for wrong, message in (
        ({"src": []}, "line 2: must hold src, tgt and spans"),
        ({**row, "spans": [[0, 1, 0]]}, "line 2: must hold"),
        ({**row, "spans": [[0, 2, 0, 0]]}, "line 2: a span lies outside its 2 and 1 tokens"),
        ({**row, "spans": [[1, 0, 0, 0]]}, "outside"),
        ([], "must hold"),
    ):
        path.write_text(json.dumps(row) + "\n" + json.dumps(wrong) + "\n", encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            load_anchors(path)


@pytest.mark.parametrize(
    ("pair", "diagonal", "ibm"),
    [("en-ko", 0.450, 0.859), pytest.param("en-it", 0.743, 0.846, marks=pytest.mark.slow)],
)
def test_the_floors_are_those_published_with_the_data(pair, diagonal, ibm):
    """The numbers stand in the data's README: 5 iterations on the training file and the anchored sentences."""
    if not DATA.is_dir():
        pytest.skip(f"there is no {DATA}")
    anchors = load_anchors(DATA / f"lohelp.{pair}.anchors.jsonl")
    links = [diagonal_links(len(one.source), len(one.target)) for one in anchors]
    assert anchor_accuracy(links, anchors)["anchor_accuracy"] == pytest.approx(diagonal, abs=5e-4)
    lang = pair[3:]
    train = load_pairs(DATA / f"lohelp.{pair}.train.tsv", "en", lang)["translation"]
    words = [(anchor_tokens(row["en"]), anchor_tokens(row[lang])) for row in train]
    model = train_ibm_model_1([*words, *((one.source, one.target) for one in anchors)])
    links = [model.links(one.source, one.target) for one in anchors]
    assert anchor_accuracy(links, anchors)["anchor_accuracy"] == pytest.approx(ibm, abs=5e-4)
