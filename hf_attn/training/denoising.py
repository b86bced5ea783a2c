"""Make training batches of plain text: damage it, and let the model write what was there.

    DenoisingCollator (BART):       The old <mask> reads a <mask>.  ->  The old man reads a red book.
    SpanCorruptionCollator (T5):    The old <extra_id_0> reads <extra_id_1> book.
                                    ->  <extra_id_0> man <extra_id_1> a red <extra_id_2> </s>

Any encoder-decoder can be pre-trained so, in the Trainer, before it is fine-tuned on pairs:

    >>> from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
    >>> from hf_attn.data import train_tokenizer
    >>> from hf_attn.training import DenoisingCollator, build_model
    >>> texts = ["The old man reads a red book. He likes it.", "The girl sees the house."] * 4
    >>> tokenizer = train_tokenizer(texts, 400, mask_token=True)
    >>> model = build_model("transformer-tiny", tokenizer)
    >>> trainer = Seq2SeqTrainer(
    ...     model=model,
    ...     args=Seq2SeqTrainingArguments("out/denoising", max_steps=2, save_strategy="no", use_cpu=True),
    ...     train_dataset=[{"input_ids": tokenizer(text).input_ids} for text in texts],
    ...     data_collator=DenoisingCollator(tokenizer, model),
    ... )
    >>> trainer.train().global_step
    2

The noise of a batch is drawn from the seed and the batch itself, and so needs no state: the same batch is damaged in
the same way by any worker, in a resumed run and in every evaluation; a row that comes in another company in the next
epoch is damaged anew. (A row that is a batch of its own is not.)

Papers: BART, Lewis et al. 2020 (arXiv 1910.13461), section 2.2; T5, Raffel et al. 2020 (arXiv 1910.10683), sections
3.1.4 and 3.3.4. Differs from BART's code: spans are of pieces, not of whole words.
"""

import hashlib
import itertools
import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from transformers import DataCollatorForSeq2Seq, PreTrainedModel, PreTrainedTokenizerBase

from ..models.checks import is_whole

Piece = tuple[bool, list[int]]  # ids that stand together, and whether they are text


def batch_random(seed: int, rows: list[list[int]]) -> np.random.Generator:
    """Make the random numbers that belong to a seed and a batch of rows of ids."""
    digest = hashlib.blake2b(repr((seed, rows)).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


class _NoiseCollator:
    """What both collators share: text and special tokens told apart, random numbers, and padding."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel | None, seed: int):
        eos: Any = tokenizer.eos_token_id
        unknown: Any = tokenizer.unk_token_id
        if eos is None:
            raise ValueError("the tokenizer must have an eos token, with which every row ends")
        if not is_whole(seed):
            raise ValueError(f"seed must be a whole number of 0 or more, got {seed!r}")
        self.seed = seed
        self.eos_token_id: int = eos
        self.special = set(tokenizer.all_special_ids) - {unknown}  # an unknown word is text
        self.pad = DataCollatorForSeq2Seq(tokenizer, model=model)

    def corrupt(self, ids: list[int], random: np.random.Generator) -> tuple[list[int], list[int]]:
        """Damage one row.

        Args:
            ids: A row with its special tokens, "</s>" at the end.
            random: Where the noise comes from.

        Returns:
            The ids of the input and of the target.
        """
        raise NotImplementedError

    def __call__(self, features: list[dict[str, Any]]) -> Any:
        """Make a batch of rows.

        Args:
            features: Rows with ``input_ids``, padded or not; whatever else they hold is not used.

        Returns:
            ``input_ids``, ``attention_mask`` and ``labels``, padded on the right, labels with -100; and
            ``decoder_input_ids`` where the collator knows the model.
        """
        rows = [self.strip_padding([int(token) for token in row["input_ids"]]) for row in features]
        rows = [row if row[-1:] == [self.eos_token_id] else [*row, self.eos_token_id] for row in rows]
        random = batch_random(self.seed, rows)
        pairs = [self.corrupt(row, random) for row in rows]
        return self.pad([{"input_ids": source, "labels": target} for source, target in pairs])

    def strip_padding(self, ids: list[int]) -> list[int]:
        """Take the padding at both ends away; it would count as what the model reads and writes."""
        for _ in range(2):  # from the front, then from the back
            ids = list(itertools.dropwhile(lambda token: token == self.pad.tokenizer.pad_token_id, ids))[::-1]
        return ids

    def parts(self, ids: list[int]) -> list[Piece]:
        """Cut a row into text and special tokens; only the text may be damaged."""
        groups = itertools.groupby(ids, key=lambda token: token not in self.special)
        return [(is_text, list(group)) for is_text, group in groups]


class DenoisingCollator(_NoiseCollator):
    """Damage text as BART does; the target is the text itself.

    Text between special tokens is one document: its sentences are shuffled, then it is damaged in one of these ways.

    - ``"infilling"``: spans with lengths drawn from a Poisson distribution are replaced, each by one mask; a span of
      length 0 puts a mask between two pieces.
    - ``"masking"``: single pieces are replaced by masks.
    - ``"deletion"``: single pieces are left out.

    BART is trained with infilling and shuffled sentences, and these are the defaults.

    Args:
        tokenizer: Says what is special, and pads.
        model: Makes the decoder's input, which the Trainer needs with label smoothing; else not necessary.
        noise: Which of the three; None: none of them.
        ratio: Share of the pieces of a document that are masked or deleted, rounded up.
        mean_span: Mean of the span lengths, those of length 0 included.
        permute_sentences: Whether sentences are shuffled. A sentence ends with a full stop.
        mask_token_id: The mask; by default the tokenizer's.
        seed: Other seeds, other noise.

    Raises:
        ValueError: If there is no mask token, or a number is impossible.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel | None = None,
        *,
        noise: Literal["infilling", "masking", "deletion"] | None = "infilling",
        ratio: float = 0.3,
        mean_span: float = 3.0,
        permute_sentences: bool = True,
        mask_token_id: int | None = None,
        seed: int = 0,
    ):
        super().__init__(tokenizer, model, seed)
        if noise not in ("infilling", "masking", "deletion", None):
            raise ValueError(f"noise must be 'infilling', 'masking', 'deletion' or None, got {noise!r}")
        if not 0 <= ratio <= 1:
            raise ValueError(f"ratio must be from 0 to 1, got {ratio}")
        if not 0 < mean_span < math.inf:
            raise ValueError(f"mean_span must be more than 0 and finite, got {mean_span}")
        mask: Any = tokenizer.mask_token_id if mask_token_id is None else mask_token_id
        if mask is None and noise in ("infilling", "masking"):
            raise ValueError(
                f"noise={noise!r} needs a mask token: give mask_token_id, or a tokenizer that has one, such as "
                "train_tokenizer(..., mask_token=True) makes"
            )
        self.noise = noise
        self.ratio = ratio
        self.mean_span = mean_span
        self.permute_sentences = permute_sentences
        self.mask_token_id: Any = mask
        self.special |= {mask} - {None}
        # "▁" and "Ġ" stand for a space before the piece
        self.full_stops = {
            number for token, number in tokenizer.get_vocab().items() if token.strip("▁Ġ ") in (".", "。")
        }

    def corrupt(self, ids: list[int], random: np.random.Generator) -> tuple[list[int], list[int]]:
        """Damage one row; arguments and result as in the base class."""
        damage = {"infilling": self.infill, "masking": self.mask, "deletion": self.delete}
        source: list[int] = []
        for is_text, part in self.parts(ids):
            if is_text and self.permute_sentences:
                sentences = self.sentences(part)
                part = [token for number in random.permutation(len(sentences)) for token in sentences[number]]
            source += damage[self.noise](part, random) if is_text and self.noise else part
        return source, ids

    def sentences(self, ids: list[int]) -> list[list[int]]:
        """Cut a document behind its full stops."""
        ends = [place + 1 for place, token in enumerate(ids) if token in self.full_stops]
        bounds = [0, *ends, *([len(ids)] if ends[-1:] != [len(ids)] else [])]
        return [ids[first:last] for first, last in zip(bounds, bounds[1:])]

    def infill(self, ids: list[int], random: np.random.Generator) -> list[int]:
        """Replace spans by one mask each. Their places are drawn from all in which they do not overlap."""
        budget = math.ceil(self.ratio * len(ids))
        spans: list[int] = []
        while sum(spans) < budget:
            spans.append(min(int(random.poisson(self.mean_span)), budget - sum(spans)))
        random.shuffle(spans)  # the last was cut short
        slots = len(ids) - budget + len(spans)  # each holds a span, or a piece that stays
        chosen = set(random.choice(slots, size=len(spans), replace=False).tolist())
        source, place = [], 0
        for slot in range(slots):
            if slot in chosen:
                source.append(self.mask_token_id)
                place += spans.pop()
            else:
                source.append(ids[place])
                place += 1
        return source

    def mask(self, ids: list[int], random: np.random.Generator) -> list[int]:
        """Replace single pieces by masks."""
        chosen = self.choose(ids, random)
        return [self.mask_token_id if place in chosen else token for place, token in enumerate(ids)]

    def delete(self, ids: list[int], random: np.random.Generator) -> list[int]:
        """Leave single pieces out."""
        chosen = self.choose(ids, random)
        return [token for place, token in enumerate(ids) if place not in chosen]

    def choose(self, ids: list[int], random: np.random.Generator) -> set[int]:
        """Choose the places of single pieces."""
        return set(random.choice(len(ids), size=math.ceil(self.ratio * len(ids)), replace=False).tolist())


class SpanCorruptionCollator(_NoiseCollator):
    """Replace spans by sentinels as T5 does; the target is the spans, each behind its sentinel.

    The last sentinel of the target, before "</s>", stands for no span: it ends the last one. Text between special
    tokens is damaged by itself, and the sentinels are counted through the row. How many pieces and spans are taken
    follows T5: the share of the pieces, rounded, but one at least and not all; that number by the mean length, rounded,
    but one at least. The text is then cut at random into as many pairs of a part that stays and a span; so the last
    span is the end of the text, unless all spans are moved on by a random number of pieces, around the end.

    Args:
        tokenizer: Says what is special, and pads.
        model: Makes the decoder's input, which the Trainer needs with label smoothing; else not necessary.
        noise_density: Share of the pieces that are taken out.
        mean_span: Mean length of a span.
        random_roll: Whether spans are moved on. T5, whose rows are long, does without; the only span of a short row
            would always be its end.
        sentinel_ids: The sentinels in the order of their use; by default the tokenizer's ``<extra_id_0>``,
            ``<extra_id_1>``, and so on.
        seed: Other seeds, other noise.

    Raises:
        ValueError: If there are no sentinels, or a number is impossible; in use, if a row needs more sentinels.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel | None = None,
        *,
        noise_density: float = 0.15,
        mean_span: float = 3.0,
        random_roll: bool = True,
        sentinel_ids: Iterable[int] | None = None,
        seed: int = 0,
    ):
        super().__init__(tokenizer, model, seed)
        if not 0 < noise_density < 1:
            raise ValueError(f"noise_density must be between 0 and 1, got {noise_density}")
        if not mean_span >= 1:
            raise ValueError(f"mean_span must be 1 or more, got {mean_span}")
        vocabulary = tokenizer.get_vocab()
        named = itertools.takewhile(lambda name: name in vocabulary, (f"<extra_id_{n}>" for n in itertools.count()))
        self.sentinel_ids = [vocabulary[name] for name in named] if sentinel_ids is None else list(sentinel_ids)
        if not self.sentinel_ids:
            raise ValueError(
                "sentinel_ids is missing: give ids, or a tokenizer that has <extra_id_0>, <extra_id_1>, ..., such as "
                "train_tokenizer(..., sentinels=20) makes"
            )
        self.noise_density = noise_density
        self.mean_span = mean_span
        self.random_roll = random_roll
        self.special |= set(self.sentinel_ids)

    def corrupt(self, ids: list[int], random: np.random.Generator) -> tuple[list[int], list[int]]:
        """Damage one row; arguments and result as in the base class."""
        source: list[int] = []
        target: list[int] = []
        used = 0
        for is_text, part in self.parts(ids):
            if not is_text:
                source += part
                continue
            place = 0
            for kept, taken in self.segments(len(part), random):
                source += part[place : place + kept]
                if taken:
                    sentinel = self.sentinel(used, ids)
                    source.append(sentinel)
                    target += [sentinel, *part[place + kept : place + kept + taken]]
                    used += 1
                place += kept + taken
        return source, [*target, self.sentinel(used, ids), self.eos_token_id]

    def sentinel(self, number: int, ids: list[int]) -> int:
        """Give a sentinel."""
        if number >= len(self.sentinel_ids):
            raise ValueError(
                f"a row of {len(ids)} tokens needs more than the {len(self.sentinel_ids)} sentinels of sentinel_ids: "
                "give more, or shorter rows"
            )
        return self.sentinel_ids[number]

    def segments(self, length: int, random: np.random.Generator) -> list[tuple[int, int]]:
        """Draw how a text is cut: pairs of the length of a part that stays and of the span behind it.

        A text of one piece stays as it is.
        """
        if length < 2:
            return [(length, 0)]
        taken = min(max(round(length * self.noise_density), 1), length - 1)
        spans = min(max(round(taken / self.mean_span), 1), length - taken)
        pairs = list(zip(self.cut(length - taken, spans, random), self.cut(taken, spans, random), strict=True))
        if not self.random_roll:
            return pairs
        in_span = np.roll(np.repeat([False, True] * spans, np.ravel(pairs)), random.integers(length))
        rolled, kept = [], 0
        for is_span, group in itertools.groupby(in_span.tolist()):
            size = len(list(group))
            if is_span:
                rolled.append((kept, size))
            kept = 0 if is_span else size
        return [*rolled, (kept, 0)] if kept else rolled

    @staticmethod
    def cut(length: int, parts: int, random: np.random.Generator) -> list[int]:
        """Cut a length into so many lengths of 1 or more, each way being as likely."""
        bounds = np.sort(random.choice(length - 1, size=parts - 1, replace=False)) + 1
        return np.diff([0, *bounds, length]).tolist()
