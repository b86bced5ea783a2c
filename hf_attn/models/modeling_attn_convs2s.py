# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Translate with convolutions: Gehring's ConvS2S, in which every decoder layer attends to the source.

    encoder   e = embed(source) + position;   states = W e
              N x  states = (states + gate(convolution(states))) * sqrt(0.5)
              key = W states;   value = (key + e) * sqrt(0.5)
    decoder   g = embed(target) + position;   states = W g
              N x  outputs = gate(causal convolution(states))
                   query = W outputs + g;   scores = query . key
                   context = attend(scores, value) * m sqrt(1 / m)
                   states = (states + (outputs + W context) * sqrt(0.5)) * sqrt(0.5)
    logits    lm_head(W states)

Each W is a matrix of its own, with a bias; m is the number of source tokens. Key and value differ: the key knows the
neighbourhood of a token, the value adds the token itself.

Paper: Gehring 2017 (arXiv 1705.03122) section 3. Residual sums and the value are scaled by sqrt(0.5) (section 3.4); the
query stays as equation 1 has it. Where it differs from the paper is said line by line below: no weight normalisation,
the first weights of the output layer, and one width and one kernel size for all layers of a side.

Axis names: batch, source_len, target_len, hidden_size, embedding_size, vocab_size. Attention has one head.
Read before: attention.py (the equation), convolution.py (the gated convolution). Here: from ids to logits.
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import can_return_tuple

from .attention import run_attention
from .base import AttnPreTrainedModel
from .configuration_attn_convs2s import AttnConvS2SConfig
from .convolution import GatedConvolution, Projection, reorder, scale_gradient, zero_padding
from .inputs import check_cache_rows, check_input, check_length, check_mask, check_source
from .masks import AttentionMask, padding_mask
from .positions import LearnedPositions
from .recurrent import DecoderMemory, RecurrentCache
from .scores import Dot
from .seq2seq import Seq2SeqMixin, name_encoder_outputs

SQRT_HALF = 0.5**0.5  # the sum of two vectors of one variance, times this, has their variance (section 3.4)


@dataclass
class AttnConvS2SEncoderOutput(BaseModelOutput):
    """The encoder's output.

    Args:
        last_hidden_state: What attention averages, the values: (batch, source_len, embedding_size), zero at padding.
        hidden_states: If asked for, the input of each layer, (batch, source_len, hidden_size), and the keys.
        attentions: None: a convolutional encoder has none.
        key: What attention compares the queries with, (batch, source_len, embedding_size), zero at padding.
        attention_mask: (batch, source_len), the mask that the encoder used: `generate()` does not tell the decoder
            about padding that was inferred from the ids. None if nothing is padded.
    """

    key: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None


class ConvolutionCache(RecurrentCache):
    """What `generate()` carries from one step to the next: the last inputs of each layer's convolution, (batch,
    kernel_size - 1, hidden_size), as its only state. Keys and values are the encoder's, and need no keeping."""

    def crop(self, tokens_to_remove: int):
        """Refuse: the inputs before the last ones are gone."""
        raise ValueError("a ConvolutionCache cannot be cropped: it keeps the last inputs of each convolution only")

    def __repr__(self) -> str:
        return f"ConvolutionCache(layers={len(self)}, length={self.length})"


class EncoderConvolutionLayer(GradientCheckpointingLayer):
    """states' = (states + gate(convolution(states))) * sqrt(0.5)

    Args:
        hidden_size: Width of the states.
        kernel_size: Number of tokens in a window.
        dropout: Dropout of the convolution's input.
    """

    def __init__(self, hidden_size: int, kernel_size: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.convolution = GatedConvolution(hidden_size, kernel_size, causal=False, keep=1 - dropout)

    def forward(self, states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        """Let each token read its neighbours.

        Args:
            states: (batch, source_len, hidden_size)
            real: (batch, source_len), True for real tokens; None when nothing is padded.

        Returns:
            (batch, source_len, hidden_size)
        """
        inputs = zero_padding(self.dropout(states), real)
        return (states + self.convolution(inputs)) * SQRT_HALF


class DecoderConvolutionLayer(GradientCheckpointingLayer):
    """A causal convolution, then attention to the source; both residual.

    Args:
        hidden_size: Width of the states.
        embedding_size: Width of the embeddings, queries, keys and values.
        kernel_size: Number of tokens in a window.
        dropout: Dropout of the convolution's input.
        attention_dropout: Dropout of attention weights.
    """

    def __init__(
        self, hidden_size: int, embedding_size: int, kernel_size: int, dropout: float, attention_dropout: float
    ):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.convolution = GatedConvolution(hidden_size, kernel_size, causal=True, keep=1 - dropout)
        self.query_projection = Projection(hidden_size, embedding_size)
        self.score = Dot(embedding_size, embedding_size)
        self.context_projection = Projection(embedding_size, hidden_size)
        self.attention_dropout = attention_dropout

    def forward(
        self,
        states: torch.Tensor,
        embeddings: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        past: torch.Tensor | None = None,
        *,
        real: torch.Tensor | None,
        source_mask: AttentionMask,
        output_attentions: bool,
        implementation: str | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Let each target token read those before it, and look at the source.

        Args:
            states: (batch, target_len, hidden_size)
            embeddings: The target tokens with their positions, (batch, target_len, embedding_size)
            key: (batch, source_len, embedding_size)
            value: (batch, source_len, embedding_size)
            past: The convolution's last inputs, (batch, kernel_size - 1, hidden_size); None at the start.
            real: (batch, target_len), True for real target tokens; None when nothing is padded.
            source_mask: Which source tokens may be attended.
            output_attentions: Whether to return the weights.
            implementation: A name in KERNELS, or "eager".

        Returns:
            The states, (batch, target_len, hidden_size); the weights (batch, 1, target_len, source_len), if asked for;
            and the convolution's last inputs.
        """
        inputs = zero_padding(self.dropout(states), real)
        outputs = self.convolution(inputs, past)  # (batch, target_len, hidden_size)
        query = self.query_projection(outputs) + embeddings  # equation 1: (batch, target_len, embedding_size)
        context, weights = run_attention(
            query[:, None],
            key[:, None],
            value[:, None],
            self.score,
            source_mask,
            dropout=self.attention_dropout if self.training else 0.0,
            output_attentions=output_attentions,
            implementation=implementation,
        )
        context = context[:, 0] * source_scale(source_mask, key)  # (batch, target_len, embedding_size)
        attended = (outputs + self.context_projection(context)) * SQRT_HALF  # (batch, target_len, hidden_size)
        return (states + attended) * SQRT_HALF, weights, self.convolution.keep_last(inputs, past)


def source_scale(source_mask: AttentionMask, key: torch.Tensor) -> torch.Tensor | float:
    """Return m * sqrt(1 / m), m the number of source tokens: by it the mean of m independent vectors has the variance
    of one (section 3.4).

    Args:
        source_mask: Which source tokens are real.
        key: (batch, source_len, embedding_size)

    Returns:
        (batch, 1, 1), or a number if nothing is padded.
    """
    if source_mask.padding is None:
        return key.shape[1] ** 0.5
    return source_mask.padding.sum(dim=1)[:, None, None].to(key.dtype).sqrt()


class AttnConvS2SPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnConvS2SConfig
    encoder_output_class = AttnConvS2SEncoderOutput
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderConvolutionLayer", "DecoderConvolutionLayer"]
    _supports_sdpa = True
    _supports_attention_backend = True
    _skip_keys_device_placement = ["cache"]
    _is_stateful = True

    def _init_weights(self, module: nn.Module):
        """Start as section 3.5 has it: embeddings from N(0, 0.1), and weights that keep the variance of their input
        (convolution.py); biases zero."""
        # differs from the paper: no weight normalisation (Salimans & Kingma 2016, arXiv 1602.07868); so a matrix is one
        # parameter, which can be saved, tied and adapted as it is
        super()._init_weights(module)
        if isinstance(module, Projection):
            init.normal_(module.weight, std=module.initial_range)


class AttnConvS2SEncoder(AttnConvS2SPreTrainedModel):
    """Read the source: each layer sees a wider neighbourhood of every token.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnConvS2SConfig):
        super().__init__(config)
        # differs from the paper, whose larger models have several widths and kernel sizes: one of each for all layers
        width, hidden_size = config.embedding_width, config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.embed_positions = LearnedPositions(config.max_position_embeddings, width)
        self.dropout = nn.Dropout(config.dropout)
        self.input_projection = Projection(width, hidden_size, gain=1 - config.dropout)
        self.layers = nn.ModuleList(
            EncoderConvolutionLayer(hidden_size, config.encoder_kernel_size, config.dropout)
            for _ in range(config.encoder_layers)
        )
        self.output_projection = Projection(hidden_size, width)
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
    ) -> AttnConvS2SEncoderOutput:
        """Encode the source; padding may stand anywhere and changes nothing.

        Args:
            input_ids: (batch, source_len)
            attention_mask: (batch, source_len), non-zero for real tokens; by default what is not `pad_token_id`.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored; `generate()` passes the decoder's arguments too.

        Returns:
            Values and keys of all tokens, and what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, a shape or an id is wrong, or there are more
                tokens than positions.
        """
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        shape = check_input(input_ids, inputs_embeds, self.config.vocab_size, self.config.embedding_width)
        check_mask("attention_mask", attention_mask, *shape)
        check_length(shape[1], self.position_limit)
        if inputs_embeds is None:
            attention_mask = input_ids.ne(self.config.pad_token_id) if attention_mask is None else attention_mask
            inputs_embeds = self.embed_tokens(input_ids)
        mask = real = padding_mask(attention_mask)
        order = None
        if mask is not None:  # the real tokens of a row move to its front, so that neighbours stand side by side
            order = (~mask).long().argsort(dim=1, stable=True)
            real = mask.gather(1, order)
            inputs_embeds = reorder(inputs_embeds, order)
        positions = torch.arange(shape[1], device=inputs_embeds.device)[None]

        embeddings = self.dropout(inputs_embeds + self.embed_positions(positions))
        states = self.input_projection(embeddings)  # (batch, source_len, hidden_size)
        all_states = ()
        for layer in self.layers:
            all_states += (states,)
            states = layer(states, real)
        key = zero_padding(self.output_projection(states), real)  # (batch, source_len, embedding_size)
        if self.training:  # every decoder layer sends a gradient, through keys and through values
            key = scale_gradient(key, 1 / (2 * self.config.decoder_layers))
        value = zero_padding((key + embeddings) * SQRT_HALF, real)  # equation 2, with the scale of section 3.4
        all_states += (key,)

        if order is not None:
            restore = order.argsort(dim=1)
            key, value, *all_states = (reorder(states, restore) for states in (key, value, *all_states))
        return AttnConvS2SEncoderOutput(
            last_hidden_state=value,
            hidden_states=tuple(all_states) if output_hidden_states else None,
            key=key,
            attention_mask=mask,
        )


class AttnConvS2SDecoder(AttnConvS2SPreTrainedModel):
    """Write the target: each layer sees more of what was written, and looks at the source again.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnConvS2SConfig):
        super().__init__(config)
        width, hidden_size = config.embedding_width, config.hidden_size
        self.embed_tokens = nn.Embedding(config.target_vocab_size, width, padding_idx=config.pad_token_id)
        self.embed_positions = LearnedPositions(config.max_position_embeddings, width)
        self.dropout = nn.Dropout(config.dropout)
        self.input_projection = Projection(width, hidden_size, gain=1 - config.dropout)
        self.layers = nn.ModuleList(
            DecoderConvolutionLayer(
                hidden_size, width, config.decoder_kernel_size, config.dropout, config.attention_dropout
            )
            for _ in range(config.decoder_layers)
        )
        self.output_projection = Projection(hidden_size, width)
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnConvS2SEncoderOutput | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: ConvolutionCache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode: all target tokens at once in training, the new ones alone with a cache.

        Args:
            input_ids: (batch, target_len)
            attention_mask: (batch, cached + target_len), non-zero for real target tokens; padding only at the ends.
            encoder_outputs: What the encoder returned.
            encoder_attention_mask: (batch, source_len), non-zero for real source tokens; by default the encoder's mask.
            cache: The convolutions' last inputs.
            inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            Output vectors (batch, target_len, embedding_size), the cache, and what was asked for: `cross_attentions`, a
            tuple over layers of (batch, 1, target_len, source_len); `hidden_states`, the input of each layer and the
            output vectors.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, a shape or an id is wrong, the encoder's keys
                are missing, padding stands between real target tokens, the cache is of another kind or batch, or there
                are more tokens than positions.
        """
        output_attentions = self.config.output_attentions if output_attentions is None else output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        use_cache = self.config.use_cache if use_cache is None else use_cache
        sizes = self.config.target_vocab_size, self.config.embedding_width
        batch, target_len = check_input(input_ids, inputs_embeds, *sizes, "decoder_")
        check_decoder_arguments(encoder_outputs, cache, batch)
        cached_len = 0 if cache is None else cache.length
        check_length(cached_len + target_len, self.position_limit)
        check_mask("decoder_attention_mask", attention_mask, batch, cached_len + target_len)
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if encoder_attention_mask is None:
            encoder_attention_mask = encoder_outputs.attention_mask
        key, value = encoder_outputs.key, encoder_outputs.last_hidden_state
        check_source(value, encoder_attention_mask, batch, self.config.embedding_width)
        source_mask = AttentionMask(padding_mask(encoder_attention_mask))
        positions = torch.arange(cached_len, cached_len + target_len, device=inputs_embeds.device)[None]
        real = padding_mask(attention_mask)
        if real is not None:
            check_gaps(real)
            positions = (real.long().cumsum(dim=1) - 1).clamp(min=0)[:, -target_len:]  # 0 is the first real token
            real = real[:, -target_len:]

        embeddings = self.dropout(inputs_embeds + self.embed_positions(positions))
        states = self.input_projection(embeddings)  # (batch, target_len, hidden_size)
        begun = cache is not None and cache.is_initialized
        past = [inputs for (inputs,) in cache.memory.states] if begun else [None] * len(self.layers)
        all_states, all_weights, last = (), (), []
        for layer, before in zip(self.layers, past, strict=True):
            all_states += (states,)
            states, weights, after = layer(
                states,
                embeddings,
                key,
                value,
                before,
                real=real,
                source_mask=source_mask,
                output_attentions=output_attentions,
                implementation=self.config._attn_implementation,
            )
            all_weights += (weights,)
            last.append((after,))
        outputs = self.output_projection(states)  # (batch, target_len, embedding_size)
        all_states += (outputs,)
        if use_cache:
            cache = ConvolutionCache() if cache is None else cache
            cache.update(DecoderMemory(last), steps=target_len)

        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=self.dropout(outputs),
            cache=cache if use_cache else None,
            hidden_states=all_states if output_hidden_states else None,
            cross_attentions=all_weights if output_attentions else None,
        )

    def value_norms(self, encoder_hidden_states: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Measure how much each source token adds where a layer reads the context: the norm of its value times the
        matrix that reads it. After Kobayashi 2020 (arXiv 2004.10102), which is about the Transformer.

        Args:
            encoder_hidden_states: The values, (batch, source_len, embedding_size)

        Returns:
            For each layer, (batch, 1, source_len)
        """
        return tuple(
            nn.functional.linear(encoder_hidden_states, layer.context_projection.weight).norm(dim=-1)[:, None]
            for layer in self.layers
        )


def check_decoder_arguments(encoder_outputs: object, cache: object | None, batch: int) -> None:
    """Raise ValueError for encoder outputs without keys, and for a cache of another kind or batch."""
    if getattr(encoder_outputs, "key", None) is None:
        raise ValueError(
            "encoder_outputs must be what this model's encoder returned (AttnConvS2SEncoderOutput, with key), got "
            f"{type(encoder_outputs).__name__}"
        )
    if cache is not None and not isinstance(cache, ConvolutionCache):
        raise ValueError(f"cache must be a ConvolutionCache, as the model returns it, got {type(cache).__name__}")
    if cache is not None:
        check_cache_rows(cache.batch_size, batch)


def check_gaps(real: torch.Tensor) -> None:
    """Raise ValueError if padding stands between real target tokens; (batch, length), True for real tokens."""
    begins = real[:, 1:] & ~real[:, :-1]
    if not torch.compiler.is_compiling() and bool((begins.sum(dim=1) + real[:, 0] > 1).any()):
        raise ValueError(
            "decoder_attention_mask has padding between real tokens, which a convolution would read as one of them; "
            "pad the target at its ends"
        )


class AttnConvS2SModel(Seq2SeqMixin, AttnConvS2SPreTrainedModel):
    """Encoder and decoder, without the last layer.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnConvS2SConfig):
        super().__init__(config)
        self.encoder = AttnConvS2SEncoder(config)
        self.decoder = AttnConvS2SDecoder(config)
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnConvS2SEncoderOutput | tuple | None = None,
        cache: ConvolutionCache | None = None,
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
                the ends only.
            encoder_outputs: What the encoder returned.
            cache: The decoder's memory of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            use_cache: Whether to return a cache.
            output_attentions: Whether to return the attention weights: `cross_attentions`, a tuple over layers of
                (batch, 1, target_len, source_len). There is no self-attention.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            The decoder's output vectors, (batch, target_len, embedding_size), the encoder's values, the cache, and what
            was asked for.

        Raises:
            ValueError: If there is nothing to encode or to decode, or an argument does not fit.
        """
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids, attention_mask, inputs_embeds, output_hidden_states=output_hidden_states, return_dict=True
            )
        elif isinstance(encoder_outputs, (tuple, list)):
            encoder_outputs = name_encoder_outputs(encoder_outputs, AttnConvS2SEncoderOutput)
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


class AttnConvS2SForConditionalGeneration(Seq2SeqMixin, AttnConvS2SPreTrainedModel, GenerationMixin):
    """Encoder, decoder and output layer: translates with `generate()`.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnConvS2SConfig):
        super().__init__(config)
        self.model = AttnConvS2SModel(config)
        # differs from the paper: starts like an embedding, N(0, 0.1), tied to one or not
        self.lm_head = nn.Linear(config.embedding_width, self.model.decoder.embed_tokens.num_embeddings)
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Return False: the decoder makes its own ConvolutionCache, it has no keys and values to keep."""
        return False

    def refused_generation_options(self) -> list[tuple[str, object, str]]:
        """Return also every cache but the decoder's own."""
        reason = "a convolutional decoder has no keys and values to keep, and its ConvolutionCache has one size always"
        return [*super().refused_generation_options(), ("cache_implementation", "dynamic", reason)]

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: AttnConvS2SEncoderOutput | tuple | None = None,
        cache: ConvolutionCache | None = None,
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
                the ends only.
            encoder_outputs: What the encoder returned.
            cache: The decoder's memory of earlier steps.
            inputs_embeds: (batch, source_len, embedding_size), in place of the ids.
            decoder_inputs_embeds: (batch, target_len, embedding_size), in place of the ids.
            labels: (batch, target_len), what to predict at each position; -100 where nothing is.
            use_cache: Whether to return a cache; by default not when labels are given.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            logits_to_keep: For how many of the last positions to return logits, 0 for all; `generate()` asks for one.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, target_len, vocab_size), and what `AttnConvS2SModel` returns.

        Raises:
            ValueError: If there is nothing to encode or to decode, labels and decoder inputs differ in length, or an
                argument does not fit.
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


AUTO_CLASSES = {"AutoModel": AttnConvS2SModel, "AutoModelForSeq2SeqLM": AttnConvS2SForConditionalGeneration}
