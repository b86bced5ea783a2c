"""The steps of one layer of multi-head attention, whoever asks and whatever is looked at.

    all heads; then one of them: 1 query; 2 keys; 3 scaling; 4 mask; 5 softmax; 6 values and weighted sum

Read `hf_attn/models/multihead.py` and `layers.py` beside this file, `steps_transformer.py` and `steps_text.py` for what
the models give to it and for the last step.
"""

from dataclasses import dataclass
from typing import Any

import torch

from hf_attn.models.attention import attend
from hf_attn.models.masks import AttentionMask
from hf_attn.models.positions import rotary_angles, rotate

from .steps_common import Quantity, Step, body_of, line_of, shape_of, softmax_step, sum_step, vector


@dataclass(frozen=True, eq=False)
class Given:
    """What the attention of one layer is given.

    Attributes:
        attention: the layer's `MultiHeadAttention`.
        states: what the layer adds its output to, (1, query_len, hidden_size).
        asks: what queries are made of: the states, in pre-norm networks normalised.
        data: what keys and values are made of, (1, key_len, data_size).
        mask: what may be attended.
        bias: added to the scores; None for nothing.
        angles: rotary angles; None for none.
    """

    attention: Any
    states: torch.Tensor
    asks: torch.Tensor
    data: torch.Tensor
    mask: AttentionMask
    bias: torch.Tensor | None = None
    angles: torch.Tensor | None = None


@dataclass(frozen=True)
class Words:
    """How the steps speak of it.

    Attributes:
        who: who asks, e.g. "The decoder's state at this place".
        whom: who is asked, e.g. "the source".
        pieces: the pieces that are looked at.
        axis: the name of their axis.
    """

    who: str
    whom: str
    pieces: list[str]
    axis: str


def self_attention(stack, layer: int, states: torch.Tensor, mask: AttentionMask) -> Given:
    """Give the self-attention of a layer what it gets in the forward pass of its stack.

    Args:
        stack: an encoder or decoder.
        layer: which layer, counted from 0.
        states: what the layer reads, (1, length, hidden_size).
        mask: what may be attended.

    Returns:
        What its attention is given.
    """
    block = stack.layers[layer % len(stack.layers)]  # ALBERT has one for all layers
    positions = torch.arange(states.shape[1], device=states.device)[None]
    angles = None
    if stack.config.position_type == "rotary":
        base = getattr(stack.config, "rope_theta", 10000.0)
        angles = rotary_angles(positions, block.self_attention.head_dim, base)
    bias = None if stack.position_bias is None else stack.position_bias(positions, positions)
    asks = block.self_attention_norm(states) if block.norm_first else states
    return Given(block.self_attention, states, asks, asks, mask, bias, angles)


def head_steps(given: Given, words: Words, position: int, head: int) -> list[Step]:
    """Compute the attention of one layer at one position.

    Args:
        given: what the attention is given.
        words: how to speak of it.
        position: which query, counted from 0.
        head: which head is shown in detail, counted from 0.

    Returns:
        The steps: all heads side by side, then one in detail.
    """
    attention = given.attention
    query = attention.split_heads(attention.query_projection(given.asks))
    key, value = attention.keys_and_values(given.data)
    if given.angles is not None:
        query, key = rotate(query, given.angles), rotate(key, given.angles)
    key, value = (one.repeat_interleave(attention.group_size, dim=1) for one in (key, value))
    scores = attention.score(query, attention.score.project_keys(key))
    if given.bias is not None:
        scores = scores + given.bias
    allowed = given.mask.dense(query.shape[2], key.shape[2], device=query.device)
    context, weights = attend(scores, value, allowed)
    merged = context.transpose(1, 2).flatten(2)

    at, pieces = (0, head, position), words.pieces
    masked = scores[at] if allowed is None else scores[at].masked_fill(~allowed[0, 0, position], float("-inf"))
    of_pieces, head_dim = shape_of(**{words.axis: len(pieces)}), attention.head_dim
    multihead = type(attention)
    products = [Quantity("query · key", query[at] @ key[0, head].T, pieces, of_pieces)]
    if given.bias is not None:
        products.append(Quantity("position bias", given.bias.expand_as(scores)[at], pieces, of_pieces))
    norm = given.asks is not given.states
    state = "norm(state)" if norm else "state"
    datum = "norm(state_j)" if norm and given.data is given.asks else "state_j"
    changed = [line_of(multihead.forward, "query, key = rotate(")] if given.angles is not None else []
    changed += [line_of(multihead.forward, "key, value = (one.repeat_")] if attention.group_size > 1 else []
    asking = [vector("normalised state", given.asks[0, position], "hidden_size")] if norm else []
    return [
        _all_heads(given, words, weights[0, :, position], merged, position, head),
        Step(
            "Query",
            f"query = {_projected(given, 'Q', state, 'i')}",
            f"{words.who} asks {words.whom}; head {head + 1} of {attention.num_heads} has a question of its own, "
            f"{head_dim} of the {merged.shape[-1]} numbers." + _turned(given),
            [
                vector("state", given.states[0, position], "hidden_size"),
                *asking,
                vector("query", query[at], "head_dim"),
            ],
            [line_of(multihead.forward, "query = self.split_heads(")],
        ),
        Step(
            "Keys",
            f"key_j = {_projected(given, 'K', datum, 'j')}",
            f"Each piece of {words.whom} is described by a key, made by a matrix of this head" + _sharing(attention),
            [Quantity("keys", key[0, head], pieces, shape_of(**{words.axis: len(pieces)}, head_dim=head_dim))],
            [body_of(multihead.keys_and_values), *changed],
        ),
        _scores_step(attention, [*products, Quantity("scores", scores[at], pieces, of_pieces)]),
        Step(
            "Mask",
            "score_j = −∞ where j may not be seen",
            _what_is_hidden(given, words.whom),
            [Quantity("masked scores", masked, pieces, of_pieces)],
            [line_of(attend, "scores = scores.masked_fill(")],
        ),
        softmax_step(weights[at], pieces, words.axis),
        sum_step(
            context[at], weights[at], value[0, head], pieces, words.axis, "head_dim", _projected(given, "V", datum)
        ),
    ]


def what_follows(block, layers_above: int, parts: str) -> str:
    """Say what happens to the output of an attention on its way to the end of its stack.

    Args:
        block: the layer.
        layers_above: how many layers come after it.
        parts: what comes after the attention in the layer itself, with its verb.

    Returns:
        One sentence.
    """
    added = "added to the state (residual)" + ("" if block.norm_first else " and normalised")
    above = (
        f", then {layers_above} more layer{'s' if layers_above > 1 else ''} of the same kind" if layers_above else ""
    )
    return f"The output is {added}; {parts}{above}{', and a last norm' if block.norm_first else ''}."


def _all_heads(given: Given, words: Words, weights: torch.Tensor, merged, position: int, head: int) -> Step:
    attention = given.attention
    heads, head_dim = attention.num_heads, attention.head_dim
    names = [f"head {number + 1}" + (" (below)" if number == head else "") for number in range(heads)]
    output = attention.output_projection(merged)[0, position]
    multihead = type(attention)
    return Step(
        "All heads",
        f"output = W^O [context_1; …; context_h]{_bias(attention.output_projection)}",
        f"{heads} head{'s' if heads > 1 else ''}, each with matrices of its own, look at once at {words.whom}. Their "
        "contexts are joined, mixed by one more matrix, and added to the state. How "
        f"head {head + 1} found its context is what the numbered steps show.",
        [
            Quantity(
                "weights of every head",
                weights.T,
                words.pieces,
                shape_of(**{words.axis: len(words.pieces)}, heads=heads),
                names,
            ),
            Quantity(
                "joined contexts",
                merged[0, position].unflatten(0, (heads, head_dim)),
                names,
                shape_of(heads=heads, head_dim=head_dim),
            ),
            vector("output of the attention", output, "hidden_size"),
            vector("state + output", given.states[0, position] + output, "hidden_size"),
        ],
        [
            line_of(multihead.forward, "merged = context"),
            line_of(multihead.forward, "return self.output_projection("),
        ],
    )


def _scores_step(attention, quantities: list[Quantity]) -> Step:
    """Make scores of dot products, and of the position bias where there is one."""
    score, head_dim = type(attention.score), attention.head_dim
    bias = " + bias_j" if len(quantities) == 3 else ""
    if attention.score.scale == 1:
        meaning = (
            "The dot products are the scores: the matrix that made the query has learned how large they are to be."
        )
        return Step("Scores", "score_j = query · key_j" + bias, meaning, quantities, [body_of(score.forward)])
    return Step(
        "Scaling",
        "score_j = query · key_j / √head_dim" + bias,
        f"Dot products grow with the width of the vectors. Divided by √{head_dim} = {head_dim**0.5:.2f} they stay "
        "where the softmax still tells them apart.",
        quantities,
        [line_of(score.__init__, "self.scale ="), body_of(score.forward)],
    )


def _projected(given: Given, matrix: str, states: str, place: str = "") -> str:
    """Write how queries, keys or values are made of states; those with a place are turned by rotary positions."""
    product = f"W^{matrix} {states}{_bias(given.attention.query_projection)}"
    return f"rotate({product}, {place})" if place and given.angles is not None else product


def _bias(projection) -> str:
    return "" if projection.bias is None else " + b"


def _turned(given: Given) -> str:
    if given.angles is None:
        return ""
    return " It is turned by an angle that grows with its position, and so are the keys: only their distance counts."


def _sharing(attention) -> str:
    if attention.group_size == 1:
        return "."
    return f", which shares it with others: {attention.group_size} heads have the same keys and values."


def _what_is_hidden(given: Given, whom: str) -> str:
    if not given.mask.causal:
        later = ", those that come later too" if given.data is given.asks else ""
        return (
            f"Every piece of {whom} may be seen{later}. The mask would hide padding, which a single sentence does not "
            "have."
        )
    text = "A piece that comes later is not written yet, and may not be seen: its score becomes −∞, its weight 0."
    if given.mask.window is not None:
        text += f" Nor may one that is not among the latest {given.mask.window}."
    return text
