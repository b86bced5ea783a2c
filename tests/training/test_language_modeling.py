"""What is masked, and how often; the losses of ELECTRA in a loop; runs that are interrupted."""

import copy
import math
from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset
from scipy.stats import binom
from torch import nn
from transformers import Seq2SeqTrainingArguments

from hf_attn.data.text import phrasebook_texts, text_blocks, text_rows, train_text_tokenizer
from hf_attn.evaluation.language import measure_masked, perplexities
from hf_attn.models.configuration_attn_bert import AttnBertConfig
from hf_attn.models.configuration_attn_gpt import AttnGptConfig
from hf_attn.models.modeling_attn_bert import AttnBertForMaskedLM
from hf_attn.models.modeling_attn_gpt import AttnGptForCausalLM
from hf_attn.training.batching import pair_lengths
from hf_attn.training.language_modeling import (
    CausalCollator,
    LanguageModelTrainer,
    MaskingCollator,
    ReplacedTokenPretraining,
    generator_config,
)
from hf_attn.training.language_recipes import LANGUAGE_RECIPES, language_config, language_recipe

TEXTS = phrasebook_texts("en", size=120)
CAUSAL = train_text_tokenizer(TEXTS, 340)
MASKED = train_text_tokenizer(TEXTS, 340, masked=True)
MASK, PAD, BOS, EOS = MASKED.mask_token_id, 0, 1, 2
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"vocab_size": 340, "bos_token_id": 1, "eos_token_id": 2, "max_position_embeddings": 64}
ROWS = [{"input_ids": row} for row in text_rows(TEXTS, MASKED, 40)]


def check_count(found, trials, probability):
    """A count that a binomial variable would leave in one run of a million at either side."""
    assert binom.ppf(1e-6, trials, probability) <= found <= binom.ppf(1 - 1e-6, trials, probability)


@pytest.mark.parametrize("options", [{}, {"ratio": 0.4, "masked": 0.5, "replaced": 0.3}, {"masked": 1, "replaced": 0}])
def test_pieces_are_chosen_hidden_and_replaced_at_their_rates(options):
    ratio, masked, replaced = (options.get(name, value) for name, value in
                               (("ratio", 0.15), ("masked", 0.8), ("replaced", 0.1)))  # fmt: skip
    pieces = chosen = hidden = changed = 0
    found = Counter()
    for seed in range(40):
        batch = MaskingCollator(MASKED, seed=seed, **options)(ROWS)
        original = torch.tensor([row["input_ids"] + [PAD] * (batch["labels"].shape[1] - len(row["input_ids"]))
                                 for row in ROWS])  # fmt: skip
        label, source = batch["labels"], batch["input_ids"]
        assert torch.equal(label[label != -100], original[label != -100])
        assert torch.equal(source[label == -100], original[label == -100])
        assert torch.equal(batch["attention_mask"], (original != PAD).long())
        pieces += (original > EOS).sum().item()
        chosen += (label != -100).sum().item()
        hidden += (source == MASK).sum().item()
        random = source[(label != -100) & (source != MASK) & (source != original)]
        changed += len(random)
        found.update(random.tolist())
    check_count(chosen, pieces, ratio)
    check_count(hidden, chosen, masked)
    kinds = len(MASKED) - 4  # all but <pad>, <s>, </s> and <mask>; one of them is what stood there
    check_count(changed, chosen, replaced * (kinds - 1) / kinds)
    assert not set(found) & {PAD, BOS, EOS, MASK}
    if replaced:
        assert len(found) > 0.8 * kinds * -math.expm1(-changed / kinds)  # all kinds come, as often as chance has it


def test_special_tokens_and_padding_are_never_chosen_and_an_unknown_word_is():
    words = train_text_tokenizer(TEXTS, 40, kind="word", masked=True)
    rows = [{"input_ids": row} for row in text_rows(TEXTS, words, 12)]
    batch = MaskingCollator(words, ratio=1.0)(rows)
    for row, source, labels in zip(rows, batch["input_ids"], batch["labels"], strict=True):
        ids = row["input_ids"]
        special = [token in (PAD, BOS, EOS, words.mask_token_id) for token in ids]
        assert [label == -100 for label in labels[: len(ids)].tolist()] == special
        assert labels[len(ids) :].eq(-100).all() and source[len(ids) :].eq(PAD).all()
    assert (batch["labels"] == words.unk_token_id).any()


def test_the_same_batch_has_the_same_masks_and_others_have_others():
    one, same, other = (MaskingCollator(MASKED, seed=seed)(ROWS) for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["labels"], other["labels"])
    first = MaskingCollator(MASKED, seed=3)(ROWS[:20])["labels"][:10]
    company = MaskingCollator(MASKED, seed=3)(ROWS[:10] + ROWS[30:40])["labels"][:10]
    width = min(first.shape[1], company.shape[1])
    assert not torch.equal(first[:, :width], company[:, :width])  # in the next epoch a row is masked anew


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ratio": 0}, "ratio"), ({"ratio": 1.1}, "ratio"), ({"masked": 0.9, "replaced": 0.2}, "replaced=0.2"),
     ({"replaced": -0.1}, "replaced"), ({"seed": -1}, "seed")],
)  # fmt: skip
def test_impossible_numbers_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MaskingCollator(MASKED, **options)


def test_a_tokenizer_without_a_mask_is_refused():
    with pytest.raises(ValueError, match="mask token"):
        MaskingCollator(CAUSAL)


def test_what_is_gone_on_with_is_everything_but_the_beginning_and_padding():
    rows = [[1, 5, 6, 2, 1, 7], [8, 9]]
    batch = CausalCollator(CAUSAL)([{"input_ids": row} for row in rows])
    assert batch["input_ids"].tolist() == [[1, 5, 6, 2, 1, 7], [8, 9, 0, 0, 0, 0]]
    assert batch["attention_mask"].tolist() == [[1] * 6, [1, 1, 0, 0, 0, 0]]
    assert batch["labels"].tolist() == [[-100, 5, 6, 2, -100, 7], [8, 9, -100, -100, -100, -100]]


def test_predicting_masked_pieces_alone_gives_the_same_loss_and_gradients():
    torch.manual_seed(0)
    model = AttnBertForMaskedLM(AttnBertConfig(**SIZES, dropout=0.0, attention_dropout=0.0))
    batch = MaskingCollator(MASKED)(ROWS[:9])
    gradients = []
    for sparse in (False, True):
        output = model(**batch, sparse_prediction=sparse)
        model.zero_grad()
        output.loss.backward()
        gradients.append([output.loss, *(parameter.grad for parameter in model.parameters())])
    for dense, picked in zip(*gradients, strict=True):
        torch.testing.assert_close(picked, dense)
    labelled = batch["labels"] != -100
    assert output.logits.shape == (labelled.sum(), 340)
    torch.testing.assert_close(output.logits, model(**batch).logits[labelled])
    with pytest.raises(TypeError, match="labels"):
        model(input_ids=batch["input_ids"], sparse_prediction=True)


# ELECTRA


def electra(size=0.5, **options):
    torch.manual_seed(2)
    config = AttnBertConfig(**SIZES | options, dropout=0.0, attention_dropout=0.0)
    model = ReplacedTokenPretraining(config, generator_config(config, size))
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            nn.init.normal_(parameter, std=0.3)
    return model


def electra_batch(rows=ROWS[:7]):
    return MaskingCollator(MASKED, ratio=0.3, masked=1.0, replaced=0.0, draws=True)(rows)


@pytest.mark.parametrize("embedding_size", [None, 8])
def test_the_loss_of_electra_is_that_of_a_loop_over_pieces(embedding_size):
    model, batch = electra(embedding_size=embedding_size), electra_batch()
    output = model(**batch)
    generator, discriminator, replaced = [], [], 0
    for row in range(len(batch["labels"])):
        length = int(batch["attention_mask"][row].sum())
        ids, labels = batch["input_ids"][row, :length].tolist(), batch["labels"][row, :length].tolist()
        logits = model.generator(input_ids=torch.tensor([ids])).logits[0]
        proposed = list(ids)
        for place, label in enumerate(labels):
            if label == -100:
                continue
            probabilities = logits[place].double().softmax(dim=0).tolist()
            generator.append(-math.log(probabilities[label]))
            left, piece = batch["draws"][row, place].item(), 0
            while left >= probabilities[piece]:  # walk along the distribution until the number drawn is used up
                left -= probabilities[piece]
                piece += 1
            proposed[place] = piece
        original = [token if label == -100 else label for token, label in zip(ids, labels, strict=True)]
        judged = model.discriminator(input_ids=torch.tensor([proposed])).logits[0].tolist()
        for logit, one, other in zip(judged, proposed, original, strict=True):
            replaced += one != other
            discriminator.append(math.log1p(math.exp(-logit if one != other else logit)))
        assert output.proposed[row, :length].tolist() == proposed
    expected = sum(generator) / len(generator), sum(discriminator) / len(discriminator)
    assert 0 < replaced <= len(generator)
    assert output.generator_loss.item() == pytest.approx(expected[0], rel=1e-4)
    assert output.discriminator_loss.item() == pytest.approx(expected[1], rel=1e-4)
    assert output.loss.item() == pytest.approx(expected[0] + 50 * expected[1], rel=1e-4)


def test_proposals_come_as_often_as_the_generator_says():
    model, batch = electra(), electra_batch(ROWS[:1] * 3)
    place = (batch["labels"] != -100).nonzero()[0]
    probabilities = model.generator(batch["input_ids"], batch["attention_mask"]).logits[tuple(place)].softmax(dim=0)
    random = np.random.default_rng(0)
    proposed = Counter()
    for _ in range(300):
        batch["draws"] = torch.from_numpy(random.random(batch["draws"].shape))
        with torch.no_grad():
            proposed[model(**batch).proposed[tuple(place)].item()] += 1
    piece = probabilities.argmax().item()
    assert 0.02 < probabilities[piece] < 0.98
    check_count(proposed[piece], 300, probabilities[piece].item())


def test_a_right_proposal_is_no_replacement():
    model, batch = electra(), electra_batch()
    with torch.no_grad():
        for parameter in (model.generator.lm_head.bias,):
            parameter.fill_(-1e4)
            parameter[7] = 1e4  # it always proposes this piece
    batch["labels"] = batch["labels"].where(batch["labels"] == -100, torch.tensor(7))
    output = model(**batch)
    assert output.proposed[batch["labels"] != -100].eq(7).all() and not output.replaced.any()


def test_embeddings_are_shared_and_gradients_stop_at_what_was_sampled():
    model, batch = electra(), electra_batch()
    shared = model.discriminator.model.embed_tokens.weight
    assert model.generator.model.embed_tokens.weight is shared is model.generator.lm_head.weight
    assert model.generator.model.embedding.learned.weight is model.discriminator.model.embedding.learned.weight
    model(**batch).discriminator_loss.backward()
    own = [name for name, parameter in model.generator.named_parameters() if parameter.grad is not None]
    assert {name.split(".")[1] for name in own if name.startswith("model")} <= {"embed_tokens", "embedding"}
    assert not [name for name in own if "layers" in name or "transform" in name]


def test_a_generator_has_whole_heads_and_the_embeddings_of_the_discriminator():
    config = AttnBertConfig(**SIZES | {"num_attention_heads": 4}, embedding_size=8)
    small = generator_config(config, 0.25)
    assert (small.hidden_size, small.num_attention_heads, small.intermediate_size) == (4, 1, 4)
    assert small.embedding_width == config.embedding_width == 8 and small.num_hidden_layers == 1
    assert config.num_attention_heads == 4
    for size in (0, 0.3, 1.5):
        with pytest.raises(ValueError, match=f"generator_size={size}"):
            generator_config(config, size)


def test_parts_are_saved_and_loaded_again(tmp_path):
    model, batch = electra().eval(), electra_batch()
    model.save_parts(tmp_path)
    other = electra(0.5).eval()
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    other.load_parts(tmp_path)
    assert torch.equal(other(**batch).loss, model(**batch).loss)


# The Trainer


def test_rows_without_labels_are_as_long_as_their_ids():
    lengths = [len(row["input_ids"]) for row in ROWS]
    assert [found.tolist() for found in pair_lengths(Dataset.from_list(ROWS))] == [lengths, lengths]


def trainer_for(folder, kind, steps, **options):
    torch.manual_seed(5)
    config = AttnBertConfig(**SIZES)
    models = {
        "clm": lambda: AttnGptForCausalLM(AttnGptConfig(**SIZES)),
        "mlm": lambda: AttnBertForMaskedLM(config),
        "electra": lambda: ReplacedTokenPretraining(config, generator_config(config, 0.5)),
    }
    collators = {
        "clm": CausalCollator(CAUSAL),
        "mlm": MaskingCollator(MASKED),
        "electra": MaskingCollator(MASKED, masked=1.0, replaced=0.0, draws=True),
    }
    rows = text_blocks(TEXTS, CAUSAL, 16) if kind == "clm" else [row["input_ids"] for row in ROWS]
    arguments = {"max_steps": steps, "save_steps": 3, "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    return LanguageModelTrainer(
        model=models[kind](),
        args=Seq2SeqTrainingArguments(str(folder), learning_rate=1e-2, lr_scheduler_type="constant", **arguments),
        train_dataset=Dataset.from_dict({"input_ids": rows}),
        data_collator=collators[kind],
        tokens_per_batch=400,
        **options,
    )


@pytest.mark.parametrize("kind", ["clm", "mlm", "electra"])
def test_an_interrupted_run_ends_with_the_same_weights(tmp_path, kind):
    whole = trainer_for(tmp_path / "whole", kind, 6)
    start = copy.deepcopy(whole.model.state_dict())
    whole.train()
    trainer_for(tmp_path / "parts", kind, 3).train()
    torch.manual_seed(99)
    resumed = trainer_for(tmp_path / "parts", kind, 6)
    resumed.train(resume_from_checkpoint=True)
    found = resumed.model.state_dict()
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(found[name], tensor), name
    assert any(not torch.equal(found[name], tensor) for name, tensor in start.items())


def test_an_evaluation_is_that_of_all_masked_pieces_at_once(tmp_path):
    names = []

    def compute_metrics(prediction):
        names.append(prediction.predictions.shape)
        return perplexities(prediction.predictions.sum(axis=0).tolist())

    rows = [row["input_ids"] for row in ROWS[:21]]
    trainer = trainer_for(tmp_path, "mlm", 1, measure=measure_masked, compute_metrics=compute_metrics,
                          eval_dataset=Dataset.from_dict({"input_ids": rows}))  # fmt: skip
    metrics = trainer.evaluate()
    assert names == [(21, 3)]
    batches = [MaskingCollator(MASKED)(ROWS[start : start + 8][: 21 - start]) for start in (0, 8, 16)]
    losses = []
    for batch in batches:
        with torch.no_grad():
            logits = trainer.model.eval()(batch["input_ids"], batch["attention_mask"]).logits.double()
        chosen = batch["labels"] != -100
        losses += nn.functional.cross_entropy(logits[chosen], batch["labels"][chosen], reduction="none").tolist()
    assert metrics["eval_pieces"] == len(losses)
    assert metrics["eval_loss"] == pytest.approx(np.mean(losses), rel=1e-6)
    assert metrics["eval_perplexity"] == pytest.approx(math.exp(np.mean(losses)), rel=1e-6)


# Recipes


@pytest.mark.parametrize(
    ("objective", "name"), [(kind, name) for kind, all_ in LANGUAGE_RECIPES.items() for name in all_]
)
def test_a_recipe_is_a_config_for_the_vocabulary(objective, name):
    recipe = language_recipe(objective, name)
    tokenizer = CAUSAL if objective == "clm" else MASKED
    config = language_config(recipe, tokenizer, dropout=0.3)
    assert (config.vocab_size, config.pad_token_id, config.bos_token_id, config.eos_token_id) == (
        len(tokenizer),
        0,
        1,
        2,
    )
    assert config.dropout == 0.3
    assert {field: getattr(config, field) for field in recipe.config} == recipe.config
    assert recipe.arguments["max_length"] <= config.max_position_embeddings
    if objective == "electra":
        assert generator_config(config, recipe.arguments["generator_size"]).hidden_size < config.hidden_size
    with pytest.raises(ValueError, match="no config field wings"):
        language_config(recipe, tokenizer, wings=2)


@pytest.mark.parametrize(("objective", "name"), [("clm", "huge"), ("rtd", "small")])
def test_an_unknown_recipe_is_refused(objective, name):
    with pytest.raises(ValueError, match="must be one of"):
        language_recipe(objective, name)
