"""Teach a tiny model a few sentence pairs in seconds, so that its outputs vary and end by themselves."""

import torch


def teach(model, tokenizer, pairs, steps):
    """Train a model on the pairs, well enough to end its sentences, not well enough to be sure of them."""
    sources, targets = zip(*pairs, strict=True)
    inputs = tokenizer(list(sources), padding=True, return_tensors="pt")
    labels = tokenizer(list(targets), padding=True, return_tensors="pt").input_ids
    labels = labels.masked_fill(labels == tokenizer.pad_token_id, -100)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
    return model.eval()
