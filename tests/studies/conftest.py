# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A folder with two tiny translators, one with attention and one without, and a tiny encoder of transformers."""

import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from hf_attn.data import phrasebook, train_tokenizer
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "got", "bit", "by", "py", "##th", "##on", "is", "my"]
WORDS += ["favorite", "programming", "language", "snake", "java", "a"]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """The folder of the translators."""
    folder = tmp_path_factory.mktemp("models")
    texts = [text for pair in phrasebook("en-it", "train", size=50)["translation"] for text in pair.values()]
    tokenizer = train_tokenizer(texts, 300)
    for name, kind in (("en-it-bahdanau", "bahdanau"), ("en-it-none", "none")):
        torch.manual_seed(0)
        sizes = {"hidden_size": 12, "embedding_size": 12, "initializer_range": 0.5}
        config = AttnRnnConfig(vocab_size=len(tokenizer), attention_type=kind, **sizes)
        AttnRnnForConditionalGeneration(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    """The folder of the encoder."""
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), initializer_range=0.5, **sizes)).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    return folder
