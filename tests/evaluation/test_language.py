"""Numbers of language models, computed again one piece at a time; what counted models say adds up to one."""

import math
import random
from collections import Counter

import pytest
import torch
from torch import nn

from hf_attn.data.text import count_words, phrasebook_texts, text_rows, train_text_tokenizer
from hf_attn.evaluation.language import (
    measure_causal,
    measure_masked,
    measure_replaced,
    perplexities,
    pseudo_log_probs,
    replaced_numbers,
)
from hf_attn.evaluation.ngram import KneserNey, Neighbours, causal_floors, masked_floors
from hf_attn.models.configuration_attn_bert import AttnBertConfig
from hf_attn.models.configuration_attn_gpt import AttnGptConfig
from hf_attn.models.modeling_attn_bert import AttnBertForMaskedLM
from hf_attn.models.modeling_attn_gpt import AttnGptForCausalLM
from hf_attn.training.language_modeling import (
    CausalCollator,
    MaskingCollator,
    ReplacedTokenPretraining,
    generator_config,
)

TEXTS = phrasebook_texts("en", size=60)
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"vocab_size": 340, "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 64}
CAUSAL = train_text_tokenizer(TEXTS, 340)
MASKED = train_text_tokenizer(TEXTS, 340, masked=True)


def sharp(model):
    """A model whose guesses are not all alike, and so can be right."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.eval()


@pytest.mark.parametrize("batch_size", [1, 3])
def test_perplexity_is_that_of_single_pieces_whatever_the_batch(batch_size):
    model = sharp(AttnGptForCausalLM(AttnGptConfig(**SIZES)))
    rows = text_rows(TEXTS[:7], CAUSAL, 12)
    collate, sums = CausalCollator(CAUSAL), torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        for start in range(0, len(rows), batch_size):
            batch = collate([{"input_ids": row} for row in rows[start : start + batch_size]])
            sums += measure_causal(model, batch).sum(dim=0)
        losses, right = [], 0
        for row in rows:
            for place in range(1, len(row)):  # one piece at a time, from nothing but those before it
                logits = model(input_ids=torch.tensor([row[:place]])).logits[0, -1].double()
                losses.append(-logits.log_softmax(dim=0)[row[place]].item())
                right += logits.argmax().item() == row[place]
    words = count_words(TEXTS[:7])
    numbers = perplexities(sums.tolist(), words)
    assert numbers["pieces"] == len(losses) == sum(len(row) - 1 for row in rows)
    assert numbers["perplexity"] == pytest.approx(math.exp(math.fsum(losses) / len(losses)), rel=1e-5)
    assert numbers["word_perplexity"] == pytest.approx(math.exp(math.fsum(losses) / words), rel=1e-5)
    assert numbers["accuracy"] == right / len(losses)


def test_word_perplexity_does_not_depend_on_the_pieces():
    # a uniform guess among k pieces for each of n pieces a word is one among k ** n words
    assert perplexities([-6 * math.log(4), 6, 0], 3)["word_perplexity"] == pytest.approx(16)
    assert perplexities([-3 * math.log(16), 3, 0], 3)["word_perplexity"] == pytest.approx(16)


def test_nothing_predicted_has_no_perplexity():
    with pytest.raises(ValueError, match="nothing was predicted"):
        perplexities([0, 0, 0])


def test_masked_pieces_are_measured_where_they_are():
    model = sharp(AttnBertForMaskedLM(AttnBertConfig(**SIZES)))
    rows = text_rows(TEXTS[:6], MASKED, 40)
    batch = MaskingCollator(MASKED, ratio=0.4)([{"input_ids": row} for row in rows])
    with torch.no_grad():
        sums = measure_masked(model, batch)
        for row, found in enumerate(sums.tolist()):
            length = int(batch["attention_mask"][row].sum())
            logits = model(input_ids=batch["input_ids"][row : row + 1, :length]).logits[0].double()
            expected = [0.0, 0, 0]
            for place, label in enumerate(batch["labels"][row, :length].tolist()):
                if label != -100:
                    expected[0] += logits[place].log_softmax(dim=0)[label].item()
                    expected[1] += 1
                    expected[2] += logits[place].argmax().item() == label
            assert found == pytest.approx(expected, rel=1e-5)
    assert sums[:, 1].sum() > 10


def test_pseudo_log_probabilities_mask_one_piece_after_the_other():
    model = sharp(AttnBertForMaskedLM(AttnBertConfig(**SIZES)))
    row = text_rows(TEXTS[:1], MASKED, 40)[0]
    found = pseudo_log_probs(model, row, MASKED.mask_token_id, MASKED.all_special_ids, batch_size=4)
    expected = []
    for place in range(1, len(row) - 1):
        ids = torch.tensor([[*row[:place], MASKED.mask_token_id, *row[place + 1 :]]])
        with torch.no_grad():
            expected.append(model(input_ids=ids).logits[0, place].double().log_softmax(dim=0)[row[place]].item())
    assert found == pytest.approx(expected, rel=1e-5)


def test_replaced_pieces_are_counted_one_by_one():
    config = AttnBertConfig(**SIZES)
    model = sharp(ReplacedTokenPretraining(config, generator_config(config, 0.5)))
    rows = text_rows(TEXTS[:6], MASKED, 40)
    batch = MaskingCollator(MASKED, ratio=0.4, masked=1.0, replaced=0.0, draws=True)([{"input_ids": r} for r in rows])
    with torch.no_grad():
        model.discriminator.classifier.bias -= model(**batch).logits.median()  # it says yes as often as no
        sums = measure_replaced(model, batch)
        output = model(**batch)
    assert torch.allclose(
        sums[:, :3], measure_masked(model.generator, {k: v for k, v in batch.items() if k != "draws"})
    )
    numbers = replaced_numbers(sums.sum(dim=0).tolist())
    losses, right, replaced, found = [], 0, 0, 0
    for row in range(len(rows)):
        for place in range(int(batch["attention_mask"][row].sum())):
            label, original = batch["labels"][row, place].item(), batch["input_ids"][row, place].item()
            original = original if label == -100 else label
            changed = output.proposed[row, place].item() != original
            logit = output.logits[row, place].item()
            losses.append(math.log1p(math.exp(-logit if changed else logit)))
            right += (logit > 0) == changed
            replaced += changed
            found += changed and logit > 0
    assert 0 < found < replaced < len(losses)
    assert numbers["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert numbers["loss"] == pytest.approx(output.discriminator_loss.item(), rel=1e-5)
    assert (numbers["accuracy"], numbers["recall"]) == pytest.approx((right / len(losses), found / replaced))


ROWS = [[1, *random.Random(seed).choices([3, 4, 5, 6], [8, 4, 2, 1], k=seed % 7), 2] for seed in range(80)]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_counted_probabilities_add_up_to_one(order):
    model = KneserNey(ROWS, 9, order)
    for history in ([1], [1, 3], [1, 3, 3, 5], [1, 7], [1, 3, 7, 4], [1, 6, 6, 6, 6]):
        probabilities = [model.probability(history, piece) for piece in range(9)]
        assert all(probability > 0 for probability in probabilities)  # nothing is impossible
        assert sum(probabilities) == pytest.approx(1)


def test_two_pieces_are_smoothed_by_the_formula():
    model = KneserNey(ROWS, 9, 2)
    pairs = Counter((first, second) for row in ROWS for first, second in zip(row, row[1:]))
    after_kinds = Counter(second for _, second in pairs)

    def discount(counts):
        once, twice = (1 + sum(value == number for value in counts.values()) for number in (1, 2))
        return once / (once + 2 * twice)

    def expected(first, second):
        d = discount(after_kinds)
        lower = (max(after_kinds[second] - d, 0) + d * len(after_kinds) / 9) / len(pairs)
        total = sum(value for pair, value in pairs.items() if pair[0] == first)
        kinds, d = sum(pair[0] == first for pair in pairs), discount(pairs)
        return (max(pairs[first, second] - d, 0) + d * kinds * lower) / total

    for first in (1, 3, 4, 5, 6):
        for second in range(9):
            assert model.probability([1, 4, first], second) == pytest.approx(expected(first, second))


def test_a_longer_history_tells_more_of_ordered_rows_and_words_are_counted():
    rows = [[1, 3, 4, 5, 3, 4, 6, 2]] * 5 + [[1, 5, 4, 6, 2]] * 5
    floors = causal_floors(rows, rows, 9, words=30, order=3)
    pieces = sum(len(row) - 1 for row in rows)
    assert 1 < floors["3gram_perplexity"] < floors["unigram_perplexity"] < 9
    model = KneserNey(rows, 9, 1)
    total = sum(math.log(model.probability([], piece)) for row in rows for piece in row[1:])
    assert floors["unigram_perplexity"] == pytest.approx(math.exp(-total / pieces))
    assert floors["unigram_word_perplexity"] == pytest.approx(math.exp(-total / 30))


def test_a_hidden_piece_is_guessed_from_its_neighbours_then_from_the_one_before_then_from_all():
    rows = [
        [1, 5, 6, 7, 2],
        [1, 5, 8, 7, 2],
        [1, 5, 8, 7, 2],
        [1, 5, 6, 9, 2],
        [1, 5, 6, 4, 2],
        [1, 4, 4, 4, 4, 4, 4, 2],
    ]
    guesses = Neighbours(rows, {0, 1, 2})
    assert guesses.guess(5, 7) == 8  # twice, and 6 once
    assert guesses.guess(5, 3) == 6  # after 5: 6 three times, 8 twice
    assert guesses.guess(3, 3) == 4  # seven times in all


def test_floors_of_masked_pieces_are_shares_of_right_guesses():
    rows = text_rows(TEXTS, MASKED, 40)
    batches = [MaskingCollator(MASKED, ratio=0.3)([{"input_ids": row} for row in rows[k : k + 9]]) for k in (0, 9)]
    floors = masked_floors(rows, batches, MASKED.all_special_ids)
    guesses, places, right, commonest = Neighbours(rows, MASKED.all_special_ids), 0, 0, Counter()
    for start, batch in zip((0, 9), batches, strict=True):
        for row, labels in zip(rows[start : start + 9], batch["labels"].tolist(), strict=True):
            for place, label in enumerate(labels):
                if label != -100:
                    places += 1
                    right += guesses.guess(row[place - 1], (*row, -1)[place + 1]) == row[place]
                    commonest[row[place]] += 1
    best = Counter(piece for row in rows for piece in row if piece > 3).most_common(1)[0][0]
    assert floors["neighbours_accuracy"] == right / places > floors["commonest_accuracy"] == commonest[best] / places
