# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Be a good Hugging Face model: initialise everything, load exactly, save the code with the weights, name a misspelt
argument.

`AttnPreTrainedModel` is the base class of every family. It adds to `PreTrainedModel`

* initial values for the recurrent layers, which the library leaves alone when it loads a checkpoint without them;
* loading into memory of its own, so that a model computes what it did before it was saved, to the last bit;
* `save_pretrained(include_code=True)`: the saved folder opens with `trust_remote_code=True` where this package is not
  installed, through every Auto class that its family's modeling file lists in AUTO_CLASSES;
* an error for a keyword argument that is nearly one of `forward`'s, which would take it and do nothing.
"""

import ast
import difflib
import inspect
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.dynamic_module_utils import custom_object_save


class AttnPreTrainedModel(PreTrainedModel):
    """Base class of all models of the package."""

    base_model_prefix = "model"
    model_tags = ["hf_attn"]

    def __init_subclass__(cls, *args, **kwargs):
        super().__init_subclass__(*args, **kwargs)
        cls._argument_names = {*inspect.signature(cls.forward).parameters, "return_dict", "num_items_in_batch"}

    def __call__(self, *args, **kwargs):
        """Run `forward`.

        It takes any keyword, since the Trainer, `generate()` and others pass more than it needs; the names that they
        pass resemble none of its own.

        Raises:
            TypeError: If a keyword is misspelt: no argument, but nearly the name of one.
        """
        for name in kwargs:
            if name not in self._argument_names:
                nearest = difflib.get_close_matches(name, self._argument_names, n=1, cutoff=0.82)
                if nearest:
                    raise TypeError(f"{type(self).__name__} has no argument {name!r}; did you mean {nearest[0]!r}?")
        return super().__call__(*args, **kwargs)

    @property
    def position_limit(self) -> int | None:
        """Number of positions that there are; None where they are not learned, and any number will do."""
        learned = getattr(self.config, "position_type", "learned") == "learned"
        return getattr(self.config, "max_position_embeddings", None) if learned else None

    def _init_weights(self, module: nn.Module):
        """Fill the parameters of one module, unless they were loaded.

        Recurrent matrices are orthogonal (Saxe 2014, arXiv 1312.6120), as Bahdanau 2015 (B.1) has them; input matrices
        are uniform after Glorot 2010. Everything else follows transformers: normal with `config.initializer_range`,
        times the module's `initial_scale` where it has one, norms one, biases zero.
        """
        super()._init_weights(module)
        if isinstance(module, nn.Linear) and hasattr(module, "initial_scale"):
            init.normal_(module.weight, std=self.config.initializer_range * module.initial_scale)
        if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
            for name, parameter in module.named_parameters(recurse=False):
                if name.startswith("weight_hh"):
                    # one gate's matrix is a slice, which loses the flag of the whole
                    if not getattr(parameter, "_is_hf_initialized", False):
                        for gate in parameter.chunk(parameter.shape[0] // module.hidden_size):
                            init.orthogonal_(gate)
                elif name.startswith("weight_ih"):
                    init.xavier_uniform_(parameter)
                else:
                    init.zeros_(parameter)

    @classmethod
    def from_pretrained(cls, *args, **kwargs) -> Any:
        """Load a saved model; arguments and result as in transformers.

        The library leaves the weights where they lie in the file, in which they start at odd addresses; there matrix
        products round differently, and who writes to the file changes the model.
        """
        loaded = super().from_pretrained(*args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.device.type == "cpu":
                tensor.data = tensor.data.clone()
        return loaded

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor], *args, **kwargs):
        """Load weights as in torch; of those that are tied, a saved file has one name, and none is missing."""
        filled = OrderedDict(state_dict)
        for target, source in (self._tied_weights_keys or {}).items():
            if source in filled:
                filled.setdefault(target, filled[source])
        return super().load_state_dict(filled, *args, **kwargs)

    def save_pretrained(
        self,
        save_directory: str | os.PathLike,
        is_main_process: bool = True,
        *args,
        include_code: bool = True,
        **kwargs,
    ):
        """Save weights, configuration, generation configuration and, by default, the code that reads them.

        Args:
            save_directory: Folder, made if it does not exist.
            is_main_process: Whether this process writes what all processes share: configuration and code.
            *args: As in transformers.
            include_code: Whether to copy the modeling files beside the weights and name them in the configuration's
                `auto_map`, so that the folder opens without this package (with `trust_remote_code=True`). False for
                models that the installed package opens. A class that its file does not list in AUTO_CLASSES is saved
                without code.
            **kwargs: As in transformers.

        Raises:
            ValueError: If the code imports something in a way that would not work from the saved folder.
        """
        auto_classes = getattr(sys.modules[type(self).__module__], "AUTO_CLASSES", {})
        travels = include_code and type(self).__name__ in {cls.__name__ for cls in auto_classes.values()}
        classes = {"AutoConfig": type(self.config), **auto_classes}
        before = getattr(self.config, "auto_map", None)
        if travels:
            check_code_travels(type(self), classes.values())
            _set_auto_map(self.config, _auto_map(classes))
        elif not include_code:
            _set_auto_map(self.config, None)
        try:
            if travels and is_main_process:
                os.makedirs(save_directory, exist_ok=True)
                custom_object_save(self, save_directory)
            super().save_pretrained(save_directory, is_main_process, *args, **kwargs)
        finally:
            _set_auto_map(self.config, before)

    def _get_files_timestamps(self, working_dir: str | os.PathLike) -> dict[str, float]:
        """Leave the code out, so that `save_pretrained(push_to_hub=True)`, which uploads what is new, uploads it."""
        timestamps = super()._get_files_timestamps(working_dir)
        return {name: time for name, time in timestamps.items() if not name.endswith(".py")}


def _set_auto_map(config: PreTrainedConfig, auto_map: dict[str, str] | None) -> None:
    """Write the table into the configuration, or take it out."""
    vars(config).pop("auto_map", None)
    if auto_map is not None:
        config.auto_map = auto_map


def _auto_map(classes: dict[str, type]) -> dict[str, str]:
    """Return the table from Auto class to "file.Class" that the Hub reads."""
    return {auto: f"{cls.__module__.split('.')[-1]}.{cls.__name__}" for auto, cls in classes.items()}


def check_code_travels(model_class: type, classes: Iterable[type]) -> None:
    """Refuse code that a saved folder could not run.

    Saving copies the modeling file and the siblings that it imports, found by a search for lines of the form
    `from .name import x`; what is imported otherwise would be missing, or would not be found where the copy lies.

    Args:
        model_class: The class that is saved.
        classes: All classes that the folder promises.

    Raises:
        ValueError: With file and line of an import that does not work, or with the class whose code would be missing.
    """
    first = sys.modules[model_class.__module__]
    if first.__name__ == "__main__":
        raise ValueError(
            f"{model_class.__name__} is defined in __main__, which cannot be copied; move it to a file of its own, or "
            "save with include_code=False"
        )
    own_packages = {"hf_attn", model_class.__module__.split(".")[0]}
    waiting, seen = [Path(str(first.__file__))], set()
    while waiting:
        file = waiting.pop()
        if file.name not in seen:
            seen.add(file.name)
            waiting += _imported_siblings(file, own_packages)
    for cls in classes:
        name = Path(str(sys.modules[cls.__module__].__file__)).name
        if name not in seen:
            raise ValueError(
                f"{cls.__name__} is defined in {name}, which {first.__file__} does not import: its code would be "
                "missing in the saved folder"
            )


# what saving takes for an import, in docstrings and comments too
_LIKE_AN_IMPORT = re.compile(r"^\s*(from\s+\.(\S+)\s+import|import\s+\.(\S+)\s*$)", flags=re.MULTILINE)


def _imported_siblings(file: Path, own_packages: set[str]) -> list[Path]:
    """Return the files of the same folder that a file imports; raise ValueError for imports that would not travel."""

    def refuse(line: int, reason: str):
        raise ValueError(
            f"{file}, line {line}: `{lines[line - 1].strip()}` {reason}. The saved folder is flat and opens without "
            "this package: import siblings by lines `from .name import x`, or save with include_code=False"
        )

    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    matches = _LIKE_AN_IMPORT.finditer(text)
    copied = {text.count("\n", 0, match.start(1)) + 1: match[2] or match[3] for match in matches}
    siblings = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            sibling = file.with_name(f"{node.module}.py")
            if node.level > 1 or copied.pop(node.lineno, None) != node.module or not sibling.is_file():
                refuse(node.lineno, "is not an import of a file beside it that saving finds")
            siblings.append(sibling)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            if own_packages & {module.split(".")[0] for module in modules}:
                refuse(node.lineno, "imports the package by its name")
    if copied:
        refuse(min(copied), "is no import, but saving takes it for one")
    return siblings
