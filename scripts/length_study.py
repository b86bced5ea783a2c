"""Draw figure 2 of Bahdanau et al. 2015 (arXiv 1409.0473): translation quality by sentence length, with and without
attention.

    python scripts/length_study.py --pair en-fr --max_steps 2000 --output_dir out/length

trains one model without attention and one with it on the embedded phrasebook, with equally many training words from
short, middling and long sentences, then measures BLEU on unseen sentences of each length. It writes
``length_study.json`` and ``length_study.png``, and takes about half an hour on two cores. Run it again to resume.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datasets import Dataset, concatenate_datasets
from matplotlib.figure import Figure
from transformers import DataCollatorForSeq2Seq, HfArgumentParser, set_seed
from transformers.trainer_utils import get_last_checkpoint

from hf_attn.data import phrasebook, split_words, tokenize_pairs, train_tokenizer
from hf_attn.evaluation import evaluate_translations
from hf_attn.inference import Translator, translate
from hf_attn.training import TokenBatchTrainer, build_model, get_recipe, training_arguments

LENGTHS = ((5, 10), (10, 20), (20, 30), (30, 40))
NAMES = {"none-tiny": "no attention", "bahdanau-tiny": "attention (Bahdanau)"}


@dataclass
class StudyArguments:
    """What is trained and measured."""

    output_dir: str = field(metadata={"help": "Folder for models, numbers and the figure."})
    pair: str = field(default="en-fr", metadata={"help": "Phrasebook: en-it, en-fr or en-ko."})
    recipes: list[str] = field(default_factory=lambda: list(NAMES), metadata={"help": "Recipes to compare."})
    words: int = field(default=60_000, metadata={"help": "English training words from each range of lengths."})
    test_sentences: int = field(default=200, metadata={"help": "Test sentences of each range of lengths."})
    hidden_size: int = field(default=192, metadata={"help": "Width of the models."})
    max_steps: int = field(default=2000, metadata={"help": "Updates of each model."})
    tokens_per_batch: int = field(default=2048, metadata={"help": "Padded tokens in a batch."})
    learning_rate: float = field(default=2e-3, metadata={"help": "Highest learning rate."})
    seed: int = field(default=0, metadata={"help": "Seed of data, weights and batches."})


def sentences_with_words(pair: str, lengths: tuple[int, int], words: int, seed: int) -> Dataset:
    """Draw training pairs of these lengths until their English sides have so many words."""
    shortest = lengths[0]
    drawn = phrasebook(pair, "train", size=words // shortest, seed=seed, words=lengths)

    def rows() -> Iterator[int]:
        total = 0
        for row, translation in enumerate(drawn["translation"]):
            if total >= words:
                return
            total += len(split_words(translation["en"]))
            yield row

    return drawn.select(list(rows()))


def train(recipe: str, pairs: Dataset, tokenizer, args: StudyArguments) -> Path:
    """Train one recipe, or what is left of it; return its folder."""
    folder = Path(args.output_dir, recipe)
    if (folder / "config.json").exists():
        return folder
    target_lang = args.pair.split("-")[1]
    set_seed(args.seed)
    size = args.hidden_size
    model = build_model(recipe, tokenizer, hidden_size=size, embedding_size=size, attention_size=size)
    settings = training_arguments(
        recipe,
        str(folder),
        max_steps=args.max_steps,
        learning_rate=args.learning_rate,
        seed=args.seed,
        save_steps=200,
        save_total_limit=1,
    )
    trainer = TokenBatchTrainer(
        model=model,
        args=settings,
        train_dataset=tokenize_pairs(pairs, tokenizer, "en", target_lang),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
        processing_class=tokenizer,
        tokens_per_batch=args.tokens_per_batch,
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)) if folder.is_dir() else None)
    trainer.save_model()
    return folder


def measure(folder: Path, args: StudyArguments) -> list[float]:
    """Return BLEU on unseen sentences of each range of lengths."""
    target_lang = args.pair.split("-")[1]
    translator = Translator(str(folder))
    scores = []
    for lengths in LENGTHS:
        test = phrasebook(args.pair, "test", size=args.test_sentences, seed=args.seed, words=lengths)["translation"]
        outputs = translate(translator, [pair["en"] for pair in test])
        scores.append(
            evaluate_translations(outputs, [pair[target_lang] for pair in test], target_lang=target_lang)["bleu"]
        )
    return scores


def draw(results: dict[str, list[float]], path: Path) -> None:
    """Draw BLEU over sentence length, a line for each model."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    labels = [f"{shortest} to {longest}" for shortest, longest in LENGTHS]
    for recipe, scores in results.items():
        axes.plot(labels, scores, marker="o", label=NAMES.get(recipe, recipe))
    axes.set(xlabel="words in the English sentence", ylabel="BLEU", ylim=(0, 100), title="Quality by sentence length")
    axes.legend(loc="lower left")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def main(args: StudyArguments) -> dict[str, list[float]]:
    """Train, measure, write and draw."""
    for recipe in args.recipes:
        get_recipe(recipe)  # a wrong name is refused before the first model is trained
    train_sets = [sentences_with_words(args.pair, lengths, args.words, args.seed) for lengths in LENGTHS]
    pairs = concatenate_datasets(train_sets)
    texts = [text for translation in pairs["translation"] for text in translation.values()]
    tokenizer = train_tokenizer(texts, 2000)
    results = {}
    for recipe in args.recipes:
        results[recipe] = measure(train(recipe, pairs, tokenizer, args), args)
        print(
            recipe,
            " ".join(
                f"{shortest}-{longest}: {score:.1f}" for (shortest, longest), score in zip(LENGTHS, results[recipe])
            ),
        )
    folder = Path(args.output_dir)
    report = {"lengths": LENGTHS, "bleu": results, "sentences": [len(part) for part in train_sets], "words": args.words}
    (folder / "length_study.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    draw(results, folder / "length_study.png")
    print(f"Wrote {folder / 'length_study.json'} and {folder / 'length_study.png'}.")
    return results


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(StudyArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
