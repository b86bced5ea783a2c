"""What users do to our models with transformers' Trainer: nothing of it breaks, and no number lies.

Every test runs over all heads of all families, the dearer ones over one variant of each unless slow tests are asked
for. The reference is an explicit loop of log-probabilities over single
sentences without padding, or the same run done in another way.
"""

import contextlib
import json
import logging
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
from contract import cases
from datasets import Dataset
from safetensors.torch import load_file
from scripting import load_script
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch._dynamo.testing import CompileCounterWithBackend
from transformers import (
    DataCollatorForSeq2Seq,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    ViTImageProcessorPil,
    default_data_collator,
)

from hf_attn.training import TokenBatchTrainer


def first_of_families(found):
    """Mark as slow all but the first case of each family that scores its vocabulary, and the first that does not."""
    seen = set()
    for param in found:
        key = (param.values[0].family, param.values[0].has_vocabulary)
        yield pytest.param(*param.values, id=param.id, marks=pytest.mark.slow if key in seen else ())
        seen.add(key)


every_head = pytest.mark.parametrize("case", cases(heads=True))
heads = pytest.mark.parametrize("case", list(first_of_families(cases(heads=True))))
# those that score their vocabulary at every position
writing_heads = pytest.mark.parametrize(
    "case", [param for param in first_of_families(cases(heads=True)) if param.values[0].has_vocabulary]
)
SOURCES, TARGETS = (7, 4, 1, 9, 2, 5, 3, 6), (5, 6, 2, 3, 8, 1, 4, 7)


def word_tokenizer(config=None):
    """A tokenizer of the small vocabulary, with the ends of sentences that a model knows."""
    words = ["<pad>", "<s>", "</s>", *(f"w{number}" for number in range(3, 43))]
    backend = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token="w3"))
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    known = {name: token for name, token in special.items() if getattr(config, f"{name}_id", 0) is not None}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **known)


def rows_of(case, sources=SOURCES, targets=TARGETS, seed=0):
    """Ragged rows of ids, not padded; or as many pictures."""
    batch = case.batch(sources, targets, seed=seed)
    if not case.reads_text:
        return [dict(zip(batch, (value.tolist() for value in row))) for row in zip(*batch.values(), strict=True)]
    real = batch.pop("attention_mask").bool()
    rows = [{"input_ids": ids[kept].tolist()} for ids, kept in zip(batch["input_ids"], real, strict=True)]
    for name in case.label_names:
        for row, label in zip(rows, batch[name], strict=True):
            row[name] = label[label != -100].tolist() if label.dim() else label.item()
    return rows


def collator_of(model, rows, **options):
    """What pads rows of this kind: with a label for each target token, for each token, or for each text. Pictures need
    no padding."""
    if model.main_input_name == "pixel_values":
        return default_data_collator
    if model.config.is_encoder_decoder:
        return DataCollatorForSeq2Seq(word_tokenizer(), model=model, **options)
    each_token = isinstance(rows[0].get("labels"), list)
    return (DataCollatorForTokenClassification if each_token else DataCollatorWithPadding)(word_tokenizer(), **options)


def processor_of(model):
    """What made the model's inputs."""
    if model.main_input_name == "pixel_values":
        size = {"height": model.config.image_size, "width": model.config.image_size}
        return ViTImageProcessorPil(size=size, image_mean=[0.5] * 2, image_std=[0.5] * 2)
    return word_tokenizer(model.config)


def make_trainer(folder, model, rows, trainer_class=Seq2SeqTrainer, tokens=None, eval_rows=None, **arguments):
    """A trainer as a user would make it; `tokens` is the budget of a TokenBatchTrainer."""
    own = {name: arguments.pop(name) for name in ("compute_metrics", "preprocess_logits_for_metrics", "callbacks")
           if name in arguments}  # fmt: skip
    collation = {"pad_to_multiple_of": arguments.pop("pad_to_multiple_of", None)}
    defaults = {"use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "logging_steps": 1, "max_steps": 1}
    return trainer_class(
        model=model,
        args=Seq2SeqTrainingArguments(output_dir=str(folder), **(defaults | arguments)),
        train_dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list(eval_rows or rows),
        data_collator=collator_of(model, rows, **collation),
        processing_class=processor_of(model),
        **own,
        **({} if tokens is None else {"tokens_per_batch": tokens}),
    )


def single(model, row, **arguments):
    """Run one row without padding."""
    if model.config.is_encoder_decoder:
        decoder_input = [model.config.decoder_start_token_id, *row["labels"][:-1]]
        arguments["decoder_input_ids"] = torch.tensor([decoder_input])
    name = model.main_input_name
    return model(**{name: torch.tensor([row[name]])}, **arguments)


def choices(model, row):
    """(the scores of what could be, what is) for each label of a row."""
    outputs = single(model, row)
    if "start_positions" in row:
        return [(outputs.start_logits[0], row["start_positions"]), (outputs.end_logits[0], row["end_positions"])]
    logits = outputs.logits[0]
    if isinstance(row["labels"], int):
        return [(logits, row["labels"])]
    if logits.dim() == 1:  # of yes against no
        logits = torch.stack([torch.zeros_like(logits), logits], dim=-1)
    if model.can_generate() and not model.config.is_encoder_decoder:  # each from what stands before it
        return list(zip(logits[:-1], row["labels"][1:], strict=True))
    return list(zip(logits, row["labels"], strict=True))


def explicit_loss(model, rows, smoothing=0.0):
    """The mean over all labels, one after the other."""
    total, count = 0.0, 0
    for row in rows:
        for scores, label in choices(model, row):
            log_probs = scores.log_softmax(dim=-1)
            total = total - (1 - smoothing) * log_probs[label] - smoothing * log_probs.mean()
            count += 1
    return total / count


def weights_of(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


@contextlib.contextmanager
def complaints():
    """Collect what transformers logs as a warning."""
    found = []

    class Collector(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    handler = Collector(level=logging.WARNING)
    logging.getLogger("transformers").addHandler(handler)
    yield found
    logging.getLogger("transformers").removeHandler(handler)


# Training


def smooths(case):
    """Whether transformers can smooth the labels: they are one of several classes."""
    return case.auto_name not in ("AutoModelForQuestionAnswering", "AutoModelForPreTraining")


def unread(case):
    """In the names of parameters that no loss depends on: what waits for an encoder."""
    return "no such name" if case.is_encoder_decoder else "cross_attention"


def smoothings():
    """Every class with plain labels, and with smoothed ones where they can be."""
    for param in cases(heads=True, variants=False):
        for smoothing in (0.0, 0.1) if smooths(param.values[0]) else (0.0,):
            yield pytest.param(param.values[0], smoothing, id=f"{param.id}-{smoothing}")


@pytest.mark.slow
@pytest.mark.parametrize("case, smoothing", list(smoothings()))
def test_accumulated_batches_are_one_batch(case, smoothing, tmp_path):
    rows, rate = rows_of(case), 0.5
    reference = case.model(sharpness=2, **case.still).train()
    begin = weights_of(reference)
    loss = explicit_loss(reference, rows, smoothing)
    loss.backward()
    norm = math.sqrt(sum(float(p.grad.pow(2).sum()) for p in reference.parameters() if p.grad is not None))
    expected = {name: p.detach() - rate * p.grad for name, p in reference.named_parameters() if p.grad is not None}

    ways = [(Seq2SeqTrainer, None, size, 8 // size) for size in (8, 1, 2)]
    if case.is_encoder_decoder:
        ways += [(TokenBatchTrainer, tokens, 3, steps) for tokens, steps in ((1000, 1), (1, 8), (20, 4))]
    for trainer_class, tokens, size, steps in ways:
        model = case.model(sharpness=2, **case.still)
        model.load_state_dict(begin)
        trainer = make_trainer(
            tmp_path, model, rows, trainer_class, tokens, per_device_train_batch_size=size, optim="sgd",
            gradient_accumulation_steps=steps, label_smoothing_factor=smoothing, learning_rate=rate,
            lr_scheduler_type="constant", max_grad_norm=1e9,
        )  # fmt: skip
        assert len(trainer.get_train_dataloader()) == steps
        trainer.train()
        log = trainer.state.log_history[0]
        assert log["loss"] == pytest.approx(float(loss), rel=1e-4)
        assert log["grad_norm"] == pytest.approx(norm, rel=1e-4)
        for name, parameter in model.named_parameters():
            if name in expected:
                torch.testing.assert_close(parameter.detach(), expected[name], rtol=1e-4, atol=1e-5, msg=name)


@every_head
def test_every_parameter_has_a_gradient(case):
    """None is left out of the loss: several processes would wait for it in vain."""
    model = case.model(**case.still).train()
    explicit_loss(model, rows_of(case)).backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert [name for name in without if unread(case) not in name] == []


@pytest.mark.parametrize("case", cases(heads=True, text=True))
def test_padding_changes_neither_loss_nor_gradient(case):
    rows, results = rows_of(case), []
    for multiple, left, right in ((None, 0, 0), (8, 0, 0), (None, 3, 0), (None, 0, 5), (16, 2, 1)):
        model = case.model(sharpness=2, **case.still).train()
        batch = collator_of(model, rows, pad_to_multiple_of=multiple)(
            [dict(row, attention_mask=[1] * len(row["input_ids"])) for row in rows]
        )
        for name in ("input_ids", "attention_mask"):
            batch[name] = torch.nn.functional.pad(batch[name], (left, right), value=0)
        for name in () if case.is_encoder_decoder else case.label_names:  # about the tokens that are padded here
            if batch[name].dim() == 2:
                batch[name] = torch.nn.functional.pad(batch[name], (left, right), value=-100)
            elif name != "labels":
                batch[name] = batch[name] + left
        loss = model(**batch).loss
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()
        results.append((float(loss.detach()), float(norm)))
    assert results[0][0] == pytest.approx(float(explicit_loss(case.model(sharpness=2, **case.still), rows)), rel=1e-5)
    for result in results:
        assert result == pytest.approx(results[0], rel=1e-4)


@heads
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_resumed_run_is_the_whole_run(case, dropout, tmp_path):
    """Stopped in the middle of the third epoch."""
    rows = rows_of(case)

    def trainer(name, **arguments):
        model = case.model(dropout=dropout, attention_dropout=dropout)
        torch.manual_seed(5)
        return make_trainer(
            tmp_path / name, model, rows, per_device_train_batch_size=2, learning_rate=1e-2,
            lr_scheduler_type="constant", **arguments,
        )  # fmt: skip

    whole = trainer("whole", max_steps=20)
    whole.train()
    trainer("parts", max_steps=10, save_strategy="steps", save_steps=10).train()
    with complaints() as found:
        resumed = trainer("parts", max_steps=20)
        resumed.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-10"))
    assert [text for text in found if "missing" in text or "unexpected" in text] == []
    losses = [[log["loss"] for log in run.state.log_history if "loss" in log] for run in (whole, resumed)]
    assert len(losses[0]) == 20 and losses[0] == losses[1]
    assert_same_weights(weights_of(whole.model), weights_of(resumed.model))


@heads
def test_the_best_model_is_loaded_at_the_end_in_silence(case, tmp_path):
    qualities = iter([1.0, 3.0, 2.0])
    trainer = make_trainer(
        tmp_path, case.model(), rows_of(case), max_steps=3, eval_strategy="steps", eval_steps=1,
        save_strategy="steps", save_steps=1, load_best_model_at_end=True, metric_for_best_model="quality",
        greater_is_better=True, learning_rate=1e-2, compute_metrics=lambda prediction: {"quality": next(qualities)},
    )  # fmt: skip
    with complaints() as found:
        trainer.train()
    assert found == []
    assert trainer.state.best_global_step == 2
    saved = [load_file(tmp_path / f"checkpoint-{step}" / "model.safetensors") for step in (2, 3)]
    weights = weights_of(trainer.model)
    for name in saved[0]:
        assert torch.equal(weights[name], saved[0][name])
    assert any(not torch.equal(saved[0][name], saved[1][name]) for name in saved[0])
    reloaded = case.model_class.from_pretrained(tmp_path / "checkpoint-2")
    assert_same_weights(weights, weights_of(reloaded))  # also those that are tied


@pytest.mark.slow
@heads
def test_other_ways_to_train_run_and_learn(case, tmp_path):
    rows = rows_of(case)
    for arguments in (
        {"bf16": True},
        {"optim": "adafactor"},
        {"max_grad_norm": 0.1},
        {"bf16": True, "label_smoothing_factor": 0.1 * smooths(case), "gradient_accumulation_steps": 2},
    ):
        model = case.model(**case.still)
        before = float(explicit_loss(model, rows).detach())
        trainer = make_trainer(
            tmp_path, model, rows, max_steps=4, per_device_train_batch_size=4, learning_rate=1e-2,
            lr_scheduler_type="constant", **arguments,
        )  # fmt: skip
        trainer.train()
        assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
        assert float(explicit_loss(model.eval(), rows).detach()) < before
        if not arguments.get("label_smoothing_factor") and case.has_vocabulary:  # many labels in four rows
            first = trainer.state.log_history[0]["loss"]
            assert first == pytest.approx(before, rel=0.2)  # the first batch of four, in bfloat16 or not


@heads
@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_changes_nothing(case, reentrant, tmp_path):
    """With dropout: the layers that run again draw the same numbers."""
    rows, results, calls = rows_of(case), [], []
    for on in (False, True):
        model = case.model(dropout=0.2, attention_dropout=0.2)
        layers = [part for part in model.modules() if hasattr(part, "gradient_checkpointing") and part is not model]
        trainer = make_trainer(
            tmp_path, model, rows, optim="sgd", learning_rate=0.5, lr_scheduler_type="constant", max_grad_norm=1e9,
            max_steps=2, activation_checkpointing=on, activation_checkpointing_kwargs={"use_reentrant": reentrant},
        )  # fmt: skip
        counts = {"forwards": 0}

        def count(module, inputs, counts=counts):
            counts["forwards"] += 1

        for layer in layers:
            if type(layer).__name__.endswith("Layer"):
                for child in layer.children():
                    child.register_forward_pre_hook(count)
        torch.manual_seed(7)
        trainer.train()
        logs = [(log["loss"], log["grad_norm"]) for log in trainer.state.log_history if "loss" in log]
        results.append((logs, weights_of(model)))
        calls.append(counts["forwards"])
    assert 0 < calls[0] < calls[1]  # the layers did run again
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
    for name, tensor in results[0][1].items():
        torch.testing.assert_close(results[1][1][name], tensor, rtol=1e-5, atol=1e-6, msg=name)


# Evaluation


@writing_heads
@pytest.mark.parametrize("concatenate", [True, False])
def test_evaluation_gathers_logits_and_nothing_else(case, concatenate, tmp_path):
    """Ragged batches, with every weight and state asked for by the config."""
    rows, seen = rows_of(case, SOURCES[:5], TARGETS[:5]), []
    model = case.model(sharpness=2, attn_implementation="eager")
    model.config.output_attentions = model.config.output_hidden_states = True
    plain = case.model(sharpness=2)

    def metric(prediction):
        seen.append((prediction.predictions, prediction.label_ids))
        return {}

    trainer = make_trainer(
        tmp_path, model, rows, compute_metrics=metric, per_device_eval_batch_size=2, eval_accumulation_steps=1,
        eval_do_concat_batches=concatenate,
    )  # fmt: skip
    loss = trainer.evaluate()["eval_loss"]
    (predictions, labels) = seen[0]
    if concatenate:
        assert isinstance(predictions, np.ndarray) and predictions.shape[:2] == (
            5,
            max(len(row["labels"]) for row in rows),
        )
    else:
        assert [type(part) for part in predictions] == [np.ndarray] * 3
        predictions, labels = ([row for part in parts for row in part] for parts in (predictions, labels))
    for row, logits, ids in zip(rows, predictions, labels, strict=True):
        length = len(row["labels"])
        assert ids[:length].tolist() == row["labels"] and set(ids[length:].tolist()) <= {-100}
        np.testing.assert_allclose(logits[:length], single(plain, row).logits[0].detach().numpy(), atol=1e-4)
    batches = [rows[start : start + 2] for start in (0, 2, 4)]
    means = [float(explicit_loss(plain, batch).detach()) for batch in batches]
    assert loss == pytest.approx(np.mean(means), rel=1e-4)  # the Trainer's: every batch counts the same


@pytest.mark.parametrize("case", list(first_of_families(cases(heads=True, generates=True))))
@pytest.mark.parametrize("trainer_class", [Seq2SeqTrainer, TokenBatchTrainer])
def test_generated_predictions_are_those_of_generate(case, trainer_class, tmp_path):
    """One array, sentences of different lengths in it, and at most generation_max_length tokens."""
    rows, seen, longest = rows_of(case), [], 32
    for number, row in enumerate(rows if case.is_causal else ()):
        row["input_ids"][-1] = 3 + number  # a text that has ended is not gone on with
    tokenizer = word_tokenizer()
    model = case.model(sharpness=4)
    expected = [model.generate(torch.tensor([row["input_ids"]]), max_length=longest)[0].tolist() for row in rows]
    for seed in range(1, 60):  # some end by themselves, some do not
        if len({len(ids) for ids in expected}) > 1 and longest in {len(ids) for ids in expected}:
            break
        model = case.model(seed=seed, sharpness=4)
        with torch.no_grad():
            model.lm_head.weight[model.config.eos_token_id] *= 2.0
        expected = [model.generate(torch.tensor([row["input_ids"]]), max_length=longest)[0].tolist() for row in rows]
    assert longest in {len(ids) for ids in expected} and len({len(ids) for ids in expected}) > 1
    model.config.output_hidden_states = True
    if case.family != "rnn":
        model.set_attn_implementation("eager")
    model.config.output_attentions = True

    def metric(prediction):
        seen.append(prediction)
        return {"quality": 1.0}

    trainer = make_trainer(
        tmp_path, model, rows, trainer_class, None if trainer_class is Seq2SeqTrainer else 50, compute_metrics=metric,
        predict_with_generate=True, generation_max_length=longest, per_device_eval_batch_size=1,
    )  # fmt: skip
    metrics = trainer.evaluate()
    assert metrics["eval_quality"] == 1.0
    assert math.isfinite(metrics["eval_loss"])
    predictions = seen[0].predictions
    assert isinstance(predictions, np.ndarray) and predictions.shape == (8, longest) and (predictions == -100).any()
    for ids, prediction in zip(expected, predictions.tolist(), strict=True):
        assert prediction[: len(ids)] == ids
        assert set(prediction[len(ids) :]) <= {-100, tokenizer.pad_token_id}
    texts = tokenizer.batch_decode(np.where(predictions < 0, 0, predictions), skip_special_tokens=True)
    assert texts == tokenizer.batch_decode(expected, skip_special_tokens=True)


@writing_heads
def test_logits_need_no_memory_where_only_their_best_token_is_asked_for(case, tmp_path):
    seen = []

    def metric(prediction):
        seen.append(prediction.predictions)
        return {}

    rows = rows_of(case)
    trainer = make_trainer(
        tmp_path, case.model(sharpness=2), rows, per_device_eval_batch_size=3, compute_metrics=metric,
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(dim=-1),
    )  # fmt: skip
    trainer.evaluate()
    plain = case.model(sharpness=2)
    for row, ids in zip(rows, seen[0], strict=True):
        assert ids[: len(row["labels"])].tolist() == single(plain, row).logits[0].argmax(dim=-1).tolist()


@pytest.mark.parametrize("case", list(first_of_families(cases(heads=True, seq2seq=True))))
def test_the_script_refuses_a_generation_config_before_it_trains(case, tmp_path):
    model = case.model()
    model.generation_config.min_length = 50
    model.save_pretrained(tmp_path / "model")
    word_tokenizer().save_pretrained(tmp_path / "model")
    (tmp_path / "pairs.tsv").write_text("w5 w6\tw7 w8\n")
    words = ["--model_name_or_path", str(tmp_path / "model"), "--train_file", str(tmp_path / "pairs.tsv")]
    words += ["--source_lang", "en", "--target_lang", "xx", "--output_dir", str(tmp_path / "out"), "--use_cpu"]
    words += ["--max_source_length", "10", "--max_target_length", "10", "--bf16", "false"]
    with pytest.raises(SystemExit, match="error: the generation config asks for 50 tokens or more, but at most 11"):
        load_script("scripts/train_translation.py").main(words)


MEMORY = """
import json, os, sys, tempfile
import numpy as np, psutil, threading, time, torch
sys.path.insert(0, sys.argv[1])
from test_contract_trainer import make_trainer, rows_of
from contract import Case

case = Case(*json.loads(sys.argv[2]))
mode, size = sys.argv[3], 8000
model = case.model_class(case.config(vocab_size=size, decoder_vocab_size=None))
generator = np.random.default_rng(0)
rows = [
    {name: [*generator.integers(3, 43, 19).tolist(), 2] for name in ("input_ids", "labels")} for _ in range(2000)
]
options = {"argmax": {"compute_metrics": lambda p: {}, "preprocess_logits_for_metrics": lambda l, _: l.argmax(-1)},
           "generate": {"compute_metrics": lambda p: {}, "predict_with_generate": True, "generation_max_length": 21},
           "loss": {}}[mode]
trainer = make_trainer(tempfile.mkdtemp(), model, rows[:8], eval_rows=rows, per_device_eval_batch_size=16,
                       prediction_loss_only=mode == "loss", **options)
trainer.evaluate(trainer.eval_dataset.select(range(64)))
process, peak, done = psutil.Process(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.01)

watcher = threading.Thread(target=watch)
begin = process.memory_info().rss
watcher.start()
trainer.evaluate()
done = True
watcher.join()
print("GROWTH", (peak - begin) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["argmax", "generate", "loss"])
@pytest.mark.parametrize("case", cases(heads=True, variants=False, seq2seq=True))
def test_evaluation_of_many_sentences_does_not_fill_the_memory(case, mode):
    """2,000 sentences of 20 tokens with a vocabulary of 8,000: all logits would be 1.2 GB."""
    names = json.dumps([case.family, case.auto_name, case.variant])
    output = run_python("-c", MEMORY, str(Path(__file__).parent), names, mode)
    growth = float(output.split("GROWTH")[1])
    print(f"{case.id} {mode}: {growth:.0f} MB")
    assert growth < 200


def run_python(*words):
    """Run Python in a process of its own and return what it printed."""
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


# Adapters


def linear_names(model):
    """The names of all linear layers but the output's; of a model without any, of its embeddings."""
    parts = [(name, part) for name, part in model.named_modules() if name != "lm_head"]
    linear = [name for name, part in parts if isinstance(part, torch.nn.Linear)]
    return linear or [name for name, part in parts if isinstance(part, torch.nn.Embedding)]


def score_variants():
    """All heads, and the recurrent ones with attention also with the score whose layer has two inputs."""
    found = list(first_of_families(cases(heads=True)))
    variants = [pytest.param(*param.values, {}, id=param.id, marks=param.marks) for param in found]
    for param in found:
        if getattr(param.values[0].config(), "attention_type", "none") != "none":
            options = {"score_function": "concat"}
            variants.append(pytest.param(*param.values, options, id=f"{param.id}-concat", marks=param.marks))
    return variants


@pytest.mark.slow
@pytest.mark.parametrize(("case", "options"), score_variants())
def test_adapters_train_save_load_and_merge(case, options, tmp_path):
    rows, options = rows_of(case), case.still | options
    base = case.model(sharpness=2, **options)
    begin = weights_of(base)
    before = float(explicit_loss(base, rows).detach())
    names = linear_names(base)
    model = peft.get_peft_model(base, peft.LoraConfig(r=2, lora_alpha=16, target_modules=names))
    arguments = {
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "learning_rate": 0.03, "max_steps": 4,
        "save_strategy": "steps", "save_steps": 2,
    }  # fmt: skip
    if case.is_encoder_decoder:
        arguments |= {"trainer_class": TokenBatchTrainer, "tokens": 30}
        arguments |= {"predict_with_generate": True, "generation_max_length": 9}
    trainer = make_trainer(tmp_path, model, rows, **arguments)
    trainer.train()
    adapters = {name: parameter for name, parameter in model.named_parameters() if ".lora_" in name}
    assert {name.removeprefix("base_model.model.").split(".lora_")[0] for name in adapters} == set(names)
    idle = [name for name, parameter in adapters.items() if not parameter.any()]
    assert [name for name in idle if unread(case) not in name] == []  # each has learned
    assert trainer.state.log_history[0]["loss"] == pytest.approx(before, rel=0.5)
    metrics = trainer.evaluate()
    after = float(explicit_loss(model.eval(), rows).detach())
    assert after < before and metrics["eval_loss"] == pytest.approx(after, rel=0.2)

    # on a new copy of the same weights the saved adapter gives the same model; merged as well
    trainer.save_model(str(tmp_path / "adapter"))
    fresh = case.model(sharpness=2, **options)
    fresh.load_state_dict(begin)
    loaded = peft.PeftModel.from_pretrained(fresh, tmp_path / "adapter").eval()
    logits = [single(model, row)[0] for row in rows]
    for row, expected in zip(rows, logits, strict=True):
        torch.testing.assert_close(single(loaded, row)[0], expected)
    source, widths = torch.tensor([rows[0][case.model_class.main_input_name]]), (1, 3) if case.generates else ()
    translations = [loaded.generate(input_ids=source, num_beams=beams, max_new_tokens=8) for beams in widths]
    merged = loaded.merge_and_unload()
    merged.save_pretrained(tmp_path / "merged")
    reopened = case.model_class.from_pretrained(tmp_path / "merged")
    for one in (merged, reopened):
        assert type(one) is case.model_class
        for row, expected in zip(rows, logits, strict=True):
            torch.testing.assert_close(single(one, row)[0], expected, rtol=1e-4, atol=1e-5)
        for beams, expected in zip(widths, translations, strict=True):
            assert torch.equal(one.generate(input_ids=source, num_beams=beams, max_new_tokens=8), expected)

    # and a run with adapters resumes
    again = case.model(sharpness=2, **options)
    again.load_state_dict(begin)
    torch.manual_seed(9)
    again = peft.get_peft_model(again, peft.LoraConfig(r=2, lora_alpha=16, target_modules=names))
    resumed = make_trainer(tmp_path, again, rows, **arguments)
    shutil.rmtree(tmp_path / "checkpoint-4")
    resumed.train(resume_from_checkpoint=True)
    assert_same_weights(weights_of(model), weights_of(again))


@writing_heads
@pytest.mark.parametrize("whole", ["lm_head", "embed_tokens"])
def test_modules_that_are_trained_whole_beside_adapters(case, whole, tmp_path):
    rows = rows_of(case)
    base = case.model(sharpness=2, **case.still)
    begin = weights_of(base)
    names = [name for name in linear_names(base) if not name.endswith(whole)] or ["lm_head"]
    config = peft.LoraConfig(r=2, target_modules=names, modules_to_save=[whole])
    model = peft.get_peft_model(base, config)
    trainer = make_trainer(tmp_path, model, rows, max_steps=3, learning_rate=0.05, per_device_train_batch_size=4)
    trainer.train()
    trainer.save_model(str(tmp_path / "adapter"))
    logits = [single(model.eval(), row).logits for row in rows]
    fresh = case.model(sharpness=2, **case.still)
    fresh.load_state_dict(begin)
    loaded = peft.PeftModel.from_pretrained(fresh, tmp_path / "adapter").eval()
    for row, expected in zip(rows, logits, strict=True):
        torch.testing.assert_close(single(loaded, row).logits, expected)
    merged = loaded.merge_and_unload()
    for row, expected in zip(rows, logits, strict=True):
        torch.testing.assert_close(single(merged, row).logits, expected, rtol=1e-4, atol=1e-5)
    merged.save_pretrained(tmp_path / "merged")
    reopened = case.model_class.from_pretrained(tmp_path / "merged")
    for row, expected in zip(rows, logits, strict=True):
        torch.testing.assert_close(single(reopened, row).logits, expected, rtol=1e-4, atol=1e-5)


# Compiled, and in several processes


@pytest.mark.slow
@every_head
def test_a_compiled_training_step_is_the_eager_one(case, tmp_path):
    """With lengths that differ from batch to batch, and no more compilations than a handful."""
    rows = [row for seed in range(6) for row in rows_of(case, seed=seed)]
    results = []
    for compiled in ({}, {"torch_compile": True, "torch_compile_backend": "inductor"}):
        torch._dynamo.reset()
        model = case.model(sharpness=2, **case.still)
        trainer = make_trainer(
            tmp_path, model, rows, per_device_train_batch_size=2, optim="sgd", learning_rate=1e-3, max_steps=12,
            max_grad_norm=1e9, lr_scheduler_type="constant", **compiled,
        )  # fmt: skip
        trainer.train()
        logs = [(log["loss"], log["grad_norm"]) for log in trainer.state.log_history if "loss" in log]
        results.append((logs, weights_of(model)))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-3)
    for name, tensor in results[0][1].items():
        torch.testing.assert_close(results[1][1][name.removeprefix("_orig_mod.")], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@every_head
def test_ragged_batches_are_not_compiled_for_ever(case):
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("eager")
    model = case.model(sharpness=2, **case.still).train()
    compiled = torch.compile(model, backend=counter)
    counts = []
    for number in range(1, 25):
        batch = case.batch((3 + number, 2 + number // 2), (2 + number, 1 + number % 3))
        loss = compiled(**batch).loss
        assert float(loss.detach()) == pytest.approx(float(model(**batch).loss.detach()), rel=1e-5)
        counts.append(counter.frame_count)
    print(case.id, counts)
    assert counts[-1] == counts[11]  # whatever is compiled for a length of its own has come to its end


WORKER = """
import json, os, sys
import torch
from pathlib import Path
from contract import Case
from test_contract_trainer import make_trainer, rows_of, weights_of
from hf_attn.training import TokenBatchTrainer
from transformers import Seq2SeqTrainer

folder, settings, found = Path(sys.argv[1]), json.loads(sys.argv[2]), {}
for number, (names, tokens) in enumerate(settings["runs"]):
    case = Case(*names)
    model = case.model(sharpness=2, **case.still)
    trainer = make_trainer(
        folder / str(number), model, rows_of(case), Seq2SeqTrainer if tokens is None else TokenBatchTrainer, tokens,
        per_device_train_batch_size=settings["size"], gradient_accumulation_steps=settings["accumulation"],
        optim="sgd", learning_rate=0.5, lr_scheduler_type="constant", max_grad_norm=1e9, max_steps=3,
        label_smoothing_factor=0.1, ddp_find_unused_parameters=False, save_strategy="steps", save_steps=3,
        ddp_backend="gloo" if "WORLD_SIZE" in os.environ else None, predict_with_generate=True, generation_max_length=6,
        compute_metrics=lambda prediction: {"rows": len(prediction.predictions)},
    )
    trainer.train()
    metrics = trainer.evaluate()
    if trainer.is_world_process_zero():
        logs = [(log["loss"], log["grad_norm"]) for log in trainer.state.log_history if "loss" in log]
        torch.save({"logs": logs, "weights": weights_of(model), "rows": metrics["eval_rows"]}, folder / f"{number}.pt")
"""


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path):
    """The same global batches: of four rows, and of the sampler's batches taken by turns."""
    runs = [[[param.values[0].family, param.values[0].auto_name, param.values[0].variant], tokens]
            for param in cases(heads=True, seq2seq=True) for tokens in (None, 1)]  # fmt: skip
    results = []
    for processes, size, accumulation in ((1, 1, 4), (2, 1, 2)):
        folder = tmp_path / str(processes)
        folder.mkdir()
        (folder / "worker.py").write_text(WORKER)
        settings = json.dumps({"runs": runs, "size": size, "accumulation": accumulation})
        launcher = [] if processes == 1 else [
            "-m", "torch.distributed.run", f"--nproc_per_node={processes}", "--master_port=29713"
        ]  # fmt: skip
        run_python(*launcher, str(folder / "worker.py"), str(folder), settings)
        results.append([torch.load(folder / f"{number}.pt") for number in range(len(runs))])
    for run, one, two in zip(runs, *results, strict=True):
        np.testing.assert_allclose(two["logs"], one["logs"], rtol=1e-4, err_msg=str(run))
        assert one["rows"] == 8
        if run[1] is not None:  # transformers' own trainer keeps the rows that fill the last batch
            assert two["rows"] == 8
        for name, tensor in one["weights"].items():
            torch.testing.assert_close(two["weights"][name], tensor, rtol=1e-4, atol=1e-4)
