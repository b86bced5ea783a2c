"""scripts/build_space.py puts together what a Space needs, and what it puts together starts by itself."""

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest

from hf_attn import __version__
from hf_attn.data import train_tokenizer
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "build_space.py"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with one tiny model of random weights, and with something that is no model."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train_tokenizer(["where is the girl ?", "où est la fille ?"] * 4, 300)
    AttnRnnForConditionalGeneration(AttnRnnConfig(vocab_size=len(tokenizer), hidden_size=16)).save_pretrained(
        folder / "en-fr-bahdanau", include_code=False
    )
    tokenizer.save_pretrained(folder / "en-fr-bahdanau")
    (folder / "notes").mkdir()
    (folder / "notes" / "diary.txt").write_text("private")
    return folder


def build(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(models, tmp_path_factory):
    """A Space, built once."""
    folder = tmp_path_factory.mktemp("built") / "space"
    done = build(folder, "--models", models)
    assert done.returncode == 0, done.stderr
    assert "en-fr-bahdanau" in done.stdout
    return folder


def test_what_is_in_it(built, models):
    wheel = f"hf_attn-{__version__}-py3-none-any.whl"
    assert sorted(path.name for path in built.iterdir()) == sorted(
        ["README.md", "app.py", "models", "requirements.txt", wheel]
    )
    for name in ("README.md", "app.py"):
        assert (built / name).read_bytes() == (ROOT / "space" / name).read_bytes()
    stored = {path.relative_to(built / "models").as_posix() for path in (built / "models").rglob("*") if path.is_file()}
    shipped = {path.relative_to(models).as_posix() for path in models.rglob("*") if path.is_file()}
    assert stored == {path for path in shipped if path.startswith("en-fr-bahdanau/")} and len(stored) >= 4
    requirements = (built / "requirements.txt").read_text(encoding="utf-8")
    assert requirements.splitlines()[-1] == f"./{wheel}"
    assert requirements.startswith((ROOT / "space" / "requirements.txt").read_text(encoding="utf-8"))


def test_the_wheel_is_the_package(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    package = [path for path in (ROOT / "hf_attn").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in package}


def test_on_the_hub_the_wheel_has_an_address(models, tmp_path, monkeypatch):
    script = runpy.run_path(str(SCRIPT))
    wheel = "hf_attn-1.2.3-py3-none-any.whl"
    script["build_space"].__globals__["build_wheel"] = lambda folder: folder / wheel
    script["build_space"](tmp_path / "space", models, repo_id="me/attention")
    last = (tmp_path / "space" / "requirements.txt").read_text().splitlines()[-1]
    assert last == f"hf_attn @ https://huggingface.co/spaces/me/attention/resolve/main/{wheel}"


def test_mistakes_get_a_sentence(models, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").write_text("")
    for arguments, message in (
        ((tmp_path / "full", "--models", models), "not empty"),
        ((tmp_path / "new", "--models", tmp_path / "full"), "no folder with a model"),
        ((tmp_path / "new", "--models", tmp_path / "missing"), "no folder with a model"),
    ):
        done = build(*arguments)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


def ask(python, space, tmp_path):
    """Start the app with this interpreter outside the repository, and translate by its endpoint."""
    client = pytest.importorskip("gradio_client")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPACE_MODELS")}
    log = tmp_path / "log.txt"
    with open(log, "w") as output:
        process = subprocess.Popen(
            [python, "app.py"], cwd=space, stdout=output, stderr=subprocess.STDOUT,
            env={**environment, "PYTHONUNBUFFERED": "1", "GRADIO_SERVER_NAME": "127.0.0.1"},
        )  # fmt: skip
    try:
        for _ in range(900):
            found = re.search(r"Running on local URL: +(http://\S+)", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.2)
        assert found, log.read_text()
        result = client.Client(found[1], verbose=False).predict(
            "where is the girl ?", "en-fr-bahdanau", 2, api_name="/attention"
        )
        assert len(result["cross_attentions"][0][0]) == len(result["target_tokens"])
    finally:
        process.terminate()
        process.wait()


def new_environment(folder):
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder / "bin" / "python"


@pytest.mark.slow
def test_it_starts_in_a_fresh_environment(built, tmp_path):
    """hf_attn comes from the wheel; what else it needs is borrowed, so that no network is needed."""
    python = new_environment(tmp_path / "environment")
    (wheel,) = built.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    ).stdout.strip()
    Path(purelib, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = subprocess.run(
        [python, "-c", "import hf_attn; print(hf_attn.__file__)"], capture_output=True, text=True, cwd=tmp_path
    )
    assert where.stdout.startswith(str(tmp_path / "environment")), where.stderr
    ask(python, built, tmp_path)


@pytest.mark.slow
@pytest.mark.network
def test_it_starts_from_its_own_requirements(built, tmp_path):
    python = new_environment(tmp_path / "environment")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt"], check=True, cwd=built)
    ask(python, built, tmp_path)
