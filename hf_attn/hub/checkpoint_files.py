# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Open checkpoints, theirs and ours: from safetensors alone, without code that they bring along, and only where every
tensor is there, known and of the right shape."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from .twins import Twin

Shapes = dict[str, tuple[int, ...]]


def find_source(source: str | Path) -> tuple[str, bool]:
    """Give the address of a folder or of a repository of the Hub, and whether it is a folder.

    Raises:
        ValueError: If it can only be a folder, and there is none.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return str(folder), True
    if isinstance(source, Path) or folder.is_absolute() or folder.exists() or source.startswith((".", "~")):
        raise ValueError(f"source is {str(source)!r}; there is no such folder")
    return source, False


def free_folder(folder: str | Path) -> Path:
    """Refuse a folder that holds something: files of two models would mix."""
    path = Path(folder).expanduser()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"output_dir is {str(folder)!r}, which holds something; give a new or an empty folder")
    return path


def read_config(address: str, local: bool) -> dict[str, Any]:
    """Read the config.json of a checkpoint; ValueError if there is none that can be read."""
    try:
        described, _ = PreTrainedConfig.get_config_dict(address, local_files_only=local)
    except OSError as error:
        raise ValueError(f"source is {address!r}; it holds no config.json that can be read: {error}") from error
    if not isinstance(described, dict) or not described:
        raise ValueError(f"source is {address!r}; it holds no config.json with the settings of a model")
    return described


def open_model(model_class: Any, address: str, local: bool, twin: Twin | None = None) -> Any:
    """Load a model from safetensors, and refuse one whose tensors are not exactly its own.

    Args:
        model_class: Its class.
        address: Of a folder or a repository.
        local: Whether it is a folder.
        twin: The table of its architecture, if it is one of transformers: what belongs to other tasks is left out.

    Raises:
        ValueError: If its weights cannot be read, or one is missing, unknown, or of another shape.
    """
    if local and not list(Path(address).glob("*.safetensors")):
        _refuse_other_weights(Path(address))
    options: dict[str, Any] = {"local_files_only": local, "use_safetensors": True}
    try:
        pooler = None if twin is None else twin.modules.get("pooler.dense")
        if twin is not None and pooler is not None and model_class.__name__ == next(iter(twin.heads.values()))[0]:
            options["add_pooling_layer"] = any(f"{pooler}." in name for name in _shapes_in_files(address, local))
        model, info = model_class.from_pretrained(
            address, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    except StrictDataclassError as error:
        raise ValueError(f"source is {address!r}; its config.json has a setting that cannot be: {error}") from error
    except (OSError, RuntimeError, SafetensorError) as error:  # the second for tied tensors of different shapes
        raise ValueError(f"source is {address!r}; its weights cannot be read from safetensors: {error}") from error
    if twin is not None:
        info["unexpected_keys"] = _leave_out(twin, info["unexpected_keys"])
    _check_loaded(address, model, info, lambda: _shapes_in_files(address, local))
    return model


def build_model(
    model_class: Any, config: PreTrainedConfig, state: dict[str, torch.Tensor], dtype: torch.dtype, **options: Any
) -> Any:
    """Make a model of its tensors, in evaluation mode; options are its class's own.

    Raises:
        ValueError: If a tensor is missing, unknown, or of another shape.
    """
    model, info = model_class.from_pretrained(
        None,
        config=config,
        state_dict=state,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        **options,
    )
    _check_loaded("the source", model, info, lambda: {name: tuple(tensor.shape) for name, tensor in state.items()})
    model.config._name_or_path = model.name_or_path = ""  # the library writes "None"
    return model.eval()


def _refuse_other_weights(folder: Path) -> None:
    others = sorted(path.name for path in folder.glob("*.bin"))
    if others:
        raise ValueError(
            f"{folder} has its weights in {others[0]}, a format that can run code when it is opened; only safetensors "
            "are read. If you trust the file, open it with transformers and save it again"
        )
    raise ValueError(f"{folder} has no weights: there is no file *.safetensors")


def _shapes_in_files(address: str, local: bool) -> Shapes:
    """Read the shape of every tensor from the heads of the files."""
    quiet: dict[str, Any] = {"local_files_only": local, "_raise_exceptions_for_missing_entries": False}
    whole: Any = cached_file(address, "model.safetensors", **quiet)
    files: Any = [whole]
    if whole is None:
        index: Any = cached_file(address, "model.safetensors.index.json", **quiet)
        files, _ = get_checkpoint_shard_files(address, index, local_files_only=local)
    shapes = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            shapes |= {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    return shapes


def _leave_out(twin: Twin, unexpected: Iterable[str]) -> set[str]:
    """Give those of the tensors without a place that belong to no other task; warn about the others."""
    left = {name for name in unexpected if not any(part in name for part in twin.constants)}
    others = sorted(name for name in left if any(part in name for part in twin.left_out))
    if others:
        warnings.warn(f"of other tasks, and left out: {', '.join(others)}", stacklevel=4)
    return left - set(others)


def _check_loaded(what: str, model: PreTrainedModel, info: dict[str, Any], found_shapes: Callable[[], Shapes]) -> None:
    """Refuse weights of which one is missing, unknown or of another shape, naming all such."""
    if not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        return
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    shapes = found_shapes() if info["unexpected_keys"] else {}
    faults = [f"missing: {name} {wanted.get(name, '')}" for name in sorted(info["missing_keys"])]
    faults += [f"unknown: {name} {shapes.get(name, '')}" for name in sorted(info["unexpected_keys"])]
    faults += [
        f"other shape: {name} {tuple(found)} instead of {tuple(expected)}"
        for name, found, expected in sorted(info["mismatched_keys"])
    ]
    raise ValueError(f"the tensors of {what} are not those of {type(model).__name__}: {'; '.join(faults)}")
