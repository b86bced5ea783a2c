"""Load texts of one language and turn them into the rows of ids on which a language model trains.

    rows      <s> text </s> each; what is longer than a row goes on in the next:  <s> the text      <s> goes on </s>
    blocks    all texts in a stream, cut where a block is full:   <s> one text </s> <s> ano | ther </s> <s> a third ...

Nothing is lost in either. Read `tokenizer.py` for the ids, and `training/language_modeling.py` for what is learned.
"""

from __future__ import annotations

import json
import os
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import regex
from tokenizers import processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..models.checks import is_whole
from .phrasebook import PAIRS, generate
from .tokenizer import piece_decoder, train_tokenizer
from .translation import read_lines
from .words import is_text, split_words

PHRASEBOOK_LANGUAGES = ("en", *(pair[3:] for pair in PAIRS))


def load_texts(source: str | os.PathLike, *, column: str = "text", split: str | None = None) -> list[str]:
    """Load texts, in their order; empty ones are left out.

    Args:
        source: A UTF-8 file of one text a line (lines end with a line feed and nothing else), a `.jsonl` file of one
            object a line, or, if there is no such file, the name of a dataset for `datasets.load_dataset`.
        column: Where the text stands in an object or a row of the dataset.
        split: Of a dataset: "train", "validation", "train[:10%]"; None for files.

    Raises:
        FileNotFoundError: If there is no such file, and the name is none that a dataset could have.
        ValueError: If a file is no text, an object lacks the column, or there are no texts.
    """
    path = Path(source)
    if path.is_file():
        texts = list(_read_file(path, column))
    elif path.suffix or split is None:
        raise FileNotFoundError(f"source: there is no file {source}; the name of a dataset needs a split as well")
    else:
        import datasets

        rows = datasets.load_dataset(str(source), split=split)
        texts = [_text_of(row, column, f"{source}, row {number}") for number, row in enumerate(rows)]
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise ValueError(f"source must hold texts, got none from {source}")
    return texts


def _read_file(path: Path, column: str) -> Iterable[str]:
    for number, line in read_lines(path):
        if path.suffix.lower() != ".jsonl":
            yield line
        elif line.strip():
            place = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{place}: must be one JSON object a line ({error})") from None
            yield _text_of(row, column, place)


def _text_of(row: Any, column: str, place: str) -> str:
    text = row.get(column) if isinstance(row, dict) else None
    if not is_text(text):
        keys = f"; the columns are {sorted(row)}" if isinstance(row, dict) else ""
        raise ValueError(f"{place}: column {column!r} must hold a text, got {text!r}{keys}")
    return text


def phrasebook_texts(language: str, split: str = "train", size: int | None = None) -> list[str]:
    """Write the sentences of one language of the phrasebook: texts that need no file.

    Args:
        language: "en", "it", "fr" or "ko".
        split: "train", "validation" or "test".
        size: How many; None takes 20,000 for training and 1,000 otherwise.

    Raises:
        ValueError: If there is no such language or split.
    """
    if language not in PHRASEBOOK_LANGUAGES:
        raise ValueError(f"language={language!r} is not in the phrasebook; choose {', '.join(PHRASEBOOK_LANGUAGES)}")
    if language == "en":
        return [pair.source for pair in generate(PAIRS[0], split, size)]
    return [pair.target for pair in generate(f"en-{language}", split, size)]


def hold_out(texts: Sequence[str], share: float, seed: int = 0) -> tuple[list[str], list[str]]:
    """Split texts into those to train on and those held out. Equal texts are on the same side.

    Args:
        texts: All texts; both parts keep their order.
        share: Share of the different texts to hold out, rounded, one at least.
        seed: Other seeds hold out others.

    Returns:
        The texts to train on, and those held out.

    Raises:
        ValueError: If the share is not between 0 and 1, or nothing is left on one side.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    different = sorted(set(texts), key=lambda text: (zlib.crc32(f"{seed} {text}".encode()), text))
    held_out = set(different[: max(round(share * len(different)), 1)])
    if len(held_out) == len(different):
        raise ValueError(f"texts must be of two kinds at least, or nothing is left to train on; got {len(different)}")
    return [text for text in texts if text not in held_out], [text for text in texts if text in held_out]


def train_text_tokenizer(
    texts: Iterable[str], vocab_size: int, *, kind: str = "bpe", masked: bool = False
) -> PreTrainedTokenizerFast:
    """Train the tokenizer of a language model: `train_tokenizer`, and special tokens as the model wants them.

    Args:
        texts: The texts to train on.
        vocab_size: Largest number of pieces.
        kind: "bpe" or "word".
        masked: False for models that go on with a text: "<s> text", to which the end comes when it is there; padding is
            on the left, and the space before the first piece is decoded too, as it must be behind a prompt. True for
            those that fill masks: "<s> text </s>", lower case, and a `<mask>` typed by a user is a mask.

    Raises:
        ValueError: As `train_tokenizer`.
    """
    options = {"mask_token": masked, "cls_token": masked, "lowercase": masked}
    tokenizer = train_tokenizer(texts, vocab_size, kind=kind, **options)
    if not masked:
        ends: Any = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A </s> <s> $B", special_tokens=ends
        )
        tokenizer.backend_tokenizer.decoder = piece_decoder(drop_space=False)
        tokenizer.padding_side = "left"
    return tokenizer


def typed_ids(tokenizer: PreTrainedTokenizerBase, text: str, blank: str | None = None) -> list[int]:
    """Turn a text into ids in which nothing is a special token but what the tokenizer itself adds, and the blanks.

    Args:
        tokenizer: of a language model. The name of a special token in the text is spelled letter by letter.
        text: what somebody typed.
        blank: a regular expression of what stands for a masked place, e.g. "_{3,}"; None: there are none.

    Raises:
        ValueError: If there are blanks, and the tokenizer has no mask token.
    """
    text = unicodedata.normalize("NFC", text)
    mask: Any = tokenizer.mask_token
    if mask is None:
        if blank and regex.search(blank, text):
            raise ValueError(f"blank is {blank!r} and the text has some, but the tokenizer has no mask token")
        return tokenizer(text, split_special_tokens=True)["input_ids"]
    names = "|".join(regex.escape(name) for name in sorted(tokenizer.all_special_tokens, key=len, reverse=True))
    # a mark on its last letter would make another letter of that
    places = regex.compile(rf"(?P<typed>{names})\p{{M}}*|(?:{blank or '(?!)'})\p{{M}}*", regex.IGNORECASE)
    typed = [match["typed"] for match in places.finditer(text)]
    ids: list[int] = []
    for number in tokenizer(places.sub(mask, text))["input_ids"]:
        name = typed.pop(0) if number == tokenizer.mask_token_id else None
        ids += [number] if name is None else _letters(tokenizer, name)
    return ids


def _letters(tokenizer: Any, name: str) -> list[int]:
    """Spell a word letter by letter."""
    backend = tokenizer.backend_tokenizer
    read = backend.normalizer.normalize_str if backend.normalizer else str
    return [piece.id for letter in name for piece in backend.model.tokenize(read(letter).strip())]


def encode_texts(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Turn texts into ids without special tokens."""
    return tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]


def text_rows(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int) -> list[list[int]]:
    """Give each text a row `<s> text </s>`; a longer one goes on in further rows, each of which begins with `<s>`.

    Args:
        texts: The texts.
        tokenizer: One with both special tokens.
        length: Most tokens in a row.

    Raises:
        ValueError: If the tokenizer lacks a special token, or the length is less than 2.
    """
    bos, eos = _ends(tokenizer, length)
    rows = []
    for ids in encode_texts(texts, tokenizer):
        ids = [*ids, eos]
        rows += [[bos, *ids[start : start + length - 1]] for start in range(0, len(ids), length - 1)]
    return rows


def text_blocks(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, length: int) -> list[list[int]]:
    """Put all texts in a row, each `<s> text </s>`, and cut it into blocks of one length; the last may be shorter.

    Args:
        texts: The texts, in the order in which they follow each other.
        tokenizer: One with both special tokens.
        length: Tokens in a block.

    Raises:
        ValueError: If the tokenizer lacks a special token, or the length is less than 2.
    """
    bos, eos = _ends(tokenizer, length)
    stream = [token for ids in encode_texts(texts, tokenizer) for token in (bos, *ids, eos)]
    return [stream[start : start + length] for start in range(0, len(stream), length)]


def _ends(tokenizer: PreTrainedTokenizerBase, length: int) -> tuple[int, int]:
    """Give the ids of the beginning and of the end of a text."""
    bos: Any = tokenizer.bos_token_id
    eos: Any = tokenizer.eos_token_id
    if bos is None or eos is None:
        raise ValueError("tokenizer must have a bos and an eos token")
    if not is_whole(length, 2):
        raise ValueError(f"length must be a whole number of at least 2, got {length!r}")
    return bos, eos


def count_words(texts: Iterable[str]) -> int:
    """Count what a model of words predicts: words and punctuation marks as `split_words` cuts them, and each end."""
    return sum(len(split_words(text)) + 1 for text in texts)
