# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' encoders equals what in ours: one table for each architecture.

    architecture                                        ours
    BERT        Devlin 2019 (arXiv 1810.04805)          the defaults
    RoBERTa     Liu 2019 (1907.11692)                   positions numbered from `pad_token_id` + 1
    ALBERT      Lan 2020 (1909.11942)                   one layer for all, narrow embeddings
    ELECTRA     Clark 2020 (2003.10555)                 narrow embeddings; its own head
    DistilBERT  Sanh 2019 (1910.01108)                  no segments, no pooler

The two give the same states, logits, attention weights and losses at real tokens, up to rounding, with these
differences: ours infer padding from the ids where no mask is given; ours count positions from the first real token of a
row; for an answer in a text, ours choose among real tokens. In training, ours drop out what a classifier reads with
`dropout`, where some of theirs have a number of its own.

Read before: `twins.py`, the form of the tables.
"""

from typing import Any

from .twins import Options, Translated, Twin, norm_eps, rename

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
    "activation_function": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
_NO_DECODER = {"is_decoder": False, "add_cross_attention": False}
_CLASSIFIER = {"classifier": "classifier"}
_SPAN = {"qa_outputs": "qa_outputs"}
_CONSTANTS = ("position_ids",)
_EPS = {"layer_norm_eps": "layer_norm_eps"}
_NARROW = _EPS | {"embedding_size": "embedding_size"}
_DROPOUT = {
    "AttnBertForSequenceClassification": "classifier_dropout",
    "AttnBertForTokenClassification": "classifier_dropout",
}


def _bert_to_ours(config: Any) -> Translated:
    return {"layer_norm_eps": config.layer_norm_eps}, []


def _bert_to_theirs(values: Options) -> Translated:
    obstacles = [] if values["type_vocab_size"] else ["type_vocab_size=0 (it must be at least 1)"]
    return {"layer_norm_eps": norm_eps(values)}, obstacles


def _roberta_to_ours(config: Any) -> Translated:
    return {"layer_norm_eps": config.layer_norm_eps, "position_offset": config.pad_token_id + 1}, []


def _roberta_to_theirs(values: Options) -> Translated:
    options, obstacles = _bert_to_theirs(values)
    offset, wanted = values["position_offset"], values["pad_token_id"] + 1
    if offset != wanted:
        obstacles.append(f"position_offset={offset} (it must be pad_token_id + 1 = {wanted})")
    return options, obstacles


def _narrow_to_ours(config: Any) -> Translated:
    return {"layer_norm_eps": config.layer_norm_eps, "embedding_size": config.embedding_size}, []


def _electra_to_theirs(values: Options) -> Translated:
    options, obstacles = _bert_to_theirs(values)
    return options | {"embedding_size": values["embedding_size"] or values["hidden_size"]}, obstacles


def _albert_to_theirs(values: Options) -> Translated:
    options, obstacles = _electra_to_theirs(values)
    if values["embedding_size"] is None:
        obstacles.append("embedding_size=None (it must differ from hidden_size)")
    return options, obstacles


def _distilbert_to_theirs(values: Options) -> Translated:
    return {"qa_dropout": 0.0}, []  # ours drops out nothing there


BERT = Twin(
    model_type="bert",
    prefix="bert",
    fields=_BERT_FIELDS,
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
    copies={"cls.predictions.bias": "cls.predictions.decoder.bias"},
    left_out=("pooler", "cls.seq_relationship"),
    constants=_CONSTANTS,
    relatives={"BertForPreTraining": "AttnBertForMaskedLM"},
    classifier_dropout=_DROPOUT,
    converted=_EPS,
    to_ours=_bert_to_ours,
    to_theirs=_bert_to_theirs,
)

ROBERTA = Twin(
    model_type="roberta",
    prefix="roberta",
    fields=_BERT_FIELDS,
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
    copies={"lm_head.bias": "lm_head.decoder.bias"},
    left_out=("pooler",),
    constants=_CONSTANTS,
    classifier_dropout=_DROPOUT,
    converted=_EPS | {"position_offset": "pad_token_id"},
    to_ours=_roberta_to_ours,
    to_theirs=_roberta_to_theirs,
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

ALBERT = Twin(
    model_type="albert",
    prefix="albert",
    fields=_BERT_FIELDS,
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
        "AttnBertForSequenceClassification": ("AlbertForSequenceClassification", _CLASSIFIER),
        "AttnBertForTokenClassification": ("AlbertForTokenClassification", _CLASSIFIER),
        "AttnBertForQuestionAnswering": ("AlbertForQuestionAnswering", _SPAN),
    },
    required={"num_hidden_groups": 1, "inner_group_num": 1},
    copies={"predictions.bias": "predictions.decoder.bias"},
    left_out=("pooler", "sop_classifier"),
    constants=_CONSTANTS,
    relatives={"AlbertForPreTraining": "AttnBertForMaskedLM"},
    classifier_dropout={name: "classifier_dropout_prob" for name in _DROPOUT},
    converted=_NARROW,
    to_ours=_narrow_to_ours,
    to_theirs=_albert_to_theirs,
)

ELECTRA = Twin(
    model_type="electra",
    prefix="electra",
    fields=_BERT_FIELDS,
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
    ignored=("summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"),
    left_out=("pooler",),
    constants=_CONSTANTS,
    classifier_dropout=_DROPOUT,
    converted=_NARROW,
    to_ours=_narrow_to_ours,
    to_theirs=_electra_to_theirs,
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

DISTILBERT = Twin(
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
    ignored=("qa_dropout",),
    left_out=("pooler",),
    constants=_CONSTANTS,
    classifier_dropout={"AttnBertForSequenceClassification": "seq_classif_dropout"},
    to_theirs=_distilbert_to_theirs,
)

ENCODER_TWINS = {twin.model_type: twin for twin in (BERT, ROBERTA, ALBERT, ELECTRA, DISTILBERT)}
