"""What a translator would have written otherwise, against hooks, and masks given to the model by hand."""

import json

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration

from hf_attn import Translator
from hf_attn.inference.what_if import force_piece, head_counts, hide_words, next_pieces, remove_heads

from .conftest import small_tokenizer, trained

SENTENCE = "The old cat sleeps on the chair."
WITH_ATTENTION = ("marian", "transformer", "bahdanau")


def translate(name, **options):
    """A translator and what it makes of the sentence."""
    translator = Translator(trained(name), small_tokenizer())
    return translator, translator(SENTENCE, **options)


def read(translator, translation):
    """What the decoder reads when it writes the translation."""
    return torch.tensor([[translator.model.config.decoder_start_token_id, *translation.target_ids[:-1]]])


def log_probs(logits, ids):
    return logits[0].log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def test_the_likeliest_pieces_are_those_of_the_distribution(model):
    translator = Translator(model, small_tokenizer())
    translation = translator(SENTENCE)
    with torch.no_grad():
        logits = model(torch.tensor([translation.source_ids]), decoder_input_ids=read(translator, translation)).logits
    steps = next_pieces(translator, translation, 3)
    assert len(steps) == len(translation.target_ids) > 3
    for step, candidates in enumerate(steps):
        ids = logits[0, step].argsort(descending=True)[:3].tolist()
        assert [candidate.id for candidate in candidates] == ids and ids[0] == translation.target_ids[step]
        assert candidates[0].token == translation.target_tokens[step]
        for candidate in candidates:
            expected = float(logits[0, step].softmax(-1)[candidate.id])
            assert candidate.probability == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_hidden_words_get_no_attention_though_the_encoder_has_read_them(name):
    translator, translation = translate(name)
    numbers = [0, 2, 3, 4, 6, 7, 8]  # all but "old" and "the"
    answer = hide_words(translator, translation, numbers)
    hidden = [piece for number in numbers for piece in translation.words().source_pieces[number]]
    mask = torch.ones(1, len(translation.source_ids), dtype=torch.long)
    model = translator.model
    with torch.no_grad():
        states = model.get_encoder()(torch.tensor([translation.source_ids]), attention_mask=mask)
        mask[0, hidden] = 0
        logits = model(
            encoder_outputs=states, attention_mask=mask, decoder_input_ids=read(translator, translation)
        ).logits
    expected = log_probs(logits, translation.target_ids)
    torch.testing.assert_close(torch.tensor(answer.rescored.token_log_probs), expected, atol=1e-5, rtol=0)
    assert (expected - torch.tensor(translation.token_log_probs)).abs().max() > 1e-3
    assert answer.before is translation and answer.rescored.text == translation.text
    for changed in (answer.rescored, answer.after):
        assert float(changed.cross_attentions[..., hidden].abs().max()) == 0
        torch.testing.assert_close(changed.cross_attentions.sum(-1), torch.ones(changed.cross_attentions.shape[:-1]))
    # greedy search, written out
    chosen = [model.config.decoder_start_token_id]
    while chosen[-1] != model.config.eos_token_id and len(chosen) < 30:
        with torch.no_grad():
            step = model(encoder_outputs=states, attention_mask=mask, decoder_input_ids=torch.tensor([chosen])).logits
        chosen.append(int(step[0, -1].argmax()))
    assert answer.after.target_ids == chosen[1:]


@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_with_all_words_hidden_nothing_is_attended_to_and_beams_still_end(name):
    translator, translation = translate(name)
    every = range(len(translation.words().source_words))
    answer = hide_words(translator, translation, list(every), num_beams=3, max_new_tokens=8)
    assert len(answer.after.target_ids) <= 8
    if name != "marian":  # whose softmax spreads over what is masked where all is
        assert float(answer.after.cross_attentions.abs().max()) == 0


@pytest.mark.parametrize(("kind", "layer", "heads"), [("cross", 1, 2), ("decoder", 0, [0, 3]), ("encoder", 1, [1])])
def test_a_removed_head_adds_nothing_to_the_states(kind, layer, heads):
    translator, translation = translate("transformer")
    model = translator.model
    stack = model.get_encoder() if kind == "encoder" else model.get_decoder()
    block = stack.layers[layer]
    attention = block.cross_attention if kind == "cross" else block.self_attention

    def silence(module, arguments):
        merged = arguments[0].clone()
        split = merged.unflatten(-1, (attention.num_heads, -1))
        split[..., heads, :] = 0
        return (merged,)

    handle = attention.output_projection.register_forward_pre_hook(silence)
    with torch.no_grad():
        logits = model(torch.tensor([translation.source_ids]), decoder_input_ids=read(translator, translation)).logits
        expected_text = translator(SENTENCE, num_beams=3).text
    handle.remove()
    answer = remove_heads(translator, translation, layer, heads, kind, num_beams=3)
    expected = log_probs(logits, translation.target_ids)
    torch.testing.assert_close(torch.tensor(answer.rescored.token_log_probs), expected, atol=1e-5, rtol=0)
    assert (expected - torch.tensor(translation.token_log_probs)).abs().max() > 1e-3
    assert answer.after.text == expected_text


def test_the_heads_that_can_be_taken_away_are_those_whose_weights_come_out(model):
    translator = Translator(model, small_tokenizer())
    translation, counts = translator(SENTENCE), head_counts(translator)
    weights = {kind: getattr(translation, f"{kind}_attentions") for kind in ("cross", "decoder", "encoder")}
    multi = model.config.model_type == "attn-transformer"
    assert counts == {kind: [one.shape[1]] * one.shape[0] for kind, one in weights.items() if multi}
    for kind in weights:
        if kind not in counts:
            with pytest.raises(ValueError, match="no multi-head attention of this kind"):
                remove_heads(translator, translation, 0, 0, kind)


def test_another_piece_is_written_and_continued(model):
    translator = Translator(model, small_tokenizer())
    translation = translator(SENTENCE)
    steps = next_pieces(translator, translation, 2)
    for position in (0, 2):
        piece = steps[position][1]
        answer = force_piece(translator, translation, position, piece.id, max_new_tokens=20)
        ids = answer.after.target_ids
        assert ids[: position + 1] == [*translation.target_ids[:position], piece.id] and answer.rescored is None
        assert answer.after.token_log_probs[position] == pytest.approx(
            torch.tensor(piece.probability).log().item(), abs=1e-4
        )
        chosen = ids[: position + 1]  # greedy search, written out
        while chosen[-1] != model.config.eos_token_id and len(chosen) < 20:
            start = [model.config.decoder_start_token_id, *chosen]
            with torch.no_grad():
                step = model(torch.tensor([translation.source_ids]), decoder_input_ids=torch.tensor([start])).logits
            chosen.append(int(step[0, -1].argmax()))
        assert ids == chosen


def test_after_the_end_nothing_is_written():
    translator, translation = translate("transformer")
    answer = force_piece(translator, translation, 1, translator.model.config.eos_token_id)
    assert answer.after.target_ids == [translation.target_ids[0], translator.model.config.eos_token_id]


@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_the_translator_stays_as_it_was(name):
    translator, translation = translate(name, num_beams=2)
    kind, weights = type(translator.model), {k: v.clone() for k, v in translator.model.state_dict().items()}
    hide_words(translator, translation, 1)
    force_piece(translator, translation, 0, 9)
    if name == "transformer":
        remove_heads(translator, translation, 0, 1)
    assert type(translator.model) is kind
    assert all(torch.equal(value, weights[key]) for key, value in translator.model.state_dict().items())
    again = translator(SENTENCE, num_beams=2)
    assert again.text == translation.text and again.token_log_probs == translation.token_log_probs


def untaught(kind, config, **sizes):
    """A tiny model of transformers with random weights."""
    torch.manual_seed(1)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    model = kind(config(vocab_size=len(small_tokenizer()), attn_implementation="eager", **special, **sizes))
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)
    return model.eval()


BART = {"decoder_attention_heads": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32}


@pytest.mark.parametrize(
    ("kind", "config", "sizes"),
    [
        (T5ForConditionalGeneration, T5Config, {"d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}),
        (BartForConditionalGeneration, BartConfig, {"encoder_layers": 2, "decoder_layers": 2, **BART}),
    ],
    ids=["t5", "bart"],
)
def test_words_are_hidden_from_models_of_transformers_too(kind, config, sizes):
    model = untaught(kind, config, d_model=32, **sizes)
    translator = Translator(model, small_tokenizer())
    translation = translator(SENTENCE, max_new_tokens=8)
    answer = hide_words(translator, translation, [1, 2], num_beams=2, max_new_tokens=8)
    ids, mask = torch.tensor([translation.source_ids]), torch.ones(1, len(translation.source_ids), dtype=torch.long)
    hidden = [piece for number in (1, 2) for piece in translation.words().source_pieces[number]]
    with torch.no_grad():
        states = model.get_encoder()(ids, attention_mask=mask).last_hidden_state
        mask[0, hidden] = 0
        logits = model(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=read(translator, translation)
        ).logits
    expected = log_probs(logits, translation.target_ids)
    torch.testing.assert_close(torch.tensor(answer.rescored.token_log_probs), expected, atol=1e-5, rtol=0)
    assert (expected - torch.tensor(translation.token_log_probs)).abs().max() > 1e-3
    for changed in (answer.rescored, answer.after):
        assert float(changed.cross_attentions[..., hidden].abs().max()) == 0
        torch.testing.assert_close(changed.encoder_attentions, translation.encoder_attentions)


def test_an_ensemble_of_one_model_twice_is_that_model():
    model = trained("transformer")
    single, twice = (Translator(one, small_tokenizer()) for one in (model, [model, model]))
    translation = single(SENTENCE)
    for ask in (
        lambda translator: hide_words(translator, translation, [1, 2], num_beams=3),
        lambda translator: force_piece(translator, translation, 2, 40, num_beams=2),
    ):
        expected, found = ask(single).after, ask(twice).after
        assert found.target_ids == expected.target_ids
        torch.testing.assert_close(found.cross_attentions, expected.cross_attentions)
    likely = next_pieces(twice, translation, 2)
    assert [[one.id for one in step] for step in likely] == [
        [one.id for one in step] for step in next_pieces(single, translation, 2)
    ]


def test_what_is_cut_off_is_still_cut_off_when_it_is_scored_again():
    translator, translation = translate("transformer", max_new_tokens=3)
    assert translation.truncated and hide_words(translator, translation, 0).rescored.truncated


def test_numbers_of_numpy_are_numbers():
    translator, translation = translate("transformer")
    one = np.int64(1)
    for words in (one, [one], np.array([1])):
        hidden = hide_words(translator, translation, words).rescored.token_log_probs
        assert hidden == hide_words(translator, translation, 1).rescored.token_log_probs
    removed = remove_heads(translator, translation, one, one).rescored.token_log_probs
    assert removed == remove_heads(translator, translation, 1, 1).rescored.token_log_probs
    forced = force_piece(translator, translation, one, np.int64(40))
    assert forced.after.target_ids == force_piece(translator, translation, 1, 40).after.target_ids
    assert json.dumps(forced.after.to_dict()) and len(next_pieces(translator, translation, one)[0]) == 1


def test_mistakes_are_named():
    translator, translation = translate("transformer")
    for wrong in (None, 1.0, "1", True, [1.0], slice(1)):
        with pytest.raises(ValueError, match="words is .*; it must be a whole number from 0 to 8"):
            hide_words(translator, translation, wrong)
    for wrong in (None, 1.0, "1", True, [1], [1, 2]):
        with pytest.raises(ValueError, match="layer is .*; it must be a whole number from 0 to 1"):
            remove_heads(translator, translation, wrong, 0)
        with pytest.raises(ValueError, match="position is .*; it must be a whole number from 0 to"):
            force_piece(translator, translation, wrong, 5)
        with pytest.raises(ValueError, match="piece is .*; it must be a whole number from 0 to"):
            force_piece(translator, translation, 0, wrong)
    with pytest.raises(ValueError, match=r"words is 99; it must be a whole number from 0 to 8"):
        hide_words(translator, translation, 99)
    with pytest.raises(ValueError, match="words is empty"):
        hide_words(translator, translation, [])
    with pytest.raises(ValueError, match="layer is 2; .* from 0 to 1"):
        remove_heads(translator, translation, 2, 0)
    with pytest.raises(ValueError, match="heads is 4; .* from 0 to 3"):
        remove_heads(translator, translation, 0, [1, 4])
    with pytest.raises(ValueError, match="kind is 'both'; it must be one of cross, decoder, encoder"):
        remove_heads(translator, translation, 0, 0, "both")
    with pytest.raises(ValueError, match="position is -1; "):
        force_piece(translator, translation, -1, 5)
    with pytest.raises(ValueError, match=r"piece is \d+; "):
        force_piece(translator, translation, 0, len(small_tokenizer()))
    with pytest.raises(ValueError, match="count is 0; "):
        next_pieces(translator, translation, 0)
    with pytest.raises(TypeError, match="beams: the search takes num_beams and max_new_tokens"):
        hide_words(translator, translation, 0, beams=3)
    with pytest.raises(ValueError, match="2 lines"):
        next_pieces(translator, translator("Yes!\nYes!"))
    with pytest.raises(ValueError, match="0 lines"):
        next_pieces(translator, translator(""))
    recurrent, plain = translate("no-attention")
    with pytest.raises(ValueError, match="no cross-attention"):
        hide_words(recurrent, plain, 0)
    with pytest.raises(ValueError, match="AttnRnnForConditionalGeneration has no multi-head attention"):
        remove_heads(recurrent, plain, 0, 0)
