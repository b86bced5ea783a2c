"""Beam search is what it says: exhaustive where it is wide enough, a plain loop's where not, ranked by one formula."""

import pytest
import reference_search
import torch
from contract import Case, cases

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator

END = 2


def small_vocabulary(case: Case, size: int) -> dict:
    """Options that make the target's vocabulary small, in a joint vocabulary the source's too."""
    joint = getattr(case.config(), "decoder_vocab_size", None) is None
    return {"vocab_size": size} if joint else {"decoder_vocab_size": size}


def search(model, source, **options):
    """What `generate` finds: its outputs without start token and padding, as (tokens, score)."""
    output = model.generate(source, return_dict_in_generate=True, output_scores=True, **options)
    start = output.sequences.shape[1] - output.beam_indices.shape[1]
    lengths = (output.beam_indices >= 0).sum(dim=1).tolist()  # padding and a chosen padding token look alike
    rows = zip(output.sequences.tolist(), lengths, output.sequences_scores.tolist(), strict=True)
    return [(tuple(row[start : start + length]), score) for row, length, score in rows]


def assert_found(found, expected):
    """Same outputs with the same scores, in the same order."""
    assert [tokens for tokens, _ in found] == [one.tokens for one in expected]
    assert [score for _, score in found] == pytest.approx([one.score for one in expected], abs=1e-4)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 50), marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("case", cases(generates=True))
def test_wide_beam_search_is_exhaustive(case, seeds):
    """With as many beams as there are prefixes; a state that did not move with its beam would be seen."""
    written = set()
    for seed in seeds:
        model = case.model(seed=seed, sharpness=(1.5, 3.0)[seed % 2], **small_vocabulary(case, 5))
        source = torch.randint(3, model.config.vocab_size, (1, 4), generator=torch.Generator().manual_seed(seed))
        penalty = (1.0, 0.0, 2.0, -1.0)[seed % 4]
        options = {"num_beams": 125, "length_penalty": penalty, "early_stopping": "never"}
        found = search(model, source, max_new_tokens=4, num_return_sequences=10, **options)
        asking = reference_search.asking(model, source)
        expected = reference_search.exhaustive_search(asking, END, 4, penalty)
        scores = {one.tokens: one.score for one in expected}
        assert found[0][0] == expected[0].tokens
        assert [score for _, score in found] == pytest.approx([one.score for one in expected[:10]], abs=1e-4)
        assert [score for _, score in found] == pytest.approx([scores[tokens] for tokens, _ in found], abs=1e-4)
        written |= {tokens for tokens, _ in found}
    assert len(written) > 20 and len({len(tokens) for tokens in written}) > 1


@pytest.mark.parametrize("case", cases(generates=True))
def test_beam_search_is_the_plain_loop(case):
    model = case.model(sharpness=2.0, **small_vocabulary(case, 11))
    sources = torch.randint(3, model.config.vocab_size, (2, 5), generator=torch.Generator().manual_seed(1))
    lengths = set()
    for row in range(2):
        asking = reference_search.asking(model, sources[row : row + 1])
        end = reference_search.greedy_search(asking, end=-1, longest=4)[-1]  # a token that the model likes to write
        for early_stopping in (False, True, "never"):
            for penalty in (1.0, 0.0, 2.5, -0.5):
                options = {"num_beams": 4, "early_stopping": early_stopping, "length_penalty": penalty}
                expected = reference_search.beam_search(asking, end, 6, **options)
                options |= {"num_return_sequences": 4, "eos_token_id": end}
                found = search(model, sources, max_new_tokens=6, **options)
                assert_found(found[4 * row : 4 * row + 4], expected)
                lengths |= {len(tokens) for tokens, _ in found}
    assert len(lengths) > 2


@pytest.mark.parametrize("case", cases(generates=True, variants=False, seq2seq=True))
def test_the_start_and_a_prompt_count_neither_in_the_score_nor_in_the_length(case):
    model = case.model(seed=1, sharpness=2.0, **small_vocabulary(case, 11))
    source = torch.randint(3, model.config.vocab_size, (1, 5), generator=torch.Generator().manual_seed(2))
    asking = reference_search.asking(model, source, prompt=(5, 7))
    expected = reference_search.beam_search(asking, END, 5, num_beams=3, length_penalty=1.5)
    for prompt in ([[1, 5, 7]], [[5, 7]]):  # `generate` puts the start token in front
        options = {"decoder_input_ids": torch.tensor(prompt), "num_beams": 3, "num_return_sequences": 3}
        assert_found(search(model, source, max_new_tokens=5, length_penalty=1.5, **options), expected)


@pytest.mark.parametrize("case", cases(generates=True, variants=False, seq2seq=True))
def test_the_translator_searches_and_scores_by_the_same_formula(case):
    tokenizer = train_tokenizer(["un due tre quattro cinque sei", "one two three four five six"], 40, kind="word")
    model = case.model(seed=3, sharpness=2.0, vocab_size=len(tokenizer))
    text = "one two five"
    asking = reference_search.asking(model, tokenizer(text, return_tensors="pt").input_ids)
    translator, scores = Translator(model, tokenizer), []
    for penalty in (1.0, 0.0, 2.0, -0.5):
        options = {"num_beams": 4, "length_penalty": penalty}
        expected = reference_search.beam_search(asking, END, 7, **options)
        found = translator(text, max_new_tokens=7, num_return_sequences=4, **options)
        ids = [tuple(tokenizer.convert_tokens_to_ids(one.target_tokens)) for one in found]
        assert_found([*zip(ids, (one.score for one in found), strict=True)], expected)
        scores += [one.score for one in found]
    assert len(set(scores)) > 4
