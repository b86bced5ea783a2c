# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Write the target with one of five recurrent decoders, side by side: what each knows of the source, and when it looks.

modeling_attn_rnn.py has their equations, the papers and the axis names; where one differs from its paper is said below.
Read before: attention.py (the equation), scores.py, recurrent.py (the cells). Read next: modeling_attn_rnn.py.
"""

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from .attention import attend
from .configuration_attn_rnn import AttnRnnConfig
from .recurrent import (
    RNN_CLASSES,
    Bridge,
    DecoderMemory,
    DecoderRnn,
    MaxoutOutput,
    add_residual,
    first_states,
    run_layer,
    stack_steps,
)
from .scores import make_score

# Each decoder has
#   begin(encoder_outputs) -> memory: what it knows before the first target token, from an AttnRnnEncoderOutput;
#   forward(embeddings, memory, encoder_states, allowed) -> outputs, layer_states, weights, memory
#     embeddings      (batch, target_len, embedding_size)
#     encoder_states  (batch, source_len, source_width)
#     allowed         (batch, 1, 1, source_len), True for real source tokens; or None
#     outputs         (batch, target_len, output_size), what the last layer reads
#     layer_states    the outputs of each layer, (batch, target_len, hidden_size): its states and, with residual
#                     connections, what was added to them
#     weights         attention weights, (batch, 1, target_len, source_len); or None
#     memory          what it knows after the last token
# and, with attention,
#   value_norms(encoder_states) -> how much each source token adds where the context is read, (batch, 1, source_len)


class SutskeverDecoder(nn.Module):
    """The encoder's last states start the decoder, and are all that it knows of the source (Sutskever 2014, section 2).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__()
        self.bridge = make_bridge(config)
        self.rnn = make_rnn(config, fed_size=0)
        self.output_size = config.hidden_size

    def begin(self, encoder_outputs: BaseModelOutput) -> DecoderMemory:
        """Start with the encoder's last states."""
        return DecoderMemory(self.bridge(*last_states(encoder_outputs)))

    def forward(self, embeddings, memory, encoder_states, allowed):
        """Run all steps at once."""
        layer_states, states = self.rnn(embeddings, memory.states)
        return layer_states[-1], layer_states, None, memory._replace(states=states)


class ChoDecoder(nn.Module):
    """One fixed context c = tanh(V h_last) is fed to every step and to the output (Cho 2014, A.1).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__()
        hidden_size, embedding_size = config.hidden_size, config.embedding_width
        self.layers, self.rnn_type = config.decoder_layers, config.rnn_type
        self.context = nn.Linear(config.source_width, hidden_size)
        self.initial = nn.Linear(hidden_size, config.decoder_layers * hidden_size)
        self.rnn = make_rnn(config, fed_size=hidden_size)
        self.output = MaxoutOutput(hidden_size, embedding_size, hidden_size, embedding_size)
        self.output_size = embedding_size

    def begin(self, encoder_outputs: BaseModelOutput) -> DecoderMemory:
        """Start with tanh(V' c)."""
        context = torch.tanh(self.context(encoder_outputs.final_hidden[:, -1]))  # (batch, hidden_size)
        # differs from the paper: each decoder layer gets such a state (the paper: one); an LSTM's cell starts at zero
        states = first_states(torch.tanh(self.initial(context)), self.layers, self.rnn_type)
        return DecoderMemory(states, fed=context)

    def forward(self, embeddings, memory, encoder_states, allowed):
        """Run all steps at once."""
        contexts = memory.fed[:, None].expand(-1, embeddings.shape[1], -1)  # (batch, target_len, hidden_size)
        layer_states, states = self.rnn(torch.cat([embeddings, contexts], dim=-1), memory.states)
        outputs = self.output(layer_states[-1], embeddings, contexts)
        return outputs, layer_states, None, memory._replace(states=states)


class BahdanauDecoder(nn.Module):
    """The state of the step before asks; the context enters the step with the embedding (Bahdanau 2015, section 3.1).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__()
        hidden_size, width, embedding_size = config.hidden_size, config.source_width, config.embedding_width
        self.layers, self.rnn_type, self.hidden_size = config.decoder_layers, config.rnn_type, hidden_size
        self.attention_dropout = config.attention_dropout
        self.initial = nn.Linear(hidden_size, config.decoder_layers * hidden_size)
        score_function, attention_size = config.score_function or "additive", config.attention_size or hidden_size
        self.score = make_score(score_function, hidden_size, width, attention_size)
        self.rnn = make_rnn(config, fed_size=width)
        self.output = MaxoutOutput(hidden_size, embedding_size, width, embedding_size)
        self.output_size = embedding_size

    def begin(self, encoder_outputs: BaseModelOutput) -> DecoderMemory:
        """Start with tanh(W_s h), h the backward state at the first source token (A.2.2), and project the keys once."""
        # differs from the paper: a one-directional encoder gives its last state; layers and cells as for Cho
        backward = encoder_outputs.final_hidden[:, -1, -self.hidden_size :]  # (batch, hidden_size)
        states = first_states(torch.tanh(self.initial(backward)), self.layers, self.rnn_type)
        return DecoderMemory(states, projected_key=self.score.project_keys(encoder_outputs.last_hidden_state[:, None]))

    def forward(self, embeddings, memory, encoder_states, allowed):
        """Loop over the steps; embeddings and output layer are done for all of them at once."""
        dropout = self.attention_dropout if self.training else 0.0
        value = encoder_states[:, None]  # (batch, 1, source_len, source_width)
        step_gates, fed_weight = self.rnn.project(embeddings)
        states, steps, contexts, weights = memory.states, [], [], []
        for gates in step_gates:
            query = self.rnn.top(states)[:, None, None]  # (batch, 1, 1, hidden_size)
            scores = self.score(query, memory.projected_key)  # (batch, 1, 1, source_len)
            context, step_weights = attend(scores, value, allowed, dropout)
            context = context[:, 0, 0]  # (batch, source_width)
            states = self.rnn.step(gates, fed_weight, context, states)
            steps.append(states)
            contexts.append(context)
            weights.append(step_weights)
        layer_states = self.rnn.outputs(stack_steps(steps))
        # differs from the paper: the output reads the new state, as equation 4 has it, where A.2.2 reads the one before
        outputs = self.output(layer_states[-1], embeddings, torch.stack(contexts, dim=1))
        return outputs, layer_states, torch.cat(weights, dim=2), memory._replace(states=states)

    def value_norms(self, encoder_states):
        """Measure each encoder state through the two matrices that read the context, as one: the step's and the
        output's."""
        step = self.rnn.layers[0].weight_ih_l0[:, self.rnn.embedding_size :]  # (gates, source_width)
        output = self.output.projection.weight[:, -encoder_states.shape[-1] :]  # (2 * output_size, source_width)
        return (encoder_states @ torch.cat([step, output]).T).norm(dim=-1)[:, None]  # (batch, 1, source_len)


class LuongDecoder(nn.Module):
    """The state of this step asks; context and state together are the output (Luong 2015, section 3).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__()
        hidden_size, width = config.hidden_size, config.source_width
        self.input_feeding, self.attention_dropout = config.input_feeding, config.attention_dropout
        self.bridge = make_bridge(config)
        self.rnn = make_rnn(config, fed_size=hidden_size if config.input_feeding else 0)
        score_function, attention_size = config.score_function or "general", config.attention_size or hidden_size
        self.score = make_score(score_function, hidden_size, width, attention_size)
        self.combine = nn.Linear(width + hidden_size, hidden_size, bias=False)
        self.output_size = hidden_size

    def begin(self, encoder_outputs: BaseModelOutput) -> DecoderMemory:
        """Start with the encoder's last states and, for input feeding, a zero vector; project the keys once."""
        states = self.bridge(*last_states(encoder_outputs))
        return DecoderMemory(
            states,
            fed=torch.zeros_like(states[-1][0]) if self.input_feeding else None,
            projected_key=self.score.project_keys(encoder_outputs.last_hidden_state[:, None]),
        )

    def look(self, states, projected_key, value, allowed):
        """Take Luong's five steps for any number of states, (batch, query_len, hidden_size)."""
        dropout = self.attention_dropout if self.training else 0.0
        query = states[:, None]  # (batch, 1, query_len, hidden_size)
        scores = self.score(query, projected_key)  # 1. score: (batch, 1, query_len, source_len)
        context, weights = attend(scores, value, allowed, dropout)  # 2. softmax, 3. weighted sum
        concatenated = torch.cat([context, query], dim=-1)  # 4. concatenate: (batch, 1, query_len, width + hidden_size)
        attentional = torch.tanh(self.combine(concatenated))  # 5. output: (batch, 1, query_len, hidden_size)
        return attentional[:, 0], weights

    def forward(self, embeddings, memory, encoder_states, allowed):
        """Run all steps at once; with input feeding, where a step reads the last attentional vector, loop over them."""
        value = encoder_states[:, None]  # (batch, 1, source_len, source_width)
        if not self.input_feeding:
            layer_states, states = self.rnn(embeddings, memory.states)
            outputs, weights = self.look(layer_states[-1], memory.projected_key, value, allowed)
            return outputs, layer_states, weights, memory._replace(states=states)
        step_gates, fed_weight = self.rnn.project(embeddings)
        states, fed, steps, outputs, weights = memory.states, memory.fed, [], [], []
        for gates in step_gates:
            states = self.rnn.step(gates, fed_weight, fed, states)
            output, step_weights = self.look(self.rnn.top(states)[:, None], memory.projected_key, value, allowed)
            fed = output[:, 0]  # (batch, hidden_size)
            steps.append(states)
            outputs.append(output)
            weights.append(step_weights)
        memory = memory._replace(states=states, fed=fed)
        layer_states = self.rnn.outputs(stack_steps(steps))
        return torch.cat(outputs, dim=1), layer_states, torch.cat(weights, dim=2), memory

    def value_norms(self, encoder_states):
        """Measure each encoder state through the matrix W that reads the context."""
        combine = self.combine.weight[:, : encoder_states.shape[-1]]  # (hidden_size, source_width)
        return (encoder_states @ combine.T).norm(dim=-1)[:, None]  # (batch, 1, source_len)


class GnmtDecoder(nn.Module):
    """The bottom layer's state of the step before asks; the context enters every layer (Wu 2016, section 3).

    Only the bottom layer waits for the context, so only it goes step by step; each layer above runs over all steps at
    once (section 3.3 chose the bottom layer for the same reason: the layers above can work at the same time).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__()
        hidden_size, width = config.hidden_size, config.source_width
        self.layers, self.rnn_type, self.residual = config.decoder_layers, config.rnn_type, config.residual
        self.attention_dropout = config.attention_dropout
        self.initial = nn.Linear(width, config.decoder_layers * hidden_size)
        score_function, attention_size = config.score_function or "additive", config.attention_size or hidden_size
        self.score = make_score(score_function, hidden_size, width, attention_size)
        self.bottom = DecoderRnn(config.rnn_type, config.embedding_width, width, hidden_size, 1, config.dropout)
        self.dropout = nn.Dropout(config.dropout)
        self.above = nn.ModuleList(
            RNN_CLASSES[config.rnn_type](hidden_size + width, hidden_size, batch_first=True)
            for _ in range(config.decoder_layers - 1)
        )
        self.output_size = hidden_size

    def begin(self, encoder_outputs: BaseModelOutput) -> DecoderMemory:
        """Start with tanh(W h), h the last state of the encoder's top layer, and project the keys once."""
        # differs from the paper: it does not say how the decoder starts; as Bahdanau's, layers and cells as for Cho
        last = encoder_outputs.final_hidden[:, -1]  # (batch, source_width)
        states = first_states(torch.tanh(self.initial(last)), self.layers, self.rnn_type)
        return DecoderMemory(states, projected_key=self.score.project_keys(encoder_outputs.last_hidden_state[:, None]))

    def forward(self, embeddings, memory, encoder_states, allowed):
        """Loop over the steps with the bottom layer, then run the layers above, each over all steps at once."""
        dropout = self.attention_dropout if self.training else 0.0
        value = encoder_states[:, None]  # (batch, 1, source_len, source_width)
        step_gates, fed_weight = self.bottom.project(embeddings)
        states, steps, contexts, weights = memory.states[:1], [], [], []
        for gates in step_gates:
            query = self.bottom.top(states)[:, None, None]  # y_(i-1) of equation 4: (batch, 1, 1, hidden_size)
            scores = self.score(query, memory.projected_key)  # equation 4, s: (batch, 1, 1, source_len)
            context, step_weights = attend(scores, value, allowed, dropout)  # equation 4, a: (batch, 1, 1, width)
            context = context[:, 0, 0]  # (batch, source_width)
            states = self.bottom.step(gates, fed_weight, context, states)
            steps.append(states)
            contexts.append(context)
            weights.append(step_weights)
        outputs, contexts = stack_steps(steps), torch.stack(contexts, dim=1)  # (batch, target_len, width)
        for layer, state in zip(self.above, memory.states[1:], strict=True):
            joined = torch.cat([outputs[-1], contexts], dim=-1)  # figure 1: every layer reads the context
            hidden, after = run_layer(layer, self.dropout(joined), state)
            outputs.append(add_residual(hidden, outputs, self.residual))  # equation 6
            states = [*states, after]
        return outputs[-1], outputs, torch.cat(weights, dim=2), memory._replace(states=states)

    def value_norms(self, encoder_states):
        """Measure each encoder state through the matrices of all layers, which read the context, as one."""
        bottom = self.bottom.layers[0].weight_ih_l0[:, self.bottom.embedding_size :]  # (gates, source_width)
        above = [layer.weight_ih_l0[:, layer.hidden_size :] for layer in self.above]  # the same, of each layer
        return (encoder_states @ torch.cat([bottom, *above]).T).norm(dim=-1)[:, None]  # (batch, 1, source_len)


def make_rnn(config: AttnRnnConfig, fed_size: int) -> DecoderRnn:
    """Make the decoder's layers."""
    sizes = (config.embedding_width, fed_size, config.hidden_size)
    return DecoderRnn(config.rnn_type, *sizes, config.decoder_layers, config.dropout, config.residual)


def make_bridge(config: AttnRnnConfig) -> Bridge:
    """Make what turns the encoder's last states into the decoder's first."""
    parts = 2 if config.rnn_type == "lstm" else 1
    return Bridge(config.encoder_layers, config.source_width, config.decoder_layers, config.hidden_size, parts)


def last_states(encoder_outputs: BaseModelOutput) -> list[torch.Tensor]:
    """Return the encoder's last hidden states and, of an LSTM, its last cells."""
    parts = (encoder_outputs.final_hidden, encoder_outputs.final_cell)
    return [part for part in parts if part is not None]


def make_decoder(config: AttnRnnConfig) -> nn.Module:
    """Make the decoder that the configuration names."""
    if config.attention_type == "bahdanau":
        return BahdanauDecoder(config)
    if config.attention_type == "luong":
        return LuongDecoder(config)
    if config.attention_type == "gnmt":
        return GnmtDecoder(config)
    if config.context_feeding == "initial":
        return SutskeverDecoder(config)
    return ChoDecoder(config)
