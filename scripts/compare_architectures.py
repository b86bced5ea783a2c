"""Compare architectures under the same conditions: data, tokenizer, batches and updates are shared, the model is not.

    python scripts/compare_architectures.py --quick --output_dir out/quick

    python scripts/compare_architectures.py --config scripts/compare_tatoeba.yaml --data_dir data --output_dir out/fr

The first trains five tiny models on the embedded phrasebook, in less than ten minutes on two cores; the second takes
about three hours there. A YAML file names the data, the tokenizer, the training arguments, the models and what is
measured. Each model is trained by ``train_translation.py`` into ``<output_dir>/<model>`` and measured by
``evaluate_translation.py``, in processes of their own, ``jobs`` models at a time. Run the same command again to go on
after an interruption: finished models are kept, others resume from their last checkpoint. A finished folder that
``train_translation.py`` made with the same settings may be put there, too.

The output folder then holds ``comparison.md`` (the table), ``comparison.json`` (all numbers), ``learning_curves.png``,
``length.png``, ``seconds.png`` and, where the data has gold word links, ``alignment.png``.
"""

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml
from datasets import Dataset
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, HfArgumentParser, PreTrainedTokenizerFast

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data import load_pairs, phrasebook, tokenize_pairs, train_tokenizer
from hf_attn.evaluation import (
    bleu_by_length,
    bleu_statistics,
    bootstrap_bleu,
    format_table,
    learning_curve,
    paired_bootstrap,
)
from hf_attn.training import get_recipe, pair_lengths
from hf_attn.training.arguments import parse_overrides
from hf_attn.training.recipes import hardware_defaults
from hf_attn.visualization import head_error_rates, learning_curves, quality_by_length, training_seconds

SCRIPTS = Path(__file__).resolve().parent
QUICK = SCRIPTS / "compare_quick.yaml"
FILES = ("train_file", "validation_file", "test_file")


@dataclass
class CompareArguments:
    """Which comparison, with which files."""

    output_dir: str = field(metadata={"help": "Folder for models and results; made if it does not exist."})
    config: str | None = field(default=None, metadata={"help": "YAML file that describes the comparison."})
    quick: bool = field(default=False, metadata={"help": f"Take {QUICK.name}: the phrasebook, a few minutes."})
    data_dir: str = field(default=".", metadata={"help": "Folder of the data files that the YAML file names."})

    def __post_init__(self):
        if bool(self.config) == self.quick:
            raise ValueError("give exactly one of config and quick")


@dataclass
class Comparison:
    """What the YAML file says."""

    data: dict[str, Any]  # phrasebook; or source_lang, target_lang and the three files
    tokenizer: dict[str, Any]  # of hf_attn.data.train_tokenizer
    arguments: dict[str, Any]  # of train_translation.py, for every model
    models: dict[str, dict[str, Any]]  # by name: recipe, and further arguments of train_translation.py
    run: dict[str, int]  # jobs: models at a time; threads of each
    evaluation: dict[str, Any]  # num_beams, max_samples, lengths (the shortest of each range of source lengths)
    differences: list[dict[str, Any]]  # system, baseline, and shortest: only sources of so many words or more


def read_comparison(args: CompareArguments) -> Comparison:
    """Read the YAML file, and find the data files that it names."""
    path = Path(args.config) if args.config else QUICK
    try:
        comparison = Comparison(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except TypeError as error:
        raise ValueError(f"{path} must have the keys {', '.join(Comparison.__annotations__)}: {error}") from error
    data = comparison.data
    for name in FILES if "phrasebook" not in data else ():
        data[name] = str(Path(args.data_dir, data[name]))
        if not Path(data[name]).is_file():
            raise ValueError(f"{name}: there is no file {data[name]}; give the folder with data_dir")
    if "phrasebook" in data:
        data["source_lang"], _, data["target_lang"] = data["phrasebook"].partition("-")
    needed = {"arguments": ["max_steps"], "run": ["jobs", "threads"], "evaluation": ["num_beams", "lengths"]}
    missing = [f"{part}.{key}" for part, keys in needed.items() for key in keys if key not in getattr(comparison, part)]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}")
    for name in {model for pair in comparison.differences for model in (pair["system"], pair["baseline"])}:
        if name not in comparison.models:
            raise ValueError(f"{path}: differences names {name!r}; models has {', '.join(comparison.models)}")
    return comparison


def load_split(comparison: Comparison, split: str) -> Dataset:
    """Load the training pairs, or the test sources with all their references."""
    data = comparison.data
    size = (
        comparison.arguments.get("max_train_samples") if split == "train" else comparison.evaluation.get("max_samples")
    )
    if "phrasebook" in data:
        return phrasebook(data["phrasebook"], split, size)
    languages = (data["source_lang"], data["target_lang"])
    pairs = load_pairs(data[f"{split}_file"], *languages, group_references=split == "test")
    return pairs.select(range(min(size or len(pairs), len(pairs))))


def share_tokenizer(folder: Path, comparison: Comparison, train: Dataset) -> PreTrainedTokenizerFast:
    """Train the tokenizer of all models as ``train_translation.py`` would, or load it from an earlier call."""
    if not folder.is_dir():
        languages = (comparison.data["source_lang"], comparison.data["target_lang"])
        texts = [pair[lang] for lang in languages for pair in train["translation"]]
        train_tokenizer(texts, **comparison.tokenizer).save_pretrained(str(folder))
    return AutoTokenizer.from_pretrained(folder)


def train_and_evaluate(
    name: str, comparison: Comparison, output: Path, tokenizer: PreTrainedTokenizerFast, sentences: int
) -> None:
    """Do what is left to do of one model."""
    folder, data, evaluation = output / name, comparison.data, comparison.evaluation
    if "eval_loss" not in read_json(folder / "all_results.json"):
        print(f"{name}: training; see {output / name}.log", flush=True)
        words: dict[str, Any] = comparison.arguments | comparison.models[name]
        words |= {"tokenizer_name": output / "tokenizer", "output_dir": folder, "do_predict": False}
        words |= {key: value for key, value in data.items() if key != "test_file"}
        run_script("train_translation", words, output / f"{name}.log", comparison)
    check_same_conditions(name, folder, comparison, tokenizer)
    before = read_json(folder / "test" / "evaluation.json")
    if (before.get("num_beams"), before.get("sentences")) != (evaluation["num_beams"], sentences):
        print(f"{name}: translating the test set", flush=True)
        aligned = "phrasebook" in data and getattr(AutoConfig.from_pretrained(folder), "attention_type", "") != "none"
        words = {"model_name_or_path": folder, "output_dir": folder / "test", "alignment": aligned}
        words |= {"num_beams": evaluation["num_beams"], "max_samples": evaluation.get("max_samples")}
        words |= {"phrasebook": data["phrasebook"]} if "phrasebook" in data else {"test_file": data["test_file"]}
        words |= {"source_lang": data["source_lang"], "target_lang": data["target_lang"]}
        run_script("evaluate_translation", words, output / f"{name}.log", comparison)


def run_script(script: str, arguments: dict[str, Any], log: Path, comparison: Comparison) -> None:
    """Run another script in its own process, with the threads that a model may use."""
    words = [word for name, value in arguments.items() if value is not None for word in (f"--{name}", str(value))]
    environment = os.environ | {"OMP_NUM_THREADS": str(comparison.run["threads"]), "TOKENIZERS_PARALLELISM": "false"}
    with log.open("a", encoding="utf-8") as file:
        command = [sys.executable, str(SCRIPTS / f"{script}.py"), *words]
        process = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
    if process.returncode != 0:
        end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise ValueError(f"{script}.py ended with {process.returncode}; {log} ends with\n{end}")


def check_same_conditions(name: str, folder: Path, comparison: Comparison, tokenizer: PreTrainedTokenizerFast) -> None:
    """Refuse a model that was not trained as the YAML file says."""
    model, state = comparison.models[name], read_json(folder / "trainer_state.json")
    recipe = get_recipe(model["recipe"])
    expected = recipe.config | parse_overrides(model.get("config_overrides"))
    config = AutoConfig.from_pretrained(folder)
    wrong = [f"{key}={getattr(config, key, None)}" for key in expected if getattr(config, key, None) != expected[key]]
    if state["global_step"] != comparison.arguments["max_steps"]:
        wrong.append(f"{state['global_step']} updates")
    if AutoTokenizer.from_pretrained(folder).get_vocab() != tokenizer.get_vocab():
        wrong.append("another tokenizer")
    if config.model_type != recipe.model_type or wrong:
        raise ValueError(f"{folder} is not the model that the YAML file describes: {config.model_type}, {wrong}")


def measure(folder: Path, comparison: Comparison, test: Dataset, target_tokens: int) -> tuple[dict[str, Any], Any]:
    """Put the numbers of a finished model together; also give what BLEU counts of each test sentence."""
    lang, evaluation = comparison.data["target_lang"], read_json(folder / "test" / "evaluation.json")
    references = test["references"] if "references" in test.column_names else [p[lang] for p in test["translation"]]
    texts = (folder / "test" / "generated_predictions.txt").read_text(encoding="utf-8").split("\n")[:-1]
    statistics = bleu_statistics(texts, list(references), lang=lang)
    state = read_json(folder / "trainer_state.json")
    curve = learning_curve(state["log_history"])
    results = {
        **bootstrap_bleu(statistics),
        **{name: evaluation[name] for name in ("chrf", "perplexity", "bleu_signature", "chrf_signature")},
        "seconds": curve["total_seconds"],
        "target_tokens_per_second": target_tokens * state["epoch"] / curve["total_seconds"],
        "parameters": AutoModelForSeq2SeqLM.from_pretrained(folder).num_parameters(),
        "by_length": bleu_by_length(statistics, source_lengths(comparison, test), comparison.evaluation["lengths"]),
        "curve": curve,
    }
    if "alignment" in evaluation:
        chosen, rates = evaluation["alignment"]["chosen"], evaluation["alignment"]["by_layer_and_head"]
        results["alignment"] = {"chosen": chosen, "error_rates": rates_by_layer(rates[chosen["method"]])}
    return results, statistics


def source_lengths(comparison: Comparison, test: Dataset) -> list[int]:
    """Count the words of each test source: what blanks separate."""
    return [len(pair[comparison.data["source_lang"]].split()) for pair in test["translation"]]


def rates_by_layer(rates: dict[str, float]) -> list[list[float]]:
    """Turn "layer 1, mean of heads", "layer 1, head 1", ... into rows of layers, the mean at the end of each."""
    layers: dict[str, list[float]] = {}
    for name, rate in rates.items():
        layers.setdefault(name.partition(",")[0], []).append(rate)
    return [[*heads, mean] for mean, *heads in layers.values()]


def describe_run(comparison: Comparison) -> str:
    """Say on what the seconds were measured."""
    jobs, threads = comparison.run["jobs"], comparison.run["threads"]
    machine = f"{os.cpu_count()} {platform.machine()} cores"
    if torch.cuda.is_available():
        machine = torch.cuda.get_device_name()
    precision = "bfloat16" if comparison.arguments.get("bf16", hardware_defaults()["bf16"]) else "float32"
    return f"{jobs} models at a time, {threads} thread{'s' * (threads > 1)} each, on {machine}, {precision}"


def write_table(report: dict[str, Any], comparison: Comparison) -> str:
    """Write the Markdown table and the differences."""
    rows = []
    for name, model in report["models"].items():
        long = model["by_length"][-1]
        row = {
            "model": name,
            "recipe": comparison.models[name]["recipe"],
            "BLEU": f"{model['bleu']:.1f} ({model['low']:.1f} to {model['high']:.1f})",
            f"BLEU, sources of {long['range']} words": f"{long['bleu']:.1f} ({long['low']:.1f} to {long['high']:.1f})",
            "chrF": f"{model['chrf']:.1f}",
            "perplexity": f"{model['perplexity']:.2f}",
            "seconds": f"{'' if model['curve']['clocked'] else 'about '}{model['seconds']:,.0f}",
            "target tokens a second": f"{model['target_tokens_per_second']:,.0f}",
            "parameters": f"{model['parameters']:,}",
        }
        rows.append(row)
    data, beams = comparison.data, comparison.evaluation["num_beams"]
    lines = [
        format_table(rows),
        "",
        f"{report['sentences']} test sentences {data['source_lang']}-{data['target_lang']}, {beams} beams; "
        f"{report['updates']:,} updates each. BLEU with 95% interval (bootstrap, Koehn 2004). "
        f"Seconds of training without evaluations: {report['run']}.",
        "",
    ]
    for pair in report["differences"]:
        part = f", sources of {pair['shortest']} words or more" if "shortest" in pair else ""
        lines.append(
            f"- {pair['system']} against {pair['baseline']}{part} ({pair['sentences']} sentences): "
            f"{pair['difference']:+.1f} BLEU, 95% interval {pair['low']:+.1f} to {pair['high']:+.1f}"
        )
    return "\n".join(lines) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file; an empty dictionary if there is none yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def main(args: CompareArguments) -> dict[str, Any]:
    """Train, evaluate, compare, write and draw; return the numbers."""
    comparison, output = read_comparison(args), Path(args.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    train, test = load_split(comparison, "train"), load_split(comparison, "test")
    tokenizer = share_tokenizer(output / "tokenizer", comparison, train)
    with ThreadPoolExecutor(comparison.run["jobs"]) as pool:
        work = [
            pool.submit(train_and_evaluate, name, comparison, output, tokenizer, len(test))
            for name in comparison.models
        ]
    for done in work:
        done.result()  # raises what went wrong

    languages = (comparison.data["source_lang"], comparison.data["target_lang"])
    target_tokens = int(pair_lengths(tokenize_pairs(train, tokenizer, *languages))[1].sum())
    models, statistics = {}, {}
    for name in comparison.models:
        models[name], statistics[name] = measure(output / name, comparison, test, target_tokens)
    differences = []
    for pair in comparison.differences:
        rows = [length >= pair.get("shortest", 0) for length in source_lengths(comparison, test)]
        result = paired_bootstrap(statistics[pair["system"]][rows], statistics[pair["baseline"]][rows])
        differences.append({**pair, "sentences": sum(rows), **result})

    report = {
        "comparison": asdict(comparison),
        "run": describe_run(comparison),
        "updates": comparison.arguments["max_steps"],
        "sentences": len(test),
        "models": models,
        "differences": differences,
    }
    (output / "comparison.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    table = write_table(report, comparison)
    (output / "comparison.md").write_text(table, encoding="utf-8")
    learning_curves({name: model["curve"] for name, model in models.items()}).savefig(output / "learning_curves.png")
    quality_by_length({name: model["by_length"] for name, model in models.items()}).savefig(output / "length.png")
    training_seconds({name: model["seconds"] for name, model in models.items()}).savefig(output / "seconds.png")
    aligned = {name: model["alignment"] for name, model in models.items() if "alignment" in model}
    if aligned:
        titles = {f"{name}, {read['chosen']['method']}": read["error_rates"] for name, read in aligned.items()}
        head_error_rates(titles).savefig(output / "alignment.png")
    print(table)
    return report


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(CompareArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
