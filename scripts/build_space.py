"""Assemble a complete Space in a folder: the app, its models, a wheel of this package, and the requirements.

    python scripts/build_space.py out/space

takes seconds and needs no network where hatchling is installed. The folder stands by itself: inside it,
``pip install -r requirements.txt`` and ``python app.py`` start the Space. For the Hub,

    python scripts/build_space.py out/space --repo_id you/attention
    hf upload you/attention out/space . --repo-type space

because there the requirements are installed before the other files of the Space are at hand, and so have to name the
wheel by its address on the Hub.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (*sorted(path.name for path in (ROOT / "space").glob("*.py")), "README.md", "digits.json")


def build_wheel(folder: Path) -> Path:
    """Build a wheel of this package.

    Args:
        folder: where it goes.

    Returns:
        The wheel.

    Raises:
        ValueError: if it cannot be built.
    """
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    if importlib.util.find_spec("hatchling"):  # otherwise pip downloads it
        command.append("--no-build-isolation")
    with tempfile.TemporaryDirectory() as temporary:
        # from a copy, so that nothing is left in the repository
        source = Path(temporary)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        shutil.copytree(ROOT / "hf_attn", source / "hf_attn", ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the wheel could not be built:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob("hf_attn-*.whl")
    return wheel


def build_space(output_dir: Path, models: Path, repo_id: str | None = None) -> None:
    """Assemble the Space.

    Args:
        output_dir: an empty or new folder.
        models: holds one folder for each model.
        repo_id: name of the Space on the Hub; None for one that is installed where it lies.

    Raises:
        ValueError: if `output_dir` is not empty, there is no model, `repo_id` is no name, or the wheel cannot be built.
    """
    if repo_id is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", repo_id):
        raise ValueError(f"repo_id is {repo_id!r}; it must be the name of a Space on the Hub: you/attention")
    if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
        raise ValueError(f"output_dir is {str(output_dir)!r}, which is not empty; give a new folder")
    folders = sorted(path.parent for path in models.glob("*/config.json"))
    if not folders:
        raise ValueError(f"models is {str(models)!r}; it holds no folder with a model (with a config.json)")
    output_dir.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(ROOT / "space" / name, output_dir)
    for folder in folders:
        shutil.copytree(folder, output_dir / "models" / folder.name)
    wheel = build_wheel(output_dir)
    place = f"./{wheel.name}"
    if repo_id is not None:
        place = f"hf_attn @ https://huggingface.co/spaces/{repo_id}/resolve/main/{wheel.name}"
    requirements = (ROOT / "space" / "requirements.txt").read_text(encoding="utf-8")
    (output_dir / "requirements.txt").write_text(f"{requirements}{place}\n", encoding="utf-8")
    print(f"{output_dir}: {', '.join(FILES)}, {wheel.name}, {', '.join(folder.name for folder in folders)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Assemble a complete Space in a folder.")
    parser.add_argument("output_dir", type=Path, help="A new folder.")
    parser.add_argument("--models", type=Path, default=ROOT / "space" / "models", help="Folder of the models.")
    parser.add_argument("--repo_id", help="Name of the Space on the Hub, for requirements that are installed there.")
    try:
        build_space(**vars(parser.parse_args()))
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
