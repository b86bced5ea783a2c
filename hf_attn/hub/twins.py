# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' models equals what in ours: the form of the tables, of which there is one for each
architecture.

A table is read in both directions. It names the fields of the two configurations that mean the same, the options of
ours that the architecture has no choice about, and the modules that hold the same tensors.

Read next: `decoder_twins.py`, `encoder_twins.py` and `seq2seq_twins.py`, the tables; `conversion.py`, which walks along
them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Options = dict[str, Any]
Translated = tuple[Options, list[str]]  # options, and what has no counterpart


@dataclass(frozen=True)
class Twin:
    """One architecture of transformers beside one of our families.

    Args:
        model_type: Its name in config.json.
        prefix: What their classes with a head call the stack; "" where its modules stand beside the head.
        fields: Fields of the configurations, ours to theirs; two of ours may share one of theirs.
        modules: Modules of the stack, or single tensors, ours to theirs, without the prefixes. N stands for the number
            of a layer. Where several of ours have the same one of theirs, it holds them side by side in this order.
        heads: For each of our classes, theirs, and the modules, or single tensors, of its head.
        fixed: Our options that have one value in this architecture.
        ties: What (share_embeddings, tie_word_embeddings) of an encoder-decoder are in their configuration; a pair that
            is absent, the architecture does not have.
        required: Their fields of which one value alone has a counterpart.
        ignored: Their fields that change nothing here: they belong to other heads, to new weights, or to `generate()`.
        copies: Their tensors that are others of theirs.
        unread: Their tensors that are all zero, or never read.
        computed: Their tables of positions, which ours computes.
        left_out: Parts of the names of what a checkpoint may bring along for other tasks; those of `constants` are
            nothing but numbers that follow from the configuration.
        constants: See `left_out`.
        relatives: Their classes that have more heads than one of ours, which one.
        first_row: For a module of ours, the row of their table in which ours begins.
        transposed: Last parts of the names of their modules whose matrices are transposed.
        spellings: Parts of their names that some models of the architecture spell otherwise, and how.
        classifier_dropout: For one of our classes, their field for what ours drops out with `dropout`.
        converted: Our options that are no plain renaming, to the field of theirs that says most about them.
        to_ours: Makes those from their configuration.
        to_theirs: Makes theirs from ours.
    """

    model_type: str
    prefix: str
    fields: dict[str, str]
    modules: dict[str, str]
    heads: dict[str, tuple[str, dict[str, str]]]
    fixed: Options = field(default_factory=dict)
    ties: dict[tuple[bool, bool], Options] = field(default_factory=dict)
    required: Options = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    copies: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    relatives: dict[str, str] = field(default_factory=dict)
    first_row: dict[str, int] = field(default_factory=dict)
    transposed: tuple[str, ...] = ()
    spellings: dict[str, str] = field(default_factory=dict)
    classifier_dropout: dict[str, str] = field(default_factory=dict)
    converted: dict[str, str] = field(default_factory=dict)
    to_ours: Callable[[Any], Translated] = lambda config: ({}, [])
    to_theirs: Callable[[Options], Translated] = lambda values: ({}, [])


def rename(ours: str, theirs: str, parts: dict[str, str]) -> dict[str, str]:
    """Put a module of ours and one of theirs before the names of their parts."""
    return {f"{ours}.{our_part}": f"{theirs}.{their_part}" for our_part, their_part in parts.items()}


def norm_eps(values: Options) -> float:
    """Give the number that our option `layer_norm_eps` stands for."""
    return values["layer_norm_eps"] or NORM_EPS[values["norm_type"]]


NORM_EPS = {"layer": 1e-5, "rms": 1e-6}  # of our norms, where `layer_norm_eps` is None
