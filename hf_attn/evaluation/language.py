"""Measure language models: perplexity of a piece and of a word, right guesses, and replaced pieces found.

    perplexity          exp(-sum of log P(piece | what the model sees) / number of pieces), ends of texts included
    word perplexity     the same sum divided by the number of words, so that tokenizers do not matter
    pseudo-perplexity   each piece in turn masked, all others seen: Salazar et al. 2020 (arXiv 1910.14659), eq. 2-3

A word is what `split_words` cuts, punctuation marks included, and the end of each text is one more. A perplexity of
masked pieces and a pseudo-perplexity are comparable among masked language models alone: they see what comes after.

A measure of a batch is a tensor (batch, sums), one row for each text: sums are added over all batches and divided once.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..models.heads import IGNORED
from .likelihood import sequence_log_probs


def _guesses(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum up each row: log-probability, labels, right guesses; (batch, 3) in float64."""
    log_probs, counts = sequence_log_probs(logits, labels)
    right = ((logits.argmax(dim=-1) == labels) & (labels != IGNORED)).sum(dim=1)
    return torch.stack([log_probs, counts.double(), right.double()], dim=1)


def measure_causal(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    """Measure how well each piece is predicted from those before it.

    Args:
        model: A causal language model.
        batch: Its arguments; ``labels`` (batch, length) are the ids themselves, -100 where nothing is predicted.

    Returns:
        (batch, 3): log-probability, predicted pieces, right guesses.
    """
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return _guesses(model(**inputs).logits[:, :-1], batch["labels"][:, 1:])


def measure_masked(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    """Measure how well masked pieces are predicted; arguments and result as of `measure_causal`, but nothing shifts."""
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    return _guesses(model(**inputs).logits, batch["labels"])


def measure_replaced(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    """Measure generator and discriminator of ELECTRA.

    Args:
        model: A `ReplacedTokenPretraining`.
        batch: Its arguments.

    Returns:
        (batch, 8): of the generator as `measure_masked`; of the discriminator the sum of its losses, the judged pieces,
        those judged rightly, the replaced ones, and the replaced ones found.
    """
    output = model(**batch)
    labels, real = batch["labels"], batch["attention_mask"].bool()
    full = torch.zeros(*labels.shape, output.generator_logits.shape[-1], device=labels.device)
    full[labels != IGNORED] = output.generator_logits.float()
    said, replaced = output.logits.float(), output.replaced
    losses = nn.functional.binary_cross_entropy_with_logits(said, replaced.float(), reduction="none")
    right, found = ((said > 0) == replaced) & real, (said > 0) & replaced
    columns = [losses.double() * real, real, right, replaced, found]
    return torch.cat([_guesses(full, labels), torch.stack([column.double().sum(1) for column in columns], dim=1)], 1)


def perplexities(sums: Sequence[float], words: int | None = None) -> dict[str, float]:
    """Turn the sums of a measure over a corpus into numbers.

    Args:
        sums: Log-probability, pieces, right guesses.
        words: Words of the corpus; None where not everything is predicted.

    Returns:
        ``loss`` (nats a piece), ``perplexity``, ``accuracy``, ``pieces``, and with words ``word_perplexity``.

    Raises:
        ValueError: If nothing was predicted.
    """
    log_prob, pieces, right = map(float, sums)
    if not pieces:
        raise ValueError("nothing was predicted: the texts are too short or too few")
    numbers = {"loss": -log_prob / pieces, "perplexity": _exp(-log_prob / pieces), "accuracy": right / pieces}
    numbers["pieces"] = int(pieces)
    return numbers | ({} if words is None else {"word_perplexity": _exp(-log_prob / words), "words": words})


def replaced_numbers(sums: Sequence[float]) -> dict[str, float]:
    """Turn the sums of `measure_replaced` over a corpus into numbers: ``loss`` is the discriminator's, for each piece;
    ``accuracy``, and ``recall`` of the replaced pieces are its, and the generator's numbers have its name."""
    loss, judged, right, replaced, found = map(float, sums[3:])
    numbers = {"loss": loss / judged, "accuracy": right / judged, "replaced": replaced / judged}
    numbers["recall"] = found / max(replaced, 1)
    return numbers | {f"generator_{name}": value for name, value in perplexities(sums[:3]).items()}


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


@torch.no_grad()
def pseudo_log_probs(
    model: nn.Module, ids: Sequence[int], mask_token_id: int, special_ids: Sequence[int], batch_size: int = 64
) -> list[float]:
    """Mask each piece of a row in turn and compute its log-probability given all the others.

    Args:
        model: A masked language model.
        ids: One row, special tokens included.
        mask_token_id: The mask.
        special_ids: What is not masked.
        batch_size: How many masked copies are read at once.

    Returns:
        One number for each piece that is not special.
    """
    device = next(model.parameters()).device
    row = torch.tensor(list(ids), device=device)
    places = [place for place, token in enumerate(ids) if token not in set(special_ids)]
    found: list[float] = []
    for start in range(0, len(places), batch_size):
        chosen = torch.tensor(places[start : start + batch_size], device=device)
        numbers = torch.arange(len(chosen), device=device)
        copies = row.repeat(len(chosen), 1)
        copies[numbers, chosen] = mask_token_id
        logits = model(input_ids=copies, attention_mask=torch.ones_like(copies)).logits[numbers, chosen]
        found += logits.double().log_softmax(dim=-1)[numbers, row[chosen]].tolist()
    return found
