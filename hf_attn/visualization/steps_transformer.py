"""The steps of one head of a Transformer's decoder layer.

    1 query; 2 keys; 3 scaling; 4 mask; 5 softmax; 6 values and weighted sum; 7 heads; 8 output

Read `hf_attn/models/multihead.py` and `layers.py` beside this file.
"""

from typing import TYPE_CHECKING, Any

import torch

from hf_attn.models.attention import attend
from hf_attn.models.masks import AttentionMask
from hf_attn.models.positions import rotary_angles, rotate

from .extract import decoder_inputs
from .steps_common import (
    Quantity,
    Step,
    body_of,
    likeliest,
    line_of,
    read_ids,
    shape_of,
    softmax_step,
    sum_step,
    vector,
)

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator


def transformer_steps(
    translator: "Translator", translation: "Translation", position: int, layer: int, head: int, kind: str
) -> list[Step]:
    """Compute the steps of one head.

    Args:
        translator: what made the translation.
        translation: a translation of one line.
        position: which target piece, counted from 0.
        layer: decoder layer, counted from 0.
        head: head, counted from 0.
        kind: "cross" for attention to the source, "decoder" for the masked attention to what was read.

    Returns:
        The steps in order.
    """
    model: Any = translator.model
    source, read = read_ids(translator, translation)
    outputs = model(source, decoder_input_ids=read, output_hidden_states=True, output_attentions=True, use_cache=False)
    block = model.model.decoder.layers[layer]
    asks, data, attention, mask, bias, angles = _inputs(model.model.decoder, block, outputs, layer, kind)

    query = attention.split_heads(attention.query_projection(asks))
    key, value = attention.keys_and_values(data)
    if angles is not None:
        query, key = rotate(query, angles), rotate(key, angles)
    products = query @ key.transpose(-2, -1)
    scores = attention.score(query, attention.score.project_keys(key))
    if bias is not None:
        scores = scores + bias
    allowed = mask.dense(query.shape[2], key.shape[2])
    context, weights = attend(scores, value, allowed)
    merged = context.transpose(1, 2).flatten(2)
    output = attention.output_projection(merged)

    pieces = translation.source_tokens if kind == "cross" else decoder_inputs(translation)
    axis = "source_len" if kind == "cross" else "target_len"
    at = (0, head, position)
    masked = scores[at] if allowed is None else scores[at].masked_fill(~allowed[0, 0, position], float("-inf"))
    heads, head_dim = attention.num_heads, attention.head_dim
    who = "what the decoder has read so far" if kind == "decoder" else "the source"
    multihead = type(attention)
    shape = {axis: len(pieces)}
    added = []
    if bias is not None:
        added = [Quantity("position bias", bias.expand_as(scores)[at], pieces, shape_of(**shape))]
    steps = [
        Step(
            "Query",
            "query = W^Q state",
            f"The decoder's state at this place asks {who}; head {head + 1} of {heads} has a question of its own, "
            f"{head_dim} of the {heads * head_dim} numbers.",
            [vector("state", asks[0, position], "hidden_size"), vector("query", query[at], "head_dim")],
            [line_of(multihead.forward, "query = self.split_heads(")],
        ),
        Step(
            "Keys",
            "key_j = W^K state_j",
            f"Each piece of {who} is described by a key, made by a matrix of this head.",
            [Quantity("keys", key[0, head], pieces, shape_of(**shape, head_dim=head_dim))],
            [body_of(multihead.keys_and_values)],
        ),
        _scores_step(
            attention,
            [
                Quantity("query · key", products[at], pieces, shape_of(**shape)),
                *added,
                Quantity("scores", scores[at], pieces, shape_of(**shape)),
            ],
        ),
        Step(
            "Mask",
            "score_j = −∞ where j may not be seen",
            "A piece that is not written yet may not be seen: its score becomes −∞, its weight 0."
            if kind == "decoder"
            else "Every piece of the source may be seen. The mask would hide padding, which a single sentence does not "
            "have; in the decoder's attention to itself it hides what is not written yet.",
            [Quantity("masked scores", masked, pieces, shape_of(**shape))],
            [line_of(attend, "scores = scores.masked_fill(")],
        ),
        softmax_step(weights[at], pieces, axis),
        sum_step(context[at], weights[at], value[0, head], pieces, axis, "head_dim", "W^V state_j"),
        Step(
            "Heads",
            "output = W^O [context_1; …; context_h]",
            f"All {heads} heads do this at once, each with matrices of its own. Their contexts are joined and mixed by "
            "one more matrix.",
            [
                Quantity(
                    "weights of every head",
                    weights[0, :, position],
                    [f"head {number + 1}" for number in range(heads)],
                    shape_of(heads=heads, **shape),
                    pieces,
                ),
                vector("joined contexts", merged[0, position], "heads · head_dim"),
                vector("output of the attention", output[0, position], "hidden_size"),
            ],
            [
                line_of(multihead.forward, "merged = context"),
                line_of(multihead.forward, "return self.output_projection("),
            ],
        ),
        Step(
            "Output",
            _output_formula(model.config),
            _what_follows(layer, len(model.model.decoder.layers), kind),
            [
                vector("last state", outputs.decoder_hidden_states[-1][0, position], "hidden_size"),
                likeliest(translator, outputs.logits[0, position], translation.target_ids[position]),
            ],
            [line_of(type(model).forward, "logits = self.lm_head(")],
        ),
    ]
    return steps


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


def _output_formula(config) -> str:
    state = "E state / √hidden_size" if config.scale_output else "E state"
    return f"p = softmax({state} + b)" if config.output_bias else f"p = softmax({state})"


def _inputs(decoder, block, outputs, layer: int, kind: str):
    """Follow one decoder layer up to where it asks: (states that ask, data, attention, mask, bias, angles)."""
    states = outputs.decoder_hidden_states[layer]
    positions = torch.arange(states.shape[1], device=states.device)[None]
    rotary = decoder.config.position_type == "rotary"
    angles = rotary_angles(positions, block.self_attention.head_dim) if rotary else None
    bias = None if decoder.position_bias is None else decoder.position_bias(positions, positions)
    mask = AttentionMask(causal=True)
    asks = block.self_attention_norm(states) if block.norm_first else states
    if kind == "decoder":
        return asks, asks, block.self_attention, mask, bias, angles
    written, _ = block.self_attention(asks, mask=mask, bias=bias, angles=angles)
    states = states + written
    states = block.cross_attention_norm(states) if block.norm_first else block.self_attention_norm(states)
    return states, outputs.encoder_last_hidden_state, block.cross_attention, AttentionMask(), None, None


def _what_follows(layer: int, layers: int, kind: str) -> str:
    here = "cross-attention and a feed-forward network" if kind == "decoder" else "a feed-forward network"
    above = layers - layer - 1
    rest = f", then {above} more layer{'s' if above > 1 else ''} of the same kind" if above else ""
    return (
        f"The output is added to the state (residual) and normalised; {here} follow{'' if kind == 'decoder' else 's'}"
        f"{rest}. The vocabulary's largest logits are the likeliest next pieces."
    )
