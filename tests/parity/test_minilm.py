# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A real checkpoint, all-MiniLM-L6-v2 (a BERT of 22.7 million weights), imported: transformers' states and sentence
embeddings on real sentences, its tokenizer, and the same checkpoint on the way back."""

import pytest
import torch
from torch.nn import functional as F
from transformers import AutoModel, AutoTokenizer, BertModel

from hf_attn.hub import export_checkpoint, import_checkpoint

SENTENCES = [
    "A man is eating a piece of bread.",
    "Someone is having a meal.",
    "The stock market fell sharply on Monday, and nobody could say why it had risen so far the week before.",
    "그 소녀는 빨간 집을 봐요.",
    "어제 서울에는 비가 많이 왔습니다.",
    "Typed [SEP] and [MASK], naïve café, ☃.",
]


@pytest.fixture(scope="module")
def pair(minilm_folder, tmp_path_factory):
    """transformers' model and tokenizer, and ours as they open from the folder that the import wrote."""
    folder = tmp_path_factory.mktemp("ours")
    import_checkpoint(minilm_folder, folder)
    theirs = BertModel.from_pretrained(minilm_folder, attn_implementation="eager").eval()
    return theirs, AutoTokenizer.from_pretrained(minilm_folder), AutoModel.from_pretrained(folder).eval(), folder


def test_it_is_the_whole_model(pair):
    theirs, _, ours, _ = pair
    assert ours.num_parameters() == theirs.num_parameters() == 22_713_216


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@torch.no_grad()
def test_states_weights_and_pooled_vectors_are_those_of_bert(pair, implementation):
    theirs, tokenizer, ours, _ = pair
    ours.set_attn_implementation(implementation)
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    real = batch["attention_mask"].bool()
    assert not real.all()
    wanted = {"output_hidden_states": True, "output_attentions": True}
    expected, got = theirs(**batch, **wanted), ours(**batch, **wanted)
    assert len(got.hidden_states) == len(expected.hidden_states) == 7
    for one, other in zip(got.hidden_states, expected.hidden_states):
        torch.testing.assert_close(one[real], other[real], atol=1e-5, rtol=1e-5)
    for one, other in zip(got.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(one.transpose(1, 2)[real], other.transpose(1, 2)[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(got.pooler_output, expected.pooler_output, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_sentence_embeddings_are_those_of_bert_and_know_what_is_meant(pair):
    theirs, tokenizer, ours, _ = pair
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    mask = batch["attention_mask"][..., None]
    expected = (theirs(**batch).last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
    embeddings = ours.sentence_embedding(**batch)
    torch.testing.assert_close(embeddings, expected, atol=1e-5, rtol=1e-5)
    left = tokenizer(SENTENCES, padding=True, padding_side="left", return_tensors="pt")
    torch.testing.assert_close(ours.sentence_embedding(**left), expected, atol=1e-5, rtol=1e-5)
    close = F.cosine_similarity(embeddings[0], embeddings[1:], dim=-1)
    assert close.argmax() == 0 and close[0] > 0.4 > close[1] + 0.2


def test_the_tokenizer_gives_the_ids_of_the_original(pair):
    _, tokenizer, _, folder = pair
    ours = AutoTokenizer.from_pretrained(folder)
    for sentence in SENTENCES:
        for options in ({}, {"split_special_tokens": True}, {"text_pair": SENTENCES[0]}):
            assert ours(sentence, **options) == tokenizer(sentence, **options)
    assert ours.model_max_length == tokenizer.model_max_length


def test_the_way_back_gives_the_checkpoint(pair, tmp_path):
    theirs, tokenizer, _, folder = pair
    export_checkpoint(folder, tmp_path)
    back = BertModel.from_pretrained(tmp_path)
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor), name
    for name in ("hidden_size", "layer_norm_eps", "hidden_act", "type_vocab_size", "hidden_dropout_prob"):
        assert getattr(back.config, name) == getattr(theirs.config, name)
    assert AutoTokenizer.from_pretrained(tmp_path)(SENTENCES) == tokenizer(SENTENCES)
