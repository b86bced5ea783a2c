"""generate(): what goes in by another way comes out the same, what cannot be is refused, and nothing is computed twice.

`test_contract_search.py` is about beam search. Models are random, but lively: see `lively`.
"""

import functools
import math

import pytest
import reference_search
import torch
from contract import Case, cases
from teaching import teach
from transformers import DynamicCache, GenerationConfig, set_seed
from transformers.generation.streamers import BaseStreamer

from hf_attn.data import train_tokenizer

END, STEPS = 2, 8
LENGTHS = (7, 4, 1)  # of the sources
WAYS = {
    "greedy": {},
    "beams": {"num_beams": 4, "num_return_sequences": 2},
    "samples": {"do_sample": True, "top_k": 0, "num_return_sequences": 2},
}
ALL = pytest.mark.parametrize("case", cases(generates=True, seq2seq=True))
FAMILIES = pytest.mark.parametrize("case", cases(generates=True, variants=False, seq2seq=True))
# decoders that stand alone as well: their source is the text that they go on with
WRITERS = pytest.mark.parametrize("case", cases(generates=True))
WRITER_FAMILIES = pytest.mark.parametrize("case", cases(generates=True, variants=False))


@functools.cache
def lively(case: Case):
    """A random model that writes at least five different tokens and another output for each source.

    The output matrix is not tied, the matrices are made larger: by how much, and from which seed, is tried out. In
    double precision, since large matrices make large rounding errors.
    """
    for seed in range(30):
        for sharpness, louder in ((3.0, 1.0), (1.0, 10.0), (6.0, 1.0)):
            model = case.model(seed=seed, sharpness=sharpness, tie_word_embeddings=False).double()
            with torch.no_grad():
                model.base_model.get_decoder().embed_tokens.weight.mul_(louder)
            rows = written(model, source(case), generate(model, **source(case))).tolist()
            tokens = {token for row in rows for token in row if token > END}
            if len(tokens) >= 5 and len({tuple(row) for row in rows}) == len(LENGTHS):
                return model
    raise AssertionError(f"no lively model of {case.id}")


def source(case: Case, lengths=LENGTHS) -> dict:
    """Ids and mask, padded on the right; without ends and padded on the left where they are gone on with."""
    batch = case.batch(lengths=lengths, targets=lengths)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    if case.is_encoder_decoder:
        return inputs
    ids, others = inputs["input_ids"], 5 + 7 * torch.arange(len(lengths))[:, None]
    return padded_left(inputs | {"input_ids": torch.where(ids == END, others, ids)})


def begun(model, inputs: dict, row: int) -> tuple[int, ...]:
    """What stands in an output before the first token that the model chose, padding included."""
    config = model.config
    return (config.decoder_start_token_id,) if config.is_encoder_decoder else tuple(inputs["input_ids"][row].tolist())


def written(model, inputs: dict, outputs):
    """The tokens of outputs, (rows, length), that the model chose."""
    return outputs[:, len(begun(model, inputs, 0)) :]


def generate(model, **options):
    """Up to STEPS new tokens."""
    return model.generate(**{"max_new_tokens": STEPS, "do_sample": False} | options)


def detailed(model, **options):
    """The same, with all that `generate` can tell."""
    set_seed(5)  # of the samples
    return generate(model, return_dict_in_generate=True, output_scores=True, output_logits=True, **options)


def largest_difference(first, second) -> float:
    """Over all steps; where both are infinite they do not differ."""
    differences = [
        (a - b).masked_fill(torch.isinf(a) & (a == b), 0).abs().max().item() for a, b in zip(first, second, strict=True)
    ]
    return max(differences)


def padded_left(inputs: dict) -> dict:
    """The same rows with their padding on the left."""
    shifts = [int((row == 0).sum()) for row in inputs["attention_mask"]]
    return {
        name: torch.stack([row.roll(shift) for row, shift in zip(tensor, shifts, strict=True)])
        for name, tensor in inputs.items()
    }


def asking(model, inputs: dict, row: int, prompt=()):
    """The model as a reference search asks it about one source."""
    ids = inputs["input_ids"][row][inputs["attention_mask"][row].bool()]
    return reference_search.asking(model, ids[None], prompt)


@pytest.mark.parametrize("way", WAYS)
@WRITERS
def test_the_cache_changes_no_id_and_no_score(case, way):
    model = lively(case)
    first, second = (detailed(model, **source(case), **WAYS[way], use_cache=cache) for cache in (True, False))
    assert torch.equal(first.sequences, second.sequences)
    assert largest_difference(first.scores, second.scores) < 1e-5
    assert first.cache is not None and second.cache is None
    assert len(first.sequences.unique()) > 5


@pytest.mark.parametrize("way", ["greedy", "beams"])
@WRITERS
def test_a_sentence_becomes_the_same_alone_and_wherever_the_padding_stands(case, way):
    model, inputs, options = lively(case), source(case), WAYS[way]
    together = detailed(model, **inputs, **options)
    others = [
        {"input_ids": inputs["input_ids"]},  # the mask is inferred
        {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"].bool()},
        {"input_ids": inputs["input_ids"].int(), "attention_mask": inputs["attention_mask"].float()},
    ]
    if case.is_encoder_decoder:
        others += [padded_left(inputs), {"input_ids": padded_left(inputs)["input_ids"]}]
    for other in others:
        output = detailed(model, **other, **options)
        assert output.sequences.tolist() == together.sequences.tolist()
        assert largest_difference(output.scores, together.scores) < 1e-5
    count = options.get("num_return_sequences", 1)
    for row, real in enumerate(inputs["attention_mask"].bool()):
        single = {"input_ids": inputs["input_ids"][row : row + 1, real]}
        alone = written(model, single, generate(model, **single, **options))
        expected = written(model, inputs, together.sequences)[row * count : (row + 1) * count]
        assert torch.equal(alone, expected[:, : alone.shape[1]])
        assert expected[:, alone.shape[1] :].eq(0).all()


@ALL
def test_greedy_search_is_the_plain_loop(case):
    model, inputs = lively(case), source(case)
    for row, output in enumerate(generate(model, **inputs).tolist()):
        expected = reference_search.greedy_search(asking(model, inputs, row), END, STEPS)
        assert output == [model.config.decoder_start_token_id, *expected, *[0] * (STEPS - len(expected))]


@ALL
def test_embeddings_and_encoder_outputs_stand_for_the_ids(case):
    model, inputs, options = lively(case), source(case), WAYS["beams"]
    mask = inputs["attention_mask"]
    expected = detailed(model, **inputs, **options)
    with torch.no_grad():
        embeddings = model.get_input_embeddings()(inputs["input_ids"])
        encoded = model.get_encoder()(**inputs, return_dict=True)
        as_tuple = model.get_encoder()(**inputs, return_dict=False)
    before = encoded.last_hidden_state.clone()
    for other in (
        {"inputs_embeds": embeddings, "attention_mask": mask},
        {"encoder_outputs": encoded, "attention_mask": mask},
        {"encoder_outputs": encoded},  # again: generate must not have changed it; and it knows its mask
        {"encoder_outputs": as_tuple},
    ):
        output = detailed(model, **other, **options)
        assert torch.equal(output.sequences, expected.sequences)
        assert largest_difference(output.scores, expected.scores) < 1e-5
    assert torch.equal(encoded.last_hidden_state, before)


@ALL
def test_a_prompt_is_gone_on_from(case):
    model, inputs = lively(case), source(case)
    whole, start = generate(model, **inputs, eos_token_id=None), model.config.decoder_start_token_id
    prompts = [whole[:, :4], whole[:, 1:4]]  # with and without the start token
    for prompt in prompts if (whole[:, 1] != start).all() else prompts[:1]:  # what begins with it is not given another
        options = {"decoder_input_ids": prompt, "eos_token_id": None, "max_new_tokens": STEPS - 3}
        assert torch.equal(generate(model, **inputs, **options), whole)
        full = detailed(model, **inputs, **options, use_cache=False)
        assert torch.equal(full.sequences, whole) and len(full.scores) == STEPS - 3
    for row in range(len(LENGTHS)):
        prompt = (start, 5, 3 + row)
        expected = reference_search.greedy_search(asking(model, inputs, row, prompt[1:]), END, STEPS)
        alone = {name: tensor[row : row + 1] for name, tensor in inputs.items()}
        output = generate(model, **alone, decoder_input_ids=torch.tensor([prompt]))[0].tolist()
        assert tuple(output) == prompt + expected


@ALL
def test_prompts_of_unequal_length_are_padded_on_the_left_or_refused(case):
    model, inputs = lively(case), source(case)
    start = model.config.decoder_start_token_id
    prompts = torch.tensor([[start, 5, 6], [0, start, 7], [0, 0, start]])
    options = {"decoder_input_ids": prompts, "decoder_attention_mask": torch.ones(3, 3).long().triu()}
    try:
        outputs = generate(model, **inputs, **options)
    except ValueError as error:
        assert "decoder_attention_mask has padding before a real token" in str(error)
        return
    for row, output in enumerate(outputs.tolist()):
        prompt = tuple(prompts[row, row + 1 :].tolist())
        expected = reference_search.greedy_search(asking(model, inputs, row, prompt), END, STEPS)
        assert tuple(output[3 : 3 + len(expected)]) == expected


@ALL
def test_generation_goes_on_from_a_returned_cache(case):
    model, inputs = lively(case), source(case)
    whole = detailed(model, **inputs, eos_token_id=None)
    half = detailed(model, **inputs, eos_token_id=None, max_new_tokens=5)
    rest = detailed(
        model, **inputs, eos_token_id=None, max_new_tokens=STEPS - 5, cache=half.cache,
        decoder_input_ids=half.sequences, decoder_attention_mask=torch.ones_like(half.sequences),
    )  # fmt: skip
    assert torch.equal(rest.sequences, whole.sequences)
    assert largest_difference(half.scores + rest.scores, whole.scores) < 1e-5


@FAMILIES
def test_the_old_name_of_the_cache_is_understood(case):
    model, inputs = lively(case), source(case)
    prompt, last = torch.tensor([[1, 5]] * 3), torch.tensor([[7]] * 3)
    with torch.no_grad():
        expected = model(**inputs, decoder_input_ids=torch.cat([prompt, last], dim=1)).logits[:, -1]
        first = model(**inputs, decoder_input_ids=prompt, use_cache=True)
        with pytest.warns(FutureWarning, match="past_key_values"):
            second = model(**inputs, decoder_input_ids=last, past_key_values=first.cache)
    torch.testing.assert_close(second.logits[:, -1], expected)


@pytest.mark.parametrize("kind", ["static", "dynamic", "offloaded", "offloaded_static", "quantized"])
@ALL
def test_every_kind_of_cache_is_equal_or_refused(case, kind):
    model, inputs = lively(case), source(case)
    ways = [WAYS["greedy"], WAYS["beams"], {"decoder_input_ids": torch.tensor([[1, 5, 6]] * 3)}]
    for options in ways:
        try:
            output = detailed(model, **inputs, **options, cache_implementation=kind)
        except ValueError as error:
            recurrent = "keys and values" in str(error)
            assert recurrent or kind not in ("static", "dynamic")
            assert "cache_implementation" in str(error) or "does not support the quantized cache" in str(error)
        else:
            expected = detailed(model, **inputs, **options)
            assert torch.equal(output.sequences, expected.sequences)
            assert largest_difference(output.scores, expected.scores) < 1e-5
            assert kind == "dynamic" or "Static" in type(output.cache.self_attention_cache).__name__


@WRITERS
def test_a_static_cache_longer_than_needed_changes_nothing(case):
    """The library makes it as long as the longest of an earlier call."""
    model, inputs = lively(case), source(case)
    if not model._supports_default_dynamic_cache():
        with pytest.raises(ValueError, match="cache_implementation='static' is not possible"):
            generate(model, **inputs, cache_implementation="static")
        return
    generate(model, **inputs, cache_implementation="static", max_new_tokens=3 * STEPS)
    output = detailed(model, **inputs, cache_implementation="static")
    expected = detailed(model, **inputs)
    assert torch.equal(output.sequences, expected.sequences)
    assert largest_difference(output.scores, expected.scores) < 1e-5


@WRITERS
def test_assisted_decoding_is_greedy_or_refused(case):
    model, inputs = lively(case), source(case)
    alone = {"input_ids": inputs["input_ids"][:1]}
    expected = generate(model, **alone)
    helps = {
        "assistant_model": case.model(seed=7, sharpness=3.0),
        "prompt_lookup_num_tokens": 2,
        "assistant_early_exit": 1,
    }
    for name, value in ({**helps, "assistant_model": model} | {"assistant": helps["assistant_model"]}).items():
        options = {"assistant_model" if name == "assistant" else name: value}
        try:
            assert torch.equal(generate(model, **alone, **options), expected)
        except ValueError as error:
            assert model._is_stateful and "assisted generation is not supported with stateful models" in str(error)


@pytest.mark.parametrize(
    "options",
    [
        {"penalty_alpha": 0.6, "top_k": 4},
        {"dola_layers": "low"},
        {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0},
        {"num_beams": 4, "force_words_ids": [[5]]},
    ],
    ids=["contrastive", "dola", "groups", "constrained"],
)
@WRITER_FAMILIES
def test_searches_that_left_the_library_are_refused_by_it(case, options):
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        generate(lively(case), **source(case), **options)


EMPTY = (7, 0, 3, 0)


@pytest.mark.parametrize("way", ["greedy", "beams"])
@ALL
def test_rows_of_padding_are_finite_and_change_no_other(case, way):
    model = lively(case)
    inputs = source(case, EMPTY)
    real = [row for row, length in enumerate(EMPTY) if length]
    output = detailed(model, **inputs, **WAYS[way])
    expected = detailed(model, **{name: tensor[real] for name, tensor in inputs.items()}, **WAYS[way])
    count = WAYS[way].get("num_return_sequences", 1)
    kept = [row * count + number for row in real for number in range(count)]
    width = expected.sequences.shape[1]
    assert torch.equal(output.sequences[kept, :width], expected.sequences)
    assert all(logits.isfinite().all() for logits in output.logits)
    inferred = detailed(model, input_ids=inputs["input_ids"], **WAYS[way])
    assert torch.equal(inferred.sequences, output.sequences)
    nothing = {"input_ids": torch.zeros(1, 3, dtype=torch.long), "attention_mask": torch.zeros(1, 3, dtype=torch.long)}
    assert generate(model, **nothing, **WAYS[way]).shape[0] == count


@ALL
def test_the_loss_of_a_batch_with_rows_of_padding_is_that_of_the_others(case):
    model = lively(case)
    batch = source(case, EMPTY)
    batch["labels"] = case.batch(lengths=EMPTY, targets=(4, 3, 2, 2))["labels"]
    batch["labels"][1::2] = -100
    output = model(**batch)
    others = model(**{name: tensor[::2] for name, tensor in batch.items()})
    assert output.loss.item() == pytest.approx(others.loss.item(), abs=1e-5)
    torch.testing.assert_close(output.logits[::2], others.logits)
    assert output.logits.isfinite().all()
    model.zero_grad()
    output.loss.backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    batch["labels"][:] = 5  # empty sources that have a target
    assert model(**batch).loss.isfinite()


def rows_of(stack, calls):
    """Write down how many tokens each call of a stack computes."""

    def note(module, arguments, options):
        ids = options.get("input_ids", arguments[0] if arguments else None)
        calls.append(ids.shape[1])

    return stack.register_forward_pre_hook(note, with_kwargs=True)


@pytest.mark.parametrize("way", WAYS)
@FAMILIES
def test_every_token_is_computed_once_and_the_source_too(case, way):
    model, options = lively(case), WAYS[way] | {"eos_token_id": None, "early_stopping": "never"}
    for use_cache in (True, False):
        encoded, decoded = [], []
        handles = rows_of(model.get_encoder(), encoded), rows_of(model.get_decoder(), decoded)
        try:
            generate(model, **source(case), **options, use_cache=use_cache)
        finally:
            for handle in handles:
                handle.remove()
        assert encoded == [max(LENGTHS)]
        assert decoded == ([1] * STEPS if use_cache else [*range(1, STEPS + 1)])


@ALL
def test_no_output_is_begun_that_is_too_long_for_the_positions(case):
    """All positions can be used; where there are no more, `generate` says so before the first step."""
    model = (
        case.model(max_position_embeddings=12) if hasattr(case.config(), "max_position_embeddings") else case.model()
    )
    inputs = source(case)
    decoded = []
    handle = rows_of(model.get_decoder(), decoded)
    assert generate(model, **inputs, eos_token_id=None, max_new_tokens=12).shape[1] == 13
    for options in (
        {"max_new_tokens": 13},
        {"max_length": 14, "max_new_tokens": None},
        {"num_beams": 2, "max_new_tokens": 40},
    ):
        decoded.clear()
        try:
            output = generate(model, **inputs, **options, eos_token_id=None)
            assert output.shape[1] > 13
        except ValueError as error:
            assert "max_position_embeddings=12 learned positions" in str(error) and "max_length" in str(error)
            assert not decoded
    handle.remove()
    if getattr(model.config, "position_type", None) == "learned":
        for name in ("input_ids", "decoder_input_ids"):
            long = {"input_ids": inputs["input_ids"], "decoder_input_ids": inputs["input_ids"]}
            with pytest.raises(ValueError, match="has 13 tokens, but there are only max_position_embeddings=12"):
                model(**long | {name: torch.full((3, 13), 5)})
        stop = [lambda ids, scores: torch.full(ids.shape[:1], ids.shape[1] > 5)]  # a caller's own end
        assert generate(model, **inputs, max_new_tokens=40, eos_token_id=None, stopping_criteria=stop).shape[1] == 6


@FAMILIES
def test_the_end_is_learned_and_ends_the_output(case):
    """A copy task taught for seconds stops by itself."""
    letters = "a b c d e f".split()
    pairs = [(" ".join(letters[i : i + n]), " ".join(letters[i : i + n])) for n in (1, 2, 3) for i in range(7 - n)]
    tokenizer = train_tokenizer([text for text, _ in pairs], 20, kind="word")
    torch.manual_seed(0)
    options = {"vocab_size": len(tokenizer), "hidden_size": 32, "embedding_size": 32, "dropout": 0.0}
    known = {name: value for name, value in options.items() if hasattr(case.config(), name)}
    model = teach(case.model_class(case.config(**known)), tokenizer, pairs, 120)
    inputs = tokenizer([text for text, _ in pairs], padding=True, return_tensors="pt")
    for number, row in enumerate(model.generate(**inputs, max_new_tokens=20).tolist()):
        assert row.count(END) == 1 and set(row[row.index(END) + 1 :]) <= {0}
        assert tokenizer.decode(row, skip_special_tokens=True) == pairs[number][1]


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_cut_labels_still_end(kind):
    tokenizer = train_tokenizer(["the cat sees the old house"], 300, kind=kind)
    long = " ".join(["the cat sees the old house"] * 5)
    batch = tokenizer([long, "the cat"], text_target=[long, "old"], truncation=True, max_length=6)
    assert len(batch.labels[0]) == len(batch.input_ids[0]) == 6
    assert {ids[-1] for ids in batch.labels + batch.input_ids} == {tokenizer.eos_token_id} != {tokenizer.pad_token_id}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_new_tokens": 3, "min_new_tokens": 4}, r"min_length=5 is more than max_length=4 \(min_new_tokens=4"),
        ({"max_new_tokens": None, "max_length": 6, "min_length": 7}, "min_length=7 is more than max_length=6"),
        ({"max_new_tokens": None, "max_length": 6, "min_new_tokens": 6}, "min_length=7 is more than max_length=6"),
        ({"max_new_tokens": None, "min_new_tokens": 90}, "min_length=91 is more than max_length=21"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be greater than 0"),
        (
            {"max_new_tokens": None, "max_length": 2, "decoder_input_ids": torch.full((3, 2), 1)},
            "Input length of dec",
        ),
        ({"num_return_sequences": 2}, "num_return_sequences"),
        ({"num_beams": 2, "num_return_sequences": 3}, "num_return_sequences"),
        ({"num_beams": 2, "streamer": BaseStreamer}, "streamer"),
        ({"num_beems": 2}, "num_beems"),
        ({"token_type_ids": torch.ones(3, 7)}, "token_type_ids"),
        ({"guidance_scale": 1.5}, "guidance_scale=1.5 is not possible"),
        ({"prefill_chunk_size": 2}, "prefill_chunk_size=2 is not possible"),
        ({"cache_implementation": "statik"}, "statik"),
        ({"attention_mask": torch.ones(3, 5)}, r"attention_mask must have the shape \(3, 7\)"),
        ({"attention_mask": torch.ones(2, 7)}, r"attention_mask must have the shape \(3, 7\)"),
        ({"attention_mask": torch.ones(3, 1, 7)}, "attention_mask"),
        ({"attention_mask": [[1] * 7] * 3}, "attention_mask|'list' object has no attribute"),
        ({"attention_mask": torch.zeros(3, 7).masked_fill(torch.eye(3, 7).bool(), -math.inf)}, "attention_mask"),
        ({"input_ids": torch.full((3, 7), 43)}, "input_ids has the id 43"),
        ({"input_ids": torch.full((3, 7), -1)}, "input_ids has the id -1"),
        ({"input_ids": torch.full((3, 7), -100)}, "input_ids has the id -100"),
        ({"input_ids": torch.ones(3, 7)}, "input_ids must be token ids"),
        ({"input_ids": torch.ones(7, dtype=torch.long)}, "input_ids must be|attention_mask must"),
        ({"input_ids": torch.ones(3, 0, dtype=torch.long)}, "input_ids .*at least one token"),
        ({"decoder_input_ids": torch.full((3, 2), 90)}, "decoder_input_ids has the id 90"),
        ({"decoder_input_ids": torch.full((2, 2), 1)}, "decoder_input_ids has 2 rows for 3 sources"),
        ({"inputs_embeds": torch.ones(3, 7, 16)}, "inputs_embeds"),
        ({"cache": DynamicCache(), "cache_implementation": "dynamic"}, "cache"),
        ({"cache": ()}, "cache"),
    ],
)
@FAMILIES
def test_mistakes_are_refused_by_name(case, options, message):
    inputs = source(case) | options
    if "input_ids" in options:
        del inputs["attention_mask"]
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        generate(case.model(), **inputs)


@ALL
def test_options_that_compare_source_and_target_want_one_vocabulary(case):
    model, inputs = lively(case), source(case)
    plain = generate(model, **inputs)
    for options in ({"encoder_repetition_penalty": 3.0}, {"encoder_no_repeat_ngram_size": 1}):
        if model.config.decoder_vocab_size is None:
            output = generate(model, **inputs, **options)
            assert output.shape[0] == plain.shape[0]
            if "encoder_no_repeat_ngram_size" in options:
                for row, ids in zip(output[:, 1:].tolist(), inputs["input_ids"].tolist(), strict=True):
                    assert not (set(row) - {0}) & (set(ids) - {0})
        else:
            with pytest.raises(ValueError, match="source and target have separate vocabularies"):
                generate(model, **inputs, **options)


@pytest.mark.parametrize("way", WAYS)
@FAMILIES
def test_outputs_of_every_step_have_their_shapes(case, way):
    model, inputs, options = lively(case), source(case), WAYS[way] | {"eos_token_id": None, "early_stopping": "never"}
    config = model.config
    output = detailed(model, **inputs, **options, output_attentions=True, output_hidden_states=True)
    batch, source_len = inputs["input_ids"].shape
    count = options.get("num_return_sequences", 1)
    rows = batch * max(options.get("num_beams", 1), count)
    assert output.sequences.shape == (batch * count, STEPS + 1)
    for steps in (output.scores, output.logits):
        assert [tuple(step.shape) for step in steps] == [(rows, config.target_vocab_size)] * STEPS
    if "num_beams" in options:
        assert output.sequences_scores.shape == (batch * count,)
        assert output.beam_indices.shape == (batch * count, STEPS)
    assert [states.shape[:2] for states in output.encoder_hidden_states] == [(batch, source_len)] * (
        config.encoder_layers + 1
    )
    assert len(output.decoder_hidden_states) == STEPS
    for layers in output.decoder_hidden_states:
        assert [states.shape[:2] for states in layers] == [(rows, 1)] * (config.decoder_layers + 1)
    teacher = model(**inputs, decoder_input_ids=torch.full((batch, 2), 5), output_attentions=True)
    for name, per_step in (
        ("cross_attentions", output.cross_attentions),
        ("decoder_attentions", output.decoder_attentions),
    ):
        weights = getattr(teacher, name)  # None where the family has no such attention
        assert len(per_step) == STEPS
        for step, layers in enumerate(per_step):
            if weights is None:
                assert layers is None
                continue
            key_len = source_len if name == "cross_attentions" else step + 1
            assert [tuple(layer.shape) for layer in layers] == [(rows, w.shape[1], 1, key_len) for w in weights]
            for layer in layers:
                torch.testing.assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]))
    if teacher.encoder_attentions is None:
        assert output.encoder_attentions is None
    else:
        shapes = [tuple(layer.shape) for layer in output.encoder_attentions]
        assert shapes == [tuple(layer.shape) for layer in teacher.encoder_attentions]


@ALL
def test_weights_and_states_of_the_steps_are_those_of_forced_decoding(case):
    model, inputs = lively(case), source(case)
    output = detailed(model, **inputs, eos_token_id=None, output_attentions=True, output_hidden_states=True)
    with torch.no_grad():
        forced = model(
            **inputs, decoder_input_ids=output.sequences[:, :-1], output_attentions=True, output_hidden_states=True
        )
    torch.testing.assert_close(
        torch.stack(output.logits, dim=1), forced.logits, atol=1e-5, rtol=1e-5, check_dtype=False
    )
    for layer, states in enumerate(forced.decoder_hidden_states):
        steps = torch.cat([step[layer] for step in output.decoder_hidden_states], dim=1)
        torch.testing.assert_close(steps, states)
    for layer, weights in enumerate(forced.cross_attentions or ()):
        steps = torch.cat([step[layer] for step in output.cross_attentions], dim=2)
        torch.testing.assert_close(steps, weights)


@pytest.mark.parametrize("way", WAYS)
@WRITER_FAMILIES
def test_transition_scores_are_forced_log_probabilities(case, way):
    model, inputs = lively(case), source(case)
    output = detailed(model, **inputs, **WAYS[way])
    beams = getattr(output, "beam_indices", None)
    found = model.compute_transition_scores(output.sequences, output.scores, beams, normalize_logits=beams is None)
    count = WAYS[way].get("num_return_sequences", 1)
    repeated = {name: tensor.repeat_interleave(count, dim=0) for name, tensor in inputs.items()}
    new = written(model, inputs, output.sequences)
    forced = {"decoder_input_ids": output.sequences[:, :-1]}
    if not case.is_encoder_decoder:
        mask = torch.nn.functional.pad(repeated.pop("attention_mask"), (0, new.shape[1] - 1), value=1)
        repeated, forced = {"input_ids": output.sequences[:, :-1]}, {"attention_mask": mask}
    with torch.no_grad():
        logits = model(**repeated, **forced).logits[:, -new.shape[1] :]
    log_probs = logits.float().log_softmax(-1).gather(2, new[:, :, None])[:, :, 0]
    after_end = (new == END).cumsum(1) - (new == END).long() > 0
    torch.testing.assert_close(
        found.masked_fill(after_end, 0), log_probs.masked_fill(after_end, 0), atol=1e-4, rtol=1e-4
    )
    if beams is not None:
        lengths = (~after_end).sum(1)
        scores = log_probs.masked_fill(after_end, 0).sum(1) / lengths
        torch.testing.assert_close(output.sequences_scores, scores, atol=1e-4, rtol=1e-4)


@WRITERS
def test_special_ids_and_settings_are_in_the_generation_configuration_and_survive(case, tmp_path):
    model, inputs = lively(case), source(case)
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    for name in names if case.is_encoder_decoder else names[:3]:
        assert getattr(model.generation_config, name) == getattr(model.config, name) is not None
    settings = {"max_new_tokens": 6, "num_beams": 3, "length_penalty": 2.0, "no_repeat_ngram_size": 2}
    expected = model.generate(**inputs, **settings)
    assert torch.equal(model.generate(**inputs, generation_config=GenerationConfig(**settings)), expected)
    saved = case.model_class(model.config).eval()
    saved.load_state_dict(model.state_dict())
    saved.generation_config.update(**settings)
    saved.save_pretrained(tmp_path, include_code=False)
    loaded = case.model_class.from_pretrained(tmp_path)
    assert loaded.generation_config.to_dict() | {"_from_model_config": None} == saved.generation_config.to_dict() | {
        "_from_model_config": None
    }
    assert torch.equal(loaded.generate(**inputs), expected)
    plain = model.generate(**inputs, max_new_tokens=6)
    assert not torch.equal(plain, expected[:, : plain.shape[1]])
