"""Forced prefixes against transformers' own prompts; the coverage penalty against loops over single weights."""

import math

import pytest
import torch

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator, translate

from .conftest import PAIRS, SOURCES, new_marian, trained
from .test_translator import generate_one, step_by_step_log_probs


def pieces(tokenizer, text):
    return tokenizer(text).input_ids[:-1]


@pytest.mark.parametrize("beams", [1, 3])
def test_a_prefix_is_a_prompt_of_generate(model, tokenizer, beams):
    options = {"num_beams": beams, "num_return_sequences": beams, "length_penalty": 0.0}
    prefixes = ["La", "Le chat vieux", "Je", ""]
    results = Translator(model, tokenizer)(SOURCES[:4], prefix=prefixes, max_new_tokens=24, **options)
    free = translate(Translator(model, tokenizer), SOURCES[:4], max_new_tokens=24)
    for source, prefix, candidates, own in zip(SOURCES, prefixes, results, free, strict=False):
        forced = pieces(tokenizer, prefix) if prefix else []
        prompt = torch.tensor([[1, *forced]])
        _, expected = generate_one(
            model, tokenizer, source, **options, early_stopping=False, decoder_input_ids=prompt,
            max_new_tokens=24 - len(forced),
        )  # fmt: skip
        candidates = candidates if beams > 1 else [candidates]
        assert [tokenizer.convert_tokens_to_ids(c.target_tokens) for c in candidates] == expected
        assert all(candidate.text.startswith(prefix) for candidate in candidates)
        assert candidates[0].text == own or prefix not in ("Je", "")
        ids = expected[0]
        log_probs = step_by_step_log_probs(model, tokenizer, source, ids)
        assert candidates[0].token_log_probs == pytest.approx(log_probs, abs=1e-4)
        assert candidates[0].score == pytest.approx(sum(log_probs), abs=1e-3)  # the prefix counts


def test_the_score_of_a_beam_counts_the_prefix(marian, tokenizer):
    beams = Translator(marian, tokenizer)(SOURCES[1], prefix="La fille", num_beams=4, num_return_sequences=4)
    assert len({beam.text for beam in beams}) == 4
    for beam in beams:
        assert beam.score == pytest.approx(sum(beam.token_log_probs) / len(beam.token_log_probs))
    assert beams == sorted(beams, key=lambda beam: -beam.score)


def test_one_prefix_for_all_and_one_for_each(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    for text in translate(translator, SOURCES, prefix="Maria "):
        assert text.startswith("Maria")
    together = translate(translator, SOURCES[:3], prefix=["La", "", "Maria n'a pas"], num_beams=2, batch_size=3)
    assert together == [
        translate(translator, SOURCES[0], prefix="La", num_beams=2),
        translate(translator, SOURCES[1], num_beams=2),
        translate(translator, SOURCES[2], prefix="Maria n'a pas", num_beams=2),
    ]
    assert translate(translator, [], prefix=[]) == [] == translate(translator, [], prefix="La")


def test_samples_and_ensembles_begin_with_the_prefix(tokenizer):
    translator = Translator([trained("marian"), trained("bahdanau")], tokenizer)
    samples = translate(translator, SOURCES[1], prefix="La maison", do_sample=True, seed=3, num_return_sequences=8)
    assert len(set(samples)) > 1 and all(text.startswith("La maison") for text in samples)
    assert translate(translator, SOURCES[1], prefix="La", num_beams=2).startswith("La")


def test_the_first_line_with_text_gets_the_prefix(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    first, second, third = translate(translator, "\nThe cat sleeps.\nYes!", prefix="La").split("\n")
    assert (first, third) == ("", translate(translator, "Yes!"))
    assert second == translate(translator, "The cat sleeps.", prefix="La") and second.startswith("La")
    assert translate(translator, ["", " "], prefix="La") == ["", ""]


def test_prefixes_that_cannot_be(marian, tokenizer):
    translator = Translator(marian, tokenizer)
    for texts, options, message in (
        (["a", "b"], {"prefix": ["Le"]}, "prefix has 1 entries for 2 texts"),
        ("a", {"prefix": "Le\nla"}, "prefix has several lines"),
        ("a", {"prefix": "Le chat", "max_new_tokens": 2}, "prefix has 2 pieces, but an output has at most 2"),
    ):
        with pytest.raises(ValueError, match=message):
            translator(texts, **options)
    for texts, prefix in (("a", ["Le"]), ("a", None), (["a"], [3])):
        with pytest.raises(TypeError, match="prefix"):
            translator(texts, prefix=prefix)
    with pytest.warns(UserWarning, match="longer than 64"), pytest.raises(ValueError, match="more than the 64 pieces"):
        translator("a", prefix="Le chat " * 40)
    assert len(pieces(tokenizer, "Le chat")) == 2
    words = train_tokenizer([sentence for pair in PAIRS for sentence in pair], 100, kind="word")
    with pytest.raises(ValueError, match="prefix is 'Le zèbre', of which the tokenizer does not know every word"):
        Translator(new_marian(vocab_size=len(words)), words)("Yes!", prefix="Le zèbre")
    assert len(translator("Yes!", prefix="Le chat", max_new_tokens=3).target_tokens) == 3


def gnmt_score(translation, alpha, beta):
    """Equation 14 of Wu 2016 over single numbers."""
    length = len(translation.target_tokens)
    penalty = (5 + length) ** alpha / (5 + 1) ** alpha
    last_layer = translation.cross_attentions[-1].tolist()
    coverage = 0.0
    for source in range(len(translation.source_tokens)):
        received = 0.0
        for target in range(length):
            received += sum(head[target][source] for head in last_layer) / len(last_layer)
        coverage += math.log(min(received, 1.0))
    return sum(translation.token_log_probs) / penalty + beta * coverage


@pytest.mark.parametrize("name", ["marian", "transformer", "bahdanau"])
def test_coverage_ranks_the_beams_by_gnmt(name, tokenizer):
    translator = Translator(trained(name), tokenizer)
    alpha, beta, changed = 0.6, 2.0, 0
    for source in SOURCES[1:5]:
        beams = translator(source, num_beams=5, num_return_sequences=5, length_penalty=alpha)
        expected = sorted(beams, key=lambda beam: -gnmt_score(beam, alpha, beta))
        options = {"num_beams": 5, "length_penalty": alpha, "coverage_penalty": beta}
        ranked = translator(source, num_return_sequences=3, **options)
        assert [beam.text for beam in ranked] == [beam.text for beam in expected[:3]]
        for given, beam in zip(ranked, expected, strict=False):
            assert given.score == pytest.approx(gnmt_score(beam, alpha, beta), abs=1e-3)
        changed += expected[0].text != beams[0].text
        bare = translator(source, return_attention=False, **options)
        assert bare.text == expected[0].text and bare.score == pytest.approx(ranked[0].score, abs=1e-5)
        assert bare.cross_attentions is bare.encoder_attentions is bare.decoder_attentions is None
    assert changed > 0


def test_no_coverage_leaves_the_length_penalty_of_gnmt(marian, tokenizer):
    for beam in Translator(marian, tokenizer)(SOURCES[1], num_beams=3, num_return_sequences=3, coverage_penalty=0.0):
        assert beam.score == pytest.approx(6 * sum(beam.token_log_probs) / (5 + len(beam.target_tokens)), abs=1e-5)


def test_coverage_of_several_lines(marian, tokenizer):
    options = {"num_beams": 3, "coverage_penalty": 0.5, "length_penalty": 0.8}
    result = Translator(marian, tokenizer)("Yes!\n\nThe cat sleeps.", **options)
    length = len(result.target_tokens)
    expected = sum(result.token_log_probs) / ((5 + length) / 6) ** 0.8
    for line in (result.segments[0], result.segments[2]):
        expected += gnmt_score(line, 0.8, 0.5) - gnmt_score(line, 0.8, 0.0)
    assert result.score == pytest.approx(expected, abs=1e-4)


def test_coverage_that_cannot_be(tokenizer, marian):
    with pytest.raises(ValueError, match="coverage_penalty is 0.2, but this model has no cross-attention"):
        Translator(trained("no-attention"), tokenizer)("Yes!", num_beams=2, coverage_penalty=0.2)
    translator = Translator(marian, tokenizer)
    for options, message in (
        ({"coverage_penalty": 0.2}, "coverage_penalty is 0.2 with num_beams=1"),
        ({"coverage_penalty": -1.0, "num_beams": 2}, "coverage_penalty is -1.0; it must be a finite number"),
        ({"coverage_penalty": math.nan, "num_beams": 2}, "coverage_penalty is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            translator("Yes!", **options)
