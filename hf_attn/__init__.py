# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Attention models from scratch, for Hugging Face: every family on one equation.

Importing the package registers its families with transformers' Auto classes. The equation is `hf_attn.attend`
(models/attention.py).
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .models.attention import attend, run_attention
from .registry import FAMILIES, register_families

if TYPE_CHECKING:
    from . import data, evaluation, hub, inference, studies, training, visualization
    from .inference import Translation, Translator, score, translate

__version__ = "0.1.0"

_SUBPACKAGES = ("data", "evaluation", "hub", "inference", "studies", "training", "visualization")
_FROM_INFERENCE = ("Translation", "Translator", "score", "translate")

__all__ = [
    "FAMILIES",
    "Translation",
    "Translator",
    "attend",
    "data",
    "evaluation",
    "hub",
    "inference",
    "register_families",
    "run_attention",
    "score",
    "studies",
    "training",
    "translate",
    "visualization",
]


def __getattr__(name: str):
    """Import what is not needed to open a model when it is first asked for."""
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    if name in _FROM_INFERENCE:
        return getattr(import_module(".inference", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_families()
