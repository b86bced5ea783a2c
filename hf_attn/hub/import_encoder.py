# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Make transformers' BERT, RoBERTa, ALBERT, ELECTRA and DistilBERT ours: the same numbers under other names.

`encoder_twins.py` says what equals what; here the tables are walked along. Nothing is converted that is not exact: a
setting or a tensor without a counterpart is an error. The two then give the same states, logits, attention weights and
losses at real tokens, up to rounding, with these differences: ours infer padding from the ids where no mask is given;
ours count positions from the first real token of a row; for an answer in a text, ours choose among real tokens.
"""

import re
import warnings
from collections.abc import Iterable
from typing import Any

from transformers import PreTrainedModel

from ..models import modeling_attn_bert
from ..models.configuration_attn_bert import AttnBertConfig
from .encoder_twins import ENCODER_TWINS, EncoderTwin


def class_to_load(described: dict[str, Any]) -> str:
    """Name the class of transformers that a checkpoint is opened with: its own, or one that leaves out the prediction
    of the next sentence.

    Args:
        described: What its config.json says.

    Raises:
        ValueError: If it is of a class without a twin.
    """
    twin = ENCODER_TWINS[described["model_type"]]
    names = {ours: theirs for ours, (theirs, _) in twin.heads.items()}
    own = (described.get("architectures") or [names["AttnBertModel"]])[0]
    if own in names.values():
        return own
    if own in ("BertForPreTraining", "AlbertForPreTraining"):
        return names["AttnBertForMaskedLM"]
    raise ValueError(f"architectures={own!r} has no twin here; it must be one of {', '.join(names.values())}")


def leave_out(model_type: str, unexpected: Iterable[str]) -> set[str]:
    """Warn about tensors of other tasks in a checkpoint.

    Args:
        model_type: The architecture.
        unexpected: The names of tensors that its class has no place for.

    Returns:
        Those that belong to no other task either.
    """
    parts = ENCODER_TWINS[model_type].left_out
    others = {name for name in unexpected if any(part in name for part in parts)}
    named = sorted(name for name in others if "position_ids" not in name)  # 0, 1, 2, ...
    if named:
        warnings.warn(f"of other tasks, and left out: {', '.join(named)}", stacklevel=5)
    return set(unexpected) - others


def twin_and_class(theirs: PreTrainedModel) -> tuple[EncoderTwin, str]:
    """Find the table of a loaded model, and the name of our class.

    Raises:
        ValueError: If there is none.
    """
    twin = ENCODER_TWINS.get(theirs.config.model_type)
    for ours, (name, _) in twin.heads.items() if twin else ():
        if type(theirs).__name__ == name:
            return twin, ours  # type: ignore[return-value]
    names = ", ".join(name for twin in ENCODER_TWINS.values() for name, _ in twin.heads.values())
    raise ValueError(f"source is {type(theirs).__name__}, which has no twin here; it must be one of {names}")


def encoder_config(twin: EncoderTwin, theirs: Any) -> AttnBertConfig:
    """Translate a configuration.

    Raises:
        ValueError: For values without a counterpart, all of them.
    """
    faults = [
        f"{name}={getattr(theirs, name)!r} (it must be {value!r})"
        for name, value in twin.required.items()
        if getattr(theirs, name, value) != value
    ]
    if faults:
        raise ValueError(f"this {twin.model_type} has settings without a counterpart here: {', '.join(faults)}")
    kept = {"id2label": theirs.id2label, "label2id": theirs.label2id, "problem_type": theirs.problem_type}
    return AttnBertConfig(**twin.to_ours(theirs), **kept)


def encoder_name(twin: EncoderTwin, our_class: str, name: str) -> str:
    """Name the twin of one of our tensors.

    Args:
        twin: The table.
        our_class: Name of our class.
        name: Of our tensor.
    """
    head = twin.heads[our_class][1]
    if name in head:
        return head[name]
    module, leaf = name.rsplit(".", 1)
    if module in head:
        return f"{head[module]}.{leaf}"
    number = re.search(r"layers\.(\d+)\.", module)
    pattern = module.removeprefix("model.")
    if number:
        pattern = pattern.replace(number[0], "layers.N.", 1)
    found = f"{twin.modules[pattern]}.{leaf}"
    if number:
        found = found.replace(".N.", f".{number[1]}.", 1)
    return f"{twin.prefix}.{found}" if module.startswith("model.") else found


def import_encoder(theirs: PreTrainedModel) -> PreTrainedModel:
    """Make a loaded model of transformers one of ours, with its dtype.

    Args:
        theirs: A `BertModel`, `BertForMaskedLM`, `RobertaModel`, ... that encoder_twins.py has a table of.

    Returns:
        Our model, in evaluation mode.

    Raises:
        ValueError: If it has tensors or settings without a counterpart.
    """
    twin, our_class = twin_and_class(theirs)
    config = encoder_config(twin, theirs.config)
    state = theirs.state_dict()
    if our_class == "AttnBertModel":
        config.use_pooler = f"{twin.modules.get('pooler.dense')}.weight" in state
    ours = getattr(modeling_attn_bert, our_class)(config).to(theirs.dtype)
    names = {name: encoder_name(twin, our_class, name) for name in ours.state_dict()}
    known = {*names.values(), *twin.unread}
    faults = [f"unknown: {name} {tuple(tensor.shape)}" for name, tensor in state.items() if name not in known]
    faults += [f"missing: {name}" for name in names.values() if name not in state]
    if faults:
        raise ValueError(f"the tensors of this {type(theirs).__name__} do not fit: {'; '.join(faults)}")
    ours.load_state_dict({name: state[other].detach().cpu() for name, other in names.items()})
    return ours.eval()
