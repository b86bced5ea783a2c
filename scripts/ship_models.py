"""Make the models that come with the repository, under space/models/, from trained folders; or measure them again.

    python scripts/ship_models.py --trained_dir out --data_dir data

    python scripts/ship_models.py --check --data_dir data

``space/models.yaml`` lists them. The first takes each from its folder as ``train_translation.py`` wrote it, stores it
in float16 with configuration, generation configuration and tokenizer (the installed package has the code), translates
the test set with the stored files, and writes the numbers into ``results.json`` and the model card; a model that does
something else is measured by the command that the YAML file has for it. The second measures the stored files again,
and fails if a number is not that of the card. Both take some minutes a model. ``data_dir`` holds the test files that
the YAML names; the phrasebook needs none. ``--models`` takes some of the models only.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from transformers import AutoConfig, HfArgumentParser

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.hub import model_card, save_tokenizer
from hf_attn.hub.card import task_card

ROOT = Path(__file__).resolve().parents[1]
MEGABYTES_EACH, MEGABYTES_TOGETHER = 16, 100
MEASURED = ("bleu", "chrf", "perplexity", "sentences", "num_beams", "bleu_signature", "chrf_signature")
# How far a number may be off on another processor, whose rounding can turn a tie in beam search.
TOLERANCE = {"bleu": 0.1, "chrf": 0.1, "perplexity": 0.01, "alignment_error_rate": 0.002}


@dataclass
class ShipArguments:
    """Which models, from where to where."""

    trained_dir: str = field(default="out", metadata={"help": "Folder of the trained folders."})
    output_dir: str = field(default=str(ROOT / "space" / "models"), metadata={"help": "Folder of the shipped models."})
    config: str = field(default=str(ROOT / "space" / "models.yaml"), metadata={"help": "YAML file of the models."})
    data_dir: str = field(default=".", metadata={"help": "Folder of the test files that the YAML file names."})
    models: list[str] | None = field(default=None, metadata={"help": "Some of the models; all if not given."})
    check: bool = field(default=False, metadata={"help": "Measure the shipped models again, and compare."})


def ship(name: str, args: ShipArguments, plan: dict[str, Any]) -> dict[str, Any]:
    """Store, measure and describe one model; give its numbers."""
    trained = Path(args.trained_dir, *name.rsplit("-", 1))
    state = json.loads((trained / "trainer_state.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, name)
        entry = plan["models"][name]
        parameters = store(trained, folder, entry.get("auto_class", "AutoModelForSeq2SeqLM"))
        if "recipe" in entry:
            recommend_alignment(name, folder)
        results = {
            "model": name,
            "recipe": entry.get("recipe"),
            "updates": state["global_step"],
            "parameters": parameters,
            "measured": measure(name, folder, args, plan),
        }
        (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        (folder / "README.md").write_text(card(name, folder, plan), encoding="utf-8")
        target = Path(args.output_dir, name)
        check_sizes(folder, target)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target)
    return results["measured"]


def store(trained: Path, folder: Path, auto_class: str) -> int:
    """Write weights in float16, configuration, generation configuration, tokenizer and image processor, as far as there
    are any, and no code; give the number of parameters."""
    model = getattr(transformers, auto_class).from_pretrained(trained, dtype=torch.float16)
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = True  # the Trainer turns it off
    vars(model.config).pop("auto_map", None)  # of code that is not stored
    model.save_pretrained(folder, include_code=False)
    if (trained / "tokenizer.json").is_file():
        save_tokenizer(trained, folder)
        path = folder / "tokenizer.json"  # without white space: a third smaller
        described = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(described, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    for name in ("preprocessor_config.json", "processor_config.json"):
        if (trained / name).is_file():
            shutil.copy(trained / name, folder)
    return model.num_parameters()


def recommend_alignment(name: str, folder: Path) -> None:
    """Write into the configuration which method, layer and head align best on the phrasebook's validation split."""
    if has_attention(folder):
        evaluate(folder, phrasebook=name.rsplit("-", 1)[0], alignment=True, recommend=True, max_samples=300)


def measure(name: str, folder: Path, args: ShipArguments, plan: dict[str, Any]) -> dict[str, Any]:
    """Measure the files of a folder: translations, and on the phrasebook the recommended alignment; of a model that
    does not translate, what its command measures."""
    entry = plan["models"][name]
    if "evaluate" in entry:
        with tempfile.TemporaryDirectory() as output:
            places = {"folder": folder, "data_dir": args.data_dir, "output": output}
            run_script([word.format(**places) for word in entry["evaluate"].split()])
            results = json.loads(Path(output, "all_results.json").read_text(encoding="utf-8"))
        return {score: results[score] for score in entry["scores"]}
    pair, data = name.rsplit("-", 1)[0], plan["data"][plan["models"][name]["data"]]
    test: dict[str, Any] = {"phrasebook": pair}
    if "test_file" in data:
        test = dict(zip(("source_lang", "target_lang"), pair.split("-")))
        test["test_file"] = Path(args.data_dir, data["test_file"])
    evaluation = evaluate(folder, **test, num_beams=plan["num_beams"])
    measured = {score: evaluation[score] for score in MEASURED}
    if has_attention(folder):
        rows = evaluate(folder, phrasebook=pair, alignment=True)["alignment"]["table"]
        (recommended,) = [row for row in rows if row["aligner"] == "recommended by the model"]
        measured["alignment_error_rate"] = recommended["alignment_error_rate"]
    return measured


def evaluate(folder: Path, **options: Any) -> dict[str, Any]:
    """Run ``evaluate_translation.py`` on a folder, and read what it wrote."""
    with tempfile.TemporaryDirectory() as output:
        options |= {"model_name_or_path": folder, "output_dir": output}
        words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
        run_script(["evaluate_translation.py", *words])
        return json.loads(Path(output, "evaluation.json").read_text(encoding="utf-8"))


def run_script(words: list[str]) -> None:
    """Run a script of this repository, named by the first word."""
    run = subprocess.run([sys.executable, str(ROOT / "scripts" / words[0]), *words[1:]], stdout=subprocess.DEVNULL)
    if run.returncode != 0:
        raise ValueError(f"could not be measured: {' '.join(words)}")


def has_attention(folder: Path) -> bool:
    """Tell whether the model has attention to the source."""
    return getattr(AutoConfig.from_pretrained(folder), "attention_type", None) != "none"


def card(name: str, folder: Path, plan: dict[str, Any]) -> str:
    """Write the model card from the numbers in ``results.json``."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    entry = plan["models"][name]
    if "evaluate" in entry:
        return task_card(
            name,
            description=entry["description"],
            use=entry["use"],
            data=plan["data"][entry["data"]],
            results=results | {"dtype": "float16"},
            scores=entry["scores"],
            metadata=entry["metadata"],
        )
    source, target, _ = name.split("-")
    return model_card(
        name,
        languages=(source, target),
        description=plan["recipes"][results["recipe"]],
        data=plan["data"][plan["models"][name]["data"]],
        results=results | {"dtype": "float16"},
        has_attention=has_attention(folder),
    )


def check_sizes(folder: Path, target: Path) -> None:
    """Refuse a model that is too large for the repository, alone or with the others."""

    def megabytes(path: Path) -> float:
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6

    others = sum(megabytes(other) for other in target.parent.glob("*/") if other.name != target.name)
    size = megabytes(folder)
    if size > MEGABYTES_EACH or size + others > MEGABYTES_TOGETHER:
        raise ValueError(
            f"{target.name} has {size:.1f} MB and the other models {others:.1f} MB; "
            f"allowed are {MEGABYTES_EACH} MB each and {MEGABYTES_TOGETHER} MB together"
        )


def find_differences(name: str, args: ShipArguments, plan: dict[str, Any]) -> list[str]:
    """Measure a shipped model again; say what is not as its card says."""
    folder = Path(args.output_dir, name)
    if not (folder / "results.json").is_file():
        return [f"{name}: there is no results.json in {folder}"]
    entry, differences = plan["models"][name], []
    if (folder / "README.md").read_text(encoding="utf-8") != card(name, folder, plan):
        differences.append(f"{name}: README.md is not the card of results.json")
    written = json.loads((folder / "results.json").read_text(encoding="utf-8"))["measured"]
    measured = measure(name, folder, args, plan)
    for score in written | measured:
        old, new = written.get(score), measured.get(score)
        close = False
        if isinstance(old, (int, float)) and isinstance(new, (int, float)):
            close = abs(new - old) <= TOLERANCE.get(score, 0.005 * abs(old) if "evaluate" in entry else 0)
        if old != new and not close:
            differences.append(f"{name}: {score} is {new}, the card says {old}")
    return differences


def main(args: ShipArguments) -> None:
    """Ship the models, or check them."""
    plan = yaml.safe_load(Path(args.config).read_text(encoding="utf-8"))
    names = args.models or list(plan["models"])
    unknown = [name for name in names if name not in plan["models"]]
    if unknown:
        raise ValueError(f"models has {', '.join(unknown)}; {args.config} lists {', '.join(plan['models'])}")
    differences = []
    for name in names:
        if args.check:
            found = find_differences(name, args, plan)
            differences += found
            print("\n".join(found) or f"{name}: as its card says", flush=True)
        else:
            scores = ship(name, args, plan)
            shown = ("bleu", "chrf") if "bleu" in scores else scores
            print(f"{name}: {', '.join(f'{score} {scores[score]:.4g}' for score in shown)}", flush=True)
    if differences:
        raise ValueError(f"{len(differences)} numbers are not those of the cards")


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(ShipArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
