"""The steps of recurrent networks: Bahdanau's, Luong's, GNMT's, and what a network without attention has instead.

    query, keys, values; 1 scores; 2 softmax; 3 weighted sum; 4 concatenation; 5 output

Bahdanau's network asks with the state before the step, and joins the context to the step's input; Luong's asks with the
new state, and joins the context to it; GNMT's asks as Bahdanau's with its bottom layer, and joins the context to the
input of every layer. Read `hf_attn/models/decoders_attn_rnn.py` beside this file.
"""

from typing import TYPE_CHECKING, Any

import torch

from hf_attn.models.attention import attend

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

SCORE_FORMULAS = {
    "Dot": "score_j = query · key_j",
    "ScaledDot": "score_j = query · key_j / √query_dim",
    "General": "score_j = query · W key_j",
    "Additive": "score_j = v · tanh(W query + U key_j)",
    "Concat": "score_j = v · tanh(W [query; key_j])",
}


def recurrent_steps(translator: "Translator", translation: "Translation", position: int) -> list[Step]:
    """Compute the steps of a recurrent network, which has one attention and one head.

    Args:
        translator: what made the translation.
        translation: a translation of one line.
        position: which target piece, counted from 0.

    Returns:
        The steps in order.
    """
    model: Any = translator.model
    decoder = model.model.decoder
    source, read = read_ids(translator, translation)
    encoder_outputs = model.model.encoder(source)
    memory = decoder.network.begin(encoder_outputs)
    embeddings = decoder.embed_tokens(read[:, : position + 1])
    if position:  # what the decoder knows before this step
        memory = decoder.network(embeddings[:, :position], memory, encoder_outputs.last_hidden_state, None)[-1]
    steps_of = {"bahdanau": _bahdanau, "luong": _luong, "gnmt": _gnmt, "none": _no_attention}
    steps, output = steps_of[model.config.attention_type](
        decoder.network, encoder_outputs, memory, embeddings[:, position:], translation
    )
    last, written = steps[-1], translation.target_ids[position]
    last.quantities.append(likeliest(translator.target_tokenizer, model.lm_head(output), written))
    last.code.append(line_of(type(model).forward, "logits = self.lm_head("))
    return steps


def _bahdanau(network, encoder_outputs, memory, embedding, translation: "Translation"):
    query = network.rnn.top(memory.states)  # (1, hidden_size)
    scores, context, weights = _look(network, query, memory, encoder_outputs)
    gates, fed_weight = network.rnn.project(embedding)
    state = network.rnn.top(network.rnn.step(gates[0], fed_weight, context[:, 0, 0], memory.states))
    output = network.output(state[:, None], embedding, context[:, 0])[0, 0]
    joined = torch.cat([embedding[0, 0], context[0, 0, 0]])
    forward = type(network).forward
    steps = [
        Step(
            "Query, keys and values",
            "query = state_{i-1};  key_j = value_j = encoder state_j",
            "The decoder's state before this step asks. Every source piece answers with its encoder state, which is "
            "both what is compared (key) and what is averaged (value).",
            _query_and_keys(query, encoder_outputs, translation),
            [line_of(forward, "query = self.rnn.top(states)")],
        ),
        *_shared_steps(network, scores, context, weights, encoder_outputs, translation),
        Step(
            "Concatenation",
            "state_i = rnn(state_{i-1}, [embedding; context])",
            "The context is joined to the embedding of the piece before, and the recurrent network takes one step with "
            "both.",
            [
                vector("[embedding; context]", joined, "embedding_size + source_width"),
                vector("new state", state[0], "hidden_size"),
            ],
            [
                line_of(forward, "states = self.rnn.step("),
                line_of(type(network.rnn).step, "gates = gates + F.linear(fed"),
            ],
        ),
        Step(
            "Output",
            "output = maxout([state_i; embedding; context]);  p = softmax(E output)",
            "State, embedding and context together give the output vector; the vocabulary's largest logits are the "
            "likeliest next pieces.",
            [vector("output", output, "embedding_size")],
            [line_of(forward, "outputs = self.output("), body_of(type(network.output).forward)],
        ),
    ]
    return steps, output


def _luong(network, encoder_outputs, memory, embedding, translation: "Translation"):
    if network.input_feeding:
        gates, fed_weight = network.rnn.project(embedding)
        state = network.rnn.top(network.rnn.step(gates[0], fed_weight, memory.fed, memory.states))  # (1, hidden_size)
    else:
        state = network.rnn(embedding, memory.states)[0][-1][:, 0]
    scores, context, weights = _look(network, state, memory, encoder_outputs)
    joined = torch.cat([context[0, 0, 0], state[0]])
    attentional = torch.tanh(network.combine(joined))
    look = type(network).look
    steps = [
        Step(
            "Query, keys and values",
            "query = state_i;  key_j = value_j = encoder state_j",
            "The decoder first takes its step; its new state asks. Every source piece answers with its encoder state, "
            "which is both what is compared (key) and what is averaged (value).",
            _query_and_keys(state, encoder_outputs, translation),
            [line_of(look, "query = states[:, None]")],
        ),
        *_shared_steps(network, scores, context, weights, encoder_outputs, translation),
        Step(
            "Concatenation",
            "[context; state_i]",
            "What was found in the source is joined to what the decoder knows of its own sentence.",
            [vector("[context; state]", joined, "source_width + hidden_size")],
            [line_of(look, "concatenated = torch.cat(")],
        ),
        Step(
            "Output",
            "output = tanh(W [context; state_i]);  p = softmax(E output)",
            "One layer makes the attentional vector of both; the vocabulary's largest logits are the likeliest next "
            "pieces.",
            [vector("attentional vector", attentional, "hidden_size")],
            [line_of(look, "attentional = torch.tanh(")],
        ),
    ]
    return steps, attentional


def _gnmt(network, encoder_outputs, memory, embedding, translation: "Translation"):
    query = network.bottom.top(memory.states[:1])  # (1, hidden_size)
    scores, context, weights = _look(network, query, memory, encoder_outputs)
    outputs, layers, _, _ = network(embedding, memory, encoder_outputs.last_hidden_state, None)
    output, joined = outputs[0, 0], torch.cat([embedding[0, 0], context[0, 0, 0]])
    forward = type(network).forward
    steps = [
        Step(
            "Query, keys and values",
            "query = state¹_{i-1};  key_j = value_j = encoder state_j",
            "The state of the decoder's bottom layer before this step asks. Every source piece answers with its "
            "encoder state, which is both what is compared (key) and what is averaged (value).",
            _query_and_keys(query, encoder_outputs, translation),
            [line_of(forward, "query = self.bottom.top(states)")],
        ),
        *_shared_steps(network, scores, context, weights, encoder_outputs, translation),
        Step(
            "Concatenation",
            "state¹_i = rnn([embedding; context]);  state^l_i = rnn([output^{l-1}_i; context])",
            "The context is joined to what each layer reads: at the bottom the embedding of the piece before, above it "
            "the output of the layer below.",
            [
                vector("[embedding; context]", joined, "embedding_size + source_width"),
                vector("new state of the bottom layer", layers[0][0, 0], "hidden_size"),
            ],
            [
                line_of(forward, "states = self.bottom.step("),
                line_of(forward, "joined = torch.cat([outputs[-1], contexts]"),
            ],
        ),
        Step(
            "Output",
            "output^l_i = state^l_i (+ output^{l-1}_i);  p = softmax(E output)"
            if network.residual
            else "p = softmax(E state_i)",
            "The top layer's output goes to the output layer"
            + (", with residual connections a sum of the states below" if network.residual else "")
            + "; the vocabulary's largest logits are the likeliest next pieces.",
            [vector("output", output, "hidden_size")],
            [line_of(forward, "outputs.append(add_residual("), line_of(forward, "return outputs[-1]")],
        ),
    ]
    return steps, output


def _look(network, query: torch.Tensor, memory, encoder_outputs):
    """Attend with one query, (1, hidden_size): scores and weights (1, 1, 1, source_len), context (1, 1, 1, width)."""
    scores = network.score(query[:, None, None], memory.projected_key)
    context, weights = attend(scores, encoder_outputs.last_hidden_state[:, None])
    return scores, context, weights


def _query_and_keys(query: torch.Tensor, encoder_outputs, translation: "Translation") -> list[Quantity]:
    states, pieces = encoder_outputs.last_hidden_state[0], translation.source_tokens
    shape = shape_of(source_len=len(pieces), source_width=states.shape[1])
    return [vector("query", query[0], "hidden_size"), Quantity("keys = values", states, pieces, shape)]


def _shared_steps(network, scores, context, weights, encoder_outputs, translation: "Translation") -> list[Step]:
    """Write the steps that Bahdanau's and Luong's networks have in common: scores, softmax, weighted sum."""
    pieces, states = translation.source_tokens, encoder_outputs.last_hidden_state[0]
    score = type(network.score)
    return [
        Step(
            "Scores",
            SCORE_FORMULAS[score.__name__],
            "Each key is compared with the query: one number for each source piece, the larger the better they fit.",
            [Quantity("scores", scores[0, 0, 0], pieces, shape_of(source_len=len(pieces)))],
            [body_of(score.forward)],
        ),
        softmax_step(weights[0, 0, 0], pieces, "source_len"),
        sum_step(context[0, 0, 0], weights[0, 0, 0], states, pieces, "source_len", "source_width"),
    ]


def _no_attention(network, encoder_outputs, memory, embedding, translation: "Translation"):
    outputs, layer_states, _, _ = network(embedding, memory, encoder_outputs.last_hidden_state, None)
    cho = memory.fed is not None
    fixed = memory.fed[0] if cho else network.begin(encoder_outputs).states[-1][0][0]
    last = encoder_outputs.final_hidden[0, -1]
    pieces = translation.source_tokens
    network_type = type(network)
    steps = [
        Step(
            "One vector for the whole source",
            "c = tanh(V h_{last})" if cho else "state_0 = h_{last}",
            f"There is no attention. The encoder reads all {len(pieces)} source pieces and hands over its last state: "
            f"{fixed.shape[0]} numbers, as many as there would be for a source of 50 pieces. Everything the decoder "
            "will ever know of the source is in them.",
            [
                vector("last encoder state", last, "source_width"),
                vector("the fixed vector", fixed, "hidden_size"),
            ],
            [line_of(network_type.begin, "context = torch.tanh(" if cho else "return DecoderMemory(")],
        ),
        Step(
            "The decoder's step",
            "state_i = rnn(state_{i-1}, [embedding; c])" if cho else "state_i = rnn(state_{i-1}, embedding)",
            "The same fixed vector is read at every step, whichever word is being written."
            if cho
            else "The fixed vector was the decoder's first state; each step since has written over it.",
            [vector("new state", layer_states[-1][0, 0], "hidden_size")],
            [line_of(network_type.forward, "layer_states, states = self.rnn(")],
        ),
        Step(
            "Output",
            "output = maxout([state_i; embedding; c]);  p = softmax(E output)" if cho else "p = softmax(E state_i)",
            "The vocabulary's largest logits are the likeliest next pieces.",
            [vector("output", outputs[0, 0], "output_size")],
            [line_of(network_type.forward, "outputs = self.output(" if cho else "return layer_states[-1]")],
        ),
    ]
    return steps, outputs[0, 0]
