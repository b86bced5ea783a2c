# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOptionalOperand=false
"""Write text with a decoder alone: GPT, each token from those before it.

    states = embed(tokens) + position;   N x (masked self-attention, feed-forward);   norm
    logits = states E^T

Papers: Radford 2018 (GPT), Radford 2019 (GPT-2), of which this is the model by default. Published alternatives are
options of the configuration: rotary, ALiBi, relative, sinusoidal and no positions, RMS norm, gated feed-forward
networks, heads that share keys and values, a window of attention; some make it a Llama (Touvron 2023, arXiv
2302.13971). With cross-attention it is a decoder for transformers' `EncoderDecoderModel`. Where it differs from GPT-2
as published: positions count from the first real token of a row, so that padding on the left changes nothing; padding
predicts nothing; the cache keeps what a window has left behind.

Axis names: batch, heads, length, key_len, source_len, hidden_size, vocab_size, num_labels.
Read before: multihead.py (attention), layers.py (one layer). Here: from ids to logits.
"""

from functools import partial

import torch
from torch import nn
from transformers import GenerationMixin
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import (
    BaseModelOutputWithPastAndCrossAttentions,
    CausalLMOutputWithCrossAttentions,
    SequenceClassifierOutputWithPast,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from .base import AttnPreTrainedModel
from .checks import check_token_ids
from .configuration_attn_gpt import AttnGptConfig
from .generation import GenerativeMixin, check_cache
from .heads import classification_loss
from .inputs import check_ids, check_input, check_length, check_mask, check_source
from .layers import NORMS, DecoderLayer, FeedForward
from .masks import AttentionMask, padding_mask
from .multihead import MultiHeadAttention
from .positions import LearnedPositions, make_position_bias, rotary_angles, sinusoidal, token_positions


class AttnGptPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnGptConfig
    supports_gradient_checkpointing = True
    _no_split_modules = ["DecoderLayer"]
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _skip_keys_device_placement = ["cache"]

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the embeddings."""
        return self.base_model.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding):
        """Replace the embeddings."""
        self.base_model.embed_tokens = value

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *args, **kwargs) -> nn.Embedding:
        """Resize embeddings and output layer; arguments and result as in transformers.

        Raises:
            ValueError: If the new vocabulary lacks the padding.
        """
        if new_num_tokens is not None:
            check_token_ids(new_num_tokens, new_num_tokens, self.config.pad_token_id)
        return super().resize_token_embeddings(new_num_tokens, *args, **kwargs)


def make_norm(config: AttnGptConfig) -> nn.Module:
    """Make a norm of the states."""
    eps = {} if config.layer_norm_eps is None else {"eps": config.layer_norm_eps}
    return NORMS[config.norm_type](config.hidden_size, **eps)


def make_layer(config: AttnGptConfig, layer_index: int) -> DecoderLayer:
    """Make one layer. What its parts add to the states starts narrower, the more parts there are (Radford 2019, section
    2.3)."""
    make_attention = partial(
        MultiHeadAttention,
        config.hidden_size,
        config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        bias=config.use_bias,
        dropout=config.attention_dropout,
        layer_index=layer_index,
    )
    cross_attention = (
        make_attention(data_size=config.cross_attention_hidden_size) if config.add_cross_attention else None
    )
    layer = DecoderLayer(
        self_attention=make_attention(),
        cross_attention=cross_attention,
        feed_forward=FeedForward(
            config.hidden_size,
            config.intermediate_size,
            config.activation_function,
            bias=config.use_bias,
            gated=config.gated_feed_forward,
        ),
        make_norm=partial(make_norm, config),
        norm_first=config.norm_first,
        dropout=config.dropout,
    )
    for part in (layer.self_attention, layer.cross_attention):
        if part is not None:
            part.output_projection.initial_scale = (2 * config.num_hidden_layers) ** -0.5
    layer.feed_forward.outer.initial_scale = (2 * config.num_hidden_layers) ** -0.5
    return layer


class AttnGptModel(AttnGptPreTrainedModel):
    """The stack, without an output layer.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnGptConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.embedding_scale = config.hidden_size**0.5 if config.scale_embedding else 1.0
        self.learned = None
        if config.position_type == "learned":
            self.learned = LearnedPositions(config.max_position_embeddings, config.hidden_size)
        self.embedding_norm = make_norm(config) if config.normalize_embedding else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.position_bias = make_position_bias(config.position_type, config.num_attention_heads, bidirectional=False)
        self.layers = nn.ModuleList(make_layer(config, layer_index) for layer_index in range(config.num_hidden_layers))
        self.final_norm = make_norm(config) if config.norm_first else nn.Identity()
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Read all tokens at once in training, the new ones alone with a cache.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, cached + length), non-zero for real tokens; by default all are.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, length, hidden_size), in place of the ids.
            encoder_hidden_states: (batch, source_len, cross_attention_hidden_size), what cross-attention attends to; by
                default it is left out.
            encoder_attention_mask: (batch, source_len), non-zero for real source tokens; by default all are.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights: `attentions` and, with an encoder,
                `cross_attentions`, tuples over layers of (batch, heads, length, key_len).
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            The states, the cache, and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind, or the cache no cache of keys and values.
            ValueError: If not exactly one of ids and embeddings is given, a shape, a batch or an id is wrong, there are
                more tokens than learned positions, or states of an encoder for a model without cross-attention.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = (
            self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        )
        use_cache = self.config.use_cache if use_cache is None else use_cache
        batch, length = check_input(input_ids, inputs_embeds, self.config.vocab_size, self.config.hidden_size)
        self.check_encoder(encoder_hidden_states, encoder_attention_mask, batch)
        check_cache(cache, batch)
        if self.gradient_checkpointing and self.training and torch.is_grad_enabled():
            use_cache, cache = False, None  # a checkpointed layer runs twice and would store its keys twice
        if use_cache and cache is None:
            cache = DynamicCache(config=self.config)
        if encoder_hidden_states is not None and cache is not None and not isinstance(cache, EncoderDecoderCache):
            cache = EncoderDecoderCache(cache, DynamicCache(config=self.config))
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)

        cached_len = 0 if cache is None else cache.get_seq_length()
        if isinstance(cached_len, torch.Tensor):
            cached_len = cached_len.clone()  # a static cache counts on in place
        else:
            check_length(cached_len + length, self.position_limit)
            check_mask("attention_mask", attention_mask, batch, cached_len + length)
        key_len = -1 if cache is None else cache.get_max_length(0)
        if key_len == -1:  # not a static cache, in which all slots are keys from the start
            key_len = cached_len + length
        padding = padding_mask(attention_mask)
        if padding is None:
            positions = torch.arange(length, device=inputs_embeds.device)[None] + cached_len
            key_positions = torch.arange(key_len, device=inputs_embeds.device)[None]
        else:
            known = token_positions(padding, padding.shape[1], inputs_embeds.device)
            positions = known[:, -length:]
            key_positions = nn.functional.pad(known, (0, key_len - known.shape[1]))
        angles = None
        if self.config.position_type == "rotary":
            angles = rotary_angles(positions, self.layers[0].self_attention.head_dim, self.config.rope_theta)
        bias = None if self.position_bias is None else self.position_bias(positions, key_positions)
        mask = AttentionMask(padding, causal=True, window=self.config.sliding_window, query_offset=cached_len)
        source_mask = AttentionMask(padding_mask(encoder_attention_mask))

        states = inputs_embeds * self.embedding_scale
        if self.config.position_type == "sinusoidal":
            states = states + sinusoidal(positions, states.shape[-1]).to(states.dtype)
        if self.learned is not None:
            states = states + self.learned(positions)
        states = self.dropout(self.embedding_norm(states))
        all_states, all_weights, all_cross_weights = (), (), ()
        for layer in self.layers[: self.config.num_hidden_layers]:  # fewer in a draft that ends early
            all_states += (states,)
            states, weights, cross_weights = layer(
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
            all_weights += (weights,)
            all_cross_weights += (cross_weights,)
        states = self.final_norm(states)
        all_states += (states,)

        crosses = output_attentions and encoder_hidden_states is not None
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=states,
            cache=cache if use_cache else None,
            hidden_states=all_states if output_hidden_states else None,
            attentions=all_weights if output_attentions else None,
            cross_attentions=all_cross_weights if crosses else None,
        )

    def check_encoder(self, states: torch.Tensor | None, mask: torch.Tensor | None, batch: int) -> None:
        """Refuse an encoder's states that have another shape, or that nothing would attend to."""
        if states is None:
            return
        if not self.config.add_cross_attention:
            raise ValueError("encoder_hidden_states need a model with add_cross_attention=True")
        width = self.config.cross_attention_hidden_size or self.config.hidden_size
        check_source(states, mask, batch, width, names=("encoder_hidden_states", "encoder_attention_mask"))


class AttnGptForCausalLM(GenerativeMixin, AttnGptPreTrainedModel, GenerationMixin):
    """The stack and an output layer: goes on with a text by `generate()`.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnGptConfig):
        super().__init__(config)
        self.model = AttnGptModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    @property
    def _tied_weights_keys(self) -> dict[str, str]:
        """{tied parameter: its source}, from `tie_word_embeddings`."""
        return {"lm_head.weight": "model.embed_tokens.weight"} if self.config.tie_word_embeddings else {}

    def save_pretrained(self, *args, **kwargs):
        """Save as base.py does, with a config that says what is tied now: others than us merge, untie and retie."""
        self.config.tie_word_embeddings = self.lm_head.weight is self.model.embed_tokens.weight
        super().save_pretrained(*args, **kwargs)

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int = 0,
        **kwargs,
    ) -> CausalLMOutputWithCrossAttentions:
        """Predict the next token at every position.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, cached + length), non-zero for real tokens; by default all are.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, length, hidden_size), in place of the ids.
            encoder_hidden_states: (batch, source_len, cross_attention_hidden_size), what cross-attention attends to.
            encoder_attention_mask: (batch, source_len), non-zero for real source tokens; by default all are.
            labels: (batch, length), the ids themselves, -100 where nothing is to be predicted. They are shifted here:
                each is predicted from what stands before it, and the first from nothing, that is, not at all.
            use_cache: Whether to return a cache; by default not when labels are given.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            logits_to_keep: For how many of the last positions to return logits, 0 for all; `generate()` asks for one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels, and
                `shift_labels`, labels that are shifted already: what to predict at each position.

        Returns:
            Loss (if labels are given), logits (batch, length, vocab_size), and what `AttnGptModel` returns.

        Raises:
            ValueError: If labels and inputs differ in shape, and what `AttnGptModel` raises.
        """
        if labels is not None:
            check_ids("labels", labels, self.config.vocab_size, ignored=-100)
            use_cache = False if use_cache is None else use_cache
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            cache=cache,
            inputs_embeds=inputs_embeds,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            use_cache=use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        read = tuple(outputs.last_hidden_state.shape[:2])
        if labels is not None and labels.shape != read:
            raise ValueError(
                f"labels have shape {tuple(labels.shape)}, the inputs {read}: both must be (batch, length)"
            )
        logits = self.lm_head(self.states_to_keep(outputs.last_hidden_state, logits_to_keep, labels))
        loss = None
        if labels is not None:
            shifted = kwargs.get("shift_labels")
            if shifted is None:
                shifted = nn.functional.pad(labels[:, 1:], (0, 1), value=-100)
                if attention_mask is not None:  # nothing is predicted from padding before the first token
                    padded = attention_mask[:, -labels.shape[1] :] == 0
                    shifted = shifted.masked_fill(padded, -100)
            loss = self.label_loss(logits, shifted, kwargs.get("num_items_in_batch"))
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
            cross_attentions=outputs.cross_attentions,
        )


class AttnGptForSequenceClassification(AttnGptPreTrainedModel):
    """The stack and a layer that judges the whole text by the states of its last token.

    Args:
        config: The model's configuration; `num_labels` and `problem_type` as in transformers.
    """

    def __init__(self, config: AttnGptConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = AttnGptModel(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> SequenceClassifierOutputWithPast:
        """Judge a text by the states of its last real token, wherever the padding stands.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, cached + length), non-zero for real tokens; by default what is not `pad_token_id`,
                and everything with a cache or with embeddings.
            cache: Keys and values of earlier steps.
            inputs_embeds: (batch, length, hidden_size), in place of the ids.
            labels: A class or number for each text, (batch,), or several, (batch, num_labels); heads.py says which.
            use_cache: Whether to return a cache; by default not.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, num_labels), and what `AttnGptModel` returns.

        Raises:
            ValueError: If the labels do not fit the problem, and what `AttnGptModel` raises.
        """
        pad = self.config.pad_token_id
        if attention_mask is None and isinstance(input_ids, torch.Tensor) and pad is not None and cache is None:
            attention_mask = input_ids.ne(pad)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            cache=cache,
            inputs_embeds=inputs_embeds,
            use_cache=bool(use_cache),
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        states = outputs.last_hidden_state
        batch, length = states.shape[:2]
        if attention_mask is None:
            last = states[:, -1]
        else:
            numbers = torch.arange(length, device=states.device) * attention_mask[:, -length:].bool()
            last = states[torch.arange(batch, device=states.device), numbers.argmax(dim=-1)]
        logits = self.classifier(last)
        loss = None
        if labels is not None:
            loss = classification_loss(logits, labels, self.config.problem_type, kwargs.get("num_items_in_batch"))
        return SequenceClassifierOutputWithPast(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


AUTO_CLASSES = {
    "AutoModel": AttnGptModel,
    "AutoModelForCausalLM": AttnGptForCausalLM,
    "AutoModelForSequenceClassification": AttnGptForSequenceClassification,
}
