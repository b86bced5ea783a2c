"""Call `generate` so that what a sentence becomes does not depend on the sentences beside it.

Two things in a batch would otherwise be shared: the longest allowed output and the random numbers. `LengthLimits`
gives every sentence its own limit. `GumbelNoise` samples with one generator per sentence: with e_i drawn from an
exponential distribution, argmax_i (log p_i - log e_i) is distributed as p (the Gumbel-max trick), so greedy search on
noisy scores is exact sampling.

Finished beams are ranked by one of two scores:

    transformers: sum of log-probabilities / length ** length_penalty
    GNMT:         sum of log-probabilities / ((5 + length) / 6) ** length_penalty
                  + coverage_penalty * sum over source pieces of log min(attention the piece received, 1)

The sum and the length are over the pieces that the search chose, "</s>" among them where it was reached, a forced
prefix too; the start piece and a prompt (`generate`'s `decoder_input_ids`) are in neither. So a `length_penalty` above
0 favours long outputs, 0 compares bare sums, one below 0 favours short outputs. The search ends when `num_beams`
outputs are finished and the sum of the best unfinished one, divided by its present length to the same power, is no
better than the worst of their scores: transformers' early_stopping=False.

The second (Wu 2016, arXiv 1609.08144, eq. 14) is chosen by giving a coverage penalty. Differs from the paper: the
search itself keeps beams by the first, and the second ranks those that it found.
"""

import copy
import math
import zlib
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
)

from hf_attn.models.checks import check_finite, is_whole

from .loading import decoder_position_limit
from .translation import Translation


@dataclass(frozen=True)
class Decoding:
    """How to choose the output: the options of `Translator.__call__`, checked."""

    num_beams: int
    num_return_sequences: int
    max_new_tokens: int | None
    length_penalty: float
    do_sample: bool
    seed: int | None
    coverage_penalty: float | None = None

    def __post_init__(self):
        for name in ("num_beams", "num_return_sequences", "max_new_tokens"):
            value = getattr(self, name)
            if value is None and name == "max_new_tokens":
                continue
            if not is_whole(value, 1):
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
        check_finite("length_penalty", self.length_penalty)
        if self.coverage_penalty is not None:
            check_finite("coverage_penalty", self.coverage_penalty)
            if self.coverage_penalty < 0:
                raise ValueError(
                    f"coverage_penalty is {self.coverage_penalty}; it must be a finite number of at least 0, or None"
                )
            if self.num_beams < 2:
                raise ValueError(
                    f"coverage_penalty is {self.coverage_penalty} with num_beams={self.num_beams}; it ranks the beams "
                    "of a search, so num_beams must be at least 2"
                )
        if self.do_sample and self.num_beams > 1:
            raise ValueError(f"num_beams is {self.num_beams} with do_sample=True; sampling needs num_beams=1")
        if self.seed is not None and not self.do_sample:
            raise ValueError(f"seed is {self.seed} with do_sample=False; only sampling uses a seed")
        if not self.do_sample and self.num_return_sequences > self.num_beams:
            raise ValueError(
                f"num_return_sequences is {self.num_return_sequences} with num_beams={self.num_beams}; "
                "it can be at most num_beams, or use do_sample=True"
            )

    @property
    def candidates(self) -> int:
        """How many outputs of each source the search has to give: all beams, where they are ranked anew."""
        return self.num_return_sequences if self.coverage_penalty is None else self.num_beams

    def length_limit(self, source_len: int, prefix_len: int, position_limit: int) -> int:
        """Give the longest output, in pieces, for a source of `source_len` pieces and a forced prefix.

        Raises:
            ValueError: if the prefix alone is as long.
        """
        wanted = 2 * source_len + 20 + prefix_len if self.max_new_tokens is None else self.max_new_tokens
        limit = min(wanted, position_limit)
        if limit <= prefix_len:
            raise ValueError(f"prefix has {prefix_len} pieces, but an output has at most {limit}")
        return limit

    def normalise(self, token_log_probs: list[float]) -> float:
        """Give the score of an output without its coverage: its log-probability, divided by the length penalty."""
        length = max(len(token_log_probs), 1)
        divisor = length if self.coverage_penalty is None else (5 + length) / 6
        return sum(token_log_probs) / divisor**self.length_penalty

    def rank(self, translations: list[Translation]) -> list[Translation]:
        """Score the beams of one source after GNMT, and give the best `num_return_sequences` of them, best first.

        A source piece's attention is the mean over the heads of the last layer, summed over all target pieces.

        Raises:
            ValueError: if the model has no cross-attention.
        """
        for translation in translations:
            if translation.cross_attentions is None:
                raise ValueError(
                    f"coverage_penalty is {self.coverage_penalty}, but this model has no cross-attention to measure "
                    "coverage by; leave it out"
                )
            received = translation.cross_attentions[-1].mean(dim=0).sum(dim=0)  # (source pieces)
            # where nothing at all arrived, the smallest number of float32 stands for 0, whose logarithm is no number
            coverage = float(received.clamp(torch.finfo(torch.float32).tiny, 1.0).log().sum())
            translation.score = self.normalise(translation.token_log_probs) + (self.coverage_penalty or 0.0) * coverage
        return sorted(translations, key=lambda translation: -translation.score)[: self.num_return_sequences]


class LengthLimits(StoppingCriteria):
    """Stop each sentence at its own number of pieces.

    Args:
        limits: one number for each sentence of the batch; every sentence may have several rows (beams).
    """

    def __init__(self, limits: list[int]):
        self.limits = torch.tensor(limits)

    def __call__(self, input_ids: torch.LongTensor, scores: object, **kwargs: object) -> torch.BoolTensor:
        limits = self.limits.to(input_ids.device).repeat_interleave(input_ids.shape[0] // len(self.limits))
        return input_ids.shape[1] - 1 >= limits  # type: ignore[return-value]  # the start piece does not count


class ForcedPrefix(LogitsProcessor):
    """Let an output begin only with given pieces. They keep their log-probabilities, so they count in the score.

    Args:
        prefixes: pieces for each sentence of the batch; every sentence may have several rows (beams).
    """

    def __init__(self, prefixes: list[list[int]]):
        self.prefixes = prefixes

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        position = input_ids.shape[1] - 1  # the start piece does not count
        beams = input_ids.shape[0] // len(self.prefixes)
        forced = scores.clone()
        for sentence, prefix in enumerate(self.prefixes):
            if position < len(prefix):
                rows = slice(sentence * beams, (sentence + 1) * beams)
                forced[rows] = -math.inf
                forced[rows, prefix[position]] = scores[rows, prefix[position]]
        return forced  # type: ignore[return-value]


class GumbelNoise(LogitsProcessor):
    """Add noise to the scores so that their maximum is a sample.

    Args:
        seeds: one number for each row.
    """

    def __init__(self, seeds: list[int]):
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        rows = [torch.empty(scores.shape[-1]).exponential_(generator=generator) for generator in self.generators]
        return scores - torch.stack(rows).to(scores.device).log()  # type: ignore[return-value]


def decode_batch(
    model: PreTrainedModel,
    decoding: Decoding,
    sources: list[tuple[str, list[int]]],
    prefixes: list[list[int]],
    stop: set[int],
    pad_id: int,
) -> list[list[tuple[list[int], bool]]]:
    """Let the model choose the outputs of one batch.

    Args:
        model: an encoder-decoder model.
        decoding: how to choose.
        sources: text and pieces of each source.
        prefixes: the pieces with which each output has to begin; none: it is free.
        stop: pieces that end an output.
        pad_id: piece to fill short sources with; it is masked.

    Returns:
        For each source its outputs, best first: the pieces up to and with the end piece, and whether the output was cut
        off before one came.
    """
    position_limit = decoder_position_limit(model)
    limits = [
        decoding.length_limit(len(ids), len(prefix), position_limit)
        for (_, ids), prefix in zip(sources, prefixes, strict=True)
    ]
    rows = [torch.tensor(ids) for _, ids in sources]
    repeats = decoding.num_return_sequences if decoding.do_sample else 1
    input_ids = pad_sequence(rows, batch_first=True, padding_value=pad_id).repeat_interleave(repeats, dim=0)
    lengths = torch.tensor([len(row) for row in rows]).repeat_interleave(repeats)
    attention_mask = (torch.arange(input_ids.shape[1]) < lengths[:, None]).long()

    processors = LogitsProcessorList()
    if any(prefixes):
        processors.append(ForcedPrefix([prefix for prefix in prefixes for _ in range(repeats)]))
    if decoding.do_sample:
        seed = int(torch.randint(2**31, ())) if decoding.seed is None else decoding.seed
        seeds = [zlib.crc32(f"{seed} {number} {text}".encode()) for text, _ in sources for number in range(repeats)]
        processors.append(GumbelNoise(seeds))

    generation_config = copy.deepcopy(model.generation_config)
    generation_config.update(
        num_beams=decoding.num_beams,
        num_return_sequences=1 if decoding.do_sample else decoding.candidates,
        **_length_settings(model, max(limits)),
        length_penalty=decoding.length_penalty,
        early_stopping=False,
        do_sample=False,
        output_attentions=False,
        output_scores=False,
        return_dict_in_generate=False,
    )
    model.eval()
    sequences = model.generate(  # type: ignore[operator]
        input_ids=input_ids.to(model.device),
        attention_mask=attention_mask.to(model.device),
        generation_config=generation_config,
        logits_processor=processors,
        stopping_criteria=StoppingCriteriaList([LengthLimits(limits)]),
    )
    outputs = [ids[1:] for ids in sequences.tolist()]  # without the start piece
    count = decoding.candidates
    return [
        [_cut_at_end(ids, stop, limit) for ids in outputs[row * count : (row + 1) * count]]
        for row, limit in enumerate(limits)
    ]


def _length_settings(model: PreTrainedModel, longest: int) -> dict[str, Any]:
    """Set a common length that no sentence reaches, so that no end piece is forced (Marian's `forced_eos_token_id`).

    `max_new_tokens` is set only where the model's own settings have it: it and `max_length` together raise a warning.
    """
    if model.generation_config.max_new_tokens is None:  # type: ignore[union-attr]
        return {"max_length": longest + 2}
    return {"max_new_tokens": longest + 1}


def _cut_at_end(ids: list[int], stop: set[int], limit: int) -> tuple[list[int], bool]:
    for position, token in enumerate(ids[:limit]):
        if token in stop:
            return ids[: position + 1], False
    return ids[:limit], True


def start_id(model: PreTrainedModel) -> int:
    """Give the piece that the decoder starts from.

    Raises:
        ValueError: if the model names none.
    """
    for source in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            if getattr(source, name, None) is not None:
                return getattr(source, name)
    raise ValueError("decoder_start_token_id is not set: neither the generation_config nor the config names it")


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Give the pieces that end an output."""
    stop: Any = model.generation_config.eos_token_id  # type: ignore[union-attr]
    if stop is None:
        stop = tokenizer.eos_token_id
    return set(stop) if isinstance(stop, list) else {stop}


def special_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Give the pieces that stand for no text ("</s>", "<pad>"); "<unk>" stands for some, and stays visible."""
    special: list[Any] = tokenizer.all_special_ids
    return {i for i in special if i != tokenizer.unk_token_id}
