# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Convolutional translation in explicit loops: one sentence, one token, one vector at a time, from Gehring's equations.

`weights` is the model's table of parameters; nothing else of the package is used.
"""

import math

import reference
import torch


def linear(weights, prefix, vector):
    """W vector + b."""
    return weights[f"{prefix}.weight"] @ vector + weights[f"{prefix}.bias"]


def gate(vector):
    """A * sigmoid(B), number by number; A is the first half."""
    half = len(vector) // 2
    return torch.stack([vector[i] / (1 + torch.exp(-vector[half + i])) for i in range(half)])


def convolve(weights, prefix, vectors, kernel_size, before):
    """Each vector with `before` of those before it, and the rest of the window after it; zeros beyond the ends."""
    outputs = []
    for position in range(len(vectors)):
        window = []
        for place in range(position - before, position - before + kernel_size):
            window.append(vectors[place] if 0 <= place < len(vectors) else torch.zeros_like(vectors[0]))
        outputs.append(gate(linear(weights, f"{prefix}.convolution.projection", torch.cat(window))))
    return outputs


def embed(weights, side, ids):
    """Each token's embedding plus that of its position."""
    tokens, positions = weights[f"{side}.embed_tokens.weight"], weights[f"{side}.embed_positions.weight"]
    return [tokens[token] + positions[position] for position, token in enumerate(ids)]


def halved(first, second):
    """The sum of two vectors with the variance of one."""
    return (first + second) * math.sqrt(0.5)


def encode(config, weights, ids):
    """Keys and values of all source tokens."""
    embeddings = embed(weights, "model.encoder", ids)
    states = [linear(weights, "model.encoder.input_projection", vector) for vector in embeddings]
    for layer in range(config.encoder_layers):
        size = config.encoder_kernel_size
        outputs = convolve(weights, f"model.encoder.layers.{layer}", states, size, before=(size - 1) // 2)
        states = [halved(state, output) for state, output in zip(states, outputs, strict=True)]
    keys = [linear(weights, "model.encoder.output_projection", state) for state in states]
    return keys, [halved(key, embedding) for key, embedding in zip(keys, embeddings, strict=True)]


def look(weights, prefix, output, embedding, keys, values):
    """What one decoder layer adds at one token: the output and its context; and the attention weights."""
    query = linear(weights, f"{prefix}.query_projection", output) + embedding
    scores = [reference.dot(query, key) for key in keys]
    context, row = reference.attend_one(scores, torch.stack(values), [True] * len(keys))
    context = context * len(keys) * math.sqrt(1 / len(keys))
    return halved(output, linear(weights, f"{prefix}.context_projection", context)), row


def translate(config, weights, source, target):
    """The logits, (target_len, vocab_size), and the weights of each layer, (layers, target_len, source_len)."""
    keys, values = encode(config, weights, source)
    embeddings = embed(weights, "model.decoder", target)
    states = [linear(weights, "model.decoder.input_projection", vector) for vector in embeddings]
    layers = []
    for layer in range(config.decoder_layers):
        prefix, size = f"model.decoder.layers.{layer}", config.decoder_kernel_size
        outputs = convolve(weights, prefix, states, size, before=size - 1)
        looked = [look(weights, prefix, *pair, keys, values) for pair in zip(outputs, embeddings, strict=True)]
        states = [halved(state, attended) for state, (attended, _) in zip(states, looked, strict=True)]
        layers.append(torch.stack([row for _, row in looked]))
    outputs = [linear(weights, "model.decoder.output_projection", state) for state in states]
    return torch.stack([linear(weights, "lm_head", output) for output in outputs]), torch.stack(layers)
