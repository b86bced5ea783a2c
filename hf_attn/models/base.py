# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Be a good Hugging Face model: initialise everything, save the code with the weights.

`AttnPreTrainedModel` is the base class of every family. It adds to `PreTrainedModel`

* initial values for the recurrent layers, which the library leaves alone when it loads a checkpoint without them;
* `save_pretrained(include_code=True)`: the saved folder opens with `trust_remote_code=True` where this package is not
  installed, through every Auto class that its family's modeling file lists in AUTO_CLASSES.
"""

import sys

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.dynamic_module_utils import custom_object_save


class AttnPreTrainedModel(PreTrainedModel):
    """Base class of all models of the package."""

    base_model_prefix = "model"
    model_tags = ["hf_attn"]

    def _init_weights(self, module: nn.Module):
        """Fill the parameters of one module, unless they were loaded.

        Recurrent matrices are orthogonal (Saxe 2014, arXiv 1312.6120), as Bahdanau 2015 (B.1) has them; input matrices
        are uniform after Glorot 2010. Everything else follows transformers: normal with `config.initializer_range`,
        norms one, biases zero.
        """
        super()._init_weights(module)
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

    def save_pretrained(self, save_directory, *args, include_code: bool = True, **kwargs):
        """Save weights, configuration, generation configuration and, by default, the code that reads them.

        Args:
            save_directory: Folder, made if it does not exist.
            *args: As in transformers.
            include_code: Whether to copy the modeling files beside the weights and name them in the configuration's
                `auto_map`, so that the folder opens without this package (with `trust_remote_code=True`). False for
                models that the installed package opens.
            **kwargs: As in transformers.
        """
        auto_classes = getattr(sys.modules[type(self).__module__], "AUTO_CLASSES", {})
        before = getattr(self.config, "auto_map", None)
        if not include_code:
            _set_auto_map(self.config, None)
        elif auto_classes:
            _set_auto_map(self.config, _auto_map(type(self.config), auto_classes))
        try:
            super().save_pretrained(save_directory, *args, **kwargs)
        finally:
            _set_auto_map(self.config, before)
        if include_code and auto_classes and kwargs.get("is_main_process", True):
            custom_object_save(self, save_directory)


def _set_auto_map(config: PreTrainedConfig, auto_map: dict[str, str] | None) -> None:
    """Write the table into the configuration, or take it out."""
    vars(config).pop("auto_map", None)
    if auto_map is not None:
        config.auto_map = auto_map


def _auto_map(config_class: type, auto_classes: dict[str, type]) -> dict[str, str]:
    """Return the table from Auto class to "file.Class" that the Hub reads."""
    classes = {"AutoConfig": config_class, **auto_classes}
    return {auto: f"{cls.__module__.split('.')[-1]}.{cls.__name__}" for auto, cls in classes.items()}
