# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The shape of the package: who may import whom, what travels to the Hub, and that the equation exists once."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "hf_attn"
MODELS = PACKAGE / "models"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODEL_FILES = sorted(file for file in MODELS.glob("*.py") if file.name != "__init__.py")

MODEL_RANKS = {
    **dict.fromkeys(["checks", "inputs"], 0),
    **dict.fromkeys(["masks", "scores", "positions", "convolution"], 1),
    "kernels": 2,
    "attention": 3,
    **dict.fromkeys(["multihead", "recurrent", "heads"], 4),
    "layers": 5,
    **dict.fromkeys(["base", "generation"], 6),
    "seq2seq": 7,
}
CONFIGURATION_RANK, DECODERS_RANK, MODELING_RANK = 8, 9, 10
MODEL_RANKS["captioning"] = 11  # of two families one model
FAMILIES = {"rnn", "convs2s", "transformer", "bert", "gpt", "vit"}
PURE_TORCH = {"inputs", "masks", "scores", "positions", "convolution", "kernels", "attention"}
HUB_PACKAGES = {"torch", "transformers", "huggingface_hub"}
# above the Hub line; a package may import those of lower rank
PACKAGE_RANKS = {
    "models": 0,
    "registry": 1,
    "data": 2,
    "evaluation": 3,
    "training": 3,
    "inference": 4,
    "visualization": 5,
    "hub": 6,
    "studies": 7,
    "__init__": 8,
}
HEAVY = ("datasets", "sacrebleu", "matplotlib", "gradio", "evaluate", "nltk")


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def model_rank(name: str) -> int:
    if name.startswith("configuration_attn_"):
        return CONFIGURATION_RANK
    if name.startswith("decoders_attn_"):
        return DECODERS_RANK
    return MODELING_RANK if name.startswith("modeling_attn_") else MODEL_RANKS[name]


def siblings(file: Path) -> set[str]:
    """Files of the same folder that a file imports."""
    return {
        node.module.split(".")[0]
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    }


def foreign(file: Path) -> set[str]:
    """Top-level names of the packages that a file imports absolutely."""
    names = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").split(".")[0])
    return names


def calls(file: Path) -> list[tuple[str, str]]:
    """(enclosing function, last part of the called name) of every call of a file; "" outside functions."""
    found = []

    def visit(node: ast.AST, function: str):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            found.append((function, name))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree(file), "")
    return found


def ids(files):
    return [str(file.relative_to(PACKAGE)) for file in files]


def test_the_files_are_found():
    names = {file.stem for file in MODEL_FILES}
    assert {
        "masks",
        "scores",
        "positions",
        "kernels",
        "attention",
        "multihead",
        "recurrent",
        "layers",
        "base",
        "generation",
        "seq2seq",
    } <= names
    for kind in ("configuration", "modeling"):
        assert {name for name in names if name.startswith(kind)} == {f"{kind}_attn_{family}" for family in FAMILIES}
    assert not [file for file in MODELS.iterdir() if file.is_dir() and file.name != "__pycache__"], (
        "models/ must be flat"
    )


@pytest.mark.parametrize("file", MODEL_FILES, ids=ids(MODEL_FILES))
def test_a_model_file_imports_lower_ranks_only(file):
    for name in siblings(file):
        allowed = model_rank(name) < model_rank(file.stem)
        if "_attn_" in file.stem and "_attn_" in name:  # files of a family never import another's
            allowed = allowed and name.split("_attn_")[1] == file.stem.split("_attn_")[1]
        assert allowed, f"{file.name} imports {name}"


@pytest.mark.parametrize("file", MODEL_FILES, ids=ids(MODEL_FILES))
def test_a_model_file_can_travel_to_the_hub(file):
    """Only `from .sibling import name` is copied; everything else must exist wherever torch and transformers do."""
    extra = HUB_PACKAGES - ({"transformers", "huggingface_hub"} if file.stem in PURE_TORCH else set())
    assert foreign(file) <= extra | set(sys.stdlib_module_names)
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 or (node.level == 1 and node.module and "." not in node.module), ast.unparse(node)
            assert (node.module, node.names[0].name) != ("__future__", "annotations"), "breaks `config: AttnConfig`"
    existing = {other.stem for other in MODEL_FILES}
    assert siblings(file) <= existing


@pytest.mark.parametrize("file", MODEL_FILES, ids=ids(MODEL_FILES))
def test_no_text_looks_like_a_relative_import(file):
    """Saving finds imports by regular expressions, in docstrings and comments too."""
    lines = file.read_text(encoding="utf-8").splitlines()
    looks = {i + 1 for i, line in enumerate(lines) if re.match(r"\s*(from\s+\.|import\s+\.)", line)}
    real = {node.lineno for node in ast.walk(tree(file)) if isinstance(node, ast.ImportFrom) and node.level > 0}
    assert looks == real


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_configuration_needs_no_torch_not_even_through_its_siblings(family):
    waiting, seen = {f"configuration_attn_{family}"}, set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        file = MODELS / f"{name}.py"
        assert "torch" not in foreign(file), f"{file.name} imports torch"
        waiting |= siblings(file) - seen


def test_one_softmax_over_keys():
    softmaxes = [
        (file.name, function)
        for file in MODEL_FILES
        for function, name in calls(file)
        if "softmax" in name.lower() and "log_softmax" not in name
    ]
    assert softmaxes == [("attention.py", "attend")]
    # nor by another road: a softmax written out, or handed around as a function or module
    for file in MODEL_FILES:
        names = {node.attr for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute)}
        assert not names & {"Softmax", "softmin", "MultiheadAttention", "multi_head_attention_forward"}, file.name
        assert "softmax" not in names or file.name == "attention.py"
        assert "scaled_dot_product_attention" not in names or file.name == "kernels.py"


@pytest.mark.parametrize("file", SOURCES, ids=ids(SOURCES))
def test_a_package_imports_lower_ranks_only(file):
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                here = ["hf_attn", *file.relative_to(PACKAGE).parts[:-1]]
                module = ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])])
            targets = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            parts = target.split(".")
            if parts[0] != "hf_attn":
                continue
            other = parts[1] if len(parts) > 1 and parts[1] in PACKAGE_RANKS else "__init__"
            assert other == own or PACKAGE_RANKS[other] < PACKAGE_RANKS[own], f"{own} imports {target}"


def test_every_part_of_the_package_has_a_rank():
    parts = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in SOURCES}
    assert parts <= set(PACKAGE_RANKS)


@pytest.mark.parametrize("file", SOURCES, ids=ids(SOURCES))
def test_no_name_that_transformers_has_dropped_and_nothing_that_runs_data(file):
    for node in ast.walk(tree(file)):
        names = {
            getattr(node, field)
            for field in ("id", "attr", "arg", "name")
            if isinstance(getattr(node, field, None), str)
        }
        assert not names & {"past_key_values", "cache_position", "_extract_past_from_model_output"}, (
            file.name,
            node.lineno,
        )
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"eval", "exec", "compile", "torch.load", "__import__"}, (file.name, node.lineno)
    assert not foreign(file) & {"pickle", "dill", "joblib", "shelve", "marshal"}


def test_importing_the_package_is_light():
    code = f"import sys, hf_attn; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[]"


def test_the_equation_can_be_run_without_hugging_face():
    """The pure files work in a process in which neither transformers nor huggingface_hub can be imported."""
    code = (
        "import sys, types\n"
        "sys.modules['transformers'] = sys.modules['huggingface_hub'] = None\n"
        "sys.modules['equation'] = types.ModuleType('equation')\n"
        f"sys.modules['equation'].__path__ = [{str(MODELS)!r}]\n"
        f"import {', '.join(f'equation.{name}' for name in sorted(PURE_TORCH))}\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
