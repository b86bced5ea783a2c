"""The arguments of ``scripts/train_language_model.py``, read and checked.

What counts, strongest first: the command line, the recipe, the default.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from transformers import HfArgumentParser, Seq2SeqTrainingArguments, TrainingArguments

from ..data.text import PHRASEBOOK_LANGUAGES
from .arguments import SCRIPT_DEFAULTS, parse_overrides
from .language_recipes import language_recipe
from .recipes import hardware_defaults
from .record import hub_id, write_run


@dataclass
class LanguageModelArguments:
    """Which model is trained, and what it learns."""

    objective: Literal["clm", "mlm", "electra"] = field(
        default="clm",
        metadata={"help": "Go on with a text (Gpt), fill masks (Bert), or find replaced pieces (Bert as ELECTRA)."},
    )
    recipe: str = field(default="small", metadata={"help": "Model and training settings: base, small or tiny."})
    config_overrides: str | None = field(
        default=None, metadata={"help": "Config fields that replace the recipe's, such as hidden_size=128,dropout=0.2."}
    )
    model_name_or_path: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a model to train further, with its tokenizer."}
    )
    tokenizer_name: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a tokenizer to use instead of training one."}
    )
    tokenizer_kind: Literal["bpe", "word"] = field(default="bpe", metadata={"help": "Tokenizer to train."})
    vocab_size: int = field(default=4000, metadata={"help": "Size of the vocabulary to learn."})
    generator_size: float = field(
        default=0.5, metadata={"help": "Width of ELECTRA's generator as a share of the discriminator's."}
    )


@dataclass
class TextArguments:
    """What the model is trained on, how much of it, and in which batches."""

    train_file: str | None = field(default=None, metadata={"help": "One text a line, or .jsonl with a column."})
    validation_file: str | None = field(default=None, metadata={"help": "Texts to measure on, if not held out."})
    dataset_name: str | None = field(default=None, metadata={"help": "Name of a dataset with a train split."})
    text_column: str = field(default="text", metadata={"help": "Where the text stands in a dataset or .jsonl."})
    phrasebook: str | None = field(
        default=None, metadata={"help": "Train on sentences of the phrasebook: en, it, fr or ko."}
    )
    held_out: float = field(
        default=0.03, metadata={"help": "Share of the texts to hold out where there is no validation file."}
    )
    max_train_samples: int | None = field(default=None, metadata={"help": "Use the first so many training texts."})
    max_eval_samples: int | None = field(default=None, metadata={"help": "Evaluate on the first so many texts."})
    max_length: int = field(default=128, metadata={"help": "Most tokens in a row."})
    blocks: bool | None = field(
        default=None,
        metadata={"help": "Train on blocks of that length instead of one text a row; by default where a text goes on."},
    )
    mask_ratio: float = field(default=0.15, metadata={"help": "Share of the pieces to predict, with mlm and electra."})
    tokens_per_batch: int = field(default=4096, metadata={"help": "Padded tokens of a training batch."})
    max_minutes: float | None = field(default=None, metadata={"help": "Stop, evaluate and save after so many minutes."})
    average_checkpoints: int = field(
        default=1, metadata={"help": "Finish with the mean of the weights of this many last checkpoints."}
    )
    pseudo_samples: int = field(
        default=100, metadata={"help": "Texts on which the pseudo-perplexity is measured, with mlm."}
    )
    floors: bool = field(
        default=False, metadata={"help": "Measure also what counting pieces alone achieves on the same texts."}
    )


# what a run says about itself
SETTINGS = (
    *("config_overrides", "tokenizer_kind", "vocab_size", "generator_size", "held_out", "max_length", "blocks"),
    *("mask_ratio", "tokens_per_batch", "gradient_accumulation_steps", "learning_rate", "lr_scheduler_type"),
    *("warmup_steps", "optim", "adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "max_grad_norm"),
    *("max_steps", "num_train_epochs", "max_minutes", "average_checkpoints", "bf16", "fp16", "seed"),
)
ARGUMENT_CLASSES: Any = (LanguageModelArguments, TextArguments, Seq2SeqTrainingArguments)
DEFAULTS = SCRIPT_DEFAULTS | {"predict_with_generate": False, "do_eval": True, "eval_strategy": "steps"}


def parse_language_arguments(
    argv: Sequence[str] | None = None,
) -> tuple[LanguageModelArguments, TextArguments, Seq2SeqTrainingArguments]:
    """Read and check the arguments of a training run.

    Args:
        argv: The command line without the program's name; None takes the process's.

    Returns:
        The model's, the data's and the Trainer's arguments.

    Raises:
        ValueError: If an argument is impossible, or in conflict with another.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = HfArgumentParser(ARGUMENT_CLASSES, allow_abbrev=False)
    parser.set_defaults(**DEFAULTS)
    asked = parser.parse_known_args(words)[0]  # parsed twice: the recipe decides the defaults of the rest
    recipe = language_recipe(asked.objective, asked.recipe)
    derived: dict[str, Any] = {"eval_strategy": "steps" if asked.do_train and asked.do_eval else "no"}
    parser.set_defaults(**(DEFAULTS | derived | hardware_defaults() | recipe.arguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    if asked.output_dir is None:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    _check(model_args, data_args, training_args)
    training_args.predict_with_generate = False
    return model_args, data_args, training_args


def _check(
    model_args: LanguageModelArguments, data_args: TextArguments, training_args: Seq2SeqTrainingArguments
) -> None:
    sources = {name: getattr(data_args, name) for name in ("train_file", "dataset_name", "phrasebook")}
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise ValueError(f"give one of {', '.join(sources)}; got {', '.join(given) or 'none'}")
    for name in ("train_file", "validation_file"):
        path = getattr(data_args, name)
        if path is not None and not Path(path).is_file():
            raise ValueError(f"{name}: there is no file {path}")
    if data_args.phrasebook and data_args.phrasebook not in PHRASEBOOK_LANGUAGES:
        raise ValueError(f"phrasebook={data_args.phrasebook!r} must be one of {', '.join(PHRASEBOOK_LANGUAGES)}")
    least = {"max_length": 4, "tokens_per_batch": 1, "average_checkpoints": 1, "pseudo_samples": 0, "vocab_size": 1}
    for name, smallest in (least | {"max_train_samples": 1, "max_eval_samples": 1}).items():
        value = getattr(data_args, name, getattr(model_args, name, None))
        if value is not None and value < smallest:
            raise ValueError(f"{name} must be {smallest} or more, got {value}")
    if data_args.max_minutes is not None and not data_args.max_minutes > 0:
        raise ValueError(f"max_minutes must be more than 0, got {data_args.max_minutes}")
    if not 0 < data_args.mask_ratio <= 1:
        raise ValueError(f"mask_ratio must be more than 0 and at most 1, got {data_args.mask_ratio}")
    parse_overrides(model_args.config_overrides)
    if model_args.model_name_or_path and (model_args.tokenizer_name or model_args.config_overrides):
        raise ValueError(
            "model_name_or_path brings its config and tokenizer: leave out config_overrides, tokenizer_name"
        )
    if not training_args.do_train and not model_args.model_name_or_path:
        raise ValueError("do_train=False needs model_name_or_path: the model to evaluate")
    count = data_args.average_checkpoints
    kept = 0 if training_args.save_strategy == "no" else training_args.save_total_limit
    if count > 1 and (training_args.load_best_model_at_end or (kept is not None and kept < count)):
        raise ValueError(
            f"average_checkpoints={count} needs as many checkpoints (save_total_limit), without load_best_model_at_end"
        )


def write_language_record(
    folder: Path,
    model_args: LanguageModelArguments,
    data_args: TextArguments,
    training_args: TrainingArguments,
) -> None:
    """Write ``run.json``: what was learned from which text, and how; no path.

    Args:
        folder: The output folder of the run.
        model_args: The model's arguments.
        data_args: The data's arguments.
        training_args: The Trainer's arguments.
    """
    values = vars(training_args) | vars(data_args) | vars(model_args)
    further = bool(model_args.model_name_or_path)
    unused = {
        "generator_size": model_args.objective != "electra" or further,
        "mask_ratio": model_args.objective == "clm",
        "held_out": bool(data_args.phrasebook or data_args.validation_file),
        "vocab_size": further or bool(model_args.tokenizer_name),
        "tokenizer_kind": further or bool(model_args.tokenizer_name),
        "max_steps": training_args.max_steps <= 0,
        "num_train_epochs": training_args.max_steps > 0,
    }
    record = {
        "objective": model_args.objective,
        "recipe": model_args.recipe,
        "phrasebook": data_args.phrasebook,
        "dataset_name": data_args.dataset_name,
        "trained_further": further,
        "base_model": hub_id(model_args.model_name_or_path),
    }
    settings = {name: getattr(values[name], "value", values[name]) for name in SETTINGS if not unused.get(name)}
    write_run(folder, record, settings)
