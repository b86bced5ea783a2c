"""What a training run says about itself in its folder: recipe, languages, settings and versions, and no path.

`hub/publish.py` makes a model card of it.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from transformers import TrainingArguments

from .arguments import DataTrainingArguments, ModelArguments

RECORD = "run.json"
SETTINGS = (
    *("config_overrides", "attn_implementation", "tokenizer_kind", "vocab_size", "separate_vocabularies"),
    *("learning_rate", "lr_scheduler_type", "warmup_steps", "optim", "adam_beta1", "adam_beta2", "adam_epsilon"),
    *("weight_decay", "max_grad_norm", "label_smoothing_factor", "tokens_per_batch", "gradient_accumulation_steps"),
    *("max_steps", "num_train_epochs", "max_minutes", "early_stopping_patience", "average_checkpoints"),
    *("alignment_supervision", "alignment_weight", "reinforcement", "reinforcement_samples"),
    *("reinforcement_temperature", "likelihood_weight"),
    *("max_source_length", "max_target_length", "num_beams"),
    *("bf16", "fp16", "seed"),
)


def write_record(
    folder: Path,
    model_args: ModelArguments,
    data_args: DataTrainingArguments,
    training_args: TrainingArguments,
) -> None:
    """Write ``run.json``.

    Args:
        folder: The output folder of the run.
        model_args: The model's arguments.
        data_args: The data's arguments.
        training_args: The Trainer's arguments.
    """
    values = vars(training_args) | vars(data_args) | vars(model_args)
    settings = {name: getattr(values[name], "value", values[name]) for name in SETTINGS}  # an enum's value
    unused = {
        "alignment_weight": not data_args.alignment_supervision,
        "reinforcement_samples": not data_args.reinforcement,
        "reinforcement_temperature": not data_args.reinforcement,
        "likelihood_weight": not data_args.reinforcement,
        "max_steps": training_args.max_steps <= 0,
        "num_train_epochs": training_args.max_steps > 0,
        "tokenizer_kind": bool(model_args.tokenizer_name or model_args.model_name_or_path),
    }
    record: dict[str, Any] = {
        "recipe": model_args.recipe,
        "source_lang": data_args.source_lang,
        "target_lang": data_args.target_lang,
        "phrasebook": data_args.phrasebook,
        "dataset_name": hub_id(data_args.dataset_name),
        "trained_further": bool(model_args.model_name_or_path),
        "base_model": hub_id(model_args.model_name_or_path),
    }
    write_run(folder, record, {name: value for name, value in settings.items() if not unused.get(name)})


def write_run(folder: Path, record: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write ``run.json`` of any kind of run.

    Args:
        folder: The output folder of the run.
        record: What was trained on what.
        settings: How; those that are None, False or empty are left out.
    """
    record["settings"] = {name: value for name, value in settings.items() if value not in (None, False, "")}
    record["versions"] = {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    (folder / RECORD).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def hub_id(name: str | None) -> str | None:
    """Give the name if it is one of the Hub's, and not a path of this machine."""
    return name if name and not Path(name).expanduser().exists() else None
