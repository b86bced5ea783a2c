"""Train a translation model on sentence pairs: a recurrent or Transformer model of this package, or Marian or Bart.

    python scripts/train_translation.py --recipe bahdanau-small --phrasebook en-ko --max_minutes 5 --output_dir out/ko

    python scripts/train_translation.py --recipe transformer-small --source_lang en --target_lang fr \
        --train_file train.tsv --validation_file dev.tsv --test_file test.tsv \
        --max_minutes 25 --average_checkpoints 3 --output_dir out/fr

    python scripts/train_translation.py --model_name_or_path out/fr --reinforcement gleu --learning_rate 1e-4 \
        --lr_scheduler_type constant --label_smoothing_factor 0 --source_lang en --target_lang fr \
        --train_file train.tsv --validation_file dev.tsv --max_steps 2000 --output_dir out/fr-gleu

The output folder then holds the model and its tokenizer (open it with ``AutoModelForSeq2SeqLM`` and ``AutoTokenizer``),
``all_results.json`` with BLEU, chrF and GLEU, and ``generated_predictions.txt``, the translated test set. Run the same
command again to resume from the last checkpoint. ``--help`` lists all arguments; a YAML file may hold them too:
``python scripts/train_translation.py run.yaml --output_dir out/other``.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from datasets import Dataset
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    EvalPrediction,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    TrainerCallback,
    set_seed,
)

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data import load_pairs, phrasebook, text_words, tokenize_pairs, train_tokenizer
from hf_attn.evaluation import agreed_links, evaluate_translations, sentence_gleu, train_ibm_model_1
from hf_attn.training import (
    AlignmentTrainer,
    ClockCallback,
    DataTrainingArguments,
    ModelArguments,
    PatienceCallback,
    ReinforcementTrainer,
    TimeLimitCallback,
    TokenBatchTrainer,
    add_links,
    build_config,
    check_generation,
    check_lengths,
    find_checkpoint,
    is_readable,
    last_checkpoints,
    load_average,
    mean_loss,
    model_from_config,
    pair_lengths,
    parse_arguments,
    supervise_alignment,
)
from hf_attn.training.arguments import parse_overrides
from hf_attn.training.record import write_record

Tokenizers = tuple[PreTrainedTokenizerFast, PreTrainedTokenizerFast | None]  # source or joint; target if separate


def load_split(data_args: DataTrainingArguments, split: str, limit: int | None) -> Dataset:
    """Load the pairs of a split; those for measuring are grouped by source sentence, with all its references."""
    languages = (data_args.source_lang, data_args.target_lang)
    if data_args.phrasebook:
        return phrasebook(data_args.phrasebook, split, size=limit or None)
    group = split != "train"
    if data_args.dataset_name:
        pairs = load_pairs(data_args.dataset_name, *languages, split=split, group_references=group)
    else:
        pairs = load_pairs(getattr(data_args, f"{split}_file"), *languages, group_references=group)
    return pairs.select(range(min(limit, len(pairs)))) if limit else pairs


def make_tokenizers(
    model_args: ModelArguments, data_args: DataTrainingArguments, pairs: dict[str, Dataset], folder: str | None
) -> Tokenizers:
    """Load the tokenizers of a saved model, or train them on the training pairs."""
    folder = folder or model_args.tokenizer_name
    if folder:
        hub = {"cache_dir": model_args.cache_dir, "revision": model_args.model_revision, "token": model_args.token}
        target = Path(folder, "target_tokenizer")
        return (
            AutoTokenizer.from_pretrained(folder, trust_remote_code=model_args.trust_remote_code, **hub),
            AutoTokenizer.from_pretrained(target) if target.is_dir() else None,
        )
    languages = (data_args.source_lang, data_args.target_lang)
    sides = [[pair[lang] for pair in pairs["train"]["translation"]] for lang in languages]
    settings = {"vocab_size": model_args.vocab_size, "kind": model_args.tokenizer_kind}
    if model_args.separate_vocabularies:
        return train_tokenizer(sides[0], **settings), train_tokenizer(sides[1], **settings)
    return train_tokenizer(sides[0] + sides[1], **settings), None


def make_model(
    model_args: ModelArguments, data_args: DataTrainingArguments, tokenizers: Tokenizers, checkpoint: str | None
) -> PreTrainedModel:
    """Load a model to train further, or make a new one from a checkpoint's config, a config's name or the recipe."""
    hub = {"cache_dir": model_args.cache_dir, "revision": model_args.model_revision, "token": model_args.token}
    hub["trust_remote_code"] = model_args.trust_remote_code
    if model_args.model_name_or_path and not checkpoint:
        model = AutoModelForSeq2SeqLM.from_pretrained(model_args.model_name_or_path, dtype="float32", **hub)
    else:
        saved_config = checkpoint or model_args.config_name
        if saved_config:
            config = AutoConfig.from_pretrained(saved_config, **hub)
        else:
            config = build_config(model_args.recipe, *tokenizers, **parse_overrides(model_args.config_overrides))
        model = model_from_config(config)
    if checkpoint:
        model.generation_config = GenerationConfig.from_pretrained(checkpoint)  # of a model that is trained further
    if model_args.attn_implementation:
        model.set_attn_implementation(model_args.attn_implementation)
    check_lengths(model.config, data_args)
    return model


def align_words(data_args: DataTrainingArguments, pairs: Dataset) -> list[Any]:
    """Give the gold word links of each pair, or those on which IBM Model 1 agrees in both directions."""
    if data_args.alignment_supervision == "links":
        return list(pairs["sure"])
    source_lang, target_lang = data_args.source_lang, data_args.target_lang
    words = [(text_words(pair[source_lang]), text_words(pair[target_lang])) for pair in pairs["translation"]]
    forward = train_ibm_model_1(words)
    backward = train_ibm_model_1((target, source) for source, target in words)
    return [agreed_links(forward, backward, source, target) for source, target in words]


def metrics_function(tokenizer: PreTrainedTokenizerFast, pairs: Dataset, lang: str, signatures: bool) -> Callable:
    """Make the function by which the Trainer turns generated ids into BLEU, chrF and GLEU."""
    references = pairs["references"] if "references" in pairs.column_names else [p[lang] for p in pairs["translation"]]

    def compute_metrics(prediction: EvalPrediction) -> dict[str, Any]:
        scores = evaluate_translations(decode(tokenizer, prediction.predictions), list(references), target_lang=lang)
        kinds = (int, float, str) if signatures else (int, float)  # text does not belong into the curves of a run
        return {name: value for name, value in scores.items() if isinstance(value, kinds)}

    return compute_metrics


def decode(tokenizer: PreTrainedTokenizerFast, ids: Any) -> list[str]:
    """Turn generated ids into text; the Trainer fills shorter rows with -100."""
    ids = np.where(np.asarray(ids) < 0, tokenizer.pad_token_id or 0, ids)
    return tokenizer.batch_decode(ids.tolist(), skip_special_tokens=True)


@dataclass
class Run:
    """All that a run needs: what it trains and measures, ready to start."""

    trainer: TokenBatchTrainer
    model_args: ModelArguments
    data_args: DataTrainingArguments
    tokenizers: Tokenizers
    checkpoint: str | None  # to resume from
    tokenized: dict[str, Any]  # datasets by split: train, validation, test
    order: dict[str, np.ndarray]  # by measured split: the place in the file of each of its sentences
    metrics: dict[str, Callable]  # by measured split


def prepare(argv: list[str] | None = None) -> Run:
    """Read arguments and data, and make tokenizers, model and Trainer: whatever a user may get wrong shows here."""
    model_args, data_args, training_args = parse_arguments(argv)
    source_lang, target_lang = data_args.source_lang, data_args.target_lang
    set_seed(training_args.seed)
    checkpoint = find_checkpoint(training_args) if training_args.do_train else None
    if checkpoint:
        print(f"Resuming from {checkpoint}; model and tokenizer come from there.")

    pairs = {}
    if training_args.do_train:
        pairs["train"] = load_split(data_args, "train", data_args.max_train_samples)
    if training_args.do_eval:
        pairs["validation"] = load_split(data_args, "validation", data_args.max_eval_samples)
    if training_args.do_predict:
        pairs["test"] = load_split(data_args, "test", data_args.max_predict_samples)

    tokenizers = make_tokenizers(model_args, data_args, pairs, checkpoint or model_args.model_name_or_path)
    tokenizer, target_tokenizer = tokenizers
    model = make_model(model_args, data_args, tokenizers, checkpoint)
    model.generation_config.max_length = training_args.generation_max_length
    print(f"{model.config.model_type}: {model.num_parameters():,} parameters, {len(tokenizer):,} pieces")

    tokenized: dict[str, Any] = {
        split: tokenize_pairs(
            dataset,
            tokenizer,
            source_lang,
            target_lang,
            target_tokenizer=target_tokenizer,
            max_source_length=data_args.max_source_length,
            max_target_length=data_args.max_target_length,
            num_proc=data_args.preprocessing_num_workers,
        )
        for split, dataset in pairs.items()
    }
    trainer_class: type[TokenBatchTrainer] = TokenBatchTrainer
    objective: dict[str, Any] = {}
    if data_args.alignment_supervision and training_args.do_train:
        trainer_class = AlignmentTrainer
        objective["supervision"] = supervise_alignment(model.config, data_args.alignment_weight)
        texts = [(pair[source_lang], pair[target_lang]) for pair in pairs["train"]["translation"]]
        links = align_words(data_args, pairs["train"])
        tokenized["train"] = add_links(tokenized["train"], texts, links, tokenizer, target_tokenizer)
    elif data_args.reinforcement and training_args.do_train:
        trainer_class, objective = ReinforcementTrainer, {"reward": sentence_gleu}
        objective["samples"] = data_args.reinforcement_samples
        objective["temperature"] = data_args.reinforcement_temperature
        objective["likelihood_weight"] = data_args.likelihood_weight
    order = {}
    for split in set(pairs) - {"train"}:  # measured in the order of length: generation waits for the longest of a batch
        order[split] = np.argsort(-pair_lengths(tokenized[split])[0], kind="stable")
        pairs[split], tokenized[split] = pairs[split].select(order[split]), tokenized[split].select(order[split])

    callbacks: list[TrainerCallback] = []
    if data_args.max_minutes is not None:
        callbacks.append(TimeLimitCallback(data_args.max_minutes))
    if data_args.early_stopping_patience is not None:
        callbacks.append(PatienceCallback(data_args.early_stopping_patience))
    metrics = {
        split: metrics_function(target_tokenizer or tokenizer, dataset, target_lang, signatures=split == "test")
        for split, dataset in pairs.items()
        if split != "train" and training_args.predict_with_generate
    }
    trainer = trainer_class(
        model=model,
        args=training_args,
        train_dataset=tokenized.get("train"),
        eval_dataset=tokenized.get("validation"),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        compute_metrics=metrics.get("validation"),
        callbacks=[*callbacks, ClockCallback()],
        tokens_per_batch=data_args.tokens_per_batch,
        target_tokenizer=target_tokenizer,
        **objective,
    )
    check_generation(model.generation_config, data_args, training_args)
    return Run(trainer, model_args, data_args, tokenizers, checkpoint, tokenized, order, metrics)


def train(run: Run) -> None:
    """Train to the end, average the last checkpoints if asked, and save model and tokenizers."""
    trainer, model = run.trainer, cast(PreTrainedModel, run.trainer.model)
    output = Path(str(trainer.args.output_dir))
    result = trainer.train(resume_from_checkpoint=run.checkpoint)
    # The Trainer counts sentences by per_device_train_batch_size, which batches by tokens do not follow.
    numbers = {name: value for name, value in result.metrics.items() if name != "train_samples_per_second"}
    if trainer.args.should_save:  # what an earlier call measured, it measured on other weights
        (output / "all_results.json").unlink(missing_ok=True)
    numbers |= {"train_loss": mean_loss(trainer.state), "train_samples": len(run.tokenized["train"])}
    report(trainer, "train", numbers)
    if run.data_args.average_checkpoints > 1:
        folders = last_checkpoints(output, run.data_args.average_checkpoints)
        load_average(model, folders)
        print(f"The model is now the mean of {', '.join(folder.name for folder in folders)}.")
    trainer.save_model()
    trainer.save_state()
    if trainer.args.should_save:
        write_record(output, run.model_args, run.data_args, trainer.args)


def translate_test_set(run: Run) -> dict[str, Any]:
    """Translate the test set, measure it, and write ``generated_predictions.txt`` in the order of the file."""
    run.trainer.compute_metrics = run.metrics["test"]
    beams = run.data_args.num_beams
    prediction = run.trainer.predict(run.tokenized["test"], metric_key_prefix="predict", num_beams=beams)
    if run.trainer.is_world_process_zero():
        texts = decode(run.tokenizers[1] or run.tokenizers[0], prediction.predictions)
        lines = [" ".join(texts[place].split()) + "\n" for place in np.argsort(run.order["test"])]
        Path(str(run.trainer.args.output_dir), "generated_predictions.txt").write_bytes("".join(lines).encode())
    return report(run.trainer, "predict", (prediction.metrics or {}) | {"predict_num_beams": beams})


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Train, evaluate and translate the test set, as far as the arguments ask for it; return the measured numbers."""
    try:
        run = prepare(argv)
    except (ValueError, OSError, StrictDataclassError) as mistake:  # an error in training needs its traceback
        sys.exit(f"error: {mistake}")
    results = {}
    if run.trainer.args.do_train:
        train(run)
    if run.trainer.args.do_eval:
        beams = run.data_args.num_beams
        results |= report(run.trainer, "eval", run.trainer.evaluate(num_beams=beams) | {"eval_num_beams": beams})
    if run.trainer.args.do_predict:
        results |= translate_test_set(run)
    return results


def report(trainer: TokenBatchTrainer, split: str, metrics: dict[str, Any]) -> dict[str, Any]:
    """Print the numbers of a split, and write them to ``<split>_results.json`` and ``all_results.json``."""
    trainer.log_metrics(split, metrics)
    results = Path(str(trainer.args.output_dir), "all_results.json")
    if trainer.is_world_process_zero() and results.is_file() and not is_readable(results):
        results.unlink()  # left by a run that was killed while it wrote them
    trainer.save_metrics(split, metrics)
    return metrics


if __name__ == "__main__":
    main()
