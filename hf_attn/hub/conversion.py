# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Walk along the tables of twins: which class, which settings, which tensors of the one side are which of the other.

A setting or a tensor without a counterpart is an error that names it.

Read before: `twins.py`, the form of the tables. Read next: `import_checkpoint.py`, which loads and saves.
"""

import dataclasses
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import PreTrainedConfig, PreTrainedModel

from ..models.positions import sinusoidal
from ..registry import FAMILIES, family_module
from .decoder_twins import DECODER_TWINS
from .encoder_twins import ENCODER_TWINS
from .image_twins import IMAGE_TWINS
from .seq2seq_twins import SEQ2SEQ_TWINS
from .twins import NORM_EPS, Options, Twin

TWINS = {**SEQ2SEQ_TWINS, **ENCODER_TWINS, **DECODER_TWINS, **IMAGE_TWINS}
ALIGNMENT = ("alignment_method", "alignment_layer", "alignment_heads")
DROPPED = (*ALIGNMENT, "initializer_range")  # they change no output
READ_OFF = ("share_embeddings", "tie_word_embeddings", "output_bias", "use_pooler")  # what the tensors say
LABELS = ("id2label", "label2id", "problem_type")  # of the same name everywhere


# Classes


def our_classes() -> dict[str, type[PreTrainedModel]]:
    """Give those of our classes that have a twin, by name."""
    ours = [model for family in FAMILIES for model in family_module(family).AUTO_CLASSES.values()]
    twinned = {name for twin in TWINS.values() for name in twin.heads}
    return {model.__name__: model for model in ours if model.__name__ in twinned}


def class_to_load(twin: Twin, described: Mapping[str, Any]) -> str:
    """Name the class of transformers that a checkpoint is opened with.

    Args:
        twin: The table of its architecture.
        described: What its config.json says.

    Returns:
        Its own class, or, where it has more heads than one of ours, that with the one.

    Raises:
        ValueError: If it is of a class without a twin.
    """
    names = {ours: theirs for ours, (theirs, _) in twin.heads.items()}
    own = (described.get("architectures") or [next(iter(names.values()))])[0]
    if own in names.values():
        return own
    if own in twin.relatives:
        return names[twin.relatives[own]]
    if len(names) == 1:  # whether the tensors are those of this class is seen when they are loaded
        return next(iter(names.values()))
    raise ValueError(f"architectures={own!r} has no twin here; it must be one of {', '.join(names.values())}")


def twin_and_class(theirs: PreTrainedModel) -> tuple[Twin, str]:
    """Find the table of a loaded model, and the name of our class.

    Raises:
        ValueError: If there is none.
    """
    twin = TWINS.get(theirs.config.model_type)
    for ours, (name, _) in twin.heads.items() if twin else ():
        if type(theirs).__name__ == name:
            return twin, ours  # type: ignore[return-value]
    names = ", ".join(name for twin in TWINS.values() for name, _ in twin.heads.values())
    raise ValueError(f"source is {type(theirs).__name__}, which has no twin here; it must be one of {names}")


# Tensors


@dataclasses.dataclass(frozen=True)
class Place:
    """Where one of our tensors lies in their model.

    Args:
        name: Of their tensor.
        part: Which of the parts is ours, of those that lie in theirs side by side.
        parts: Their number.
        row: In which row ours begins.
        transposed: Whether theirs is transposed.
    """

    name: str
    part: int = 0
    parts: int = 1
    row: int = 0
    transposed: bool = False

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Cut our tensor out of theirs."""
        tensor = tensor.T if self.transposed else tensor
        return tensor.chunk(self.parts)[self.part][self.row :]


def place_of(twin: Twin, our_class: str, name: str, theirs: Iterable[str]) -> Place:
    """Find one of our tensors in their model.

    Args:
        twin: The table.
        our_class: Name of our class.
        name: Of our tensor.
        theirs: The names of all tensors of their model.
    """
    number = re.search(r"layers\.(\d+)\.", name)
    pattern = name if number is None else name.replace(number[0], "layers.N.", 1)
    leaf, head, stack = "", twin.heads[our_class][1], pattern.removeprefix("model.")
    if pattern not in head and stack not in twin.modules:  # not a single tensor
        pattern, stack, leaf = pattern.rpartition(".")[0], stack.rpartition(".")[0], "." + name.rpartition(".")[2]
    inside = pattern not in head
    module = twin.modules[stack] if inside else head[pattern]
    sharing = [ours for ours, other in twin.modules.items() if other == module] if inside else [stack]
    found = module + leaf
    if number is not None:
        found = f".{found}".replace(".N.", f".{number[1]}.", 1)[1:]
    if inside and twin.prefix and name.startswith("model."):
        found = f"{twin.prefix}.{found}"
    for part, other in twin.spellings.items():
        found = found if found in theirs else found.replace(part, other)
    return Place(
        found,
        part=sharing.index(stack),
        parts=len(sharing),
        row=twin.first_row.get(stack, 0),
        transposed=leaf == ".weight" and module.rpartition(".")[2] in twin.transposed,
    )


def check_unknown(twin: Twin, theirs: PreTrainedModel, places: Iterable[Place]) -> None:
    """Refuse a model with tensors that ours has no place for, or without one that ours needs."""
    state = theirs.state_dict()
    names = {place.name for place in places}
    known = {*names, *twin.copies, *twin.unread, *twin.computed}
    faults = [f"unknown: {name} {tuple(tensor.shape)}" for name, tensor in state.items() if name not in known]
    faults += [f"missing: {name}" for name in sorted(names) if name not in state]
    for name in twin.computed:
        table = state[name].float().cpu()
        formula = sinusoidal(torch.arange(table.shape[0]), table.shape[1], order="concatenated")
        distance = float((table - formula).abs().max())
        if distance > 1e-3 + torch.finfo(state[name].dtype).eps:  # float32 angles of far positions are not exact
            faults.append(f"{name} is no table of sinusoids (it differs from the formula by up to {distance:.3g})")
    if faults:
        raise ValueError(f"the tensors of this {type(theirs).__name__} do not fit: {'; '.join(faults)}")


def our_state(
    places: Mapping[str, Place], theirs: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Collect our tensors out of theirs, in memory of their own; `wanted` has their shapes."""
    state = {name: place.read(theirs[place.name].detach().cpu()) for name, place in places.items()}
    copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}
    return {name: _with_axes(tensor, wanted[name]) for name, tensor in copies.items()}


def _with_axes(tensor: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Give a tensor the axes of another, where they have the same numbers on more or fewer of them."""
    same = tensor.dim() == wanted.dim() or tensor.numel() != wanted.numel()  # what differs is refused later
    return tensor if same else tensor.reshape(wanted.shape)


def their_state(
    twin: Twin, our_class: str, ours: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Put their tensors together from ours; `wanted` has their names and shapes."""
    parts: dict[str, dict[int, torch.Tensor]] = {}
    places: dict[str, Place] = {}
    for name, tensor in ours.items():
        place = place_of(twin, our_class, name, wanted)
        places[place.name] = place
        parts.setdefault(place.name, {})[place.part] = tensor.detach().cpu()
    state = {}
    for name, place in places.items():
        tensor = torch.cat([parts[name][part] for part in range(place.parts)])
        if place.row:
            tensor = torch.cat([tensor.new_zeros(place.row, tensor.shape[1]), tensor])
        tensor = tensor.T.contiguous() if place.transposed else tensor
        state[name] = _with_axes(tensor, wanted[name])
    for name, other in twin.copies.items():
        if name in wanted:  # a copy of its own: saving leaves out what has the memory of another
            state[name] = state[other].clone()
    dtype = next(iter(ours.values())).dtype
    for name in twin.unread:
        if name in wanted and name not in state:
            state[name] = torch.zeros(wanted[name].shape, dtype=dtype)
    return state


# Settings


def our_config(twin: Twin, our_class: str, theirs: PreTrainedModel, read_off: Options) -> PreTrainedConfig:
    """Translate the configuration of a loaded model.

    Args:
        twin: Its table.
        our_class: Name of our class.
        theirs: The model.
        read_off: Options that something else than its configuration says.

    Raises:
        ValueError: For values without a counterpart, all of them.
    """
    config: Any = theirs.config
    options, faults = twin.to_ours(config)
    required = twin.required
    if twin.ties:
        shared, tied = read_off["share_embeddings"], read_off["tie_word_embeddings"]
        required = required | twin.ties.get((shared, tied), {})
    faults = [
        f"{name}={getattr(config, name)!r} (it must be {value!r})"
        for name, value in required.items()
        if getattr(config, name, value) != value
    ] + faults
    if faults:
        raise ValueError(f"this {twin.model_type} has settings without a counterpart here: {', '.join(faults)}")
    options |= {ours: getattr(config, name, None) for ours, name in twin.fields.items()}
    options |= twin.fixed | {name: getattr(config, name) for name in LABELS} | read_off
    dropout = twin.classifier_dropout.get(our_class, "")
    own = getattr(config, dropout, None)
    if own is not None and own != options["dropout"]:
        warnings.warn(f"{dropout}={own!r} becomes dropout={options['dropout']!r}, as elsewhere", stacklevel=3)
    try:
        return our_classes()[our_class].config_class(**options)  # type: ignore[misc]
    except StrictDataclassError as error:  # a value of another type, such as no pad_token_id
        raise ValueError(f"this {twin.model_type} has a setting without a counterpart here: {error}") from error


def choose_twin(model: PreTrainedModel, model_type: str | None) -> tuple[Twin, Options]:
    """Find the architecture that does what a model of ours does.

    Args:
        model: One of our classes.
        model_type: The architecture that it has to be; None for the first that can.

    Returns:
        The table, and the options of their configuration.

    Raises:
        ValueError: If there is none; what stands in the way is named.
    """
    our_class = type(model).__name__
    candidates = {kind: twin for kind, twin in TWINS.items() if our_class in twin.heads}
    if model_type is not None and model_type not in candidates:
        allowed = ", ".join(map(repr, candidates))
        raise ValueError(f"model_type={model_type!r} is not allowed for {our_class}; choose one of {allowed}")
    reasons = []
    for twin in candidates.values() if model_type is None else [candidates[model_type]]:
        options, obstacles = _their_options(twin, model)
        if not obstacles:
            values, defaults = option_values(model.config), option_values(type(model.config)())
            lost = [f"{name}={values[name]!r}" for name in ALIGNMENT if values.get(name) != defaults.get(name)]
            if lost:
                warnings.warn(f"{twin.model_type} has no place for {', '.join(lost)}", stacklevel=3)
            return twin, options
        reasons.append(f"{twin.model_type}: {', '.join(obstacles)}")
    raise ValueError(f"no model of transformers does what this one does; in the way of {'; of '.join(reasons)}")


def option_values(config: PreTrainedConfig) -> Options:
    """Give the values of our own fields, with None for each that says no more than the default."""
    names = type(config).__annotations__.keys()
    values = {one.name: getattr(config, one.name) for one in dataclasses.fields(config) if one.name in names}
    width = values["hidden_size"]
    heads = [number for name, number in values.items() if name.endswith("attention_heads")]
    same = {
        "decoder_vocab_size": lambda size: size == values["vocab_size"] and values["share_embeddings"],
        "embedding_size": lambda size: size == width,
        "cross_attention_hidden_size": lambda size: size == width,
        "head_dim": lambda size: size is None or all(size == width / number for number in heads),
        "num_key_value_heads": lambda number: number == values["num_attention_heads"],
        "layer_norm_eps": lambda eps: eps == NORM_EPS[values["norm_type"]],
    }
    return values | {name: None for name, is_same in same.items() if name in values and is_same(values[name])}


def _their_options(twin: Twin, model: PreTrainedModel) -> tuple[Options, list[str]]:
    """Translate our options; what has no counterpart is listed."""
    values, defaults = option_values(model.config), option_values(type(model.config)())
    options, obstacles = twin.to_theirs(values)
    if twin.ties:
        shared, tied = values["share_embeddings"], values["tie_word_embeddings"]
        ties = twin.ties.get((shared, tied))
        if ties is None:
            obstacles.append(f"share_embeddings={shared} with tie_word_embeddings={tied}")
        options |= ties or {}
    known = {*twin.converted, *DROPPED, *READ_OFF} - twin.fixed.keys() | _idle_options(model)
    first = {name: ours for ours, name in reversed(twin.fields.items())}  # of those that share a field of theirs
    for ours, name in twin.fields.items():
        options[name] = values[first[name]]
        if values[ours] != options[name]:
            obstacles.append(f"{ours}={values[ours]!r} beside {first[name]}={options[name]!r}")
        wanted = twin.required.get(name, options[name])
        if options[name] != wanted:
            obstacles.append(f"{ours}={values[ours]!r} (it must be {wanted!r})")
    for name in values.keys() - twin.fields.keys() - known:
        wanted = twin.fixed.get(name, defaults[name])
        if values[name] != wanted:
            obstacles.append(f"{name}={values[name]!r} (it must be {wanted!r})")
    return options | {name: getattr(model.config, name) for name in LABELS}, sorted(obstacles)


def _idle_options(model: PreTrainedModel) -> set[str]:
    """Name the options of ours that this very model does not read."""
    config: Any = model.config
    if not hasattr(config, "use_pooler"):
        return set()
    headless = model.base_model is model
    pooled = getattr(model.base_model, "pooler", None) is not None
    return (set() if headless else {"use_pooler"}) | (set() if pooled else {"pooler_activation"})


def their_config(twin: Twin, our_class: str, options: Options) -> Any:
    """Make their configuration of its options."""
    config = getattr(transformers, twin.heads[our_class][0]).config_class(**options)
    name = twin.classifier_dropout.get(our_class, "")
    if getattr(config, name, None) is not None:  # None stands for what it is elsewhere
        setattr(config, name, config.hidden_dropout_prob if hasattr(config, "hidden_dropout_prob") else config.dropout)
    return config
