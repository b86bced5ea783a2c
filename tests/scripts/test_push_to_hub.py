"""push_to_hub: a folder or a repository from the command line, a dry run that writes nothing, mistakes in one line."""

import runpy
import sys

import pytest
from hub.hub_stand_in import run_hub, use_hub
from hub.runs import snapshot, trained
from scripting import ROOT
from transformers import AutoModelForSeq2SeqLM

SCRIPT = str(ROOT / "scripts" / "push_to_hub.py")
WORDS = ["--license", "cc-by-4.0", "--data_name", "Beasts"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with run_hub() as served:
        use_hub(monkeypatch, served, tmp_path)
        yield served


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the script with these words, and give what it printed."""

    def call(*words, run="transformer"):
        monkeypatch.setattr(sys, "argv", [SCRIPT, "--trained_dir", str(trained(run)), *map(str, words)])
        capsys.readouterr()
        runpy.run_path(SCRIPT, run_name="__main__")
        return capsys.readouterr().out

    return call


def test_a_repository(call, hub):
    printed = call(*WORDS, "--repo_id", "jane/beasts", "--commit_message", "First")
    tree = hub.tree("jane/beasts")
    for path, content in tree.items():
        assert path == ".gitattributes" or f"{len(content):>12,}  {path}\n" in printed
    assert f"{len(tree) - 1} files, " in printed and printed.endswith(f" MB: {hub.url}/jane/beasts\n")
    assert hub.repos["jane/beasts"]["private"] and hub.messages("jane/beasts")[-1] == "First"
    model = AutoModelForSeq2SeqLM.from_pretrained("jane/beasts", trust_remote_code=True)
    assert model.num_parameters() == AutoModelForSeq2SeqLM.from_pretrained(trained("transformer")).num_parameters()

    printed = call(*WORDS, "--repo_id", "jane/open", "--no_private", "--revision", "v2")
    assert not hub.repos["jane/open"]["private"] and printed.endswith(f"{hub.url}/jane/open/tree/v2\n")


def test_a_folder_needs_no_network(call, hub, tmp_path):
    printed = call(*WORDS, "--output_dir", tmp_path / "out")
    assert printed.endswith(f" MB: {tmp_path / 'out'}\n") and hub.requests == []
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").config.model_type == "attn-transformer"
    assert (tmp_path / "out" / "README.md").read_text(encoding="utf-8").startswith("---\nlanguage:")


@pytest.mark.parametrize("where", [[], ["--output_dir", "out"], ["--repo_id", "jane/beasts"]])
def test_a_dry_run_prints_files_and_card_and_writes_nothing(where, call, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = snapshot(trained("transformer"))
    printed = call(*WORDS, *where, "--dry_run")
    assert "  modeling_attn_transformer.py\n" in printed and "\n## Scores\n" in printed
    assert printed.endswith(": nothing was written (dry run)\n")
    assert snapshot(trained("transformer")) == before and not list(tmp_path.iterdir()) and hub.requests == []


def test_what_is_missing_is_said(call):
    printed = call(*WORDS, "--data_id", "zoo/beasts", "--eval_task", "x", "--dry_run")
    assert "  .eval_results/beasts.yaml\n" in printed and "note:" not in printed
    checkpoint = str(trained("transformer") / "checkpoint-90")
    words = ["--trained_dir", checkpoint, "--source_lang", "en", "--target_lang", "fr", "--dry_run"]
    assert "note: no scores of a test set: " in call(*WORDS, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give repo_id, output_dir or dry_run"),
        (["--output_dir", "a", "--repo_id", "jane/b"], "give one of them"),
        (["--output_dir", "a", "--license", "Mine!"], "no licence of the Hub"),
        (["--output_dir", "a", "--data_name", ""], "data_name is missing"),
        (["--output_dir", "a", "--trained_dir", "nowhere"], "there is no folder nowhere"),
        (["--output_dir", "a", "--trained_dir", "."], "holds no finished training run: there is no config.json"),
        (["--output_dir", "full"], "holds mine.txt, which no publication wrote"),
        (["--repo_id", "beasts"], "must be owner/name"),
        (["--repo_id", "other/beasts"], "nothing was uploaded to other/beasts: the token may not write there (403)"),
        (["--repo_id", "jane/b", "--pruvate"], "--pruvate"),
    ],
)
def test_a_mistake_is_one_sentence(words, message, call, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        call(*WORDS, *words)
    assert str(stopped.value).startswith("error: ") and message in str(stopped.value)
    assert "\n" not in str(stopped.value) and snapshot(tmp_path) == before
