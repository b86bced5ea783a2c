"""Trainer callbacks: a time limit, a clock, and early stopping that a resumed run continues."""

import math
import time
from typing import Any

from transformers import EarlyStoppingCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments


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
    """Keep the log whole when a run resumes, and write into every entry how long it has trained.

    The Trainer's own ``train_runtime`` begins anew when a run resumes. This clock, ``seconds`` with evaluations
    included, goes on from the last entry of the checkpoint, so that work lost by an interruption counts once. And the
    Trainer forgets the losses since the last entry: here every checkpoint has one of its own step. Callbacks that ask
    for checkpoints or the end come before this one.
    """

    def __init__(self) -> None:
        self._start = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the clock, at the time that the run being resumed had reached."""
        before = state.log_history[-1].get("seconds", 0.0) if state.log_history else 0.0
        self._start = time.monotonic() - before

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Log where a checkpoint may follow, and at the end."""
        control.should_log |= control.should_save or control.should_evaluate or control.should_training_stop

    on_epoch_end = on_step_end

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stamp the entry that was just written."""
        state.log_history[-1]["seconds"] = round(time.monotonic() - self._start, 2)


class PatienceCallback(EarlyStoppingCallback):
    """transformers' ``EarlyStoppingCallback``, of which a resumed run stops where the whole run would have.

    The base class begins to count anew. This one counts the evaluations in the log of the checkpoint again.
    """

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the evaluations before the checkpoint; ask for the end if they were enough."""
        super().on_train_begin(args, state, control, **kwargs)
        name = "eval_" + str(args.metric_for_best_model).removeprefix("eval_")
        sign = 1 if args.greater_is_better else -1
        best, state.best_metric, self.early_stopping_patience_counter = state.best_metric, None, 0
        for value in [entry[name] for entry in state.log_history if name in entry]:
            self.check_metric_value(args, state, control, value)
            before = -sign * math.inf if state.best_metric is None else state.best_metric
            state.best_metric = value if sign * value > sign * before else before
        state.best_metric = best
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_training_stop = True


def mean_loss(state: TrainerState) -> float:
    """Compute the training loss of the whole run from its log; the Trainer's begins anew when a run resumes."""
    total, step = 0.0, 0
    for entry in state.log_history:
        if "loss" in entry:
            total, step = total + entry["loss"] * (entry["step"] - step), entry["step"]
    return total / max(step, 1)
