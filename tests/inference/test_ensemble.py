"""Ensembles against loops that run every model anew for every piece, and against all outputs of a tiny vocabulary."""

import copy
import itertools
import math

import pytest
import torch

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator, translate
from hf_attn.inference.decoding import Decoding, decode_batch
from hf_attn.inference.ensemble import Ensemble
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration

from .conftest import PAIRS, SOURCES, new_marian, new_rnn, new_transformer, trained

FAMILIES = ("marian", "transformer", "bahdanau")


def mean_distribution(models, source_ids, target_ids):
    """Mean of the models' probabilities of each piece after `target_ids`, from whole forward passes, in float64."""
    total = None
    for model in models:
        with torch.no_grad():
            output = model(input_ids=torch.tensor([source_ids]), decoder_input_ids=torch.tensor([[1, *target_ids]]))
        values = [math.exp(value) for value in output.logits[0, -1].double().tolist()]
        shares = [value / sum(values) for value in values]
        total = shares if total is None else [a + b for a, b in zip(total, shares, strict=True)]
    return [value / len(models) for value in total]


def tiny_models():
    """Three families with six pieces (padding, start, end, and three more) and opinions of their own."""
    sizes = {
        "vocab_size": 6, "hidden_size": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_intermediate_size": 8, "decoder_intermediate_size": 8, "dropout": 0.0,
    }  # fmt: skip
    torch.manual_seed(5)
    models = [
        AttnTransformerForConditionalGeneration(AttnTransformerConfig(**sizes)),
        AttnRnnForConditionalGeneration(AttnRnnConfig(vocab_size=6, hidden_size=8, embedding_size=8, dropout=0.0)),
        new_marian(vocab_size=6),
    ]
    for model in models:
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(3)
    return [model.eval() for model in models]


def test_greedy_search_is_that_of_the_mean(tokenizer):
    models = [trained(name) for name in FAMILIES]
    results = Translator(models, tokenizer)(SOURCES[:3], return_attention=False, batch_size=2)
    assert len({result.text for result in results}) == 3
    for source, result in zip(SOURCES, results, strict=False):
        ids = []
        for log_prob in result.token_log_probs:
            shares = mean_distribution(models, tokenizer(source).input_ids, ids)
            best = max(range(len(shares)), key=shares.__getitem__)
            assert log_prob == pytest.approx(math.log(shares[best]), abs=1e-4)
            ids.append(best)
        assert tokenizer.convert_tokens_to_ids(result.target_tokens) == ids


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_of_all_outputs(length_penalty):
    models, source, longest = tiny_models(), [4, 3, 5, 4, 2], 3
    unfinished = [ids for length in range(longest) for ids in itertools.product((0, 1, 3, 4, 5), repeat=length)]
    shares = {ids: mean_distribution(models, source, ids) for ids in unfinished}
    scores = {}
    for ids in [(*start, piece) for start in unfinished for piece in range(6)]:
        if ids[-1] == 2 or len(ids) == longest:  # an output ends at the end piece, or at the longest length
            log_probs = [math.log(shares[ids[:i]][ids[i]]) for i in range(len(ids))]
            scores[ids] = sum(log_probs) / len(ids) ** length_penalty
    expected = sorted(scores, key=scores.__getitem__, reverse=True)[:8]
    assert len({len(ids) for ids in expected}) > 1
    decoding = Decoding(40, 8, longest, length_penalty, False, None)
    (found,) = decode_batch(Ensemble(models).eval(), decoding, [("", source)], [[]], {2}, 0)
    assert [tuple(ids) for ids, _ in found] == expected
    assert [truncated for _, truncated in found] == [ids[-1] != 2 for ids in expected]


def test_samples_follow_the_mean_distribution():
    models, source = tiny_models(), [4, 3, 5, 2]
    decoding = Decoding(1, 3000, 1, 1.0, True, 5)
    (samples,) = decode_batch(Ensemble(models).eval(), decoding, [("", source)], [[]], {2}, 0)
    counts = torch.bincount(torch.tensor([ids[0] for ids, _ in samples]), minlength=6) / 3000
    assert torch.allclose(counts.double(), torch.tensor(mean_distribution(models, source, [])).double(), atol=0.03)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_with_itself_is_itself(name, tokenizer):
    one = Translator(trained(name), tokenizer)
    two = Translator([trained(name), trained(name)], tokenizer)
    for options in ({}, {"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "seed": 2}):
        for alone, together in zip(one(SOURCES[:3], **options), two(SOURCES[:3], **options), strict=True):
            for a, b in zip(*(r if isinstance(r, list) else [r] for r in (alone, together)), strict=True):
                assert a.target_tokens == b.target_tokens
                assert a.token_log_probs == pytest.approx(b.token_log_probs, abs=1e-4)
                for weights in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
                    expected, given = getattr(a, weights), getattr(b, weights)
                    assert (expected is None) == (given is None)
                    assert expected is None or torch.allclose(expected, given, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"do_sample": True, "seed": 5}])
def test_a_result_does_not_depend_on_its_neighbours(tokenizer, options):
    translator = Translator([trained(name) for name in FAMILIES], tokenizer)
    alone = [translate(translator, source, **options) for source in SOURCES[::3]]
    assert alone == translate(translator, SOURCES[::3], **options)


def test_weights_are_the_mean_of_those_of_the_models(tokenizer):
    torch.manual_seed(5)
    models = [copy.deepcopy(trained("transformer")), new_transformer(initializer_range=0.2)]
    for model in models:
        model.config.alignment_method = "shifted_value_norm"
    result = Translator(models, tokenizer).score(*PAIRS[1])
    singles = [Translator(model, tokenizer).score(*PAIRS[1]) for model in models]
    for name in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
        first, second = (getattr(single, name) for single in singles)
        assert not torch.allclose(first, second, atol=1e-2)
        assert torch.allclose(getattr(result, name), (first + second) / 2, atol=1e-5)
    assert result.value_norms is None
    for position, log_prob in enumerate(result.token_log_probs):
        shares = [math.exp(single.token_log_probs[position]) for single in singles]
        assert log_prob == pytest.approx(math.log(sum(shares) / 2), abs=1e-4)


def test_the_recommended_alignment_is_kept_where_all_agree_but_for_norms(tokenizer):
    first, second = (
        new_transformer(alignment_method="shifted_value_norm", alignment_layer=0, initializer_range=spread)
        for spread in (0.02, 0.2)
    )
    agreed = Translator([first, second], tokenizer).score(*PAIRS[1])
    assert agreed.alignment().description == agreed.alignment(layer=0, method="shifted").description
    assert torch.equal(agreed.alignment().weights, agreed.alignment(layer=0, method="shifted").weights)
    differing = Translator([first, trained("transformer")], tokenizer).score(*PAIRS[1])
    assert torch.equal(differing.alignment().weights, differing.alignment(layer=1, method="weights").weights)


def test_weights_of_different_shapes_have_no_mean(tokenizer):
    rnn, transformer, without = (trained(name) for name in ("bahdanau", "transformer", "no-attention"))
    message = r"cross attentions \(1 layers of 1 heads, 2 layers of 4 heads\).*return_attention=False"
    with pytest.raises(ValueError, match=message):
        Translator([rnn, transformer], tokenizer)("Yes!")
    with pytest.raises(ValueError, match=r"\(none, 1 layers of 1 heads\)"):
        Translator([without, rnn], tokenizer)("Yes!")
    assert Translator([without, rnn], tokenizer)("Yes!", return_attention=False).text == "Sì!"
    assert Translator([without, without], tokenizer)("Yes!").cross_attentions is None
    fused = new_marian(attn_implementation="sdpa")
    with pytest.raises(ValueError, match="MarianMTModel gives no attention weights with attn_implementation='sdpa'"):
        Translator([trained("marian"), fused], tokenizer)("Yes!", max_new_tokens=3)


def test_folders(tmp_path, tokenizer):
    for name in ("bahdanau", "transformer"):
        trained(name).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    folders = [str(tmp_path / "bahdanau"), tmp_path / "transformer"]
    loaded = Translator([trained("bahdanau"), trained("transformer")], tokenizer)
    assert translate(folders, SOURCES, num_beams=2) == translate(loaded, SOURCES, num_beams=2)
    assert isinstance(Translator(folders[:1]).model, AttnRnnForConditionalGeneration)

    other = train_tokenizer([target for _, target in PAIRS], len(tokenizer) - 20)
    AttnRnnForConditionalGeneration(AttnRnnConfig(vocab_size=len(other), hidden_size=8)).save_pretrained(tmp_path / "o")
    other.save_pretrained(tmp_path / "o")
    with pytest.raises(ValueError, match="model 2 of 2 has another source vocabulary than the first"):
        Translator([folders[0], tmp_path / "o"])


def test_what_does_not_fit_together_is_refused(tokenizer):
    with pytest.raises(ValueError, match="model is an empty list"):
        Translator([], tokenizer)
    with pytest.raises(ValueError, match=r"model is tuple.*or a list of such"):
        Translator((trained("bahdanau"), trained("transformer")), tokenizer)
    with pytest.raises(ValueError, match=f"size of the target vocabulary: {len(tokenizer)}, 6"):
        Translator([trained("marian"), new_marian(vocab_size=6)], tokenizer)
    other_start = new_rnn(decoder_start_token_id=3)
    with pytest.raises(ValueError, match="differ in decoder_start_token_id: 1, 3"):
        Translator([trained("bahdanau"), other_start], tokenizer)


def test_the_shortest_positions_count(tokenizer):
    short, long = new_transformer(max_position_embeddings=9), new_transformer(max_position_embeddings=64)
    translator = Translator([long, new_rnn(), short], tokenizer)
    with pytest.warns(UserWarning, match="longer than 9 pieces"):
        result = translator("The old cat sleeps on the chair. " * 3, return_attention=False)
    assert len(result.source_tokens) == 9 and len(result.target_tokens) <= 9
