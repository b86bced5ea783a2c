# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Take the tokenizer of a checkpoint along, as it is: the ids of a text must stay what the model learned.

With one vocabulary the tokenizer is kept whole. With two, we have a tokenizer for each side, in the folder and in its
sub-folder `target_tokenizer`; Marian has one with two SentencePiece models and two tables of ids, which is divided here
and put together again.
"""

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from transformers import AutoImageProcessor, AutoTokenizer, ImageProcessingMixin, PreTrainedTokenizerBase
from transformers.utils import IMAGE_PROCESSOR_NAME
from transformers.utils.hub import cached_file
from transformers.utils.import_utils import is_protobuf_available, is_sentencepiece_available

from ..inference.loading import TARGET_TOKENIZER
from .publish import save_tokenizer

# what prepares pictures, or text: a pair for source and target
Tokenizers = ImageProcessingMixin | PreTrainedTokenizerBase | tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]

VOCABULARIES = (  # a folder without any of them has no tokenizer, though the library would make an empty one
    *("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "source.spm"),
)


def load_tokenizer(address: str, local: bool) -> PreTrainedTokenizerBase | None:
    """Load the tokenizer of a checkpoint, if it has one.

    Args:
        address: folder or Hub id.
        local: whether it is a folder.

    Raises:
        ValueError: it cannot be opened, for instance since a package is missing.
    """
    quiet: dict[str, Any] = {"_raise_exceptions_for_missing_entries": False, "local_files_only": local}
    if not any(cached_file(address, name, **quiet) for name in VOCABULARIES):
        warnings.warn(f"{address} has no tokenizer; only the model is taken", stacklevel=3)
        return None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")  # it is not used
            return AutoTokenizer.from_pretrained(address, local_files_only=local, trust_remote_code=False)
    except (ImportError, ValueError) as error:
        advice = "" if _reads_sentencepiece() else "; it may need pip install 'hf_attn[sentencepiece]'"
        raise ValueError(f"the tokenizer of {address} cannot be opened{advice}: {error}") from error


def load_image_processor(address: str, local: bool) -> ImageProcessingMixin | None:
    """Load the image processor of a checkpoint, if it has one; address and local as for `load_tokenizer`."""
    quiet: dict[str, Any] = {"_raise_exceptions_for_missing_entries": False, "local_files_only": local}
    if not cached_file(address, IMAGE_PROCESSOR_NAME, **quiet):
        warnings.warn(f"{address} has no image processor; only the model is taken", stacklevel=3)
        return None
    return AutoImageProcessor.from_pretrained(address, local_files_only=local, trust_remote_code=False)


def _reads_sentencepiece() -> bool:
    """Tell whether the packages are there that a tokenizer made of a SentencePiece model needs."""
    return is_sentencepiece_available() and is_protobuf_available()


def divide(tokenizer: PreTrainedTokenizerBase) -> tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]:
    """Make a source and a target tokenizer of one that has both sides; any but Marian's serves for both."""
    if not is_marian(tokenizer):
        return tokenizer, tokenizer
    marian: Any = tokenizer
    target_ids = marian.target_encoder if marian.separate_vocabs else marian.encoder
    source = _one_side(marian, marian.spm_files[0], marian.encoder, marian.source_lang)
    return source, _one_side(marian, marian.spm_files[1], target_ids, marian.target_lang)


def join(source: PreTrainedTokenizerBase, target: PreTrainedTokenizerBase) -> Tokenizers:
    """Put the two sides of a Marian together again; other pairs stay pairs."""
    if not (is_marian(source) and is_marian(target)):
        return source, target
    sides: tuple[Any, Any] = (source, target)
    with tempfile.TemporaryDirectory() as place:
        return type(source)(
            source_spm=sides[0].spm_files[0],
            target_spm=sides[1].spm_files[0],
            vocab=_write_ids(sides[0].encoder, place, "vocab.json"),
            target_vocab_file=_write_ids(sides[1].encoder, place, "target_vocab.json"),
            separate_vocabs=True,
            source_lang=sides[0].source_lang,
            target_lang=sides[1].source_lang,
            **_common_settings(source),
        )


def save_tokenizers(tokenizer: Tokenizers | None, folder: Path) -> None:
    """Save one tokenizer, or those of both sides, or an image processor, into the folder of a model."""
    if isinstance(tokenizer, tuple):
        save_tokenizer(tokenizer[0], folder)
        save_tokenizer(tokenizer[1], folder / TARGET_TOKENIZER)
    elif isinstance(tokenizer, ImageProcessingMixin):
        tokenizer.save_pretrained(folder)
    elif tokenizer is not None:
        save_tokenizer(tokenizer, folder)


def is_marian(tokenizer: object) -> bool:
    """Tell whether a tokenizer is Marian's own, with SentencePiece models."""
    return type(tokenizer).__name__ == "MarianTokenizer"  # its class cannot be imported without sentencepiece


def _one_side(marian: Any, pieces: str, ids: dict[str, int], language: str | None) -> PreTrainedTokenizerBase:
    """Make a Marian tokenizer whose source and target are the same side of another."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
        return type(marian)(
            source_spm=pieces,
            target_spm=pieces,
            vocab=_write_ids(ids, place, "vocab.json"),
            source_lang=language,
            **_common_settings(marian),
        )


def _common_settings(marian: Any) -> dict[str, Any]:
    names = ("unk_token", "eos_token", "pad_token", "model_max_length", "sp_model_kwargs")
    return {name: getattr(marian, name) for name in names}


def _write_ids(ids: dict[str, int], place: str, name: str) -> str:
    path = Path(place) / name
    path.write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    return str(path)
