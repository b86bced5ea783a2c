"""The comparison: trained and measured once, the same numbers as sacrebleu, conditions that must not differ."""

import json
import math
from pathlib import Path

import pytest
import sacrebleu
import yaml
from scripting import load_script
from transformers import AutoTokenizer, HfArgumentParser

from hf_attn.data import phrasebook

SCRIPTS = Path(__file__).parents[2] / "scripts"
SETTINGS = {
    "data": {"phrasebook": "en-it"},
    "tokenizer": {"vocab_size": 320, "kind": "bpe"},
    "arguments": {"max_steps": 4, "tokens_per_batch": 200, "max_train_samples": 60, "max_eval_samples": 5}
    | {"eval_steps": 2, "save_steps": 2, "learning_rate": 0.01, "bf16": False, "use_cpu": True, "disable_tqdm": True},
    "models": {
        "none": {"recipe": "none-tiny", "config_overrides": "hidden_size=16,embedding_size=16"},
        "transformer": {
            "recipe": "transformer-tiny",
            "config_overrides": "hidden_size=16,encoder_layers=1,encoder_intermediate_size=16",
        },
    },
    "run": {"jobs": 2, "threads": 1},
    "evaluation": {"num_beams": 2, "max_samples": 12, "lengths": [1, 7]},
    "differences": [{"system": "transformer", "baseline": "none", "shortest": 7}],
}


@pytest.fixture(scope="module")
def script():
    return load_script("scripts/compare_architectures.py")


@pytest.fixture
def in_process(script, monkeypatch):
    """Run the other scripts in this process, which saves their imports; give the list of calls."""
    calls = []
    train, evaluate = load_script("scripts/train_translation.py"), load_script("scripts/evaluate_translation.py")

    def run_script(name, arguments, log, comparison):
        calls.append((name, Path(arguments["output_dir"]).relative_to(log.parent).parts[0]))
        words = [word for key, value in arguments.items() if value is not None for word in (f"--{key}", str(value))]
        if name == "train_translation":
            train.main(words)
        else:
            (parsed,) = HfArgumentParser(evaluate.EvaluationArguments).parse_args_into_dataclasses(words)
            evaluate.main(parsed)

    monkeypatch.setattr(script, "run_script", run_script)
    return calls


def write(path, settings):
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_the_whole_comparison(script, in_process, tmp_path):
    sequential = SETTINGS | {"run": {"jobs": 1, "threads": 1}}  # in one process the order matters
    output = tmp_path / "out"
    args = script.CompareArguments(output_dir=str(output), config=write(tmp_path / "a.yaml", sequential))
    report = script.main(args)
    assert in_process == [
        ("train_translation", "none"),
        ("evaluate_translation", "none"),
        ("train_translation", "transformer"),
        ("evaluate_translation", "transformer"),
    ]

    # the numbers are sacrebleu's, of the translations that lie in the folders
    pairs = phrasebook("en-it", "test", 12)["translation"]
    references = [pair["it"] for pair in pairs]
    long = [row for row, pair in enumerate(pairs) if len(pair["en"].split()) >= 7]
    assert 0 < len(long) < 12
    of_long = {}
    for name, model in report["models"].items():
        text = (output / name / "test" / "generated_predictions.txt").read_text(encoding="utf-8")
        lines = text.split("\n")[:-1]
        assert model["bleu"] == pytest.approx(sacrebleu.corpus_bleu(lines, [references]).score)
        assert model["chrf"] == pytest.approx(sacrebleu.corpus_chrf(lines, [references]).score)
        kept = [lines[row] for row in long], [[references[row] for row in long]]
        of_long[name] = sacrebleu.corpus_bleu(*kept).score
        assert model["by_length"][-1]["bleu"] == pytest.approx(of_long[name])
        assert model["curve"]["steps"] == [2, 4] and model["curve"]["clocked"]
        assert 0 < model["seconds"] < 60 and math.isfinite(model["target_tokens_per_second"])
    (difference,) = report["differences"]
    assert difference["difference"] == pytest.approx(of_long["transformer"] - of_long["none"])
    assert difference["sentences"] == len(long)

    # 4 updates are more or less than an epoch; the tokens of an epoch are those of the training pairs
    tokenizer = AutoTokenizer.from_pretrained(output / "tokenizer")
    targets = [pair["it"] for pair in phrasebook("en-it", "train", 60)["translation"]]
    tokens = sum(len(tokenizer(text).input_ids) for text in targets)
    model = report["models"]["none"]
    state = json.loads((output / "none" / "trainer_state.json").read_text())
    trained = model["target_tokens_per_second"] * model["seconds"]
    assert trained == pytest.approx(tokens * state["epoch"], rel=1e-6)

    rates = report["models"]["transformer"]["alignment"]["error_rates"]
    assert [len(row) for row in rates] == [5, 5] and "alignment" not in model  # 4 heads and their mean
    measured = json.loads((output / "transformer" / "test" / "evaluation.json").read_text())["alignment"]
    measured = measured["by_layer_and_head"][measured["chosen"]["method"]]
    assert rates[0][4] == measured["layer 1, mean of heads"] and rates[1][2] == measured["layer 2, head 3"]
    table = (output / "comparison.md").read_text(encoding="utf-8")
    assert "| transformer | transformer-tiny |" in table and "sources of 7 or more words" in table
    assert json.loads((output / "comparison.json").read_text()) == report
    for name in ("learning_curves", "length", "seconds", "alignment"):
        assert (output / f"{name}.png").read_bytes().startswith(b"\x89PNG")

    # again: nothing is left to do, and the numbers are the same
    in_process.clear()
    assert script.main(args) == report and in_process == []
    # other conditions are refused, not mixed in
    longer = sequential | {"arguments": SETTINGS["arguments"] | {"max_steps": 6}}
    with pytest.raises(ValueError, match="none is not the model .*4 updates"):
        script.main(script.CompareArguments(output_dir=str(output), config=write(tmp_path / "b.yaml", longer)))
    wider = sequential | {"models": {"none": {"recipe": "none-tiny"}}, "differences": []}
    with pytest.raises(ValueError, match="none is not the model .*hidden_size=16"):
        script.main(script.CompareArguments(output_dir=str(output), config=write(tmp_path / "c.yaml", wider)))


@pytest.mark.slow
def test_two_processes_at_a_time(script, tmp_path):
    args = script.CompareArguments(output_dir=str(tmp_path), config=write(tmp_path / "a.yaml", SETTINGS))
    report = script.main(args)
    assert list(report["models"]) == ["none", "transformer"]
    assert report["run"].startswith("2 models at a time, 1 thread each")


def test_a_failing_script_shows_the_end_of_its_log(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SCRIPTS", tmp_path)
    (tmp_path / "fail.py").write_text(
        "import os, sys; sys.exit(os.environ['OMP_NUM_THREADS'] + ' '.join(sys.argv[1:]))"
    )
    comparison = script.Comparison(**SETTINGS)
    with pytest.raises(ValueError, match=r"fail.py ended with 1; .*a.log ends with\n1--text a b --beams 2\n$"):
        script.run_script("fail", {"text": "a b", "size": None, "beams": 2}, tmp_path / "a.log", comparison)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 3}, "must have the keys data, tokenizer, .*unexpected keyword argument 'seeds'"),
        ({"run": {"jobs": 2}}, "lacks run.threads"),
        ({"arguments": {}}, "lacks arguments.max_steps"),
        ({"differences": [{"system": "gpt", "baseline": "none"}]}, "differences names 'gpt'; models has none, trans"),
        (
            {"data": {"source_lang": "en", "target_lang": "fr", "train_file": "a.tsv"}},
            "train_file: there is no file .*a.tsv; give the folder with data_dir",
        ),
    ],
)
def test_mistakes_in_the_yaml_file(script, tmp_path, change, message):
    config = write(tmp_path / "a.yaml", SETTINGS | change)
    with pytest.raises(ValueError, match=message):
        script.read_comparison(script.CompareArguments(output_dir=str(tmp_path), config=config))


def test_the_yaml_files_of_the_repository(script, tmp_path):
    with pytest.raises(ValueError, match="exactly one of config and quick"):
        script.CompareArguments(output_dir=str(tmp_path))
    for name in ("train", "dev", "test"):
        (tmp_path / f"tatoeba.en-fr.{name}.tsv").write_text("a\tb\n", encoding="utf-8")
    config = str(SCRIPTS / "compare_tatoeba.yaml")
    options = [{"quick": True}, {"config": config, "data_dir": str(tmp_path)}]
    for settings in [script.read_comparison(script.CompareArguments(output_dir="out", **one)) for one in options]:
        deep = [] if "phrasebook" in settings.data else ["gnmt", "convs2s"]
        assert list(settings.models) == ["none", "bahdanau", "luong", *deep, "transformer", "marian"]
        own = script.load_split(settings, "test") if "phrasebook" not in settings.data else [None]
        assert len(own) == 1
