"""Publications: complete, true to the run, of this machine's folders silent, and whole or not there at all."""

import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import torch
import transformers
import yaml
from contract import cases
from hub.hub_stand_in import run_hub, use_hub
from hub.runs import OWNER, PAIRS, RUNS, recipe_of, snapshot, trained
from huggingface_hub import ModelCard, parse_eval_result_entries
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

import hf_attn
from hf_attn.data import load_pairs
from hf_attn.hub import publish
from hf_attn.registry import FAMILIES, family_module

ABOUT = {"license": "cc-by-4.0", "data_name": "Beasts", "attribution": "By [the zoo](https://zoo.example)."}
TEXTS = [source for source, _ in PAIRS]

# Runs in a process of its own, in which the package cannot be imported: the code of the cards, and more with its model.
OPEN_ELSEWHERE = """
import contextlib, io, json, sys
sys.modules["hf_attn"] = None
import torch
codes, texts = json.load(sys.stdin)
answers = []
for code in codes:
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    model, source = names["model"], names["tokenizer"]
    inputs = source(texts, padding=True, return_tensors="pt")
    ids = model.generate(**inputs, num_beams=2)
    lines = names.get("target_tokenizer", source).batch_decode(ids, skip_special_tokens=True)
    logits = model(**inputs, decoder_input_ids=torch.tensor([[1, 5, 6]]).expand(len(texts), 3)).logits
    answers.append({"printed": printed.getvalue(), "lines": lines, "logits": logits.tolist()})
    answers[-1]["class"] = type(model).__module__
print("ANSWERS" + json.dumps(answers))
"""


def code_blocks(card):
    return re.findall(r"^```python\n(.*?)^```$", card, flags=re.MULTILINE | re.DOTALL)


def translate(folder):
    """What a training folder's model answers in this process: lines, and logits of a fixed target."""
    model, source = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    separate = folder / "target_tokenizer"
    target = AutoTokenizer.from_pretrained(separate) if separate.is_dir() else source
    inputs = source(TEXTS, padding=True, return_tensors="pt")
    lines = target.batch_decode(model.generate(**inputs, num_beams=2), skip_special_tokens=True)
    logits = model(**inputs, decoder_input_ids=torch.tensor([[1, 5, 6]]).expand(len(TEXTS), 3)).logits
    return lines, logits


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A publication of every run: its folder and what `publish` returned."""
    place, made = tmp_path_factory.mktemp("published"), {}
    for run in RUNS:
        folder = place / f"en-fr-{run}"
        made[run] = folder, publish(trained(run), local_dir=folder, example=TEXTS[3], **ABOUT)
    return made


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with run_hub() as served:
        use_hub(monkeypatch, served, tmp_path)
        yield served


@pytest.fixture
def run(tmp_path):
    """A copy of the recurrent run, to be changed."""
    return shutil.copytree(trained("rnn"), tmp_path / "copy")


@pytest.mark.slow
def test_publications_and_repositories_open_and_translate_without_the_package(published, hub, tmp_path):
    """From folders and, with an empty cache, from a private repository of the Hub, by the code of the cards."""
    codes = []
    for name, (folder, made) in published.items():
        code = code_blocks(made.card)[1]
        assert f'name = "{folder.name}"' in code and ("target_tokenizer" in code) == (name == "rnn")
        codes.append(code.replace(folder.name, str(folder)))
        pushed = publish(trained(name), repo_id=f"jane/{name}", example=TEXTS[3], **ABOUT)
        assert pushed.location == f"{hub.url}/jane/{name}" and hub.repos[f"jane/{name}"]["private"]
        codes.append(code_blocks(pushed.card)[1])
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    environment |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_jane", "NO_PROXY": "127.0.0.1,localhost"}
    opened = subprocess.run(
        [sys.executable, "-c", OPEN_ELSEWHERE], input=json.dumps([codes, TEXTS]),
        capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert opened.returncode == 0, opened.stderr[-3000:]
    answers = iter(json.loads(opened.stdout.split("ANSWERS")[1]))
    for name in published:
        lines, logits = translate(trained(name))
        assert len(set(lines)) > 3  # the model is one whose answers vary
        for _ in ("folder", "repository"):
            answer = next(answers)
            assert answer["lines"] == lines and answer["printed"] == lines[3] + "\n"
            torch.testing.assert_close(torch.tensor(answer["logits"]), logits, atol=1e-5, rtol=1e-5)
            assert answer["class"].startswith("transformers_modules" if name in FAMILIES else "transformers.models")


@pytest.mark.parametrize("name", RUNS)
def test_the_first_code_of_a_card_runs_where_the_package_is(name, published):
    folder, made = published[name]
    code = code_blocks(made.card)[0].replace(folder.name, str(folder))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().startswith(translate(trained(name))[0][3] + "\n")


@pytest.mark.parametrize("name", RUNS)
def test_a_publication_holds_what_opens_it_and_nothing_else(name, published):
    folder, made = published[name]
    tokenizer = {"tokenizer.json", "tokenizer_config.json"}
    expected = {"README.md", "config.json", "generation_config.json", "model.safetensors", "results.json"} | tokenizer
    if name == "rnn":
        expected |= {f"target_tokenizer/{file}" for file in tokenizer}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    code = {file for file in found if file.endswith(".py")}
    assert found - code == expected and made.files == {file: (folder / file).stat().st_size for file in found}
    assert (f"modeling_attn_{name}.py" in code) == (name in FAMILIES) and bool(code) == (name in FAMILIES)
    assert json.loads((folder / "results.json").read_text())["files"] == sorted(found)
    assert json.loads((folder / "config.json").read_text())["use_cache"] is True
    if name in FAMILIES:
        auto_map = json.loads((folder / "config.json").read_text())["auto_map"]
        assert set(auto_map) == {"AutoConfig", *family_module(name).AUTO_CLASSES}


@pytest.mark.parametrize("name", RUNS)
def test_no_folder_of_this_machine_is_in_any_file(name, published):
    folder, _ = published[name]
    for path, content in snapshot(folder).items():
        for secret in (OWNER, str(trained(name).parents[1]), str(Path.home()) + "/", str(folder.parent)):
            assert secret.encode() not in content, (path, secret)


@pytest.mark.parametrize("name", RUNS)
def test_the_scores_of_a_card_are_those_of_the_run(name, published):
    """Also sacrebleu's, of the translations that the run wrote down."""
    folder, made = published[name]
    measured = json.loads((trained(name) / "all_results.json").read_text())
    card = ModelCard.load(folder / "README.md")
    found = {(result.dataset_split, result.metric_type): result for result in card.data.eval_results}
    values = {key: result.metric_value for key, result in found.items()}
    splits = {"test": "predict", "validation": "eval"}
    expected = {
        (split, score): measured[f"{key}_{score}"] for split, key in splits.items() for score in ("bleu", "chrf")
    }
    assert values == expected and values["test", "bleu"] > 5

    lines = (trained(name) / "generated_predictions.txt").read_text(encoding="utf-8").splitlines()
    pairs = load_pairs(str(trained(name).parent / "test.tsv"), "en", "fr", group_references=True)
    most = max(map(len, pairs["references"]))
    streams = [[group[i] if i < len(group) else None for group in pairs["references"]] for i in range(most)]
    bleu = sacrebleu.metrics.BLEU()
    assert most == 2 and values["test", "bleu"] == pytest.approx(bleu.corpus_score(lines, streams).score)
    assert found["test", "bleu"].metric_args["signature"] == str(bleu.get_signature())
    assert f"| BLEU | {measured['predict_bleu']:.1f} | {measured['eval_bleu']:.1f} |" in made.card
    assert (
        f"on {len(lines)} sources of the test set of Beasts and 6 sources of the validation set with 2 beams"
        in made.card
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_card_tells_of_the_run(name, published):
    folder, made = published[name]
    metadata = ModelCard.load(folder / "README.md").data.to_dict()
    assert metadata["language"] == ["en", "fr"] and metadata["license"] == "cc-by-4.0"
    assert metadata["pipeline_tag"] == "translation" and metadata["library_name"] == "transformers"
    assert metadata["metrics"] == ["bleu", "chrf"] and "datasets" not in metadata
    assert ("custom_code" in metadata["tags"]) == (name in FAMILIES) and "hf_attn" in metadata["tags"]
    state = json.loads((trained(name) / "trainer_state.json").read_text())
    loss = [entry["loss"] for entry in state["log_history"] if "loss" in entry][-1]
    for text in (
        f"Recipe `{recipe_of(name)}` of hf_attn, 90 updates, on 48 sentence pairs of Beasts.",
        f"The loss ended at {loss:.3f} on training data",
        "| `learning_rate` | 0.01 |",
        "| `max_steps` | 90 |",
        "`transformers>=5.24,<6`",
        "Translates English into French.",
        "By [the zoo](https://zoo.example).",
    ):
        assert text in made.card, text
    assert "num_train_epochs" not in made.card and not re.search(r"\bNone\b|[{}]", made.card.replace("None was", ""))


def test_what_was_not_measured_is_not_in_the_card(run, tmp_path):
    (run / "all_results.json").write_text(json.dumps({"train_samples": 48, "eval_loss": 1.5, "predict_bleu": 33.0}))
    made = publish(run, local_dir=tmp_path / "out", eval_task="translation", data_id="zoo/beasts", **ABOUT)
    metadata = ModelCard(made.card).data.to_dict()
    assert "model-index" not in metadata and "metrics" not in metadata
    assert "None was measured." in made.card and "BLEU" not in made.card and "33" not in made.card
    assert not (tmp_path / "out" / ".eval_results").exists()
    assert [note.split(":")[0] for note in made.notes] == ["no scores of a test set", "no .eval_results"]

    # a checkpoint has no results at all, nor a record of the run
    made = publish(run / "checkpoint-90", dry_run=True, source_lang="en", target_lang="xx", **ABOUT)
    assert "into xx." in made.card and "model-index" not in made.card and "Recipe" not in made.card
    assert "90 updates, on sentence pairs of Beasts." in made.card


def test_scores_of_the_validation_set_alone(run):
    measured = json.loads((run / "all_results.json").read_text())
    kept = {name: value for name, value in measured.items() if not name.startswith("predict_")}
    (run / "all_results.json").write_text(json.dumps(kept))
    made = publish(run, dry_run=True, **ABOUT)
    assert {result.dataset_split for result in ModelCard(made.card).data.eval_results} == {"validation"}
    assert "| | validation |" in made.card and "signature" not in made.card


def test_a_benchmark_of_the_hub_gets_its_result_file(tmp_path):
    folder = tmp_path / "out"
    publish(trained("rnn"), local_dir=folder, **ABOUT, data_id="zoo/beasts", eval_task="en-fr")
    text = (folder / ".eval_results" / "beasts.yaml").read_text(encoding="utf-8")
    (entry,) = parse_eval_result_entries(yaml.safe_load(text))
    measured = json.loads((trained("rnn") / "all_results.json").read_text())
    assert (entry.dataset_id, entry.task_id, entry.value) == ("zoo/beasts", "en-fr", measured["predict_bleu"])
    assert measured["predict_bleu_signature"] in entry.notes and f"chrF {measured['predict_chrf']:.2f}" in entry.notes
    assert ModelCard.load(folder / "README.md").data.datasets == ["zoo/beasts"]
    assert ".eval_results/beasts.yaml" in json.loads((folder / "results.json").read_text())["files"]


def test_a_phrasebook_run_knows_its_data(run):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"phrasebook": "en-it", "target_lang": "it"}))
    made = publish(run, dry_run=True, license="apache-2.0")
    assert '("The old man reads a book.", num_beams=2)' in made.card  # a sentence of the phrasebook
    assert "hf_attn phrasebook" in made.card and "It knows the phrasebook and nothing else" in made.card
    assert (
        "into Italian" in made.card and ModelCard(made.card).data.eval_results[0].dataset_type == "hf_attn_phrasebook"
    )


def test_further_training_is_said(run):
    record = json.loads((run / "run.json").read_text())
    record |= {"trained_further": True, "base_model": "zoo/older"}
    (run / "run.json").write_text(json.dumps(record))
    made = publish(run, dry_run=True, **ABOUT)
    assert "It began with the weights of `zoo/older`." in made.card and "Recipe" not in made.card
    assert ModelCard(made.card).data.base_model == "zoo/older"


def test_a_publication_replaces_another_and_nothing_else(run, tmp_path):
    folder = tmp_path / "out"
    publish(run, local_dir=folder, data_id="zoo/beasts", eval_task="a", **ABOUT)
    shutil.rmtree(run / "target_tokenizer")  # the next has one vocabulary, and no benchmark
    made = publish(run, local_dir=folder, **ABOUT)
    assert set(snapshot(folder)) == set(made.files) and not any(
        "target" in file or ".eval" in file for file in made.files
    )

    (folder / "notes.txt").write_text("mine")
    before = snapshot(folder)
    with pytest.raises(ValueError, match="holds notes.txt, which no publication wrote"):
        publish(run, local_dir=folder, **ABOUT)
    assert snapshot(folder) == before
    publish(run, local_dir=folder, overwrite=True, **ABOUT)
    assert "notes.txt" not in snapshot(folder)
    (tmp_path / "empty").mkdir()
    publish(run, local_dir=tmp_path / "empty", **ABOUT)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("stage", ["model_card", "_check_paths", "_move"])
def test_a_failure_leaves_everything_as_it_was(stage, run, tmp_path, monkeypatch):
    publish(run, local_dir=tmp_path / "out", **ABOUT)
    before = snapshot(tmp_path)
    if stage == "_move":  # the last step, the renaming, is what fails
        rename = Path.rename
        moves = iter([rename, None, rename])

        def fail(self, target):
            move = next(moves)
            if move is None:
                raise OSError("the disk is gone")
            return move(self, target)

        monkeypatch.setattr(Path, "rename", fail)
    else:

        def stop(*args, **kwargs):
            raise OSError("the disk is full")

        monkeypatch.setattr(sys.modules["hf_attn.hub.publish"], stage, stop)
    with pytest.raises(OSError, match="the disk is"):
        publish(run, local_dir=tmp_path / "out", **ABOUT)
    assert snapshot(tmp_path) == before


def test_a_file_that_names_the_run_s_folder_is_not_published(run, tmp_path):
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"my_data": str(run / "data")}))
    with pytest.raises(ValueError, match=r"config.json would name .*copy, a folder of this machine"):
        publish(run, local_dir=tmp_path / "out", **ABOUT)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give exactly one of repo_id and local_dir"),
        ({"repo_id": "a/b", "local_dir": "x"}, "give exactly one of repo_id and local_dir"),
        ({"repo_id": "a"}, "repo_id='a' must be owner/name"),
        ({"repo_id": "a/b--c"}, "repo_id='a/b--c' is no name on the Hub"),
        ({"local_dir": "copy"}, "is the folder of the run"),
        ({"local_dir": "."}, "is the folder of the run"),
        ({"local_dir": "copy/config.json"}, "is a file"),
        ({"local_dir": "out", "license": "CC BY 4.0"}, "no licence of the Hub"),
        ({"local_dir": "out", "license_name": "mine"}, "goes with license=other"),
        ({"local_dir": "out", "data_name": ""}, "data_name is missing"),
        ({"local_dir": "out", "data_id": "../x"}, "data_id='../x' is no name on the Hub"),
        ({"local_dir": "out", "eval_task": "bleu"}, "give data_id"),
    ],
)
def test_mistakes(options, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=re.escape(message)):
        publish(run, **(ABOUT | options))
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("missing", ["config.json", "trainer_state.json", "tokenizer.json"])
def test_an_unfinished_run_is_named(missing, run, tmp_path):
    (run / missing).unlink()
    with pytest.raises(ValueError, match=f"no finished training run: there is no {missing}"):
        publish(run, local_dir=tmp_path / "out", **ABOUT)
    (run / "run.json").unlink()
    with pytest.raises(ValueError, match="there is no folder"):
        publish(run / "nowhere", local_dir=tmp_path / "out", **ABOUT)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "trainer_state.json", "all_results.json"])
@pytest.mark.parametrize("kept", [0, 30])
def test_a_broken_file_is_named_in_one_line(name, kept, run, tmp_path):
    (run / name).write_bytes((run / name).read_bytes()[:kept])
    with pytest.raises(ValueError, match="can be opened|cannot be read") as raised:
        publish(run, local_dir=tmp_path / "out", **ABOUT)
    assert "\n" not in str(raised.value) and str(run) in str(raised.value) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("model_type", ["attn-gpt", "attn-bert", "attn-vit", "gpt2"])
def test_what_does_not_translate_is_refused_in_one_line(model_type, run, tmp_path):
    AutoConfig.for_model(model_type).save_pretrained(run)
    with pytest.raises(ValueError, match=f"holds a model of type '{model_type}', which does not translate") as raised:
        publish(run, local_dir=tmp_path / "out", **ABOUT)
    assert "\n" not in str(raised.value) and not (tmp_path / "out").exists()


def test_languages_are_asked_for_where_nothing_tells_them(run, tmp_path):
    (run / "run.json").unlink()
    with pytest.raises(ValueError, match="source_lang is missing"):
        publish(run, local_dir=tmp_path / "out", **ABOUT)


# the Hub


def test_a_second_upload_removes_what_the_first_left_and_keeps_the_rest(hub, run):
    publish(run, repo_id="jane/beasts", private=False, data_id="zoo/beasts", eval_task="a", **ABOUT)
    hub.tree("jane/beasts")["picture.png"] = b"mine"
    shutil.rmtree(run / "target_tokenizer")
    made = publish(run, repo_id="jane/beasts", commit_message="One vocabulary", **ABOUT)
    assert set(hub.tree("jane/beasts")) == {*made.files, "picture.png", ".gitattributes"}
    assert hub.messages("jane/beasts")[1:] == ["Publish a translation model of hf_attn", "One vocabulary"]
    assert made.notes == ["jane/beasts was there before, and is public"]


def test_a_branch(hub, run):
    made = publish(run, repo_id="jane/beasts", revision="v2", **ABOUT)
    assert made.location == f"{hub.url}/jane/beasts/tree/v2"
    assert set(made.files) < set(hub.tree("jane/beasts", "v2")) and set(hub.tree("jane/beasts")) == {".gitattributes"}


def test_another_model_is_not_written_over(hub, run):
    hub.create("jane/beasts", private=True)
    hub.commit("jane/beasts", "main", {"config.json": b"{}", "weights.bin": b"0"}, "an old model")
    with pytest.raises(ValueError, match="jane/beasts holds another model"):
        publish(run, repo_id="jane/beasts", **ABOUT)
    assert hub.messages("jane/beasts") == ["initial commit", "an old model"]
    publish(run, repo_id="jane/beasts", overwrite=True, **ABOUT)
    assert {"weights.bin", "model.safetensors"} < set(hub.tree("jane/beasts"))


@pytest.mark.parametrize(
    ("token", "fault", "message"),
    [
        (None, None, "there is no token of the Hub: run `hf auth login`, or set HF_TOKEN"),
        ("hf_wrong", None, "nothing was uploaded to jane/beasts: the Hub does not know the token (401)"),
        ("hf_reader", None, "nothing was uploaded to jane/beasts: the token may not write there (403)"),
        ("hf_jane", ("POST", "/api/repos/create", 500), "nothing was uploaded to jane/beasts: the Hub answered 500"),
        ("hf_jane", ("POST", "/api/repos/create", "cut"), "nothing was uploaded to jane/beasts: "),
        ("hf_jane", ("POST", "/preupload/", 403), "did not finish: the token may not write there (403)"),
        ("hf_jane", ("PUT", "/large/", "cut"), "did not finish: Error while uploading 'model.safetensors'"),
        ("hf_jane", ("PUT", "/large/", 500), "did not finish: Error while uploading 'model.safetensors'"),
        ("hf_jane", ("POST", "/commit/", "cut"), "did not finish: R"),
        ("hf_jane", ("POST", "/commit/", 409), "did not finish: the Hub answered 409, as the test wants it"),
    ],
)  # fmt: skip
def test_an_upload_that_fails_says_why_and_changes_nothing(token, fault, message, hub, monkeypatch, tmp_path):
    use_hub(monkeypatch, hub, tmp_path, token)
    hub.faults = [fault] if fault else []
    before = snapshot(trained("rnn"))
    with pytest.raises((OSError, ValueError), match=re.escape(message)) as raised:
        publish(trained("rnn"), repo_id="jane/beasts", **ABOUT)
    assert "\n" not in str(raised.value)
    assert snapshot(trained("rnn")) == before
    if "jane/beasts" in hub.repos:
        assert set(hub.tree("jane/beasts")) == {".gitattributes"}
    if fault:  # the same again, when the Hub is well
        hub.faults = []
        publish(trained("rnn"), repo_id="jane/beasts", **ABOUT)
        assert "model.safetensors" in hub.tree("jane/beasts")


def test_metadata_that_the_hub_refuses(hub):
    with pytest.raises(OSError, match="Invalid metadata in README.md. - .license. must be one of a list"):
        publish(trained("rnn"), repo_id="jane/beasts", **(ABOUT | {"license": "no-licence"}))
    assert set(hub.tree("jane/beasts")) == {".gitattributes"}


def test_offline_mode_is_named(hub, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(OSError, match="nothing was uploaded to jane/beasts: HF_HUB_OFFLINE is set"):
        publish(trained("rnn"), repo_id="jane/beasts", **ABOUT)
    assert hub.requests == []


def test_a_folder_and_a_dry_run_ask_nothing_of_the_hub(hub, tmp_path):
    publish(trained("rnn"), local_dir=tmp_path / "out", **ABOUT)
    made = publish(trained("rnn"), repo_id="jane/beasts", dry_run=True, **ABOUT)
    assert made.location is None and 'Translator("jane/beasts")' in made.card and hub.requests == []


@pytest.mark.parametrize("case", cases(heads=True, variants=False))
def test_a_model_pushes_itself_with_its_code(case, hub):
    model = case.model()
    model.push_to_hub("jane/itself", private=True)
    files = set(hub.tree("jane/itself"))
    assert {"README.md", "config.json", "model.safetensors", f"modeling_attn_{case.family}.py"} < files
    assert "hf_attn" in ModelCard(hub.tree("jane/itself")["README.md"].decode()).data.tags
    again = getattr(transformers, case.auto_name).from_pretrained("jane/itself", trust_remote_code=True)
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_publish_is_a_name_of_the_package(monkeypatch):
    monkeypatch.delattr(hf_attn, "hub")  # as before the first use
    assert hf_attn.hub.publish is publish and "hub" in hf_attn.__all__
