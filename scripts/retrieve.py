"""Search a text by meaning: train an encoder to compare texts, measure it, and ask it.

    python scripts/retrieve.py --model_name_or_path space/models/bible-bert --pairs halves --output_dir out/search
    python scripts/retrieve.py --model_name_or_path out/search --query "who reads the book"

The first command teaches the model which second half goes on with which first half of a line (``--pairs same``: that a
line is itself, whatever dropout does to it), and measures on lines held out how well it finds the second half among
all of theirs, beside TF-IDF, which compares words. It takes about a minute of one core; the right half is then among
the first ten of 150 for half of them. The second command prints the nearest lines. ``--text_file`` takes a text of your
own, one line each; without it the lines are sentences of the embedded phrasebook.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from datasets import Dataset
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import AutoModel, AutoTokenizer, HfArgumentParser, TrainingArguments, set_seed

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data.text import hold_out, load_texts, phrasebook_texts
from hf_attn.evaluation.retrieval import retrieval_scores
from hf_attn.inference.retrieval import Retriever
from hf_attn.training.arguments import find_checkpoint
from hf_attn.training.contrastive import ContrastiveTrainer, PairCollator, halves
from hf_attn.training.recipes import hardware_defaults


@dataclass
class RetrievalArguments:
    """Which model, which texts, and what to do with them."""

    model_name_or_path: str = field(metadata={"help": "Folder or Hub id of an encoder with its tokenizer."})
    text_file: str = field(default="", metadata={"help": "The texts to search, one a line; else the phrasebook's."})
    query: list[str] = field(default_factory=list, metadata={"help": "What to look for, each time the nearest lines."})
    top_k: int = field(default=5, metadata={"help": "How many lines to print for a query."})
    pairs: Literal["halves", "same"] | None = field(
        default=None,
        metadata={"help": "What to learn first: that halves of a line belong together, or a line to itself."},
    )
    pooling: Literal["mean", "max", "cls"] = field(default="mean", metadata={"help": "How states become a vector."})
    temperature: float = field(default=0.05, metadata={"help": "What cosines are divided by in training."})
    held_out: float = field(default=0.03, metadata={"help": "Share of the lines to measure on."})
    held_out_seed: int = field(
        default=42, metadata={"help": "Seed of their choice; that of train_language_model.py holds out the same lines."}
    )
    max_length: int = field(default=128, metadata={"help": "Longer texts are cut to so many tokens."})


DEFAULTS = {"learning_rate": 5e-4, "warmup_steps": 0.1, "num_train_epochs": 1.0, "per_device_train_batch_size": 64}
DEFAULTS |= {"remove_unused_columns": False, "logging_steps": 50, "save_steps": 200, "save_total_limit": 1}


def in_two(lines: list[str]) -> list[str]:
    """Give the lines that have two halves."""
    found = [line for line in lines if len(line.split()) > 1]
    if not found:
        raise ValueError("the text must have lines of two words at least, to learn and among those held out")
    return found


def train(args: RetrievalArguments, training_args: TrainingArguments, lines: list[str]) -> None:
    """Train the encoder on pairs, and save it."""
    set_seed(training_args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
    pairs = [halves(line) if args.pairs == "halves" else (line, line) for line in in_two(lines)]
    trainer = ContrastiveTrainer(
        model=AutoModel.from_pretrained(args.model_name_or_path, dtype="float32"),
        args=training_args,
        train_dataset=Dataset.from_dict({"first": [one for one, _ in pairs], "second": [two for _, two in pairs]}),
        data_collator=PairCollator(tokenizer, args.max_length),
        processing_class=tokenizer,
        pooling=args.pooling,
        temperature=args.temperature,
    )
    trainer.train(resume_from_checkpoint=find_checkpoint(training_args))
    trainer.save_model()


def measure(model: str, args: RetrievalArguments, lines: list[str]) -> dict[str, Any]:
    """Find the second half of each line among all, by the model and by TF-IDF."""
    pairs = [halves(line) for line in in_two(lines)]
    queries, texts = [list(side) for side in zip(*pairs)]
    retriever = Retriever(model, pooling=args.pooling, max_length=args.max_length)
    counter = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+").fit(queries + texts)
    right = range(len(texts))
    by_words = (counter.transform(queries) @ counter.transform(texts).T).toarray()  # type: ignore[operator]
    return {
        "lines": len(texts),
        "model": retrieval_scores(retriever.embed(queries) @ retriever.embed(texts).T, right),
        "tfidf": retrieval_scores(by_words, right),
    }


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Train and measure if there are pairs to learn, answer the queries; return the numbers, and what was found."""
    words = sys.argv[1:] if argv is None else argv
    parser = HfArgumentParser((RetrievalArguments, TrainingArguments), allow_abbrev=False)  # type: ignore[arg-type]
    parser.set_defaults(**(DEFAULTS | hardware_defaults()))
    args, training_args = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    if not args.pairs and not args.query:
        raise ValueError("give pairs to learn, a query to answer, or both")
    if args.pairs and parser.parse_known_args(words)[0].output_dir is None:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    lines = load_texts(args.text_file) if args.text_file else phrasebook_texts("en", "train", 5000)
    lines = list(dict.fromkeys(lines))
    model, results = args.model_name_or_path, {}
    if args.pairs:
        known, held_out = hold_out(lines, args.held_out, args.held_out_seed)
        results["before"] = measure(model, args, held_out)
        train(args, training_args, known)
        model = str(training_args.output_dir)
        results["after"] = measure(model, args, held_out)
        report = json.dumps(results, indent=2)
        Path(model, "retrieval_results.json").write_text(report + "\n", encoding="utf-8")
        print(report)
    if args.query:
        retriever = Retriever(model, pooling=args.pooling, max_length=args.max_length)
        retriever.index(lines, progress=True)
        results["found"] = retriever.search(args.query, args.top_k)
        for query, hits in zip(args.query, results["found"]):
            print(query, *(f"{hit.score:.3f}  {hit.text}" for hit in hits), sep="\n", end="\n\n")
    return results


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
