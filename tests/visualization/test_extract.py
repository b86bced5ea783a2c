"""Weights collected from `generate()` equal those of one teacher-forced pass over the sequences it returned."""

import pytest
import torch
from contract import cases
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translation, Translator
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.visualization import attentions_from_generate, to_bertviz

KINDS = ("cross_attentions", "encoder_attentions", "decoder_attentions")
SPECIAL = {"vocab_size": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
STACK = {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 4}
WIDTHS = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 40}
GENERATE = {"max_new_tokens": 10, "output_attentions": True, "return_dict_in_generate": True}


def scaled(model, seed):
    """Give a model larger random weights, as at their usual size one piece wins every step and beams are all alike."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "position" not in name:
                parameter.normal_(0, 4 * 0.15)
    return model.eval()


def marian(seed, attention="eager"):
    config = MarianConfig(**SPECIAL, **STACK, **WIDTHS, forced_eos_token_id=None, attn_implementation=attention)
    return scaled(MarianMTModel(config), seed)


def bart(seed):
    # the start piece is also the end piece, as in the published checkpoints
    special = SPECIAL | {"decoder_start_token_id": 2}
    config = BartConfig(**special, **STACK, **WIDTHS, forced_eos_token_id=None, attn_implementation="eager")
    return scaled(BartForConditionalGeneration(config), seed)


def t5(seed):
    config = T5Config(
        **(SPECIAL | {"decoder_start_token_id": 0}),
        d_model=16,
        d_kv=4,
        d_ff=32,
        num_layers=2,
        num_heads=4,
        attn_implementation="eager",
    )
    return scaled(T5ForConditionalGeneration(config), seed)


def our_transformer(seed):
    config = AttnTransformerConfig(
        **SPECIAL,
        **STACK,
        hidden_size=16,
        encoder_intermediate_size=32,
        decoder_intermediate_size=32,
        max_position_embeddings=40,
        attn_implementation="sdpa",
    )
    return scaled(AttnTransformerForConditionalGeneration(config), seed)


def our_rnn(seed, attention_type="bahdanau"):
    config = AttnRnnConfig(**SPECIAL, hidden_size=16, embedding_size=16, attention_type=attention_type)
    return scaled(AttnRnnForConditionalGeneration(config), seed)


def ragged_batch():
    ids = torch.tensor([[5, 9, 17, 30, 8, 11, 2], [33, 6, 12, 2, 0, 0, 0], [7, 21, 21, 4, 39, 2, 0]])
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def lengths(sequences, prompt_len, eos_token_id=2):
    """Count for every sequence the steps up to and with the first end piece."""
    chosen = [row[prompt_len:].tolist() for row in sequences]
    return [row.index(eos_token_id) + 1 if eos_token_id in row else len(row) for row in chosen]


def check_against_teacher_forcing(model, batch, output, collected, prompt_len=1):
    sequences = output.sequences
    copies = len(sequences) // len(batch["input_ids"])
    batch = {name: tensor.repeat_interleave(copies, dim=0) for name, tensor in batch.items()}
    with torch.no_grad():
        forced = model(**batch, decoder_input_ids=sequences[:, :-1], output_attentions=True)
    for kind in KINDS:
        expected = getattr(forced, kind)
        if not expected:
            assert getattr(collected, kind) is None
            continue
        expected = torch.stack(tuple(expected), dim=1)
        weights = getattr(collected, kind)
        assert weights.shape == expected.shape and weights.dtype == torch.float32
        for row, steps in enumerate(lengths(sequences, prompt_len)):
            rows = expected.shape[-2] if kind == "encoder_attentions" else prompt_len - 1 + steps
            torch.testing.assert_close(weights[row, :, :, :rows], expected[row, :, :, :rows], atol=1e-5, rtol=0)
            assert (weights[row, :, :, rows:] == 0).all()


def test_beams_are_followed():
    crossed, padded, pieces = 0, 0, set()
    for seed in range(5):
        model, batch = marian(seed), ragged_batch()
        model.final_logits_bias[0, 2] = 2.0  # so that hypotheses end at different steps
        output = model.generate(**batch, num_beams=4, num_return_sequences=2, **GENERATE)
        assert len(output.sequences) == 6
        check_against_teacher_forcing(model, batch, output, attentions_from_generate(output))
        crossed += int((output.beam_indices % 4 > 0).sum())
        padded += int((output.beam_indices < 0).sum())
        pieces |= set(output.sequences.flatten().tolist())
    assert len(pieces) > 10 and crossed > 20 and padded > 0  # otherwise beam 0 throughout would pass as well


@pytest.mark.parametrize("family", [marian, bart, t5, our_transformer, our_rnn])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 3, "do_sample": True},
    ],
    ids=["greedy", "sampling", "beam", "beam-sampling"],
)
def test_every_family_and_way_of_decoding(family, options):
    model, batch = family(1), ragged_batch()
    varied = {"no_repeat_ngram_size": 1, "min_new_tokens": 5}  # some would repeat one piece, or end at once
    output = model.generate(**batch, **options, **GENERATE, **varied)
    assert len(set(output.sequences.flatten().tolist())) > 4
    check_against_teacher_forcing(model, batch, output, attentions_from_generate(output, eos_token_id=[2]))


@pytest.mark.parametrize(
    "options",
    [
        {"use_cache": False},
        {"cache_implementation": "static"},
        {"decoder_input_ids": torch.tensor([[1, 14, 15]] * 3)},
        {"decoder_input_ids": torch.tensor([[1, 14, 15]] * 3), "use_cache": False, "num_beams": 3},
    ],
    ids=["no-cache", "static-cache", "prompt", "prompt-beam-no-cache"],
)
def test_caches_and_prompts(options):
    model, batch = marian(3), ragged_batch()
    output = model.generate(**batch, **options, **GENERATE)
    prompt_len = options["decoder_input_ids"].shape[1] if "decoder_input_ids" in options else 1
    collected = attentions_from_generate(output, eos_token_id=2)
    check_against_teacher_forcing(model, batch, output, collected, prompt_len)


def test_an_end_piece_ends_greedy_rows_only_if_told():
    model, batch = marian(0), ragged_batch()
    end = int(model.generate(**batch, **GENERATE, no_repeat_ngram_size=1).sequences[0, 4])
    output = model.generate(**batch, **GENERATE, no_repeat_ngram_size=1, eos_token_id=end)
    ends = lengths(output.sequences, 1, end)
    assert min(ends) < max(ends)
    told = attentions_from_generate(output, eos_token_id=end).cross_attentions
    untold = attentions_from_generate(output).cross_attentions
    row = ends.index(min(ends))
    assert (told[row, :, :, min(ends) :] == 0).all()
    torch.testing.assert_close(untold.sum(dim=-1), torch.ones(untold.shape[:-1]))


def test_a_family_without_attention_has_none():
    output = our_rnn(0, "none").generate(**ragged_batch(), **GENERATE)
    assert attentions_from_generate(output) == (None, None, None)


def test_what_is_refused():
    batch = ragged_batch()
    with pytest.raises(ValueError, match="attn_implementation='eager'"):
        attentions_from_generate(marian(0, "sdpa").generate(**batch, **GENERATE))
    with pytest.raises(ValueError, match="output_attentions=True"):
        attentions_from_generate(marian(0).generate(**batch, max_new_tokens=3, return_dict_in_generate=True))
    with pytest.raises(ValueError, match="Tensor"):
        attentions_from_generate(marian(0).generate(**batch, max_new_tokens=3))
    decoder = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=40, eos_token_id=2, bos_token_id=1))
    with pytest.raises(ValueError, match="encoder-decoder"):
        attentions_from_generate(decoder.generate(batch["input_ids"][:1], pad_token_id=0, **GENERATE))


def test_bertviz_arguments(make_translation):
    translation = make_translation("the cat sleeps", "il gatto dorme")
    arguments = to_bertviz(translation)
    # what bertviz checks: (1, heads, queries, keys) for each layer, and as many labels as queries and keys
    labels = {"encoder": ("encoder", "encoder"), "decoder": ("decoder", "decoder"), "cross": ("decoder", "encoder")}
    for kind, (query, key) in labels.items():
        layers = arguments[f"{kind}_attention"]
        assert len(layers) == 2
        for number, layer in enumerate(layers):
            assert layer.shape == (1, 3, len(arguments[f"{query}_tokens"]), len(arguments[f"{key}_tokens"]))
            assert torch.equal(layer[0], getattr(translation, f"{kind}_attentions")[number])
    assert arguments["encoder_tokens"] == ["the", "cat", "sleeps", "</s>"]
    assert arguments["decoder_tokens"] == ["<s>→il", "il→gatto", "gatto→dorme", "dorme→</s>"]


def test_bertviz_arguments_of_a_recurrent_model(make_translation):
    arguments = to_bertviz(make_translation("the cat", "il gatto", layers=1, heads=1, self_attention=False))
    assert set(arguments) == {"cross_attention", "encoder_tokens", "decoder_tokens"}
    assert arguments["decoder_tokens"] == ["il", "gatto", "</s>"]


@pytest.mark.parametrize("case", cases(generates=True, seq2seq=True))
def test_bertviz_arguments_of_every_family(case):
    """What bertviz 1.4's `model_view` and `head_view` check of a translation by a real model."""
    tokenizer = train_tokenizer(["the old cat sees a dog", "il vecchio gatto vede un cane"] * 3, 300)
    sizes = {name: 300 for name in ("vocab_size", "decoder_vocab_size") if getattr(case.config(), name) is not None}
    translation = Translator(case.model(**sizes), tokenizer)("the cat sees", max_new_tokens=5)
    if translation.cross_attentions is None:
        with pytest.raises(ValueError, match="no attention: the model has none"):
            to_bertviz(translation)
        return
    arguments = to_bertviz(translation)
    sources, targets = len(arguments["encoder_tokens"]), len(arguments["decoder_tokens"])
    shapes = {"encoder": (sources, sources), "decoder": (targets, targets), "cross": (targets, sources)}
    found = {name.removesuffix("_attention") for name in arguments if name.endswith("_attention")}
    assert found == (set(shapes) if translation.encoder_attentions is not None else {"cross"})
    for kind in found:
        heads = {layer.shape[1] for layer in arguments[f"{kind}_attention"]}
        assert len(heads) == 1
        for layer in arguments[f"{kind}_attention"]:
            assert isinstance(layer, torch.Tensor) and layer.shape == (1, *heads, *shapes[kind])
    assert all(isinstance(token, str) for token in arguments["encoder_tokens"] + arguments["decoder_tokens"])


def test_bertviz_needs_weights(make_translation):
    with pytest.raises(ValueError, match="no attention"):
        to_bertviz(Translation("a", "b", ["a"], ["b"], [0.0], 0.0))
    line = make_translation("a", "b")
    with pytest.raises(ValueError, match="2 lines"):
        to_bertviz(Translation("a\na", "b\nb", [], [], [], 0.0, segments=[line, line]))
