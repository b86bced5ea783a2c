"""Teach one attention head to align words while the whole model learns to translate.

    loss = translation loss + weight * alignment loss
    alignment loss = - sum over target pieces i, source pieces j of links[i, j] log attention[i, j] / target pieces

``links[i]`` is spread evenly over the source pieces of the words that the word of piece i is linked to; a target piece
without a link has no loss. ``attention`` is one head of one layer of cross-attention, or the attention of a recurrent
network. Row i is the step that produces piece i, which has not seen it; where the model's config says "shifted", the
step that reads it (Chen et al. 2020, arXiv 2004.14837).

Paper: Garg et al. 2019 (arXiv 1909.02074), its multi-task learning, with weight 0.05 and the layer before the last.
Differs from the paper: the supervised step never sees the words behind it, for which they run the decoder twice.
The other objective, the reward of what a model samples, is in `reinforcement.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..data.pieces import pieces_of_words
from .batching import TokenBatchTrainer
from .reinforcement import ReinforcementTrainer

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = [
    "AlignmentCollator",
    "AlignmentSupervision",
    "AlignmentTrainer",
    "ReinforcementTrainer",
    "add_links",
    "alignment_loss",
    "supervise_alignment",
]

SUPERVISED_METHODS = ("weights", "shifted")
COLUMN = "alignment"  # of a training set: the linked pieces of each pair, [target piece, source piece]


@dataclass(frozen=True)
class AlignmentSupervision:
    """Which head learns to align, and how much that counts.

    Attributes:
        layer: Decoder layer, counted from 0.
        head: Its head, counted from 0.
        shifted: Whether the step that reads a piece is taught, not the one that produces it.
        weight: Weight of the alignment loss.
    """

    layer: int
    head: int
    shifted: bool
    weight: float


def supervise_alignment(config: PreTrainedConfig, weight: float = 0.05) -> AlignmentSupervision:
    """Choose the head to teach, and write it into the model's config, so that ``Translation.alignment`` reads it.

    It is the head that ``alignment_layer`` and ``alignment_heads`` of the config name; where they are None, the first
    head of the layer before the last (or of the only one). ``alignment_method`` says which step is taught.

    Args:
        config: The config of a model of this package; changed.
        weight: Weight of the alignment loss.

    Raises:
        ValueError: If the model has no attention to the source or is not of this package, or the config names several
            heads or a method that cannot be taught.
    """
    method = getattr(config, "alignment_method", None)
    if method is None or getattr(config, "attention_type", "") == "none":
        raise ValueError("alignment_supervision needs a model of this package with attention to the source")
    if method not in SUPERVISED_METHODS:
        raise ValueError(f"alignment_method={method!r} cannot be supervised; choose {' or '.join(SUPERVISED_METHODS)}")
    layers = 1 if config.model_type == "attn-rnn" else config.decoder_layers  # a recurrent network attends once a step
    layer = max(layers - 2, 0) if config.alignment_layer is None else config.alignment_layer
    heads = [0] if config.alignment_heads is None else config.alignment_heads
    if len(heads) != 1:
        raise ValueError(f"alignment_heads={heads} has several heads; one can be supervised")
    config.alignment_layer, config.alignment_heads = layer, heads
    return AlignmentSupervision(layer, heads[0], method == "shifted", weight)


def add_links(
    tokenized: "Dataset",
    texts: Iterable[tuple[str, str]],
    links: Iterable[Iterable[Sequence[int]]],
    tokenizer: PreTrainedTokenizerBase,
    target_tokenizer: PreTrainedTokenizerBase | None = None,
) -> "Dataset":
    """Add word links to a tokenized training set, as links of pieces; those of words that were cut off fall away.

    Args:
        tokenized: With ``input_ids`` and ``labels``, as from ``tokenize_pairs``.
        texts: The source and the target of each row.
        links: For each row pairs (source word, target word), counting the words of ``hf_attn.data.split_words``.
        tokenizer: The joint tokenizer, or the source's.
        target_tokenizer: The target's where the vocabularies are separate.

    Returns:
        The set with the column ``alignment``: for each row a list of [target piece, source piece].
    """
    from datasets import List, Value

    target_tokenizer = target_tokenizer or tokenizer
    column = []
    rows = zip(tokenized["input_ids"], tokenized["labels"], texts, links, strict=True)
    for input_ids, labels, (source, target), row_links in rows:
        sources = pieces_of_words(tokenizer, source, input_ids)
        targets = pieces_of_words(target_tokenizer, target, labels)
        inside = [(s, t) for s, t in row_links if s < len(sources) and t < len(targets)]
        column.append(sorted({(i, j) for s, t in inside for i in targets[t] for j in sources[s]}))
    return tokenized.add_column(COLUMN, column, feature=List(List(Value("int32"))))


class AlignmentCollator:
    """A collator that also makes the links of a batch a matrix, (batch, target_len, source_len).

    The links of each target piece sum to 1, or to 0 where it has none.

    Args:
        collator: Makes a batch with ``input_ids`` and ``labels`` of everything else.
    """

    def __init__(self, collator: Any):
        self.collator = collator

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch; without links in the features, the other collator's."""
        batch = self.collator([{name: row[name] for name in row if name != COLUMN} for row in features])
        if COLUMN not in features[0]:
            return batch
        links = torch.zeros(len(features), batch["labels"].shape[1], batch["input_ids"].shape[1])
        for number, row in enumerate(features):
            for target, source in row[COLUMN]:
                links[number, target, source] = 1.0
        batch[COLUMN] = links / links.sum(dim=-1, keepdim=True).clamp(min=1.0)
        return batch


def alignment_loss(attention: torch.Tensor, links: torch.Tensor, shifted: bool) -> torch.Tensor:
    """Compute - sum over i, j of links[i, j] log attention[i, j], of a whole batch.

    Args:
        attention: One head's weights, (batch, target_len, source_len)
        links: (batch, target_len, source_len)
        shifted: Whether row i + 1 of the attention is compared with row i of the links.

    Returns:
        The sum, in float32; not yet divided by anything.
    """
    if shifted:
        attention, links = attention[:, 1:], links[:, :-1]
    # a weight of 0 (padding, or the smallest that bfloat16 does not hold) has log 0, and 0 * log 0 is no number
    return -(links * attention.float().clamp(min=1e-9).log()).sum()


class AlignmentTrainer(TokenBatchTrainer):
    """A ``TokenBatchTrainer`` whose training set has links: it adds the alignment loss to the loss.

    The sum is divided by the number of target pieces of all accumulated batches, as the translation loss is, so
    gradient accumulation stays exact. Evaluation measures the translation loss alone.

    Args:
        *args: As for ``TokenBatchTrainer``.
        supervision: Which head is taught.
        **kwargs: As for ``TokenBatchTrainer``.
    """

    def __init__(self, *args: Any, supervision: AlignmentSupervision, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.supervision = supervision
        self.data_collator = AlignmentCollator(self.data_collator)

    def _set_signature_columns_if_needed(self) -> None:
        """Keep the links, which the model's forward does not know."""
        super()._set_signature_columns_if_needed()
        self._signature_columns = list({*(self._signature_columns or ()), COLUMN})

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """Add the alignment loss of a batch that has links; arguments and result as in the base class."""
        inputs = dict(inputs)
        links = inputs.pop(COLUMN, None)
        if links is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        pieces = (inputs["labels"] != -100).sum() if num_items_in_batch is None else num_items_in_batch
        inputs["output_attentions"] = True
        result: Any = super().compute_loss(model, inputs, True, num_items_in_batch)
        loss, outputs = result
        attention = outputs["cross_attentions"][self.supervision.layer][:, self.supervision.head]
        aligned = alignment_loss(attention, links, self.supervision.shifted) / pieces
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            aligned = (
                aligned * self.accelerator.num_processes
            )  # `pieces` are those of all processes, which are averaged
        loss = loss + self.supervision.weight * aligned
        return (loss, outputs) if return_outputs else loss
