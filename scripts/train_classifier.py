"""Train a classifier of texts, of words or of images: a pre-trained model with a new head, or a new model.

    python scripts/train_classifier.py --task text --output_dir out/questions

tells questions from statements without their marks, on sentences of the embedded phrasebook. It takes some 20 seconds
of one core, and is right for all of 256 test sentences. ``--task tokens`` puts commas, periods, question marks and
capitals back (as long; 89% of the words); ``--task images`` reads handwritten digits (scikit-learn's).

    python scripts/train_classifier.py --task tokens --model_name_or_path out/bert --train_file train.jsonl \
        --validation_file dev.jsonl --test_file test.jsonl --output_dir out/tagger

fine-tunes a model on examples of your own; with ``--from_scratch`` it takes from that folder the architecture and the
tokenizer alone, for comparison. ``--text_file`` makes labelled examples of a plain text. The output folder then holds
the model (open it with transformers' ``pipeline``), ``all_results.json`` with accuracy, F1, their 95% intervals and the
confusion matrix of the test set, and ``predictions.txt``. Run the same command again to resume.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from datasets import Dataset
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    EvalPrediction,
    HfArgumentParser,
    TrainingArguments,
    ViTImageProcessorPil,
    set_seed,
)

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data.images import digits
from hf_attn.data.labelled import label_names, load_labelled, name_labels
from hf_attn.data.labels import part_labels, punctuation_examples, question_examples
from hf_attn.data.text import hold_out, load_texts, phrasebook_texts, train_text_tokenizer
from hf_attn.evaluation.classification import IGNORED, evaluate_classes
from hf_attn.training import ClockCallback, ResumableTrainer, find_checkpoint
from hf_attn.training.arguments import parse_overrides
from hf_attn.training.classification import (
    best_classes,
    encode_texts,
    encode_tokens,
    image_transform,
    make_classifier,
    new_config,
    stack_images,
)
from hf_attn.training.recipes import hardware_defaults
from hf_attn.training.record import hub_id, write_run


@dataclass
class ClassifierArguments:
    """What is classified, by which model, and how it learned to."""

    task: Literal["text", "tokens", "images"] = field(metadata={"help": "What gets a label."})
    model_name_or_path: str = field(
        default="", metadata={"help": "Folder or Hub id of a model to fine-tune, with its tokenizer; else a new one."}
    )
    from_scratch: bool = field(
        default=False, metadata={"help": "Take no weights from model_name_or_path, only architecture and tokenizer."}
    )
    model_type: str = field(
        default="", metadata={"help": "Type of a new model: attn-bert by default, for images attn-vit."}
    )
    config_overrides: str = field(
        default="", metadata={"help": "Config fields to replace, such as hidden_size=128,dropout=0.2."}
    )
    vocab_size: int = field(default=2000, metadata={"help": "Size of the vocabulary to learn for a new model."})
    train_file: str = field(
        default="",
        metadata={"help": "Texts: .tsv (text, perhaps a second one, label) or JSON lines; tokens: JSON lines with "
                  "tokens and tags; images: a folder with a folder of images for each class."},
    )  # fmt: skip
    validation_file: str = field(default="", metadata={"help": "Examples to measure progress on."})
    test_file: str = field(default="", metadata={"help": "Examples to measure the finished model on."})
    dataset_name: str = field(default="", metadata={"help": "Name of a dataset with train, validation, test splits."})
    text_file: str = field(default="", metadata={"help": "A plain text, one sentence a line, to make examples of."})
    labels: Literal["questions", "parts", "punctuation"] | None = field(
        default=None,
        metadata={"help": "What to make of a plain text: questions or parts of it (text), punctuation (tokens)."},
    )
    boundaries_file: str = field(
        default="", metadata={"help": "For parts: lines of how a part of text_file begins, a tab, and its label."}
    )
    held_out: float = field(default=0.03, metadata={"help": "Share of the lines of text_file to test on."})
    held_out_seed: int = field(
        default=42, metadata={"help": "Seed of their choice; that of train_language_model.py holds out the same lines."}
    )
    words_per_example: int = field(default=40, metadata={"help": "Words of an example, with punctuation."})
    max_length: int = field(default=128, metadata={"help": "Longer texts are cut to so many tokens."})
    max_train_samples: int | None = field(
        default=None, metadata={"help": "Train on so many examples, drawn by chance, the same for every seed."}
    )
    max_shift: int = field(default=0, metadata={"help": "Pixels by which training images are moved by chance."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )

    def __post_init__(self):
        files, kinds = ("train_file", "dataset_name", "text_file"), {"text": "questions", "tokens": "punctuation"}
        if sum(bool(getattr(self, name)) for name in files) > 1:
            raise ValueError(f"give one of {', '.join(files)}, or none for what comes with the package")
        if self.from_scratch and not self.model_name_or_path:
            raise ValueError("from_scratch needs model_name_or_path: where the architecture comes from")
        if self.model_type and self.model_name_or_path:
            raise ValueError("model_type is for a new model: leave out model_name_or_path")
        self.model_type = self.model_type or ("attn-vit" if self.task == "images" else "attn-bert")
        self.labels = self.labels or kinds.get(self.task)  # type: ignore[assignment]
        if self.task == "images" and self.text_file or (self.labels == "punctuation") != (self.task == "tokens"):
            raise ValueError(f"labels={self.labels} of a text do not go with task={self.task}")
        if (self.labels == "parts") != bool(self.boundaries_file) or self.boundaries_file and not self.text_file:
            raise ValueError("labels=parts, boundaries_file and text_file go together")


DEFAULTS: dict[str, Any] = {
    "do_train": True,
    "learning_rate": 5e-4,
    "warmup_steps": 0.1,
    "weight_decay": 0.01,
    "num_train_epochs": 10.0,
    "per_device_train_batch_size": 32,
    "per_device_eval_batch_size": 64,
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "save_total_limit": 2,
    "load_best_model_at_end": True,
    "metric_for_best_model": "macro_f1",
    "logging_steps": 20,
}


def load_splits(args: ClassifierArguments) -> dict[str, Dataset]:
    """Load labelled examples for training, validation and test."""
    files = {"train": args.train_file, "validation": args.validation_file, "test": args.test_file}
    if args.dataset_name:
        return {split: load_labelled(args.dataset_name, args.task, split=split) for split in files}
    if any(files.values()):
        return {split: load_labelled(file, args.task) for split, file in files.items() if file}
    if args.task == "images":
        return {split: name_labels(digits(split), "images") for split in ("train", "validation", "test")}
    if not args.text_file:
        sizes = {"train": 4000, "validation": 1000, "test": 1000}
        return {split: label_lines(args, phrasebook_texts("en", split, size)) for split, size in sizes.items()}
    lines = load_texts(args.text_file)
    parts: dict[str, str] = {}
    if args.labels == "parts":
        rows = [line.split("\t") for line in load_texts(args.boundaries_file)]
        if any(len(row) != 2 for row in rows):
            raise ValueError(f"boundaries_file={args.boundaries_file}: each line must be an opening, a tab, a label")
        labels = part_labels(lines, [(opening, label) for opening, label in rows])
        parts = dict(zip(lines, labels))
        ambiguous = {line for line, label in zip(lines, labels) if parts[line] != label}
        lines = [line for line in lines if line not in ambiguous]
    rest, test = hold_out(lines, args.held_out, args.held_out_seed)
    train, validation = hold_out(rest, args.held_out, args.held_out_seed + 1)
    splits = {"train": train, "validation": validation, "test": test}
    return {split: label_lines(args, some, parts) for split, some in splits.items()}


def label_lines(args: ClassifierArguments, lines: list[str], parts: dict[str, str] | None = None) -> Dataset:
    """Make labelled examples of plain text."""
    if parts:
        lines = list(dict.fromkeys(lines))
        return Dataset.from_dict({"text": lines, "label": [parts[line] for line in lines]})
    return question_examples(lines) if args.task == "text" else punctuation_examples(lines, args.words_per_example)


def make_reader(args: ClassifierArguments, train: Dataset | None, folder: str) -> Any:
    """Load what turns examples into numbers, a tokenizer or an image processor, or make one for a new model."""
    if args.task == "images":
        if folder:
            return AutoImageProcessor.from_pretrained(folder, trust_remote_code=args.trust_remote_code)
        config = new_config("images", args.model_type, None, **parse_overrides(args.config_overrides))
        half = [0.5] * config.num_channels
        return ViTImageProcessorPil(
            size={"height": config.image_size, "width": config.image_size}, image_mean=half, image_std=half
        )
    if folder:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=args.trust_remote_code)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
    columns = {"text", "text_pair", "tokens"} & set(train.column_names)  # type: ignore[union-attr]
    texts = [" ".join(row) if args.task == "tokens" else row for name in sorted(columns) for row in train[name]]  # type: ignore[index]
    return train_text_tokenizer(texts, args.vocab_size, masked=True)


def make_config(args: ClassifierArguments, reader: Any, folder: str) -> Any:
    """Load the config of a model, or write that of a new one."""
    overrides = parse_overrides(args.config_overrides)
    if not folder:
        return new_config(args.task, args.model_type, None if args.task == "images" else reader, **overrides)
    config = AutoConfig.from_pretrained(folder, trust_remote_code=args.trust_remote_code, **overrides)
    if args.task != "images" and getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = reader.pad_token_id
    return config


def metrics_function(names: list[str], samples: int = 0) -> Any:
    """Make the function by which the Trainer measures predictions; without resamples it gives numbers alone."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, Any]:
        results = evaluate_classes(prediction.label_ids, prediction.predictions, names, samples=samples)  # type: ignore[arg-type]
        return results if samples else {name: value for name, value in results.items() if isinstance(value, float)}

    return compute_metrics


def prepare(args: ClassifierArguments, training_args: TrainingArguments) -> tuple[ResumableTrainer, dict, list[str]]:
    """Make data, model and Trainer, and name the labels: whatever a user may get wrong shows here."""
    set_seed(training_args.seed)
    splits = load_splits(args)
    if training_args.do_train and "train" not in splits:
        raise ValueError("train_file is missing: the examples to train on")
    if training_args.do_train and args.max_train_samples:
        shuffled = splits["train"].shuffle(seed=0)
        splits["train"] = shuffled.select(range(min(args.max_train_samples, len(shuffled))))
    checkpoint = find_checkpoint(training_args) if training_args.do_train else None
    folder = checkpoint or args.model_name_or_path
    reader = make_reader(args, splits.get("train"), folder)
    config = make_config(args, reader, folder)
    names = label_names(splits["train"], args.task) if training_args.do_train else list(config.id2label.values())
    if training_args.do_train and len(names) < 2:
        raise ValueError(f"the training set must have two labels at least, got {', '.join(names)} alone")
    weights = None if args.from_scratch or checkpoint or not folder else folder
    trust = {"trust_remote_code": args.trust_remote_code}
    model = make_classifier(args.task, names, config, weights, **trust)
    print(f"{config.model_type}: {model.num_parameters():,} parameters; {len(names)} labels: {', '.join(names)}")

    ready: dict[str, Any] = {}
    for split, dataset in splits.items():
        if args.task == "images":
            shift = args.max_shift if split == "train" else 0
            ready[split] = dataset.with_transform(image_transform(reader, names, config.num_channels, shift))
        else:
            encode = encode_texts if args.task == "text" else encode_tokens
            ready[split] = encode(dataset, reader, names, args.max_length)
    collators = {"text": DataCollatorWithPadding, "tokens": DataCollatorForTokenClassification}
    trainer = ResumableTrainer(
        model=model,
        args=training_args,
        train_dataset=ready.get("train"),
        eval_dataset=ready.get("validation"),
        data_collator=stack_images if args.task == "images" else collators[args.task](reader),
        processing_class=reader,
        compute_metrics=metrics_function(names),
        preprocess_logits_for_metrics=best_classes,
        callbacks=[ClockCallback()],
    )
    return trainer, ready, names


def record(args: ClassifierArguments, training_args: TrainingArguments) -> None:
    """Write what was trained, on what and how, without paths."""
    facts = {
        "task": args.task,
        "labels": args.labels if not (args.train_file or args.dataset_name) else None,
        "dataset_name": hub_id(args.dataset_name),
        "trained_further": bool(args.model_name_or_path) and not args.from_scratch,
        "base_model": hub_id(args.model_name_or_path),
    }
    ours = ("config_overrides", "held_out", "max_length", "max_train_samples", "max_shift")
    theirs = ("learning_rate", "warmup_steps", "weight_decay", "num_train_epochs", "per_device_train_batch_size")
    settings = {name: getattr(args, name) for name in ours}
    settings |= {name: getattr(training_args, name) for name in (*theirs, "bf16", "seed")}
    write_run(Path(str(training_args.output_dir)), facts, settings)


def predict(trainer: ResumableTrainer, dataset: Any, names: list[str]) -> dict[str, Any]:
    """Measure the test set, and write ``predictions.txt``: a label a line, or a tag for each word."""
    trainer.compute_metrics = metrics_function(names, samples=1000)
    prediction = trainer.predict(dataset, metric_key_prefix="test")
    rows = zip(np.atleast_1d(prediction.predictions), np.atleast_1d(prediction.label_ids))  # type: ignore[arg-type]
    pairs = [(np.atleast_1d(said), np.atleast_1d(gold)) for said, gold in rows]
    lines = [" ".join(names[number] for number in said[gold != IGNORED]) + "\n" for said, gold in pairs]
    Path(str(trainer.args.output_dir), "predictions.txt").write_text("".join(lines), encoding="utf-8", newline="\n")
    trainer.save_metrics("test", prediction.metrics)  # type: ignore[arg-type]
    return prediction.metrics or {}


def parse(argv: list[str] | None = None) -> tuple[ClassifierArguments, TrainingArguments]:
    """Read the command line."""
    words = sys.argv[1:] if argv is None else argv
    parser = HfArgumentParser((ClassifierArguments, TrainingArguments), allow_abbrev=False)  # type: ignore[arg-type]
    parser.set_defaults(**(DEFAULTS | hardware_defaults()))
    asked = parser.parse_known_args(words)[0]
    if asked.output_dir is None:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    if asked.train_file and not asked.validation_file or not asked.do_train:  # nothing to choose the best by
        parser.set_defaults(eval_strategy="no", load_best_model_at_end=False)
    if asked.from_scratch or not asked.model_name_or_path:  # new weights have further to go
        parser.set_defaults(learning_rate=1.5e-3)
    parser.set_defaults(remove_unused_columns=asked.task != "images")
    args, training_args = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    return args, training_args


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Train, measure and save; return the numbers of the test set, or of the validation set where there is none."""
    try:
        args, training_args = parse(argv)
        trainer, ready, names = prepare(args, training_args)
    except (ValueError, OSError, StrictDataclassError) as mistake:  # an error in training needs its traceback
        sys.exit(f"error: {mistake}")
    if training_args.do_train:
        checkpoint = find_checkpoint(training_args)
        result = trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.save_state()
        record(args, training_args)
        trainer.save_metrics("train", result.metrics | {"train_samples": len(ready["train"])})
    results: dict[str, Any] = {}
    if "validation" in ready:
        results = trainer.evaluate()
        trainer.save_metrics("eval", results)
    if "test" in ready:
        results = predict(trainer, ready["test"], names)
    numbers = {name: value for name, value in results.items() if not isinstance(value, dict | list)}
    if numbers:
        trainer.log_metrics("test" if "test" in ready else "eval", numbers)
    return results


if __name__ == "__main__":
    main()
