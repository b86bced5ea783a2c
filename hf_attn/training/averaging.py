"""The mean of the weights of several checkpoints of one training run.

``average = (weights_1 + ... + weights_n) / n``, tensor by tensor. Late checkpoints scatter around a good point; their
mean lies nearer to it than each of them. Vaswani et al. 2017 (arXiv 1706.03762, section 6.1) translate with the mean of
the last 5 checkpoints of the base model and the last 20 of the big one.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from .checkpoints import checkpoint_folders, find_weights_defect


def last_checkpoints(output_dir: str | Path, count: int) -> list[Path]:
    """List the newest checkpoints of a training run that have all their weights, oldest first.

    Args:
        output_dir: The Trainer's output folder, which holds the ``checkpoint-<step>`` folders.
        count: How many to list; all if there are fewer.

    Raises:
        ValueError: If ``count`` is less than 1, or there is no checkpoint.
    """
    folders = [folder for folder in checkpoint_folders(output_dir) if find_weights_defect(folder) is None]
    if count < 1 or not folders:
        raise ValueError(f"cannot take the last {count} checkpoints of the {len(folders)} in {output_dir}")
    return folders[-count:]


def average_checkpoints(folders: Sequence[str | Path]) -> dict[str, torch.Tensor]:
    """Average the weights saved in checkpoint folders.

    Args:
        folders: Folders with ``model.safetensors`` (or its shards) of one architecture; the last one gives the tensors
            that are not floating point.

    Returns:
        Weights by name, in the data type they were saved in; the sum is taken in float64. Load them with
        ``load_average``, which also restores what the model ties.

    Raises:
        ValueError: If there is no folder, a folder has no safetensors weights, or names or shapes disagree.
    """
    if not folders:
        raise ValueError("folders must name at least one checkpoint, got none")
    total: dict[str, torch.Tensor] = {}
    weights: dict[str, torch.Tensor] = {}
    for folder in folders:
        weights = _read_weights(Path(folder))
        shapes = {name: tensor.shape for name, tensor in weights.items()}
        if total and shapes != {name: tensor.shape for name, tensor in total.items()}:
            raise ValueError(f"{folder} holds other weight names or shapes than {folders[0]}: not the same model")
        for name, tensor in weights.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {
        name: (total[name] / len(folders)).to(tensor.dtype) if tensor.is_floating_point() else tensor
        for name, tensor in weights.items()
    }


def load_average(model: torch.nn.Module, folders: Sequence[str | Path]) -> None:
    """Replace the model's weights by the mean of checkpoints of the same model.

    Args:
        model: The model that was trained; changed in place, tied weights stay tied.
        folders: As for ``average_checkpoints``.

    Raises:
        ValueError: If the checkpoints hold other weights than the model has.
    """
    average = average_checkpoints(folders)
    # Of weights that share memory a checkpoint holds one name; the others follow because they are the same tensor.
    expected = model.state_dict()
    present = {expected[name].data_ptr() for name in average if name in expected}
    missing = [name for name, tensor in expected.items() if name not in average and tensor.data_ptr() not in present]
    unknown = [name for name in average if name not in expected]
    if missing or unknown:
        raise ValueError(f"{folders[-1]} is not a checkpoint of this model: missing {missing}, unknown {unknown}")
    model.load_state_dict(average, strict=False)


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Read all tensors of a saved model folder."""
    index = folder / SAFE_WEIGHTS_INDEX_NAME
    if index.is_file():
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    elif (folder / SAFE_WEIGHTS_NAME).is_file():
        names = [SAFE_WEIGHTS_NAME]
    else:
        raise ValueError(f"{folder} has no {SAFE_WEIGHTS_NAME}")
    weights: dict[str, torch.Tensor] = {}
    for name in names:
        weights.update(load_file(folder / name))
    return weights
