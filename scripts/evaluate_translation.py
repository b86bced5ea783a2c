"""Measure a translation model: BLEU, chrF, perplexity, and how well its attention aligns words.

    python scripts/evaluate_translation.py --model_name_or_path out/ko --phrasebook en-ko --alignment \
        --output_dir out/ko/test

    python scripts/evaluate_translation.py --model_name_or_path out/fr --source_lang en --target_lang fr \
        --test_file test.tsv --num_beams 4 --output_dir out/fr/test

writes ``evaluation.json`` and ``generated_predictions.txt`` into the output folder and prints the numbers, within a
minute for a small model and 1,000 sentences on two cores. Sentences that have several references count once in BLEU and
chrF, with all of them; perplexity counts every reference, whatever the batches.

``--alignment`` needs the gold word links of the phrasebook. The model reads the reference translations (forced
decoding); each target word is linked to the source word it attends to most. Layer and head are chosen on the validation
split, and the alignment error rate is reported on the split that is measured, beside that of the diagonal.
"""

import json
import re
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import HfArgumentParser

from hf_attn.data import load_pairs, phrasebook
from hf_attn.evaluation import (
    alignment_scores,
    corpus_perplexity,
    diagonal_links,
    evaluate_translations,
    links_from_weights,
)
from hf_attn.inference import Translator

Links = set[tuple[int, int]]
Place = tuple[int, int | None]  # layer and head, from 0; None is the mean of all heads


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
    alignment: bool = field(default=False, metadata={"help": "Also measure the alignment error rate."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code that comes with a model; only for sources you trust."}
    )

    def __post_init__(self):
        if bool(self.test_file) == bool(self.phrasebook):
            raise ValueError("give exactly one of test_file and phrasebook")
        if self.phrasebook:
            self.source_lang, _, self.target_lang = self.phrasebook.partition("-")
        if not self.source_lang or not self.target_lang:
            raise ValueError("test_file needs source_lang and target_lang")
        if self.max_samples is not None and self.max_samples < 1:
            raise ValueError(f"max_samples={self.max_samples} must be at least 1")
        if self.alignment and not self.phrasebook:
            raise ValueError("alignment needs gold word links, which the phrasebook alone has: give phrasebook")


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


def find_links(
    translator: Translator, args: EvaluationArguments, dataset: Dataset
) -> tuple[dict[Place, list[Links]], list[Links]]:
    """Link the words of reference translations by the attention of every layer and head, and by the diagonal."""
    links: dict[Place, list[Links]] = defaultdict(list)
    diagonal = []
    for start in range(0, len(dataset), 200):  # the weights of a whole test set may not fit into memory
        pairs = dataset[start : start + 200]["translation"]
        sources, targets = ([pair[lang] for pair in pairs] for lang in (args.source_lang, args.target_lang))
        for forced in translator.score(sources, targets, batch_size=args.batch_size):
            words = forced.alignment()
            diagonal.append(diagonal_links(len(words.source_words) - 1, len(words.target_words) - 1))
            layers, heads = forced.cross_attentions.shape[:2]
            for layer in range(layers):
                for head in [None, *range(heads)] if heads > 1 else [None]:
                    weights = forced.alignment(layer=layer, heads=head).weights
                    links[layer, head].append(links_from_weights(weights))
    return links, diagonal


def measure_alignment(translator: Translator, args: EvaluationArguments, dataset: Dataset) -> dict[str, Any]:
    """Choose layer and head on the validation split, and measure them beside the default and the diagonal."""

    def errors(hypotheses: list[Links], gold: Dataset) -> dict[str, Any]:
        return alignment_scores(hypotheses, list(gold["sure"]), list(gold["possible"]))

    validation = phrasebook(args.phrasebook, "validation", args.max_samples)
    rates = {
        place: errors(hypotheses, validation)["alignment_error_rate"]
        for place, hypotheses in find_links(translator, args, validation)[0].items()
    }
    best = min(rates, key=rates.__getitem__)
    links, diagonal = find_links(translator, args, dataset)
    last = (max(layer for layer, _ in links), None)
    return {
        "chosen_on_validation": name_of(best),
        "chosen": errors(links[best], dataset),
        "last_layer_all_heads": errors(links[last], dataset),
        "diagonal": errors(diagonal, dataset),
        "validation_error_rates": {name_of(place): rate for place, rate in rates.items()},
        "error_rates": {name_of(p): errors(found, dataset)["alignment_error_rate"] for p, found in links.items()},
    }


def name_of(place: Place) -> str:
    """Name a layer and head as pictures do, counting from 1."""
    layer, head = place
    return f"layer {layer + 1}, {'mean of heads' if head is None else f'head {head + 1}'}"


def main(args: EvaluationArguments) -> dict[str, Any]:
    """Translate, measure, write and print; return the numbers."""
    sources, references, dataset = load_sentences(args)
    translator = Translator(args.model_name_or_path, trust_remote_code=args.trust_remote_code)

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
    results: dict[str, Any] = {
        "model": args.model_name_or_path,
        "data": args.test_file or f"phrasebook {args.phrasebook} {args.split or 'test'}",
        "num_beams": args.num_beams,
        **evaluate_translations(texts, references, target_lang=args.target_lang),
        "truncated": sum(translation.truncated for translation in translations),
        "with_unknown_words": sum("<unk>" in translation.target_tokens for translation in translations),
        "translation_seconds": round(seconds, 2),
        **measure_perplexity(translator, sources, references, args.batch_size),
    }
    if args.alignment:
        results["alignment"] = measure_alignment(translator, args, dataset)

    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [re.sub(r"[\r\n]+", " ", text) for text in texts]
    folder.joinpath("generated_predictions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    report = json.dumps(results, ensure_ascii=False, indent=2)
    folder.joinpath("evaluation.json").write_text(report + "\n", encoding="utf-8")
    print(report)
    return results


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(EvaluationArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
