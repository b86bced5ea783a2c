"""Contrastive training: the loss in loops over single vectors, and vectors of partners that come near each other."""

import math

import pytest
import torch
from datasets import Dataset
from transformers import AutoModel, TrainingArguments

from hf_attn.data.text import train_text_tokenizer
from hf_attn.inference.retrieval import Retriever
from hf_attn.training.classification import new_config
from hf_attn.training.contrastive import ContrastiveTrainer, PairCollator, halves, in_batch_loss


def cosine(first, second):
    dot = sum(a * b for a, b in zip(first, second))
    return dot / math.sqrt(sum(a * a for a in first)) / math.sqrt(sum(b * b for b in second))


def test_the_loss_is_minus_the_log_of_the_share_of_the_partner():
    torch.manual_seed(0)
    first, second = torch.randn(2, 4, 3, dtype=torch.float64)
    total = 0.0
    for number in range(4):
        shares = [math.exp(cosine(first[number].tolist(), other.tolist()) / 0.1) for other in second]
        total -= math.log(shares[number] / sum(shares))
    assert in_batch_loss(first, second, 0.1).item() == pytest.approx(total / 4, rel=1e-5)


def test_pairs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="second must have the shape"):
        in_batch_loss(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(ValueError, match="temperature=0"):
        in_batch_loss(torch.zeros(2, 3), torch.zeros(2, 3), 0)


@pytest.mark.parametrize(("text", "parts"), [("a b c d", ("a b", "c d")), ("a  b\nc", ("a", "b c")), ("a", ("", "a"))])
def test_halves_have_as_many_words(text, parts):
    assert halves(text) == parts


def test_partners_come_near_each_other(tmp_path):
    """Colours and numbers have no word in common; training says which belong together."""
    pairs = [("red as fire", "one of many"), ("blue as water", "two of many"), ("green as grass", "three of many")]
    pairs += [("white as snow", "four of many"), ("black as night", "five of many"), ("grey as stone", "six of many")]
    tokenizer = train_text_tokenizer([text for pair in pairs for text in pair], 320, masked=True)
    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = AutoModel.from_config(new_config("text", "attn-bert", tokenizer, dropout=0.0, **small))
    dataset = Dataset.from_dict({"first": [one for one, _ in pairs], "second": [two for _, two in pairs]})
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=40, learning_rate=0.01, per_device_train_batch_size=6, use_cpu=True,
        remove_unused_columns=False, save_strategy="no", disable_tqdm=True, logging_steps=40,
    )  # fmt: skip
    ContrastiveTrainer(
        model=model, args=arguments, train_dataset=dataset, data_collator=PairCollator(tokenizer, 16)
    ).train()
    retriever = Retriever(model, tokenizer)
    retriever.index([two for _, two in pairs])
    assert [hits[0].text for hits in retriever.search([one for one, _ in pairs])] == [two for _, two in pairs]
