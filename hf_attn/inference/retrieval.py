"""Find the texts that mean what a question means: one vector for each text, compared by cosine.

    vector = mean of the encoder's states / its length        Reimers 2019 (arXiv 1908.10084), section 3
    score  = vector of the query . vector of the text

Any encoder of this package or of transformers makes the vectors. A pre-trained one compares texts badly until it has
been trained for it: see ``training/contrastive.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer

from ..data.words import is_text
from ..models.checks import check_choice, is_whole
from ..models.heads import POOLINGS, pool


@dataclass(frozen=True)
class Hit:
    """A text that was found: its number in the index, and its cosine with the query."""

    number: int
    text: str
    score: float


class Retriever:
    """Make vectors of texts, keep those of a collection, and find the nearest.

    Args:
        model: Folder, Hub id, or an encoder that is loaded (then give the tokenizer).
        tokenizer: Of the model, if that is loaded.
        pooling: "mean" or "max" of the states, or "cls" for the first.
        max_length: Longer texts are cut to so many tokens.
        device: Where to run; None leaves a loaded model where it is, and takes a GPU for others if there is one.
        trust_remote_code: Whether to run code that comes with a model.

    Raises:
        ValueError: If the pooling is unknown, or a loaded model comes without its tokenizer.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        pooling: str = "mean",
        max_length: int = 128,
        device: str | torch.device | None = None,
        trust_remote_code: bool = False,
    ):
        check_choice("pooling", pooling, POOLINGS)
        if isinstance(model, torch.nn.Module):
            if tokenizer is None:
                raise ValueError("tokenizer is missing: a model that is loaded comes with its tokenizer")
        else:
            tokenizer = tokenizer or AutoTokenizer.from_pretrained(model, trust_remote_code=trust_remote_code)
            model = AutoModel.from_pretrained(model, dtype="float32", trust_remote_code=trust_remote_code)
            device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = (model if device is None else model.to(device)).eval()
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.max_length = max_length
        self.texts: list[str] = []
        self.vectors = torch.empty(0)

    @torch.no_grad()
    def embed(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> torch.Tensor:
        """Make a vector of length 1 of each text.

        Args:
            texts: In any order; those that run together are of similar length.
            batch_size: How many run together.
            progress: Whether to show a bar.

        Returns:
            (texts, hidden_size), float32, on the CPU.

        Raises:
            ValueError: If there are no texts, or one is no string.
        """
        if isinstance(texts, str) or not len(texts) or not all(is_text(text) for text in texts):
            raise ValueError(f"texts must be a list of strings, at least one, got {texts!r}")
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        rows: list[Any] = [None] * len(texts)
        for start in tqdm(range(0, len(order), batch_size), disable=not progress):
            some = order[start : start + batch_size]
            batch = self.tokenizer(
                [texts[number] for number in some],
                padding=True,
                truncation=True,
                max_length=self.max_length,
                return_tensors="pt",
            ).to(self.model.device)
            states = self.model(**batch, return_dict=True).last_hidden_state
            pooled = pool(states, batch["attention_mask"].bool(), self.pooling).float()
            for number, vector in zip(some, F.normalize(pooled, dim=-1).cpu()):
                rows[number] = vector
        return torch.stack(rows)

    def index(self, texts: Sequence[str], *, batch_size: int = 64, progress: bool = False) -> None:
        """Keep the vectors of the texts to search, in place of any kept before; arguments as for `embed`."""
        self.vectors = self.embed(texts, batch_size=batch_size, progress=progress)
        self.texts = list(texts)

    def search(self, queries: str | Sequence[str], k: int = 5) -> Any:
        """Find the texts nearest to a query.

        Args:
            queries: One text, or a list.
            k: How many to find; fewer if there are not as many.

        Returns:
            The hits, nearest first; for a list of queries a list of such lists.

        Raises:
            ValueError: If nothing is indexed, or `k` is no whole number of at least 1.
        """
        if not self.texts:
            raise ValueError("there is nothing to search: call index(texts) first")
        if not is_whole(k, 1):
            raise ValueError(f"k={k!r} must be a whole number of at least 1")
        vectors = self.embed([queries] if isinstance(queries, str) else queries)
        scores, numbers = (vectors @ self.vectors.T).topk(min(k, len(self.texts)), dim=-1)
        found = [
            [Hit(number, self.texts[number], score) for number, score in zip(row.tolist(), their_scores.tolist())]
            for row, their_scores in zip(numbers, scores)
        ]
        return found[0] if isinstance(queries, str) else found
