# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Publish a trained model: the folder of a training run becomes a repository of the Hub, or a folder like one.

A publication is built whole in a temporary folder, and then moved or uploaded at once. It holds the weights, the code
that reads them, configuration, tokenizers, the model card, `results.json` and, for a benchmark of the Hub,
`.eval_results/`. Checkpoints, optimizer and the pickled arguments of the run stay where they are.
Read next: `card.py`.
"""

import copy
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformers
import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
from huggingface_hub.utils import validate_repo_id
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from ..inference.loading import TARGET_TOKENIZER
from .card import (
    LANGUAGES,
    TRANSFORMERS,
    auto_class_code,
    model_card,
    paragraph,
    plain,
    translator_code,
)
from .upload import check_token, upload

RESULTS = "results.json"
MEASURED = (  # of a split, in all_results.json
    *("bleu", "chrf", "sentences", "num_beams", "empty", "brevity_penalty", "bleu_signature", "chrf_signature", "note"),
)
SHAPE = (  # fields of a configuration that a card shows
    *("rnn_type", "bidirectional", "bidirectional_layers", "residual"),
    *("attention_type", "score_function", "position_type", "norm_first", "norm_type"),
    *("hidden_size", "d_model", "embedding_size", "attention_size", "encoder_layers", "decoder_layers"),
    *("encoder_attention_heads", "decoder_attention_heads", "encoder_intermediate_size", "encoder_ffn_dim"),
    *("encoder_kernel_size", "decoder_kernel_size", "dropout"),
)
DESCRIPTIONS = {
    "none": "A recurrent encoder-decoder without attention, after Sutskever et al. 2014 and Cho et al. 2014.",
    "bahdanau": "A recurrent encoder-decoder with attention, after Bahdanau et al. 2015.",
    "luong": "A recurrent encoder-decoder with attention, after Luong et al. 2015.",
    "gnmt": "A deep recurrent encoder-decoder with attention, after Wu et al. 2016.",
    "attn-convs2s": "A convolutional encoder-decoder with attention in every layer, after Gehring et al. 2017.",
    "attn-transformer": "A Transformer, after Vaswani et al. 2017.",
}
EXAMPLES = {
    **{"de": "Wo ist der Bahnhof?", "en": "Where is the station?", "es": "¿Dónde está la estación?"},
    **{"fr": "Où est la gare ?", "it": "Dov'è la stazione?", "ko": "역이 어디예요?"},
}
PHRASEBOOK = {
    "data_name": "hf_attn phrasebook",
    "data_license": "apache-2.0",
    "attribution": "The phrasebook is part of hf_attn: a grammar draws its sentences.",
    "example": "The old man reads a book.",
    "test_set": "the phrasebook's test split (sentences that the training split does not have)",
    "limits": "It knows the phrasebook and nothing else: some hundred words, and the sentences that one grammar makes "
    "of them. Any other word or construction gives nonsense, and the scores say nothing about real text.",
}
LIMITS = (
    "Nothing has been measured besides the scores above. Rare words, names, numbers and long sentences go wrong most "
    "often, the model repeats what its data says about people, and it never says that it does not know. One sentence a "
    "line."
)


@dataclass
class About:
    """What a run cannot know about itself."""

    license: str = field(
        metadata={"help": "Licence of the weights, as the Hub writes it: apache-2.0, cc-by-4.0, ..., other or unknown."}
    )
    license_name: str = field(default="", metadata={"help": "Name of the licence, with license=other."})
    license_link: str = field(default="", metadata={"help": "Link to its text, with license=other."})
    source_lang: str = field(default="", metadata={"help": "Language code of the source; the run's if not given."})
    target_lang: str = field(default="", metadata={"help": "Language code of the target; the run's if not given."})
    data_name: str = field(
        default="", metadata={"help": "What the training data is called; the phrasebook needs none."}
    )
    data_id: str = field(default="", metadata={"help": "Its name on the Hub, owner/name, if it is there."})
    data_license: str = field(default="", metadata={"help": "Its licence."})
    attribution: str = field(default="", metadata={"help": "Who made the data, as its licence asks; Markdown."})
    test_set: str = field(default="", metadata={"help": "What the test set is; of the same data if not given."})
    eval_task: str = field(
        default="",
        metadata={"help": "If data_id is a benchmark of the Hub: the task in its eval.yaml that BLEU answers."},
    )
    description: str = field(default="", metadata={"help": "A sentence that says what the model is; Markdown."})
    example: str = field(default="", metadata={"help": "A sentence that the code in the card translates."})
    limits: str = field(default="", metadata={"help": "What the model cannot do; Markdown."})

    def __post_init__(self):
        if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", self.license):
            raise ValueError(
                f"license={self.license!r} is no licence of the Hub: write apache-2.0, cc-by-4.0, ..., other or unknown"
            )
        if self.license_name and not (self.license == "other" and self.license_link):
            raise ValueError(f"license_name={self.license_name!r} goes with license=other and a license_link")
        if self.license_link and not re.fullmatch(r"https?://[^\s()<>]+", self.license_link):
            raise ValueError(f"license_link={self.license_link!r} must be a web address")
        if self.data_id:
            check_id("data_id", self.data_id)
        if self.eval_task and not self.data_id:
            raise ValueError(
                f"eval_task={self.eval_task!r} is a task of a benchmark: give data_id, its name on the Hub"
            )


@dataclass(frozen=True)
class Publication:
    """What was published, or would be.

    Args:
        location: the folder, or the link to the repository; None after a dry run.
        files: bytes of each file, by its path.
        card: the text of the model card.
        notes: what the publication lacks, and why.
    """

    location: str | None
    files: dict[str, int]
    card: str
    notes: list[str]


def publish(
    folder: str | Path,
    *,
    repo_id: str | None = None,
    local_dir: str | Path | None = None,
    private: bool = True,
    revision: str | None = None,
    commit_message: str | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    **about: str,
) -> Publication:
    """Publish a trained model with its code, tokenizers and model card.

    Args:
        folder: as `scripts/train_translation.py` wrote it, or one of its checkpoints.
        repo_id: owner/name of a repository of the Hub, made if it does not exist. The token is the one that
            huggingface_hub finds: HF_TOKEN, or that of `hf auth login`.
        local_dir: a folder to write instead. Exactly one of both must be given.
        private: whether a new repository is private; one that exists stays as it is.
        revision: branch of the repository, made if it does not exist.
        commit_message: of the upload.
        overwrite: replace a folder, or write into a repository, that holds something else than a publication.
        dry_run: write and upload nothing.
        **about: fields of `About`: `license`, which is required, languages, data, attribution, ...

    Returns:
        Where it is, its files and its card.

    Raises:
        ValueError: the folder holds no finished model, an argument is missing or wrong, or the destination is taken.
        OSError: the upload did not succeed.
    """
    folder, details = Path(folder).expanduser(), About(**about)
    if (repo_id and local_dir) or not (repo_id or local_dir or dry_run):
        raise ValueError("give exactly one of repo_id and local_dir")
    target = Path(local_dir).expanduser().resolve() if local_dir else None
    if repo_id:
        check_id("repo_id", repo_id)
        if not dry_run:
            check_token()
    if target:
        _check_target(target, folder.resolve(), overwrite)
    with _workplace(None if dry_run else target) as place:
        built = place / (target or folder.resolve()).name
        card, notes = build(folder, built, repo_id or built.name, details)
        files = {path: (built / path).stat().st_size for path in list_files(built)}
        location = None
        if target and not dry_run:
            _move(built, target)
            location = str(local_dir)
        elif repo_id and not dry_run:
            message = commit_message or "Publish a translation model of hf_attn"
            location, note = upload(built, list(files), repo_id, private, revision, message, overwrite)
            notes += note
    return Publication(location, files, card, notes)


def build(folder: Path, target: Path, address: str, about: About) -> tuple[str, list[str]]:
    """Write all files of a publication into a new folder.

    Args:
        folder: of the run.
        target: to be made.
        address: the Hub id, or the name of the folder, under which the card's code opens it.
        about: what the run does not know.

    Returns:
        The card, and what the publication lacks.
    """
    model = _load(folder)
    state = _read_json(folder, "trainer_state.json")
    record, results = (
        _read_json(folder, name) if (folder / name).is_file() else {} for name in ("run.json", "all_results.json")
    )
    _complete(about, record)
    has_code = type(model).__module__.startswith("hf_attn.")
    model.config.use_cache = True  # the Trainer turns it off
    model.save_pretrained(target)
    separate = (folder / TARGET_TOKENIZER).is_dir()
    save_tokenizer(folder, target)
    if separate:
        save_tokenizer(folder / TARGET_TOKENIZER, target / TARGET_TOKENIZER)
    numbers: dict[str, Any] = {
        "model": address,
        "recipe": record.get("recipe") if not record.get("trained_further") else None,
        "updates": state["global_step"],
        "parameters": model.num_parameters(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "measured": _measured(results, "predict"),
        "validation": _measured(results, "eval"),
        "training": _training(state, results),
        "settings": _settings(record, model.config),
        "versions": record.get("versions", {}),
    }
    notes = []
    if not numbers["measured"]:
        notes.append("no scores of a test set: the run translated none (give train_translation.py a test_file)")
    if about.eval_task and "bleu" in numbers["measured"]:
        _write_eval_results(target, about, numbers["measured"])
    elif about.eval_task:
        notes.append("no .eval_results: the run has no BLEU of a test set")
    beams = (numbers["measured"] or numbers["validation"]).get("num_beams")
    use = _use(address, model.config, beams, about, has_code, separate)
    card = _card(address, numbers, about, model.config, use, has_code, record)
    (target / "README.md").write_text(card, encoding="utf-8", newline="\n")
    numbers["files"] = sorted([*list_files(target), RESULTS])
    (target / RESULTS).write_text(json.dumps(numbers, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _check_paths(target, folder)
    return card, notes


def save_tokenizer(source: Path | PreTrainedTokenizerBase, target: Path) -> None:
    """Save a tokenizer, or copy that of a folder, without what it remembers of where it was loaded from."""
    loaded = isinstance(source, PreTrainedTokenizerBase)
    tokenizer = copy.deepcopy(source) if loaded else AutoTokenizer.from_pretrained(source)
    for name in ("local_files_only", "is_local", "name_or_path", "tokenizer_file", "vocab_file", "cache_dir", "token"):
        tokenizer.init_kwargs.pop(name, None)
    tokenizer.name_or_path = ""
    tokenizer.save_pretrained(str(target))


def list_files(folder: Path) -> list[str]:
    """List the files of a folder and its sub-folders, by their paths in it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def check_id(argument: str, name: str) -> None:
    """Refuse what cannot be the name of a repository with its owner."""
    try:
        validate_repo_id(name)
    except ValueError as error:
        raise ValueError(f"{argument}={name!r} is no name on the Hub: {error}") from error
    if name.count("/") != 1:
        raise ValueError(f"{argument}={name!r} must be owner/name")


def _load(folder: Path) -> PreTrainedModel:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    for name in ("config.json", "trainer_state.json", "tokenizer.json"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} holds no finished training run: there is no {name}")
    try:
        config = AutoConfig.from_pretrained(folder)
        if type(config) in AutoModelForSeq2SeqLM._model_mapping:
            return AutoModelForSeq2SeqLM.from_pretrained(folder)
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{folder} holds no model that can be opened: {' '.join(str(error).split())}") from error
    raise ValueError(f"{folder} holds a model of type {config.model_type!r}, which does not translate")


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / name} cannot be read: {error}") from error


def _complete(about: About, record: dict[str, Any]) -> None:
    """Fill what was not given from the record of the run, and ask for what nothing tells."""
    if record.get("phrasebook"):
        for name, value in PHRASEBOOK.items():
            setattr(about, name, getattr(about, name) or value)
    for name in ("source_lang", "target_lang"):
        setattr(about, name, getattr(about, name) or record.get(name, ""))
        if not getattr(about, name):
            raise ValueError(f"{name} is missing, and the folder has no run.json that says it: give a language code")
    about.data_name = " ".join((about.data_name or about.data_id or record.get("dataset_name") or "").split())
    if not about.data_name:
        raise ValueError("data_name is missing: say what the training data is called")
    source = LANGUAGES.get(about.source_lang, about.source_lang)
    about.example = about.example or EXAMPLES.get(about.source_lang, f"A sentence in {source}.")
    about.test_set = about.test_set or f"the test set of {about.data_name}"


def _measured(results: dict[str, Any], split: str) -> dict[str, Any]:
    """Take the scores of a split out of `all_results.json`; empty if it was not translated."""
    numbers = {name: results[f"{split}_{name}"] for name in MEASURED if f"{split}_{name}" in results}
    return numbers if "sentences" in numbers else {}


def _training(state: dict[str, Any], results: dict[str, Any]) -> dict[str, Any]:
    """Say how long the run was, and where its loss ended."""
    history = state.get("log_history", [])
    facts = {
        "samples": results.get("train_samples"),
        "epochs": state.get("epoch"),
        "seconds": next((entry["seconds"] for entry in reversed(history) if "seconds" in entry), None),
        "loss": next((entry["loss"] for entry in reversed(history) if "loss" in entry), None),
        "validation_loss": results.get("eval_loss"),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _settings(record: dict[str, Any], config: PreTrainedConfig) -> dict[str, Any]:
    """Gather the rows of the card's table: the shape of the model, and the arguments of the run."""
    shape = {name: getattr(config, name) for name in SHAPE if getattr(config, name, None) is not None}
    sizes = {"vocab_size": config.vocab_size, "decoder_vocab_size": getattr(config, "decoder_vocab_size", None)}
    settings = {name: value for name, value in record.get("settings", {}).items() if name not in sizes}
    return shape | {name: size for name, size in sizes.items() if size is not None} | settings


def _use(
    address: str, config: PreTrainedConfig, beams: int | None, about: About, has_code: bool, separate: bool
) -> str:
    """Write the section on how to open the publication."""
    attention = getattr(config, "attention_type", None) != "none"
    code = auto_class_code(address, about.example, beams, code=has_code, separate=separate)
    parts = [
        "With the package `hf_attn`:",
        translator_code(address, about.example, beams, attention),
        "Without it:",
        code,
    ]
    if "/" not in address:
        parts.append(f"`{address.replace('`', '')}` is the path of this folder.")
    trust = "`trust_remote_code=True` runs the Python files that lie beside the weights. " if has_code else ""
    version = f"tested with transformers {transformers.__version__}, which has no translation pipeline any more"
    parts.append(f"{trust}Needs torch and `transformers{TRANSFORMERS}`; {version}.")
    return "\n\n".join(parts)


def _card(
    address: str,
    numbers: dict[str, Any],
    about: About,
    config: PreTrainedConfig,
    use: str,
    has_code: bool,
    record: dict[str, Any],
) -> str:
    """Write the model card of a run."""
    name, data = address.split("/")[-1], plain(about.data_name)
    samples = numbers["training"].get("samples")
    training = f"{f'{samples:,} ' if samples else ''}sentence pairs of {data}.{_course(numbers)}"
    if record.get("trained_further"):
        base = record.get("base_model")
        training += f" It began with the weights of {f'`{base}`' if base else 'another model'}."
    licence = "an unknown licence" if about.license == "unknown" else f"the licence `{about.license}`"
    if about.license_name:
        licence = f"[{plain(about.license_name)}]({about.license_link})"
    its = f"under {plain(about.data_license)}" if about.data_license else "whose licence is not stated"
    attribution = f"The weights are given under {licence}. They were trained on {data}, {its}."
    if about.attribution:
        attribution += f"\n\n{paragraph(about.attribution)}"
    if has_code:
        attribution += "\n\nThe Python files are part of hf_attn, under the Apache License 2.0."
    kind = getattr(config, "attention_type", None) or config.model_type
    known = DESCRIPTIONS.get(kind, f"A `{config.model_type}` model of {'hf_attn' if has_code else 'transformers'}.")
    return model_card(
        name,
        languages=(about.source_lang, about.target_lang),
        description=" ".join([known, paragraph(about.description)]).strip(),
        data={
            "name": about.data_name,
            "type": about.data_id or re.sub(r"\W+", "_", about.data_name.lower()).strip("_") or "data",
            "license": about.license,
            "example": about.example,
            "training": training,
            "test": plain(about.test_set),
            "attribution": attribution,
            "limits": paragraph(about.limits or LIMITS),
        },
        results=numbers | {"how": "by the training program, at the end of training"},
        has_attention=kind != "none",
        use=use,
        metadata={
            "library_name": "transformers",
            "tags": ["hf_attn", *(["custom_code"] if has_code else []), "translation", "attention", "seq2seq"],
            "datasets": [about.data_id] if about.data_id else None,
            "base_model": record.get("base_model"),
            "license_name": about.license_name or None,
            "license_link": about.license_link or None,
        },
    )


def _course(numbers: dict[str, Any]) -> str:
    """Say how long training took, where the loss ended, and with what it ran, as far as the run noted it."""
    training, text = numbers["training"], ""
    if "seconds" in training:
        epochs = f", {training['epochs']:.1f} epochs" if "epochs" in training else ""
        text += f" Training took {training['seconds'] / 60:.1f} minutes{epochs}."
    ends = [("training", "loss"), ("validation", "validation_loss")]
    losses = [f"{training[name]:.3f} on {which} data" for which, name in ends if name in training]
    text += f" The loss ended at {' and '.join(losses)}." if losses else ""
    versions = ", ".join(f"{name} {version}" for name, version in numbers["versions"].items())
    return text + (f" Trained with {versions}." if versions else "")


def _write_eval_results(target: Path, about: About, measured: dict[str, Any]) -> None:
    """Write BLEU on a benchmark of the Hub as the Hub reads it, with chrF in the notes."""
    kinds = {"bleu": "BLEU", "chrf": f"chrF {measured.get('chrf', 0):.2f}"}
    notes = [
        f"{title} ({measured[f'{score}_signature']})"
        for score, title in kinds.items()
        if f"{score}_signature" in measured
    ]
    entry = EvalResultEntry(about.data_id, about.eval_task, measured["bleu"], notes="; ".join(notes) or None)
    path = target / ".eval_results" / f"{about.data_id.split('/')[-1]}.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False), encoding="utf-8")


def _check_paths(target: Path, folder: Path) -> None:
    """Refuse to publish a file that names a folder of this machine."""
    private = {str(folder.resolve()), str(Path.home())} - {"/"}
    for path in target.rglob("*.*"):
        if path.suffix in (".json", ".md", ".yaml") and path.name != "tokenizer.json":
            text = path.read_text(encoding="utf-8")
            for place in private:
                if place in text:
                    raise ValueError(f"{path.name} would name {place}, a folder of this machine: it is not published")


def _check_target(target: Path, folder: Path, overwrite: bool) -> None:
    """Refuse to write over the run itself, or over something that is no publication."""
    if target == folder or target in folder.parents:
        raise ValueError(f"local_dir={target} is the folder of the run, or holds it: give another")
    if target in (Path.cwd(), Path.home()) or target in Path.cwd().parents or target in Path.home().parents:
        raise ValueError(f"local_dir={target} is a folder of other things: give one of its own")
    if target.exists() and not target.is_dir():
        raise ValueError(f"local_dir={target} is a file")
    if overwrite or not target.is_dir():
        return
    foreign = sorted(set(list_files(target)) - set(_published(target)))
    if foreign:
        raise ValueError(
            f"local_dir={target} holds {foreign[0]}, which no publication wrote: give overwrite to replace it"
        )


def _published(folder: Path) -> list[str]:
    """List the files that a publication in this folder consists of; none if there is none."""
    try:
        return _read_json(folder, RESULTS)["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []


@contextmanager
def _workplace(target: Path | None) -> Iterator[Path]:
    """Give a temporary folder, beside the target if there is one, so that moving there is a renaming."""
    if target:
        target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent if target else None, prefix=".publication-") as place:
        yield Path(place)


def _move(built: Path, target: Path) -> None:
    """Put the publication in its place; what was there goes when it is."""
    old = built.parent / ".replaced"
    if target.exists():
        target.rename(old)
    try:
        built.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
