"""Train an encoder so that texts that belong together have near vectors.

    loss = -log( exp(cos(a_i, b_i) / temperature) / sum_j exp(cos(a_i, b_j) / temperature) )

b_i belongs to a_i, and the other b_j of the batch do not. Where texts come without partners, a text is its own: dropout
gives it another vector the second time (SimCSE: Gao 2021, arXiv 2104.08821, eq. 1 and section 3). Partners can be the
two parts of a text, as in the inverse cloze task (Lee 2019, 1906.00300, section 5).
Read next: ``inference/retrieval.py``, which uses the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F
from transformers import PreTrainedTokenizerBase

from ..models.heads import check_labels, pool
from .batching import ResumableTrainer


def in_batch_loss(first: torch.Tensor, second: torch.Tensor, temperature: float = 0.05) -> torch.Tensor:
    """Average -log of the share of its partner among all second texts, for each first text.

    Args:
        first: (batch, hidden_size)
        second: the same; row i belongs to row i.
        temperature: What cosines are divided by.

    Returns:
        A number.

    Raises:
        ValueError: If the shapes differ, or the temperature is not positive.
    """
    check_labels(second, tuple(first.shape), "second")
    if not temperature > 0:
        raise ValueError(f"temperature={temperature} must be more than 0")
    cosines = F.normalize(first.float(), dim=-1) @ F.normalize(second.float(), dim=-1).T  # (batch, batch)
    return F.cross_entropy(cosines / temperature, torch.arange(len(first), device=first.device))


def halves(text: str) -> tuple[str, str]:
    """Cut a text in two after half of its words, rounded down."""
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


class PairCollator:
    """Make batches of pairs of texts.

    Args:
        tokenizer: Of the model.
        max_length: Longer texts are cut to so many tokens.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_length: int = 128):
        self.tokenizer = tokenizer
        self.max_length = max_length

    def __call__(self, rows: Sequence[dict[str, str]]) -> dict[str, Any]:
        """Make a batch of rows with "first" and "second": what the model takes, for the first texts and then for the
        second, padded together."""
        texts = [row[side] for side in ("first", "second") for row in rows]
        return dict(
            self.tokenizer(texts, padding=True, truncation=True, max_length=self.max_length, return_tensors="pt")
        )


class ContrastiveTrainer(ResumableTrainer):
    """A Trainer of encoders on pairs of texts: a dataset with the columns "first" and "second".

    Args:
        *args: As for ``Trainer``; the data collator is a `PairCollator`.
        pooling: How the states of a text become its vector.
        temperature: See `in_batch_loss`.
        **kwargs: As for ``Trainer``.
    """

    def __init__(self, *args: Any, pooling: str = "mean", temperature: float = 0.05, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.pooling = pooling
        self.temperature = temperature
        self.model_accepts_loss_kwargs = False  # negatives are those of the batch: accumulated batches are averaged

    def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **kwargs: Any) -> Any:
        """Compute the loss of a batch; arguments and result as in the base class."""
        outputs = model(**inputs, return_dict=True)
        vectors = pool(outputs.last_hidden_state, inputs["attention_mask"].bool(), self.pooling)
        first, second = vectors.chunk(2)
        loss = in_batch_loss(first, second, self.temperature)
        return (loss, outputs) if return_outputs else loss
