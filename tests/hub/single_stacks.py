# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Tiny checkpoints of transformers' encoders and decoders with tokenizers of their own kinds, trained on sentences of
the phrasebook."""

import json

import transformers
from hub.checkpoints import sides, write_pieces
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import AutoConfig, AutoTokenizer

from hf_attn.hub.conversion import TWINS
from hf_attn.hub.decoder_twins import DECODER_TWINS
from hf_attn.hub.encoder_twins import ENCODER_TWINS

KINDS = (*ENCODER_TWINS, *DECODER_TWINS)
OTHER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
SIZES = {
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 20},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2},
    "mistral": OTHER | {"num_key_value_heads": 1},
}
BYTES = {  # special tokens of those that cut text into bytes, in the order of their ids
    "roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    "gpt2": ["<|endoftext|>"],
}


def write_tokenizer(kind, folder):
    """Write the files of a tokenizer of this kind, and load it as transformers does."""
    texts = [*sides()[0], *sides()[1]]
    (folder / "config.json").write_text(json.dumps({"model_type": kind}))  # tells the library whose files these are
    if kind in BYTES:
        learner = ByteLevelBPETokenizer()
        learner.train_from_iterator(texts, vocab_size=330, special_tokens=BYTES[kind], show_progress=False)
        learner.save_model(str(folder))
    elif kind == "albert":
        ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
        write_pieces(folder / "spiece.model", texts, user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"], **ids)
    elif kind in ("llama", "mistral"):
        write_pieces(folder / "tokenizer.model", texts, model_type="bpe", byte_fallback=True, vocab_size=800)
    else:
        learner = BertWordPieceTokenizer(strip_accents=False)
        learner.train_from_iterator(texts, vocab_size=330, show_progress=False)
        learner.save_model(str(folder))
    return AutoTokenizer.from_pretrained(folder)


def write_single_stack(kind, folder, tokenizer=True, **options):
    """Write a model, and a tokenizer that fits it.

    Args:
        kind: One of KINDS.
        folder: A new folder.
        tokenizer: Whether there is one.
        options: Of the model's configuration.

    Returns:
        The model and the tokenizer, or None.
    """
    folder.mkdir()
    written = write_tokenizer(kind, folder) if tokenizer else None
    special = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": None}
    if written is not None:
        special = {name: getattr(written, name) for name in special}
        special["pad_token_id"] = special["pad_token_id"] or 0 if kind in ENCODER_TWINS else None
    size = 40 if written is None else len(written)
    config = AutoConfig.for_model(kind, vocab_size=size, **SIZES.get(kind, OTHER) | special | options)
    name = [theirs for ours, (theirs, _) in TWINS[kind].heads.items() if ours.endswith("LM")][0]
    model = getattr(transformers, name)(config).eval()
    model.save_pretrained(folder)
    if written is not None:
        written.save_pretrained(folder)
    return model, written
