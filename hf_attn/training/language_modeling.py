"""Learn a language from text alone: what comes next, what is masked, or which pieces were replaced.

    CausalCollator (GPT)       The old man reads .      each piece from those before it
    MaskingCollator (BERT)     The old <mask> reads .   the masked pieces from all the others
    ReplacedTokenPretraining   The old car reads .      which piece is not the original (ELECTRA)
        loss = masked-LM loss of the generator, which proposes "car" + 50 * loss of the discriminator, which judges

Papers: GPT, Radford et al. 2018; BERT, Devlin et al. 2019 (arXiv 1810.04805), section 3.1, task 1 and appendix A.1;
masks drawn anew each time, Liu et al. 2019 (1907.11692), section 4.1; ELECTRA, Clark et al. 2020 (2003.10555), section
2 and, on shared embeddings and small generators, 3.2.

The masks of a batch are drawn from the seed and the batch itself, as in `denoising.py`: a resumed run draws the same,
and every evaluation measures the same places. Read `language_recipes.py` for sizes.
"""

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase
from transformers.utils.generic import ModelOutput, can_return_tuple

from ..models.checks import is_whole
from ..models.configuration_attn_bert import AttnBertConfig
from ..models.heads import IGNORED
from ..models.modeling_attn_bert import (
    AttnBertForMaskedLM,
    AttnBertForReplacedTokenDetection,
    AttnBertPreTrainedModel,
)
from .batching import TokenBatchTrainer
from .denoising import batch_random


def pad_rows(features: list[dict[str, Any]], pad_token_id: int) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
    """Put rows of ids into one array.

    Returns:
        The rows, the ids (batch, length) padded on the right, and where they are real.
    """
    rows = [[int(token) for token in feature["input_ids"]] for feature in features]
    lengths = np.array([len(row) for row in rows])
    real = np.arange(max(lengths.max(), 1)) < lengths[:, None]
    ids = np.full(real.shape, pad_token_id, dtype=np.int64)
    ids[real] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return rows, ids, real


class CausalCollator:
    """Make batches for a model that goes on with a text; what a text begins with, `<s>`, is not predicted.

    Args:
        tokenizer: Pads, and says what texts begin with.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer: Any = tokenizer

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch of rows with ``input_ids``: these, ``attention_mask`` and ``labels``, padded on the right."""
        _, ids, real = pad_rows(features, self.tokenizer.pad_token_id)
        labels = np.where(real & (ids != self.tokenizer.bos_token_id), ids, IGNORED)
        batch = {"input_ids": ids, "attention_mask": real.astype(np.int64), "labels": labels}
        return {name: torch.from_numpy(array) for name, array in batch.items()}


class MaskingCollator:
    """Make batches for a model that fills masks: some pieces are chosen, and most of the chosen are hidden.

    Args:
        tokenizer: Pads, and says what is special; special tokens and padding are never chosen, an unknown word is.
        ratio: Share of the pieces that are chosen, each by itself.
        masked: Share of the chosen that become `<mask>`.
        replaced: Share of the chosen that become a random piece; the rest stay as they are.
        draws: Whether to add ``draws``, a random number in [0, 1) for every place, by which a generator samples.
        seed: Other seeds, other masks.

    Raises:
        ValueError: If there is no mask token, or a number is impossible.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        ratio: float = 0.15,
        masked: float = 0.8,
        replaced: float = 0.1,
        draws: bool = False,
        seed: int = 0,
    ):
        if tokenizer.mask_token_id is None:
            raise ValueError("the tokenizer must have a mask token, as train_text_tokenizer(..., masked=True) gives it")
        if not 0 < ratio <= 1:
            raise ValueError(f"ratio must be more than 0 and at most 1, got {ratio}")
        if not (masked >= 0 and replaced >= 0 and masked + replaced <= 1):
            raise ValueError(f"masked={masked} and replaced={replaced} must be shares, in all at most 1")
        if not is_whole(seed):
            raise ValueError(f"seed must be a whole number of 0 or more, got {seed!r}")
        self.tokenizer: Any = tokenizer
        self.ratio, self.masked, self.replaced = ratio, masked, replaced
        self.draws = draws
        self.seed = seed
        special = set(tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        self.special = np.array(sorted(special))
        self.pieces = np.array([number for number in range(len(tokenizer)) if number not in special])

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch of rows with ``input_ids``: these with masks, ``attention_mask``, and ``labels`` that are -100
        where nothing was chosen, padded on the right."""
        rows, ids, real = pad_rows(features, self.tokenizer.pad_token_id)
        random = batch_random(self.seed, rows)
        chosen = (random.random(ids.shape) < self.ratio) & real & ~np.isin(ids, self.special)
        fate = random.random(ids.shape)
        swapped = chosen & (fate >= self.masked) & (fate < self.masked + self.replaced)
        source = np.where(chosen & (fate < self.masked), self.tokenizer.mask_token_id, ids)
        source[swapped] = random.choice(self.pieces, int(swapped.sum()))
        labels = np.where(chosen, ids, IGNORED)
        batch = {"input_ids": source, "attention_mask": real.astype(np.int64), "labels": labels}
        if self.draws:
            batch["draws"] = random.random(ids.shape)
        return {name: torch.from_numpy(array) for name, array in batch.items()}


def generator_config(config: AttnBertConfig, size: float) -> AttnBertConfig:
    """Write the config of a generator: narrower layers, as many, on the same embeddings (Clark 2020, section 3.2).

    Args:
        config: The discriminator's.
        size: Width of the generator's layers as a share of the discriminator's.

    Raises:
        ValueError: If the share is not between 0 and 1, or does not leave whole heads.
    """
    heads = config.num_attention_heads * size
    if not 0 < size <= 1 or round(heads) < 1 or abs(heads - round(heads)) > 1e-6:
        raise ValueError(
            f"generator_size={size} must be more than 0, at most 1, and leave a whole number of heads: "
            f"num_attention_heads={config.num_attention_heads} times it"
        )
    smaller = copy.deepcopy(config)
    smaller.embedding_size = config.embedding_width
    smaller.num_attention_heads = round(heads)
    smaller.hidden_size = config.hidden_size // config.num_attention_heads * round(heads)
    smaller.intermediate_size = round(config.intermediate_size * size)
    smaller.tie_word_embeddings = True
    smaller.validate_values()
    return smaller


class ReplacedTokenPretraining(AttnBertPreTrainedModel):
    """ELECTRA as it is trained: a generator fills masks, a discriminator says which pieces are not the original ones.

    A piece that the generator gets right counts as original. The discriminator's gradient does not reach the
    generator: sampling has none. Embeddings of tokens, positions and segments are shared.

    Args:
        config: The discriminator's configuration.
        generator: The generator's, see `generator_config`.
        weight: Weight of the discriminator's loss.
    """

    accepts_loss_kwargs = False  # the two losses are means over different counts: micro-batches are averaged

    def __init__(self, config: AttnBertConfig, generator: AttnBertConfig, weight: float = 50.0):
        super().__init__(config)
        self.weight = weight
        self.discriminator = AttnBertForReplacedTokenDetection(config)
        self.generator = AttnBertForMaskedLM(generator)
        self.post_init()

    @property
    def _tied_weights_keys(self) -> dict[str, str]:
        """{tied parameter: its source}"""
        table = "discriminator.model.embed_tokens.weight"
        tied = {"generator.model.embed_tokens.weight": table, "generator.lm_head.weight": table}
        for name, _ in self.discriminator.model.embedding.named_parameters():
            if name.startswith(("learned.", "segments.")):
                tied[f"generator.model.embedding.{name}"] = f"discriminator.model.embedding.{name}"
        return tied

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor,
        attention_mask: torch.Tensor,
        labels: torch.LongTensor,
        draws: torch.Tensor,
        **kwargs,
    ) -> ModelOutput:
        """Compute the loss of a batch of a `MaskingCollator`.

        Args:
            input_ids: (batch, length), with masks.
            attention_mask: (batch, length), non-zero for real tokens.
            labels: (batch, length), the tokens that are masked; -100 elsewhere.
            draws: (batch, length), numbers in [0, 1): where one falls in the generator's distribution, whose parts lie
                side by side in the order of the vocabulary, is what the generator proposes.
            **kwargs: Ignored.

        Returns:
            loss, generator_loss, discriminator_loss; generator_logits (masked, vocab_size), logits (batch, length) of
            having been replaced, the proposals (batch, length), and where they are not the original ones, replaced.
        """
        masked = labels != IGNORED
        guess = self.generator(input_ids, attention_mask, labels=labels, sparse_prediction=True, return_dict=True)
        with torch.no_grad():
            parts = guess.logits.double().softmax(dim=-1).cumsum(dim=-1)
            sampled = torch.searchsorted(parts, draws[masked].double()[:, None], right=True).squeeze(-1)
            proposed = input_ids.clone()
            proposed[masked] = sampled.clamp(max=parts.shape[-1] - 1)
            replaced = masked & (proposed != labels)
        judged = self.discriminator(proposed, attention_mask, labels=replaced.long(), return_dict=True)
        return ModelOutput(
            loss=guess.loss + self.weight * judged.loss,
            generator_loss=guess.loss,
            discriminator_loss=judged.loss,
            generator_logits=guess.logits,
            logits=judged.logits,
            proposed=proposed,
            replaced=replaced,
        )

    def save_parts(self, folder: str | os.PathLike) -> None:
        """Save the discriminator, which is what is used later, and the generator in the subfolder ``generator``."""
        self.discriminator.save_pretrained(folder)
        self.generator.save_pretrained(Path(folder, "generator"), include_code=False)

    def load_parts(self, folder: str | os.PathLike) -> None:
        """Load what `save_parts` saved, to train on."""
        self.discriminator.load_state_dict(AttnBertForReplacedTokenDetection.from_pretrained(folder).state_dict())
        self.generator.load_state_dict(AttnBertForMaskedLM.from_pretrained(Path(folder, "generator")).state_dict())


class LanguageModelTrainer(TokenBatchTrainer):
    """A `TokenBatchTrainer` for rows of text, which measures sums of rows and divides them once, at the end.

    A masked language model predicts, in training, at the masked places only, which saves most of its output layer.

    Args:
        *args: As for ``Seq2SeqTrainer``.
        measure: What to measure of a batch: takes model and batch, returns sums (batch, anything).
        **kwargs: As for ``TokenBatchTrainer``; ``compute_metrics`` gets these sums, of all rows, as predictions.
    """

    def __init__(self, *args: Any, measure: Callable[[Any, Any], torch.Tensor] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.measure = measure

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Compute the loss of a training batch; arguments and result as in the base class."""
        if isinstance(self.accelerator.unwrap_model(model), AttnBertForMaskedLM):
            inputs = inputs | {"sparse_prediction": True}
        return super().compute_loss(model, inputs, *args, **kwargs)

    def prediction_step(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Measure a batch, without the mean of its losses, which weighs long rows as short ones."""
        if self.measure is None:
            return super().prediction_step(model, inputs, *args, **kwargs)
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            sums = self.measure(model, inputs)
        return None, sums, torch.zeros(len(sums), device=sums.device)  # labels, without which nothing is computed
