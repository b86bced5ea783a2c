# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a model returns: attention weights in every call, tuples instead of outputs, one answer to many threads, a loss
of nothing; and what it refuses: misspelt arguments. For every family, head and variant.
"""

import inspect
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from contract import cases
from torch.nn import functional as F

import hf_attn
from hf_attn.data import train_tokenizer
from hf_attn.models import kernels
from hf_attn.visualization import attentions_from_generate

FIELDS = ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions")
FUSED = [parameter for parameter in cases() if parameter.values[0].model_class._supports_sdpa]
DECLARED = {"eager": "_supports_attention_backend", "sdpa": "_supports_sdpa", "flex_attention": "_supports_flex_attn"}
STEPS = {"max_new_tokens": 6, "output_attentions": True, "return_dict_in_generate": True}


def ids_and_mask(case, **options):
    """The source of the case's batch; pictures, if it reads those."""
    batch = case.batch(labels=False, **options)
    return {name: value for name, value in batch.items() if name in ("input_ids", "attention_mask", "pixel_values")}


def weights_in(outputs):
    """The weights by field, None for a field that there is not."""
    return {field: getattr(outputs, field, None) for field in FIELDS}


def padded_elsewhere(batch):
    """The same batch with its source padded on the left, and a target with padding of its own on the left."""
    if "attention_mask" not in batch:
        return batch  # pictures have none
    flipped = {name: value.flip(1) for name, value in batch.items()}
    if "decoder_input_ids" not in batch:
        return flipped
    target = torch.ones_like(batch["decoder_input_ids"])
    target[1, :2] = 0
    return flipped | {"decoder_attention_mask": target}


def assert_weights(outputs, case, **lengths):
    """Every field has its shapes, or is None where the family has no such attention; rows are distributions."""
    expected = case.attention_shapes(**lengths)
    for field, layers in weights_in(outputs).items():
        assert (layers is None) == (field not in expected), field
        if layers is None:
            continue
        assert type(layers) is tuple and [tuple(layer.shape) for layer in layers] == expected[field]
        for layer in layers:
            assert layer.dtype == torch.float32 and (layer >= 0).all()
            sums = layer.sum(dim=-1)
            assert (((sums - 1).abs() < 1e-5) | (sums == 0)).all()


@pytest.mark.parametrize("case", cases())
def test_weights_come_when_asked_for_with_the_shapes_of_their_lengths(case):
    model, batch = case.model(sharpness=4.0), case.batch(labels=False)
    with torch.no_grad():
        outputs = model(**batch, output_attentions=True)
        assert_weights(outputs, case)
        for options in ({}, {"output_attentions": False}, {"output_hidden_states": True}):
            silent = model(**batch, **options)
            assert set(weights_in(silent).values()) == {None}
            torch.testing.assert_close(silent[0], outputs[0], atol=1e-4, rtol=1e-4)
        patches = torch.ones(3, case.attention_shapes().get("attentions", [(0,)])[0][-1])  # of which none is padding
        real = batch.get("attention_mask", patches).bool()
        weights = weights_in(outputs)
        for layer in weights["cross_attentions"] or ():
            assert (layer.transpose(1, 3)[~real] == 0).all() and (layer.sum(dim=-1) > 0.99).all()
        for layer in weights["attentions"] or ():  # a token of padding may have nothing to see in a window
            assert (layer.transpose(1, 3)[~real] == 0).all() and (layer.transpose(1, 2)[real].sum(dim=-1) > 0.99).all()
            assert not case.is_causal or (layer.triu(1) == 0).all()
        for layer in weights["encoder_attentions"] or ():
            assert (layer.transpose(1, 3)[~real] == 0).all()
        for layer in weights["decoder_attentions"] or ():
            assert (layer.triu(1) == 0).all()

        # a configuration can ask too, under eager
        asking = case.model(sharpness=4.0, attn_implementation="eager", output_attentions=True)
        for field, layers in weights_in(asking(**batch)).items():
            assert_same(layers, weights[field])


@pytest.mark.parametrize("case", cases(seq2seq=True))
def test_weights_of_encoder_and_decoder_alone_are_those_of_the_whole(case):
    model, batch = case.model(sharpness=4.0), case.batch(labels=False)
    with torch.no_grad():
        outputs = model(**batch, output_attentions=True)
        encoded = model.get_encoder()(**ids_and_mask(case), output_attentions=True)
        assert_same(encoded.attentions, outputs.encoder_attentions)
        decoder = model.get_decoder()
        takes = inspect.signature(decoder.forward).parameters
        source = {"encoder_outputs": encoded, "encoder_hidden_states": encoded.last_hidden_state}
        decoded = decoder(
            input_ids=batch["decoder_input_ids"], encoder_attention_mask=batch["attention_mask"],
            output_attentions=True, **{name: value for name, value in source.items() if name in takes},
        )  # fmt: skip
        assert_same(decoded.cross_attentions, outputs.cross_attentions)
        assert_same(getattr(decoded, "attentions", None), outputs.decoder_attentions)


@pytest.mark.parametrize("case", cases(seq2seq=True))
def test_weights_of_cached_steps_are_the_rows_of_the_whole(case):
    model, batch = case.model(sharpness=4.0), case.batch(labels=False)
    target = batch.pop("decoder_input_ids")
    with torch.no_grad():
        whole = model(**batch, decoder_input_ids=target, output_attentions=True)
        cache, start = None, 0
        for end in (3, 4, 6):
            ids = {"decoder_input_ids": target[:, start:end], "cache": cache, "use_cache": True}
            step = model(**batch, **ids, output_attentions=True)
            assert_weights(step, case, target_len=end - start, key_len=end)
            for field, keys in (("cross_attentions", None), ("decoder_attentions", end)):
                for layer, expected in zip(getattr(step, field) or (), getattr(whole, field) or (), strict=True):
                    rows = expected[:, :, start:end, :keys]
                    torch.testing.assert_close(layer, rows, atol=1e-5, rtol=1e-4)
            cache, start = step.cache, end


@pytest.mark.parametrize(
    "case", [p for p in cases(generates=True, seq2seq=True) if p.values[0].model_class._can_compile_fullgraph]
)
def test_columns_that_a_static_cache_does_not_use_are_zero(case):
    model = case.model(sharpness=4.0)
    model.generation_config.eos_token_id = None
    dynamic, static = (
        model.generate(**ids_and_mask(case), **STEPS, cache_implementation=name) for name in (None, "static")
    )
    assert torch.equal(dynamic.sequences, static.sequences)
    for step, (expected, layers) in enumerate(zip(dynamic.decoder_attentions, static.decoder_attentions, strict=True)):
        for one, layer in zip(expected, layers, strict=True):
            assert layer.shape[-1] >= 6 and one.shape[-1] == step + 1
            torch.testing.assert_close(layer[..., : step + 1], one, atol=1e-5, rtol=1e-4)
            assert (layer[..., step + 1 :] == 0).all()
    for expected, layers in zip(dynamic.cross_attentions, static.cross_attentions, strict=True):
        for one, layer in zip(expected, layers, strict=True):
            torch.testing.assert_close(layer, one, atol=1e-5, rtol=1e-4)


def fused_calls(model, monkeypatch, **inputs):
    """Run a model without weights; the value and the context of every call of its fused kernel."""
    calls, kernel = [], kernels.KERNELS["sdpa"]

    def recording(query, key, value, *arguments, **options):
        context = kernel(query, key, value, *arguments, **options)
        calls.append((value.clone(), context))
        return context

    with monkeypatch.context() as patched:
        patched.setitem(kernels.KERNELS, "sdpa", recording)
        outputs = model(**inputs)
    return calls, outputs


def layers_in_order(outputs):
    """The weights of all layers in the order in which they are computed."""
    if hasattr(outputs, "attentions"):
        return outputs.attentions
    stacks = [layers for layers in (outputs.decoder_attentions, outputs.cross_attentions) if layers is not None]
    return [*(outputs.encoder_attentions or ()), *(layer for both in zip(*stacks, strict=True) for layer in both)]


@pytest.mark.parametrize("padding", ["right", "elsewhere"])
@pytest.mark.parametrize("case", FUSED)
def test_weights_times_values_are_the_context_of_the_fused_kernel(case, padding, monkeypatch):
    model, batch = case.model(sharpness=4.0).double(), case.batch(labels=False)
    batch = padded_elsewhere(batch) if padding == "elsewhere" else batch
    assert model.config._attn_implementation == "sdpa"
    target, mask = batch.pop("decoder_input_ids", None), batch.pop("decoder_attention_mask", None)
    caches, start = [{}, {}], 0
    for end in (4, 5, 6) if case.is_encoder_decoder else (7,):  # at once, then two cached steps
        shared = batch
        if case.is_encoder_decoder:
            shared = batch | {"decoder_input_ids": target[:, start:end], "use_cache": True}
            shared["decoder_attention_mask"] = None if mask is None else mask[:, :end]
        with torch.no_grad():
            calls, fused = fused_calls(model, monkeypatch, **shared, **caches[0])
            outputs = model(**shared, **caches[1], output_attentions=True)
        weights = layers_in_order(outputs)
        assert len(calls) == len(weights) == sum(map(len, case.attention_shapes().values()))
        for (value, context), layer in zip(calls, weights, strict=True):
            torch.testing.assert_close(layer @ value, context, atol=1e-9, rtol=1e-9)
            assert context.abs().max() > 0.01
        caches, start = [{"cache": one.get("cache")} for one in (fused, outputs)], end


@pytest.mark.parametrize("case", FUSED)
def test_weights_are_the_same_under_every_implementation(case):
    model = case.model(sharpness=4.0)
    for batch in (case.batch(), padded_elsewhere(case.batch(labels=False))):
        outputs = {}
        for implementation in ("eager", *kernels.KERNELS):
            if not getattr(model, DECLARED[implementation]):
                with pytest.raises(ValueError, match=f"does not support .*{implementation}"):
                    model.set_attn_implementation(implementation)
                continue
            model.set_attn_implementation(implementation)
            with torch.no_grad():
                outputs[implementation] = model(**batch, output_attentions=True), model(**batch)
        weights, silent = outputs.pop("eager")
        for other_weights, other in outputs.values():
            for field, layers in weights_in(other_weights).items():
                assert_same(layers, weights_in(weights)[field])
            torch.testing.assert_close(other.to_tuple()[0], silent.to_tuple()[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", cases(generates=True, seq2seq=True))
def test_weights_of_beam_search_are_those_of_a_pass_over_what_it_returned(case):
    pieces, crossed = set(), 0
    for seed in range(5):  # 20 and more in each family
        model, batch = case.model(seed=seed, sharpness=4.0), ids_and_mask(case, seed=seed)
        output = model.generate(
            **batch, **STEPS, num_beams=4, num_return_sequences=2, forced_bos_token_id=5, no_repeat_ngram_size=2
        )
        assert (output.sequences[:, 1] == 5).all()
        alive = output.beam_indices >= 0  # (sequences, steps)
        pieces |= set(output.sequences.flatten().tolist())
        crossed += int((output.beam_indices % 4 > 0).sum())
        if not case.attention_shapes():
            assert attentions_from_generate(output) == (None, None, None)
            continue
        batch = {name: value.repeat_interleave(2, dim=0) for name, value in batch.items()}
        with torch.no_grad():
            forced = model(**batch, decoder_input_ids=output.sequences[:, :-1], output_attentions=True)
        for field, weights in attentions_from_generate(output)._asdict().items():
            assert (weights is None) == (field not in case.attention_shapes())
            if weights is None:
                continue
            expected = torch.stack(getattr(forced, field), dim=1)
            if field != "encoder_attentions":
                expected = expected * alive[:, None, None, :, None]
            torch.testing.assert_close(weights, expected, atol=1e-5, rtol=1e-4)
    assert len(pieces) > 8 and crossed > 10


def assert_same(value, expected):
    """Equal tensors in the same nesting; caches of one kind and length."""
    assert type(value) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert torch.equal(value, expected)
    elif isinstance(expected, (tuple, list)):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_same(one, other)
    elif expected is not None:
        assert value.get_seq_length() == expected.get_seq_length()


@pytest.mark.parametrize("case", cases())
def test_a_tuple_holds_the_same_values_in_the_same_order(case):
    model, batch = case.model(), case.batch()
    ids = ids_and_mask(case)
    wanted = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        for options in ({}, {"use_cache": True}, wanted, wanted | {"use_cache": True}):
            outputs = model(**batch, **options)
            values = model(**batch, **options, return_dict=False)
            assert type(values) is tuple
            assert_same(values, tuple(value for value in outputs.values() if value is not None))
            if not case.is_encoder_decoder:
                continue
            encoded, named = (model.get_encoder()(**ids, **options, return_dict=flag) for flag in (False, True))
            assert_same(encoded, tuple(value for value in named.values() if value is not None))

            # the tuple of an encoder is taken where its output is, its padding included
            given = {name: value for name, value in batch.items() if name not in ids}
            for source in (encoded, list(encoded), named):
                assert_same(model(encoder_outputs=source, **given, **options).to_tuple(), outputs.to_tuple())
        model.config.return_dict = False
        values = model(**batch)
        assert type(values) is tuple
        assert_same(values, model(**batch, return_dict=True).to_tuple())
        if case.generates:
            tokens = model.generate(**ids, max_new_tokens=4)
            model.config.return_dict = True
            assert torch.equal(model.generate(**ids, max_new_tokens=4), tokens)


def stacks(model):
    """The model, and what else of it can be called alone."""
    parts = [model.get_encoder(), model.get_decoder()] if model.config.is_encoder_decoder else []
    return [model, model.base_model, *parts]


@pytest.mark.parametrize("case", cases(variants=False))
def test_a_misspelt_argument_is_refused_and_the_one_that_is_meant_named(case):
    for module in stacks(case.model()):
        known = [
            name for name, parameter in inspect.signature(module.forward).parameters.items()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ] + ["return_dict", "num_items_in_batch"]  # fmt: skip
        for name in known:
            middle = len(name) // 2
            for misspelt in {name[:-1], name + "s", name[:middle] + name[middle:][:1] + name[middle:]} - set(known):
                with pytest.raises(TypeError, match=f"has no argument '{misspelt}'; did you mean '{name}'"):
                    module(**{misspelt: True})


@pytest.mark.parametrize("case", cases(variants=False))
def test_other_keywords_are_taken_since_the_library_passes_them(case):
    model, batch = case.model(), case.batch(labels=False)
    expected = model(**batch)[0]
    others = ["position_ids", "decoder_position_ids", "token_type_ids", "head_mask", "decoder_head_mask",
              "cross_attn_head_mask", "past_key_values", "cache_position", "output_scores", "length",
              "special_tokens_mask", "use_mtp", "output_router_logits", "task_ids"]  # fmt: skip
    assert torch.equal(model(**batch, **dict.fromkeys(others))[0], expected)
    assert torch.equal(model(**batch, num_items_in_batch=3, return_dict=True)[0], expected)


def positions_of_logits(model, call, **arguments):
    """What call(**arguments) returns, and for how many positions the output layer was asked in each pass."""
    positions = []
    hook = model.lm_head.register_forward_hook(lambda layer, inputs, output: positions.append(output.shape[1]))
    returned = call(**arguments)
    hook.remove()
    return returned, positions


@pytest.mark.parametrize("case", cases(generates=True))
def test_logits_of_the_last_positions_are_those_of_the_whole(case):
    model, batch = case.model(sharpness=2.0), case.batch(labels=False)
    length = batch["decoder_input_ids" if case.is_encoder_decoder else "input_ids"].shape[1]
    with torch.no_grad():
        whole = model(**batch).logits
        for count, kept in {0: length, 1: 1, 3: 3, length: length, length + 2: length}.items():
            outputs, positions = positions_of_logits(model, model, **batch, logits_to_keep=count)
            assert positions == [kept]
            torch.testing.assert_close(outputs.logits, whole[:, -kept:])
            if case.is_encoder_decoder:
                assert outputs.encoder_last_hidden_state.shape[1] == batch["input_ids"].shape[1]


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("case", cases(generates=True, seq2seq=True))
def test_generation_asks_for_the_logits_of_the_next_token_only(case, use_cache):
    model = case.model(sharpness=3.0)
    options = ids_and_mask(case) | {
        "decoder_input_ids": torch.tensor([[model.config.decoder_start_token_id, 5, 6]] * 3),
        "max_new_tokens": 4, "min_new_tokens": 4, "num_beams": 2, "use_cache": use_cache,
    }  # fmt: skip
    ids, positions = positions_of_logits(model, model.generate, **options)
    assert positions == [1] * 4
    expected, positions = positions_of_logits(model, model.generate, **options, logits_to_keep=0)
    assert positions == ([3, 1, 1, 1] if use_cache else [3, 4, 5, 6])
    assert torch.equal(ids, expected)


@pytest.mark.parametrize("case", cases(heads=True))
def test_a_batch_without_labels_has_loss_0_and_changes_nothing(case):
    model, batch = case.model(sharpness=2.0), case.batch()
    nothing = batch | {name: torch.full_like(batch[name], -100) for name in case.label_names}
    for items in (None, 5, torch.tensor(5), 0, torch.tensor(0)):
        model.zero_grad()
        loss = model(**nothing, num_items_in_batch=items).loss
        loss.backward()
        assert loss.item() == 0.0
        assert all((parameter.grad == 0).all() for parameter in model.parameters() if parameter.grad is not None)
    # beside another batch of the same update it adds nothing
    gradients = []
    count = (batch[case.label_names[0]] != -100).sum()
    for batches in ([batch], [batch, nothing]):
        model.zero_grad()
        for one in batches:
            model(**one, num_items_in_batch=count).loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None])
    assert_same(*gradients)


def losses_of(case, outputs, batch):
    """The loss of each label, (labels,)."""
    if case.auto_name == "AutoModelForQuestionAnswering":
        padding = batch["attention_mask"] == 0
        logits = [part.masked_fill(padding, float("-inf")) for part in (outputs.start_logits, outputs.end_logits)]
        pairs = zip(logits, (batch[name] for name in case.label_names), strict=True)
        return sum(F.cross_entropy(one, place, reduction="none") for one, place in pairs) / 2
    logits, labels = outputs.logits, batch["labels"]
    if case.is_causal:
        logits, labels = logits[:, :-1], labels[:, 1:]
    real = labels != -100
    logits, labels = logits[real], labels[real]
    if logits.shape == labels.shape:
        return F.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
    return F.cross_entropy(logits, labels, reduction="none")


@pytest.mark.parametrize("case", cases(heads=True))
def test_the_loss_is_the_mean_over_labels_or_their_sum_by_the_items_of_the_update(case):
    model, batch = case.model(sharpness=2.0), case.batch()
    with torch.no_grad():
        outputs = model(**batch)
        losses = losses_of(case, outputs, batch)
        torch.testing.assert_close(outputs.loss, losses.mean())
        for items in (7, torch.tensor(7)):
            torch.testing.assert_close(model(**batch, num_items_in_batch=items).loss, losses.sum() / 7)


def in_threads(work, count=8):
    """Do work(0), work(1), ... in as many threads at once."""
    ready = Barrier(count)

    def start(number):
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


@pytest.mark.parametrize("case", cases(heads=True))
def test_eight_threads_share_one_model(case):
    model = case.model(sharpness=4.0)
    batches = [case.batch(lengths=(7 - n % 3, 4, 1), labels=False, seed=n) for n in range(8)]

    def work(number):
        batch = batches[number]
        with torch.no_grad():
            answers = [model(**batch, output_attentions=True, use_cache=False).to_tuple()]
        if case.generates:
            ids = {name: batch[name] for name in ("input_ids", "attention_mask")}
            answers += [model.generate(**ids, num_beams=beams, max_new_tokens=4) for beams in (1, 3)]
        return answers

    expected = [work(number) for number in range(8)]
    for answer, single in zip(in_threads(work), expected, strict=True):
        assert_same(answer, single)


@pytest.mark.parametrize("case", cases(generates=True, variants=False, seq2seq=True))
def test_eight_threads_share_one_translator(case):
    words = "the a cat dog horse house sees eats sleeps runs red old".split()
    tokenizer = train_tokenizer([" ".join(words)], vocab_size=43, kind="word")
    translator = hf_attn.Translator(case.model(sharpness=4.0, vocab_size=len(tokenizer)), tokenizer)
    texts = [[" ".join(words[n % 5 : n % 5 + 3 + n % 4]), words[n]] for n in range(8)]

    def work(number):
        options = {"num_beams": 1 + number % 3, "max_new_tokens": 4 + number}
        found = translator(texts[number], **options)
        scored = translator.score(texts[number], [one.text for one in found])
        return [(one.text, one.score, one.token_log_probs, one.cross_attentions) for one in (*found, *scored)]

    expected = [work(number) for number in range(8)]
    assert len({tuple(one[2]) for answer in expected for one in answer}) > 8
    for answer, alone in zip(in_threads(work), expected, strict=True):
        for found, single in zip(answer, alone, strict=True):
            assert found[:3] == single[:3]
            assert_same(found[3], single[3])
