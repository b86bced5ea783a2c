# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalSubscript=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
"""Read a text with attention in both directions, and tell something about it.

    states = dropout(norm(token + segment + position));   N x (self-attention, feed-forward)
    heads      the masked token, a class of the sentence or of each token, an answer in the text, a replaced token

Paper: Devlin 2019 (arXiv 1810.04805). Published alternatives are options of the configuration: RoBERTa (Liu 2019,
1907.11692), ALBERT (Lan 2020, 1909.11942), ELECTRA (Clark 2020, 2003.10555), DistilBERT (Sanh 2019, 1910.01108), and
the norms and positions of the Transformer. Where it differs from the paper: nothing predicts the next sentence (Liu
2019, section 4.2); positions count from the first real token of a row, which is also the one that stands for the
sentence, so that padding on the left changes nothing; an answer is a choice among real tokens.

Axis names: batch, heads, length, hidden_size, embedding_size, vocab_size, classes.
Read before: multihead.py (attention), layers.py (one layer), heads.py (what is read off the states).
"""

from functools import partial

import torch
from torch import nn
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    MaskedLMOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import can_return_tuple

from .base import AttnPreTrainedModel
from .checks import check_token_ids
from .configuration_attn_bert import AttnBertConfig
from .heads import (
    IGNORED,
    Pooler,
    TokenTransform,
    binary_loss,
    check_labels,
    class_loss,
    classification_loss,
    pool,
    span_loss,
)
from .inputs import check_ids, check_input, check_mask
from .layers import NORMS, EncoderLayer, FeedForward
from .masks import AttentionMask, padding_mask
from .multihead import MultiHeadAttention
from .positions import LearnedPositions, make_position_bias, rotary_angles, sinusoidal, token_positions


class AttnBertPreTrainedModel(AttnPreTrainedModel):
    """What the classes of this file have in common."""

    config: AttnBertConfig
    supports_gradient_checkpointing = True
    _no_split_modules = ["EncoderLayer"]
    _supports_sdpa = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *args, **kwargs) -> nn.Embedding:
        """Resize the vocabulary, as in transformers; ValueError if the new one lacks a special id."""
        if new_num_tokens is not None:
            ids = {"bos_token_id": self.config.bos_token_id, "eos_token_id": self.config.eos_token_id}
            check_token_ids(new_num_tokens, new_num_tokens, self.config.pad_token_id, **ids)
        return super().resize_token_embeddings(new_num_tokens, *args, **kwargs)


def make_norm(config: AttnBertConfig, width: int) -> nn.Module:
    """Make a norm of vectors of a width."""
    eps = {} if config.layer_norm_eps is None else {"eps": config.layer_norm_eps}
    return NORMS[config.norm_type](width, **eps)


def make_layer(config: AttnBertConfig) -> EncoderLayer:
    """Make one layer."""
    return EncoderLayer(
        self_attention=MultiHeadAttention(
            config.hidden_size, config.num_attention_heads, dropout=config.attention_dropout
        ),
        feed_forward=FeedForward(config.hidden_size, config.intermediate_size, config.activation_function),
        make_norm=partial(make_norm, config, config.hidden_size),
        norm_first=config.norm_first,
        dropout=config.dropout,
    )


def real_tokens(
    config: AttnBertConfig, input_ids: torch.LongTensor | None, attention_mask: torch.Tensor | None
) -> torch.Tensor | None:
    """Return the padding mask, (batch, length), of what a model is given; None when nothing is padded."""
    if attention_mask is None and input_ids is not None:
        attention_mask = input_ids.ne(config.pad_token_id)
    return padding_mask(attention_mask)


class SegmentedEmbedding(nn.Module):
    """states = dropout(norm(token + segment + position)), then a projection to the width of the layers if the
    embeddings have another; the position only for the types that are added.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__()
        width = config.embedding_width
        self.segments = nn.Embedding(config.type_vocab_size, width) if config.type_vocab_size else None
        self.position_type = config.position_type
        self.position_offset = config.position_offset
        self.learned = None
        if config.position_type == "learned":
            self.learned = LearnedPositions(config.max_position_embeddings, width)
        self.norm = make_norm(config, width)
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(width, config.hidden_size) if width != config.hidden_size else None

    def forward(
        self, embeds: torch.Tensor, positions: torch.Tensor, token_type_ids: torch.LongTensor | None
    ) -> torch.Tensor:
        """Add segments (batch, length) and positions (batch or 1, length) to embeddings (batch, length, embedding_size)
        -> (batch, length, hidden_size). Without token types all tokens are of segment 0."""
        states = embeds
        if self.segments is not None:
            states = states + (self.segments.weight[0] if token_type_ids is None else self.segments(token_type_ids))
        if self.position_type == "sinusoidal":
            states = states + sinusoidal(positions, states.shape[-1]).to(states.dtype)
        if self.learned is not None:
            states = states + self.learned(positions + self.position_offset)
        states = self.dropout(self.norm(states))
        return states if self.projection is None else self.projection(states)


def check_token_types(
    config: AttnBertConfig, token_type_ids: torch.LongTensor | None, shape: tuple[int, int]
) -> torch.LongTensor | None:
    """Refuse segments that there are not.

    Args:
        config: The model's configuration.
        token_type_ids: (batch, length), or None.
        shape: batch and length of the tokens.

    Returns:
        The token types; None where the model has no segments, for which tokenizers give 0.

    Raises:
        TypeError: If they are no tensor of integers.
        ValueError: If they have another shape than the tokens, or one is not less than `type_vocab_size`.
    """
    if token_type_ids is None:
        return None
    check_ids("token_type_ids", token_type_ids, max(config.type_vocab_size, 1))
    if tuple(token_type_ids.shape) != shape:
        raise ValueError(f"token_type_ids must have the shape {shape} of the tokens, got {tuple(token_type_ids.shape)}")
    return token_type_ids if config.type_vocab_size else None


class AttnBertModel(AttnBertPreTrainedModel):
    """Every token attends to every token.

    Args:
        config: The model's configuration.
        add_pooler: Whether there is a pooler; None for what the configuration says.
    """

    def __init__(self, config: AttnBertConfig, add_pooler: bool | None = None):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.embedding_width, padding_idx=config.pad_token_id)
        self.embedding = SegmentedEmbedding(config)
        self.position_bias = make_position_bias(config.position_type, config.num_attention_heads, bidirectional=True)
        count = 1 if config.share_layers else config.num_hidden_layers
        self.layers = nn.ModuleList(make_layer(config) for _ in range(count))
        self.final_norm = make_norm(config, config.hidden_size) if config.norm_first else nn.Identity()
        has_pooler = config.use_pooler if add_pooler is None else add_pooler
        self.pooler = Pooler(config.hidden_size, config.pooler_activation) if has_pooler else None
        self.gradient_checkpointing = False
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> BaseModelOutputWithPooling:
        """Encode a text.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            output_attentions: Whether to return the attention weights: `attentions`, a tuple over layers of (batch,
                heads, length, length).
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: Ignored.

        Returns:
            The states (batch, length, hidden_size), the pooled vector (batch, hidden_size) if there is a pooler, and
            what was asked for.

        Raises:
            TypeError: If an argument is no tensor of the right kind.
            ValueError: If not exactly one of ids and embeddings is given, a shape or an id is wrong, or there are more
                tokens than learned positions.
        """
        config = self.config
        output_attentions = config.output_attentions if output_attentions is None else output_attentions
        output_hidden_states = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        shape = check_input(input_ids, inputs_embeds, config.vocab_size, config.embedding_width)
        check_mask("attention_mask", attention_mask, *shape)
        token_type_ids = check_token_types(config, token_type_ids, shape)
        check_length(config, shape[1])
        padding = real_tokens(config, input_ids, attention_mask)
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        positions = token_positions(padding, shape[1], inputs_embeds.device)
        rotary = config.position_type == "rotary"
        angles = rotary_angles(positions, self.layers[0].self_attention.head_dim) if rotary else None
        bias = None if self.position_bias is None else self.position_bias(positions, positions)

        states = self.embedding(inputs_embeds, positions, token_type_ids)
        all_states, all_weights = (), ()
        for number in range(config.num_hidden_layers):
            all_states += (states,)
            states, weights = self.layers[number % len(self.layers)](
                states,
                bias,
                mask=AttentionMask(padding),
                angles=angles,
                output_attentions=output_attentions,
                implementation=config._attn_implementation,
            )
            all_weights += (weights,)
        states = self.final_norm(states)
        all_states += (states,)

        return BaseModelOutputWithPooling(
            last_hidden_state=states,
            pooler_output=None if self.pooler is None else self.pooler(states, padding),
            hidden_states=all_states if output_hidden_states else None,
            attentions=all_weights if output_attentions else None,
        )

    def sentence_embedding(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        *,
        pooling: str = "mean",
    ) -> torch.Tensor:
        """Make one vector of each text, padding left out: Reimers 2019 (arXiv 1908.10084), section 3.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            pooling: "cls" for the state of the first token, "mean" or "max" of all states.

        Returns:
            (batch, hidden_size)

        Raises:
            ValueError: If the pooling is unknown, or the text is none that the model reads.
        """
        outputs = self(input_ids, attention_mask, token_type_ids, inputs_embeds, return_dict=True)
        padding = real_tokens(self.config, input_ids, attention_mask)
        return pool(outputs.last_hidden_state, padding, pooling)


def check_length(config: AttnBertConfig, length: int) -> None:
    """Raise ValueError if a text is longer than the learned positions reach."""
    positions = config.max_position_embeddings - config.position_offset
    if config.position_type == "learned" and length > positions:
        raise ValueError(
            f"the sequence has {length} tokens, but there are only {positions} learned positions "
            f"(max_position_embeddings={config.max_position_embeddings}, position_offset={config.position_offset})"
        )


class AttnBertForMaskedLM(AttnBertPreTrainedModel):
    """Say which token stands at a place where it is masked (or, in ELECTRA's generator, what else might).

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        self.model = AttnBertModel(config, add_pooler=False)
        width = config.embedding_width
        norm = make_norm(config, width)
        self.transform = TokenTransform(config.hidden_size, width, config.activation_function, norm)
        self.lm_head = nn.Linear(width, config.vocab_size)
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
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        sparse_prediction: bool = False,
        **kwargs,
    ) -> MaskedLMOutput:
        """Predict the token at every position.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            labels: (batch, length), the tokens to predict; -100 where nothing is.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            sparse_prediction: Whether to predict at the labelled positions only, which saves most of the output layer:
                logits (labelled, vocab_size). Labels are needed.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, length, vocab_size), and what was asked for.

        Raises:
            ValueError: If the text or the labels are not what they must be.
        """
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        states = outputs.last_hidden_state
        if sparse_prediction:
            labelled = check_labels(labels, tuple(states.shape[:2])).to(states.device) != IGNORED
            states, labels = states[labelled], labels.to(states.device)[labelled]  # type: ignore[assignment]
        logits = self.lm_head(self.transform(states))
        loss = None if labels is None else class_loss(logits, labels, kwargs.get("num_items_in_batch"))
        return MaskedLMOutput(loss, logits, outputs.hidden_states, outputs.attentions)


class AttnBertForSequenceClassification(AttnBertPreTrainedModel):
    """Say which class a text, or a pair of texts, belongs to, or give it a number.

    Args:
        config: The model's configuration; `num_labels` and `problem_type` as in transformers.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = AttnBertModel(config, add_pooler=True)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        """Score the classes of each text.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            labels: (batch,) classes; for several classes at once (batch, num_labels) of 0 and 1; for a regression
                (batch,) or (batch, num_labels) numbers. -100 counts for nothing.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, num_labels), and what was asked for.

        Raises:
            ValueError: If the text or the labels are not what they must be.
        """
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.classifier(self.dropout(outputs.pooler_output))
        loss = None
        if labels is not None:
            loss = classification_loss(logits, labels, self.config.problem_type, kwargs.get("num_items_in_batch"))
        return SequenceClassifierOutput(loss, logits, outputs.hidden_states, outputs.attentions)


class AttnBertForTokenClassification(AttnBertPreTrainedModel):
    """Say which class each token belongs to, for instance whether it is part of a name.

    Args:
        config: The model's configuration; `num_labels` as in transformers.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = AttnBertModel(config, add_pooler=False)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.LongTensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> TokenClassifierOutput:
        """Score the classes of each token.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            labels: (batch, length), the class of each token; -100 where nothing is to be predicted.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, length, num_labels), and what was asked for.

        Raises:
            ValueError: If the text or the labels are not what they must be.
        """
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.classifier(self.dropout(outputs.last_hidden_state))
        loss = None if labels is None else class_loss(logits, labels, kwargs.get("num_items_in_batch"))
        return TokenClassifierOutput(loss, logits, outputs.hidden_states, outputs.attentions)


class AttnBertForQuestionAnswering(AttnBertPreTrainedModel):
    """Say where in a text the answer begins and where it ends: Devlin 2019, section 4.2.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        self.model = AttnBertModel(config, add_pooler=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        start_positions: torch.LongTensor | None = None,
        end_positions: torch.LongTensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> QuestionAnsweringModelOutput:
        """Score each token as the first and as the last of the answer.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            start_positions: (batch,), where the answer begins; -100 where there is none to learn from.
            end_positions: (batch,), its last token.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of answers.

        Returns:
            Loss (if both positions are given), start_logits and end_logits (batch, length), and what was asked for.

        Raises:
            ValueError: If the text or the positions are not what they must be, or one is given without the other.
        """
        if (start_positions is None) != (end_positions is None):
            raise ValueError("give both start_positions and end_positions, or neither")
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        start_logits, end_logits = (part.contiguous() for part in self.qa_outputs(outputs.last_hidden_state).unbind(-1))
        loss = None
        if start_positions is not None:
            padding, count = real_tokens(self.config, input_ids, attention_mask), kwargs.get("num_items_in_batch")
            loss = span_loss(start_logits, end_logits, start_positions, end_positions, padding, count)
        return QuestionAnsweringModelOutput(loss, start_logits, end_logits, outputs.hidden_states, outputs.attentions)


class AttnBertForReplacedTokenDetection(AttnBertPreTrainedModel):
    """Say of each token whether it was replaced: ELECTRA's discriminator; its generator is an `AttnBertForMaskedLM`.

    Args:
        config: The model's configuration.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        self.model = AttnBertModel(config, add_pooler=False)
        self.transform = TokenTransform(
            config.hidden_size, config.hidden_size, config.activation_function, norm=nn.Identity()
        )
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.LongTensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> TokenClassifierOutput:
        """Score each token as replaced.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens; by default what is not `pad_token_id`.
            token_type_ids: (batch, length), the segment of each token; by default 0.
            inputs_embeds: (batch, length, embedding_size), in place of the ids.
            labels: (batch, length), 1 where the token was replaced, 0 where it was not; -100, and padding, count for
                nothing.
            output_attentions: Whether to return the attention weights.
            output_hidden_states: Whether to return the states of all layers.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, length) of having been replaced, and what was asked for.

        Raises:
            ValueError: If the text or the labels are not what they must be.
        """
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.classifier(self.transform(outputs.last_hidden_state)).squeeze(-1)
        loss = None
        if labels is not None:
            padding = real_tokens(self.config, input_ids, attention_mask)
            loss = binary_loss(logits, labels, padding, kwargs.get("num_items_in_batch"))
        return TokenClassifierOutput(loss, logits, outputs.hidden_states, outputs.attentions)


AUTO_CLASSES = {
    "AutoModel": AttnBertModel,
    "AutoModelForMaskedLM": AttnBertForMaskedLM,
    "AutoModelForSequenceClassification": AttnBertForSequenceClassification,
    "AutoModelForTokenClassification": AttnBertForTokenClassification,
    "AutoModelForQuestionAnswering": AttnBertForQuestionAnswering,
    "AutoModelForPreTraining": AttnBertForReplacedTokenDetection,
}
