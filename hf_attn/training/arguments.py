"""The arguments of ``scripts/train_translation.py``: read from the command line or a YAML file, and checked.

They carry the names of transformers' ``run_translation.py``, and a few of our own. What counts, strongest first: the
command line, the YAML or JSON file, the recipe, the default.
"""

import copy
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import yaml
from transformers import (
    GenerationConfig,
    HfArgumentParser,
    PreTrainedConfig,
    Seq2SeqTrainingArguments,
    TrainingArguments,
)

from ..data.phrasebook import PAIRS
from .checkpoints import checkpoint_folders, find_defect, last_complete_checkpoint
from .recipes import RECIPES, get_recipe, training_defaults


@dataclass
class ModelArguments:
    """Which model is trained: a recipe, a config, or a saved model that is trained further."""

    recipe: str = field(
        default="transformer-small", metadata={"help": f"Model and training settings: {', '.join(RECIPES)}."}
    )
    config_overrides: str | None = field(
        default=None,
        metadata={"help": "Config fields that replace the recipe's, such as hidden_size=128,rnn_type=lstm."},
    )
    config_name: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a config to use instead of the recipe's."}
    )
    model_name_or_path: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a model to train further instead of a new one."}
    )
    attn_implementation: str | None = field(
        default=None,
        metadata={"help": "Kernel of the attention, such as eager, which is faster than sdpa on CPU for short texts."},
    )
    tokenizer_name: str | None = field(
        default=None,
        metadata={"help": "Folder or Hub id of a tokenizer to use instead of one trained on the training set."},
    )
    tokenizer_kind: Literal["bpe", "word"] = field(
        default="bpe", metadata={"help": "Tokenizer to train: byte-pair encoding, or whole words."}
    )
    vocab_size: int = field(
        default=6000, metadata={"help": "Size of the vocabulary to learn: joint, or each of two separate ones."}
    )
    separate_vocabularies: bool = field(
        default=False, metadata={"help": "Learn a source and a target vocabulary instead of a joint one."}
    )
    cache_dir: str | None = field(default=None, metadata={"help": "Folder for files fetched from the Hub."})
    model_revision: str = field(default="main", metadata={"help": "Branch, tag or commit on the Hub."})
    token: str | None = field(default=None, metadata={"help": "Access token for private models on the Hub."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )


@dataclass
class DataTrainingArguments:
    """What the model is trained on, how much of it, and in which batches."""

    source_lang: str = field(default="", metadata={"help": "Language code of the source, such as en."})
    target_lang: str = field(default="", metadata={"help": "Language code of the target, such as ko."})
    train_file: str | None = field(
        default=None, metadata={"help": 'Pairs: .tsv, or JSON lines {"translation": {"en": ..., "fr": ...}}.'}
    )
    validation_file: str | None = field(default=None, metadata={"help": "Pairs to measure progress on."})
    test_file: str | None = field(default=None, metadata={"help": "Pairs to measure the finished model on."})
    dataset_name: str | None = field(
        default=None, metadata={"help": "Folder or Hub id of a data set with train, validation and test splits."}
    )
    phrasebook: str | None = field(
        default=None, metadata={"help": "Train on the embedded phrasebook instead: en-it, en-fr or en-ko."}
    )
    preprocessing_num_workers: int | None = field(
        default=None, metadata={"help": "Processes that tokenize; none besides this one if not given."}
    )
    max_source_length: int = field(
        default=128, metadata={"help": "Longer sources are cut to this many tokens, </s> included."}
    )
    max_target_length: int = field(
        default=128, metadata={"help": "Longer targets are cut to this many tokens, </s> included."}
    )
    val_max_target_length: int | None = field(
        default=None, metadata={"help": "Most tokens to generate in evaluation; max_target_length if not given."}
    )
    max_train_samples: int | None = field(default=None, metadata={"help": "Use the first so many training pairs."})
    max_eval_samples: int | None = field(
        default=500, metadata={"help": "Evaluate on the first so many validation sources; 0 takes all."}
    )
    max_predict_samples: int | None = field(default=None, metadata={"help": "Test on the first so many test sources."})
    num_beams: int = field(
        default=1, metadata={"help": "Beams of the final evaluation and the test; in training it is greedy."}
    )
    tokens_per_batch: int = field(
        default=1536,
        metadata={"help": "Padded tokens of a training batch: sentences times the longest source or target."},
    )
    max_minutes: float | None = field(
        default=None, metadata={"help": "Stop training, evaluate and save after this many minutes of this run."}
    )
    early_stopping_patience: int | None = field(
        default=None, metadata={"help": "Stop after this many evaluations without a better metric_for_best_model."}
    )
    alignment_supervision: Literal["links", "ibm1"] | None = field(
        default=None,
        metadata={
            "help": "Teach an attention head to align words: by the phrasebook's links, or by those that IBM Model 1 "
            "finds in the training pairs. Config fields alignment_layer, alignment_heads and alignment_method name it."
        },
    )
    alignment_weight: float = field(
        default=0.05, metadata={"help": "Weight of the alignment loss, with alignment_supervision."}
    )
    reinforcement: Literal["gleu"] | None = field(
        default=None,
        metadata={
            "help": "Reward what a trained model (model_name_or_path) samples by its sentence GLEU, beside the "
            "likelihood of the references: GNMT's second phase. It wants a small constant learning rate, such as 1e-4."
        },
    )
    reinforcement_samples: int = field(
        default=15, metadata={"help": "Translations to sample of each training source, with reinforcement."}
    )
    reinforcement_temperature: float = field(
        default=1.0,
        metadata={
            "help": "Divides the logits before translations are sampled; below 1 they vary less and learn faster."
        },
    )
    likelihood_weight: float = field(
        default=0.017, metadata={"help": "Weight of the likelihood beside the reward, with reinforcement."}
    )
    average_checkpoints: int = field(
        default=1, metadata={"help": "Finish with the mean of the weights of this many last checkpoints."}
    )


ARGUMENT_CLASSES: Any = (ModelArguments, DataTrainingArguments, Seq2SeqTrainingArguments)
Arguments = tuple[ModelArguments, DataTrainingArguments, Seq2SeqTrainingArguments]

# Where transformers' own defaults do not suit translation.
SCRIPT_DEFAULTS: dict[str, Any] = {
    "do_train": True,
    "predict_with_generate": True,
    "per_device_eval_batch_size": 64,
    "logging_steps": 50,
    "eval_steps": 500,
    "save_steps": 500,
    "save_total_limit": 5,
}


def parse_arguments(argv: Sequence[str] | None = None) -> Arguments:
    """Read and check the arguments of a training run.

    Args:
        argv: The command line without the program's name; None takes the process's. Its first word may be a
            ``.yaml``, ``.yml`` or ``.json`` file of argument names and values; the words after it override the file.

    Returns:
        The model's, the data's and the Trainer's arguments.

    Raises:
        ValueError: If an argument is unknown, impossible, or in conflict with another.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = HfArgumentParser(ARGUMENT_CLASSES, allow_abbrev=False)
    from_file = _read_file(words.pop(0)) if words and words[0].endswith((".yaml", ".yml", ".json")) else {}
    known = {item.name for cls in ARGUMENT_CLASSES for item in fields(cls)}
    unknown = sorted(set(from_file) - known)
    if unknown:
        raise ValueError(f"the argument file has unknown names: {', '.join(unknown)}")
    # Parsed twice: the recipe and the data that are asked for decide the defaults of the rest.
    parser.set_defaults(**(SCRIPT_DEFAULTS | from_file))
    asked = parser.parse_known_args(words)[0]
    derived: dict[str, Any] = {"do_predict": bool(asked.test_file or asked.phrasebook)}
    if asked.validation_file or asked.phrasebook or asked.dataset_name:
        derived |= {"do_eval": True, "eval_strategy": "steps" if asked.do_train else "no"}
    if asked.max_minutes is not None:
        derived["num_train_epochs"] = 1000.0  # the time ends the training, not the epochs
    if asked.early_stopping_patience is not None:
        derived["load_best_model_at_end"] = True
    if asked.load_best_model_at_end or asked.early_stopping_patience is not None:
        derived["metric_for_best_model"] = "bleu" if asked.predict_with_generate else "loss"
    parser.set_defaults(**(SCRIPT_DEFAULTS | derived | training_defaults(asked.recipe) | from_file))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    check_arguments(model_args, data_args, training_args, output_dir_given=asked.output_dir is not None)
    if training_args.generation_max_length is None:  # transformers counts the start token
        training_args.generation_max_length = (data_args.val_max_target_length or data_args.max_target_length) + 1
    if data_args.phrasebook and not data_args.source_lang and not data_args.target_lang:
        data_args.source_lang, _, data_args.target_lang = data_args.phrasebook.partition("-")
    # Without generation only the loss is measured: gathering all logits would fill the memory.
    training_args.prediction_loss_only = not training_args.predict_with_generate
    return model_args, data_args, training_args


def _read_file(path: str) -> dict[str, Any]:
    """Read argument names and values from a YAML or JSON file."""
    if not Path(path).is_file():
        raise ValueError(f"there is no argument file {path}")
    text = Path(path).read_text(encoding="utf-8")
    values = json.loads(text) if path.endswith(".json") else yaml.safe_load(text)
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold argument names with values, got {type(values).__name__}")
    # As text, like on the command line, so that argparse converts and checks them (YAML reads 1e-3 as text anyway).
    return {name: str(value) if isinstance(value, bool | int | float) else value for name, value in values.items()}


def check_arguments(
    model_args: ModelArguments,
    data_args: DataTrainingArguments,
    training_args: Seq2SeqTrainingArguments,
    output_dir_given: bool = True,
) -> None:
    """Refuse what cannot work, before anything is loaded or trained.

    Args:
        model_args: The model's arguments.
        data_args: The data's arguments.
        training_args: The Trainer's arguments.
        output_dir_given: False if ``output_dir`` is only transformers' default.

    Raises:
        ValueError: With the argument, its value and what is allowed.
    """
    if not output_dir_given:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    _check_numbers(model_args, data_args, training_args)
    _check_data(data_args, training_args)
    _check_model(model_args)
    if data_args.reinforcement and training_args.do_train and not model_args.model_name_or_path:
        raise ValueError(
            f"reinforcement={data_args.reinforcement!r} needs model_name_or_path: a trained model, since one that "
            "knows nothing samples nothing worth a reward"
        )
    if not training_args.do_train and not model_args.model_name_or_path:
        raise ValueError("do_train=False needs model_name_or_path: the model to evaluate or translate with")
    _check_end_of_training(data_args, training_args)


def _check_numbers(
    model_args: ModelArguments, data_args: DataTrainingArguments, training_args: Seq2SeqTrainingArguments
) -> None:
    at_least_one = {
        "vocab_size": model_args.vocab_size,
        "preprocessing_num_workers": data_args.preprocessing_num_workers,
        "val_max_target_length": data_args.val_max_target_length,
        "max_train_samples": data_args.max_train_samples,
        "max_predict_samples": data_args.max_predict_samples,
        "num_beams": data_args.num_beams,
        "tokens_per_batch": data_args.tokens_per_batch,
        "early_stopping_patience": data_args.early_stopping_patience,
        "average_checkpoints": data_args.average_checkpoints,
        "generation_num_beams": training_args.generation_num_beams,
        "generation_max_length": training_args.generation_max_length,
    }
    for name, value in at_least_one.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    for name in ("max_source_length", "max_target_length"):
        if getattr(data_args, name) < 2:
            raise ValueError(f"{name} must be 2 (a token and </s>) or more, got {getattr(data_args, name)}")
    if not data_args.alignment_weight > 0:
        raise ValueError(f"alignment_weight must be more than 0, got {data_args.alignment_weight}")
    if data_args.reinforcement_samples < 2:  # each is compared with the mean
        raise ValueError(f"reinforcement_samples must be 2 or more, got {data_args.reinforcement_samples}")
    if not 0 < data_args.reinforcement_temperature < math.inf:
        raise ValueError(
            f"reinforcement_temperature must be more than 0 and finite, got {data_args.reinforcement_temperature}"
        )
    if not data_args.likelihood_weight >= 0:
        raise ValueError(f"likelihood_weight must be 0 or more, got {data_args.likelihood_weight}")
    if data_args.max_minutes is not None and not data_args.max_minutes > 0:
        raise ValueError(f"max_minutes must be more than 0, got {data_args.max_minutes}")
    if data_args.max_eval_samples is not None and data_args.max_eval_samples < 0:
        raise ValueError(f"max_eval_samples must be 0 (all) or more, got {data_args.max_eval_samples}")


def _check_data(data_args: DataTrainingArguments, training_args: Seq2SeqTrainingArguments) -> None:
    files = {name: getattr(data_args, name) for name in ("train_file", "validation_file", "test_file")}
    for name, path in files.items():
        if path is not None and not Path(path).is_file():
            raise ValueError(f"{name}: there is no file {path}")
    wholes = {"dataset_name": data_args.dataset_name, "phrasebook": data_args.phrasebook}
    given = [name for name, value in (wholes | files).items() if value]
    if len([name for name in given if name in wholes]) > 1 or (set(given) & set(wholes) and set(given) & set(files)):
        raise ValueError(f"{', '.join(given)} exclude each other: give files, or a dataset_name, or a phrasebook")
    if not given:
        raise ValueError("no data: give train_file (and validation_file, test_file), dataset_name or phrasebook")
    if data_args.alignment_supervision == "links" and not data_args.phrasebook:
        raise ValueError("alignment_supervision='links' needs gold links, which the phrasebook alone has; use 'ibm1'")
    if data_args.alignment_supervision and data_args.reinforcement:
        raise ValueError(
            f"alignment_supervision={data_args.alignment_supervision!r} and reinforcement={data_args.reinforcement!r} "
            "exclude each other"
        )
    if data_args.phrasebook and data_args.phrasebook not in PAIRS:
        raise ValueError(f"phrasebook={data_args.phrasebook!r} must be one of {', '.join(PAIRS)}")
    wanted = {"train": training_args.do_train, "validation": training_args.do_eval, "test": training_args.do_predict}
    if not set(given) & set(wholes):
        for part, wish in wanted.items():
            if wish and not files[f"{part}_file"]:
                raise ValueError(f"{part}_file is missing, and do_{part}, evaluation or prediction asks for it")
    if not any(wanted.values()):
        raise ValueError("nothing to do: do_train, do_eval and do_predict are all false")
    source, target = data_args.source_lang, data_args.target_lang
    if not data_args.phrasebook and (not source or not target or source == target):
        raise ValueError(f"source_lang and target_lang must be two language codes, got {source!r} and {target!r}")


def _check_model(model_args: ModelArguments) -> None:
    get_recipe(model_args.recipe)
    parse_overrides(model_args.config_overrides)
    if model_args.model_name_or_path and (model_args.config_name or model_args.config_overrides):
        raise ValueError(
            f"model_name_or_path={model_args.model_name_or_path!r} brings its own config: leave out config_name and "
            "config_overrides"
        )
    if model_args.config_name and model_args.config_overrides:
        raise ValueError(f"config_overrides={model_args.config_overrides!r} changes a recipe: leave out config_name")
    if model_args.separate_vocabularies and (model_args.tokenizer_name or model_args.model_name_or_path):
        raise ValueError("separate_vocabularies learns two tokenizers: leave out tokenizer_name and model_name_or_path")


def _check_end_of_training(data_args: DataTrainingArguments, training_args: Seq2SeqTrainingArguments) -> None:
    metric = training_args.metric_for_best_model
    if metric is not None and not training_args.predict_with_generate and metric.removeprefix("eval_") != "loss":
        raise ValueError(f"metric_for_best_model={metric!r} needs predict_with_generate; without it use 'loss'")
    if training_args.do_predict and not training_args.predict_with_generate:
        raise ValueError("predict_with_generate=False cannot go with do_predict, which translates the test set")
    if data_args.early_stopping_patience is not None and training_args.eval_strategy == "no":
        raise ValueError(
            f"early_stopping_patience={data_args.early_stopping_patience} needs evaluation during training: "
            "give validation data and eval_strategy steps or epoch"
        )
    count = data_args.average_checkpoints
    if count > 1 and training_args.load_best_model_at_end:
        raise ValueError(
            f"average_checkpoints={count} and load_best_model_at_end both choose the final weights: give only one"
        )
    kept = 0 if training_args.save_strategy == "no" else training_args.save_total_limit
    if count > 1 and kept is not None and kept < count:
        raise ValueError(
            f"average_checkpoints={count} needs as many checkpoints, but save_strategy and save_total_limit keep {kept}"
        )


def parse_overrides(text: str | None) -> dict[str, Any]:
    """Read config fields from text such as ``"hidden_size=128,norm_first=true"``.

    Raises:
        ValueError: If a part is not a name, an equals sign and a value.
    """
    overrides = {}
    for part in (text or "").split(","):
        name, equals, value = part.partition("=")
        if part.strip() and not (equals and name.strip().isidentifier() and value.strip()):
            raise ValueError(f"config_overrides must be name=value,name=value,..., got {part!r} in {text!r}")
        if part.strip():
            overrides[name.strip()] = yaml.safe_load(value)
    return overrides


def check_lengths(config: PreTrainedConfig, data_args: DataTrainingArguments) -> None:
    """Refuse sequences longer than the table of positions of a model that has one.

    Raises:
        ValueError: If ``max_source_length``, ``max_target_length`` or ``val_max_target_length`` is too large.
    """
    if getattr(config, "position_type", "learned") != "learned":  # computed positions have no end
        return
    limit = getattr(config, "max_position_embeddings", None)
    for name in ("max_source_length", "max_target_length", "val_max_target_length"):
        value = getattr(data_args, name)
        if limit is not None and value is not None and value > limit:
            raise ValueError(f"{name}={value} is more than the model's max_position_embeddings={limit}")


def check_generation(
    generation_config: GenerationConfig, data_args: DataTrainingArguments, training_args: Seq2SeqTrainingArguments
) -> None:
    """Refuse what ``generate()`` would, or what cannot be saved, before training and not at the first evaluation.

    Args:
        generation_config: The model's, to which evaluation and test add length and beams.
        data_args: The data's arguments.
        training_args: The Trainer's arguments.

    Raises:
        ValueError: If one of these settings is invalid, or asks for more tokens than it allows.
    """
    try:
        generation_config.validate(strict=True)
        for beams in {training_args.generation_num_beams or generation_config.num_beams or 1, data_args.num_beams}:
            config = copy.deepcopy(generation_config)
            config.update(num_beams=beams, max_length=training_args.generation_max_length)
            config.validate(user_set_attributes={"num_beams", "max_length"})
    except ValueError as error:
        raise ValueError(f"the generation config cannot be used: {error}") from error
    if (generation_config.num_return_sequences or 1) > 1 or generation_config.return_dict_in_generate:
        raise ValueError(
            "the generation config must give one translation a sentence, as ids alone: leave out "
            "num_return_sequences and return_dict_in_generate"
        )
    if generation_config.max_new_tokens is None:  # lengths count the start token
        most = training_args.generation_max_length or generation_config.max_length
    else:
        most = generation_config.max_new_tokens + 1
    fresh = generation_config.min_new_tokens
    least = (generation_config.min_length or 0) if fresh is None else fresh + 1
    if most is not None and least > most:
        raise ValueError(f"the generation config asks for {least} tokens or more, but at most {most} are allowed")


def find_checkpoint(training_args: TrainingArguments) -> str | None:
    """Choose the checkpoint to resume from: a complete one, since a killed run may leave others.

    ``resume_from_checkpoint`` may be a folder; ``true``: the last complete checkpoint in ``output_dir``, which must
    exist; ``false``: none; not given: the last complete checkpoint if there is one.

    Returns:
        A checkpoint folder, or None to start anew.

    Raises:
        ValueError: If the checkpoint does not exist or is incomplete, or a run is to start anew over the checkpoints of
            another that could be resumed, or that were saved without what resuming needs.
    """
    asked, output_dir = training_args.resume_from_checkpoint, str(training_args.output_dir)
    word = str(asked).lower()
    if asked is not None and word not in ("true", "false"):
        if not os.path.isdir(asked):
            raise ValueError(f"resume_from_checkpoint: there is no folder {asked}")
        defect = find_defect(asked)
        if defect is not None:
            raise ValueError(f"resume_from_checkpoint: {asked} is not a complete checkpoint: {defect}")
        return asked
    last = last_complete_checkpoint(output_dir)
    if word == "false" and last is not None:
        raise ValueError(f"resume_from_checkpoint=false, but output_dir={output_dir} holds checkpoints: empty it first")
    if word == "true" and last is None:
        raise ValueError(f"resume_from_checkpoint=true, but output_dir={output_dir} holds no complete checkpoint")
    if last is None and training_args.save_only_model and checkpoint_folders(output_dir):
        raise ValueError(f"save_only_model leaves nothing to resume from: empty output_dir={output_dir} first")
    return None if last is None else str(last)
