"""Open a model and its tokenizers for translation, and say how long a sequence they take."""

import copy
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from .ensemble import Ensemble

Loaded = tuple[PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerBase]
Tokenizers = tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]  # of the source and of the target

TARGET_TOKENIZER = "target_tokenizer"  # sub-folder with the tokenizer of a separate target vocabulary


def load_translator(
    model: Any,
    tokenizer: Any,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    trust_remote_code: bool,
) -> Loaded:
    """Give the model, ready to run, with its source and target tokenizers; arguments as for `Translator`."""
    precision = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if dtype is not None and not (isinstance(precision, torch.dtype) and precision.is_floating_point):
        raise ValueError(
            f"dtype is {dtype!r}; it must be a torch dtype of weights or its name, e.g. 'float32' or 'bfloat16'"
        )
    check_device(device)
    models = model if isinstance(model, list) else [model]
    if not models:
        raise ValueError("model is an empty list; an ensemble needs at least one model")
    # all are opened and checked before one is changed
    opened = [_open(one, tokenizer, precision, trust_remote_code) for one in models]
    networks, pairs = [network for network, _ in opened], [pair for _, pair in opened]
    _check_shared(pairs)
    for one, network in zip(models, networks, strict=True):
        where = place_of(one, device)
        if where is not None or precision is not None:
            network.to(device=where, dtype=precision)  # type: ignore[call-overload]
    # encoding sets padding and truncation on a tokenizer; the user's stays as it is
    source, target = copy.deepcopy(pairs[0])
    return (networks[0] if len(networks) == 1 else Ensemble(networks)).eval(), source, target


def _open(model: Any, tokenizer: Any, dtype: torch.dtype | None, trust_remote_code: bool) -> tuple[Any, Tokenizers]:
    """Give one model and its pair of tokenizers, checked and unchanged."""
    if isinstance(model, (str, Path)):
        network, tokenizers = _load(model, tokenizer, dtype, trust_remote_code)
    elif isinstance(model, PreTrainedModel):
        if tokenizer is None:
            raise ValueError("tokenizer is None; a loaded model needs its tokenizer: Translator(model, tokenizer)")
        network, tokenizers = model, tokenizer
        _check_config(network.config, type(network).__name__)
    else:
        raise ValueError(
            f"model is {type(model).__name__}; it must be a folder, a Hub id, a loaded model, or a list of such"
        )
    if not network.can_generate():
        raise ValueError(f"model is {type(network).__name__}, which has no generating head")
    pair = tuple(tokenizers) if isinstance(tokenizers, (tuple, list)) else (tokenizers, tokenizers)
    if len(pair) != 2 or not all(isinstance(one, PreTrainedTokenizerBase) for one in pair):
        raise ValueError(
            f"tokenizer is {tokenizers!r:.80}; it must be a tokenizer of transformers, or two: (source, target)"
        )
    return network, pair


def _check_shared(pairs: list[Tokenizers]) -> None:
    """Refuse models of an ensemble that do not share their tokenizers."""
    for side, tokenizers in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        for number, other in enumerate(tokenizers):
            if other.get_vocab() != tokenizers[0].get_vocab():
                raise ValueError(
                    f"model {number + 1} of {len(pairs)} has another {side} vocabulary than the first; the models of "
                    "an ensemble must share their tokenizer"
                )


def _load(
    name: str | Path, tokenizer: Any, dtype: torch.dtype | None, trust_remote_code: bool
) -> tuple[PreTrainedModel, Any]:
    folder = Path(name).expanduser()
    local = folder.is_dir()
    if local:
        _check_folder(folder)
    elif isinstance(name, Path) or folder.is_absolute() or folder.exists() or str(name).startswith((".", "~")):
        raise ValueError(f"model is {str(name)!r}; there is no such folder")
    options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": trust_remote_code}
    address = str(folder) if local else str(name)
    try:
        config = AutoConfig.from_pretrained(address, **options)
    except OSError as error:
        if local:
            raise
        raise ValueError(f"model is {address!r}; there is no such folder, nor did the Hub give it: {error}") from error
    _check_config(config, address)
    # Our families return weights under every implementation, transformers' own under eager alone.
    attention = {} if _is_ours(config) else {"attn_implementation": "eager"}
    network, found = AutoModelForSeq2SeqLM.from_pretrained(
        address, config=config, dtype=dtype or torch.float32, output_loading_info=True, **attention, **options
    )
    if missing := sorted(found["missing_keys"]):
        raise ValueError(f"model is {address!r}; {len(missing)} of its weights are not in the files, e.g. {missing[0]}")
    if tokenizer is not None:
        return network, tokenizer
    source = AutoTokenizer.from_pretrained(address, **options)
    separate = (folder / TARGET_TOKENIZER).is_dir() if local else _has_target_vocabulary(config)
    if not separate:
        return network, source
    return network, (source, AutoTokenizer.from_pretrained(address, subfolder=TARGET_TOKENIZER, **options))


def _is_ours(config: PreTrainedConfig) -> bool:
    return config.model_type.startswith("attn-")


def _has_target_vocabulary(config: PreTrainedConfig) -> bool:
    return _is_ours(config) and config.decoder_vocab_size is not None


def check_device(device: str | torch.device | None) -> None:
    """Refuse what is no device of this machine; None is a device that is not named."""
    try:
        kind = "cpu" if device is None else torch.device(device).type
    except RuntimeError as error:
        raise ValueError(
            f"device is {device!r}; it must be the name of a torch device, e.g. 'cpu' or 'cuda'"
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {str(device)!r}, but torch finds no GPU; leave it out to run on the processor")


def place_of(model: Any, device: str | torch.device | None) -> str | torch.device | None:
    """Give where a model goes: to the named device; if it is only now opened, to a GPU; None is to stay."""
    if device is None and isinstance(model, (str, Path)):
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def _check_folder(folder: Path) -> None:
    if (folder / "config.json").is_file():
        return
    inside = sorted(path.parent.name for path in folder.glob("*/config.json"))
    hint = f"; a model is in its sub-folder {inside[-1]}" if inside else ""
    raise ValueError(f"model is {str(folder)!r}; this folder holds no model (there is no config.json){hint}")


def _check_config(config: PreTrainedConfig, name: str) -> None:
    if not getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"model is {name}, of type {config.model_type!r}; translation needs an encoder-decoder model")


def decoder_position_limit(model: PreTrainedModel) -> int:
    """Give the longest sequence that the model's positions allow; a very large number where there is no limit."""
    positions = getattr(model.config, "max_position_embeddings", None)
    return positions if isinstance(positions, int) else 2**31


def position_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Give the longest sequence that the model and its tokenizer take, in pieces with "</s>"."""
    return min(decoder_position_limit(model), int(min(tokenizer.model_max_length, 2**31)))
