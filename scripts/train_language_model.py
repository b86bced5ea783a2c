"""Train a language model on text: a Gpt that goes on with it, a Bert that fills masks, or a Bert as ELECTRA.

    python scripts/train_language_model.py --objective clm --recipe tiny --phrasebook en --output_dir out/gpt

    python scripts/train_language_model.py --objective mlm --train_file bible.txt --output_dir out/bert

The first takes about a minute and a half on one core; the perplexity of a word is then 15, and 24 for a model that
counts sequences of five pieces (``--floors true``). On a text of 4 MB the small models take an
hour or two.

The output folder then holds the model and its tokenizer (open it with ``AutoModelForCausalLM``,
``AutoModelForMaskedLM`` or ``AutoModelForPreTraining``; ELECTRA's generator lies in ``generator``) and
``all_results.json`` with the numbers that ``hf_attn/evaluation/language.py`` defines. Texts that are not in a
validation file are held out. Run the same command again to resume from the last checkpoint; ``--help`` lists all
arguments.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    set_seed,
)

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data import split_words
from hf_attn.data.text import (
    count_words,
    hold_out,
    load_texts,
    phrasebook_texts,
    text_blocks,
    text_rows,
    train_text_tokenizer,
)
from hf_attn.evaluation.language import (
    measure_causal,
    measure_masked,
    measure_replaced,
    perplexities,
    pseudo_log_probs,
    replaced_numbers,
)
from hf_attn.evaluation.ngram import causal_floors, masked_floors
from hf_attn.training import (
    ClockCallback,
    TimeLimitCallback,
    find_checkpoint,
    last_checkpoints,
    load_average,
    mean_loss,
)
from hf_attn.training.arguments import parse_overrides
from hf_attn.training.language_arguments import (
    LanguageModelArguments,
    TextArguments,
    parse_language_arguments,
    write_language_record,
)
from hf_attn.training.language_modeling import (
    CausalCollator,
    LanguageModelTrainer,
    MaskingCollator,
    ReplacedTokenPretraining,
    generator_config,
)
from hf_attn.training.language_recipes import language_config, language_recipe


def load_data(data_args: TextArguments, seed: int) -> tuple[list[str], list[str]]:
    """Load the texts to train on and those to measure on."""
    if data_args.phrasebook:
        texts = phrasebook_texts(data_args.phrasebook, "train", data_args.max_train_samples)
        return texts, phrasebook_texts(data_args.phrasebook, "validation", data_args.max_eval_samples)
    split = "train" if data_args.dataset_name else None
    texts = load_texts(data_args.train_file or data_args.dataset_name or "", column=data_args.text_column, split=split)
    if data_args.validation_file:
        held_out = load_texts(data_args.validation_file, column=data_args.text_column)
    else:
        texts, held_out = hold_out(texts, data_args.held_out, seed)
    return texts[: data_args.max_train_samples], held_out[: data_args.max_eval_samples]


def make_tokenizer(model_args: LanguageModelArguments, texts: list[str], folder: str | None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a saved model or the one asked for, or train one."""
    folder = folder or model_args.model_name_or_path or model_args.tokenizer_name
    if folder:
        return AutoTokenizer.from_pretrained(folder)
    masked = model_args.objective != "clm"
    return train_text_tokenizer(texts, model_args.vocab_size, kind=model_args.tokenizer_kind, masked=masked)


def make_model(model_args: LanguageModelArguments, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """Load a model to train further, or make a new one."""
    saved = model_args.model_name_or_path
    config: Any
    if saved:
        config = AutoConfig.from_pretrained(saved)
    else:
        recipe = language_recipe(model_args.objective, model_args.recipe)
        config = language_config(recipe, tokenizer, **parse_overrides(model_args.config_overrides))
    if model_args.objective == "electra":
        small: Any = AutoConfig.from_pretrained(saved, subfolder="generator") if saved else None
        model = ReplacedTokenPretraining(config, small or generator_config(config, model_args.generator_size))
        if saved:
            model.load_parts(saved)
        return model
    auto = AutoModelForCausalLM if model_args.objective == "clm" else AutoModelForMaskedLM
    return auto.from_pretrained(saved, dtype="float32") if saved else auto.from_config(config)


@dataclass
class Run:
    """All that a run needs, ready to start."""

    trainer: LanguageModelTrainer
    model_args: LanguageModelArguments
    data_args: TextArguments
    tokenizer: PreTrainedTokenizerBase
    texts: list[str]
    held_out: list[str]
    checkpoint: str | None  # to resume from


def metrics_function(objective: str, words: int) -> Callable[[EvalPrediction], dict[str, float]]:
    """Make the function by which the Trainer turns sums of rows into numbers."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        sums = prediction.predictions.sum(axis=0).tolist()  # type: ignore[union-attr]
        if objective == "electra":
            return replaced_numbers(sums)
        return perplexities(sums, words if objective == "clm" else None)

    return compute_metrics


def prepare(argv: list[str] | None = None) -> Run:
    """Read arguments and data, and make tokenizer, model and Trainer: whatever a user may get wrong shows here."""
    model_args, data_args, training_args = parse_language_arguments(argv)
    set_seed(training_args.seed)
    checkpoint = find_checkpoint(training_args) if training_args.do_train else None
    if checkpoint:
        print(f"Resuming from {checkpoint}; the tokenizer comes from there.")
    texts, held_out = load_data(data_args, training_args.seed)
    tokenizer = make_tokenizer(model_args, texts, checkpoint)
    model = make_model(model_args, tokenizer)
    print(f"{model.config.model_type}: {model.num_parameters():,} parameters, {len(tokenizer):,} pieces")

    causal = model_args.objective == "clm"
    in_blocks = causal if data_args.blocks is None else data_args.blocks
    train_rows = (text_blocks if in_blocks else text_rows)(texts, tokenizer, data_args.max_length)
    rows = sorted(text_rows(held_out, tokenizer, data_args.max_length), key=len, reverse=True)
    print(f"{len(texts):,} texts of {sum(map(len, train_rows)):,} tokens to train on, {len(held_out):,} held out")
    mask = partial(MaskingCollator, tokenizer, ratio=data_args.mask_ratio, seed=training_args.seed)
    collators = {"clm": lambda: CausalCollator(tokenizer), "mlm": mask}
    collators["electra"] = partial(mask, masked=1.0, replaced=0.0, draws=True)
    measures = {"clm": measure_causal, "mlm": measure_masked, "electra": measure_replaced}
    limits = [] if data_args.max_minutes is None else [TimeLimitCallback(data_args.max_minutes)]
    trainer = LanguageModelTrainer(
        model=model,
        args=training_args,
        train_dataset=Dataset.from_dict({"input_ids": train_rows}),
        eval_dataset=Dataset.from_dict({"input_ids": rows}),
        data_collator=collators[model_args.objective](),
        processing_class=tokenizer,
        measure=measures[model_args.objective],
        compute_metrics=metrics_function(model_args.objective, count_words(held_out)),
        callbacks=[*limits, ClockCallback()],
        tokens_per_batch=data_args.tokens_per_batch,
    )
    return Run(trainer, model_args, data_args, tokenizer, texts, held_out, checkpoint)


def train(run: Run) -> None:
    """Train to the end, average the last checkpoints if asked, and save model and tokenizer."""
    trainer = run.trainer
    output = Path(str(trainer.args.output_dir))
    trainer.train(resume_from_checkpoint=run.checkpoint)
    if trainer.args.should_save:  # what an earlier call measured, it measured on other weights
        (output / "all_results.json").unlink(missing_ok=True)
    trainer.save_metrics("train", {"train_loss": mean_loss(trainer.state), "train_steps": trainer.state.global_step})
    model = cast(PreTrainedModel, trainer.accelerator.unwrap_model(trainer.model))
    if run.data_args.average_checkpoints > 1:
        load_average(model, last_checkpoints(output, run.data_args.average_checkpoints))
    if isinstance(model, ReplacedTokenPretraining):
        model.save_parts(output)
        run.tokenizer.save_pretrained(output)
    else:
        trainer.save_model()
    trainer.save_state()
    if trainer.args.should_save:
        write_language_record(output, run.model_args, run.data_args, trainer.args)


def pseudo_perplexity(run: Run) -> dict[str, float]:
    """Measure the pseudo-perplexity on the first held-out texts."""
    model, tokenizer = cast(Any, run.trainer.model).eval(), cast(Any, run.tokenizer)
    texts = run.held_out[: run.data_args.pseudo_samples]
    rows = text_rows(texts, tokenizer, run.data_args.max_length)
    found = [
        value
        for row in rows
        for value in pseudo_log_probs(model, row, tokenizer.mask_token_id, tokenizer.all_special_ids)
    ]
    words = count_words(texts) - len(texts)  # the ends are not masked
    numbers = perplexities([sum(found), len(found), 0], words)
    return {f"eval_pseudo_{name}": numbers[name] for name in ("perplexity", "word_perplexity")}


def floors(run: Run) -> dict[str, float]:
    """Measure models that count, on the same pieces."""
    tokenizer, length = run.tokenizer, run.data_args.max_length
    train_rows = text_rows(run.texts, tokenizer, length)
    if run.model_args.objective == "clm":
        rows, words = text_rows(run.held_out, tokenizer, length), count_words(run.held_out)
        numbers = causal_floors(train_rows, rows, len(tokenizer), words)
    else:
        numbers = masked_floors(train_rows, run.trainer.get_eval_dataloader(), tokenizer.all_special_ids)
    return {f"eval_floor_{name}": value for name, value in numbers.items()}


def show(run: Run, count: int = 5) -> None:
    """Print how the model goes on with held-out texts, or fills a mask in them."""
    model, tokenizer = cast(Any, run.trainer.model).eval(), run.tokenizer
    for text in run.held_out[:count]:
        words = text.split()
        if run.model_args.objective == "clm":
            start = " ".join(words[: max(len(words) // 3, 1)])
            batch = tokenizer(start, return_tensors="pt").to(model.device)
            ids = model.generate(**batch, max_new_tokens=40, do_sample=True, top_p=0.9)[
                0, batch["input_ids"].shape[1] :
            ]
            print(f"{start} ...{tokenizer.decode(ids, skip_special_tokens=True)}")
        elif run.model_args.objective == "mlm":
            spans = split_words(text)
            start, end = spans[len(spans) // 2]
            shown = f"{text[:start]}{tokenizer.mask_token}{text[end:]}"
            batch = tokenizer(shown, return_tensors="pt", truncation=True, max_length=run.data_args.max_length).to(
                model.device
            )
            with torch.no_grad():
                logits = model(**batch).logits[batch["input_ids"] == tokenizer.mask_token_id]
            best = [tokenizer.decode([token]) for token in logits[0].topk(3).indices] if len(logits) else []
            print(f"{shown}\n    {text[start:end]!r}: {best}")


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Train and evaluate, as far as the arguments ask for it; return the measured numbers."""
    try:
        run = prepare(argv)
    except (ValueError, OSError, StrictDataclassError) as mistake:  # an error in training needs its traceback
        sys.exit(f"error: {mistake}")
    if run.trainer.args.do_train:
        train(run)
    results: dict[str, Any] = {}
    if run.trainer.args.do_eval:
        results = run.trainer.evaluate()
        if run.model_args.objective == "mlm" and run.data_args.pseudo_samples:
            results |= pseudo_perplexity(run)
        if run.data_args.floors:
            results |= floors(run)
        run.trainer.log_metrics("eval", results)
        run.trainer.save_metrics("eval", results)
        show(run)
    return results


if __name__ == "__main__":
    main()
