# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The equations in explicit loops over single vectors and single numbers: what the package is tested against.

Nothing here is fast, batched or shared with the package. A vector is a one-dimensional tensor, a sequence is a matrix
with a vector in each row; sums over positions and softmaxes are written out. Gradients flow through everything.
"""

import math

import torch

# masks


def may_attend(query: int, key: int, real_key: bool = True, causal: bool = False, window: int | None = None) -> bool:
    """Whether the query at one position may look at the key at another."""
    if not real_key:
        return False
    if causal and key > query:
        return False
    if window is not None and query - key >= window:
        return False
    return True


def mask(padding, query_len, key_len, causal=False, window=None, offset=0):
    """The mask of a batch, (batch, 1, query_len, key_len); `padding` is a list of lists; keys beyond it are unused."""
    rows = [row + [False] * (key_len - len(row)) for row in padding]
    return torch.tensor(
        [
            [[[may_attend(offset + i, j, row[j], causal, window) for j in range(key_len)] for i in range(query_len)]]
            for row in rows
        ]
    )


# the equation


def attend_one(scores, values, allowed):
    """The context and the weights of one query; `scores`, `allowed` and `values` have one entry a key."""
    zero = values.new_zeros(())
    chosen = [j for j in range(len(scores)) if allowed[j]]
    if not chosen:
        return values.new_zeros(values.shape[1]), torch.stack([zero for _ in scores])
    largest = max(scores[j].item() for j in chosen)
    powers = {j: torch.exp(scores[j] - largest) for j in chosen}
    total = sum(powers.values())
    weights = [powers[j] / total if j in powers else zero for j in range(len(scores))]
    context = values.new_zeros(values.shape[1])
    for weight, value in zip(weights, values, strict=True):
        context = context + weight * value
    return context, torch.stack(weights)


def attend(scores, value, mask=None):
    """`attend_one` for every query of every head of every sentence; shapes as in the package."""
    batch, heads, query_len, key_len = scores.shape
    allowed = torch.ones(scores.shape, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    contexts, weights = [], []
    for b in range(batch):
        for h in range(heads):
            for i in range(query_len):
                context, row = attend_one(scores[b, h, i], value[b, h], allowed[b, h, i].tolist())
                contexts.append(context)
                weights.append(row)
    context = torch.stack(contexts).view(batch, heads, query_len, value.shape[-1])
    return context, torch.stack(weights).view(batch, heads, query_len, key_len)


# scores of one query and one key


def dot(query, key):
    return sum(q * k for q, k in zip(query, key, strict=True))


def scaled_dot(query, key):
    return dot(query, key) / math.sqrt(len(query))


def matrix_times(matrix, vector):
    return torch.stack([dot(row, vector) for row in matrix])


def general(query, key, weight):
    return dot(query, matrix_times(weight, key))


def additive(query, key, query_weight, key_weight, energy):
    return dot(energy, torch.tanh(matrix_times(query_weight, query) + matrix_times(key_weight, key)))


def concat(query, key, pair_weight, energy):
    return dot(energy, torch.tanh(matrix_times(pair_weight, torch.cat([query, key]))))


def score_all(query, key, score):
    """`score(query_vector, key_vector)` for every pair, (batch, heads, query_len, key_len)."""
    rows = [
        [[torch.stack([score(q, k) for k in key[b, h]]) for q in query[b, h]] for h in range(query.shape[1])]
        for b in range(query.shape[0])
    ]
    return torch.stack([torch.stack([torch.stack(head) for head in sentence]) for sentence in rows])


# positions


def sinusoid(position, width):
    """Vaswani 2017, section 3.5: sine at even places, cosine at odd ones."""
    vector = []
    for place in range(width):
        angle = position / 10000 ** ((place - place % 2) / width)
        vector.append(math.sin(angle) if place % 2 == 0 else math.cos(angle))
    return torch.tensor(vector, dtype=torch.float64)


def rotate(vector, position, base=10000.0):
    """Su 2021, equation 15, with the pair (i, i + half) as coordinates of a plane, as Llama stores them."""
    half = len(vector) // 2
    out = [None] * len(vector)
    for i in range(half):
        angle = position * base ** (-2 * i / len(vector))
        x, y = vector[i], vector[i + half]
        out[i] = x * math.cos(angle) - y * math.sin(angle)
        out[i + half] = x * math.sin(angle) + y * math.cos(angle)
    return torch.stack(out)


def alibi_slopes(heads):
    """Press 2022, section 3: a geometric series; if no power of two, that of the power below and half of the next."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2 ** (-8 * (2 * h + 1) / (2 * power)) for h in range(heads - power)]


def relative_bucket(distance, bidirectional, buckets, max_distance):
    """Raffel 2020, section 2.1: the bucket of one key at `distance` = key position - query position."""
    bucket = 0
    if bidirectional:
        buckets //= 2
        if distance > 0:
            bucket += buckets
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return bucket + distance
    logarithmic = exact + int(math.log(distance / exact) / math.log(max_distance / exact) * (buckets - exact))
    return bucket + min(logarithmic, buckets - 1)


# layers of one sentence: a sequence is (length, width)


def linear(vector, weight, bias=None):
    out = matrix_times(weight, vector)
    return out if bias is None else out + bias


def layer_norm(vector, weight, bias, epsilon=1e-5):
    mean = sum(vector) / len(vector)
    variance = sum((x - mean) ** 2 for x in vector) / len(vector)
    return (vector - mean) / torch.sqrt(variance + epsilon) * weight + bias


def rms_norm(vector, weight, epsilon=1e-5):
    return vector / torch.sqrt(sum(x * x for x in vector) / len(vector) + epsilon) * weight


def multi_head(queries, data, projections, heads, allowed=None, bias=None, position=None):
    """Vaswani 2017, section 3.2.2, for one sentence.

    `projections` holds (weight, bias) under "query", "key", "value" and "output"; `allowed[i][j]` and `bias[h][i][j]`
    as in the equation; `position(vector, index)` changes the query and the key of one head. Returns the outputs
    (query_len, width) and the weights (heads, query_len, key_len).
    """
    q = [linear(x, *projections["query"]) for x in queries]
    k = [linear(x, *projections["key"]) for x in data]
    v = [linear(x, *projections["value"]) for x in data]
    width, value_width = len(q[0]) // heads, len(v[0]) // heads
    merged, weights = [[] for _ in q], []
    for h in range(heads):
        part, value_part = slice(h * width, (h + 1) * width), slice(h * value_width, (h + 1) * value_width)
        head_keys = [key[part] for key in k]
        head_values = torch.stack([value[value_part] for value in v])
        rows = []
        for i, query in enumerate(q):
            head_query = query[part] if position is None else position(query[part], i)
            scores = []
            for j, key in enumerate(head_keys):
                key = key if position is None else position(key, j)
                scores.append(scaled_dot(head_query, key) + (0.0 if bias is None else bias[h][i][j]))
            context, row = attend_one(scores, head_values, [True] * len(k) if allowed is None else allowed[i])
            merged[i].append(context)
            rows.append(row)
        weights.append(torch.stack(rows))
    outputs = [linear(torch.cat(parts), *projections["output"]) for parts in merged]
    return torch.stack(outputs), torch.stack(weights)


def feed_forward(vector, inner, outer, activation=torch.relu):
    return linear(activation(linear(vector, *inner)), *outer)


def sublayer(sequence, function, norm, norm_first):
    """x + f(norm(x)) or norm(x + f(x)); `function` takes and returns a sequence, `norm` a vector."""

    def normed(rows):
        return torch.stack([norm(row) for row in rows])

    return sequence + function(normed(sequence)) if norm_first else normed(sequence + function(sequence))
