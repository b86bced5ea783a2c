"""Every block of the README runs, in its order, as a newcomer would run it; trainings are cut short."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
)
ENVIRONMENT = {
    **os.environ,
    "HF_HUB_OFFLINE": "1",
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": str(ROOT),
}


# starts the Space, waits until its page answers, and stops it
SERVE = """
def serve():
    import socket, subprocess, sys, time, urllib.request
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    app = subprocess.Popen([sys.executable, {app!r}], env={{**os.environ, "GRADIO_SERVER_PORT": port}})
    try:
        for _ in range(240):
            assert app.poll() is None, "the Space ended"
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{{port}}").read()
                break
            except OSError:
                time.sleep(0.5)
        assert b"gradio" in page
    finally:
        app.terminate()
        app.wait()
"""


def shorter_comparison(folder):
    """Write the quick comparison with two of its models and as many updates."""
    comparison = yaml.safe_load((ROOT / "scripts" / "compare_quick.yaml").read_text(encoding="utf-8"))
    comparison["arguments"] |= {"max_steps": 2, "max_train_samples": 200, "max_eval_samples": 4}
    comparison["models"] = {name: comparison["models"][name] for name in ("none", "bahdanau")}
    comparison["evaluation"]["max_samples"] = 20
    comparison["differences"] = comparison["differences"][:1]
    path = folder / "quick.yaml"
    path.write_text(yaml.safe_dump(comparison), encoding="utf-8")
    return path


def commands(block):
    return [shlex.split(line, comments=True) for line in block.splitlines() if line.strip()]


def test_the_readme_has_only_blocks_that_can_be_run():
    assert len(BLOCKS) >= 9
    assert {language for language, _ in BLOCKS} == {"bash", "python"}


def test_every_file_that_the_readme_names_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert "space/alignment.png" in links
    for link in links:
        assert (ROOT / link).exists(), link
    for folder in re.findall(r"`((?:hf_attn|scripts)/[\w/.]*)`", text):
        assert (ROOT / folder).exists(), folder


def test_the_two_commands_are_whole_shell_scripts():
    for command, script in commands(BLOCKS[0][1]):
        assert command == "bash"
        subprocess.run(["bash", "-n", str(ROOT / script)], check=True)


@pytest.mark.slow
def test_every_block_runs(tmp_path):
    for folder in ("scripts", "space"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    program = [f"import os\nos.chdir({str(tmp_path)!r})\n", SERVE.format(app=str(ROOT / "space" / "app.py"))]
    for language, block in BLOCKS[1:]:
        if language == "python":
            program.append(block)
            continue
        for command in commands(block):
            shorter = re.sub(r"--max_steps \d+", "--max_steps 5", shlex.join(command))
            if "evaluate_translation" in shorter:
                shorter += " --max_samples 20"
            shorter = shorter.replace("--quick", f"--config {shlex.quote(str(shorter_comparison(tmp_path)))}")
            if command == ["python", "space/app.py"]:
                program.append("serve()\n")
                continue
            program.append(f"import subprocess\nsubprocess.run({shlex.split(shorter)!r}, check=True)\n")
    script = tmp_path / "readme.py"
    script.write_text("\n".join(program), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "0.3087" in run.stdout  # the lecture's weight of the first word
    for made in (
        "out/it/model.safetensors",
        "out/alignment.png",
        "out/alignment.html",
        "out/quick/comparison.md",
        "out/mine/modeling_attn_transformer.py",
        "out/published/modeling_attn_rnn.py",
    ):
        assert (tmp_path / made).stat().st_size > 0, made


@pytest.mark.slow
def test_quickstart_runs(tmp_path):
    """The whole quickstart but for the installation: this environment stands in for .venv, and five updates for the
    training."""
    script = (ROOT / "scripts" / "quickstart.sh").read_text(encoding="utf-8")
    assert 'source "$(dirname "$0")/environment.sh" train,viz' in script
    script = script.replace('source "$(dirname "$0")/environment.sh" train,viz', f"cd {shlex.quote(str(ROOT))}")
    (tmp_path / "quickstart.sh").write_text(script, encoding="utf-8")
    run = subprocess.run(
        ["bash", str(tmp_path / "quickstart.sh"), str(tmp_path / "out")],
        env={**ENVIRONMENT, "QUICKSTART_STEPS": "5"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    for model in ("bahdanau", "transformer"):
        pictures = sorted((tmp_path / "out" / model / "alignments").glob("*.png"))
        assert len(pictures) == 10
        assert len(list((tmp_path / "out" / model / "alignments").glob("*.html"))) == 10
    assert re.findall(r"^BLEU of (\w+): [\d.]+$", run.stdout, flags=re.MULTILINE) == ["bahdanau", "transformer"]
