# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Load the package's `evaluate` metrics from the installed folder, with no network."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import evaluate

METRICS = {
    "bleu": "HfAttnBleu",
    "chrf": "HfAttnChrf",
    "gleu": "HfAttnGleu",
    "meteor": "HfAttnMeteor",
    "bertscore": "HfAttnBertscore",
    "perplexity": "HfAttnPerplexity",
    "alignment_error_rate": "HfAttnAlignmentErrorRate",
}


def _script_name(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"name is {name!r}; the metrics of this package are {', '.join(METRICS)}")
    return f"hfattn_{name}"


def metric_path(name: str) -> str:
    """Return the folder to give to `evaluate.load`.

    Args:
        name: one of `METRICS`.

    Returns:
        The absolute path of a folder that holds a script of the same name.

    Raises:
        ValueError: no metric has this name.
    """
    return str(Path(__file__).resolve().parent / "metrics" / _script_name(name))


def load_metric(name: str, **kwargs: Any) -> evaluate.Metric:
    """Load a metric of this package.

    Args:
        name: one of `METRICS`.
        **kwargs: arguments of `evaluate.Metric`, for example `experiment_id` or `keep_in_memory`.

    Returns:
        A metric: call `compute`, or `add_batch` for each batch and `compute` at the end.

    Raises:
        ValueError: no metric has this name.
        ImportError: `evaluate`, `sacrebleu` or `nltk` is not installed.
    """
    script = _script_name(name)
    module = importlib.import_module(f".metrics.{script}.{script}", __package__)
    return getattr(module, METRICS[name])(**kwargs)
