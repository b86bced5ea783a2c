# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What cannot be is refused by name: the argument, its value and what is allowed; and whoever asked loses nothing.

Bad options of `generate()` are in test_contract_generation.py, those of training and of the scripts in tests/training
and tests/scripts.
"""

import copy
import functools
import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from contract import Case, cases
from huggingface_hub.errors import StrictDataclassError
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

import hf_attn
from hf_attn import data, evaluation, visualization
from hf_attn.models import attention, masks, multihead, positions, scores
from hf_attn.models.recurrent import RecurrentCache
from hf_attn.registry import FAMILIES, family_module

CONFIGS = {family: family_module(family).AUTO_CLASSES["AutoModel"].config_class for family in FAMILIES}
# transformers' configurations raise the library's own exception for a value of the wrong type, with the TypeError in it
WRONG_TYPE = (TypeError, StrictDataclassError)
FIELD_VALUES = [
    ("int", -1, ValueError),
    ("int", "two", WRONG_TYPE),
    ("int", 1.5, WRONG_TYPE),
    ("int", True, WRONG_TYPE),
    ("float", math.nan, ValueError),
    ("float", -0.5, ValueError),
    ("float", "half", WRONG_TYPE),
    ("str", "no-such-choice", ValueError),
    ("str", 7, WRONG_TYPE),
    ("bool", 2, WRONG_TYPE),
    ("bool", None, WRONG_TYPE),
    ("list", [-1], ValueError),
    ("list", [], ValueError),
    ("list", [0.5], WRONG_TYPE),
    ("list", "0", WRONG_TYPE),
]


def own_fields():
    """(family, field) of everything that a configuration of ours declares."""
    return [
        (family, field.name, str(field.type))
        for family, config_class in CONFIGS.items()
        for field in fields(config_class)
        if field.name in config_class.__annotations__
    ]


def kind(annotation):
    """The kind of a field: "int" for `int | None` and `<class 'int'>` alike."""
    return next(name for name in ("list", "float", "int", "str", "bool") if name in annotation)


@pytest.mark.parametrize(("family", "name", "annotation"), own_fields(), ids=lambda value: str(value))
def test_every_field_refuses_wrong_types_and_values_out_of_range(family, name, annotation):
    tried = [entry for entry in FIELD_VALUES if entry[0] == kind(annotation)]
    assert len(tried) >= 2
    for _, value, error in tried:
        with pytest.raises(error) as caught:
            config = CONFIGS[family](**{name: value})
            family_module(family).AUTO_CLASSES["AutoModel"](config)  # activation functions are known to the model only
        shown = str(value).strip("[]") or "[]"  # ids are named one by one
        assert name in str(caught.value) and shown in str(caught.value), caught.value


# what does not fit together: families, options, words of the message
PAIRS = {
    "heads do not divide the width": ({"hidden_size": 18, "decoder_attention_heads": 4}, "hidden_size=18 .*multiple"),
    "an odd head cannot be rotated": (
        {"hidden_size": 6, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "position_type": "rotary"},
        "hidden_size / encoder_attention_heads=3 must be a multiple of .*2",
    ),
    "an odd head of a given width": (
        {"head_dim": 5, "position_type": "rotary"},
        "head_dim=5 must be a multiple of .*2",
    ),
    "an order of sinusoids without any": (
        {"position_type": "learned", "sinusoidal_order": "concatenated"},
        "sinusoidal_order='concatenated' needs position_type='sinusoidal', got position_type='learned'",
    ),
    "buckets without relative positions": (
        {"relative_attention_num_buckets": 16},
        "relative_attention_num_buckets=16 needs position_type='relative', got position_type=",
    ),
    "a farthest distance without relative positions": (
        {"relative_attention_max_distance": 64},
        "relative_attention_max_distance=64 needs position_type='relative'",
    ),
    "too few buckets": (
        {"position_type": "relative", "relative_attention_num_buckets": 3},
        "relative_attention_num_buckets=3 must be at least 4",
    ),
    "more buckets than distances": (
        {"position_type": "relative", "relative_attention_max_distance": 16},
        "relative_attention_max_distance=16 greater than the 16 distances",
    ),
    "a norm that may divide by zero": ({"layer_norm_eps": 0}, "layer_norm_eps=0 must be greater than 0 and finite"),
    "a norm of nothing": ({"layer_norm_eps": math.inf}, "layer_norm_eps=inf must be greater than 0 and finite"),
    "nothing left inside": ({"activation_dropout": 1.0}, "activation_dropout=1.0 must be at least 0 and less than 1"),
    "shared embeddings of two vocabularies": (
        {"share_embeddings": True, "decoder_vocab_size": 9},
        "share_embeddings=True needs a joint vocabulary.*decoder_vocab_size=9",
    ),
    "padding outside the vocabulary": ({"pad_token_id": 43}, "pad_token_id=43 must be at least 0 and less than 43"),
    "start outside the vocabulary": ({"decoder_start_token_id": 99}, "decoder_start_token_id=99 .*less than 43"),
    "beginning outside the vocabulary": ({"bos_token_id": 43}, "bos_token_id=43 .*less than 43"),
    "end outside the vocabulary": ({"eos_token_id": 43}, "eos_token_id=43 must be at least 0 and less than 43"),
    "one of several ends outside": ({"eos_token_id": [2, 43]}, "eos_token_id=43 .*less than 43"),
    "no end among the ends": ({"eos_token_id": []}, r"eos_token_id=\[\] must have at least one id, or be None"),
    "the end is padding": ({"pad_token_id": 2, "eos_token_id": 2}, "pad_token_id=2 must differ from eos_token_id=2"),
    "one of the ends is padding": ({"eos_token_id": [2, 0]}, r"pad_token_id=0 must differ from eos_token_id=\[2, 0\]"),
    "padding outside the smaller vocabulary": (
        {"decoder_vocab_size": 9, "share_embeddings": False, "pad_token_id": 10},
        "pad_token_id=10 .*less than 9",
    ),
    "no layer by its other name": ({"num_hidden_layers": 0}, "layers=0 must be at least 1"),
    "infinite weights": ({"initializer_range": math.inf}, "initializer_range=inf must be greater than 0 and finite"),
    "everything dropped": ({"dropout": 1.0}, "dropout=1.0 must be at least 0 and less than 1"),
    "every weight dropped": ({"attention_dropout": 1}, "attention_dropout=1 must be at least 0 and less than 1"),
    "an alignment of a head twice": ({"alignment_heads": [0, 0]}, r"alignment_heads=\[0, 0\] .*each once"),
    "an alignment of a head that is not there": ({"alignment_heads": [7]}, r"alignment_heads=\[7\] must be heads of 0"),
    "an alignment of a layer that is not there": ({"alignment_layer": 5}, "alignment_layer=5 .*less than"),
    "no encoder-decoder": ({"is_encoder_decoder": False}, "is_encoder_decoder=False is not allowed"),
    "an encoder-decoder": ({"is_encoder_decoder": True}, "is_encoder_decoder=True is not allowed"),
    "heads that do not divide the width of one stack": (
        {"hidden_size": 18, "num_attention_heads": 4},
        "hidden_size=18 must be a multiple of num_attention_heads=4",
    ),
    "an odd head of one stack": (
        {"hidden_size": 6, "num_attention_heads": 2, "position_type": "rotary", "max_position_embeddings": 48},
        "hidden_size / num_attention_heads=3 must be a multiple of .*2",
    ),
    "positions numbered anew without learned ones": (
        {"position_type": "rotary", "position_offset": 2},
        "position_offset=2 needs position_type='learned', got position_type='rotary'",
    ),
    "no position left": (
        {"position_offset": 48},
        "position_offset=48 must be less than max_position_embeddings=48",
    ),
    "less than no segment": ({"type_vocab_size": -1}, "type_vocab_size=-1 must be at least 0"),
    "several heads where there is one": ({"num_attention_heads": 2}, "num_attention_heads=2 .*choose one of 1"),
    "a base of angles without any": (
        {"rope_theta": 500.0, "position_type": "alibi"},
        "rope_theta=500.0 needs position_type='rotary', got position_type='alibi'",
    ),
    "heads that do not share keys evenly": (
        {"num_attention_heads": 4, "num_key_value_heads": 3, "hidden_size": 16},
        "num_attention_heads=4 must be a multiple of num_key_value_heads=3",
    ),
    "an encoder that nothing attends to": (
        {"cross_attention_hidden_size": 8, "add_cross_attention": False},
        "cross_attention_hidden_size=8 needs add_cross_attention=True",
    ),
    "input feeding without Luong": ({"input_feeding": True}, "input_feeding=True needs attention_type='luong'"),
    "a fixed context beside attention": ({"context_feeding": "initial"}, "context_feeding='initial' .*'none'"),
    "a score without attention": ({"attention_type": "none", "score_function": "dot"}, "score_function='dot' needs"),
    "an alignment without attention": (
        {"attention_type": "none", "alignment_layer": 0},
        "alignment_layer=0 .*must be None without attention",
    ),
    "a dot product of unequal widths": (
        {"attention_type": "luong", "score_function": "dot"},
        "score_function='dot' .*hidden_size=16 .*width 32",
    ),
    "a window without a centre": ({"encoder_kernel_size": 4}, "encoder_kernel_size=4 must be odd"),
    "both directions of a one-directional encoder": (
        {"bidirectional": False, "bidirectional_layers": 1},
        "bidirectional_layers=1 needs bidirectional=True .*got bidirectional=False",
    ),
    "more layers in both directions than there are": (
        {"bidirectional_layers": 3},
        "bidirectional_layers=3 .*at least as many layers, .*encoder_layers=2",
    ),
    "a start from layers of different widths": (
        {"attention_type": "luong", "bidirectional_layers": 1},
        "bidirectional_layers=1 makes encoder layers of different widths.*bidirectional_layers=None",
    ),
    "GNMT's output of another width than its embedding": (
        {"attention_type": "gnmt", "tie_word_embeddings": True, "embedding_size": 9},
        "tie_word_embeddings=True needs embedding_size == hidden_size here, got 9 and 16",
    ),
    "both directions backwards": ({"reverse_source": True}, "reverse_source=True needs bidirectional=False"),
    "an output of another width than its embedding": (
        {"attention_type": "luong", "tie_word_embeddings": True, "embedding_size": 9},
        "tie_word_embeddings=True needs embedding_size == hidden_size here, got 9 and 16",
    ),
}  # fmt: skip


def families_of(options):
    """The families to which a rule applies: those that have all its fields, under their own or their other names, and
    for which it says anything but their defaults. How many heads there are in both stacks says no rule; one alone is a
    rule of the families that have no more, and several are of those with one stack."""
    found = []
    for family, config_class in CONFIGS.items():
        defaults = {field.name: field.default for field in fields(config_class)}
        names = set(defaults) | set(config_class.attribute_map)
        several = {"num_attention_heads", "hidden_size"} <= set(options)
        renamed = "num_attention_heads" in config_class.attribute_map or (
            (defaults.get("num_attention_heads") == 1) == several
        )
        if set(options) <= names and not (renamed and "num_attention_heads" in options):
            if any(defaults.get(name) != value for name, value in options.items()):
                found.append(family)
    return found


@pytest.mark.parametrize("rule", PAIRS)
def test_options_that_do_not_fit_together_are_refused(rule):
    options, message = PAIRS[rule]
    families = families_of(options)
    assert families
    for family in families:
        with pytest.raises((ValueError, StrictDataclassError), match=message):
            Case(family, "AutoModel", "default").config(**options)


def changed(tensor, value, *place):
    """A copy with another value at one place."""
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


@torch.no_grad()
def encoded(model, batch, rows=None):
    """What the encoder returns for the batch, cut to its first rows."""
    output = model.get_encoder()(batch["input_ids"], batch["attention_mask"])
    cut = {name: value[:rows] if torch.is_tensor(value) else value for name, value in output.items()}
    return type(output)(**cut)


@torch.no_grad()
def cached(model, batch, rows):
    """The cache of the first rows after one token."""
    first = {name: batch[name][:rows] for name in ("input_ids", "attention_mask")}
    return model(**first, decoder_input_ids=torch.full((rows, 1), 1), use_cache=True).cache


def other_cache(model):
    """A cache of another family."""
    if model.config.model_type == "attn-rnn":
        return EncoderDecoderCache(DynamicCache(), DynamicCache())
    return RecurrentCache()


def decode(batch, **arguments):
    """Decode ids instead of labels: 3 rows of 4."""
    return {"labels": None, "decoder_input_ids": torch.full((len(batch["input_ids"]), 4), 5), **arguments}


# {what: (model, batch) -> arguments that replace those of the batch; None leaves one out}, and words of the message,
# in which {vocab}, {target} and {width} are the sizes of the model
FORWARD = {
    "ids and embeddings": (lambda m, b: {"inputs_embeds": torch.zeros(3, 7, 16)}, ["exactly one of input_ids", "both"]),
    "neither ids nor embeddings": (lambda m, b: {"input_ids": None}, ["exactly one of input_ids", "neither"]),
    "ids as a list": (lambda m, b: {"input_ids": b["input_ids"].tolist()}, ["input_ids must be a tensor", "list"]),
    "ids as numbers": (lambda m, b: {"input_ids": b["input_ids"].float()}, ["input_ids", "int64", "torch.float32"]),
    "ids as truth values": (lambda m, b: {"input_ids": b["input_ids"].bool()}, ["input_ids", "int64", "torch.bool"]),
    "ids as bytes": (lambda m, b: {"input_ids": b["input_ids"].byte()}, ["input_ids", "int64", "torch.uint8"]),
    "an id outside the vocabulary": (
        lambda m, b: {"input_ids": changed(b["input_ids"], m.config.vocab_size, 2, 0)},
        ["input_ids has the id {vocab}", "less than {vocab}"],
    ),
    "an id that is padded and outside": (
        lambda m, b: {"input_ids": changed(b["input_ids"], 10**6, 2, 6)},
        ["input_ids has the id 1000000", "less than {vocab}"],
    ),
    "a negative id": (
        lambda m, b: {"input_ids": changed(b["input_ids"], -1, 0, 0)},
        ["input_ids has the id -1", "at least 0"],
    ),
    "one sentence without its batch": (
        lambda m, b: {"input_ids": b["input_ids"][0], "attention_mask": None},
        ["input_ids must be (batch, length)", "(7,)"],
    ),
    "ids of three axes": (lambda m, b: {"input_ids": b["input_ids"][None]}, ["input_ids", "(1, 3, 7)"]),
    "a source without tokens": (
        lambda m, b: {"input_ids": b["input_ids"][:, :0], "attention_mask": None},
        ["input_ids of shape (3, 0) must have at least one token"],
    ),
    "embeddings of another width": (
        lambda m, b: {"input_ids": None, "inputs_embeds": torch.zeros(3, 7, 99)},
        ["inputs_embeds must be", "{width}", "(3, 7, 99)"],
    ),
    "embeddings of two axes": (
        lambda m, b: {"input_ids": None, "inputs_embeds": torch.zeros(3, 7)},
        ["inputs_embeds must be (batch, length, width)", "(3, 7)"],
    ),
    "embeddings of whole numbers": (
        lambda m, b: {"input_ids": None, "inputs_embeds": torch.zeros(3, 7, embedding_width(m)).long()},
        ["inputs_embeds", "torch.int64"],
    ),
    "a mask that is too short": (
        lambda m, b: {"attention_mask": b["attention_mask"][:, :-1]},
        ["attention_mask must have the shape (3, 7)", "(3, 6)"],
    ),
    "a mask that is too long": (
        lambda m, b: {"attention_mask": torch.ones(3, 9)},
        ["attention_mask must have the shape (3, 7)", "(3, 9)"],
    ),
    "a mask of another batch": (
        lambda m, b: {"attention_mask": b["attention_mask"][:2]},
        ["attention_mask must have the shape (3, 7)", "(2, 7)"],
    ),
    "a mask of one row": (
        lambda m, b: {"attention_mask": b["attention_mask"][:1]},
        ["attention_mask must have the shape (3, 7)", "(1, 7)"],
    ),
    "a mask written out": (
        lambda m, b: {"attention_mask": b["attention_mask"][:, None, None]},
        ["attention_mask must be (batch, length)", "(3, 1, 1, 7)"],
    ),
    "a mask as a list": (
        lambda m, b: {"attention_mask": b["attention_mask"].tolist()},
        ["attention_mask must be a tensor", "list"],
    ),
    "a label outside the vocabulary": (
        lambda m, b: {"labels": changed(b["labels"], 99, 0, 1)},
        ["labels has the id 99", "less than {target}", "-100"],
    ),
    "a last label outside the vocabulary": (
        lambda m, b: {"labels": changed(b["labels"], 99, 1, 5)},
        ["labels has the id 99", "less than {target}", "-100"],
    ),
    "a negative label that is not -100": (
        lambda m, b: {"labels": changed(b["labels"], -1, 2, 5)},
        ["labels has the id -1", "at least 0", "-100"],
    ),
    "labels as numbers": (lambda m, b: {"labels": b["labels"].float()}, ["labels", "int64", "torch.float32"]),
    "labels of 32 bits": (lambda m, b: {"labels": b["labels"].int()}, ["labels", "int64", "torch.int32"]),
    "labels of one sentence": (lambda m, b: {"labels": b["labels"][0]}, ["labels must be (batch, length)", "(6,)"]),
    "labels of another batch": (lambda m, b: {"labels": b["labels"][:2]}, ["(2, source_len", "(3, 7"]),
    "no label at all": (lambda m, b: {"labels": b["labels"][:, :0]}, ["at least one token"]),
    "labels and ids of unequal length": (
        lambda m, b: {"decoder_input_ids": torch.full((3, 4), 5)},
        ["labels have shape (3, 6)", "(3, 4)"],
    ),
    "fewer logits than labels": (lambda m, b: {"logits_to_keep": 5}, ["logits_to_keep=5", "all labels"]),
    "a negative number of logits": (lambda m, b: {"logits_to_keep": -1}, ["logits_to_keep=-1", "at least 0"]),
    "half a logit": (lambda m, b: {"logits_to_keep": 0.5}, ["logits_to_keep must be a whole number", "0.5"]),
    "logits as a truth value": (lambda m, b: {"logits_to_keep": True}, ["logits_to_keep must be a whole", "True"]),
    "nothing to decode": (lambda m, b: {"labels": None}, ["labels", "decoder_input_ids", "decoder_inputs_embeds"]),
    "a target id outside the vocabulary": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((3, 4), 99)),
        ["decoder_input_ids has the id 99", "less than {target}"],
    ),
    "a negative target id": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((3, 4), -100)),
        ["decoder_input_ids has the id -100", "at least 0"],
    ),
    "target ids as numbers": (
        lambda m, b: decode(b, decoder_input_ids=torch.ones(3, 4)),
        ["decoder_input_ids", "int64", "torch.float32"],
    ),
    "target ids of one sentence": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((4,), 5)),
        ["decoder_input_ids must be (batch, length)", "(4,)"],
    ),
    "a target without tokens": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((3, 0), 5)),
        ["decoder_input_ids of shape (3, 0) must have at least one token"],
    ),
    "targets of another batch": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((2, 4), 5)),
        ["encoder_outputs", "(2, source_len", "(3, 7"],
    ),
    "one target for several sources": (
        lambda m, b: decode(b, decoder_input_ids=torch.full((1, 4), 5)),
        ["encoder_outputs", "(1, source_len", "(3, 7"],
    ),
    "target embeddings of another width": (
        lambda m, b: decode(b, decoder_input_ids=None, decoder_inputs_embeds=torch.zeros(3, 4, 99)),
        ["decoder_inputs_embeds must be", "{width}", "(3, 4, 99)"],
    ),
    "target ids and embeddings": (
        lambda m, b: decode(b, decoder_inputs_embeds=torch.zeros(3, 4, embedding_width(m))),
        ["exactly one of decoder_input_ids", "both"],
    ),
    "a target mask that is too short": (
        lambda m, b: decode(b, decoder_attention_mask=torch.ones(3, 3)),
        ["decoder_attention_mask must have the shape (3, 4)", "(3, 3)"],
    ),
    "a target mask that is too long": (
        lambda m, b: decode(b, decoder_attention_mask=torch.ones(3, 5)),
        ["decoder_attention_mask must have the shape (3, 4)", "(3, 5)"],
    ),
    "a target mask of another batch": (
        lambda m, b: decode(b, decoder_attention_mask=torch.ones(2, 4)),
        ["decoder_attention_mask must have the shape (3, 4)", "(2, 4)"],
    ),
    "a target mask written out": (
        lambda m, b: decode(b, decoder_attention_mask=torch.ones(3, 1, 4, 4)),
        ["decoder_attention_mask must be (batch, length)", "(3, 1, 4, 4)"],
    ),
    "a target mask without what is cached": (
        lambda m, b: decode(b, cache=cached(m, b, 3), decoder_attention_mask=torch.ones(3, 4)),
        ["decoder_attention_mask must have the shape (3, 5)", "(3, 4)"],
    ),
    "a source of another batch": (
        lambda m, b: decode(b, input_ids=None, attention_mask=None, encoder_outputs=encoded(m, b, 2)),
        ["encoder_outputs", "(3, source_len", "(2, 7"],
    ),
    "one source for several targets": (
        lambda m, b: decode(b, input_ids=None, attention_mask=None, encoder_outputs=encoded(m, b, 1)),
        ["encoder_outputs", "(3, source_len", "(1, 7"],
    ),
    "a source as a tensor": (
        lambda m, b: decode(b, input_ids=None, encoder_outputs=encoded(m, b).last_hidden_state),
        ["encoder_outputs must be what", "Tensor"],
    ),
    "a source as a dictionary": (
        lambda m, b: decode(b, input_ids=None, encoder_outputs=dict(encoded(m, b))),
        ["encoder_outputs must be what", "dict"],
    ),
    "a source without states": (
        lambda m, b: decode(b, input_ids=None, encoder_outputs=m.encoder_output_class()),
        ["encoder_outputs"],
    ),
    "a mask that does not fit the states": (
        lambda m, b: decode(b, input_ids=None, attention_mask=torch.ones(3, 5), encoder_outputs=encoded(m, b)),
        ["attention_mask must have the shape (3, 7)", "(3, 5)"],
    ),
    "a cache of another batch": (
        lambda m, b: decode(b, cache=cached(m, b, 2)),
        ["cache holds 2 rows", "each of the 3 rows"],
    ),
    "a cache of one row": (lambda m, b: decode(b, cache=cached(m, b, 1)), ["cache holds 1 rows", "each of the 3 rows"]),
    "a cache of another family": (lambda m, b: decode(b, cache=other_cache(m)), ["cache must", "Cache"]),
    "a cache as a tuple": (lambda m, b: decode(b, cache=((torch.zeros(1),),)), ["cache must", "tuple"]),
    "a cache as a word": (lambda m, b: decode(b, cache="dynamic"), ["cache must", "str"]),
    "a misspelt argument": (
        lambda m, b: {"atention_mask": b["attention_mask"]},
        ["no argument 'atention_mask'", "'attention_mask'"],
    ),
}  # fmt: skip


# what is wrong with the text that is read, whoever reads it
READING = list(FORWARD)[: list(FORWARD).index("a label outside the vocabulary")] + ["a misspelt argument"]


def embedding_width(model):
    return getattr(model.config, "embedding_width", model.config.hidden_size)


@functools.cache
def model_of(case):
    return case.model()


@functools.cache
def weights_of(case):
    """The weights as they were when the model was made."""
    return copy.deepcopy(case.model().state_dict())


def first_and_last_variant():
    """Two variants of each family of encoder-decoders; the last of the Transformer has separate vocabularies."""
    found = {}
    for parameter in cases(heads=True, seq2seq=True):
        found.setdefault(parameter.values[0].family, []).append(parameter)
    return [parameter for family in found.values() for parameter in (family[0], family[-1])]


def is_same(first, second):
    """Whether two arguments hold the same values."""
    if torch.is_tensor(first):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(is_same(first[name], second[name]) for name in first)
    if isinstance(first, (RecurrentCache, EncoderDecoderCache)):
        return first.get_seq_length() == second.get_seq_length()
    return True


@pytest.mark.parametrize("case", cases(heads=True, seq2seq=False, text=True))
@pytest.mark.parametrize("rule", READING)
@torch.no_grad()
def test_a_model_of_one_stack_refuses_what_it_cannot_read(case, rule):
    model, batch = model_of(case), case.batch()
    change, words = FORWARD[rule]
    arguments = {name: value for name, value in (batch | change(model, batch)).items() if value is not None}
    with pytest.raises((ValueError, TypeError)) as caught:
        model(**arguments)
    for word in words:
        assert word.format(vocab=model.config.vocab_size, width=embedding_width(model)) in str(caught.value)


@pytest.mark.parametrize("case", first_and_last_variant())
@pytest.mark.parametrize("rule", FORWARD)
@torch.no_grad()
def test_a_model_refuses_what_it_cannot_read_and_loses_nothing(case, rule):
    model, batch = model_of(case), case.batch()
    change, words = FORWARD[rule]
    arguments = {name: value for name, value in (batch | change(model, batch)).items() if value is not None}
    before = copy.deepcopy(arguments)
    with pytest.raises((ValueError, TypeError)) as caught:
        model(**arguments)
    sizes = {
        "vocab": model.config.vocab_size,
        "target": model.config.target_vocab_size,
        "width": embedding_width(model),
    }
    for word in words:
        assert word.format(**sizes) in str(caught.value), caught.value
    assert is_same(arguments, before) and is_same(dict(model.state_dict()), dict(weights_of(case)))


@pytest.mark.parametrize("case", cases(heads=True, text=True))
def test_ids_at_the_ends_of_the_vocabulary_and_labels_of_minus_100_are_taken(case):
    model, batch = model_of(case), case.batch()
    batch["input_ids"][0, :2] = torch.tensor([0, model.config.vocab_size - 1])
    size = getattr(model.config, "target_vocab_size", model.config.vocab_size) if case.has_vocabulary else 2
    for name in case.label_names:
        labels = batch[name].flatten()  # of the first text, or of the first three
        labels[:3] = torch.tensor([0, 0 if "position" in name else size - 1, -100])
        batch[name] = labels.view(batch[name].shape)
    assert torch.isfinite(model(**batch).loss)
    assert torch.isfinite(model(**batch | {"input_ids": batch["input_ids"].int()}).loss)


@pytest.mark.parametrize("case", cases(generates=True, variants=False, seq2seq=True))
@torch.no_grad()
def test_a_cache_that_is_empty_or_of_this_batch_is_taken(case):
    model, batch = model_of(case), case.batch(labels=False)
    step = batch | {"decoder_input_ids": batch["decoder_input_ids"][:, :1]}
    expected = model(**step).logits
    empty = model(**step, use_cache=True).cache
    empty.reset()
    caches = [empty]
    if model._supports_default_dynamic_cache():
        layer, set_up = DynamicLayer(), DynamicCache()
        layer.lazy_initialization(torch.zeros(3, 4, 1, 4), torch.zeros(3, 4, 1, 4))  # takes the kind and no keys
        set_up.layers.append(layer)
        caches += [DynamicCache(), EncoderDecoderCache(DynamicCache(), DynamicCache()), set_up]
    for cache in caches:
        torch.testing.assert_close(model(**step, cache=cache, use_cache=True).logits, expected)
        assert cache.get_seq_length() == 1
        assert model(**step, cache=cache, use_cache=True).logits.shape == expected.shape


@pytest.mark.parametrize("case", cases(heads=True, variants=False, text=True))
def test_ids_are_not_looked_at_in_compiled_code_and_shapes_are(case, monkeypatch):
    """Compiled code cannot branch on values; to look at those on a GPU would be to wait for it."""
    from hf_attn.models.inputs import check_ids

    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    check_ids("input_ids", torch.tensor([[99]]), model_of(case).config.vocab_size)
    check_ids("input_ids", torch.empty(2, 3, dtype=torch.long, device="meta"), model_of(case).config.vocab_size)
    with pytest.raises(ValueError, match="input_ids must be"):
        check_ids("input_ids", torch.tensor([9]), model_of(case).config.vocab_size)


@functools.cache
def tokenizer():
    return data.train_tokenizer(["the old cat sees a dog", "il vecchio gatto vede un cane"] * 3, 300)


@functools.cache
def translator():
    """An untrained model, put into training mode by its owner."""
    case = Case("rnn", "AutoModelForSeq2SeqLM", "bahdanau")
    return hf_attn.Translator(case.model(vocab_size=len(tokenizer())), tokenizer())


@functools.cache
def translation():
    return translator()("the cat", max_new_tokens=4)


@functools.cache
def pairs():
    return data.copy_task(3)


def of_tokenizer(**options):
    return data.train_tokenizer(**{"texts": ["a b c"], "vocab_size": 300, **options})


def of_pairs(**options):
    given = {"dataset": pairs(), "tokenizer": tokenizer(), "source_lang": "source", "target_lang": "target", **options}
    return data.tokenize_pairs(**given)


def of_translator(model=None, tokenizer_given=tokenizer, **options):
    return hf_attn.Translator(
        translator().model if model is None else model,
        tokenizer_given() if callable(tokenizer_given) and not hasattr(tokenizer_given, "decode") else tokenizer_given,
        **options,
    )


def foreign_translator():
    """A model with the tokenizer of another, larger one."""
    words = " ".join(f"w{number}" for number in range(400))
    return of_translator(tokenizer_given=data.train_tokenizer([words], 404, kind="word"))


WEIGHTS = torch.full((2, 3), 1 / 3)
STATISTICS = np.ones((2, 10))

# calls, the exception, and words of its message in their order
CALLS = [
    # the equation and its parts
    (lambda: hf_attn.attend(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 4, 5)), ValueError, "scores .*3 keys.*value.*4"),
    (
        lambda: hf_attn.attend(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 3, 5), torch.ones(2, 2).bool()),
        ValueError,
        r"mask .*3 keys.*\(2, 2\)",
    ),
    (
        lambda: hf_attn.attend(torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 3, 5), torch.ones(2, 3)),
        ValueError,
        "mask must be boolean.*torch.float32",
    ),
    (
        lambda: attention.run_attention(
            *[torch.zeros(1, 1, 2, 2)] * 3, scores.Dot(2, 2), masks.AttentionMask(), implementation="magic"
        ),
        ValueError,
        "attn_implementation='magic' .*eager, sdpa",
    ),
    (lambda: scores.make_score("cosine", 2, 2, 2), ValueError, "score_function='cosine' .*dot, scaled_dot, general"),
    (lambda: scores.Dot(2, 3), ValueError, "query_dim=2 and key_dim=3"),
    (lambda: positions.rotary_angles(torch.tensor([[0]]), 3), ValueError, "head_dim=3 must be even"),
    (lambda: positions.AlibiBias(0), ValueError, "num_heads=0 must be at least 1"),
    (lambda: positions.RelativeBias(2, True, 3), ValueError, "num_buckets=3 must be at least 4"),
    (lambda: positions.RelativeBias(2, False, 32, 16), ValueError, "max_distance=16 greater than the 16"),
    (lambda: multihead.MultiHeadAttention(8, 3), ValueError, "hidden_size=8 must be a multiple of num_heads=3"),
    (lambda: masks.AttentionMask([[True]]), TypeError, "padding must be a tensor .*list"),
    (lambda: masks.AttentionMask(torch.ones(1, 2)), ValueError, "padding must be boolean.*torch.float32"),
    (lambda: masks.AttentionMask(causal=True, window=0), ValueError, "window=0 .*at least 1"),
    (lambda: masks.AttentionMask(causal=True, window=1.5), ValueError, "window=1.5 .*whole number"),
    (lambda: masks.AttentionMask(window=2), ValueError, "window=2 with causal=False.*needs causal=True"),
    (lambda: masks.AttentionMask(causal=True, query_offset=-1), ValueError, "query_offset=-1 must be at least 0"),
    (lambda: masks.AttentionMask(torch.ones(1, 3).bool()).dense(2, 2), ValueError, "3 keys, but there are 2"),
    (lambda: family_module("gru"), ValueError, "family='gru' .*rnn, .*transformer"),
    # tokenizers and words
    (lambda: of_tokenizer(kind="unigram"), ValueError, "kind must be 'bpe' or 'word', got 'unigram'"),
    (lambda: of_tokenizer(vocab_size=5), ValueError, "vocab_size .*at least 261.*got 5"),
    (lambda: of_tokenizer(vocab_size="300"), ValueError, "vocab_size .*whole number.*got '300'"),
    (lambda: of_tokenizer(vocab_size=300.5), ValueError, "vocab_size .*whole number.*got 300.5"),
    (lambda: of_tokenizer(texts=[]), ValueError, "texts must hold at least one word, got none"),
    (lambda: of_tokenizer(texts="a b"), ValueError, "texts must be an iterable of strings, got one string"),
    (lambda: of_tokenizer(texts=7), ValueError, "texts must be an iterable of strings, got int"),
    (lambda: of_tokenizer(texts={"a": "b"}), ValueError, "texts must be an iterable of strings, got dict"),
    (lambda: of_tokenizer(texts=["a", None]), ValueError, "texts must hold strings, got NoneType as text 1"),
    (lambda: of_tokenizer(texts=["\ud800"]), ValueError, "texts must be valid Unicode, got a lone surrogate in text 0"),
    (lambda: data.readable_tokens(tokenizer(), [5, 9999]), ValueError, "ids holds 9999; .*ids from 0 to"),
    (lambda: data.readable_tokens(tokenizer(), [-1]), ValueError, "ids holds -1; .*ids from 0 to"),
    (lambda: data.piece_spans(tokenizer(), "a", [9999]), ValueError, "ids holds 9999; .*ids from 0 to"),
    (lambda: data.split_words(None), TypeError, "text must be a string, got NoneType"),
    (lambda: data.text_words(["a"]), TypeError, "text must be a string, got list"),
    # sentence pairs
    (lambda: data.load_pairs(3, "en", "fr"), TypeError, "source must be a path, .*got 3"),
    (lambda: data.load_pairs("", "en", "fr"), TypeError, "source must be a path, .*got ''"),
    (lambda: data.load_pairs("no-such-file.tsv", "en", "fr"), FileNotFoundError, "no file or folder no-such-file.tsv"),
    (lambda: data.load_pairs(("a",), "en", "fr"), ValueError, "source must be one path or .*got 1 items"),
    (lambda: data.load_pairs("a.tsv", "en", "en"), ValueError, "two different names, got 'en' and 'en'"),
    (lambda: data.load_pairs("a.tsv", 3, "en"), ValueError, "source_lang and target_lang .*got 3 and 'en'"),
    (lambda: of_pairs(source_lang="de"), ValueError, r"source_lang must be one of \['source', 'target'\], got 'de'"),
    (lambda: of_pairs(max_source_length=1), ValueError, "max_source_length .*at least 2.*got 1"),
    (lambda: of_pairs(max_target_length="9"), ValueError, "max_target_length .*whole number.*got '9'"),
    (lambda: of_pairs(dataset=[{"translation": {}}]), TypeError, "dataset must be a datasets.Dataset, .*got list"),
    (lambda: of_pairs(dataset=pairs().select([])), ValueError, "dataset must have rows .*got 0"),
    (lambda: of_pairs(tokenizer=None), TypeError, "tokenizer must be a tokenizer of transformers, got NoneType"),
    (lambda: data.phrasebook("en-de"), ValueError, "pair='en-de' .*en-it, en-fr, en-ko"),
    (lambda: data.phrasebook(split="dev"), ValueError, "split='dev' .*train, validation, test"),
    (lambda: data.phrasebook(size=-1), ValueError, "size=-1 must be a whole number, not negative"),
    (lambda: data.phrasebook(size=2.5), ValueError, "size=2.5 must be a whole number"),
    (lambda: data.phrasebook(words=5), ValueError, r"words=5 must be \(fewest, most\)"),
    (lambda: data.phrasebook(words=(9, 4)), ValueError, r"words=\(9, 4\) must be \(fewest, most\) with 3"),
    (lambda: data.copy_task(-1), ValueError, "size must be a whole number of at least 0, got -1"),
    (lambda: data.reverse_task("3"), ValueError, "size must be a whole number .*got '3'"),
    (lambda: data.copy_task(1, min_length=0), ValueError, r"min_length .*between 1 and max_length \(10\), got 0"),
    (lambda: data.copy_task(1, max_length=0), ValueError, "max_length .*at least 1, got 0"),
    (lambda: data.copy_task(1, symbols=["a b"]), ValueError, r"symbols must be distinct words .*got \['a b'\]"),
    (lambda: data.copy_task(1, symbols=[7]), ValueError, r"symbols must be distinct words .*got \[7\]"),
    # opening a translator
    (lambda: hf_attn.Translator(3), ValueError, "model is int; it must be a folder, a Hub id"),
    (lambda: hf_attn.Translator([]), ValueError, "model is an empty list; an ensemble needs at least one"),
    (lambda: hf_attn.Translator("/no/such/folder"), ValueError, "model is '/no/such/folder'; there is no such folder"),
    (lambda: of_translator(tokenizer_given=None), ValueError, "tokenizer is None; a loaded model needs its tokenizer"),
    (lambda: of_translator(tokenizer_given="x"), ValueError, "tokenizer is 'x'; it must be a tokenizer"),
    (lambda: of_translator(tokenizer_given=("x", "y")), ValueError, r"tokenizer is \('x', 'y'\); .*\(source, target\)"),
    (lambda: of_translator(model=translator().model.model), ValueError, "model is AttnRnnModel, .*no generating head"),
    (lambda: of_translator(device="gpu"), ValueError, "device is 'gpu'; .*'cpu' or 'cuda'"),
    (lambda: of_translator(dtype="half2"), ValueError, "dtype is 'half2'; .*'float32' or 'bfloat16'"),
    (lambda: of_translator(dtype=torch.int64), ValueError, "dtype is torch.int64; .*'float32' or 'bfloat16'"),
    (lambda: foreign_translator()("w399"), ValueError, "tokenizer gives a piece the id [0-9]+, but .*less than"),
    (lambda: hf_attn.translate((1, 2, 3), "a"), ValueError, r"model is a tuple of 3; it must be \(model, tokenizer\)"),
    # translating
    (lambda: translator()(7), TypeError, "texts is int; it must be a string or several strings"),
    (lambda: translator()(None), TypeError, "texts is NoneType; it must be"),
    (lambda: translator()(b"a"), TypeError, "texts is bytes; it must be"),
    (lambda: translator()([5, 6]), TypeError, r"texts\[0\] is int; every entry must be a string"),
    (lambda: translator()([["a"]]), TypeError, r"texts\[0\] is list; .*not token ids"),
    (lambda: translator()("\ud800"), ValueError, r"texts\[0\] is not valid Unicode"),
    (lambda: translator()("a", num_beams=0), ValueError, "num_beams is 0; .*at least 1"),
    (lambda: translator()("a", num_beams=2.0), ValueError, "num_beams is 2.0; .*whole number"),
    (lambda: translator()("a", num_return_sequences=2), ValueError, "num_return_sequences is 2 with num_beams=1"),
    (lambda: translator()("a", max_new_tokens=0), ValueError, "max_new_tokens is 0; .*at least 1"),
    (lambda: translator()("a", batch_size="8"), ValueError, "batch_size is '8'; .*whole number"),
    (lambda: translator()("a", length_penalty="1"), ValueError, "length_penalty is '1'; .*finite number"),
    (lambda: translator()("a", length_penalty=math.inf), ValueError, "length_penalty is inf; .*finite number"),
    (lambda: translator()("a", coverage_penalty=0.2), ValueError, "coverage_penalty is 0.2 with num_beams=1"),
    (lambda: translator()("a", num_beams=2, coverage_penalty=-1), ValueError, "coverage_penalty is -1; .*at least 0"),
    (lambda: translator()("a", seed=3), ValueError, "seed is 3 with do_sample=False"),
    (lambda: translator()("a", num_beams=2, do_sample=True), ValueError, "num_beams is 2 with do_sample=True"),
    (lambda: translator()("a", prefix=3), TypeError, "prefix is int; it must be a string"),
    (lambda: translator()(["a", "b"], prefix=["x"]), ValueError, "prefix has 1 entries for 2 texts"),
    (lambda: translator()("a", prefix="a\nb"), ValueError, "prefix has several lines"),
    (lambda: translator()("a", beams=3), TypeError, "unexpected keyword argument 'beams'"),
    (lambda: translator().score("a", ["b"]), TypeError, "sources and targets must both be a string"),
    (lambda: translator().score(["a"], ["b", "c"]), ValueError, "1 sources and 2 targets; give one for one"),
    (lambda: translator().score("a", "b", length_penalty=math.nan), ValueError, "length_penalty is nan; .*finite"),
    (lambda: translator().score("a", "b", batch_size=0), ValueError, "batch_size is 0; .*at least 1"),
    # alignments and pictures
    (lambda: translation().alignment(layer=5), ValueError, "layer is 5; .*from 0 to 0"),
    (lambda: translation().alignment(heads=[]), ValueError, "heads is an empty list; give at least one head"),
    (lambda: translation().alignment(heads="all"), ValueError, "heads is 'all'; .*from 0 to 0"),
    (lambda: translation().alignment(method="best"), ValueError, "method is 'best'; .*weights, value_norm"),
    (lambda: translator()("a\nb").alignment(), ValueError, "2 lines: ask each of `.segments`"),
    (lambda: translator()("a", return_attention=False).alignment(), ValueError, "no cross-attention: .*return_att"),
    (lambda: visualization.alignment_heatmap([translation()]), TypeError, "translation is list; .*one Translation"),
    (lambda: visualization.alignment_heatmap(translator()("")), ValueError, "an empty translation has no cross-att"),
    (lambda: visualization.alignment_html(None), TypeError, "translation is NoneType; .*one Translation"),
    (lambda: visualization.alignment_html(translation(), layer=9), ValueError, "layer is 9; .*from 0 to 0"),
    (lambda: visualization.attention_grid("a"), TypeError, "translation is str; .*one Translation"),
    (lambda: visualization.attention_grid(translation(), "self"), ValueError, "kind is 'self'; .*'cross', 'encoder'"),
    (lambda: visualization.attention_grid(translation(), "encoder"), ValueError, "no encoder self-attention"),
    (lambda: visualization.to_bertviz({}), TypeError, "translation is dict; .*one Translation"),
    (lambda: visualization.attentions_from_generate(None), ValueError, "output is a NoneType; .*generate"),
    (lambda: visualization.attention_steps(translator(), translation(), 99), ValueError, "position is 99; .*from 0 to"),
    (lambda: visualization.attention_steps(translator(), translation(), 0, head=1), ValueError, "head is 1; .*0 to 0"),
    (lambda: visualization.learning_curves({}), ValueError, "curves is {}; .*at least one model"),
    (lambda: visualization.quality_by_length(None), ValueError, "ranges is None; .*by model name"),
    (lambda: visualization.training_seconds({}), ValueError, "seconds is {}; .*at least one model"),
    (lambda: visualization.head_error_rates({}), ValueError, "rates is {}; .*at least one model"),
    (lambda: visualization.failure_sheet(["a"], [], []), ValueError, "sources 1, texts 0, failures 0"),
    (lambda: visualization.failure_sheet("a", "b", [[]]), TypeError, "sources is the single text 'a'; .*list"),
    # measuring
    (lambda: evaluation.bleu_scores("a", ["a"]), ValueError, "hypotheses is the single text 'a'; .*list"),
    (lambda: evaluation.bleu_scores(None, ["a"]), ValueError, "hypotheses is None; allowed is a list"),
    (lambda: evaluation.bleu_scores([], []), ValueError, "hypotheses is empty"),
    (lambda: evaluation.bleu_scores(["a"], ["a", "b"]), ValueError, "hypotheses has 1 entries and references 2"),
    (lambda: evaluation.bleu_scores([3], ["a"]), ValueError, r"hypotheses\[0\] is 3; allowed is text"),
    (lambda: evaluation.bleu_scores(["a"], [3]), ValueError, r"references\[0\] is \[3\]; allowed is text"),
    (lambda: evaluation.bleu_scores(["a"], ["a"], tokenize="x"), ValueError, "tokenize is 'x'; allowed are .*13a"),
    (lambda: evaluation.bleu_scores(["a"], ["a"], smooth_method="x"), ValueError, "smooth_method is 'x'; .*exp"),
    (lambda: evaluation.bleu_scores(["a"], ["a"], max_order="4"), ValueError, "max_order is '4'; .*1 and more"),
    (lambda: evaluation.bleu_scores(["a"], ["a"], lang=7), ValueError, "lang is 7; .*language code"),
    (lambda: evaluation.chrf_scores(["a"], ["a"], word_order=-1), ValueError, "word_order is -1; .*0 and more"),
    (lambda: evaluation.load_metric("rouge"), ValueError, "name is 'rouge'; .*bleu, chrf, gleu"),
    (lambda: evaluation.metric_path("wer"), ValueError, "name is 'wer'; .*bleu, chrf, gleu"),
    (lambda: evaluation.alignment_error_rate([(1, 2, 3)], []), ValueError, r"link is \(1, 2, 3\); allowed is a pair"),
    (lambda: evaluation.alignment_error_rate([(0.5, 0)], []), ValueError, r"link is \(0.5, 0\); .*numbers from 0 on"),
    (lambda: evaluation.alignment_error_rate([(-1, 0)], []), ValueError, r"link is \(-1, 0\); .*numbers from 0 on"),
    (lambda: evaluation.alignment_error_rate(["ab"], []), ValueError, "link is 'ab'; allowed is a pair"),
    (lambda: evaluation.alignment_scores([[]], [[], []], [[]]), ValueError, "hypotheses has 1 sentences, sure 2"),
    (lambda: evaluation.links_from_weights([0.5, 0.5]), ValueError, r"weights has shape \(2,\); allowed is"),
    (lambda: evaluation.links_from_weights("a"), ValueError, "weights is str; allowed is a matrix"),
    (lambda: evaluation.links_from_weights(WEIGHTS * math.nan), ValueError, "weights holds nan"),
    (lambda: evaluation.diagonal_links(-1, 2), ValueError, "source_len is -1 .*0 and more"),
    (lambda: evaluation.diagonal_links(2.5, 2), ValueError, "source_len is 2.5 .*whole numbers"),
    (lambda: evaluation.train_ibm_model_1([]), ValueError, "pairs holds no sentence pair"),
    (lambda: evaluation.train_ibm_model_1([("ab", "cd")]), ValueError, r"pairs holds \('ab', 'cd'\); .*two lists"),
    (lambda: evaluation.train_ibm_model_1([(["a"], ["b"])], 0), ValueError, "iterations is 0; .*1 and more"),
    (
        lambda: evaluation.sequence_log_probs(torch.zeros(1, 2, 3), torch.tensor([[9, 0]])),
        ValueError,
        "labels has the id 9; .*less than 3",
    ),
    (
        lambda: evaluation.sequence_log_probs(torch.zeros(1, 2, 3), torch.zeros(1, 3).long()),
        ValueError,
        r"logits has shape \(1, 2, 3\) and labels \(1, 3\)",
    ),
    (lambda: evaluation.corpus_perplexity([1.0], [1]), ValueError, r"log_probs\[0\] is 1.0; .*not above 0"),
    (lambda: evaluation.corpus_perplexity(["a"], [1]), ValueError, r"log_probs\[0\] is 'a'; .*a number"),
    (lambda: evaluation.corpus_perplexity([-1.0], [1.5]), ValueError, r"token_counts\[0\] is 1.5; .*whole numbers"),
    (lambda: evaluation.corpus_perplexity([], []), ValueError, "at least one token"),
    (lambda: evaluation.bootstrap_bleu(STATISTICS[:, :3]), ValueError, r"statistics has shape \(2, 3\)"),
    (lambda: evaluation.bootstrap_bleu(STATISTICS, samples=0), ValueError, "samples is 0; both must be 1 or more"),
    (lambda: evaluation.bootstrap_bleu(STATISTICS, samples=2, seed=-1), ValueError, "seed is -1; .*0 and more"),
    (lambda: evaluation.paired_bootstrap(STATISTICS, STATISTICS[:1]), ValueError, r"shape \(2, 10\) .*\(1, 10\)"),
    (lambda: evaluation.bleu_by_length(STATISTICS, [1, 2], [3, 1]), ValueError, r"starts is \[3, 1\]; .*ascending"),
    (lambda: evaluation.learning_curve([]), ValueError, "log_history has 0 entries"),
    (lambda: evaluation.find_failures(None, "a"), TypeError, "source must be a string, got NoneType"),
    (lambda: evaluation.find_failures("a", "b", source_lang=7), TypeError, "source_lang must be a string, got int"),
    (lambda: evaluation.anchor_accuracy([], []), ValueError, "pairs holds no anchored token"),
    (lambda: evaluation.format_table([]), ValueError, "rows is empty"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: CALLS[number][2][:40])
def test_a_function_refuses_what_it_cannot_use(number):
    call, error, message = CALLS[number]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call()
    assert caught.type is error, "an error of its own kind, not of something below"


def test_there_are_at_least_250_distinct_rules():
    rules = {(error, message) for _, error, message in CALLS}
    assert len(rules) + len(FORWARD) + len(PAIRS) + len(FIELD_VALUES) >= 250


# whoever asked loses nothing


@pytest.mark.parametrize(
    "options",
    [{"device": "gpu"}, {"dtype": "half2"}, {"tokenizer": "x", "dtype": "bfloat16"}, {"tokenizer": None}],
    ids=str,
)
def test_a_model_that_cannot_be_opened_stays_as_it_was(options):
    model = Case("transformer", "AutoModelForSeq2SeqLM", "vaswani").model(vocab_size=len(tokenizer())).train()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError):
        hf_attn.Translator(model, **{"tokenizer": tokenizer(), **options})
    assert model.training and is_same(model.state_dict(), before)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_call_that_is_refused_changes_neither_model_nor_tokenizer_nor_lists():
    model, own = translator().model, tokenizer()
    settings = model.generation_config.to_dict(), own.padding_side, own.truncation_side, own.backend_tokenizer.to_str()
    texts, prefixes = ["the cat", 7], ["x"]
    for call in (
        lambda: translator()(texts),
        lambda: translator()(texts[:1] * 2, prefix=prefixes),
        lambda: translator()(texts[:1], num_beams=0),
        lambda: translator().score(texts[:1], []),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert (texts, prefixes) == (["the cat", 7], ["x"])
    assert settings == (
        model.generation_config.to_dict(), own.padding_side, own.truncation_side, own.backend_tokenizer.to_str()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"one\ttwo\tthree\n", "a.tsv, line 1: must have 2 columns, got 3"),
        ("a.tsv", b"ok\tok\n\xff\tbad\n", "a.tsv, line 2: not valid UTF-8"),
        ("a.tsv", b"", "source must hold sentence pairs, got none from .*a.tsv"),
        ("a.jsonl", b'{"en": "x"}\n', "a.jsonl, line 1: 'fr' must be a string, got None"),
        ("a.jsonl", b"[1]\n", "a.jsonl, line 1: must be an object with the keys 'en' and 'fr'"),
        ("a.jsonl", b"{\n", "a.jsonl, line 1: must be one JSON object a line"),
        ("a.csv", b"x,y\n", "source must be a .tsv, .jsonl, .json file .*a.csv"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line_and_stays(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        data.load_pairs(path, "en", "fr")
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


# empty in, empty out


def test_of_no_texts_comes_nothing():
    assert translator()([]) == [] and translator()([], num_beams=2, num_return_sequences=2) == []
    assert translator().score([], []) == []
    assert hf_attn.translate(translator(), []) == []
    assert hf_attn.translate(translator(), "") == "" and hf_attn.translate(translator(), ["", " "]) == ["", ""]
    assert data.split_words("") == [] and data.text_words(" \n") == []
    assert data.readable_tokens(tokenizer(), []) == [] and data.piece_spans(tokenizer(), "a", []) == []
    assert len(data.copy_task(0)) == len(data.phrasebook(size=0)) == 0
    assert evaluation.find_failures("", "") == []
    assert set(evaluation.count_failures([]).values()) == {0}
    assert evaluation.diagonal_links(0, 3) == set() == evaluation.links_from_weights(torch.zeros(0, 3))
    assert "0 of 0 translations" in visualization.failure_sheet([], [], [])._repr_html_()


# text is text


@pytest.mark.parametrize("text", ["</s>", "<pad><s>", "<img src=x onerror=alert(1)>", "/etc/hosts", "{0} %s $x$ \\n"])
def test_text_of_a_user_is_no_special_token_no_markup_and_no_path(text):
    one = translator()(text, max_new_tokens=3)
    scored = translator().score("the cat", text)
    assert one.source == text and scored.text == text
    own = tokenizer()
    for ids in (one.source_ids, scored.target_ids):
        assert ids[-1] == own.eos_token_id
        assert not set(ids[:-1]) & {own.pad_token_id, own.bos_token_id, own.eos_token_id}
        assert own.decode(ids[:-1]) == text
    words = one.words().source_words
    assert "".join(words[:-1]) == "".join(text.split())
    page = visualization.alignment_html(scored)._repr_html_()
    assert "<img src" not in page and "onerror=alert(1)>" not in page
    trained = data.train_tokenizer([text], 300)
    assert trained.decode(trained(text)["input_ids"], skip_special_tokens=True) == text
