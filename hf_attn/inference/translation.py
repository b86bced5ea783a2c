"""What a translation is: its text, its pieces, their log-probabilities, and the attention weights behind them.

`Translation.alignment` turns the weights of pieces into weights of words. With T the matrix that averages the pieces of
each target word and S the one that adds up the pieces of each source word,

    word_weights = T @ weights @ S        rows of T sum to 1, rows of S sum to 1, so rows of the result sum to 1

Which weights stand for target piece i, and how, is the method:

    weights             row i: the step that produced the piece (Bahdanau 2015, figure 3)
    shifted             row i + 1: the step that reads the piece (Chen et al. 2020, arXiv 2004.14837; Kobayashi's AWI)
    value_norm          row i, each weight times the norm of its value behind the projections (Kobayashi et al. 2020,
                        arXiv 2004.10102), divided by their sum so that rows sum to 1
    shifted_value_norm  the same of row i + 1 (Kobayashi et al. 2020)

Which is right for a model has to be measured (`hf_attn/evaluation/alignment_table.py`). The step after knows the word,
and is the better one in the deep Transformers of these papers or where it was taught to align; in shallow ones, and in
Bahdanau's network, which attends before it reads, it already looks for the next word.
No step reads the last piece, mostly "</s>": its row stays that of the step that produced it.
Differs from the paper: of several heads the norms are averaged, not the vectors.

Read `hf_attn/data/pieces.py` for the grouping and `translator.py` for where translations come from.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch

from hf_attn.data.pieces import Span, group_pieces
from hf_attn.evaluation import Failure, find_failures
from hf_attn.models.checks import ALIGNMENT_METHODS, is_whole

_NAMES = {
    "weights": "cross-attention weights",
    "value_norm": "cross-attention weights times value norms",
    "shifted": "cross-attention weights of the step that reads the word",
    "shifted_value_norm": "cross-attention weights, times value norms, of the step that reads the word",
}


@dataclass(frozen=True)
class Words:
    """The word-level view of a translation.

    Attributes:
        source_words: words of the source; special pieces such as "</s>" are words of their own.
        target_words: words of the target.
        source_pieces: for each source word the indices of its pieces in `source_tokens`.
        target_pieces: for each target word the indices of its pieces in `target_tokens`.
    """

    source_words: list[str]
    target_words: list[str]
    source_pieces: list[list[int]]
    target_pieces: list[list[int]]

    def merge(self, weights: torch.Tensor) -> torch.Tensor:
        """Turn weights of pieces into weights of words, by the equation at the top of this file.

        Args:
            weights: (target pieces, source pieces)

        Returns:
            (target words, source words)
        """
        average_targets, add_sources = self._matrices
        return average_targets @ weights @ add_sources

    @cached_property
    def _matrices(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The matrices T and S."""
        of_target, of_source = _membership(self.target_pieces), _membership(self.source_pieces)
        # a source piece that covers several words is divided among them
        return (of_target / of_target.sum(dim=0)).T, of_source / of_source.sum(dim=1, keepdim=True)


@dataclass(frozen=True, eq=False)
class Alignment:
    """An attention matrix with its labels.

    Attributes:
        weights: (targets, sources), float32; every row sums to 1.
        target_words: labels of the rows.
        source_words: labels of the columns.
        description: which attention this is, e.g. "cross-attention weights, layer 3 of 3, mean of 4 heads".
    """

    weights: torch.Tensor
    target_words: list[str]
    source_words: list[str]
    description: str


@dataclass(eq=False)
class Translation:
    """One translated (or scored) line.

    Attributes:
        source: the line as it was given.
        text: its translation; for a scored target, the target as it was given.
        source_tokens: readable pieces of the source, "</s>" included.
        target_tokens: readable pieces of the target, "</s>" included where the model produced it.
        token_log_probs: log-probability of each target piece given the source and the pieces before it.
        score: sum of `token_log_probs` / number of target pieces ** length_penalty.
        truncated: whether the source was cut to what the model takes, or the output stopped at `max_new_tokens`.
        cross_attentions: (layers, heads, target pieces, source pieces), float32 on CPU; row i is the step that produced
            target piece i. None where the model has no such attention or it was not asked for.
        encoder_attentions: (layers, heads, source pieces, source pieces), the same.
        decoder_attentions: (layers, heads, target pieces, target pieces), the same; the columns are the decoder's
            inputs: column 0 is the start piece, column i is target piece i - 1.
        value_norms: (layers, heads, source pieces), how much a source piece adds to the output of a cross-attention
            head where all the weight is on it. None where the model does not say or weights were not asked for.
        alignment_method: the method by which the model recommends to read word alignments.
        alignment_layer: the layer it recommends, counted from 0; None for the last.
        alignment_heads: the heads of that layer it recommends, counted from 0; None for all.
        segments: one translation for each line of a source of several lines, else empty.
        source_spans: for each source piece the (start, end) characters it covers in the NFC form of `source`; None for
            a special piece.
        target_spans: for each target piece the characters it covers in the NFC form of `text`, the same.
        source_ids: the id of each source piece.
        target_ids: the id of each target piece.
    """

    source: str
    text: str
    source_tokens: list[str]
    target_tokens: list[str]
    token_log_probs: list[float]
    score: float
    truncated: bool = False
    cross_attentions: torch.Tensor | None = field(default=None, repr=False)
    encoder_attentions: torch.Tensor | None = field(default=None, repr=False)
    decoder_attentions: torch.Tensor | None = field(default=None, repr=False)
    value_norms: torch.Tensor | None = field(default=None, repr=False)
    alignment_method: str = field(default="weights", repr=False)
    alignment_layer: int | None = field(default=None, repr=False)
    alignment_heads: list[int] | None = field(default=None, repr=False)
    segments: list["Translation"] = field(default_factory=list, repr=False)
    source_spans: list[Span | None] = field(default_factory=list, repr=False)
    target_spans: list[Span | None] = field(default_factory=list, repr=False)
    source_ids: list[int] = field(default_factory=list, repr=False)
    target_ids: list[int] = field(default_factory=list, repr=False)

    def words(self) -> Words:
        """Group the pieces into words.

        Returns:
            Both sentences as words, with the pieces that each covers. Joined, the words are the text in NFC without its
            white space (and with the special pieces).

        Raises:
            ValueError: if the source has several lines.
        """
        self._require_one_line()
        source_words, source_pieces = group_pieces(self.source, self.source_tokens, self.source_spans)
        target_words, target_pieces = group_pieces(self.text, self.target_tokens, self.target_spans)
        return Words(source_words, target_words, source_pieces, target_pieces)

    def alignment(
        self,
        layer: int | None = None,
        heads: int | list[int] | None = None,
        words: bool = True,
        method: str | None = None,
    ) -> Alignment:
        """Give the cross-attention between target and source as one matrix.

        Args:
            layer: decoder layer, counted from 0; None is the one that the model recommends, or else the last.
            heads: one head or several to average, counted from 0; None takes those that the model recommends for this
                layer, or else all.
            words: merge pieces into words: sum over the pieces of a source word, mean over those of a target word.
            method: "weights", "value_norm", "shifted" or "shifted_value_norm", see the top of this file; None is the
                one that the model recommends.

        Returns:
            The weights (targets, sources) with their labels. The description counts layers and heads from 1.

        Raises:
            ValueError: if there is no cross-attention, no such layer, head or method, no norms for a method that needs
                them, or the source has several lines or none.
        """
        self._require_one_line()
        if not self.target_tokens:
            raise ValueError("an empty source has no alignment: nothing was translated")
        if self.cross_attentions is None:
            raise ValueError(
                "this translation has no cross-attention: the model has none, or return_attention=False was given"
            )
        method = self.alignment_method if method is None else method
        if method not in ALIGNMENT_METHODS:
            raise ValueError(f"method is {method!r}; it must be one of {', '.join(ALIGNMENT_METHODS)}")
        layers, head_count = self.cross_attentions.shape[:2]
        recommended = layers - 1 if self.alignment_layer is None else self.alignment_layer
        layer = recommended if layer is None else _checked_index("layer", layer, layers)
        if heads is None and layer == recommended:
            heads = self.alignment_heads
        chosen = chosen_heads(heads, head_count)
        norms = None if self.value_norms is None else self.value_norms[layer, chosen]
        weights = _read(method, self.cross_attentions[layer, chosen], norms)  # (targets, sources)
        description = f"{_NAMES[method]}, layer {layer + 1} of {layers}, {describe_heads(chosen, head_count)}"
        if not words:
            return Alignment(weights, self.target_tokens, self.source_tokens, description)
        view = self.words()
        return Alignment(view.merge(weights), view.target_words, view.source_words, description)

    def failures(self, source_lang: str | None = None, target_lang: str | None = None) -> list[Failure]:
        """Find what looks plainly wrong with the translation: see `hf_attn.evaluation.find_failures`.

        Args:
            source_lang: language code of the source, such as "en"; None leaves out what needs it.
            target_lang: the same of the translation.

        Returns:
            The failures; of a source of several lines those of all lines.
        """
        if self.segments:
            return [failure for segment in self.segments for failure in segment.failures(source_lang, target_lang)]
        langs = {"source_lang": source_lang, "target_lang": target_lang}
        return find_failures(self.source, self.text, **langs, truncated=self.truncated)

    def to_dict(self) -> dict:
        """Give everything but the attention weights and spans as plain values that `json` can write."""
        return {
            "source": self.source,
            "text": self.text,
            "source_tokens": self.source_tokens,
            "target_tokens": self.target_tokens,
            "token_log_probs": self.token_log_probs,
            "score": self.score,
            "truncated": self.truncated,
            "segments": [segment.to_dict() for segment in self.segments],
        }

    def _require_one_line(self) -> None:
        if self.segments:
            raise ValueError(
                f"this translation has {len(self.segments)} lines: ask each of `.segments` for its words or alignment"
            )


def _read(method: str, weights: torch.Tensor, norms: torch.Tensor | None) -> torch.Tensor:
    """Read weights (heads, targets, sources) and norms (heads, sources) by a method, into (targets, sources)."""
    if method.endswith("value_norm"):
        if norms is None:
            raise ValueError(f"method is {method!r}; this model does not give the norms of its values")
        weights = (weights * norms[:, None]).mean(dim=0)
        weights = weights / weights.sum(dim=-1, keepdim=True)
    else:
        weights = weights.mean(dim=0)
    if method.startswith("shifted"):
        weights = torch.cat([weights[1:], weights[-1:]])  # no step reads the last piece
    return weights


def _membership(pieces_of_word: list[list[int]]) -> torch.Tensor:
    """Tell which piece belongs to which word: (pieces, words), 1 where it does. Every piece belongs to some word."""
    rows = [[0.0] * len(pieces_of_word) for _ in range(max(map(max, pieces_of_word)) + 1)]
    for word, pieces in enumerate(pieces_of_word):
        for piece in pieces:
            rows[piece][word] = 1.0
    return torch.tensor(rows)


def _checked_index(name: str, index: int, count: int) -> int:
    if not is_whole(index) or index >= count:
        raise ValueError(f"{name} is {index!r}; it must be a whole number from 0 to {count - 1}")
    return int(index)


def chosen_heads(heads: int | list[int] | None, count: int) -> list[int]:
    """Give the heads that are averaged, all of them for None; ValueError names one that is not there."""
    if heads is None:
        return list(range(count))
    if isinstance(heads, (list, tuple)):
        if not heads:
            raise ValueError("heads is an empty list; give at least one head, or None for the mean of all")
        return [_checked_index("heads", head, count) for head in heads]
    return [_checked_index("heads", heads, count)]


def describe_heads(chosen: list[int], count: int) -> str:
    """Say which heads are averaged, counted from 1."""
    if len(chosen) == 1:
        return f"head {chosen[0] + 1} of {count}"
    if chosen == list(range(count)):
        return f"mean of {count} heads"
    return f"mean of heads {', '.join(str(head + 1) for head in chosen)} of {count}"
