"""Batches by token budget: the sampler's promises, and the Trainer that uses it."""

import json

import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard, skip_first_batches
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import (
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)
from transformers.trainer_utils import get_last_checkpoint

from hf_attn.training import ClockCallback, TimeLimitCallback, TokenBatchSampler, TokenBatchTrainer, pair_lengths

VOCAB = 40


class StubTokenizer:
    """As much of a tokenizer as the collator and the Trainer use."""

    padding_side = "right"
    pad_token_id = 0
    eos_token_id = 2
    model_input_names = ["input_ids", "attention_mask"]

    def pad(self, features, padding=True, max_length=None, pad_to_multiple_of=None, return_tensors="pt"):
        longest = max(len(feature["input_ids"]) for feature in features)
        ids = [list(feature["input_ids"]) + [0] * (longest - len(feature["input_ids"])) for feature in features]
        mask = [[1] * len(feature["input_ids"]) + [0] * (longest - len(feature["input_ids"])) for feature in features]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    def save_pretrained(self, folder):
        return ()


def tiny_marian(dropout=0.1):
    torch.manual_seed(1)
    config = MarianConfig(
        vocab_size=VOCAB, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, dropout=dropout, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None,
    )  # fmt: skip
    return MarianMTModel(config)


def random_pairs(count, seed=0):
    generator = np.random.default_rng(seed)
    rows = {"input_ids": [], "labels": [], "text": []}
    for number in range(count):
        rows["input_ids"].append([*generator.integers(4, VOCAB, generator.integers(1, 12)).tolist(), 2])
        rows["labels"].append([*generator.integers(4, VOCAB, generator.integers(1, 12)).tolist(), 2])
        rows["text"].append(str(number))
    return Dataset.from_dict(rows)


def make_trainer(folder, dataset, model=None, tokens=60, callbacks=(), **arguments):
    model = model or tiny_marian()
    args = Seq2SeqTrainingArguments(
        output_dir=str(folder),
        **{
            "use_cpu": True,
            "learning_rate": 1e-2,
            "logging_steps": 1,
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
            "save_strategy": "no",
            **arguments,
        },
    )
    return TokenBatchTrainer(
        model=model,
        args=args,
        train_dataset=dataset,
        data_collator=DataCollatorForSeq2Seq(StubTokenizer(), model=model),
        processing_class=StubTokenizer(),
        callbacks=list(callbacks),
        tokens_per_batch=tokens,
    )


lengths = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=200)


@settings(max_examples=60, deadline=None)
@given(lengths, st.integers(1, 300), st.integers(0, 5), st.integers(0, 5))
def test_sampler_promises(pairs, budget, seed, epoch):
    source, target = map(list, zip(*pairs, strict=True))
    sampler = TokenBatchSampler(source, target, budget, seed=seed)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    # every pair exactly once, in as many batches as announced, whatever the epoch
    assert sorted(index for batch in batches for index in batch) == list(range(len(pairs)))
    assert len(batches) == len(sampler)
    for batch in batches:
        cost = len(batch) * max(max(source[index], target[index]) for index in batch)
        assert cost <= budget or len(batch) == 1
    # batches do not overlap in length, and none has room for the shortest pair of the next
    spans = sorted((min(max(pairs[i]) for i in b), max(max(pairs[i]) for i in b), -len(b)) for b in batches)
    for (_, longest, minus_size), (shortest, _, _) in zip(spans, spans[1:], strict=False):
        assert longest <= shortest
        assert (1 - minus_size) * shortest > budget
    repeated = TokenBatchSampler(source, target, budget, seed=seed)
    repeated.set_epoch(epoch)
    assert list(repeated) == batches


def test_sampler_order_changes_with_seed_and_epoch():
    generator = np.random.default_rng(0)
    source, target = generator.integers(3, 20, 500), generator.integers(3, 20, 500)

    def batches(seed, epoch):
        sampler = TokenBatchSampler(source, target, 100, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    first = batches(0, 0)
    for other in (batches(0, 1), batches(1, 0)):
        assert other != first
        # not only the order of the batches: who shares a batch changes too
        assert {frozenset(batch) for batch in other} != {frozenset(batch) for batch in first}


def test_sampler_pads_less_than_random_batches():
    generator = np.random.default_rng(0)
    source = generator.geometric(0.12, 4000) + 2
    target = np.maximum(1, source + generator.integers(-2, 3, 4000))
    sampler = TokenBatchSampler(source, target, 1000)
    padded = sum(len(batch) * source[batch].max() + len(batch) * target[batch].max() for batch in sampler)
    assert padded < 1.1 * (source.sum() + target.sum())


def test_sampler_refuses_what_cannot_work():
    with pytest.raises(ValueError, match="tokens_per_batch must be 1 or more, got 0"):
        TokenBatchSampler([1], [1], 0)
    with pytest.raises(ValueError, match="got 2 and 1"):
        TokenBatchSampler([1, 2], [1], 10)
    with pytest.raises(ValueError, match="at least one"):
        TokenBatchSampler([], [], 10)


def test_sampler_is_fast_for_large_data():
    import time

    generator = np.random.default_rng(0)
    begin = time.process_time()
    sampler = TokenBatchSampler(generator.integers(2, 40, 160_000), generator.integers(2, 40, 160_000), 1536)
    count = sum(1 for _ in sampler)
    assert time.process_time() - begin < 2
    assert count == len(sampler)


def test_sampler_across_processes_and_when_skipping():
    generator = np.random.default_rng(0)
    sampler = TokenBatchSampler(generator.integers(2, 20, 300), generator.integers(2, 20, 300), 100)
    sampler.set_epoch(3)
    whole = list(sampler)
    shards = [list(BatchSamplerShard(sampler, num_processes=3, process_index=rank)) for rank in range(3)]
    assert len({len(shard) for shard in shards}) == 1
    assert {tuple(batch) for shard in shards for batch in shard} == {tuple(batch) for batch in whole}
    loader = torch.utils.data.DataLoader(range(300), batch_sampler=sampler, collate_fn=list)
    assert list(skip_first_batches(loader, 4)) == whole[4:]


def test_pair_lengths_of_datasets_and_lists():
    dataset = random_pairs(50)
    rows = [dataset[index] for index in range(50)]
    expected = [len(row["input_ids"]) for row in rows], [len(row["labels"]) for row in rows]
    shuffled = dataset.shuffle(seed=1).select(range(20))
    for data, (source, target) in (
        (dataset, expected),
        (rows, expected),
        (shuffled, ([len(row["input_ids"]) for row in shuffled], [len(row["labels"]) for row in shuffled])),
    ):
        assert [list(part) for part in pair_lengths(data)] == [source, target]


class SeenBatches(TrainerCallback):
    """Remember the batches that the model was trained on."""

    def __init__(self, model):
        self.batches = []
        model.register_forward_pre_hook(self._remember, with_kwargs=True)

    def _remember(self, module, args, kwargs):
        self.batches.append(kwargs["input_ids"].tolist())


@pytest.mark.parametrize("workers", [0, 1])
def test_trainer_sees_every_pair_each_epoch(tmp_path, workers):
    dataset = random_pairs(40)
    model = tiny_marian()
    seen = SeenBatches(model)
    trainer = make_trainer(tmp_path, dataset, model, num_train_epochs=2, dataloader_num_workers=workers)
    trainer.train()
    per_epoch = len(trainer.get_train_dataloader())
    assert trainer.state.global_step == 2 * per_epoch == len(seen.batches)
    expected = sorted(dataset["input_ids"])
    epochs = seen.batches[:per_epoch], seen.batches[per_epoch:]
    for batches in epochs:
        assert sorted([token for token in row if token] for batch in batches for row in batch) == expected
    assert epochs[0] != epochs[1]


class StopAt(TrainerCallback):
    """End the process's training right after a checkpoint, as if it were killed."""

    def __init__(self, step):
        self.step = step

    def on_save(self, args, state, control, **kwargs):
        if state.global_step >= self.step:
            control.should_training_stop = True


@pytest.mark.parametrize(
    ("epochs", "accumulation"), [(0.4, 1), (1.0, 1), (1.4, 2)], ids=["in epoch 1", "after epoch 1", "in epoch 2"]
)
def test_resumed_run_ends_with_the_same_weights(tmp_path, epochs, accumulation):
    dataset = random_pairs(40)
    common = {"num_train_epochs": 2, "seed": 5, "gradient_accumulation_steps": accumulation}
    whole = make_trainer(tmp_path / "whole", dataset, **common)
    whole.train()
    per_epoch = whole.state.global_step // 2
    stop = round(epochs * per_epoch)
    assert (stop % per_epoch == 0) == (epochs == 1.0)

    killed = tmp_path / "killed"
    save = {"save_strategy": "steps", "save_steps": stop, "save_total_limit": 2}
    make_trainer(killed, dataset, callbacks=[StopAt(stop)], **common, **save).train()
    torch.manual_seed(999)  # another process: nothing of the random state survives but what the checkpoint holds
    resumed = make_trainer(killed, dataset, **common, **save)
    resumed.train(resume_from_checkpoint=get_last_checkpoint(killed))
    assert resumed.state.global_step == whole.state.global_step
    for (name, expected), (_, actual) in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().items(), strict=True
    ):
        assert torch.equal(expected, actual), name
    losses = [[entry["loss"] for entry in run.state.log_history if "loss" in entry] for run in (whole, resumed)]
    assert losses[0] == losses[1]


def test_accumulated_steps_equal_the_gradient_of_all_tokens(tmp_path):
    dataset = random_pairs(40)
    model = tiny_marian(dropout=0.0)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trainer = make_trainer(
        tmp_path, dataset, model, max_steps=1, gradient_accumulation_steps=4, label_smoothing_factor=0.1, optim="sgd",
        learning_rate=1.0, max_grad_norm=0.0, lr_scheduler_type="constant",
    )  # fmt: skip
    batches = [batch for batch, _ in zip(trainer.get_train_dataloader(), range(4), strict=False)]
    trainer.train()

    reference = tiny_marian(dropout=0.0)
    reference.load_state_dict(weights)
    total, tokens = 0.0, 0
    for batch in batches:
        logits = reference(**{name: tensor for name, tensor in batch.items() if name != "labels"}).logits
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["labels"], label_smoothing=0.1, reduction="sum"
        )
        total, tokens = total + losses, tokens + (batch["labels"] != -100).sum()
    assert len({int((batch["labels"] != -100).sum()) for batch in batches}) > 1  # unequal: a mean of means would differ
    (total / tokens).backward()
    for (name, parameter), actual in zip(reference.named_parameters(), model.parameters(), strict=True):
        if parameter.grad is not None:
            expected = parameter.detach() - parameter.grad
            assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-6), name


def test_time_limit_saves_and_stops(tmp_path):
    trainer = make_trainer(
        tmp_path, random_pairs(40), callbacks=[TimeLimitCallback(1e-6)], max_steps=100, save_strategy="steps"
    )
    trainer.train()
    assert trainer.state.global_step == 1
    assert (tmp_path / "checkpoint-1" / "model.safetensors").is_file()
    state = json.loads((tmp_path / "checkpoint-1" / "trainer_state.json").read_text())
    assert state["global_step"] == 1
    # a resumed run has its time again, and goes on from there
    resumed = make_trainer(tmp_path, random_pairs(40), max_steps=3, save_strategy="steps")
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert resumed.state.global_step == 3
    saved = load_file(tmp_path / "checkpoint-3" / "model.safetensors")
    assert not torch.equal(saved["model.shared.weight"], tiny_marian().state_dict()["model.shared.weight"])
    with pytest.raises(ValueError, match="minutes must be more than 0, got 0"):
        TimeLimitCallback(0)


class TenSeconds(TrainerCallback):
    """Let every update last ten seconds, by the clock that the callbacks read."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr("hf_attn.training.callbacks.time.monotonic", lambda: self.now)

    def on_step_end(self, args, state, control, **kwargs):
        self.now += 10


def test_clock_goes_on_where_the_checkpoint_was_written(tmp_path, monkeypatch):
    save = {"max_steps": 5, "save_strategy": "steps", "save_steps": 2}

    def trainer(*callbacks):
        callbacks = [TenSeconds(monkeypatch), ClockCallback(), *callbacks]
        return make_trainer(tmp_path, random_pairs(40), callbacks=callbacks, **save)

    trainer(StopAt(2)).train()
    resumed = trainer()
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    history = [(entry["step"], entry["seconds"]) for entry in resumed.state.log_history if "loss" in entry]
    assert history == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]
    state = json.loads((tmp_path / "checkpoint-2" / "trainer_state.json").read_text())
    assert [entry["seconds"] for entry in state["log_history"]] == [10, 20]  # written in time for the checkpoint


def test_trainer_needs_a_dataset_with_a_length(tmp_path):
    with pytest.raises(ValueError, match="train_dataset must be a dataset with a length, got NoneType"):
        make_trainer(tmp_path, None).get_train_dataloader()
