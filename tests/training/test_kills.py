"""A run that was killed and started again ends as if nothing had happened: the same weights, the same numbers."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from scripting import ROOT, load_script
from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainingArguments, TrainerCallback

from hf_attn.data import tokenize_pairs, train_tokenizer
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.training import ClockCallback, PatienceCallback, TokenBatchTrainer, last_complete_checkpoint
from hf_attn.training.checkpoints import find_defect

SHAPES = {
    "transformer-tiny": "hidden_size=16,encoder_layers=1,decoder_layers=1,encoder_intermediate_size=16,"
    "decoder_intermediate_size=16",
    "bahdanau-tiny": "hidden_size=8,embedding_size=8,attention_size=8",
}
CLOCKS = ("runtime", "per_second", "seconds")  # what may differ between two runs

# Imports once and forks a process for each run, so that a kill hits the run and not its imports.
RUNNER = """
import json, os, runpy, sys
import hf_attn.data, hf_attn.evaluation, hf_attn.inference, hf_attn.training
script = sys.argv[1]
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        sys.argv = [script, *json.loads(line)]
        runpy.run_path(script, run_name="__main__")
        sys.stderr.flush()
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()  # until then a process that has ended keeps its number
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Runner:
    """Runs of the training script, each in a process of its own."""

    def __init__(self, folder):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_DATASETS_CACHE": str(folder / "cache")}
        self.errors = (folder / "stderr.txt").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(ROOT / "scripts" / "train_translation.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment, cwd=folder,
        )  # fmt: skip

    def run(self, words, seconds=None, writing=None):
        """Run the script; return the seconds that it took, None if it was killed.

        It is killed after so many seconds; then, if `writing` is its output folder, once a checkpoint is half-written.
        """
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        child, begin = int(self.process.stdout.readline()), time.monotonic()
        if seconds is not None:
            time.sleep(seconds)
            while writing and not half_written(writing) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.0005)
            os.kill(child, signal.SIGKILL)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert status in (0, signal.SIGKILL), Path(self.errors.name).read_text()
        return None if status else time.monotonic() - begin

    def close(self):
        """End the process that forks."""
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()


def half_written(output):
    """Whether a checkpoint is being written."""
    return any(not (path / "trainer_state.json").exists() for path in output.glob("checkpoint-*"))


def without_clocks(values):
    """Leave out what tells the time, at any depth."""
    if isinstance(values, dict):
        return {key: without_clocks(value) for key, value in values.items() if not key.endswith(CLOCKS)}
    return [without_clocks(value) for value in values] if isinstance(values, list) else values


def assert_same_run(one, other):
    """Compare all that two finished runs leave in their folders."""
    weights = [load_file(folder / "model.safetensors") for folder in (one, other)]
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name
    results = [json.loads((folder / "all_results.json").read_text()) for folder in (one, other)]
    assert {"train_loss", "eval_bleu", "eval_loss", "predict_bleu"} <= set(results[0])
    assert without_clocks(results[0]) == without_clocks(results[1])
    states = [json.loads((folder / "trainer_state.json").read_text()) for folder in (one, other)]
    histories = [without_clocks(state["log_history"]) for state in states]
    assert [entry for entry in histories[0] if "train_loss" not in entry] == [
        entry for entry in histories[1] if "train_loss" not in entry
    ]
    for name in ("generated_predictions.txt", "tokenizer.json", "config.json", "generation_config.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    names = [sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) for folder in (one, other)]
    assert names[0] == names[1]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    nouns, verbs = ["cat", "dog", "bird", "old horse"], ["sleeps", "eats", "sings and sings"]
    pairs = [f"the {noun} {verb}.\t{verb[::-1]} {noun[::-1]}." for noun in nouns for verb in verbs]
    for name, rows in (("train", pairs * 2), ("dev", pairs[::3]), ("test", pairs[1::3])):
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def command(data, output, recipe, *words):
    """Five steps in an epoch, so that checkpoints at every third step lie inside one."""
    files = [word for name, file in (("train", "train"), ("validation", "dev"), ("test", "test"))
             for word in (f"--{name}_file", str(data / f"{file}.tsv"))]  # fmt: skip
    return [
        *files, "--source_lang", "en", "--target_lang", "xx", "--recipe", recipe, "--config_overrides", SHAPES[recipe],
        "--vocab_size", "300", "--tokens_per_batch", "64", "--max_target_length", "10", "--max_steps", "14",
        "--save_steps", "3", "--eval_steps", "6", "--logging_steps", "2", "--save_total_limit", "2",
        "--use_cpu", "--bf16", "false", "--disable_tqdm", "true", "--output_dir", str(output), *words,
    ]  # fmt: skip


def kill_until(data, folder, kills, seed):
    """Kill runs so many times in all, and compare each that then ends with one never killed.

    Three of four kills come at random moments, the fourth as soon as a checkpoint is being written after one.
    """
    variants = [
        ("transformer-tiny", "--gradient_accumulation_steps", "2"),
        ("bahdanau-tiny", "--separate_vocabularies", "--average_checkpoints", "2"),
        ("transformer-tiny", "--load_best_model_at_end", "--save_steps", "6", "--early_stopping_patience", "2"),
    ]
    generator, killed, left = random.Random(seed), 0, 0
    runner = Runner(folder)
    for number in itertools.count():
        variant = variants[number % len(variants)]
        whole, output = folder / f"whole-{number % len(variants)}", folder / "killed"
        if not whole.exists():
            duration = runner.run(command(data, whole, *variant))
        for _ in range(min(4, kills - killed)):
            writing = output if killed % 4 == 3 else None
            seconds = generator.uniform(0.0, duration * (0.5 if writing else 1.0))
            killed += runner.run(command(data, output, *variant), seconds, writing) is None
            left += half_written(output)
        runner.run(command(data, output, *variant))
        assert_same_run(whole, output)
        shutil.rmtree(output)
        if killed == kills:
            break
    runner.close()
    print(f"{killed} kills of {number + 1} runs left {left} half-written checkpoints")
    assert left > 0


@pytest.mark.slow
def test_a_run_that_was_killed_before_it_deleted_an_older_checkpoint_deletes_it(data, tmp_path):
    runner, words = Runner(tmp_path), command(data, tmp_path / "run", "transformer-tiny")
    runner.run(words)
    first, last = sorted((tmp_path / "run").glob("checkpoint-*"))
    older = shutil.copytree(first, first.with_name("checkpoint-9"))
    os.utime(older, (0, 0))
    runner.run(words)
    runner.close()
    assert sorted((tmp_path / "run").glob("checkpoint-*")) == [first, last]


@pytest.mark.slow
def test_five_kills_at_random_moments_change_nothing(data, tmp_path):
    kill_until(data, tmp_path, kills=5, seed=0)


@pytest.mark.slow
def test_twenty_kills_at_random_moments_change_nothing(data, tmp_path):
    kill_until(data, tmp_path, kills=20, seed=1)


def make_trainer(
    folder, trainer_class=TokenBatchTrainer, callbacks=(), compute_metrics=None, target=False, **arguments
):
    """A tiny recurrent model with dropout on 20 pairs: seven batches an epoch."""
    pairs = [
        {"translation": {"en": "a b c"[: 1 + 2 * (n % 3)] + " d" * (n % 5), "xx": "x y" * (1 + n % 4)}}
        for n in range(20)
    ]
    from datasets import Dataset

    tokenizer = train_tokenizer([text for pair in pairs for text in pair["translation"].values()], 60, kind="word")
    dataset = tokenize_pairs(Dataset.from_list(pairs), tokenizer, "en", "xx")
    torch.manual_seed(3)
    model = AttnRnnForConditionalGeneration(AttnRnnConfig(vocab_size=len(tokenizer), hidden_size=8, dropout=0.2))
    args = Seq2SeqTrainingArguments(
        output_dir=str(folder),
        **{"use_cpu": True, "learning_rate": 1e-2, "logging_steps": 2, "disable_tqdm": True, "save_strategy": "steps",
           "save_steps": 3, "per_device_train_batch_size": 3, "max_steps": 10} | arguments,
    )  # fmt: skip
    own = {"tokens_per_batch": 18} if issubclass(trainer_class, TokenBatchTrainer) else {}
    if target:
        own["target_tokenizer"] = tokenizer
    return trainer_class(
        model=model, args=args, train_dataset=dataset, eval_dataset=dataset.select(range(4)),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model), processing_class=tokenizer,
        callbacks=list(callbacks), compute_metrics=compute_metrics, **own,
    )  # fmt: skip


def weights_of(trainer):
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def assert_same_weights(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run: its folder, with the checkpoints 3, 6, 9 and 10, and its weights."""
    folder = tmp_path_factory.mktemp("finished")
    trainer = make_trainer(folder, target=True)
    trainer.train()
    return folder, weights_of(trainer)


def written_order(folder):
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns)


def test_the_state_is_what_a_checkpoint_gets_last(finished):
    """Whatever a kill leaves of a checkpoint that is being written, it has no trainer_state.json."""
    for checkpoint in finished[0].glob("checkpoint-*"):
        names = [str(path.relative_to(checkpoint)) for path in written_order(checkpoint)]
        assert names[-1] == "trainer_state.json"
        assert "target_tokenizer/tokenizer.json" in names


def test_every_half_written_checkpoint_is_passed_over(finished, tmp_path):
    order = [path.relative_to(finished[0] / "checkpoint-9") for path in written_order(finished[0] / "checkpoint-9")]
    assert len(order) > 9
    output = tmp_path / "out"
    for count in range(len(order)):
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(finished[0] / "checkpoint-6", output / "checkpoint-6")
        (output / "checkpoint-9").mkdir()
        for number, name in enumerate(order[: count + 1]):
            content = (finished[0] / "checkpoint-9" / name).read_bytes()
            (output / "checkpoint-9" / name).parent.mkdir(exist_ok=True)
            (output / "checkpoint-9" / name).write_bytes(content[: len(content) // 2] if number == count else content)
        with pytest.warns(UserWarning, match="checkpoint-9 is not a complete checkpoint and is passed over"):
            assert last_complete_checkpoint(output) == output / "checkpoint-6"


NEEDED = ("trainer_state.json", "model.safetensors", "optimizer.pt", "scheduler.pt")


@pytest.mark.parametrize("length", [0, 0.5, -1])
def test_every_truncated_file_is_found(finished, tmp_path, length):
    checkpoint = tmp_path / "checkpoint-9"
    shutil.copytree(finished[0] / "checkpoint-9", checkpoint)
    assert find_defect(checkpoint) is None
    names = [path.relative_to(checkpoint) for path in written_order(checkpoint) if path.suffix not in (".py", ".md")]
    assert {*NEEDED, "config.json", "rng_state.pth", "tokenizer.json"} <= {str(name) for name in names}
    for name in names:
        content = (checkpoint / name).read_bytes()
        cut = length if length < 1 and length != 0.5 else int(length * len(content))
        (checkpoint / name).write_bytes(content.rstrip()[:cut])
        assert find_defect(checkpoint) == f"{name} is incomplete"
        (checkpoint / name).write_bytes(content)


def test_every_missing_file_is_found(finished, tmp_path):
    for name in NEEDED:
        shutil.copytree(finished[0] / "checkpoint-9", tmp_path / name / "checkpoint-9")
        (tmp_path / name / "checkpoint-9" / name).unlink()
        assert find_defect(tmp_path / name / "checkpoint-9") == f"{name} is missing"
        with pytest.warns(UserWarning), pytest.raises(ValueError, match="holds no complete checkpoint"):
            make_trainer(tmp_path / name).train(resume_from_checkpoint=True)


@pytest.mark.parametrize("arguments", [{}, {"max_steps": -1, "num_train_epochs": 1.4}], ids=["steps", "epochs"])
def test_a_run_that_resumes_at_its_end_takes_no_step(tmp_path, arguments):
    trainer = make_trainer(tmp_path, **arguments)
    trainer.train()
    assert trainer.state.global_step == 10  # not the end of an epoch
    again = make_trainer(tmp_path, **arguments)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 10
    assert_same_weights(weights_of(trainer), weights_of(again))


def test_a_half_written_checkpoint_is_written_anew(finished, tmp_path):
    """Also where the folder has a trainer_state.json of an older run: nothing of it is left beside the new files."""
    shutil.copytree(finished[0] / "checkpoint-6", tmp_path / "checkpoint-6")
    shutil.copytree(finished[0] / "checkpoint-9", tmp_path / "checkpoint-9")
    (tmp_path / "checkpoint-9" / "optimizer.pt").write_bytes(b"half")
    (tmp_path / "checkpoint-9" / "left.txt").write_text("of an older run")
    trainer = make_trainer(tmp_path, save_total_limit=1)
    with pytest.warns(UserWarning, match="optimizer.pt is incomplete"):
        trainer.train(resume_from_checkpoint=True)
    assert_same_weights(weights_of(trainer), finished[1])
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-10"]
    assert find_defect(tmp_path / "checkpoint-10") is None


class KilledWhileWriting(TokenBatchTrainer):
    """Dies before the state of the checkpoint of step 9 is written."""

    def _save_rng_state(self, output_dir):
        if output_dir.endswith("checkpoint-9"):
            raise KeyboardInterrupt
        super()._save_rng_state(output_dir)


def test_the_only_complete_checkpoint_is_never_deleted(finished, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make_trainer(tmp_path, KilledWhileWriting, save_total_limit=1).train()
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-6", "checkpoint-9"]
    with pytest.warns(UserWarning, match="checkpoint-9"):
        assert last_complete_checkpoint(tmp_path) == tmp_path / "checkpoint-6"
    trainer = make_trainer(tmp_path, save_total_limit=1)
    with pytest.warns(UserWarning, match="checkpoint-9"):
        trainer.train(resume_from_checkpoint=True)
    assert_same_weights(weights_of(trainer), finished[1])


class StopAt(TrainerCallback):
    """End training after the checkpoint of a step, as if it were killed."""

    def __init__(self, step):
        self.step = step

    def on_save(self, args, state, control, **kwargs):
        control.should_training_stop = control.should_training_stop or state.global_step == self.step


@pytest.mark.parametrize("greater", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_early_stopping_counts_on_after_a_resume(tmp_path, greater):
    values = [5.0, 7.0, 6.0, 6.5, 6.0, 8.0] if greater else [5.0, 3.0, 4.0, 3.5, 4.0, 2.0]
    begun = {"evaluations": 0}

    def metric(prediction):
        begun["evaluations"] += 1
        return {"quality": values[begun["evaluations"] - 1]}

    def trainer(name, *callbacks, patience=2):
        return make_trainer(
            tmp_path / name, callbacks=[PatienceCallback(patience), ClockCallback(), *callbacks],
            compute_metrics=metric, eval_strategy="steps", eval_steps=1, save_steps=1, load_best_model_at_end=True,
            greater_is_better=greater, metric_for_best_model="quality", max_steps=6, predict_with_generate=True,
            generation_max_length=4,
        )  # fmt: skip

    whole = trainer("whole")
    whole.train()
    assert whole.state.global_step == 4  # two evaluations that are no better than that of step 2
    for step in (3, 4):  # the last: it had stopped already
        begun["evaluations"] = 0
        trainer(str(step), StopAt(step)).train()
        begun["evaluations"] = step
        resumed = trainer(str(step))
        resumed.train(resume_from_checkpoint=True)
        assert resumed.state.global_step == 4
        assert_same_weights(weights_of(whole), weights_of(resumed))
    longer = trainer("4", patience=3)  # more patience, and it goes on
    longer.train(resume_from_checkpoint=True)
    assert longer.state.global_step == 5


def test_numbers_of_a_resumed_run_are_those_of_the_whole(data, tmp_path):
    """In process, without a kill: stopped at step 5, between two entries of the log, and continued to step 7."""
    script = load_script("scripts/train_translation.py")
    words = ("bahdanau-tiny", "--lr_scheduler_type", "constant", "--eval_steps", "5", "--separate_vocabularies")
    words += ("--save_steps", "5")
    script.main(command(data, tmp_path / "whole", *words, "--max_steps", "7"))
    script.main(command(data, tmp_path / "parts", *words, "--max_steps", "5"))
    (tmp_path / "parts" / "all_results.json").write_text('{"train_loss": 1')  # a run was killed while it wrote them
    (tmp_path / "parts" / "model.safetensors").write_bytes(b"half")
    (tmp_path / "parts" / "checkpoint-7").mkdir()
    with pytest.warns(UserWarning, match="checkpoint-7 is not a complete checkpoint"):
        script.main(command(data, tmp_path / "parts", *words, "--max_steps", "7"))
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    assert json.loads((tmp_path / "parts" / "config.json").read_text())["use_cache"] is True
    assert json.loads((tmp_path / "parts" / "generation_config.json").read_text())["use_cache"] is True
    script.main(command(data, tmp_path / "parts", *words, "--max_steps", "7"))  # killed after training
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    losses = [
        (entry["step"], entry["loss"])
        for entry in json.loads((tmp_path / "whole" / "trainer_state.json").read_text())["log_history"]
        if "loss" in entry
    ]
    assert [step for step, _ in losses] == [2, 4, 5, 6, 7]
    mean = (2 * losses[0][1] + 2 * losses[1][1] + losses[2][1] + losses[3][1] + losses[4][1]) / 7
    assert json.loads((tmp_path / "whole" / "all_results.json").read_text())["train_loss"] == pytest.approx(mean)
