"""Tiny training runs, each made once: what publishing begins with."""

import atexit
import functools
import shutil
import tempfile
from dataclasses import fields
from pathlib import Path

from contract import SMALL
from scripting import load_script
from transformers import AutoConfig

from hf_attn.registry import FAMILIES, family_module
from hf_attn.training import RECIPES

NOUNS = {"the cat": "le chat", "the dog": "le chien", "Mary": "Marie", "the bird": "l'oiseau"}
VERBS = {"sleeps": "dort bien", "eats": "mange bien", "sings": "chante bien", "runs": "court tout le temps"}
PAIRS = [(f"{noun} {verb}.", f"{NOUNS[noun]} {VERBS[verb]}.") for noun in NOUNS for verb in VERBS]
OWNER = "jane-doe"  # of the machine; nothing that is published may know
TRANSLATING = [family for family in FAMILIES if "AutoModelForSeq2SeqLM" in family_module(family).AUTO_CLASSES]
RUNS = (*TRANSLATING, "marian")


def recipe_of(run):
    """The first small recipe of a family, with attention, and of Marian."""
    model_type = family_module(run).AUTO_CLASSES["AutoModel"].config_class.model_type if run in FAMILIES else run
    small = [name for name in RECIPES if name.endswith(("-tiny", "-small")) and not name.startswith("none")]
    return next(name for name in small if RECIPES[name].model_type == model_type)


@functools.cache
def trained(run):
    """The folder of a run that has ended; the recurrent one has separate vocabularies."""
    place = Path(tempfile.mkdtemp(prefix="runs-"), OWNER)
    atexit.register(shutil.rmtree, place.parent, ignore_errors=True)
    place.mkdir()
    for name, pairs in (
        ("train", PAIRS * 3),
        ("dev", PAIRS[::3]),
        ("test", [*PAIRS[3:10], ("Mary eats.", "elle mange")]),
    ):
        lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (place / f"{name}.tsv").write_text(lines, encoding="utf-8")
    recipe = recipe_of(run)
    config = AutoConfig.for_model(RECIPES[recipe].model_type)
    small = {"d_model": 32, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24} | SMALL
    small |= {"hidden_size": 32, "embedding_size": 32, "dropout": 0.0, "encoder_layers": 1, "decoder_layers": 1}
    small |= {"encoder_attention_heads": 4}
    unwanted = {"vocab_size", "max_position_embeddings", "num_hidden_layers", "num_attention_heads"}
    known = {field.name for field in fields(config)} - unwanted
    overrides = ",".join(f"{name}={value}" for name, value in small.items() if name in known)
    words = ["--recipe", recipe, "--config_overrides", overrides, "--output_dir", str(place / "run")]
    words += ["--source_lang", "en", "--target_lang", "fr", "--vocab_size", "330", "--num_beams", "2"]
    for split, name in (("train", "train"), ("validation", "dev"), ("test", "test")):
        words += [f"--{split}_file", str(place / f"{name}.tsv")]
    words += ["--max_steps", "90", "--learning_rate", "0.01", "--lr_scheduler_type", "constant", "--tokens_per_batch"]
    words += [
        "400",
        "--label_smoothing_factor",
        "0",
        "--warmup_steps",
        "0",
        "--save_steps",
        "60",
        "--eval_strategy",
        "no",
        "--max_target_length",
        "12",
    ]
    words += ["--use_cpu", "--bf16", "false", "--disable_tqdm", "true", "--logging_steps", "20"]
    if run == "rnn":
        words.append("--separate_vocabularies")
    load_script("scripts/train_translation.py").main(words)
    return place / "run"


def snapshot(folder):
    """All bytes of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
