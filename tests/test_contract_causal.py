# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What holds for every decoder that stands alone: it goes on with a text, from what stands before it and nothing else.

The reference is one text at a time, without padding, cache or batch.
"""

import pytest
import torch
from contract import cases
from torch.nn import functional as F
from transformers import Trainer, TrainingArguments

ALL = pytest.mark.parametrize("case", cases(generates=True, seq2seq=False))
FAMILIES = pytest.mark.parametrize("case", cases(generates=True, seq2seq=False, variants=False))
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def texts(seed=0):
    """Three texts of unequal length."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 43, (length,), generator=generator).tolist() for length in (7, 4, 1)]


def padded(rows, left, length=9):
    """A batch of texts and its mask."""
    ids, mask = torch.zeros(len(rows), length, dtype=torch.long), torch.zeros(len(rows), length, dtype=torch.long)
    for row, text in enumerate(rows):
        place = slice(length - len(text), length) if left else slice(0, len(text))
        ids[row, place], mask[row, place] = torch.tensor(text), 1
    return {"input_ids": ids, "attention_mask": mask}


def lively(case, seed=0):
    """A model whose choices are distinct, since its output is not its embedding, and that does not end."""
    model = case.model(seed=seed, sharpness=4.0, tie_word_embeddings=False)
    model.generation_config.eos_token_id = None
    return model


@torch.no_grad()
def plain_greedy(model, text, steps):
    """Greedy search, one pass over the whole text a step."""
    for _ in range(steps):
        text = [*text, model(torch.tensor([text]), use_cache=False).logits[0, -1].argmax().item()]
    return text


@ALL
def test_greedy_search_is_the_plain_loop_wherever_the_padding_stands(case):
    chosen = set()
    for seed in range(2):
        model, rows = lively(case, seed), texts(seed)
        expected = [plain_greedy(model, text, 6) for text in rows]
        output = model.generate(**padded(rows, left=True), max_new_tokens=6)
        assert [ids[9 - len(text) :] for ids, text in zip(output.tolist(), rows)] == expected
        chosen |= set(output[:, 9:].flatten().tolist())
    assert len(chosen) > 6


@ALL
def test_no_cache_changes_an_id_or_a_weight(case):
    model, batch = lively(case), padded(texts(), left=True)
    options = {"max_new_tokens": 5, "output_attentions": True, "return_dict_in_generate": True}
    for beams in ({}, {"num_beams": 3}):
        plain = model.generate(**batch, **options, **beams, use_cache=False)
        dynamic = model.generate(**batch, **options, **beams)
        static = model.generate(**batch, **options, **beams, cache_implementation="static")
        assert torch.equal(dynamic.sequences, plain.sequences) and torch.equal(static.sequences, plain.sequences)
        for step, steps in enumerate(zip(plain.attentions, dynamic.attentions, static.attentions, strict=True)):
            for whole, one, wide in zip(*steps, strict=True):
                assert whole.shape[-1] == one.shape[-1] == 9 + step
                torch.testing.assert_close(one, whole[:, :, -one.shape[2] :], **CLOSE)
                torch.testing.assert_close(wide[..., : 9 + step], one, **CLOSE)
                assert (wide[..., 9 + step :] == 0).all()


@ALL
def test_cached_steps_are_the_rows_of_the_whole(case):
    for left in (False, True):
        model, batch = case.model(sharpness=4.0), padded(texts(), left)
        with torch.no_grad():
            whole = model(**batch, output_attentions=True)
            cache, start = None, 0
            for end in (3, 4, 9):
                ids, mask = batch["input_ids"][:, start:end], batch["attention_mask"][:, :end]
                step = model(ids, mask, cache=cache, use_cache=True, output_attentions=True)
                real = mask[:, start:].bool()
                torch.testing.assert_close(step.logits[real], whole.logits[:, start:end][real], **CLOSE)
                for layer, expected in zip(step.attentions, whole.attentions, strict=True):
                    rows = [one.transpose(1, 2)[real] for one in (layer, expected[:, :, start:end, :end])]
                    torch.testing.assert_close(*rows, **CLOSE)
                cache, start = step.cache, end


@ALL
def test_generation_goes_on_from_a_returned_cache_and_reads_the_new_tokens_alone(case):
    model, batch = lively(case), padded(texts(), left=True)
    expected = model.generate(**batch, max_new_tokens=6)
    half = model.generate(**batch, max_new_tokens=3, return_dict_in_generate=True)
    lengths = []
    handle = model.model.register_forward_hook(lambda module, inputs, output: lengths.append(output[0].shape[1]))
    mask = F.pad(batch["attention_mask"], (0, 3), value=1)
    again = model.generate(input_ids=half.sequences, attention_mask=mask, cache=half.cache, max_new_tokens=3)
    handle.remove()
    assert torch.equal(again, expected) and lengths == [1, 1, 1]


@ALL
def test_what_comes_later_changes_nothing(case):
    model, first, second = case.model(sharpness=4.0), torch.tensor([texts()[0]]), torch.tensor([texts(1)[0]])
    second[:, :4] = first[:, :4]
    with torch.no_grad():
        outputs = [model(ids, output_attentions=True) for ids in (first, second)]
    torch.testing.assert_close(outputs[0].logits[:, :4], outputs[1].logits[:, :4], **CLOSE)
    assert not torch.allclose(outputs[0].logits[:, 4], outputs[1].logits[:, 4], atol=0.01)
    window = getattr(case.config(), "sliding_window", None) or 7
    near = torch.ones(7, 7, dtype=torch.bool).tril() & torch.ones(7, 7, dtype=torch.bool).triu(1 - window)
    for layer in outputs[0].attentions:
        assert torch.equal(layer[0] > 0, near.expand(layer.shape[1], 7, 7))


@ALL
def test_padding_changes_nothing(case):
    model = case.model(sharpness=4.0)
    with torch.no_grad():
        for left in (False, True):
            output = model(**padded(texts(), left), output_attentions=True)
            for row, text in enumerate(texts()):
                place = slice(9 - len(text), 9) if left else slice(0, len(text))
                alone = model(torch.tensor([text]), output_attentions=True)
                torch.testing.assert_close(output.logits[row, place], alone.logits[0], **CLOSE)
                for layer, expected in zip(output.attentions, alone.attentions, strict=True):
                    torch.testing.assert_close(layer[row, :, place, place], expected[0], **CLOSE)


def explicit_loss(model, rows, ignored=()):
    """The mean of -log p of every token but the first of a text, one after the other."""
    losses = []
    for row, text in enumerate(rows):
        for place in range(1, len(text)):
            if (row, place) not in ignored:
                log_probs = model(torch.tensor([text[:place]])).logits[0, -1].log_softmax(dim=-1)
                losses.append(-log_probs[text[place]])
    return torch.stack(losses)


@ALL
def test_the_loss_is_that_of_every_token_but_the_first_and_its_end(case):
    model, rows = case.model(sharpness=2.0), [[*text, 2] for text in texts()]  # each ends with its end
    with torch.no_grad():
        expected = explicit_loss(model, rows, ignored={(0, 2)})
        assert len(expected) == 7 + 4 + 1 - 1
        for left in (False, True):
            batch = padded(rows, left)
            labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
            labels[0, 2 + left] = -100
            torch.testing.assert_close(model(**batch, labels=labels).loss, expected.mean(), **CLOSE)
            for items in (5, torch.tensor(5)):
                loss = model(**batch, labels=labels, num_items_in_batch=items).loss
                torch.testing.assert_close(loss, expected.sum() / 5, **CLOSE)
            shifted = F.pad(labels[:, 1:], (0, 1), value=-100)
            if not left:  # labels that are shifted already
                loss = model(**batch, labels=labels, shift_labels=shifted).loss
                torch.testing.assert_close(loss, expected.mean(), **CLOSE)


@ALL
def test_accumulated_batches_are_one_batch(case, tmp_path):
    rows = [{"input_ids": ids, "labels": ids} for ids in ([[*text, 2] for seed in range(2) for text in texts(seed)])]
    weights = []

    def collate(some):
        batch = padded([row["input_ids"] for row in some], left=False)
        return batch | {"labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)}

    for size, accumulated in ((6, 1), (2, 3)):
        model = case.model(sharpness=2.0, **case.still)
        arguments = TrainingArguments(
            tmp_path, max_steps=1, per_device_train_batch_size=size, gradient_accumulation_steps=accumulated,
            optim="sgd", learning_rate=0.5, max_grad_norm=0.0, use_cpu=True, disable_tqdm=True, save_strategy="no",
            lr_scheduler_type="constant",
        )  # fmt: skip
        start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        Trainer(model, arguments, train_dataset=rows, data_collator=collate).train()
        weights.append({name: tensor - start[name] for name, tensor in model.state_dict().items()})
    assert max(tensor.abs().max() for tensor in weights[0].values()) > 0.01
    for name, tensor in weights[0].items():
        torch.testing.assert_close(weights[1][name], tensor, atol=1e-6, rtol=1e-4, msg=name)


@ALL
def test_smoothed_labels_are_those_of_the_next_token(case, tmp_path):
    model, text = case.model(sharpness=2.0, **case.still), [*texts()[0], 2]
    arguments = TrainingArguments(tmp_path, label_smoothing_factor=0.2, use_cpu=True, disable_tqdm=True)
    rows = [{"input_ids": text, "labels": text}]
    loss = Trainer(model, arguments, eval_dataset=rows).evaluate()["eval_loss"]
    with torch.no_grad():
        log_probs = model(torch.tensor([text])).logits[0, :-1].log_softmax(dim=-1)
        exact = log_probs[range(len(text) - 1), text[1:]]
        expected = -(0.8 * exact + 0.2 * log_probs.mean(dim=-1)).mean()
    assert loss == pytest.approx(expected.item(), rel=1e-4)


@ALL
def test_recomputed_layers_have_the_same_gradients(case):
    gradients = []
    for again in (False, True):
        model = case.model(sharpness=2.0, **case.still).train()
        if again:
            model.gradient_checkpointing_enable()
        model(**case.batch()).loss.backward()
        gradients.append({name: one.grad for name, one in model.named_parameters() if one.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, **CLOSE)


@FAMILIES
def test_generation_asks_for_the_logits_of_the_next_token_only(case):
    model, kept = lively(case), []
    handle = model.lm_head.register_forward_hook(lambda layer, inputs, output: kept.append(output.shape[1]))
    model.generate(**padded(texts(), left=True), max_new_tokens=4)
    handle.remove()
    assert kept == [1] * 4


@FAMILIES
def test_no_output_is_begun_that_is_too_long_for_the_positions(case):
    model, batch = lively(case, seed=1), padded(texts(), left=True)
    limit = model.config.max_position_embeddings
    assert model.generate(**batch, max_length=limit + 1).shape == (3, limit + 1)  # the last token needs no position
    with pytest.raises(ValueError, match=f"max_length={limit + 2}.*max_position_embeddings={limit}"):
        model.generate(**batch, max_length=limit + 2)
    with pytest.raises(ValueError, match=f"{limit + 1} tokens.*max_position_embeddings={limit}"):
        model(torch.full((1, limit + 1), 5))


@FAMILIES
@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_new_tokens": 2, "min_new_tokens": 3}, "min_length=12 is more than max_length=11"),
        ({"max_new_tokens": 2, "cache_implementation": "offloaded"}, "cache_implementation='offloaded' needs"),
    ],
)
def test_mistakes_are_refused_by_name(case, options, message):
    with pytest.raises(ValueError, match=message):
        lively(case).generate(**padded(texts(), left=True), **options)


@FAMILIES
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda ids: {"labels": ids.masked_fill(ids > 20, 99)}, "labels has the id 99"),
        (lambda ids: {"labels": ids[:, :-1]}, r"labels have shape \(3, 8\), the inputs \(3, 9\)"),
        (lambda ids: {"labels": ids.float()}, "labels must be token ids"),
        (lambda ids: {"labels": ids, "logits_to_keep": 2}, "logits_to_keep=2, but the loss needs"),
        (lambda ids: {"encoder_hidden_states": torch.zeros(3, 2, 16)}, "add_cross_attention=True"),
        (lambda ids: {"cache": "dynamic"}, "cache must hold keys and values"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(case, change, message):
    batch = padded(texts(), left=False)
    with pytest.raises((ValueError, TypeError), match=message):
        case.model()(**batch, **change(batch["input_ids"]))
