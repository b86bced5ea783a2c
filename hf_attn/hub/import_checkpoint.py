# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Make transformers' Marian, BART, mBART and T5 ours, and ours theirs: the same numbers under other names.

`twins.py` says what equals what; here the tables are walked along. Nothing is converted that is not exact: a setting or
a tensor without a counterpart is an error. The two then give the same logits, attention weights, losses and outputs
of `generate()`, up to rounding, with these differences:

- Positions. Ours count from the first real token of a row, those of Marian, BART and mBART from its start. They differ
  where a row is padded on the left, which these models were not trained for.
- mBART makes the decoder's input from labels by moving their last token, the code of the target language, to the
  front. Ours always begins with `decoder_start_token_id`: that of the checkpoint, or the argument where it names none.
- Training. The last bias of Marian, BART and mBART stays as it was loaded, ours is trained (there is none where all its
  numbers are 0, so that it stays 0). Marian does not train the embedding with which a target begins where that is the
  padding's; ours does. T5 drops out coordinates of the last states of a stack too.
"""

import copy
import dataclasses
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from ..inference.loading import TARGET_TOKENIZER
from ..models.configuration_attn_transformer import AttnTransformerConfig
from ..models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from ..models.positions import sinusoidal
from .checkpoint_tokenizers import Tokenizers, divide, is_marian, join, load_tokenizer, save_tokenizers
from .encoder_twins import ENCODER_TWINS
from .import_encoder import class_to_load, import_encoder, leave_out
from .twins import TWINS, Options, Twin

SOURCE, TARGET, OUTPUT = "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"
DROPPED = ("alignment_method", "alignment_layer", "alignment_heads", "initializer_range")  # they change no output


def import_checkpoint(
    source: str | Path | PreTrainedModel,
    output_dir: str | Path | None = None,
    *,
    tokenizer: Tokenizers | None = None,
    decoder_start_token_id: int | str | None = None,
) -> tuple[Any, Tokenizers | None]:
    """Make a checkpoint of Marian, BART, mBART, T5 (v1.0, v1.1), BERT, RoBERTa, ALBERT, ELECTRA or DistilBERT ours.

    Weights are read from safetensors alone, and code that comes with a checkpoint never runs. The network is used only
    if the source is no folder.

    Args:
        source: a folder, a Hub id, or a loaded model with an output layer (`MarianMTModel`, ...), or an encoder with
            or without a head (`BertModel`, ...).
        output_dir: an empty or new folder for model, code and tokenizer; None writes nothing.
        tokenizer: the tokenizer, or the pair (source, target), instead of that of the checkpoint; the only one where
            the source is a loaded model.
        decoder_start_token_id: first input of the decoder, as an id or as a token, e.g. an mBART's target language
            "ko_KR". None for that of the checkpoint.

    Returns:
        The model, with the checkpoint's dtype and generation settings, and its tokenizer: a pair (source, target) for
        separate vocabularies, None if there is none.

    Raises:
        ValueError: the source is no such checkpoint, has tensors or settings without a counterpart, or the folder to
            write to holds something. Nothing is written then.
    """
    folder = None if output_dir is None else _free_folder(output_dir)
    theirs, loaded = (source, None) if isinstance(source, PreTrainedModel) else _load(source, tokenizer is None)
    tokenizer = loaded if tokenizer is None else tokenizer
    if theirs.config.model_type in ENCODER_TWINS:
        if decoder_start_token_id is not None:
            raise ValueError(f"decoder_start_token_id={decoder_start_token_id!r}: an encoder alone has no decoder")
        model = import_encoder(theirs)
        if folder is not None:
            model.save_pretrained(folder)
            save_tokenizers(tokenizer, folder)
        return model, tokenizer
    twin = _twin_of(theirs)
    start = _token_id(decoder_start_token_id, tokenizer)
    separate = is_marian(tokenizer) and bool(tokenizer.separate_vocabs)  # type: ignore[union-attr]
    config = _our_config(twin, theirs, start, separate)
    names = _our_names(twin, config, theirs.state_dict().keys())
    _check_unknown(twin, theirs, names)
    state = _our_state(twin, names, theirs.state_dict())
    model = _build(AttnTransformerForConditionalGeneration, config, state, theirs.dtype)
    model.generation_config = _our_generation_config(model, theirs, start)
    if config.decoder_vocab_size is not None and isinstance(tokenizer, PreTrainedTokenizerBase):
        tokenizer = divide(tokenizer)
    if folder is not None:
        model.save_pretrained(folder)
        save_tokenizers(tokenizer, folder)
    return model, tokenizer


def export_checkpoint(
    model: str | Path | AttnTransformerForConditionalGeneration,
    output_dir: str | Path | None = None,
    *,
    model_type: str | None = None,
    tokenizer: Tokenizers | None = None,
) -> tuple[PreTrainedModel, Tokenizers | None]:
    """Make a Transformer of ours one of transformers' own classes, where one does exactly the same.

    Args:
        model: a folder, or a loaded model.
        output_dir: an empty or new folder for model and tokenizer; None writes nothing.
        model_type: "marian", "bart", "mbart" or "t5"; None takes the one that the configuration allows.
        tokenizer: the tokenizer, or the pair (source, target), instead of that of the folder.

    Returns:
        The model, with our dtype and generation settings, and its tokenizer; a pair if the sides have one each.

    Raises:
        ValueError: no class does the same (the options in its way are listed), the model is none of ours or its
            weights are not whole, or the folder to write to holds something. Nothing is written then.
    """
    folder = None if output_dir is None else _free_folder(output_dir)
    if isinstance(model, (str, Path)):
        model, loaded = _load_ours(model, tokenizer is None)
        tokenizer = loaded if tokenizer is None else tokenizer
    if not isinstance(model, AttnTransformerForConditionalGeneration):
        raise ValueError(
            f"model is {type(model).__name__}; it must be an AttnTransformerForConditionalGeneration, or its folder"
        )
    twin, options = _choose_twin(model, model_type)
    model_class = getattr(transformers, twin.class_name)
    if "forced_eos_token_id" in twin.ignored:
        options["forced_eos_token_id"] = model.generation_config.forced_eos_token_id  # type: ignore[union-attr]
    config = model_class.config_class(**options)
    with torch.device("meta"):
        wanted = model_class(config).state_dict()
    state = _their_state(twin, model, wanted)
    theirs = _build(model_class, config, state, model.dtype)
    theirs.generation_config = copy.deepcopy(model.generation_config)
    if isinstance(tokenizer, tuple):
        tokenizer = join(*tokenizer)
    if folder is not None:
        theirs.save_pretrained(folder)
        save_tokenizers(tokenizer, folder)
    return theirs, tokenizer


# Theirs to ours


def _load(source: str | Path, with_tokenizer: bool) -> tuple[PreTrainedModel, PreTrainedTokenizerBase | None]:
    """Load a checkpoint with transformers' own class, and refuse one whose tensors are not exactly its own."""
    address, local = _address(source)
    described = _read_config(address, local)
    kind = described.get("model_type", "")
    if kind not in TWINS and kind not in ENCODER_TWINS:
        raise ValueError(
            f"model_type={described.get('model_type')!r} of {address!r} has no twin here; it must be one of "
            f"{', '.join([*TWINS, *ENCODER_TWINS])}"
        )
    if described.get("quantization_config"):
        raise ValueError(f"{address!r} has quantised weights (quantization_config), which have no counterpart")
    class_name = TWINS[kind].class_name if kind in TWINS else class_to_load(described)
    model = _open(getattr(transformers, class_name), address, local)
    return model, load_tokenizer(address, local) if with_tokenizer else None


def _read_config(address: str, local: bool) -> dict[str, Any]:
    """Read the config.json of a checkpoint."""
    try:
        described, _ = PreTrainedConfig.get_config_dict(address, local_files_only=local)
    except OSError as error:
        raise ValueError(f"source is {address!r}; it holds no config.json that can be read: {error}") from error
    if not isinstance(described, dict) or not described:
        raise ValueError(f"source is {address!r}; it holds no config.json with the settings of a model")
    return described


def _open(model_class: Any, address: str, local: bool) -> Any:
    """Load a model from safetensors, and refuse one whose tensors are not exactly its own."""
    if local and not list(Path(address).glob("*.safetensors")):
        _refuse_other_weights(Path(address))
    try:
        model, info = model_class.from_pretrained(
            address,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            local_files_only=local,
        )
    except (OSError, RuntimeError, SafetensorError) as error:  # the second for tied tensors of different shapes
        raise ValueError(f"source is {address!r}; its weights cannot be read from safetensors: {error}") from error
    if (kind := model_class.config_class.model_type) in ENCODER_TWINS:
        info["unexpected_keys"] = leave_out(kind, info["unexpected_keys"])
    _check_loaded(address, model, info, lambda: _shapes_in_files(address, local))
    return model


def _address(source: str | Path) -> tuple[str, bool]:
    """Tell whether a source is a folder, and where."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return str(folder), True
    if isinstance(source, Path) or folder.is_absolute() or folder.exists() or source.startswith((".", "~")):
        raise ValueError(f"source is {str(source)!r}; there is no such folder")
    return source, False


def _refuse_other_weights(folder: Path) -> None:
    others = sorted(path.name for path in folder.glob("*.bin"))
    if others:
        raise ValueError(
            f"{folder} has its weights in {others[0]}, a format that can run code when it is opened; only safetensors "
            "are read. If you trust the file, open it with transformers and save it again"
        )
    raise ValueError(f"{folder} has no weights: there is no file *.safetensors")


def _shapes_in_files(address: str, local: bool) -> dict[str, tuple[int, ...]]:
    """Read the shape of every tensor from the heads of the files."""
    quiet: dict[str, Any] = {"local_files_only": local, "_raise_exceptions_for_missing_entries": False}
    whole: Any = cached_file(address, "model.safetensors", **quiet)
    files: Any = [whole]
    if whole is None:
        index: Any = cached_file(address, "model.safetensors.index.json", **quiet)
        files, _ = get_checkpoint_shard_files(address, index, local_files_only=local)
    shapes = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            shapes |= {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    return shapes


def _check_loaded(what: str, model: PreTrainedModel, info: dict[str, Any], found_shapes: Any) -> None:
    """Refuse weights of which one is missing, unknown or of another shape, naming all such."""
    if not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")):
        return
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    shapes = found_shapes() if info["unexpected_keys"] else {}
    faults = [f"missing: {name} {wanted.get(name, '')}" for name in sorted(info["missing_keys"])]
    faults += [f"unknown: {name} {shapes.get(name, '')}" for name in sorted(info["unexpected_keys"])]
    faults += [
        f"other shape: {name} {tuple(found)} instead of {tuple(expected)}"
        for name, found, expected in sorted(info["mismatched_keys"])
    ]
    raise ValueError(f"the tensors of {what} are not those of {type(model).__name__}: {'; '.join(faults)}")


def _twin_of(theirs: PreTrainedModel) -> Twin:
    """Find the table of a loaded model."""
    twin = TWINS.get(theirs.config.model_type)
    if twin is None or type(theirs).__name__ != twin.class_name:
        names = ", ".join(twin.class_name for twin in TWINS.values())
        raise ValueError(f"source is {type(theirs).__name__}, which has no twin here; it must be one of {names}")
    return twin


def _token_id(token: int | str | None, tokenizer: Tokenizers | None) -> int | None:
    """Give the id of a token of the target side."""
    if not isinstance(token, str):
        return token
    target = tokenizer[1] if isinstance(tokenizer, tuple) else tokenizer
    ids = {} if target is None else target.get_vocab()
    if token not in ids:
        where = "there is no tokenizer" if target is None else "the tokenizer does not have it"
        raise ValueError(f"decoder_start_token_id={token!r} is no token: {where}; give another, or an id")
    return ids[token]


def _our_config(twin: Twin, theirs: PreTrainedModel, start: int | None, separate: bool) -> AttnTransformerConfig:
    """Translate the configuration; ValueError for values without a counterpart, all of them."""
    config: Any = theirs.config
    source, target, output = (theirs.get_parameter(f"{twin.modules[name]}.weight") for name in (SOURCE, TARGET, OUTPUT))
    shared, tied = target is source, output is target
    required = twin.required | twin.ties.get((shared, tied), {})
    faults = [
        f"{name}={getattr(config, name)!r} (it must be {value!r})"
        for name, value in required.items()
        if getattr(config, name, value) != value
    ]
    if faults:
        raise ValueError(f"this {twin.model_type} has settings without a counterpart here: {', '.join(faults)}")
    options: Options = {ours: getattr(config, name, None) for ours, name in twin.fields.items()}
    options |= twin.fixed | twin.to_ours(config) | {"share_embeddings": shared, "tie_word_embeddings": tied}
    if separate:
        options["decoder_vocab_size"] = config.decoder_vocab_size
    if "lm_head.bias" in twin.modules:
        options["output_bias"] = bool(theirs.get_buffer(twin.modules["lm_head.bias"]).any())
    if start is None and options["decoder_start_token_id"] is None:
        start = theirs.generation_config.decoder_start_token_id  # type: ignore[union-attr]
    if start is not None:
        options["decoder_start_token_id"] = start
    if options["decoder_start_token_id"] is None:
        raise ValueError(
            f"decoder_start_token_id is None in the configuration of this {twin.model_type}; give the import one, as "
            "an id or as a token (mBART begins with the code of the target language, e.g. 'ko_KR')"
        )
    try:
        return AttnTransformerConfig(**options)
    except StrictDataclassError as error:  # a value of another type, such as no pad_token_id
        raise ValueError(f"this {twin.model_type} has a setting without a counterpart here: {error}") from error


def _our_names(twin: Twin, config: AttnTransformerConfig, theirs: Iterable[str]) -> dict[str, str]:
    """Name the twin of each of our tensors."""
    with torch.device("meta"):
        ours = AttnTransformerForConditionalGeneration(config).state_dict()
    return {name: their_name(twin, name, theirs) for name in ours}


def their_name(twin: Twin, name: str, theirs: Iterable[str]) -> str:
    """Name the twin of one of our tensors.

    Args:
        twin: The table.
        name: Of our tensor.
        theirs: The names of all tensors of the other model.
    """
    number = re.search(r"\.(\d+)\.", name)
    pattern = name if number is None else name.replace(number[0], ".N.", 1)
    if pattern in twin.modules:
        return twin.modules[pattern]
    module, leaf = pattern.rsplit(".", 1)
    found = f"{twin.modules[module]}.{leaf}"
    if number is not None:
        found = found.replace(".N.", number[0], 1)
    for part, other in twin.spellings.items():
        found = found if found in theirs else found.replace(part, other)
    return found


def _check_unknown(twin: Twin, theirs: PreTrainedModel, names: dict[str, str]) -> None:
    """Refuse a model with tensors that ours has no place for, or without one that ours needs."""
    state = theirs.state_dict()
    known = {*names.values(), *twin.unread, *twin.computed}
    faults = [f"unknown: {name} {tuple(tensor.shape)}" for name, tensor in state.items() if name not in known]
    faults += [f"missing: {name}" for name in names.values() if name not in state]
    for name in twin.computed:
        table = state[name].float().cpu()
        formula = sinusoidal(torch.arange(table.shape[0]), table.shape[1], order="concatenated")
        distance = float((table - formula).abs().max())
        if distance > 1e-3 + torch.finfo(state[name].dtype).eps:  # float32 angles of far positions are not exact
            faults.append(f"{name} is no table of sinusoids (it differs from the formula by up to {distance:.3g})")
    if faults:
        raise ValueError(f"the tensors of this {twin.class_name} do not fit: {'; '.join(faults)}")


def _our_state(twin: Twin, names: dict[str, str], theirs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Collect our tensors; those that are tied stay one."""
    state = {}
    for ours, name in names.items():
        tensor = theirs[name].detach().cpu()
        row = twin.first_row.get(ours.rpartition(".")[0], 0)
        state[ours] = tensor.flatten() if ours == "lm_head.bias" else tensor[row:]
    return state


def _our_generation_config(model: Any, theirs: PreTrainedModel, start: int | None) -> Any:
    """Carry over how the model generates; what ours refuses is left out with a warning."""
    settings: Any = copy.deepcopy(theirs.generation_config)
    if start is not None or settings.decoder_start_token_id is None:
        settings.decoder_start_token_id = model.config.decoder_start_token_id
    for name, neutral, reason in model.refused_generation_options():
        value = getattr(settings, name)
        if value not in (None, neutral):
            warnings.warn(f"generation setting {name}={value!r} is left out: {reason}", stacklevel=3)
            setattr(settings, name, None)
    return settings


# Ours to theirs


def _load_ours(folder: str | Path, with_tokenizer: bool) -> tuple[Any, Tokenizers | None]:
    """Load a model of ours with its dtype, and its tokenizers."""
    address, local = _address(folder)
    described = _read_config(address, local)
    if described.get("model_type") != AttnTransformerConfig.model_type:
        raise ValueError(
            f"model_type={described.get('model_type')!r} of {address!r} is no Transformer of ours; it must be "
            f"{AttnTransformerConfig.model_type!r}"
        )
    model = _open(AttnTransformerForConditionalGeneration, address, local)
    if not with_tokenizer:
        return model, None
    source = load_tokenizer(address, local)
    target = Path(address) / TARGET_TOKENIZER
    if source is None or not target.is_dir():
        return model, source
    second = load_tokenizer(str(target), local)
    return model, source if second is None else (source, second)


def _choose_twin(model: AttnTransformerForConditionalGeneration, model_type: str | None) -> tuple[Twin, Options]:
    """Find the architecture that does what a model of ours does, with its options; warn about what gets lost."""
    if model_type is not None and model_type not in TWINS:
        raise ValueError(f"model_type={model_type!r} is not allowed; choose one of {', '.join(map(repr, TWINS))}")
    values = option_values(model.config)
    reasons = []
    for twin in TWINS.values() if model_type is None else [TWINS[model_type]]:
        options, obstacles = _their_options(twin, values)
        if not obstacles:
            defaults = option_values(AttnTransformerConfig())
            lost = [f"{name}={values[name]!r}" for name in DROPPED[:3] if values[name] != defaults[name]]
            if lost:
                warnings.warn(f"{twin.model_type} has no place for {', '.join(lost)}", stacklevel=3)
            return twin, options
        reasons.append(f"{twin.model_type}: {', '.join(obstacles)}")
    raise ValueError(f"no model of transformers does what this one does; in the way of {'; of '.join(reasons)}")


def option_values(config: AttnTransformerConfig) -> Options:
    """Give the values of our own fields, with None for each that says no more than the default."""
    names = AttnTransformerConfig.__annotations__.keys()
    values = {name.name: getattr(config, name.name) for name in dataclasses.fields(config) if name.name in names}
    heads = {config.encoder_attention_heads, config.decoder_attention_heads}
    same = {
        "decoder_vocab_size": config.decoder_vocab_size == config.vocab_size and config.share_embeddings,
        "embedding_size": config.embedding_size == config.hidden_size,
        "head_dim": all(config.head_dim == config.hidden_size / number for number in heads),
        "layer_norm_eps": config.layer_norm_eps == {"layer": 1e-5, "rms": 1e-6}[config.norm_type],
    }
    return values | {name: None for name, is_same in same.items() if is_same}


def _their_options(twin: Twin, values: Options) -> tuple[Options, list[str]]:
    """Translate our options; what has no counterpart is listed."""
    options, obstacles = twin.to_theirs(values)
    shared, tied = values["share_embeddings"], values["tie_word_embeddings"]
    ties = twin.ties.get((shared, tied))
    if ties is None:
        obstacles.append(f"share_embeddings={shared} with tie_word_embeddings={tied}")
    options |= ties or {}
    known = {"share_embeddings", "tie_word_embeddings", *DROPPED, *twin.converted}
    if "lm_head.bias" in twin.modules:
        known.add("output_bias")
    first = {name: ours for ours, name in reversed(twin.fields.items())}  # of those that share a field of theirs
    for ours, name in twin.fields.items():
        options[name] = values[first[name]]
        if values[ours] != options[name]:
            obstacles.append(f"{ours}={values[ours]!r} beside {first[name]}={options[name]!r}")
    defaults = option_values(AttnTransformerConfig())
    for name in values.keys() - twin.fields.keys() - known:
        wanted = twin.fixed.get(name, defaults[name])
        if values[name] != wanted:
            obstacles.append(f"{name}={values[name]!r} (it must be {wanted!r})")
    return options, sorted(obstacles)


def _their_state(twin: Twin, model: Any, wanted: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Collect the tensors of their model; `wanted` has their names and shapes."""
    state = {}
    for ours, tensor in model.state_dict().items():
        name = their_name(twin, ours, wanted)
        row = twin.first_row.get(ours.rpartition(".")[0], 0)
        tensor = tensor.detach().cpu()
        if row:
            tensor = torch.cat([tensor.new_zeros(row, tensor.shape[1]), tensor])
        state[name] = tensor.reshape(wanted[name].shape) if ours == "lm_head.bias" else tensor
    embeddings = state[f"{twin.modules[SOURCE]}.weight"]
    for name in twin.unread:
        if name in wanted and name not in state:
            shared = name.endswith("shared.weight")  # a copy: saving leaves out what has the memory of another
            state[name] = embeddings.clone() if shared else embeddings.new_zeros(wanted[name].shape)
    return state


# Both


def _free_folder(folder: str | Path) -> Path:
    """Refuse a folder that holds something: files of two models would mix."""
    path = Path(folder).expanduser()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"output_dir is {str(folder)!r}, which holds something; give a new or an empty folder")
    return path


def _build(model_class: Any, config: PreTrainedConfig, state: dict[str, torch.Tensor], dtype: torch.dtype) -> Any:
    """Make a model of its tensors."""
    model, info = model_class.from_pretrained(
        None, config=config, state_dict=state, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True
    )
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    _check_loaded("the source", model, info, lambda: shapes)
    model.config._name_or_path = model.name_or_path = ""  # the library writes "None"
    return model.eval()
