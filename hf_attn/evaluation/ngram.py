"""What a language model must beat: counted pieces, Kneser-Ney smoothed, and the commonest piece between two others.

    P(w | h) = max(c(h w) - d, 0) / c(h)  +  d * kinds(h .) / c(h) * P(w | h without its first piece)

c counts, for the longest histories, how often pieces follow each other; for shorter ones, after how many different
pieces; kinds(h .) is how many different pieces follow h, and below single pieces lies the uniform distribution. The
discount d of an order is n1 / (n1 + 2 n2), of the numbers of sequences with count 1 and 2; to each one is added, so
that d is neither 0 nor 1.

Papers: Kneser and Ney 1995; the interpolated form is that of Chen and Goodman 1999, section 4.1.6; discounts of Ney et
al. 1994. Next: `language.py`, which measures models of neural networks on the same pieces.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..models.heads import IGNORED
from .language import perplexities

Pieces = tuple[int, ...]


class KneserNey:
    """An n-gram model of rows of pieces.

    Args:
        rows: Rows of ids to count. The first of each is given, such as `<s>`, and not counted by itself.
        vocab_size: Number of ids.
        order: Pieces in the longest sequences that are counted.

    Raises:
        ValueError: If nothing is to be counted, or the order is less than 1.
    """

    def __init__(self, rows: Iterable[Sequence[int]], vocab_size: int, order: int = 3):
        if order < 1:
            raise ValueError(f"order must be 1 or more, got {order}")
        self.vocab_size = vocab_size
        self.order = order
        seen: dict[int, Counter[Pieces]] = {length: Counter() for length in range(1, order + 1)}
        for row in rows:
            for end in range(2, len(row) + 1):
                pieces = tuple(row[max(end - order, 0) : end])
                seen[len(pieces)][pieces] += 1  # shorter than the order at the beginning of a row
        if not any(seen.values()):
            raise ValueError("rows must hold at least one row of two pieces")
        self.counts: dict[Pieces, int] = {}
        self.totals: Counter[Pieces] = Counter()
        self.kinds: Counter[Pieces] = Counter()
        self.discounts = [0.0] * (order + 1)  # by length
        for length in range(order, 0, -1):
            counts = seen[length]
            for pieces, count in counts.items():
                self.totals[pieces[:-1]] += count
                self.kinds[pieces[:-1]] += 1
            once, twice = (1 + sum(count == number for count in counts.values()) for number in (1, 2))
            self.discounts[length] = once / (once + 2 * twice)
            self.counts.update(counts)
            if length > 1:
                seen[length - 1].update(pieces[1:] for pieces in counts)  # after how many different pieces

    def probability(self, history: Sequence[int], piece: int) -> float:
        """Compute P(piece | history), of which the last pieces count, as many as were counted."""
        history = tuple(history)[max(len(history) - self.order + 1, 0) :]
        found = 1 / self.vocab_size
        for start in range(len(history), -1, -1):  # from no history to the longest
            last = history[start:]
            total = self.totals.get(last, 0)
            if total:
                discount = self.discounts[len(last) + 1]
                own = max(self.counts.get((*last, piece), 0) - discount, 0.0)
                found = (own + discount * self.kinds[last] * found) / total
        return found

    def row_log_prob(self, row: Sequence[int]) -> float:
        """Sum the log-probabilities of a row's pieces, the first being given."""
        return math.fsum(math.log(self.probability(row[:place], row[place])) for place in range(1, len(row)))


class Neighbours:
    """Guess a hidden piece from the one before and the one after it: the commonest between the two; if they never stood
    so, the commonest after the one before; else the commonest of all.

    Args:
        rows: Rows of ids to count.
        special_ids: What is never hidden.
    """

    def __init__(self, rows: Iterable[Sequence[int]], special_ids: Iterable[int]):
        special = set(special_ids)
        counts: defaultdict[Pieces, Counter[int]] = defaultdict(Counter)
        for row in rows:
            for place, piece in enumerate(row):
                if piece not in special:
                    before, after = tuple(row[max(place - 1, 0) : place]), tuple(row[place + 1 : place + 2])
                    for known in (before + after, before, ()):
                        counts[known][piece] += 1
        self.best = {known: max(found, key=lambda piece: (found[piece], -piece)) for known, found in counts.items()}

    def guess(self, before: int, after: int) -> int:
        """Guess the piece between two."""
        return self.best.get((before, after), self.best.get((before,), self.best[()]))


def causal_floors(
    train_rows: Sequence[Sequence[int]], rows: Sequence[Sequence[int]], vocab_size: int, words: int, order: int = 5
) -> dict[str, float]:
    """Measure counted models on what a causal language model is measured on.

    Args:
        train_rows: Rows to count.
        rows: Rows to measure on, each with a first piece that is given.
        vocab_size: Number of ids.
        words: Words in these rows.
        order: Pieces in the longest sequences of the longer model.

    Returns:
        ``unigram_perplexity`` and ``<order>gram_perplexity``, of a piece and, with ``word_``, of a word.
    """
    found = {}
    pieces = sum(len(row) - 1 for row in rows)
    for name, length in (("unigram", 1), (f"{order}gram", order)):
        model = KneserNey(train_rows, vocab_size, length)
        numbers = perplexities([sum(map(model.row_log_prob, rows)), pieces, 0], words)
        found |= {f"{name}_{kind}": numbers[kind] for kind in ("perplexity", "word_perplexity")}
    return found


def masked_floors(
    train_rows: Iterable[Sequence[int]], batches: Iterable[dict[str, Any]], special_ids: Iterable[int]
) -> dict[str, float]:
    """Measure guesses at masked places, for which the true neighbours are shown, also where they are masked too.

    Args:
        train_rows: Rows to count.
        batches: Of a `MaskingCollator`, each row with a special token at its beginning.
        special_ids: What is never masked.

    Returns:
        ``commonest_accuracy`` of always guessing the commonest piece, and ``neighbours_accuracy``.
    """
    guesses = Neighbours(train_rows, special_ids)
    masked = commonest = right = 0
    for batch in batches:
        true = batch["labels"].where(batch["labels"] != IGNORED, batch["input_ids"]).tolist()
        for row, place in (batch["labels"] != IGNORED).nonzero().tolist():
            masked += 1
            commonest += guesses.best[()] == true[row][place]
            after = true[row][place + 1] if place + 1 < len(true[row]) else -1  # a text that goes on in another row
            right += guesses.guess(true[row][place - 1], after) == true[row][place]
    return {"commonest_accuracy": commonest / max(masked, 1), "neighbours_accuracy": right / max(masked, 1)}
