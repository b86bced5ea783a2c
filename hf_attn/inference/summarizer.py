# torch types every attribute of a module as Tensor | Module:
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportCallIssue=false
"""Summarise a text by its own sentences: BERTSUM.

    read       <s> sentence one </s> <s> sentence two </s> <s> ...     segments 0 and 1 take turns
    sentence   state of its <s> + position among the sentences
    score      w . layers that attend from sentence to sentence

Paper: Liu and Lapata 2019 (arXiv 1908.08345), sections 3.1, 3.2 and, on what is left out because it repeats what is
there, 4.3. Differs from the paper: a single learning rate, for encoder and new layers alike.
Read before: modeling_attn_bert.py (the encoder), ``evaluation/rouge.py`` (what it is taught).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.modeling_outputs import TokenClassifierOutput
from transformers.utils.generic import can_return_tuple

from ..models.checks import is_whole
from ..models.configuration_attn_bert import AttnBertConfig
from ..models.heads import IGNORED, binary_loss
from ..models.masks import AttentionMask
from ..models.modeling_attn_bert import AttnBertModel, AttnBertPreTrainedModel, make_layer, make_norm
from ..models.positions import sinusoidal

SENTENCE_LAYERS = 2  # the paper's best


class AttnBertForExtractiveSummarization(AttnBertPreTrainedModel):
    """Score each sentence of a document as part of its summary.

    Args:
        config: The encoder's configuration; it needs two segments.

    Raises:
        ValueError: If it has not.
    """

    def __init__(self, config: AttnBertConfig):
        super().__init__(config)
        if config.type_vocab_size < 2:
            raise ValueError(f"type_vocab_size={config.type_vocab_size} must be 2 or more: segments take turns")
        self.model = AttnBertModel(config, add_pooler=False)
        self.sentence_layers = nn.ModuleList(make_layer(config) for _ in range(SENTENCE_LAYERS))
        self.final_norm = make_norm(config, config.hidden_size) if config.norm_first else nn.Identity()
        self.classifier = nn.Linear(config.hidden_size, 1)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.LongTensor,
        sentence_positions: torch.LongTensor,
        labels: torch.Tensor | None = None,
        output_attentions: bool = False,
        **kwargs,
    ) -> TokenClassifierOutput:
        """Score the sentences.

        Args:
            input_ids: (batch, length)
            attention_mask: (batch, length), non-zero for real tokens.
            token_type_ids: (batch, length), 0 and 1 by turns of sentences.
            sentence_positions: (batch, sentences), where each sentence begins; -1 where there is none.
            labels: (batch, sentences), 1 for those of the summary, else 0; -100, and no sentence, count for nothing.
            output_attentions: Whether to return the attention weights.
            **kwargs: `num_items_in_batch`, by which the loss is divided instead of the number of labels.

        Returns:
            Loss (if labels are given), logits (batch, sentences), and attentions from sentence to sentence: a tuple
            over layers of (batch, heads, sentences, sentences).
        """
        states = self.model(input_ids, attention_mask, token_type_ids, return_dict=True).last_hidden_state
        real = sentence_positions >= 0
        rows = torch.arange(len(states), device=states.device)[:, None]
        states = states[rows, sentence_positions.clamp(min=0)]  # (batch, sentences, hidden_size)
        order = torch.arange(states.shape[1], device=states.device)
        states = states + sinusoidal(order, states.shape[-1]).to(states.dtype)
        all_weights = ()
        for layer in self.sentence_layers:
            states, weights = layer(
                states,
                mask=AttentionMask(real),
                output_attentions=output_attentions,
                implementation=self.config._attn_implementation,
            )
            all_weights += (weights,)
        logits = self.classifier(self.final_norm(states)).squeeze(-1)
        loss = None if labels is None else binary_loss(logits, labels, real, kwargs.get("num_items_in_batch"))
        return TokenClassifierOutput(loss, logits, attentions=all_weights if output_attentions else None)


def encode_document(
    sentences: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int = 512
) -> dict[str, list[int]]:
    """Turn the sentences of a document into what the model takes.

    Args:
        sentences: In their order.
        tokenizer: With tokens for the beginning and the end of a sentence.
        max_length: Sentences that begin after so many tokens, or end after them, are left out with all that follow.

    Returns:
        `input_ids`, `token_type_ids`, `sentence_positions`.

    Raises:
        ValueError: If there are no sentences, the first is too long, or the tokenizer lacks one of these tokens.
    """
    bos: Any = tokenizer.bos_token_id
    eos: Any = tokenizer.eos_token_id
    if bos is None or eos is None:
        raise ValueError("tokenizer must have a bos and an eos token")
    pieces: Any = tokenizer(list(sentences), add_special_tokens=False)["input_ids"] if len(sentences) else []
    encoded: dict[str, list[int]] = {"input_ids": [], "token_type_ids": [], "sentence_positions": []}
    for number, ids in enumerate(pieces):
        if len(encoded["input_ids"]) + len(ids) + 2 > max_length:
            break
        encoded["sentence_positions"].append(len(encoded["input_ids"]))
        encoded["input_ids"] += [bos, *ids, eos]
        encoded["token_type_ids"] += [number % 2] * (len(ids) + 2)
    if not encoded["input_ids"]:
        raise ValueError(f"sentences must be one at least, the first of less than {max_length} tokens; got {sentences}")
    return encoded


class SummaryCollator:
    """Make batches of documents.

    Args:
        tokenizer: Pads.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer = tokenizer

    def __call__(self, rows: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Pad rows of `encode_document`, which may have `labels`, one for each sentence."""
        fill = {"input_ids": self.tokenizer.pad_token_id or 0, "token_type_ids": 0, "sentence_positions": -1}
        fill |= {"labels": IGNORED} if "labels" in rows[0] else {}
        batch = {
            name: nn.utils.rnn.pad_sequence([torch.tensor(row[name]) for row in rows], True, value)
            for name, value in fill.items()
        }
        lengths = torch.tensor([len(row["input_ids"]) for row in rows])[:, None]
        batch["attention_mask"] = (torch.arange(batch["input_ids"].shape[1])[None] < lengths).long()
        return batch


@dataclass(frozen=True)
class Summary:
    """The sentences that were chosen, in the order of the document, their numbers there, and the scores of all."""

    sentences: list[str]
    numbers: list[int]
    scores: list[float]

    @property
    def text(self) -> str:
        """The summary."""
        return " ".join(self.sentences)


class Summarizer:
    """Choose the sentences that say most of a document.

    Args:
        model: Folder of a trained `AttnBertForExtractiveSummarization`, or such a model (then give the tokenizer).
        tokenizer: Of the model, if that is loaded.
        max_length: Most tokens of a document that are read.

    Raises:
        ValueError: If the folder holds another model, or a loaded model comes without its tokenizer.
    """

    def __init__(self, model: Any, tokenizer: Any = None, *, max_length: int = 512):
        if isinstance(model, AttnBertForExtractiveSummarization):
            if tokenizer is None:
                raise ValueError("tokenizer is missing: a model that is loaded comes with its tokenizer")
        else:
            tokenizer = tokenizer or AutoTokenizer.from_pretrained(model)
            folder, check = model, {"dtype": "float32", "output_loading_info": True}
            model, info = AttnBertForExtractiveSummarization.from_pretrained(folder, **check)
            if info["missing_keys"]:  # they would be drawn by chance
                raise ValueError(f"{folder} holds no trained summariser: {min(info['missing_keys'])} is missing")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_length = max_length

    @torch.no_grad()
    def __call__(self, sentences: Sequence[str], count: int = 3, *, block_trigrams: bool = True) -> Summary:
        """Summarise a document.

        Args:
            sentences: Of the document, in their order.
            count: How many to choose at most.
            block_trigrams: Whether a sentence is passed over that has three words in a row with one chosen before it.

        Raises:
            ValueError: If `count` is no whole number of at least 1; and see `encode_document`.
        """
        if not is_whole(count, 1):
            raise ValueError(f"count={count!r} must be a whole number of at least 1")
        batch = SummaryCollator(self.tokenizer)([encode_document(sentences, self.tokenizer, self.max_length)])
        batch = {name: tensor.to(self.model.device) for name, tensor in batch.items()}
        scores = self.model(**batch, return_dict=True).logits[0].float().sigmoid().tolist()
        chosen: list[int] = []
        seen: set[tuple[str, ...]] = set()
        for number in sorted(range(len(scores)), key=lambda place: -scores[place]):
            words = sentences[number].lower().split()
            trigrams = set(zip(words, words[1:], words[2:]))
            if len(chosen) < count and not (block_trigrams and trigrams & seen):
                chosen.append(number)
                seen |= trigrams
        chosen.sort()
        return Summary([sentences[number] for number in chosen], chosen, scores)
