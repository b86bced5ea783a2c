"""Trainer callbacks: a time limit, a clock, and a second tokenizer in every checkpoint."""

import time
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast, TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class TimeLimitCallback(TrainerCallback):
    """Stop training when its time is used up; evaluate (where evaluation is on) and save before stopping.

    The clock starts with ``train()``, so a resumed run has the whole time again. Evaluations during training count;
    the last one, after the limit, comes on top. The learning-rate schedule does not know of the limit: choose one that
    does not end in zero at a step the run never reaches, such as ``inverse_sqrt`` or ``constant_with_warmup``.

    Args:
        minutes: The limit in minutes.

    Raises:
        ValueError: If ``minutes`` is not positive.
    """

    def __init__(self, minutes: float):
        if not minutes > 0:
            raise ValueError(f"minutes must be more than 0, got {minutes}")
        self.minutes = minutes
        self._end = float("inf")

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock."""
        self._end = time.monotonic() + 60 * self.minutes

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Ask for the last evaluation and checkpoint, and for the end, once the time is used up."""
        if time.monotonic() >= self._end and not control.should_training_stop:
            print(f"The time is used up after {state.global_step} of {state.max_steps} updates.")
            control.should_training_stop = True
            control.should_save = True
            control.should_evaluate = args.eval_strategy != "no"


class ClockCallback(TrainerCallback):
    """Write into every entry of the log how long the run has trained: ``seconds``, evaluations included.

    The Trainer's own ``train_runtime`` begins anew when a run resumes. This clock goes on from the last entry of the
    checkpoint, so that work lost by an interruption counts once.
    """

    def __init__(self) -> None:
        self._start = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock, at the time that the run being resumed had reached."""
        before = state.log_history[-1].get("seconds", 0.0) if state.log_history else 0.0
        self._start = time.monotonic() - before

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stamp the entry that was just written."""
        state.log_history[-1]["seconds"] = round(time.monotonic() - self._start, 2)


class TargetTokenizerCallback(TrainerCallback):
    """Save the target tokenizer in the subfolder ``target_tokenizer`` of each checkpoint.

    Args:
        tokenizer: The tokenizer of a model with separate vocabularies; the Trainer itself saves the source's.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Add the tokenizer to the checkpoint that was just written."""
        if args.should_save:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            self.tokenizer.save_pretrained(str(folder / "target_tokenizer"))
