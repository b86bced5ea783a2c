"""Tell complete checkpoints from those that a killed run left half-written or half-deleted.

The Trainer writes ``trainer_state.json`` last. A checkpoint is complete if it has that file, weights, optimizer and
schedule, and every file whose format has an end (JSON, safetensors, the zip files of ``torch.save``) is readable to
that end. Only tables of contents are read, not the numbers.
"""

import json
import re
import warnings
import zipfile
from pathlib import Path

from safetensors import SafetensorError, safe_open
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

ADAPTER_WEIGHTS_NAME = "adapter_model.safetensors"  # PEFT's


def checkpoint_folders(output_dir: str | Path) -> list[Path]:
    """List the ``checkpoint-<step>`` folders of a run by their steps, complete or not."""
    if not Path(output_dir).is_dir():
        return []
    matches = [(re.fullmatch(r"checkpoint-(\d+)", path.name), path) for path in Path(output_dir).iterdir()]
    return [path for _, path in sorted((int(match[1]), path) for match, path in matches if match and path.is_dir())]


def find_defect(folder: str | Path) -> str | None:
    """Say which file is missing or incomplete, so that training cannot go on from a checkpoint; None if it can."""
    folder = Path(folder)
    missing = _first_missing(folder, ["trainer_state.json", "optimizer.pt", "scheduler.pt"])
    return missing or find_weights_defect(folder) or _first_unreadable(folder)


def find_weights_defect(folder: str | Path) -> str | None:
    """Say why the weights of a saved model or adapter cannot be read; None if they can."""
    folder = Path(folder)
    names = [SAFE_WEIGHTS_NAME]
    if (folder / ADAPTER_WEIGHTS_NAME).is_file():
        names = [ADAPTER_WEIGHTS_NAME]
    index = folder / SAFE_WEIGHTS_INDEX_NAME
    if index.is_file():
        if not is_readable(index):
            return f"{index.name} is incomplete"
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    incomplete = [name for name in names if (folder / name).is_file() and not is_readable(folder / name)]
    return _first_missing(folder, names) or (f"{incomplete[0]} is incomplete" if incomplete else None)


def last_complete_checkpoint(output_dir: str | Path) -> Path | None:
    """Find the newest checkpoint of a run that training can go on from, and warn of those passed over."""
    for folder in reversed(checkpoint_folders(output_dir)):
        defect = find_defect(folder)
        if defect is None:
            return folder
        warnings.warn(f"{folder} is not a complete checkpoint and is passed over: {defect}", stacklevel=2)
    return None


def _first_missing(folder: Path, names: list[str]) -> str | None:
    return next((f"{name} is missing" for name in names if not (folder / name).is_file()), None)


def _first_unreadable(folder: Path) -> str | None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return next((f"{path.relative_to(folder)} is incomplete" for path in paths if not is_readable(path)), None)


def is_readable(path: Path) -> bool:
    """Read a file up to the end of its table of contents; formats without one count as readable."""
    try:
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".safetensors":
            with safe_open(path, framework="pt"):
                return True
        elif path.suffix in (".pt", ".pth", ".bin"):
            zipfile.ZipFile(path).close()
    except (ValueError, SafetensorError, zipfile.BadZipFile):
        return False
    return True
