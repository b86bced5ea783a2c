"""Pieces into words, weights of pieces into weights of words."""

import json
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_attn.data.pieces import group_pieces
from hf_attn.data.words import split_words
from hf_attn.evaluation import find_failures
from hf_attn.inference.translation import ALIGNMENT_METHODS, Translation

END = None  # the span of "</s>"


def translation_of(source, source_spans, text, target_spans, weights, **fields):
    def tokens(sentence, spans):
        return ["</s>" if span is None else sentence[slice(*span)] for span in spans]

    return Translation(
        source=source,
        text=text,
        source_tokens=tokens(source, source_spans),
        target_tokens=tokens(text, target_spans),
        token_log_probs=[-1.0] * len(target_spans),
        score=-1.0,
        cross_attentions=weights,
        source_spans=source_spans,
        target_spans=target_spans,
        **fields,
    )


def random_weights(layers, heads, targets, sources):
    return torch.rand(layers, heads, targets, sources).softmax(dim=-1)


def example(layers=2, heads=3):
    """Korean particles and punctuation: "학교에 가요." cut into 학교 에 ▁가 요 . </s>"""
    source_spans = [(0, 2), (2, 3), (3, 5), (5, 6), (6, 7), END]
    text = "I go too."
    target_spans = [(0, 1), (1, 4), (4, 6), (6, 8), (8, 9), END]
    return translation_of("학교에 가요.", source_spans, text, target_spans, random_weights(layers, heads, 6, 6))


def test_words_are_merged_as_the_definition_says():
    translation = example()
    alignment = translation.alignment()
    assert alignment.source_words == ["학교에", "가요", ".", "</s>"]
    assert alignment.target_words == ["I", "go", "too", ".", "</s>"]
    source_groups = [[0, 1], [2, 3], [4], [5]]
    target_groups = [[0], [1], [2, 3], [4], [5]]
    last_layer = translation.cross_attentions[1]
    for target, target_pieces in enumerate(target_groups):
        for source, source_pieces in enumerate(source_groups):
            total = 0.0
            for head in range(3):
                for t in target_pieces:
                    for s in source_pieces:
                        total += float(last_layer[head, t, s])
            expected = total / 3 / len(target_pieces)
            assert float(alignment.weights[target, source]) == pytest.approx(expected, abs=1e-6)


def test_layers_and_heads_are_chosen_and_named():
    translation = example()
    weights = translation.cross_attentions
    assert torch.equal(translation.alignment(layer=0, heads=1, words=False).weights, weights[0, 1])
    chosen = translation.alignment(layer=1, heads=[0, 2], words=False)
    assert torch.allclose(chosen.weights, (weights[1, 0] + weights[1, 2]) / 2)
    assert chosen.description == "cross-attention weights, layer 2 of 2, mean of heads 1, 3 of 3"
    assert chosen.source_words == translation.source_tokens
    assert translation.alignment().description == "cross-attention weights, layer 2 of 2, mean of 3 heads"
    assert example(3, 1).alignment().description == "cross-attention weights, layer 3 of 3, head 1 of 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": 2}, "layer is 2; it must be a whole number from 0 to 1"),
        ({"layer": -1}, "layer is -1"),
        ({"layer": True}, "layer is True"),
        ({"heads": 3}, "heads is 3; it must be a whole number from 0 to 2"),
        ({"heads": [0, 7]}, "heads is 7"),
        ({"heads": []}, "empty list"),
        ({"heads": "all"}, "heads is 'all'"),
    ],
)
def test_wrong_layer_or_head_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        example().alignment(**arguments)


def test_what_has_no_alignment_says_why():
    without = translation_of("a", [(0, 1), END], "b", [(0, 1), END], None)
    with pytest.raises(ValueError, match="no cross-attention"):
        without.alignment()
    several = translation_of("a", [(0, 1), END], "b", [(0, 1), END], None, segments=[without, without])
    with pytest.raises(ValueError, match="2 lines"):
        several.alignment()
    with pytest.raises(ValueError, match="2 lines"):
        several.words()
    with pytest.raises(ValueError, match="empty source"):
        Translation("", "", [], [], [], 0.0).alignment()
    assert Translation("", "", [], [], [], 0.0).words().source_words == []


def cuts(text):
    """Hypothesis strategy: the text cut into pieces at any places, then "</s>"."""
    return st.sets(st.integers(1, max(len(text) - 1, 1))).map(
        lambda places: _spans([0, *sorted(p for p in places if p < len(text)), len(text)])
    )


def _spans(places):
    return [*[(a, b) for a, b in zip(places, places[1:], strict=False) if a < b], END]


SENTENCES = [
    "그는 학교에서 책을 읽었다.",
    "I don't know, it's John's!",
    "C'è l'homme de l'école ?",
    "family 👩‍👩‍👧‍👦 and ❤️ 🇰🇷",
    "?!... «»",
    "학교에",  # NFD: conjoining jamo
    "e\u0301te\u0301  d'été ",
    "x",
]


@given(data=st.data())
@pytest.mark.parametrize("text", SENTENCES)
def test_any_cut_gives_the_same_words_and_rows_that_sum_to_one(text, data):
    text = unicodedata.normalize("NFC", text)
    words = [text[start:end] for start, end in split_words(text)]
    assert "".join(words) == "".join(text.split())
    spans, other_spans = data.draw(cuts(text)), data.draw(cuts(text))
    weights = random_weights(1, 2, len(spans), len(other_spans))
    alignment = translation_of(text, other_spans, text, spans, weights).alignment()
    assert alignment.source_words == alignment.target_words == [*words, "</s>"]
    assert torch.allclose(alignment.weights.sum(dim=1), torch.ones(len(words) + 1), atol=1e-5)
    assert alignment.weights.min() >= 0


def test_a_piece_of_two_words_is_divided_between_them():
    words, pieces = group_pieces("so?!", ["so", "?!", "</s>"], [(0, 2), (2, 4), END])
    assert words == ["so", "?", "!", "</s>"]
    assert pieces == [[0], [1], [1], [2]]
    weights = torch.tensor([[[[0.5, 0.4, 0.1]]]])
    alignment = translation_of("so?!", [(0, 2), (2, 4), END], "x", [(0, 1)], weights).alignment()
    assert alignment.weights.tolist() == [pytest.approx([0.5, 0.2, 0.2, 0.1])]


def test_bytes_of_one_character_and_empty_spans_join_its_word():
    # three bytes of "뷁", of which the tokenizer may place the later ones at its end
    for byte_spans in ([(0, 1), (0, 1), (0, 1)], [(0, 1), (1, 1), (1, 1)]):
        words, pieces = group_pieces("뷁", ["뷁", "·", "·", "</s>"], [*byte_spans, END])
        assert words == ["뷁", "</s>"]
        assert pieces == [[0, 1, 2], [3]]


def test_white_space_goes_to_the_next_word_and_special_pieces_stay_in_place():
    words, pieces = group_pieces(" a  b ", ["<s>", "▁", "a", "▁▁", "b", "▁", "</s>"],
                                 [END, (0, 1), (1, 2), (2, 4), (4, 5), (5, 6), END])  # fmt: skip
    assert words == ["<s>", "a", "b", "</s>"]
    assert pieces == [[0], [1, 2], [3, 4, 5], [6]]


def test_words_without_pieces():
    # "cut off" lies behind the last piece; "b" is a character that the tokenizer dropped
    words, pieces = group_pieces("a b c cut off", ["a", "c", "</s>"], [(0, 1), (3, 5), END])
    assert words == ["a", "b", "c", "</s>"]
    assert pieces == [[0], [0], [1], [2]]
    assert group_pieces("b c", ["c"], [(2, 3)]) == (["b", "c"], [[0], [0]])
    assert group_pieces("", ["▁", "</s>"], [(0, 0), END]) == (["▁", "</s>"], [[0], [1]])


def test_tokens_need_spans():
    with pytest.raises(ValueError, match="spans has 0 entries"):
        group_pieces("a", ["a"], [])


def test_failures_are_those_of_the_sentence_or_of_its_lines():
    fine = Translation("I sleep.", "Je dors.", [], [], [], 0.0)
    cut = Translation("He has 3 dogs.", "Il a des", [], [], [], 0.0, truncated=True)
    assert fine.failures("en", "fr") == []
    assert [failure.kind for failure in cut.failures("en", "fr")] == ["truncated", "lost_number"]
    assert cut.failures() == find_failures("He has 3 dogs.", "Il a des", truncated=True)
    both = Translation("I sleep.\nHe has 3 dogs.", "Je dors.\nIl a des", [], [], [], 0.0, segments=[fine, cut])
    assert both.failures("en", "fr") == cut.failures("en", "fr")


def test_to_dict_can_be_written_as_json():
    translation = example()
    read = json.loads(json.dumps(translation.to_dict()))
    assert read["text"] == translation.text
    assert read["target_tokens"] == translation.target_tokens
    assert read["segments"] == []


def test_methods_read_the_weights_as_defined():
    translation = example()
    weights = translation.cross_attentions
    translation.value_norms = norms = torch.rand(2, 3, 6) + 0.1
    for layer, chosen in ((0, [1]), (1, [0, 2])):
        read = {}
        for method in ALIGNMENT_METHODS:
            alignment = translation.alignment(layer, chosen, words=False, method=method)
            assert torch.allclose(alignment.weights.sum(dim=1), torch.ones(6), atol=1e-5)
            read[method] = alignment.weights
            for target in range(6):
                row = min(target + 1, 5) if method.startswith("shifted") else target  # no step reads "</s>"
                scaled = [
                    sum(
                        float(weights[layer, h, row, s] * (norms[layer, h, s] if "norm" in method else 1))
                        for h in chosen
                    )
                    for s in range(6)
                ]
                expected = [value / sum(scaled) for value in scaled]
                assert alignment.weights[target].tolist() == pytest.approx(expected, abs=1e-5)
        assert len({tuple(values.flatten().tolist()) for values in read.values()}) == 4
    described = [translation.alignment(method=method).description for method in ALIGNMENT_METHODS]
    assert described == [
        "cross-attention weights, layer 2 of 2, mean of 3 heads",
        "cross-attention weights times value norms, layer 2 of 2, mean of 3 heads",
        "cross-attention weights of the step that reads the word, layer 2 of 2, mean of 3 heads",
        "cross-attention weights, times value norms, of the step that reads the word, layer 2 of 2, mean of 3 heads",
    ]


def test_a_shifted_word_is_the_mean_of_its_shifted_pieces():
    translation = example(1, 1)
    alignment = translation.alignment(method="shifted")
    pieces = translation.cross_attentions[0, 0]
    assert alignment.target_words[2] == "too"  # pieces 2 and 3
    rows = (pieces[3] + pieces[4]) / 2
    expected = [rows[0] + rows[1], rows[2] + rows[3], rows[4], rows[5]]
    assert torch.allclose(alignment.weights[2], torch.stack(expected), atol=1e-6)


def test_what_the_model_recommends_is_taken_where_nothing_else_is_said():
    translation = example(3, 3)
    translation.alignment_method, translation.alignment_layer, translation.alignment_heads = "shifted", 1, [2]
    name = "cross-attention weights of the step that reads the word"
    assert translation.alignment().description == f"{name}, layer 2 of 3, head 3 of 3"
    assert translation.alignment(layer=1).description == f"{name}, layer 2 of 3, head 3 of 3"
    assert translation.alignment(layer=0).description == f"{name}, layer 1 of 3, mean of 3 heads"  # of another layer
    assert translation.alignment(heads=0).description == f"{name}, layer 2 of 3, head 1 of 3"
    said = translation.alignment(heads=[0, 1, 2], method="weights").description
    assert said == "cross-attention weights, layer 2 of 3, mean of 3 heads"


def test_a_method_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="method is 'mean'; it must be one of weights, value_norm, shifted"):
        example().alignment(method="mean")
    with pytest.raises(ValueError, match="method is 'value_norm'; this model does not give the norms of its values"):
        example().alignment(method="value_norm")
