"""Options of generate() that change or watch the choice of tokens: against loops, and against transformers' Marian."""

import pytest
import reference_search
import torch
from contract import cases
from parity.twin_models import ragged_batch, random_model
from test_contract_generation import END, STEPS, WRITER_FAMILIES, asking, begun, generate, lively, source, written
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from hf_attn.hub import import_checkpoint

NEVER = -float("inf")


def without(row, tokens):
    """A row of log-probabilities in which these tokens are impossible."""
    return [NEVER if token in tokens else log_prob for token, log_prob in enumerate(row)]


def only(row, tokens):
    """A row in which only these tokens are possible."""
    return without(row, set(range(len(row))) - set(tokens))


def repetition_penalty(read, row, new):
    """What was read becomes less probable: its log-probability doubles. (Beam search has the option so; greedy search
    changes logits, and divides positive ones.)"""
    return [2 * log_prob if token in read else log_prob for token, log_prob in enumerate(row)]


def no_repeated_pair(read, row, new):
    """No two tokens that follow each other do so twice."""
    seen = {second for first, second in zip(read, read[1:], strict=False) if first == read[-1]}
    return without(row, seen)


class OddOnly(LogitsProcessor):
    """A processor of the caller's: only odd tokens and the end."""

    def __call__(self, input_ids, scores):
        even = torch.arange(scores.shape[-1]) % 2 == 0
        even[END] = False
        return scores.masked_fill(even, NEVER)


# name: what generate() is given, and what it does to a row of log-probabilities after the tokens read (the start first)
# and the number of those that the model chose
RULES = {
    "suppress_tokens": ({"suppress_tokens": [*range(3, 30)]}, lambda read, row, new: without(row, range(3, 30))),
    "begin_suppress_tokens": (
        {"begin_suppress_tokens": [*range(2, 30)]},
        lambda read, row, new: row if new else without(row, range(2, 30)),
    ),
    "bad_words_ids": (
        {"bad_words_ids": [[token] for token in range(20, 30)] + [[8, 8], [5, 9]]},
        lambda read, row, new: without(
            row, {*range(20, 30)} | ({8} if read[-1] == 8 else set()) | ({9} if read[-1] == 5 else set())
        ),
    ),
    "forced_bos_token_id": ({"forced_bos_token_id": 9}, lambda read, row, new: row if new else only(row, [9])),
    "forced_eos_token_id": (
        {"forced_eos_token_id": END},
        lambda read, row, new: only(row, [END]) if new == STEPS - 1 else row,
    ),
    "no_repeat_ngram_size": ({"no_repeat_ngram_size": 2}, no_repeated_pair),
    "no_repeated_token": ({"no_repeat_ngram_size": 1}, lambda read, row, new: without(row, set(read))),
    "prefix_allowed_tokens_fn": (
        {"prefix_allowed_tokens_fn": lambda row, read: [3 + 2 * row + len(read) % 7, 20 - len(read) % 7]},
        None,  # depends on the row: see the test
    ),
    "logits_processor": (
        {"logits_processor": LogitsProcessorList([OddOnly()])},
        lambda read, row, new: [x if token % 2 or token == END else NEVER for token, x in enumerate(row)],
    ),
}


def ruled_cases():
    """Every rule for every family that it changes something for: a decoder alone has begun with its prompt, and the
    random ones do not write a pair twice."""
    for param in cases(generates=True, variants=False):
        for name in RULES:
            if param.values[0].is_encoder_decoder or name not in ("forced_bos_token_id", "no_repeat_ngram_size"):
                yield pytest.param(*param.values, name, id=f"{param.id}-{name}")


@pytest.mark.parametrize("case, name", list(ruled_cases()))
def test_an_option_does_what_its_rule_says(case, name):
    model, inputs = lively(case), source(case)
    options, rule = RULES[name]
    outputs, plain = (written(model, inputs, generate(model, **inputs, **some)).tolist() for some in (options, {}))
    for number, output in enumerate(outputs):
        ask = asking(model, inputs, number)

        def ruled(prefixes, number=number, ask=ask):
            changed = []
            for prefix, row in zip(prefixes, ask(prefixes), strict=True):
                read = (*begun(model, inputs, number), *prefix)
                if rule is None:
                    changed.append(only(row, options[name](number, read)))
                else:
                    changed.append(rule(read, row, len(prefix)))
            return changed

        expected = reference_search.greedy_search(ruled, END, STEPS)
        assert output[: len(expected)] == [*expected]
    assert outputs != plain


@WRITER_FAMILIES
def test_beams_obey_the_rules_too(case):
    model, inputs = lively(case), source(case)
    options = {"suppress_tokens": [5], "repetition_penalty": 2.0, "num_beams": 3, "num_return_sequences": 3}
    output = generate(model, **inputs, **options, return_dict_in_generate=True, output_scores=True)
    new = written(model, inputs, output.sequences)
    for number in range(len(inputs["input_ids"])):
        ask, start = asking(model, inputs, number), begun(model, inputs, number)

        def ruled(prefixes, ask=ask, start=start):
            rows = zip(prefixes, ask(prefixes), strict=True)
            return [without(repetition_penalty((*start, *prefix), row, len(prefix)), [5]) for prefix, row in rows]

        expected = reference_search.beam_search(ruled, END, STEPS, num_beams=3)
        for beam, found in enumerate(expected):
            assert new[3 * number + beam, : len(found.tokens)].tolist() == [*found.tokens]
            assert output.sequences_scores[3 * number + beam].item() == pytest.approx(found.score, abs=1e-4)


class Written(BaseStreamer):
    """Collects what is streamed."""

    def __init__(self):
        self.tokens, self.ended = [], False

    def put(self, value):
        self.tokens += value.flatten().tolist()

    def end(self):
        self.ended = True


@WRITER_FAMILIES
def test_a_stream_and_a_stop_of_the_caller(case):
    model, inputs = lively(case), source(case)
    alone, before = {"input_ids": inputs["input_ids"][:1]}, len(begun(model, inputs, 0))
    streamed = Written()
    output = generate(model, **alone, streamer=streamed)[0].tolist()
    assert streamed.tokens == output and streamed.ended
    third = output[before + 2]
    stop = StoppingCriteriaList([lambda ids, scores: ids[:, -1] == third])
    stopped = generate(model, **alone, stopping_criteria=stop)[0].tolist()
    assert stopped == output[: output.index(third, before) + 1]
    ends = generate(model, **alone, eos_token_id=[END, third])[0].tolist()
    assert ends == stopped
    longer = generate(model, **alone, eos_token_id=[END, third], min_new_tokens=5)[0].tolist()[before:]
    assert len(longer) >= 5 and third not in longer[:5]
    assert generate(model, **alone, max_time=1e-9, eos_token_id=None).shape[1] == before + 1


@WRITER_FAMILIES
def test_samples_follow_the_model_and_the_seed(case):
    """The first token of many samples against its probabilities, as top_k and temperature leave them."""
    model, inputs = lively(case), source(case)
    alone = {"input_ids": inputs["input_ids"][:1]}
    count, log_probs = 4000, torch.tensor(asking(model, inputs, 0)([()])[0])
    options = {"do_sample": True, "top_k": 5, "temperature": 2.0, "num_return_sequences": count, "max_new_tokens": 1}
    best = (log_probs / 2).topk(5)
    expected = best.values.softmax(-1)
    torch.manual_seed(3)
    first = generate(model, **alone, **options)
    shares = torch.stack([(first[:, -1] == token).float().mean() for token in best.indices])
    torch.testing.assert_close(shares, expected.float(), atol=0.04, rtol=0.0)
    assert shares.sum() == 1 and (shares > 0).sum() > 1
    torch.manual_seed(3)
    assert torch.equal(generate(model, **alone, **options), first)


MARIAN_OPTIONS = {
    "penalties": {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2},
    "bans": {"suppress_tokens": [4, 5, 6], "bad_words_ids": [[7], [9, 8]], "min_new_tokens": 6},
    "forced": {"forced_bos_token_id": 11, "forced_eos_token_id": 2, "num_beams": 3},
    "source": {"encoder_repetition_penalty": 1.5, "encoder_no_repeat_ngram_size": 2},
    "decay": {"exponential_decay_length_penalty": (3, 1.5), "num_beams": 4, "length_penalty": -0.5},
    "beams": {"num_beams": 4, "num_return_sequences": 4, "early_stopping": "never", "renormalize_logits": True},
    "allowed": {"prefix_allowed_tokens_fn": lambda row, read: [10 + row, 20 + len(read), 30 + len(read)]},
    "prompt": {"decoder_input_ids": torch.tensor([[1, 12, 13]] * 5), "sequence_bias": {(14,): 3.0, (15, 16): -4.0}},
    "sample": {"do_sample": True, "top_k": 8, "top_p": 0.9, "temperature": 1.3, "min_p": 0.01},
    "typical": {"do_sample": True, "typical_p": 0.7, "epsilon_cutoff": 1e-3, "num_return_sequences": 3},
    "beam samples": {"do_sample": True, "num_beams": 3, "top_k": 0},
}


@pytest.mark.parametrize("name", MARIAN_OPTIONS)
def test_options_do_to_the_transformer_what_they_do_to_marian(name):
    ids = {"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2, "decoder_vocab_size": None}
    theirs = random_model(
        "marian", 0, sharpness=3.0, share_encoder_decoder_embeddings=True, tie_word_embeddings=True, **ids
    )
    ours, _ = import_checkpoint(theirs)
    batch = ragged_batch(theirs, seed=3, batch=5)
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    settings = {"max_new_tokens": 10, "bad_words_ids": None, "forced_eos_token_id": None, "num_beams": 1}
    outputs = []
    for model in (theirs, ours):
        torch.manual_seed(2)
        outputs.append(
            model.generate(
                **inputs, **settings | MARIAN_OPTIONS[name], return_dict_in_generate=True, output_scores=True
            )
        )
    assert torch.equal(outputs[0].sequences, outputs[1].sequences) and outputs[0].sequences.unique().numel() > 3
    for expected, found in zip(outputs[0].scores, outputs[1].scores, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
