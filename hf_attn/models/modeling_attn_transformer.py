# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Translate with attention alone: Vaswani's Transformer, encoder and decoder.

    encoder   states = embed(source) + position;   N x (self-attention, feed-forward)
    decoder   states = embed(target) + position;   N x (masked self-attention, cross-attention, feed-forward)
    output    logits = states E^T

Paper: Vaswani 2017 (arXiv 1706.03762). Published alternatives are options of the configuration: pre-norm, RMS norm,
learned, rotary, ALiBi and relative positions, and those that make it BART (Lewis 2020, 1910.13461), mBART (Liu 2020,
2001.08210), Marian (Junczys-Dowmunt 2018, 1804.00344) or T5 (Raffel 2020, 1910.10683). Where it differs from the paper:
dropout is on attention weights only if `attention_dropout` is set; the initial weights are normal, by default with
Glorot's variance for a square matrix. Where it differs from T5: nothing is dropped after the last norm of a stack, and
the initial embeddings are no wider than the rest. From Marian: where targets begin with padding, its embedding is
learned, as in T5.

Axis names: batch, heads, source_len, target_len, key_len, hidden_size, embedding_size, vocab_size.
Read before: multihead.py (attention), layers.py (one layer). Here: from ids to logits.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from .base import AttnPreTrainedModel
from .configuration_attn_transformer import AttnTransformerConfig
from .generation import check_cache
from .inputs import check_input, check_length, check_mask, check_source
from .layers import NORMS, DecoderLayer, EncoderLayer, FeedForward
from .masks import AttentionMask, padding_mask
from .multihead import MultiHeadAttention
from .positions import LearnedPositions, make_position_bias, rotary_angles, sinusoidal, token_positions
from .seq2seq import Seq2SeqMixin, name_encoder_outputs


@dataclass
class AttnTransformerEncoderOutput(BaseModelOutput):
    """The encoder's output.

    Args:
        last_hidden_state: (batch, source_len, hidden_size)
        hidden_states: Tuple over layers + 1 of (batch, source_len, hidden_size), if asked for.
        attentions: Tuple over layers of (batch, heads, source_len, source_len), if asked for.
        attention_mask: (batch, source_len), the mask that the encoder used: `generate()` does not tell the decoder
            about padding that was inferred from the ids. None if nothing is padded.
    """

    attention_mask: torch.Tensor | None = None


class AttnTransformerPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnTransformerConfig
    encoder_output_class = AttnTransformerEncoderOutput
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderLayer", "DecoderLayer"]
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _skip_keys_device_placement = ["cache"]


def make_norm(config: AttnTransformerConfig) -> nn.Module:
    """Make a norm of the states."""
    eps = {} if config.layer_norm_eps is None else {"eps": config.layer_norm_eps}
    return NORMS[config.norm_type](config.hidden_size, **eps)


def make_attention(config: AttnTransformerConfig, num_heads: int, layer_index: int = 0) -> MultiHeadAttention:
    """Make the attention of one layer, to its own states or to the source's."""
    return MultiHeadAttention(
        config.hidden_size,
        num_heads,
        head_dim=config.head_dim,
        bias=config.use_bias,
        scaled=config.scale_attention,
        dropout=config.attention_dropout,
        layer_index=layer_index,
    )


def make_feed_forward(config: AttnTransformerConfig, intermediate_size: int) -> FeedForward:
    """Make the feed-forward network of one layer."""
    return FeedForward(
        config.hidden_size,
        intermediate_size,
        config.activation_function,
        bias=config.use_bias,
        gated=config.gated_feed_forward,
        dropout=config.activation_dropout,
    )


def make_embedding(config: AttnTransformerConfig, vocab_size: int) -> nn.Embedding:
    """Make a table of embeddings. That of padding is 0 and stays it, unless every target begins with it (T5)."""
    starts = config.decoder_start_token_id == config.pad_token_id
    return nn.Embedding(vocab_size, config.embedding_width, padding_idx=None if starts else config.pad_token_id)


class PositionedEmbedding(nn.Module):
    """states = sqrt(hidden_size) * embedding + position, then a norm (BART), then dropout; the position only for the
    types that are added.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnTransformerConfig):
        super().__init__()
        self.scale = config.hidden_size**0.5 if config.scale_embedding else 1.0
        self.projection = None
        if config.embedding_width != config.hidden_size:
            self.projection = nn.Linear(config.embedding_width, config.hidden_size, bias=False)
        self.sinusoidal_order = config.sinusoidal_order if config.position_type == "sinusoidal" else None
        self.learned = None
        if config.position_type == "learned":
            self.learned = LearnedPositions(config.max_position_embeddings, config.hidden_size)
        self.norm = make_norm(config) if config.normalize_embedding else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, embeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Add positions (batch or 1, length) to embeddings (batch, length, embedding_size) -> (batch, length,
        hidden_size)."""
        states = embeds if self.projection is None else self.projection(embeds)
        states = states * self.scale
        if self.sinusoidal_order is not None:
            states = states + sinusoidal(positions, states.shape[-1], order=self.sinusoidal_order).to(states.dtype)
        if self.learned is not None:
            states = states + self.learned(positions)
        return self.dropout(self.norm(states))


def make_bias(config: AttnTransformerConfig, num_heads: int, bidirectional: bool) -> nn.Module | None:
    """Make what adds positions to the scores of one stack, shared by its layers."""
    buckets = config.relative_attention_num_buckets, config.relative_attention_max_distance
    return make_position_bias(config.position_type, num_heads, bidirectional, *buckets)


class AttnTransformerEncoder(AttnTransformerPreTrainedModel):
    """Read the source: every token attends to every token.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnTransformerConfig):
        super().__init__(config)
        self.embed_tokens = make_embedding(config, config.vocab_size)
        self.embedding = PositionedEmbedding(config)
        self.position_bias = make_bias(config, config.encoder_attention_heads, bidirectional=True)
        self.layers = nn.ModuleList(
            EncoderLayer(
                self_attention=make_attention(config, config.encoder_attention_heads),
                feed_forward=make_feed_forward(config, config.encoder_intermediate_size),
                make_norm=partial(make_norm, config),
                norm_first=config.norm_first,
                dropout=config.dropout,
            )
            for _ in range(config.encoder_layers)
        )
        self.final_norm = make_norm(config) if config.norm_first else nn.Identity()
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> AttnTransformerEncoderOutput:
        """Encode the source.

        Args:
            input_ids: (batch, source_len)
            attention_mask: (batch, source_len), non-zero for real tokens; by default what is not `pad_token_id`.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored; `generate()` passes the decoder's arguments too.

        Returns:
            The states, and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, a shape or an id is wrong, or there are more
                tokens than learned positions.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = (
            self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        shape = check_input(input_ids, inputs_embeds, self.config.vocab_size, self.config.embedding_width)
        check_mask("attention_mask", attention_mask, *shape)
        if attention_mask is None and input_ids is not None:
            attention_mask = input_ids.ne(self.config.pad_token_id)
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        source_len = inputs_embeds.shape[1]
        check_length(source_len, self.position_limit)
        padding = padding_mask(attention_mask)
        positions = token_positions(padding, source_len, inputs_embeds.device)
        rotary = self.config.position_type == "rotary"
        angles = rotary_angles(positions, self.layers[0].self_attention.head_dim) if rotary else None
        bias = None if self.position_bias is None else self.position_bias(positions, positions)

        states = self.embedding(inputs_embeds, positions)
        all_states, all_weights = (), ()
        for layer in self.layers:
            all_states += (states,)
            states, weights = layer(
                states,
                bias,
                mask=AttentionMask(padding),
                angles=angles,
                output_attentions=output_attentions,
                implementation=self.config._attn_implementation,
            )
            all_weights += (weights,)
        states = self.final_norm(states)
        all_states += (states,)

        return AttnTransformerEncoderOutput(
            last_hidden_state=states,
            hidden_states=all_states if output_hidden_states else None,
            attentions=all_weights if output_attentions else None,
            attention_mask=None if padding is None else padding.long(),
        )


class AttnTransformerDecoder(AttnTransformerPreTrainedModel):
    """Write the target: every token attends to those before it, and to the whole source.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnTransformerConfig):
        super().__init__(config)
        self.embed_tokens = make_embedding(config, config.target_vocab_size)
        self.embedding = PositionedEmbedding(config)
        self.position_bias = make_bias(config, config.decoder_attention_heads, bidirectional=False)
        self.layers = nn.ModuleList(
            DecoderLayer(
                self_attention=make_attention(config, config.decoder_attention_heads, layer_index),
                cross_attention=make_attention(config, config.decoder_attention_heads, layer_index),
                feed_forward=make_feed_forward(config, config.decoder_intermediate_size),
                make_norm=partial(make_norm, config),
                norm_first=config.norm_first,
                dropout=config.dropout,
            )
            for layer_index in range(config.decoder_layers)
        )
        self.final_norm = make_norm(config) if config.norm_first else nn.Identity()
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode: all target tokens at once in training, the new ones alone with a cache.

        Args:
            input_ids: (batch, target_len)
            attention_mask: (batch, cached + target_len), non-zero for real target tokens; by default all are.
            encoder_hidden_states: (batch, source_len, hidden_size)
            encoder_attention_mask: (batch, source_len), non-zero for real source tokens; by default all are.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            The states, the cache, and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind, or the cache no cache of keys and values.
            ValueError: If not exactly one of ids and embeddings is given, a shape, a batch or an id is wrong, or there
                are more tokens than learned positions.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = (
            self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        use_cache = self.config.use_cache if use_cache is None else use_cache
        sizes = self.config.target_vocab_size, self.config.embedding_width
        batch, target_len = check_input(input_ids, inputs_embeds, *sizes, "decoder_")
        check_source(encoder_hidden_states, encoder_attention_mask, batch, self.config.hidden_size)
        check_cache(cache, batch)
        if self.gradient_checkpointing and self.training and torch.is_grad_enabled():
            use_cache, cache = False, None  # a checkpointed layer runs twice and would store its keys twice
        if use_cache and cache is None:
            cache = EncoderDecoderCache(DynamicCache(config=self.config), DynamicCache(config=self.config))
        elif cache is not None and not isinstance(cache, EncoderDecoderCache):
            cache = EncoderDecoderCache(cache, DynamicCache(config=self.config))
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)

        cached_len = 0 if cache is None else cache.get_seq_length()
        if isinstance(cached_len, torch.Tensor):
            cached_len = cached_len.clone()  # a static cache counts on in place
        else:
            check_length(cached_len + target_len, self.position_limit)
            check_mask("decoder_attention_mask", attention_mask, batch, cached_len + target_len)
        key_len = -1 if cache is None else cache.get_max_length(0)
        if key_len == -1:  # not a static cache, in which all slots are keys from the start
            key_len = cached_len + target_len
        padding = padding_mask(attention_mask)
        if padding is None:
            positions = torch.arange(target_len, device=inputs_embeds.device)[None] + cached_len
            key_positions = torch.arange(key_len, device=inputs_embeds.device)[None]
        else:
            known = token_positions(padding, padding.shape[1], inputs_embeds.device)
            positions = known[:, -target_len:]
            key_positions = nn.functional.pad(known, (0, key_len - known.shape[1]))
        rotary = self.config.position_type == "rotary"
        angles = rotary_angles(positions, self.layers[0].self_attention.head_dim) if rotary else None
        bias = None if self.position_bias is None else self.position_bias(positions, key_positions)
        mask = AttentionMask(padding, causal=True, query_offset=cached_len)
        source_mask = AttentionMask(padding_mask(encoder_attention_mask))

        states = self.embedding(inputs_embeds, positions)
        all_states, all_self_weights, all_cross_weights = (), (), ()
        for layer in self.layers:
            all_states += (states,)
            states, self_weights, cross_weights = layer(
                states,
                encoder_hidden_states,
                bias,
                mask=mask,
                source_mask=source_mask,
                angles=angles,
                cache=cache,
                output_attentions=output_attentions,
                implementation=self.config._attn_implementation,
            )
            all_self_weights += (self_weights,)
            all_cross_weights += (cross_weights,)
        states = self.final_norm(states)
        all_states += (states,)

        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=states,
            cache=cache if use_cache else None,
            hidden_states=all_states if output_hidden_states else None,
            attentions=all_self_weights if output_attentions else None,
            cross_attentions=all_cross_weights if output_attentions else None,
        )

    def value_norms(self, encoder_hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Measure what each source token adds to the output of each cross-attention head; see `MultiHeadAttention`.

        Args:
            encoder_hidden_states: (batch, source_len, hidden_size)

        Returns:
            For each layer, (batch, heads, source_len)
        """
        return tuple(layer.cross_attention.value_norms(encoder_hidden_states) for layer in self.layers)


class AttnTransformerModel(Seq2SeqMixin, AttnTransformerPreTrainedModel):
    """Encoder and decoder, without an output layer.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnTransformerConfig):
        super().__init__(config)
        self.encoder = AttnTransformerEncoder(config)
        self.decoder = AttnTransformerDecoder(config)
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache: EncoderDecoderCache | None = None,
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
            attention_mask: (batch, source_len), non-zero for real source tokens; by default what is not `pad_token_id`.
            decoder_input_ids: (batch, target_len)
            decoder_attention_mask: (batch, cached + target_len), non-zero for real target tokens; by default all are.
            encoder_outputs: What the encoder returned.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights: `encoder_attentions`, `decoder_attentions` and
                `cross_attentions`, tuples over layers of (batch, heads, query_len, key_len).
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            States of both stacks, the cache, and what was asked for.

        Raises:
            ValueError: If there is nothing to encode or to decode, or a sequence is longer than the learned positions.
        """
        wanted = {
            "output_attentions": output_attentions,
            "output_hidden_states": output_hidden_states,
            "return_dict": True,
        }
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, inputs_embeds, **wanted)
        elif not isinstance(encoder_outputs, BaseModelOutput):
            encoder_outputs = name_encoder_outputs(encoder_outputs, AttnTransformerEncoderOutput)
        source_mask = attention_mask if attention_mask is not None else getattr(encoder_outputs, "attention_mask", None)
        decoder_outputs = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=encoder_outputs.last_hidden_state,
            encoder_attention_mask=source_mask,
            cache=cache,
            inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            **wanted,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            cache=decoder_outputs.cache,
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )


class AttnTransformerForConditionalGeneration(Seq2SeqMixin, AttnTransformerPreTrainedModel, GenerationMixin):
    """Encoder, decoder and output layer: translates with `generate()`.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnTransformerConfig):
        super().__init__(config)
        self.model = AttnTransformerModel(config)
        embeddings = self.model.decoder.embed_tokens
        self.output_projection = None
        if embeddings.embedding_dim != config.hidden_size:
            self.output_projection = nn.Linear(config.hidden_size, embeddings.embedding_dim, bias=False)
        self.lm_head = nn.Linear(embeddings.embedding_dim, embeddings.num_embeddings, bias=config.output_bias)
        self.output_scale = config.hidden_size**-0.5 if config.scale_output else 1.0
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache: EncoderDecoderCache | None = None,
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
            attention_mask: (batch, source_len), non-zero for real source tokens; by default what is not `pad_token_id`.
            decoder_input_ids: (batch, target_len); by default the labels shifted right.
            decoder_attention_mask: (batch, cached + target_len), non-zero for real target tokens; by default all are.
            encoder_outputs: What the encoder returned.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            labels: (batch, target_len), what to predict at each position; -100 where nothing is.
            use_cache: Whether to return a cache; by default not when labels are given.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            logits_to_keep: For how many of the last positions to return logits, 0 for all; `generate()` asks for one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, target_len, vocab_size), and what `AttnTransformerModel` returns.

        Raises:
            ValueError: If there is nothing to encode or to decode, or labels and decoder inputs differ in length.
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
        states = self.states_to_keep(outputs.last_hidden_state, logits_to_keep, labels) * self.output_scale
        logits = self.lm_head(states if self.output_projection is None else self.output_projection(states))
        loss = None if labels is None else self.label_loss(logits, labels, kwargs.get("num_items_in_batch"))
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            decoder_hidden_states=outputs.decoder_hidden_states,
            decoder_attentions=outputs.decoder_attentions,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
            encoder_attentions=outputs.encoder_attentions,
        )


AUTO_CLASSES = {"AutoModel": AttnTransformerModel, "AutoModelForSeq2SeqLM": AttnTransformerForConditionalGeneration}
