"""Teach a Bert to summarise texts by their own sentences (BERTSUM), measure it, and summarise.

    python scripts/summarize.py --output_dir out/summarizer
    python scripts/summarize.py --model_name_or_path out/summarizer --document text.txt

Without data of your own it learns documents made of the embedded phrasebook, in which three of eight sentences speak of
the same person, place or day, and the summary is these three. ``--train_file`` and ``--test_file`` take JSON lines of
`{"sentences": [...], "summary": "..."}`: the sentences to choose are then those that say most of the summary by ROUGE.
The output folder holds the model and ``summary_results.json``: ROUGE of the model, of the first three sentences, and of
the best three there are. A document is a text file of one sentence a line.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import AutoConfig, AutoTokenizer, HfArgumentParser, TrainingArguments, set_seed

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data.summaries import shared_name_documents
from hf_attn.data.text import load_texts, train_text_tokenizer
from hf_attn.data.translation import read_lines
from hf_attn.evaluation.rouge import oracle_sentences, rouge_scores
from hf_attn.inference.summarizer import (
    AttnBertForExtractiveSummarization,
    Summarizer,
    SummaryCollator,
    encode_document,
)
from hf_attn.training import ResumableTrainer, find_checkpoint
from hf_attn.training.classification import new_config
from hf_attn.training.recipes import hardware_defaults


@dataclass
class SummaryArguments:
    """Which model, which documents, and how long summaries are."""

    model_name_or_path: str = field(
        default="", metadata={"help": "Folder of an attn-bert to begin with; else a new one."}
    )
    train_file: str = field(default="", metadata={"help": "Documents to learn: JSON lines with sentences and summary."})
    test_file: str = field(default="", metadata={"help": "Documents to measure on."})
    document: str = field(default="", metadata={"help": "A file of one sentence a line: summarise it, learn nothing."})
    count: int = field(default=3, metadata={"help": "Most sentences of a summary."})
    vocab_size: int = field(default=2000, metadata={"help": "Size of the vocabulary to learn for a new model."})
    max_length: int = field(default=512, metadata={"help": "Most tokens of a document that are read."})

    def __post_init__(self):
        if self.count < 1:
            raise ValueError(f"count={self.count} must be a whole number of at least 1")


DEFAULTS = {"learning_rate": 1e-3, "warmup_steps": 0.1, "num_train_epochs": 12.0, "per_device_train_batch_size": 32}
DEFAULTS |= {"remove_unused_columns": False, "logging_steps": 50, "save_strategy": "epoch", "save_total_limit": 1}


def load_documents(args: SummaryArguments) -> tuple[Dataset, Dataset]:
    """Load the documents to learn and those to measure on."""
    if bool(args.train_file) != bool(args.test_file):
        raise ValueError("train_file and test_file go together")
    if not args.train_file:
        return shared_name_documents("train", 4000), shared_name_documents("test", 300)
    return read_documents(Path(args.train_file)), read_documents(Path(args.test_file))


def read_documents(file: Path) -> Dataset:
    """Read JSON lines of sentences and a summary."""
    rows = []
    for number, line in read_lines(file):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            sentences, summary = row["sentences"], row["summary"]
            valid = isinstance(sentences, list) and bool(sentences)
            valid = valid and all(isinstance(text, str) and text.encode() for text in (*sentences, summary))
        except (ValueError, KeyError, TypeError):  # no JSON, no object, or text that is not valid Unicode
            valid = False
        if not valid:
            raise ValueError(
                f"{file}, line {number}: must have 'sentences', a list of strings, and 'summary', a string"
            )
        rows.append({"sentences": sentences, "summary": summary})
    if not rows:
        raise ValueError(f"{file} holds no documents")
    return Dataset.from_list(rows)


def encode(documents: Dataset, tokenizer: Any, args: SummaryArguments) -> Dataset:
    """Turn documents into what the model takes, with the sentences to choose as labels."""
    rows = []
    for row in documents:
        encoded: dict[str, Any] = encode_document(row["sentences"], tokenizer, args.max_length)  # type: ignore[index,call-overload]
        best = oracle_sentences(row["sentences"], row["summary"], args.count)  # type: ignore[index,call-overload]
        encoded["labels"] = [int(number in best) for number in range(len(encoded["sentence_positions"]))]
        rows.append(encoded)
    return Dataset.from_list(rows)


def measure(model: str, documents: Dataset, args: SummaryArguments) -> dict[str, dict[str, float]]:
    """Compute mean ROUGE of the model's summaries, of the first sentences, and of the best."""
    summarizer = Summarizer(model, max_length=args.max_length)
    totals: dict[str, dict[str, float]] = {}
    for row in documents:
        sentences, reference = row["sentences"], row["summary"]  # type: ignore[index,call-overload]
        best = [sentences[number] for number in oracle_sentences(sentences, reference, args.count)]
        summaries = {"model": summarizer(sentences, args.count).text, "oracle": " ".join(best)}
        summaries["lead"] = " ".join(sentences[: args.count])
        for name, summary in summaries.items():
            for measure_name, value in rouge_scores(summary, reference).items():
                scores = totals.setdefault(name, {})
                scores[measure_name] = scores.get(measure_name, 0.0) + value / len(documents)
    return totals


def train(args: SummaryArguments, training_args: TrainingArguments, documents: Dataset) -> None:
    """Train the model, and save it."""
    set_seed(training_args.seed)
    folder = args.model_name_or_path
    if folder:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        config = AutoConfig.from_pretrained(folder)
        model = AttnBertForExtractiveSummarization.from_pretrained(folder, config=config, dtype="float32")
    else:
        texts = [sentence for sentences in documents["sentences"] for sentence in sentences]
        tokenizer = train_text_tokenizer(texts, args.vocab_size, masked=True)
        model = AttnBertForExtractiveSummarization(new_config("text", "attn-bert", tokenizer))
    trainer = ResumableTrainer(
        model=model,
        args=training_args,
        train_dataset=encode(documents, tokenizer, args),
        data_collator=SummaryCollator(tokenizer),
        processing_class=tokenizer,
    )
    trainer.train(resume_from_checkpoint=find_checkpoint(training_args))
    trainer.save_model()


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Summarise a document, or train and measure; return the summary or the numbers."""
    words = sys.argv[1:] if argv is None else argv
    parser = HfArgumentParser((SummaryArguments, TrainingArguments), allow_abbrev=False)  # type: ignore[arg-type]
    parser.set_defaults(**(DEFAULTS | hardware_defaults()))
    args, training_args = parser.parse_args_into_dataclasses(words, look_for_args_file=False)
    if args.document:
        if not args.model_name_or_path:
            raise ValueError("document needs model_name_or_path: a trained summariser")
        summary = Summarizer(args.model_name_or_path, max_length=args.max_length)(load_texts(args.document), args.count)
        print(*summary.sentences, sep="\n")
        return {"sentences": summary.sentences}
    if parser.parse_known_args(words)[0].output_dir is None:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    documents, held_out = load_documents(args)
    train(args, training_args, documents)
    output = Path(str(training_args.output_dir))
    results = measure(str(output), held_out, args)
    (output / "summary_results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))
    return results


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
