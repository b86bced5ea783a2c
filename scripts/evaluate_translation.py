"""Measure a translation model: BLEU, chrF, GLEU, perplexity, and how well its attention aligns words.

    python scripts/evaluate_translation.py --model_name_or_path out/ko --phrasebook en-ko --alignment \
        --output_dir out/ko/test

    python scripts/evaluate_translation.py --model_name_or_path out/fr --source_lang en --target_lang fr \
        --test_file test.tsv --num_beams 4 --output_dir out/fr/test

    python scripts/evaluate_translation.py --model_name_or_path out/it --source_lang en --target_lang it \
        --anchors_file anchors.jsonl --train_file train.tsv --recommend --output_dir out/it/anchors

writes ``evaluation.json`` and ``generated_predictions.txt`` into the output folder and prints the numbers, within a
minute for a small model and 1,000 sentences on two cores; ``failures.html`` shows every translation with what looks
wrong about it. Sentences that have several references count once in BLEU, chrF and GLEU, with all of them;
perplexity counts every reference, whatever the batches. ``--baseline_predictions`` compares with another model's
``generated_predictions.txt``: by how much BLEU and the mean GLEU of a sentence are above, with 95% intervals.

``--alignment`` needs the gold word links of the phrasebook, ``--anchors_file`` brings phrases that translate each other
(and measures nothing else). The model reads the reference translations (forced decoding); each target word is linked to
the source word it attends to most, by every method, layer and head. ``alignment.md`` holds the table: alignment error
rate, precision and recall, or anchor accuracy, beside the diagonal and IBM Model 1. Layers and heads are chosen on the
validation split, or on every fifth anchored sentence, and measured on the others. ``--recommend`` writes the best
method, layer and head into the model's ``config.json``, where ``Translation.alignment`` finds them.
"""

import json
import re
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import HfArgumentParser

from hf_attn.data import load_pairs, phrasebook, text_words
from hf_attn.evaluation import (
    AnchoredPairs,
    Failure,
    GoldPairs,
    anchor_tokens,
    bleu_statistics,
    compare_aligners,
    corpus_perplexity,
    count_failures,
    evaluate_translations,
    format_table,
    gleu_statistics,
    load_anchors,
    paired_bootstrap,
    sentence_gleu_from_statistics,
)
from hf_attn.inference import Translator
from hf_attn.visualization import failure_sheet


@dataclass
class EvaluationArguments:
    """Which model is measured, on what."""

    model_name_or_path: str = field(metadata={"help": "Folder or Hub id of a translation model."})
    output_dir: str = field(metadata={"help": "Folder for the results; made if it does not exist."})
    test_file: str = field(
        default="", metadata={"help": "Pairs: .tsv, or JSON lines; also a folder or the name of a data set."}
    )
    phrasebook: str = field(
        default="", metadata={"help": "Measure on the embedded phrasebook instead: en-it, en-fr or en-ko."}
    )
    split: str | None = field(
        default=None, metadata={"help": "Split of the phrasebook (test if not given), of a folder or of a data set."}
    )
    source_lang: str = field(default="", metadata={"help": "Language code of the source, such as en."})
    target_lang: str = field(default="", metadata={"help": "Language code of the target, such as ko."})
    max_samples: int | None = field(default=None, metadata={"help": "Use only the first sentences."})
    num_beams: int = field(default=1, metadata={"help": "Width of the beam search; 1 is greedy search."})
    length_penalty: float = field(default=1.0, metadata={"help": "Exponent of the length in the score of a beam."})
    batch_size: int = field(default=64, metadata={"help": "Sentences that run together."})
    baseline_predictions: str = field(
        default="", metadata={"help": "Translations of the same sentences, one a line, to compare with."}
    )
    alignment: bool = field(default=False, metadata={"help": "Also measure the alignment error rate."})
    anchors_file: str = field(
        default="", metadata={"help": "Measure the alignment of these anchored sentences (JSON lines) instead."}
    )
    train_file: str = field(
        default="", metadata={"help": "Pairs from which IBM Model 1 learns, beside the anchored sentences."}
    )
    recommend: bool = field(
        default=False, metadata={"help": "Write the best way to read alignments into the model's config.json."}
    )
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )

    def __post_init__(self):
        if sum(map(bool, (self.test_file, self.phrasebook, self.anchors_file))) != 1:
            raise ValueError("give exactly one of test_file, phrasebook and anchors_file")
        if self.phrasebook:
            self.source_lang, _, self.target_lang = self.phrasebook.partition("-")
        if not self.source_lang or not self.target_lang:
            raise ValueError("test_file and anchors_file need source_lang and target_lang")
        if self.max_samples is not None and self.max_samples < 1:
            raise ValueError(f"max_samples={self.max_samples} must be at least 1")
        if self.alignment and not self.phrasebook:
            raise ValueError("alignment needs gold word links, which the phrasebook alone has: give phrasebook")
        if bool(self.anchors_file) != bool(self.train_file):
            raise ValueError("anchors_file and train_file go together: IBM Model 1 learns from both")
        if self.baseline_predictions and self.anchors_file:
            raise ValueError("baseline_predictions compares translations, of which anchors_file makes none")
        if self.recommend and not (self.alignment or self.anchors_file):
            raise ValueError("recommend needs a measured alignment: give alignment or anchors_file")
        if self.recommend and not Path(self.model_name_or_path, "config.json").is_file():
            raise ValueError(f"recommend needs a folder to write to, got model_name_or_path={self.model_name_or_path}")


def load_sentences(args: EvaluationArguments) -> tuple[list[str], list[list[str]], Dataset]:
    """Load the sources, the references of each, and the data set they come from."""
    if args.phrasebook:
        dataset = phrasebook(args.phrasebook, args.split or "test", args.max_samples)
    else:
        dataset = load_pairs(
            args.test_file, args.source_lang, args.target_lang, split=args.split, group_references=True
        )
        dataset = dataset.select(range(min(args.max_samples or len(dataset), len(dataset))))
    pairs = list(dataset["translation"])
    references = [[pair[args.target_lang]] for pair in pairs]
    if "references" in dataset.column_names:
        references = [list(some) for some in dataset["references"]]
    return [pair[args.source_lang] for pair in pairs], references, dataset


def measure_perplexity(
    translator: Translator, sources: list[str], references: list[list[str]], batch_size: int
) -> dict[str, Any]:
    """Compute the perplexity of all references."""
    pairs = [(source, target) for source, some in zip(sources, references, strict=True) for target in some]
    forced = translator.score(
        *map(list, zip(*pairs, strict=True)), batch_size=batch_size, return_attention=False, progress=True
    )
    log_probs = [sum(result.token_log_probs) for result in forced]
    return corpus_perplexity(log_probs, [len(result.token_log_probs) for result in forced])


def gold_pairs(args: EvaluationArguments, dataset: Dataset) -> GoldPairs:
    """Take texts and gold links out of a phrasebook."""
    sources, targets = (
        [pair[lang] for pair in dataset["translation"]] for lang in (args.source_lang, args.target_lang)
    )
    return GoldPairs(sources, targets, list(dataset["sure"]), list(dataset["possible"]))


def measure_alignment(translator: Translator, args: EvaluationArguments, dataset: Dataset | None) -> dict[str, Any]:
    """Measure every way to align words, on the phrasebook or on anchored sentences."""
    if dataset is not None:
        validation = gold_pairs(args, phrasebook(args.phrasebook, "validation", args.max_samples))
        test, train, split = gold_pairs(args, dataset), phrasebook(args.phrasebook, "train"), text_words
    else:
        anchored = load_anchors(args.anchors_file)[: args.max_samples]
        validation = AnchoredPairs(anchored[::5])
        test = AnchoredPairs([pair for number, pair in enumerate(anchored) if number % 5])
        train, split = load_pairs(args.train_file, args.source_lang, args.target_lang), anchor_tokens
    words = [(split(pair[args.source_lang]), split(pair[args.target_lang])) for pair in train["translation"]]
    score = partial(translator.score, batch_size=args.batch_size)
    return compare_aligners(score, validation, test, words)


def write_recommendation(model: Path, chosen: dict[str, Any]) -> None:
    """Write the chosen method, layer and heads into the configuration of a model of this package."""
    path = model / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {f"alignment_{name}": value for name, value in chosen.items()}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def measure_translation(
    translator: Translator, args: EvaluationArguments, sources: list[str], references: list[list[str]]
) -> tuple[dict[str, Any], list[str], list[list[Failure]]]:
    """Translate the sources; return the numbers, the translations, and what looks wrong with each."""
    started = time.perf_counter()
    translations = translator(
        sources,
        num_beams=args.num_beams,
        length_penalty=args.length_penalty,
        batch_size=args.batch_size,
        return_attention=False,
        progress=True,
    )
    seconds = time.perf_counter() - started
    texts = [translation.text for translation in translations]
    failures = [translation.failures(args.source_lang, args.target_lang) for translation in translations]
    results = {
        "num_beams": args.num_beams,
        **evaluate_translations(texts, references, target_lang=args.target_lang),
        "truncated": sum(translation.truncated for translation in translations),
        "failures": count_failures(failures),
        "with_unknown_words": sum("<unk>" in translation.target_tokens for translation in translations),
        "translation_seconds": round(seconds, 2),
        **measure_perplexity(translator, sources, references, args.batch_size),
    }
    return results, texts, failures


def load_baseline(path: str, sentences: int) -> list[str]:
    """Load another model's translations of as many sentences."""
    lines = Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(lines) != sentences:
        raise ValueError(f"baseline_predictions={path} has {len(lines)} lines for {sentences} sources")
    return lines


def compare_with_baseline(
    texts: list[str], baseline: list[str], references: list[list[str]], lang: str
) -> dict[str, dict[str, float]]:
    """Compute by how much BLEU and the mean GLEU of a sentence are above another model's, with 95% intervals."""
    bleu = [bleu_statistics(some, references, lang=lang) for some in (texts, baseline)]
    gleu = [gleu_statistics(some, references, lang=lang) for some in (texts, baseline)]
    return {
        "bleu": paired_bootstrap(*bleu),
        "sentence_gleu": paired_bootstrap(*gleu, score=sentence_gleu_from_statistics),
    }


def main(args: EvaluationArguments) -> dict[str, Any]:
    """Translate, measure, write and print; return the numbers."""
    sources, references, dataset = ([], [], None) if args.anchors_file else load_sentences(args)
    baseline = load_baseline(args.baseline_predictions, len(sources)) if args.baseline_predictions else []
    translator = Translator(args.model_name_or_path, trust_remote_code=args.trust_remote_code)
    if args.recommend and not translator.model.config.model_type.startswith("attn-"):
        raise ValueError("recommend needs a model of this package: no other reads what is recommended")
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)

    name = f"phrasebook {args.phrasebook} {args.split or 'test'}" if args.phrasebook else ""
    results: dict[str, Any] = {
        "model": args.model_name_or_path,
        "data": name or args.test_file or args.anchors_file,
    }
    if not args.anchors_file:
        numbers, texts, failures = measure_translation(translator, args, sources, references)
        results |= numbers
        if baseline:
            results["above_baseline"] = compare_with_baseline(texts, baseline, references, args.target_lang)
        langs = {"source_lang": args.source_lang, "target_lang": args.target_lang}
        failure_sheet(sources, texts, failures, references, **langs).save(folder / "failures.html")
        lines = [re.sub(r"[\r\n]+", " ", text) + "\n" for text in texts]
        folder.joinpath("generated_predictions.txt").write_text("".join(lines), encoding="utf-8", newline="\n")
    if args.alignment or args.anchors_file:
        results["alignment"] = measure_alignment(translator, args, dataset)
        table = format_table(results["alignment"]["table"])
        folder.joinpath("alignment.md").write_text(table + "\n", encoding="utf-8")
        if args.recommend:
            write_recommendation(Path(args.model_name_or_path), results["alignment"]["chosen"])

    report = json.dumps(results, ensure_ascii=False, indent=2)
    folder.joinpath("evaluation.json").write_text(report + "\n", encoding="utf-8")
    print(report)
    if "alignment" in results:
        print(table)
    return results


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(EvaluationArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
