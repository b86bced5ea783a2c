"""scripts/build_space.py puts together what a Space needs, and what it puts together starts by itself."""

import json
import runpy
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from space.questions import GOOD, PAGE
from space.watching import watched_space
from space.wire import Session

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
    copied = [path.name for path in (ROOT / "space").glob("*.py")] + ["README.md", "digits.json"]
    assert {"app.py", "service.py", "endpoints.py", "tab_translate.py", "texts.py"} < set(copied)
    assert sorted(path.name for path in built.iterdir()) == sorted([*copied, "models", "requirements.txt", wheel])
    for name in copied:
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
        *(
            ((tmp_path / "new", "--models", models, "--repo_id", name), "the name of a Space on the Hub")
            for name in ("attention", "a/b/c", "you/at tention", "https://x/y", "")
        ),
    ):
        done = build(*arguments)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


NOT_NEEDED = ("matplotlib", "datasets", "sklearn", "evaluate", "sacrebleu", "nltk", "jiwer", "accelerate")


@pytest.mark.slow
def test_it_starts_from_its_own_requirements_and_answers_every_question(tmp_path):
    """Installed by pip, from where pip installs all else; with the models that are shipped. Half a minute when idle."""
    built, python = tmp_path / "built", tmp_path / "environment" / "bin" / "python"
    done = build(built)
    assert done.returncode == 0, done.stderr
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"]
    installed = subprocess.run(install, cwd=built, capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    look = (
        "import hf_attn, importlib.util; print(hf_attn.__file__); "
        f"print([name for name in {NOT_NEEDED} if importlib.util.find_spec(name)])"
    )
    found = subprocess.run([python, "-c", look], cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    assert found[0].startswith(str(tmp_path / "environment")) and found[1] == "[]"
    with watched_space(built / "models", tmp_path / "watched", python, built / "app.py") as (url, log):
        client = Client(url, verbose=False, httpx_kwargs={"timeout": 60})
        named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
        assert set(named) == {f"/{name}" for name in GOOD} and len(named) == 12
        for name, arguments in GOOD.items():
            assert client.predict(**arguments, api_name=f"/{name}"), name
        visitor = Session(url)
        for shown, inputs in PAGE.items():
            assert "<iframe" in json.dumps(visitor.press(shown, *inputs)), shown
        time.sleep(3)  # it goes on, and asks nobody for anything
        assert httpx.get(url).status_code == 200
        assert "REQUEST" not in log.read_text(), log.read_text()
