# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the metric scripts share: columns are checked before `evaluate` stores them.

`evaluate` guesses the format from the first entry and keeps half a batch when it fails; checking first avoids both.
"""

from __future__ import annotations

from typing import Any

import evaluate


class CheckedMetric(evaluate.Metric):
    """A metric whose columns have equal lengths, at least one row, and the form that `_clean` gives them."""

    def _clean(self, columns: dict[str, Any]) -> dict[str, list]:
        """Return the columns in the form declared in `_info`; raise `ValueError` where that is impossible."""
        raise NotImplementedError

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add a batch of sentences.

        Args:
            predictions: one entry a sentence, if the metric has such a column.
            references: one entry a sentence, if the metric has such a column.
            **kwargs: the metric's other columns.

        Raises:
            ValueError: a column is missing, empty, of another length than the others, or not what the metric compares.
        """
        given = {"predictions": predictions, "references": references, **kwargs}
        names = list(self._feature_names())
        missing = [name for name in names if given.get(name) is None]
        if missing:
            raise ValueError(f"{', '.join(missing)}: missing; this metric compares {', '.join(names)}")
        lengths = {name: len(given[name]) for name in names}
        if len(set(lengths.values())) != 1 or 0 in lengths.values():
            counts = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ValueError(f"number of entries: {counts}; give as many of each, at least one")
        super().add_batch(**{**kwargs, **self._clean({name: given[name] for name in names})})

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one sentence.

        Args:
            prediction: the entry of `predictions`, if the metric has such a column.
            reference: the entry of `references`, if the metric has such a column.
            **kwargs: the entries of the metric's other columns.

        Raises:
            ValueError: as `add_batch`.
        """
        entries = {"predictions": prediction, "references": reference, **kwargs}
        self.add_batch(**{name: [entry] for name, entry in entries.items() if entry is not None})


class TranslationMetric(CheckedMetric):
    """A metric of texts: `predictions` are texts, `references` texts or lists of texts."""

    def _clean(self, columns: dict[str, Any]) -> dict[str, list]:
        from hf_attn.evaluation.translation import group_references

        references = group_references(columns["predictions"], columns["references"])
        return {"predictions": list(columns["predictions"]), "references": references}
