# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Checkpoints that visitors open by Hub id or folder, on a Space whose operator allows it with SPACE_OPEN=1.

Weights are read from safetensors files alone, and code that a checkpoint brings along is not run without the operator's
SPACE_REMOTE_CODE=1. From the Hub comes what anybody may read: the operator's token is not used.
"""

import json
import os
import threading
from collections import OrderedDict
from fnmatch import fnmatch
from pathlib import Path

import gradio as gr
from huggingface_hub import HfApi, is_offline_mode, snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from service import CONTROLS, limit_length

from hf_attn.inference import Translator
from hf_attn.visualization.page import escape

MOST_HELD = 3  # in memory, for all visitors together
LARGEST = 10**9  # bytes of weights
LONGEST_NAME = 300
FETCHED = ("*.json", "*.safetensors", "*.model", "*.spm", "*.txt")  # from the Hub
VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.spm")  # a tokenizer has one of them
TARGET_TOKENIZER = "target_tokenizer/"  # the only sub-folder that is read


class Refused(Exception):
    """Why a checkpoint is not opened: what is said after its name."""


class Checkpoints:
    """Open checkpoints, and hold those that were used last.

    Args:
        remote_code: whether Python code that a checkpoint brings along is run.
    """

    def __init__(self, remote_code: bool = False):
        self.remote_code = remote_code
        self._one_at_a_time = threading.Lock()  # is opened; who uses one that is held does not wait
        self._held: OrderedDict[str, Translator] = OrderedDict()  # the one used last comes last

    def open(self, name: str, wait: bool = True) -> Translator:
        """Open a checkpoint, or give it again.

        Args:
            name: a Hub id, or a folder on this machine, as `read_name` gives it.
            wait: whether to wait while others are being opened.

        Returns:
            The translator.

        Raises:
            gr.Error: if it cannot be opened; a sentence says why.
        """
        folder = os.path.expanduser(name)
        place = os.path.realpath(folder) if os.path.isdir(folder) else name
        try:
            return self._recall(place) or self._load(place, wait)
        except Refused as error:
            reason = str(error).replace(place, name)
            raise gr.Error(f"“{escape(name)}” {escape(reason)}", print_exception=False) from error

    def _recall(self, place: str) -> Translator | None:
        try:
            self._held.move_to_end(place)
            return self._held[place]
        except KeyError:
            return None

    def _load(self, place: str, wait: bool) -> Translator:
        if not self._one_at_a_time.acquire(blocking=wait):
            raise Refused("was put away to make room, and others are being opened now: try again soon.")
        try:
            if translator := self._recall(place):  # somebody else asked for it meanwhile
                return translator
            translator = self._held[place] = self._open(place)
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
            return translator
        finally:
            self._one_at_a_time.release()

    def _open(self, place: str) -> Translator:
        folder = Path(place) if os.path.isdir(place) else fetch(place, self.remote_code)
        try:
            check_files({path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()})
            check_index(folder / "model.safetensors.index.json")
            translator = Translator(folder, device="cpu", trust_remote_code=self.remote_code)
            limit_length(translator)
            translator("A", max_new_tokens=2)  # what cannot translate a word says so now
        except Refused:
            raise
        except Exception as error:  # whatever the files of somebody else may cause
            if "trust_remote_code" in str(error):
                raise Refused("brings Python code of its own, which this Space does not run.") from error
            reason = str(error).replace(str(folder), place).strip().split("\n")[0][:LONGEST_NAME]
            raise Refused(f"cannot be opened: {reason or type(error).__name__}") from error
        return translator


def read_name(name: object) -> str:
    """Give the name of a checkpoint that a visitor typed, without spaces around it, or refuse it."""
    if not isinstance(name, str) or not name.strip():
        raise gr.Error("Type a Hub id or a folder.", print_exception=False)
    name = name.strip()
    if len(name) > LONGEST_NAME or CONTROLS.search(name):
        raise gr.Error(f"“{escape(name[:40])}” is neither a folder nor a Hub id.", print_exception=False)
    return name


def check_files(files: dict[str, int]) -> None:
    """Refuse a checkpoint by the names and sizes of its files.

    Args:
        files: size in bytes of each.

    Raises:
        Refused: if there is no model or no tokenizer, its weights are not in safetensors files, or they are too large.
    """
    if "adapter_config.json" in files:
        raise Refused("is an adapter to another model, which this Space does not open.")
    if "config.json" not in files:
        raise Refused("holds no model: there is no config.json.")
    if not {"model.safetensors", "model.safetensors.index.json"} & files.keys():
        raise Refused("has no weights in safetensors files; files of other kinds may hold code and are not read.")
    if not any(matches(file, VOCABULARIES) for file in files):
        raise Refused("has no tokenizer, so it cannot read text.")
    size = sum(size for file, size in files.items() if file.endswith(".safetensors"))
    if size > LARGEST:
        raise Refused(f"is too large: {size / 1e9:.1f} GB of weights; this Space opens {LARGEST / 1e9:.0f} GB.")


def matches(file: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether the name of a file is of one of these forms."""
    return any(fnmatch(file, pattern) for pattern in patterns)


def check_index(index: Path) -> None:
    """Refuse weights in several files if one of them is no safetensors file beside the others."""
    if index.is_file():
        files = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        if not all(Path(file).name == file and file.endswith(".safetensors") for file in files):
            raise Refused("has weights outside of safetensors files, which are not read.")


def fetch(name: str, remote_code: bool) -> Path:
    """Download a checkpoint of the Hub, as far as it is read; without a network find it in the cache.

    Args:
        name: its id.
        remote_code: whether its Python code is read.

    Returns:
        Its folder.

    Raises:
        Refused: if there is no such checkpoint, the Hub does not give it, or its files are refused.
    """
    patterns = (*FETCHED, "*.py") if remote_code else FETCHED
    try:
        if is_offline_mode() and (cached := try_to_load_from_cache(name, "config.json")):
            return Path(str(cached)).parent
        listed = HfApi().list_repo_tree(name, recursive=True, token=False)
        sizes = {file.path: file.size for file in listed if isinstance(file, RepoFile)}
        inside = {path: path.removeprefix(TARGET_TOKENIZER) for path in sizes}
        wanted = [path for path, file in inside.items() if "/" not in file and matches(file, patterns)]
        check_files({path: sizes[path] for path in wanted})
        return Path(snapshot_download(name, allow_patterns=wanted, token=False))
    except Refused:
        raise
    except GatedRepoError as error:
        raise Refused("is given by the Hub only to those who agreed to its terms.") from error
    except RepositoryNotFoundError as error:
        raise Refused("is no folder here, and no checkpoint of the Hub that anybody may read.") from error
    except HFValidationError as error:
        raise Refused("is neither a folder here nor a Hub id.") from error
    except Exception as error:  # no network, an answer that is cut off, a full disk
        raise Refused("is no folder here, and could not be fetched from the Hub.") from error
