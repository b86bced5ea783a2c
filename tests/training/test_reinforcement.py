"""The reinforcement objective against sums over all outputs, and the Trainer that maximises it."""

import itertools
import math

import pytest
import torch
from contract import cases
from transformers import DataCollatorForSeq2Seq, GenerationConfig, MarianConfig, MarianMTModel, Seq2SeqTrainingArguments

from hf_attn.data import phrasebook, tokenize_pairs, train_tokenizer
from hf_attn.evaluation import sentence_gleu
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.training import ReinforcementTrainer, reinforcement
from hf_attn.training.reinforcement import sample_weights, without_dropout

LENGTH = 3  # of the longest output
START = AttnRnnConfig().decoder_start_token_id
ROWS = [
    {"input_ids": [3, 4, 2], "labels": [4, 3, 2]},
    {"input_ids": [4, 2], "labels": [3, 2]},
    {"input_ids": [3, 3, 4, 2], "labels": [4, 4, 2]},
]


def tiny(dropout=0.3, sharpness=2.0):
    """A network over five pieces, </s> among them."""
    torch.manual_seed(3)
    config = AttnRnnConfig(vocab_size=5, hidden_size=6, embedding_size=6, attention_size=6, dropout=dropout)
    model = AttnRnnForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(sharpness)
    return model


class PlainCollator:
    """Pads on the right, and needs no tokenizer."""

    def __call__(self, rows):
        longest = {name: max(len(row[name]) for row in rows) for name in ("input_ids", "labels")}
        source = [row["input_ids"] + [0] * (longest["input_ids"] - len(row["input_ids"])) for row in rows]
        labels = [row["labels"] + [-100] * (longest["labels"] - len(row["labels"])) for row in rows]
        source, labels = torch.tensor(source), torch.tensor(labels)
        shifted = torch.cat([torch.full((len(rows), 1), START), labels[:, :-1].clamp(min=0)], dim=1)
        return {
            "input_ids": source, "attention_mask": (source != 0).long(), "labels": labels, "decoder_input_ids": shifted,
        }  # fmt: skip


def make_trainer(folder, model, rows=ROWS, collator=None, tokens_per_batch=64, **options):
    own = {
        name: options.pop(name) for name in ("reward", "samples", "likelihood_weight", "temperature") if name in options
    }
    args = Seq2SeqTrainingArguments(
        output_dir=str(folder), use_cpu=True, disable_tqdm=True, report_to=[], lr_scheduler_type="constant",
        **{"save_strategy": "no", "generation_max_length": LENGTH + 1, "max_steps": 1, "max_grad_norm": 0.0} | options,
    )  # fmt: skip
    return ReinforcementTrainer(
        model=model, args=args, train_dataset=rows, eval_dataset=rows, data_collator=collator or PlainCollator(),
        tokens_per_batch=tokens_per_batch, **{"reward": sentence_gleu} | own,
    )  # fmt: skip


def outputs():
    """All that can be written: any three pieces without </s>, or up to two of them and </s>."""
    pieces = [0, 1, 3, 4]
    ended = [(*some, 2) for n in range(LENGTH) for some in itertools.product(pieces, repeat=n)]
    return ended + list(itertools.product(pieces, repeat=LENGTH))


def log_prob(model, batch, row, output, temperature=1.0):
    """log p(output | source), from the model's own logits for this source alone."""
    length = int(batch["attention_mask"][row].sum())
    decoder_input_ids = torch.tensor([[model.config.decoder_start_token_id, *output[:-1]]])
    logits = model(input_ids=batch["input_ids"][row : row + 1, :length], decoder_input_ids=decoder_input_ids).logits
    return (logits[0] / temperature).log_softmax(dim=-1).gather(1, torch.tensor(output)[:, None]).sum()


def reward_of(output, label):
    """GLEU of the pieces that are text."""
    return sentence_gleu([one for one in output if one > 2], [[one for one in label if one > 2]])


def gradients(model, value):
    model.zero_grad()
    value.backward()
    return torch.cat([(0 * p if p.grad is None else p.grad).flatten() for p in model.parameters()])


def exact_gradient(model, batch, likelihood_weight, temperature=1.0):
    """The gradient of the negative objective: the sum over all outputs of p(output) reward(output), written out."""
    model.eval()
    total = torch.zeros(())
    for row, label in enumerate(batch["labels"].tolist()):
        label = [one for one in label if one >= 0]
        log_probs = torch.stack([log_prob(model, batch, row, output, temperature) for output in outputs()])
        assert float(log_probs.detach().exp().sum()) == pytest.approx(1, abs=1e-5)
        rewards = torch.tensor([reward_of(output, label) for output in outputs()])
        total = total - (log_probs.exp() * rewards).sum() - likelihood_weight * log_prob(model, batch, row, label)
    return gradients(model, total / int((batch["labels"] != -100).sum()))


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_mean_gradient_of_many_samples_is_that_of_the_sum_over_all_outputs(tmp_path, temperature):
    """20 estimates of 500 samples: no coordinate is further away than five of its own standard errors, and the whole
    no further than the errors explain. Dividing by the samples, not by one less, shows with 2 samples below."""
    model = tiny()
    trainer = make_trainer(tmp_path, model, samples=500, likelihood_weight=0.1, temperature=temperature)
    batch = PlainCollator()(ROWS)
    exact = exact_gradient(model, batch, 0.1, temperature)
    torch.manual_seed(0)
    found = torch.stack([gradients(model.train(), trainer.compute_loss(model, batch)) for _ in range(20)])
    errors = found.std(dim=0) / math.sqrt(len(found))
    assert ((found.mean(dim=0) - exact).abs() <= 5 * errors + 1e-6).all()
    assert float((found.mean(dim=0) - exact).norm()) < 2 * float(errors.norm()) < 0.2 * float(exact.norm())


def test_two_draws_give_the_gradient_of_the_expected_reward():
    """All pairs that can be drawn, each with its probability: taking off the mean does not move the expectation."""
    model = tiny().eval()
    batch = PlainCollator()(ROWS[:1])
    exact = exact_gradient(model, batch, likelihood_weight=0.0)
    log_probs = {output: log_prob(model, batch, 0, output) for output in outputs()}
    rewards = {output: reward_of(output, ROWS[0]["labels"]) for output in outputs()}
    expected = dict.fromkeys(outputs(), 0.0)
    for pair in itertools.product(outputs(), repeat=2):
        probability = math.prod(float(log_probs[output].detach().exp()) for output in pair)
        for output, weight in sample_weights(pair, [rewards[output] for output in pair]).items():
            expected[output] += probability * weight
    value = -sum(expected[output] * log_probs[output] for output in outputs()) / 3
    assert torch.allclose(gradients(model, value), exact, rtol=1e-3, atol=1e-6)


DRAWN = [(4, 3, 2), (3, 2), (4, 4, 4), (4, 3, 2)]  # for every source: one twice, one without an end


def explicit_loss(model, batch, likelihood_weight, smoothing=0.0):
    """The sum over the sentences of a batch, for the samples of DRAWN."""
    total = torch.zeros(())
    for row, label in enumerate(batch["labels"].tolist()):
        label = [one for one in label if one >= 0]
        rewards = [reward_of(output, label) for output in DRAWN]
        for output, reward in zip(DRAWN, rewards, strict=True):
            total = total - (reward - sum(rewards) / 4) / 3 * log_prob(model, batch, row, output)
        total = total - (1 - smoothing) * likelihood_weight * log_prob(model, batch, row, label)
        length = int(batch["attention_mask"][row].sum())
        shifted = torch.tensor([[model.config.decoder_start_token_id, *label[:-1]]])
        logits = model(input_ids=batch["input_ids"][row : row + 1, :length], decoder_input_ids=shifted).logits
        total = total - smoothing * likelihood_weight * logits.log_softmax(dim=-1).mean(dim=-1).sum()
    return total


@pytest.mark.parametrize(("tokens_per_batch", "smoothing"), [(64, 0.0), (8, 0.1)])
def test_accumulated_steps_equal_the_gradient_of_the_whole_loss(tmp_path, tokens_per_batch, smoothing):
    """In one chunk, and in several that are computed again; with dropout in the config and none in the objective."""
    model, reference = tiny(dropout=0.5), tiny().eval()
    trainer = make_trainer(
        tmp_path, model, ROWS * 3, tokens_per_batch=tokens_per_batch, samples=4, likelihood_weight=0.3, optim="sgd",
        learning_rate=1.0, gradient_accumulation_steps=2, label_smoothing_factor=smoothing,
    )  # fmt: skip
    trainer.draw_samples = lambda model, encoded, mask: DRAWN * len(mask)
    batches = [batch for batch, _ in zip(trainer.get_train_dataloader(), range(2), strict=False)]
    trainer.train()
    total = sum(explicit_loss(reference, batch, 0.3, smoothing) for batch in batches)
    (total / sum(int((batch["labels"] != -100).sum()) for batch in batches)).backward()
    for (name, parameter), actual in zip(reference.named_parameters(), model.parameters(), strict=True):
        assert torch.allclose(actual, parameter.detach() - parameter.grad, rtol=1e-4, atol=1e-5), name
    assert model.training and all(module.training for module in model.modules())


def marian():
    """transformers' own, as a control."""
    torch.manual_seed(0)
    return MarianMTModel(
        MarianConfig(
            vocab_size=43, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=32,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
        )
    )  # fmt: skip


SEQ2SEQ = [case for case in cases(heads=True, generates=True) if case.values[0].config().is_encoder_decoder]


@pytest.mark.parametrize("case", [*SEQ2SEQ, pytest.param(None, id="marian")])
def test_every_family_without_rewards_has_the_gradient_of_the_likelihood(case, tmp_path):
    model = marian() if case is None else case.model()
    batch = SEQ2SEQ[0].values[0].batch() if case is None else case.batch()
    expected = gradients(model.eval(), 0.5 * model(**batch).loss)
    trainer = make_trainer(tmp_path, model, likelihood_weight=0.5, reward=lambda sample, references: 0.0, samples=2)
    assert torch.allclose(gradients(model.train(), trainer.compute_loss(model, batch)), expected, atol=1e-6)


@pytest.mark.parametrize("case", [*SEQ2SEQ, pytest.param(None, id="marian")])
def test_every_family_draws_as_generate_does(case, tmp_path, monkeypatch):
    """The likeliest token in place of a drawn one: rows end at their own places, and those that are left go on."""
    monkeypatch.setattr(reinforcement, "draw", lambda logits: logits.argmax(dim=-1))
    model = marian() if case is None else case.model(sharpness=4)
    config = model.config
    batch = (case or SEQ2SEQ[0].values[0]).batch(lengths=(7, 4, 1, 6, 5), targets=(1,) * 5)
    source = {name: batch[name] for name in ("input_ids", "attention_mask")}
    plain = GenerationConfig(max_length=11, decoder_start_token_id=config.decoder_start_token_id, pad_token_id=0)
    free = model.eval().generate(**source, generation_config=plain, eos_token_id=None)[:, 1:].tolist()
    ends = [row[place] for place, row in enumerate(free[:4])]  # so that rows end after one token, two, ...
    # a sample begins as labels do, and nothing is searched for
    search = {"eos_token_id": ends, "decoder_start_token_id": 3, "num_beams": 3, "min_length": 9}
    model.generation_config = GenerationConfig(**plain.to_diff_dict() | search)
    expected = [row[: next((n + 1 for n, one in enumerate(row) if one in ends), 10)] for row in free]
    encoded = model.get_encoder()(**source)
    drawn = reinforcement.draw_samples(model, encoded, source["attention_mask"], 10)
    assert [list(sample) for sample in drawn] == expected
    trainer = make_trainer(tmp_path, model, samples=2, generation_max_length=11, tokens_per_batch=3)
    twice = [tuple(row) for row in expected for _ in range(2)]
    assert trainer.draw_samples(model, encoded, source["attention_mask"]) == twice


def test_tokens_are_drawn_as_often_as_they_are_likely():
    torch.manual_seed(0)
    probabilities = torch.tensor([0.0, 0.5, 0.2, 0.0, 0.29, 0.01, 0.0])
    counts = torch.bincount(reinforcement.draw(probabilities.log().expand(40000, 7)), minlength=7)
    errors = (40000 * probabilities * (1 - probabilities)).sqrt()
    assert ((counts - 40000 * probabilities).abs() <= 5 * errors).all()


@pytest.fixture(scope="module")
def phrases():
    """A network that has learned a part of the phrasebook, its tokenizer and the training set."""
    pairs = phrasebook("en-it", "train", size=24)
    tokenizer = train_tokenizer([text for pair in pairs["translation"] for text in pair.values()], 400, kind="word")
    rows = tokenize_pairs(pairs, tokenizer, "en", "it")
    torch.manual_seed(0)
    config = AttnRnnConfig(
        vocab_size=len(tokenizer), hidden_size=32, embedding_size=32, attention_size=32, dropout=0.1,
        initializer_range=0.1,
    )  # fmt: skip
    model = AttnRnnForConditionalGeneration(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    batch = DataCollatorForSeq2Seq(tokenizer)([rows[number] for number in range(24)])
    for _ in range(24):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    return model.state_dict(), config, tokenizer, rows


def phrase_trainer(folder, phrases, **options):
    state, config, tokenizer, rows = phrases
    model = AttnRnnForConditionalGeneration(config)
    model.load_state_dict(state)
    return make_trainer(
        folder, model, rows, DataCollatorForSeq2Seq(tokenizer, model=model),
        **{"tokens_per_batch": 200, "samples": 5, "generation_max_length": 20, "logging_steps": 1} | options,
    )  # fmt: skip


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def test_a_short_run_raises_the_reward(tmp_path, phrases):
    trainer = phrase_trainer(tmp_path, phrases, max_steps=20, learning_rate=3e-3)
    trainer.train()
    rewards = logged(trainer, "reward")
    assert len(rewards) == 20 and all(0 <= reward <= 1 for reward in rewards)
    assert sum(rewards[-6:]) > 1.2 * sum(rewards[:6])
    labels, model = trainer.eval_dataset.select(range(4)), trainer.model
    losses = [float(model.eval()(**DataCollatorForSeq2Seq(phrases[2])([row])).loss.detach()) for row in labels]
    trainer.args.per_device_eval_batch_size = 1
    assert trainer.evaluate(labels)["eval_loss"] == pytest.approx(sum(losses) / 4, rel=1e-4)  # likelihood alone


def test_one_seed_gives_one_run_and_a_resumed_run_is_the_whole_run(tmp_path, phrases):
    whole = phrase_trainer(tmp_path / "whole", phrases, max_steps=4, save_strategy="steps", save_steps=2)
    whole.train()
    again = phrase_trainer(tmp_path / "again", phrases, max_steps=4)
    again.train()
    torch.manual_seed(99)
    resumed = phrase_trainer(tmp_path / "resumed", phrases, max_steps=4)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    other = phrase_trainer(tmp_path / "other", phrases, max_steps=4, seed=7, data_seed=42)
    other.train()
    for run in (again, resumed):
        assert logged(run, "reward") == logged(whole, "reward") and logged(run, "loss") == logged(whole, "loss")
        for one, two in zip(run.model.parameters(), whole.model.parameters(), strict=True):
            assert torch.equal(one, two)
    assert logged(other, "reward") != logged(whole, "reward")


def test_recurrent_layers_keep_their_mode_for_the_sake_of_cudnn():
    model = tiny().train()
    with without_dropout(model):
        modes = {type(module).__name__: module.training for module in model.modules()}
    assert modes["GRU" if model.config.rnn_type == "gru" else model.config.rnn_type.upper()] and not modes["Dropout"]
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"samples": 1}, "samples must be a whole number of 2 or more, got 1"),
     ({"temperature": 0.0}, "temperature must be more than 0 and finite, got 0"),
     ({"likelihood_weight": -1.0}, "likelihood_weight must be 0 or more, got -1")],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(tmp_path, tiny(), **options)
