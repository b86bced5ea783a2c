# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Make checkpoints of transformers' own models ours, and ours theirs: the same numbers under other names.

Tables say what equals what: `seq2seq_twins.py` (Marian, BART, mBART, T5), `encoder_twins.py` (BERT, RoBERTa, ALBERT,
ELECTRA, DistilBERT), `decoder_twins.py` (GPT-2, Llama, Mistral) and `image_twins.py` (ViT); each also says where the
two differ, since ours follow one rule for all. Nothing is converted that is not exact: a setting or a tensor without a
counterpart is an error.

Read next: `twins.py`, the form of the tables; `conversion.py`, which walks along them; `checkpoint_files.py`, which
opens the files.
"""

import copy
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..inference.loading import TARGET_TOKENIZER
from .checkpoint_files import build_model, find_source, free_folder, open_model, read_config
from .checkpoint_tokenizers import (
    Tokenizers,
    divide,
    is_marian,
    join,
    load_image_processor,
    load_tokenizer,
    save_tokenizers,
)
from .conversion import (
    TWINS,
    check_unknown,
    choose_twin,
    class_to_load,
    our_classes,
    our_config,
    our_state,
    place_of,
    their_config,
    their_state,
    twin_and_class,
)
from .image_twins import IMAGE_TWINS
from .twins import Options, Twin

POOLED = ("AttnBertModel", "AttnVitModel")  # stacks that have a pooler or not


def import_checkpoint(
    source: str | Path | PreTrainedModel,
    output_dir: str | Path | None = None,
    *,
    tokenizer: Tokenizers | None = None,
    decoder_start_token_id: int | str | None = None,
) -> tuple[Any, Tokenizers | None]:
    """Make a checkpoint of Marian, BART, mBART, T5 (v1.0, v1.1), BERT, RoBERTa, ALBERT, ELECTRA, DistilBERT, GPT-2,
    Llama, Mistral or ViT ours.

    Weights are read from safetensors alone, and code that comes with a checkpoint never runs. The network is used only
    if the source is no folder.

    Args:
        source: a folder, a Hub id, or a loaded model (`MarianMTModel`, `BertModel`, `GPT2LMHeadModel`, ...).
        output_dir: an empty or new folder for model, code and tokenizer; None writes nothing.
        tokenizer: the tokenizer, or the pair (source, target), instead of that of the checkpoint; of a ViT the image
            processor. The only one where the source is a loaded model.
        decoder_start_token_id: first input of the decoder of an encoder-decoder, as an id or as a token, e.g. an
            mBART's target language "ko_KR". None for that of the checkpoint.

    Returns:
        The model, with the checkpoint's dtype and generation settings, and its tokenizer: a pair (source, target) for
        separate vocabularies, an image processor for a ViT, None if there is none.

    Raises:
        ValueError: the source is no such checkpoint, has tensors or settings without a counterpart, or the folder to
            write to holds something. Nothing is written then.
    """
    folder = None if output_dir is None else free_folder(output_dir)
    theirs, loaded = (source, None) if isinstance(source, PreTrainedModel) else _load(source, tokenizer is None)
    tokenizer = loaded if tokenizer is None else tokenizer
    twin, our_class = twin_and_class(theirs)
    start = _token_id(decoder_start_token_id, tokenizer)
    read_off = _read_off(twin, our_class, theirs)
    if twin.ties:
        read_off |= _decoder_options(twin, theirs, start, tokenizer)
    elif start is not None:
        raise ValueError(f"decoder_start_token_id={decoder_start_token_id!r}: a {twin.model_type} has no such decoder")
    config, model_class = our_config(twin, our_class, theirs, read_off), our_classes()[our_class]
    with torch.device("meta"):
        wanted = model_class(config).state_dict()
    state = theirs.state_dict()
    places = {name: place_of(twin, our_class, name, state) for name in wanted}
    check_unknown(twin, theirs, places.values())
    model = build_model(model_class, config, our_state(places, state, wanted), theirs.dtype)
    if model.can_generate():
        model.generation_config = _our_generation_config(model, theirs, start)
    if getattr(config, "decoder_vocab_size", None) is not None and isinstance(tokenizer, PreTrainedTokenizerBase):
        tokenizer = divide(tokenizer)
    if folder is not None:
        model.save_pretrained(folder)
        save_tokenizers(tokenizer, folder)
    return model, tokenizer


def export_checkpoint(
    model: str | Path | PreTrainedModel,
    output_dir: str | Path | None = None,
    *,
    model_type: str | None = None,
    tokenizer: Tokenizers | None = None,
) -> tuple[PreTrainedModel, Tokenizers | None]:
    """Make a model of ours one of transformers' own classes, where one does exactly the same.

    Args:
        model: a folder, or a loaded model: an `AttnTransformerForConditionalGeneration`, an `AttnBert...`, an
            `AttnGpt...` or an `AttnVit...`.
        output_dir: an empty or new folder for model and tokenizer; None writes nothing.
        model_type: "marian", "bart", "mbart", "t5", "bert", "roberta", "albert", "electra", "distilbert", "gpt2",
            "llama", "mistral" or "vit"; None takes the first of them that the configuration allows.
        tokenizer: the tokenizer, or the pair (source, target), instead of that of the folder.

    Returns:
        The model, with our dtype and generation settings, and its tokenizer; a pair if the sides have one each.

    Raises:
        ValueError: no class does the same (the options in its way are listed), the model is none of ours or its
            weights are not whole, or the folder to write to holds something. Nothing is written then.
    """
    folder = None if output_dir is None else free_folder(output_dir)
    ours, loaded = _load_ours(model, tokenizer is None) if isinstance(model, (str, Path)) else (model, None)
    tokenizer = loaded if tokenizer is None else tokenizer
    our_class = type(ours).__name__
    if type(ours) is not our_classes().get(our_class):
        raise ValueError(f"model is {our_class}; it must be one of {', '.join(our_classes())}, or its folder")
    twin, options = choose_twin(ours, model_type)
    model_class = getattr(transformers, twin.heads[our_class][0])
    if "forced_eos_token_id" in twin.ignored:
        options["forced_eos_token_id"] = ours.generation_config.forced_eos_token_id  # type: ignore[union-attr]
    config = their_config(twin, our_class, options)
    poolerless = our_class in POOLED and "pooler.dense" in twin.modules and not ours.config.use_pooler
    extra = {"add_pooling_layer": False} if poolerless else {}
    with torch.device("meta"):
        wanted = model_class(config, **extra).state_dict()
    state = their_state(twin, our_class, ours.state_dict(), wanted)
    theirs = build_model(model_class, config, state, ours.dtype, **extra)
    if theirs.can_generate():
        theirs.generation_config = copy.deepcopy(ours.generation_config)
    if isinstance(tokenizer, tuple):
        tokenizer = join(*tokenizer)
    if folder is not None:
        theirs.save_pretrained(folder)
        save_tokenizers(tokenizer, folder)
    return theirs, tokenizer


# Theirs to ours


def _load(source: str | Path, with_tokenizer: bool) -> tuple[PreTrainedModel, Tokenizers | None]:
    """Load a checkpoint with transformers' own class."""
    address, local = find_source(source)
    described = read_config(address, local)
    twin = TWINS.get(described.get("model_type", ""))
    if twin is None:
        raise ValueError(
            f"model_type={described.get('model_type')!r} of {address!r} has no twin here; it must be one of "
            f"{', '.join(TWINS)}"
        )
    if described.get("quantization_config"):
        raise ValueError(f"{address!r} has quantised weights (quantization_config), which have no counterpart")
    model = open_model(getattr(transformers, class_to_load(twin, described)), address, local, twin)
    load = load_image_processor if twin.model_type in IMAGE_TWINS else load_tokenizer
    return model, load(address, local) if with_tokenizer else None


def _token_id(token: int | str | None, tokenizer: Tokenizers | None) -> int | None:
    """Give the id of a token of the target side."""
    if not isinstance(token, str):
        return token
    target: Any = tokenizer[1] if isinstance(tokenizer, tuple) else tokenizer
    ids = {} if target is None else target.get_vocab()
    if token not in ids:
        where = "there is no tokenizer" if target is None else "the tokenizer does not have it"
        raise ValueError(f"decoder_start_token_id={token!r} is no token: {where}; give another, or an id")
    return ids[token]


def _read_off(twin: Twin, our_class: str, theirs: PreTrainedModel) -> Options:
    """Give the options that the tensors of a model say, and not its configuration."""
    options: Options = {}
    output = theirs.get_output_embeddings()
    if output is not None:
        options["tie_word_embeddings"] = output.weight is theirs.get_input_embeddings().weight  # type: ignore[union-attr]
    if our_class in POOLED:
        options["use_pooler"] = f"{twin.modules.get('pooler.dense')}.weight" in theirs.state_dict()
    return options


def _decoder_options(twin: Twin, theirs: PreTrainedModel, start: int | None, tokenizer: Tokenizers | None) -> Options:
    """Give the options of an encoder-decoder that its configuration does not say alone."""
    config: Any = theirs.config
    model: Any = theirs
    source, target = (stack.embed_tokens.weight for stack in (model.get_encoder(), model.get_decoder()))
    tied = model.get_output_embeddings().weight is target
    options: Options = {"share_embeddings": target is source, "tie_word_embeddings": tied}
    if is_marian(tokenizer) and tokenizer.separate_vocabs:  # type: ignore[union-attr]
        options["decoder_vocab_size"] = config.decoder_vocab_size
    if "final_logits_bias" in twin.unread:
        options["output_bias"] = bool(model.final_logits_bias.any())
    named = config.decoder_start_token_id
    if start is None:
        start = model.generation_config.decoder_start_token_id if named is None else named
    if start is None:
        raise ValueError(
            f"decoder_start_token_id is None in the configuration of this {twin.model_type}; give the import one, as "
            "an id or as a token (mBART begins with the code of the target language, e.g. 'ko_KR')"
        )
    return options | {"decoder_start_token_id": start}


def _our_generation_config(model: Any, theirs: PreTrainedModel, start: int | None) -> Any:
    """Carry over how the model generates; what ours refuses is left out with a warning."""
    settings: Any = copy.deepcopy(theirs.generation_config)
    if model.config.is_encoder_decoder and (start is not None or settings.decoder_start_token_id is None):
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
    address, local = find_source(folder)
    described = read_config(address, local)
    named = (described.get("architectures") or [""])[0]
    model_class: Any = our_classes().get(named)
    if model_class is None or model_class.config_class.model_type != described.get("model_type"):
        raise ValueError(
            f"model_type={described.get('model_type')!r} of {address!r}, with architectures={named!r}, is no model of "
            f"ours with a twin; it must be one of {', '.join(our_classes())}"
        )
    model = open_model(model_class, address, local)
    if not with_tokenizer:
        return model, None
    if model.main_input_name == "pixel_values":
        return model, load_image_processor(address, local)
    source = load_tokenizer(address, local)
    target = Path(address) / TARGET_TOKENIZER
    if source is None or not target.is_dir():
        return model, source
    second = load_tokenizer(str(target), local)
    return model, source if second is None else (source, second)
