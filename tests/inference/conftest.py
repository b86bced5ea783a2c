"""A small tokenizer and tiny models that learned a few pairs, so that their outputs vary and end by themselves."""

import functools

import pytest
import torch
from teaching import teach
from transformers import MarianConfig, MarianMTModel

from hf_attn.data import train_tokenizer
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("The old cat sleeps on the chair.", "Le vieux chat dort sur la chaise."),
    ("I see the red house.", "Je vois la maison rouge."),
    ("Maria didn't see the house.", "Maria n'a pas vu la maison."),
    ("We go to school every day.", "우리는 매일 학교에 간다."),
    ("The cat reads a book.", "고양이가 책을 읽는다."),
    ("The girl reads an old book.", "La ragazza legge un vecchio libro."),
    ("Yes!", "Sì!"),
]
SOURCES = [source for source, _ in PAIRS]


@functools.cache
def small_tokenizer():
    """A joint BPE of about 400 pieces."""
    return train_tokenizer([sentence for pair in PAIRS for sentence in pair], 400)


def new_marian(**options):
    """A tiny Marian that uses the special tokens of this package."""
    vocab_size = options.pop("vocab_size", len(small_tokenizer()))
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=vocab_size,
        decoder_vocab_size=vocab_size,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=2,
        **{"max_position_embeddings": 64, "dropout": 0.0, "attn_implementation": "eager"} | options,
    )
    return MarianMTModel(config)


def new_transformer(**options):
    """A tiny Transformer of this package, run by the fused kernel."""
    config = AttnTransformerConfig(
        vocab_size=len(small_tokenizer()),
        hidden_size=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_intermediate_size=32,
        decoder_intermediate_size=32,
        **{"max_position_embeddings": 64, "dropout": 0.0, "attn_implementation": "sdpa"} | options,
    )
    torch.manual_seed(1)
    return AttnTransformerForConditionalGeneration(config)


def new_rnn(**options):
    """A tiny recurrent encoder-decoder of this package."""
    config = AttnRnnConfig(
        vocab_size=len(small_tokenizer()),
        hidden_size=32,
        embedding_size=32,
        **{"dropout": 0.0, "initializer_range": 0.3, "rnn_type": "gru"} | options,
    )
    torch.manual_seed(1)
    return AttnRnnForConditionalGeneration(config)


MODELS = {
    "marian": lambda: teach(new_marian(), small_tokenizer(), PAIRS, 60),
    "transformer": lambda: teach(new_transformer(), small_tokenizer(), PAIRS, 60),
    "bahdanau": lambda: teach(new_rnn(attention_type="bahdanau"), small_tokenizer(), PAIRS, 70),
    "no-attention": lambda: teach(new_rnn(attention_type="none"), small_tokenizer(), PAIRS, 70),
}


@functools.cache
def trained(name):
    """The trained model of that name; tests do not change it."""
    return MODELS[name]()


@pytest.fixture
def tokenizer():
    """The tokenizer of every model here."""
    return small_tokenizer()


@pytest.fixture(params=MODELS)
def model(request):
    """Each of the trained models."""
    return trained(request.param)


@pytest.fixture
def marian():
    """transformers' own model, for what does not depend on the family."""
    return trained("marian")
