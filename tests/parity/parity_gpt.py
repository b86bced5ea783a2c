# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What test_gpt2.py and test_llama.py both ask of our model and its twin."""

import torch
from parity.twin_gpt import their_tensor, twins

LENGTHS = (9, 5, 1)


def batch_of(left, seed=0):
    """A batch padded on one side, with labels of what follows a token, and positions for who does not count them."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 41, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = (torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]).long()
    mask = mask.flip(1) if left else mask
    ids = ids.masked_fill(mask == 0, 0)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    predicted = (mask == 1) & (positions > 0)  # transformers would predict the first token from the padding before it
    return {"input_ids": ids, "attention_mask": mask}, ids.masked_fill(~predicted, -100), {"position_ids": positions}


def check_outputs(make, seed, left):
    """Logits and all attention weights of what is no padding."""
    ours, theirs, _ = twins(make, seed)
    batch, _, positions = batch_of(left, seed)
    with torch.no_grad():
        output = ours(**batch, output_attentions=True, output_hidden_states=True)
        expected = theirs(**batch, **positions, output_attentions=True, output_hidden_states=True)
    real = batch["attention_mask"].bool()
    assert expected.logits[real].std() > 0.3
    torch.testing.assert_close(output.logits[real], expected.logits[real], atol=1e-5, rtol=1e-5)
    assert len(output.attentions) == len(expected.attentions) > 0
    for ours_layer, theirs_layer in zip(output.attentions, expected.attentions, strict=True):
        assert ours_layer.shape == theirs_layer.shape
        rows = [layer.transpose(1, 2)[real] for layer in (ours_layer, theirs_layer)]  # of real queries
        torch.testing.assert_close(*rows, atol=1e-5, rtol=0)
    for ours_states, theirs_states in zip(output.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours_states[real], theirs_states[real], atol=1e-5, rtol=1e-5)


def check_loss_and_gradients(make, seed, left):
    """The loss of a padded batch, with and without a count of labels, and the gradient of every weight."""
    ours, theirs, modules = twins(make, seed)
    batch, labels, positions = batch_of(left, seed)
    for items in (None, 7):
        output = ours(**batch, labels=labels, num_items_in_batch=items)
        expected = theirs(**batch, **positions, labels=labels, num_items_in_batch=items)
        torch.testing.assert_close(output.loss, expected.loss, atol=1e-5, rtol=1e-5)
    output.loss.backward()
    expected.loss.backward()
    gradients = {name: one.grad for name, one in theirs.named_parameters(remove_duplicate=False)}
    for name, parameter in ours.named_parameters():
        wanted = their_tensor(name, gradients, modules)
        assert wanted.abs().max() > 0, name
        torch.testing.assert_close(parameter.grad, wanted, atol=1e-5, rtol=1e-4, msg=name)


def check_generation(make):
    """Greedy and beam search of prompts that are padded on the left, for five models."""
    pieces = set()
    for seed in range(5):
        ours, theirs, _ = twins(make, seed)
        batch, _, _ = batch_of(True, seed)
        for options in ({}, {"num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.3}):
            options = options | {"max_new_tokens": 6}
            output, expected = ours.generate(**batch, **options), theirs.generate(**batch, **options)
            assert torch.equal(output, expected), (seed, options)
            pieces |= set(output[:, 9:].flatten().tolist())
    assert len(pieces) > 12


def check_training(make, seed):
    """200 updates of Adam on the same batches."""
    ours, theirs, _ = twins(make, seed, sharpness=1.0)
    ours, theirs = ours.train().double(), theirs.train().double()
    optimizers = [torch.optim.Adam(model.parameters(), lr=3e-3) for model in (ours, theirs)]
    losses = []
    for step in range(200):
        batch, labels, positions = batch_of(False, step % 8)  # of padding on the left Llama's float64 gradients are NaN
        pair = [ours(**batch, labels=labels).loss, theirs(**batch, **positions, labels=labels).loss]
        for optimizer, loss in zip(optimizers, pair, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append([loss.item() for loss in pair])
    losses = torch.tensor(losses)
    torch.testing.assert_close(losses[:, 0], losses[:, 1], atol=1e-4, rtol=0)
    assert losses[-8:, 0].mean() < losses[:8, 0].mean() / 2
