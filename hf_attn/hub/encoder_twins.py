# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' encoders equals what in ours: one table for each architecture, in the form of `twins.py`.

    architecture                                        ours
    BERT        Devlin 2019 (arXiv 1810.04805)          the defaults
    RoBERTa     Liu 2019 (1907.11692)                   positions numbered from `pad_token_id` + 1
    ALBERT      Lan 2020 (1909.11942)                   one layer for all, narrow embeddings
    ELECTRA     Clark 2020 (2003.10555)                 narrow embeddings; its own head
    DistilBERT  Sanh 2019 (1910.01108)                  no segments, no pooler

Read next: `import_encoder.py`, which walks along these tables.
"""

from dataclasses import dataclass, field
from typing import Any

from .twins import Options, rename


@dataclass(frozen=True)
class EncoderTwin:
    """One architecture of transformers beside our encoder.

    Args:
        model_type: Its name in config.json.
        prefix: What their classes with a head call the stack.
        fields: Fields of the configurations, ours to theirs.
        fixed: Our options that have one value in this architecture.
        modules: Modules of the stack, ours to theirs, without the prefixes. N stands for the number of a layer.
        heads: For each of our classes, theirs, and the modules, or single tensors, of its head.
        required: Their fields of which one value alone has a counterpart.
        unread: Their tensors without a counterpart of their own: tied to another.
        left_out: Parts of the names of what a checkpoint may bring along for other tasks.
        offset: Whether positions are numbered from `pad_token_id` + 1.
    """

    model_type: str
    prefix: str
    fields: dict[str, str]
    fixed: Options
    modules: dict[str, str]
    heads: dict[str, tuple[str, dict[str, str]]]
    required: Options = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ("pooler", "position_ids")
    offset: bool = False

    def to_ours(self, config: Any) -> Options:
        """Give our options for their configuration."""
        options = {ours: getattr(config, theirs) for ours, theirs in self.fields.items()} | self.fixed
        return options | ({"position_offset": config.pad_token_id + 1} if self.offset else {})


_BERT_LAYER = {
    "self_attention.query_projection": "attention.self.query",
    "self_attention.key_projection": "attention.self.key",
    "self_attention.value_projection": "attention.self.value",
    "self_attention.output_projection": "attention.output.dense",
    "self_attention_norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
_EMBEDDINGS = {
    "embed_tokens": "embeddings.word_embeddings",
    "embedding.learned": "embeddings.position_embeddings",
    "embedding.segments": "embeddings.token_type_embeddings",
    "embedding.norm": "embeddings.LayerNorm",
}
_BERT_MODULES = {
    **_EMBEDDINGS,
    **rename("layers.N", "encoder.layer.N", _BERT_LAYER),
    "pooler.dense": "pooler.dense",
}
_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
}
_COMMON = {
    "initializer_range": "initializer_range",
    "pad_token_id": "pad_token_id",
    "bos_token_id": "bos_token_id",
    "eos_token_id": "eos_token_id",
    "tie_word_embeddings": "tie_word_embeddings",
}
_BERT_FIELDS = {
    **_SIZES,
    **_COMMON,
    "type_vocab_size": "type_vocab_size",
    "layer_norm_eps": "layer_norm_eps",
    "activation_function": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
_NO_DECODER = {"is_decoder": False, "add_cross_attention": False}
_CLASSIFIER = {"classifier": "classifier"}
_SPAN = {"qa_outputs": "qa_outputs"}

BERT = EncoderTwin(
    model_type="bert",
    prefix="bert",
    fields=_BERT_FIELDS,
    fixed={},
    modules=_BERT_MODULES,
    heads={
        "AttnBertModel": ("BertModel", {}),
        "AttnBertForMaskedLM": (
            "BertForMaskedLM",
            {
                "transform.dense": "cls.predictions.transform.dense",
                "transform.norm": "cls.predictions.transform.LayerNorm",
                "lm_head": "cls.predictions.decoder",
            },
        ),
        "AttnBertForSequenceClassification": ("BertForSequenceClassification", _CLASSIFIER),
        "AttnBertForTokenClassification": ("BertForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("BertForQuestionAnswering", _SPAN),
    },
    required=_NO_DECODER,
    unread=("cls.predictions.bias",),
    left_out=("pooler", "position_ids", "cls.seq_relationship"),
)

ROBERTA = EncoderTwin(
    model_type="roberta",
    prefix="roberta",
    fields=_BERT_FIELDS,
    fixed={},
    modules=_BERT_MODULES,
    heads={
        "AttnBertModel": ("RobertaModel", {}),
        "AttnBertForMaskedLM": (
            "RobertaForMaskedLM",
            {
                "transform.dense": "lm_head.dense",
                "transform.norm": "lm_head.layer_norm",
                "lm_head": "lm_head.decoder",
            },
        ),
        "AttnBertForSequenceClassification": (
            "RobertaForSequenceClassification",
            {"model.pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"},
        ),
        "AttnBertForTokenClassification": ("RobertaForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("RobertaForQuestionAnswering", _SPAN),
    },
    required={**_NO_DECODER, "hidden_act": "gelu"},  # its heads have gelu whatever the layers have
    unread=("lm_head.bias",),
    offset=True,
)

_ALBERT_LAYER = {
    "self_attention.query_projection": "attention.query",
    "self_attention.key_projection": "attention.key",
    "self_attention.value_projection": "attention.value",
    "self_attention.output_projection": "attention.dense",
    "self_attention_norm": "attention.LayerNorm",
    "feed_forward.inner": "ffn",
    "feed_forward.outer": "ffn_output",
    "feed_forward_norm": "full_layer_layer_norm",
}

ALBERT = EncoderTwin(
    model_type="albert",
    prefix="albert",
    fields={**_BERT_FIELDS, "embedding_size": "embedding_size"},
    fixed={"share_layers": True},
    modules={
        **_EMBEDDINGS,
        "embedding.projection": "encoder.embedding_hidden_mapping_in",
        **rename("layers.N", "encoder.albert_layer_groups.0.albert_layers.N", _ALBERT_LAYER),
        "pooler.dense": "pooler",
    },
    heads={
        "AttnBertModel": ("AlbertModel", {}),
        "AttnBertForMaskedLM": (
            "AlbertForMaskedLM",
            {
                "transform.dense": "predictions.dense",
                "transform.norm": "predictions.LayerNorm",
                "lm_head": "predictions.decoder",
            },
        ),
        "AttnBertForTokenClassification": ("AlbertForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("AlbertForQuestionAnswering", _SPAN),
    },
    required={"num_hidden_groups": 1, "inner_group_num": 1},
    unread=("predictions.bias",),
    left_out=("pooler", "position_ids", "sop_classifier"),
)

ELECTRA = EncoderTwin(
    model_type="electra",
    prefix="electra",
    fields={**_BERT_FIELDS, "embedding_size": "embedding_size"},
    fixed={"use_pooler": False, "pooler_activation": "gelu"},
    modules={
        **_EMBEDDINGS,
        "embedding.projection": "embeddings_project",
        **rename("layers.N", "encoder.layer.N", _BERT_LAYER),
    },
    heads={
        "AttnBertModel": ("ElectraModel", {}),
        "AttnBertForMaskedLM": (
            "ElectraForMaskedLM",
            {
                "transform.dense": "generator_predictions.dense",
                "transform.norm": "generator_predictions.LayerNorm",
                "lm_head": "generator_lm_head",
            },
        ),
        "AttnBertForReplacedTokenDetection": (
            "ElectraForPreTraining",
            {
                "transform.dense": "discriminator_predictions.dense",
                "classifier": "discriminator_predictions.dense_prediction",
            },
        ),
        "AttnBertForSequenceClassification": (
            "ElectraForSequenceClassification",
            {"model.pooler.dense": "classifier.dense", "classifier": "classifier.out_proj"},
        ),
        "AttnBertForTokenClassification": ("ElectraForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("ElectraForQuestionAnswering", _SPAN),
    },
    required={**_NO_DECODER, "hidden_act": "gelu"},  # its heads have gelu whatever the layers have
)

_DISTIL_LAYER = {
    "self_attention.query_projection": "attention.q_lin",
    "self_attention.key_projection": "attention.k_lin",
    "self_attention.value_projection": "attention.v_lin",
    "self_attention.output_projection": "attention.out_lin",
    "self_attention_norm": "sa_layer_norm",
    "feed_forward.inner": "ffn.lin1",
    "feed_forward.outer": "ffn.lin2",
    "feed_forward_norm": "output_layer_norm",
}

DISTILBERT = EncoderTwin(
    model_type="distilbert",
    prefix="distilbert",
    fields={
        **_COMMON,
        "vocab_size": "vocab_size",
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "max_position_embeddings": "max_position_embeddings",
        "activation_function": "activation",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    },
    fixed={"type_vocab_size": 0, "use_pooler": False, "pooler_activation": "relu"},
    modules={**_EMBEDDINGS, **rename("layers.N", "transformer.layer.N", _DISTIL_LAYER)},
    heads={
        "AttnBertModel": ("DistilBertModel", {}),
        "AttnBertForMaskedLM": (
            "DistilBertForMaskedLM",
            {"transform.dense": "vocab_transform", "transform.norm": "vocab_layer_norm", "lm_head": "vocab_projector"},
        ),
        "AttnBertForSequenceClassification": (
            "DistilBertForSequenceClassification",
            {"model.pooler.dense": "pre_classifier", "classifier": "classifier"},
        ),
        "AttnBertForTokenClassification": ("DistilBertForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("DistilBertForQuestionAnswering", _SPAN),
    },
    required={"sinusoidal_pos_embds": False},
)

ENCODER_TWINS = {twin.model_type: twin for twin in (BERT, ROBERTA, ALBERT, ELECTRA, DISTILBERT)}
