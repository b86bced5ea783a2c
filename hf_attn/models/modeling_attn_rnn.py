# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Translate with recurrent networks: the fixed context of 2014, and the attentions that replaced it.

    encoder     h_j = rnn(h_(j-1), embed(source_j)), in one direction or both
    Sutskever   state_0 = last h;  state_i = rnn(state_(i-1), embedding_i);  output_i = state_i
    Cho         c = tanh(V h_last);  state_i = rnn(state_(i-1), [embedding_i; c]);
                output_i = maxout(state_i, embedding_i, c)
    Bahdanau    context_i = attend(state_(i-1) to h);  state_i = rnn(state_(i-1), [embedding_i; context_i]);
                output_i = maxout(state_i, embedding_i, context_i)
    Luong       state_i = rnn(state_(i-1), embedding_i);  context_i = attend(state_i to h);
                output_i = tanh(W [context_i; state_i])
    GNMT        context_i = attend(state^1_(i-1) to h);  state^1_i = rnn(state^1_(i-1), [embedding_i; context_i]);
                state^l_i = rnn(state^l_(i-1), [output^(l-1)_i; context_i]);  output_i = output^top_i;
                output^l_i = state^l_i, and + output^(l-1)_i from the third layer on (residual connections)
    logits      lm_head(output_i)

Papers: Sutskever 2014 (arXiv 1409.3215), Cho 2014 (1406.1078), Bahdanau 2015 (1409.0473), Luong 2015 (1508.04025),
Wu 2016 (GNMT, 1609.08144).
Where it differs from the papers is said line by line below; the cells are torch's (recurrent.py). The forget gate of an
LSTM starts with bias 1 (Jozefowicz 2015), the recurrent matrices orthogonal (Bahdanau 2015, B.1).

Axis names: batch, source_len, target_len, hidden_size, embedding_size, vocab_size; `source_width` is the width of the
encoder's states, twice hidden_size if its top layer is bidirectional. Attention has one head.
Read before: attention.py (the equation), scores.py, recurrent.py (the cells), decoders_attn_rnn.py. Here: from ids to
logits.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from .base import AttnPreTrainedModel
from .configuration_attn_rnn import AttnRnnConfig
from .decoders_attn_rnn import make_decoder
from .inputs import check_cache_rows, check_input, check_mask, check_source
from .masks import AttentionMask, padding_mask
from .recurrent import EncoderRnnLayer, Packing, RecurrentCache
from .seq2seq import Seq2SeqMixin, name_encoder_outputs


@dataclass
class AttnRnnEncoderOutput(BaseModelOutput):
    """The encoder's output.

    Args:
        last_hidden_state: (batch, source_len, source_width), zero at padding.
        hidden_states: If asked for, the embeddings and the states of each layer, (batch, source_len, width).
        attentions: None: a recurrent encoder has none.
        final_hidden: The last state of each layer, (batch, encoder_layers, source_width), without residual sums. In the
            reading direction; the second half of a bidirectional layer's is the backward state at the first token.
            Where the layers differ in width, only of those as wide as the top one.
        final_cell: The same for the cells of an LSTM.
        attention_mask: (batch, source_len), the mask that the encoder used: `generate()` does not tell the decoder
            about padding that was inferred from the ids. None if nothing is padded.
    """

    final_hidden: torch.Tensor | None = None
    final_cell: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None


class AttnRnnPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnRnnConfig
    encoder_output_class = AttnRnnEncoderOutput
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderRnnLayer", "DecoderRnn", "GnmtDecoder"]
    _skip_keys_device_placement = ["cache"]
    _is_stateful = True

    def _init_weights(self, module: nn.Module):
        """Start the forget gates of LSTMs open, with bias 1; the rest as in base.py."""
        super()._init_weights(module)
        if isinstance(module, nn.LSTM):
            for name, bias in module.named_parameters(recurse=False):
                loaded = getattr(bias, "_is_hf_initialized", False)  # asked here, since a slice loses the flag
                if name.startswith("bias_hh") and not loaded:
                    init.ones_(bias[module.hidden_size : 2 * module.hidden_size])

    def _check_and_adjust_attn_implementation(self, attn_implementation: str | None, *args, **kwargs) -> str:
        """Refuse every implementation but eager, and say why."""
        if attn_implementation not in (None, "eager"):
            raise ValueError(
                f"attn_implementation={attn_implementation!r} is not possible for {type(self).__name__}; use 'eager'. "
                "A fused kernel computes a scaled dot product for many queries at once; here the score need not be a "
                "dot product, and a recurrent decoder asks with one query a step, so there is nothing to fuse"
            )
        return "eager"


class AttnRnnEncoder(AttnRnnPreTrainedModel):
    """Read the source, in both directions with every layer, some from the bottom (Wu 2016, section 3.2) or none.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__(config)
        widths = [config.embedding_width, *config.encoder_widths]
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_width, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(
            EncoderRnnLayer(config.rnn_type, width, config.hidden_size, bidirectional=above > config.hidden_size)
            for width, above in itertools.pairwise(widths)
        )
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> AttnRnnEncoderOutput:
        """Encode the source; padding may stand anywhere and is not read.

        Args:
            input_ids: (batch, source_len)
            attention_mask: (batch, source_len), non-zero for real tokens; by default what is not `pad_token_id`.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored; `generate()` passes the decoder's arguments too.

        Returns:
            The states at all tokens, the last states, and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, or a shape or an id is wrong.
        """
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        shape = check_input(input_ids, inputs_embeds, self.config.vocab_size, self.config.embedding_width)
        check_mask("attention_mask", attention_mask, *shape)
        if inputs_embeds is None:
            attention_mask = input_ids.ne(self.config.pad_token_id) if attention_mask is None else attention_mask
            inputs_embeds = self.embed_tokens(input_ids)
        real = padding_mask(attention_mask)

        embeddings = self.dropout(inputs_embeds)
        packing = packed = None
        states, batch_sizes = embeddings, None
        if real is not None or self.config.reverse_source:
            everything = torch.ones(embeddings.shape[:2], dtype=torch.bool, device=embeddings.device)
            packing = Packing(everything if real is None else real, reverse=self.config.reverse_source)
            packed = packing.pack(embeddings)
            states, batch_sizes = packed.data, packed.batch_sizes
        all_states, all_last = (embeddings,), []
        for index, layer in enumerate(self.layers):
            below = states
            states, *last = layer(self.dropout(below) if index else below, batch_sizes)
            if self.config.residual and index >= 2 and states.shape == below.shape:  # Wu 2016, equation 6
                states = states + below
            if packed is not None:
                last = [part.index_select(0, packed.unsorted_indices) for part in last]
            if last[0].shape[-1] == self.config.source_width:
                all_last.append(last)
            all_states += (states if packed is None else packing.unpack(packed._replace(data=states)),)
        final_hidden, *final_cell = (torch.stack(parts, dim=1) for parts in zip(*all_last, strict=True))

        return AttnRnnEncoderOutput(
            last_hidden_state=all_states[-1],
            hidden_states=all_states if output_hidden_states else None,
            final_hidden=final_hidden,
            final_cell=final_cell[0] if final_cell else None,
            attention_mask=real,
        )


class AttnRnnDecoder(AttnRnnPreTrainedModel):
    """Write the target: embeddings, one of the five decoders, dropout; and its memory in a cache.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__(config)
        width, padding_idx = config.embedding_width, config.pad_token_id
        self.embed_tokens = nn.Embedding(config.target_vocab_size, width, padding_idx)
        self.dropout = nn.Dropout(config.dropout)
        self.network = make_decoder(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnRnnEncoderOutput | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: RecurrentCache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode the given target tokens; with a cache, from where it stands.

        Args:
            input_ids: (batch, target_len)
            attention_mask: (batch, cached + target_len), non-zero for real target tokens; padding only at the end.
            encoder_outputs: What the encoder returned.
            encoder_attention_mask: (batch, source_len), non-zero for real source tokens; by default the encoder's mask.
            cache: The memory of earlier steps.
            inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            Output vectors (batch, target_len, output_size), the cache, and what was asked for: `cross_attentions`, one
            tensor (batch, 1, target_len, source_len) in a tuple; `hidden_states`, embeddings and states of each layer.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, a shape or an id is wrong, the encoder's last
                states are missing, padding precedes a real target token, or the cache is of another kind or batch.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        use_cache = self.config.use_cache if use_cache is None else use_cache
        sizes = self.config.target_vocab_size, self.config.embedding_width
        batch, target_len = check_input(input_ids, inputs_embeds, *sizes, "decoder_")
        check_decoder_arguments(encoder_outputs, attention_mask, cache, batch, target_len)
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)

        embeddings = self.dropout(inputs_embeds)
        encoder_states = encoder_outputs.last_hidden_state
        if encoder_attention_mask is None:
            encoder_attention_mask = encoder_outputs.attention_mask
        check_source(encoder_states, encoder_attention_mask, batch, self.config.source_width)
        mask = AttentionMask(padding_mask(encoder_attention_mask))
        allowed = mask.dense(1, encoder_states.shape[1])
        begun = cache is not None and cache.is_initialized
        memory = cache.memory if begun else self.network.begin(encoder_outputs)
        outputs, layer_states, weights, memory = self.network(embeddings, memory, encoder_states, allowed)
        if use_cache:
            cache = RecurrentCache() if cache is None else cache
            cache.update(memory, steps=target_len)

        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=self.dropout(outputs),
            cache=cache if use_cache else None,
            hidden_states=(embeddings, *layer_states) if output_hidden_states else None,
            cross_attentions=(weights,) if output_attentions and weights is not None else None,
        )

    def value_norms(self, encoder_hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
        """Measure how much each source token adds where the context is read: the norm of its state times the matrices
        that read it. After Kobayashi 2020 (arXiv 2004.10102), which is about the Transformer.

        Args:
            encoder_hidden_states: (batch, source_len, source_width)

        Returns:
            One tensor, (batch, 1, source_len), in a tuple; None without attention.
        """
        if self.config.attention_type == "none":
            return None
        return (self.network.value_norms(encoder_hidden_states),)


def check_decoder_arguments(
    encoder_outputs: object, attention_mask: torch.Tensor | None, cache: object | None, batch: int, target_len: int
) -> None:
    """Raise ValueError for arguments that a recurrent decoder cannot use with (batch, target_len) tokens."""
    if getattr(encoder_outputs, "final_hidden", None) is None:
        raise ValueError(
            "encoder_outputs must be what this model's encoder returned (AttnRnnEncoderOutput, with final_hidden), got "
            f"{type(encoder_outputs).__name__}"
        )
    if cache is not None and not isinstance(cache, RecurrentCache):
        raise ValueError(f"cache must be a RecurrentCache, as the model returns it, got {type(cache).__name__}")
    if cache is not None:
        check_cache_rows(cache.batch_size, batch)
    check_mask("decoder_attention_mask", attention_mask, batch, target_len + (0 if cache is None else cache.length))
    if attention_mask is not None and bool((attention_mask[:, 1:].bool() & ~attention_mask[:, :-1].bool()).any()):
        raise ValueError(
            "decoder_attention_mask has padding before a real token; a recurrent decoder reads its input from left to "
            "right, so pad the target on the right"
        )


class AttnRnnModel(Seq2SeqMixin, AttnRnnPreTrainedModel):
    """Encoder and decoder, without the last layer.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__(config)
        self.encoder = AttnRnnEncoder(config)
        self.decoder = AttnRnnDecoder(config)
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnRnnEncoderOutput | tuple | None = None,
        cache: RecurrentCache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        decoder_inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> Seq2SeqModelOutput:
        """Encode the source, unless `encoder_outputs` are given, and decode.

        Args:
            input_ids: (batch, source_len)
            attention_mask: (batch, source_len), non-zero for real tokens; by default what is not `pad_token_id`.
            decoder_input_ids: (batch, target_len)
            decoder_attention_mask: (batch, cached + target_len), non-zero for real target tokens. Padding may stand at
                the end only.
            encoder_outputs: What the encoder returned.
            cache: The decoder's memory of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights: `cross_attentions`, a tuple of one tensor
                (batch, 1, target_len, source_len), or None if attention_type is "none". There is no self-attention.
            output_hidden_states: Whether to return the embeddings and the states of all layers.
            **kwargs: Ignored.

        Returns:
            The decoder's output vectors, (batch, target_len, output_size), the encoder's states, the cache, and what
            was asked for.

        Raises:
            ValueError: If there is nothing to encode or to decode, or an argument does not fit a recurrent decoder.
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids, attention_mask, inputs_embeds, output_hidden_states=output_hidden_states, return_dict=True
            )
        elif isinstance(encoder_outputs, (tuple, list)):
            encoder_outputs = name_encoder_outputs(encoder_outputs, AttnRnnEncoderOutput)
        decoder_outputs = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            encoder_attention_mask=attention_mask,
            cache=cache,
            inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            cache=decoder_outputs.cache,
            decoder_hidden_states=decoder_outputs.hidden_states,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
        )


class AttnRnnForConditionalGeneration(Seq2SeqMixin, AttnRnnPreTrainedModel, GenerationMixin):
    """Encoder, decoder and output layer: translates with `generate()`.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnRnnConfig):
        super().__init__(config)
        self.model = AttnRnnModel(config)
        decoder = self.model.decoder
        self.lm_head = nn.Linear(decoder.network.output_size, decoder.embed_tokens.num_embeddings, bias=False)
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Return False: the decoder makes its own RecurrentCache, it has no keys and values to keep."""
        return False

    def refused_generation_options(self) -> list[tuple[str, object, str]]:
        """Return also every cache but the decoder's own."""
        reason = "a recurrent decoder has no keys and values to keep, and its RecurrentCache has one size at any length"
        return [*super().refused_generation_options(), ("cache_implementation", "dynamic", reason)]

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnRnnEncoderOutput | tuple | None = None,
        cache: RecurrentCache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        decoder_inputs_embeds: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
        **kwargs,
    ) -> Seq2SeqLMOutput:
        """Predict the next target token at every position.

        Args:
            input_ids: (batch, source_len)
            attention_mask: (batch, source_len), non-zero for real tokens; by default what is not `pad_token_id`.
            decoder_input_ids: (batch, target_len); by default the labels shifted right.
            decoder_attention_mask: (batch, cached + target_len), non-zero for real target tokens. Padding may stand at
                the end only.
            encoder_outputs: What the encoder returned.
            cache: The decoder's memory of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            labels: (batch, target_len), what to predict at each position; -100 where nothing is.
            use_cache: Whether to return a cache; by default not when labels are given.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the embeddings and the states of all layers.
            logits_to_keep: For how many of the last positions to return logits, 0 for all; `generate()` asks for one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, target_len, vocab_size), and what `AttnRnnModel` returns.

        Raises:
            ValueError: If there is nothing to encode or to decode, labels and decoder inputs differ in length, or an
                argument does not fit a recurrent decoder.
        """
        decoder_input_ids = self.decoder_inputs_from_labels(labels, decoder_input_ids, decoder_inputs_embeds)
        if labels is not None and use_cache is None:
            use_cache = False
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            cache=cache,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.lm_head(self.states_to_keep(outputs.last_hidden_state, logits_to_keep, labels))
        loss = None if labels is None else self.label_loss(logits, labels, kwargs.get("num_items_in_batch"))
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            decoder_hidden_states=outputs.decoder_hidden_states,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
        )


AUTO_CLASSES = {"AutoModel": AttnRnnModel, "AutoModelForSeq2SeqLM": AttnRnnForConditionalGeneration}
