# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The bidirectional encoder's heads that score tokens, described for transformers' own model tests."""

from spec_attn_bert import config_class, config_kwargs, prepare_inputs  # noqa: F401

from hf_attn.models.modeling_attn_bert import (
    AttnBertForQuestionAnswering,
    AttnBertForReplacedTokenDetection,
    AttnBertForTokenClassification,
    AttnBertModel,
)

name = "attn-bert, tokens"
model_classes = [
    AttnBertModel,
    AttnBertForTokenClassification,
    AttnBertForQuestionAnswering,
    AttnBertForReplacedTokenDetection,
]
tasks = {
    "AttnBertForTokenClassification": "TOKEN_CLASSIFICATION",
    "AttnBertForQuestionAnswering": "QUESTION_ANSWERING",
    "AttnBertForReplacedTokenDetection": "TOKEN_CLASSIFICATION",
}
# tests/test_contract_trainer.py and tests/models/test_modeling_attn_bert.py check the same of these heads
skip = {
    "test_extra_num_items_in_batch": "its labels are ids of the vocabulary, and those of these heads are not",
    "test_extra_padding_invariance": "it expects logits of three dimensions; those of two heads have two",
}
