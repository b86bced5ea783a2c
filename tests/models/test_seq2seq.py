# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What encoder-decoders share, on the smallest model that has it."""

import itertools

import pytest
import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.models.marian.modeling_marian import shift_tokens_right

from hf_attn.models.base import AttnPreTrainedModel
from hf_attn.models.checks import JointVocabulary
from hf_attn.models.seq2seq import Seq2SeqMixin, shift_right


class TinyConfig(JointVocabulary, PreTrainedConfig):
    model_type = "tiny-seq2seq-for-tests"
    vocab_size: int = 11
    decoder_vocab_size: int | None = None
    hidden_size: int = 4
    initializer_range: float = 0.02
    share_embeddings: bool = True
    tie_word_embeddings: bool = True
    is_encoder_decoder: bool = True
    pad_token_id: int = 0
    decoder_start_token_id: int = 1


class Stack(nn.Module):
    def __init__(self, vocab_size: int, hidden_size: int):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)


class TinyModel(Seq2SeqMixin, AttnPreTrainedModel):
    config: TinyConfig

    def __init__(self, config: TinyConfig):
        super().__init__(config)
        self.encoder = Stack(config.vocab_size, config.hidden_size)
        self.decoder = Stack(config.decoder_vocab_size or config.vocab_size, config.hidden_size)
        self.post_init()


class TinyForConditionalGeneration(Seq2SeqMixin, AttnPreTrainedModel):
    config: TinyConfig

    def __init__(self, config: TinyConfig):
        super().__init__(config)
        self.model = TinyModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.decoder_vocab_size or config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self):
        return self.lm_head


def embeddings(model):
    """Source, target and, if there is a head, output matrices."""
    base = model.base_model
    head = [model.lm_head.weight] if hasattr(model, "lm_head") else []
    return [base.encoder.embed_tokens.weight, base.decoder.embed_tokens.weight, *head]


def test_the_target_is_shifted_as_marian_shifts_it():
    labels = torch.tensor([[5, 6, 7, 2], [8, 2, -100, -100]])
    shifted = shift_right(labels, decoder_start_token_id=1, pad_token_id=0)
    assert shifted.tolist() == [[1, 5, 6, 7], [1, 8, 2, 0]]
    assert torch.equal(shifted, shift_tokens_right(labels, pad_token_id=0, decoder_start_token_id=1))
    assert labels.tolist() == [[5, 6, 7, 2], [8, 2, -100, -100]]


def test_one_label_becomes_the_start_token():
    assert shift_right(torch.tensor([[2]]), 1, 0).tolist() == [[1]]


@pytest.mark.parametrize("share, tie", list(itertools.product([False, True], repeat=2)))
def test_two_switches_tie_three_matrices_before_and_after_saving(share, tie, tmp_path):
    config = TinyConfig(share_embeddings=share, tie_word_embeddings=tie)
    model = TinyForConditionalGeneration(config)
    model.save_pretrained(tmp_path)
    for copy in (model, TinyForConditionalGeneration.from_pretrained(tmp_path)):
        source, target, output = embeddings(copy)
        assert (source is target) == share
        assert (target is output) == tie
        assert (source is output) == (share and tie)
        assert len({id(p) for p in copy.parameters()}) == 3 - share - tie
        for original, matrix in zip(embeddings(model), embeddings(copy), strict=True):
            assert torch.equal(original, matrix)
    assert (TinyModel(config).encoder.embed_tokens.weight is TinyModel(config).decoder.embed_tokens.weight) is False
    base = TinyModel(config)
    assert (base.encoder.embed_tokens.weight is base.decoder.embed_tokens.weight) == share


def test_separate_vocabularies_keep_their_sizes_and_tie_target_and_output():
    model = TinyForConditionalGeneration(TinyConfig(decoder_vocab_size=7, share_embeddings=False))
    source, target, output = embeddings(model)
    assert source.shape == (11, 4) and target.shape == (7, 4) and output is target


@pytest.mark.parametrize("share, tie", list(itertools.product([False, True], repeat=2)))
def test_a_joint_vocabulary_is_resized_everywhere(share, tie):
    model = TinyForConditionalGeneration(TinyConfig(share_embeddings=share, tie_word_embeddings=tie))
    before = [matrix.detach().clone() for matrix in embeddings(model)]
    assert model.resize_token_embeddings(15) is model.get_input_embeddings()
    assert model.config.vocab_size == 15
    source, target, output = embeddings(model)
    for old, new in zip(before, (source, target, output), strict=True):
        assert new.shape == (15, 4)
        assert torch.equal(new[:11], old)
    assert (source is target) == share and (target is output) == tie
    model.resize_token_embeddings(9)
    for old, new in zip(before, embeddings(model), strict=True):
        assert torch.equal(new, old[:9])


def test_separate_vocabularies_are_not_resized_by_one_number():
    model = TinyForConditionalGeneration(TinyConfig(decoder_vocab_size=7, share_embeddings=False))
    for arguments in ({"new_num_tokens": 15}, {"pad_to_multiple_of": 8}):
        with pytest.raises(ValueError, match="decoder_vocab_size=7"):
            model.resize_token_embeddings(**arguments)
    assert model.resize_token_embeddings() is model.get_input_embeddings()
    assert [matrix.shape[0] for matrix in embeddings(model)] == [11, 7, 7]


@pytest.mark.parametrize("share", [False, True])
def test_new_source_embeddings_replace_the_target_s_where_they_are_shared(share):
    model, table = TinyForConditionalGeneration(TinyConfig(share_embeddings=share)), nn.Embedding(11, 4)
    model.set_input_embeddings(table)
    assert model.get_input_embeddings() is table
    assert (model.base_model.decoder.embed_tokens is table) == share


def test_collators_get_the_decoder_s_input_from_the_configuration():
    model = TinyForConditionalGeneration(TinyConfig(decoder_start_token_id=3, pad_token_id=9))
    assert model.prepare_decoder_input_ids_from_labels(torch.tensor([[5, -100, 2]])).tolist() == [[3, 5, 9]]


def test_generation_hands_the_padding_mask_over_unchanged():
    mask = torch.tensor([[1, 1, 0]])
    assert TinyForConditionalGeneration.create_masks_for_generate(attention_mask=mask, config=None, cache=None) is mask
    assert TinyForConditionalGeneration.create_masks_for_generate(config=None) is None


def test_the_decoder_reads_what_is_given_or_the_shifted_labels():
    model = TinyForConditionalGeneration(TinyConfig())
    labels, ids, embeds = torch.tensor([[5, 2]]), torch.tensor([[1, 7]]), torch.zeros(1, 2, 4)
    assert model.decoder_inputs_from_labels(labels, None, None).tolist() == [[1, 5]]
    assert model.decoder_inputs_from_labels(None, ids, None) is ids
    assert model.decoder_inputs_from_labels(labels, ids, None) is ids
    assert model.decoder_inputs_from_labels(None, None, embeds) is None
    assert model.decoder_inputs_from_labels(labels, None, embeds) is None


def test_nothing_to_decode_and_unequal_lengths_are_refused():
    model = TinyForConditionalGeneration(TinyConfig())
    with pytest.raises(ValueError, match="labels.*decoder_input_ids or decoder_inputs_embeds"):
        model.decoder_inputs_from_labels(None, None, None)
    for given in ({"decoder_input_ids": torch.ones(1, 3)}, {"decoder_inputs_embeds": torch.ones(1, 3, 4)}):
        arguments = {"decoder_input_ids": None, "decoder_inputs_embeds": None, **given}
        with pytest.raises(ValueError, match=r"labels have shape \(1, 2\), the decoder's inputs \(1, 3\)"):
            model.decoder_inputs_from_labels(torch.tensor([[5, 2]]), **arguments)
