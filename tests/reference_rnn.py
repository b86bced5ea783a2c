# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Recurrent translation in explicit loops: one sentence, one step, one vector at a time, from the papers' equations.

`weights` is the model's table of parameters; nothing else of the package is used. A state is a tuple: (hidden,) or
(hidden, cell).
"""

import reference
import torch


def cell(kind, vector, state, input_weight, input_bias, state_weight, state_bias):
    """One step of a cell; the gates' matrices are stored above each other in torch's order."""
    size = len(state[0])

    def gate(index, hidden_scale=1.0):
        rows = slice(index * size, (index + 1) * size)
        from_input = input_weight[rows] @ vector + input_bias[rows]
        return from_input + hidden_scale * (state_weight[rows] @ state[0] + state_bias[rows])

    if kind == "rnn":
        return (torch.tanh(gate(0)),)
    if kind == "gru":
        reset, update = torch.sigmoid(gate(0)), torch.sigmoid(gate(1))
        candidate = torch.tanh(gate(2, hidden_scale=reset))
        return ((1 - update) * candidate + update * state[0],)
    keep_input, forget, candidate, show = (
        torch.sigmoid(gate(0)), torch.sigmoid(gate(1)), torch.tanh(gate(2)), torch.sigmoid(gate(3)),
    )  # fmt: skip
    memory = forget * state[1] + keep_input * candidate
    return show * torch.tanh(memory), memory


def read(kind, vectors, state, weights, prefix, suffix=""):
    """Run one layer in one direction over a list of vectors; the hidden states, and the last state."""
    names = (f"weight_ih_l0{suffix}", f"bias_ih_l0{suffix}", f"weight_hh_l0{suffix}", f"bias_hh_l0{suffix}")
    parameters = [weights[prefix + name] for name in names]
    outputs = []
    for vector in vectors:
        state = cell(kind, vector, state, *parameters)
        outputs.append(state[0])
    return outputs, state


def encode(config, weights, ids):
    """The encoder's states at each token, and the last state of each layer."""
    vectors = [weights["model.encoder.embed_tokens.weight"][token] for token in ids]
    if config.reverse_source:
        vectors = vectors[::-1]
    zero = vectors[0].new_zeros(config.hidden_size)
    start = (zero, zero) if config.rnn_type == "lstm" else (zero,)
    last = []
    for layer in range(config.encoder_layers):
        below, prefix = vectors, f"model.encoder.layers.{layer}.rnn."
        vectors, state = read(config.rnn_type, below, start, weights, prefix)
        if config.bidirectional and layer < (config.bidirectional_layers or config.encoder_layers):
            backward, backward_state = read(config.rnn_type, below[::-1], start, weights, prefix, "_reverse")
            vectors = [torch.cat(pair) for pair in zip(vectors, backward[::-1], strict=True)]
            state = tuple(torch.cat(pair) for pair in zip(state, backward_state, strict=True))
        if config.residual and layer >= 2 and len(vectors[0]) == len(below[0]):
            vectors = [vector + lower for vector, lower in zip(vectors, below, strict=True)]
        last.append(state)
    return (vectors[::-1] if config.reverse_source else vectors), last


def bridge(config, weights, last):
    """The encoder's last states for the decoder: copied, or through tanh(W states) where the shapes differ."""
    prefix = "model.decoder.network.bridge.projections."
    if f"{prefix}0.weight" not in weights:
        return last
    parts = []
    for part in range(len(last[0])):
        joined = torch.cat([layer[part] for layer in last])
        made = torch.tanh(weights[f"{prefix}{part}.weight"] @ joined + weights[f"{prefix}{part}.bias"])
        parts.append(made.split(config.hidden_size))
    return list(zip(*parts, strict=True))


def start(config, weights, vector):
    """tanh(W vector) for each decoder layer; an LSTM's cell starts at zero."""
    prefix = "model.decoder.network.initial."
    made = torch.tanh(weights[f"{prefix}weight"] @ vector + weights[f"{prefix}bias"]).split(config.hidden_size)
    return [(layer, torch.zeros_like(layer)) if config.rnn_type == "lstm" else (layer,) for layer in made]


def step(config, weights, vector, states):
    """One step of all decoder layers."""
    new = []
    for layer, state in enumerate(states):
        _, state = read(config.rnn_type, [vector], state, weights, f"model.decoder.network.rnn.layers.{layer}.")
        vector = state[0] + vector if config.residual and layer >= 2 else state[0]
        new.append(state)
    return new


def top(config, states):
    """The output of the last layer, given the states of all: with residual connections their sum from the second on."""
    if not config.residual or len(states) < 3:
        return states[-1][0]
    return sum(state[0] for state in states[1:])


def gnmt_step(config, weights, embedding, context, states):
    """One step of GNMT's layers, each of which reads the context: the output of the last, and the new states."""
    prefix, vector, new = "model.decoder.network.", embedding, []
    for layer, state in enumerate(states):
        name = f"{prefix}bottom.layers.0." if layer == 0 else f"{prefix}above.{layer - 1}."
        _, state = read(config.rnn_type, [torch.cat([vector, context])], state, weights, name)
        vector = state[0] + vector if config.residual and layer >= 2 else state[0]
        new.append(state)
    return vector, new


def compare(config, weights, query, key):
    """The score of one query and one key."""
    prefix = "model.decoder.network.score."
    kind = (
        config.score_function or {"bahdanau": "additive", "luong": "general", "gnmt": "additive"}[config.attention_type]
    )
    if kind == "additive":
        query_weight, key_weight = (
            weights[f"{prefix}query_projection.weight"],
            weights[f"{prefix}key_projection.weight"],
        )
        return reference.additive(query, key, query_weight, key_weight, weights[f"{prefix}energy.weight"][0])
    if kind == "concat":
        return reference.concat(
            query, key, weights[f"{prefix}pair_projection.weight"], weights[f"{prefix}energy.weight"][0]
        )
    if kind == "general":
        return reference.general(query, key, weights[f"{prefix}key_projection.weight"])
    return reference.dot(query, key) if kind == "dot" else reference.scaled_dot(query, key)


def look(config, weights, query, states):
    """Context and weights of one query over all encoder states."""
    scores = [compare(config, weights, query, state) for state in states]
    return reference.attend_one(scores, torch.stack(states), [True] * len(states))


def maxout(weights, state, embedding, context):
    """Cho's and Bahdanau's output: the larger one of two linear maps of state, embedding and context."""
    prefix = "model.decoder.network.output.projection."
    both = weights[f"{prefix}weight"] @ torch.cat([state, embedding, context]) + weights[f"{prefix}bias"]
    half = len(both) // 2
    return torch.stack([max(both[i], both[half + i]) for i in range(half)])


def translate(config, weights, source, target):
    """The logits, (target_len, vocab_size), and the weights, (target_len, source_len) or None."""
    states, last = encode(config, weights, source)
    outputs, rows = [], []
    kind = config.attention_type if config.attention_type != "none" else config.context_feeding
    if kind == "bahdanau":
        memory = start(config, weights, last[-1][0][-config.hidden_size :])
    elif kind == "gnmt":
        memory = start(config, weights, last[-1][0])
    elif kind == "every_step":
        prefix = "model.decoder.network.context."
        fixed = torch.tanh(weights[f"{prefix}weight"] @ last[-1][0] + weights[f"{prefix}bias"])
        memory = start(config, weights, fixed)
    else:
        memory = bridge(config, weights, last)
    fed = states[0].new_zeros(config.hidden_size)
    for token in target:
        embedding = weights["model.decoder.embed_tokens.weight"][token]
        if kind == "bahdanau":
            context, row = look(config, weights, top(config, memory), states)
            memory = step(config, weights, torch.cat([embedding, context]), memory)
            output = maxout(weights, top(config, memory), embedding, context)
        elif kind == "gnmt":
            context, row = look(config, weights, memory[0][0], states)
            output, memory = gnmt_step(config, weights, embedding, context, memory)
        elif kind == "luong":
            memory = step(config, weights, torch.cat([embedding, fed]) if config.input_feeding else embedding, memory)
            context, row = look(config, weights, top(config, memory), states)
            output = fed = torch.tanh(
                weights["model.decoder.network.combine.weight"] @ torch.cat([context, top(config, memory)])
            )
        elif kind == "every_step":
            memory, row = step(config, weights, torch.cat([embedding, fixed]), memory), None
            output = maxout(weights, top(config, memory), embedding, fixed)
        else:
            memory, row = step(config, weights, embedding, memory), None
            output = top(config, memory)
        outputs.append(weights["lm_head.weight"] @ output)
        rows.append(row)
    return torch.stack(outputs), None if rows[0] is None else torch.stack(rows)
