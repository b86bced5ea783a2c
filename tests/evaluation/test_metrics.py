# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The `evaluate` metrics: loaded by path with no network, loaded by name, combined, fed in batches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from hf_attn.evaluation import METRICS, load_metric, metric_path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["alignment_error_rate", "bertscore", "bleu", "chrf", "gleu", "meteor", "perplexity"]
HYPOTHESES = [  # 7 + 5 tokens
    "le chat est assis sur le tapis",
    "il fait beau aujourd'hui dehors",
]
REFERENCES = [["le chat est assis sur un tapis", "le chat dort sur le tapis"], "il fait très beau aujourd'hui"]
STREAMS = [[REFERENCES[0][0], REFERENCES[1]], [REFERENCES[0][1], None]]

OFFLINE = f"""
import json, socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("the network was used")
socket.socket.connect = socket.getaddrinfo = refuse
from hf_attn.evaluation import metric_path
imported = [name for name in ("evaluate", "sacrebleu", "datasets", "nltk") if name in sys.modules]
import evaluate

data = dict(predictions={HYPOTHESES!r}, references={REFERENCES!r})
links = dict(predictions=[[[0, 0], [1, 1]]], sure=[[[0, 0]]], possible=[[[1, 1]]])
metrics = {{name: evaluate.load(metric_path(name)) for name in {NAMES!r}}}
results = {{
    "bleu": metrics["bleu"].compute(**data),
    "chrf": metrics["chrf"].compute(**data),
    "perplexity": metrics["perplexity"].compute(log_probs=[-2.0, -4.0], token_counts=[1, 2]),
    "alignment_error_rate": metrics["alignment_error_rate"].compute(**links),
    "combined": evaluate.combine([metrics["bleu"], metrics["chrf"]]).compute(**data, lang="ko"),
    "combined by path": evaluate.combine([metric_path("bleu"), metric_path("chrf")]).compute(**data),
    "imported": imported,
    "names": {{name: metric.name for name, metric in metrics.items()}},
}}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def offline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("offline")
    # a folder of that name must not be taken for our metric
    (folder / "bleu").mkdir()
    (folder / "bleu" / "bleu.py").write_text("raise RuntimeError('the wrong script was loaded')", encoding="utf-8")
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", OFFLINE]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_loaded_by_path_without_network_they_agree_with_sacrebleu(offline):
    bleu = sacrebleu.BLEU()
    expected = bleu.corpus_score(HYPOTHESES, STREAMS)
    assert offline["bleu"]["score"] == expected.score and 10 < expected.score < 90
    assert offline["bleu"]["precisions"] == expected.precisions
    assert offline["bleu"]["signature"] == str(bleu.get_signature())
    chrf = sacrebleu.CHRF()
    assert offline["chrf"]["score"] == chrf.corpus_score(HYPOTHESES, STREAMS).score
    assert offline["chrf"]["signature"] == str(chrf.get_signature())
    assert offline["perplexity"]["perplexity"] == pytest.approx(2.718281828459045**2)
    assert offline["alignment_error_rate"]["alignment_error_rate"] == 0.0
    assert offline["names"]["bleu"] == "hf_attn_bleu"


def test_combined_without_network(offline):
    combined = offline["combined"]
    assert combined["hf_attn_bleu_score"] == sacrebleu.corpus_bleu(HYPOTHESES, STREAMS, tokenize="char").score
    assert combined["hf_attn_chrf_score"] == offline["chrf"]["score"]
    assert offline["combined by path"]["hf_attn_bleu_score"] == offline["bleu"]["score"]


def test_loaded_by_name_they_give_the_same_as_by_path(offline):
    data = {"predictions": HYPOTHESES, "references": REFERENCES}
    assert load_metric("bleu").compute(**data) == offline["bleu"]
    assert load_metric("chrf").compute(**data) == offline["chrf"]


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_batches_and_single_sentences_add_up(keep_in_memory, tmp_path):
    """Flat references in one batch and lists in the next must not confuse the metric."""
    metric = load_metric("bleu", keep_in_memory=keep_in_memory, cache_dir=str(tmp_path))
    metric.add_batch(predictions=HYPOTHESES[:1], references=["le chat est assis sur un tapis"])
    metric.add_batch(predictions=HYPOTHESES, references=REFERENCES)
    metric.add(prediction=HYPOTHESES[1], reference=REFERENCES[1])
    expected = sacrebleu.corpus_bleu(
        [HYPOTHESES[0], *HYPOTHESES, HYPOTHESES[1]],
        [[REFERENCES[0][0], REFERENCES[0][0], REFERENCES[1], REFERENCES[1]], [None, REFERENCES[0][1], None, None]],
    )
    assert metric.compute()["score"] == expected.score
    assert metric.compute(predictions=HYPOTHESES, references=REFERENCES)["sys_len"] == 12  # the old rows are gone


def test_perplexity_and_alignments_one_sentence_at_a_time():
    perplexity = load_metric("perplexity")
    perplexity.add(log_probs=-3.0, token_counts=1)
    perplexity.add(log_probs=-1.0, token_counts=3)
    assert perplexity.compute() == {"perplexity": pytest.approx(2.718281828459045), "loss": 1.0, "tokens": 4}
    alignment = load_metric("alignment_error_rate")
    alignment.add(prediction=[(0, 0)], sure=[(0, 0)], possible=[])
    alignment.add(prediction=[], sure=[(0, 0)], possible=[(1, 0)])
    assert alignment.compute()["alignment_error_rate"] == pytest.approx(1 - 2 / 3)


def test_a_short_corpus_warns_and_scores_sentences():
    metric = load_metric("bleu")
    with pytest.warns(UserWarning, match="too short for BLEU-4"):
        result = metric.compute(predictions=["hi there"], references=["hi there"], sentence_scores=True)
    assert result["score"] == 0
    assert result["sentence_scores"] == [pytest.approx(100)]


def test_a_refused_call_leaves_nothing_behind():
    metric = load_metric("bleu")
    with pytest.raises(ValueError, match=r"predictions 2, references 1"):
        metric.compute(predictions=["x", "y"], references=["x"])
    with pytest.raises(ValueError, match=r"references\[1\] is empty"):
        metric.compute(predictions=["x", "y"], references=[["x"], []])
    with pytest.raises(ValueError, match="tokenize is 'x'"):
        metric.compute(predictions=["x", "y"], references=["x", "y"], tokenize="x")
    assert metric.compute(predictions=HYPOTHESES, references=REFERENCES)["sys_len"] == 12


@pytest.mark.parametrize("name", ["bertscore", "bleu", "chrf", "gleu", "meteor"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"predictions": [], "references": []}, "predictions 0, references 0.*at least one"),
        ({"predictions": ["a"]}, "references: missing"),
        ({"predictions": "a", "references": "b"}, "single text"),
        ({"predictions": ["a"], "references": [None]}, r"references\[0\] is empty"),
    ],
)
def test_what_is_not_allowed_is_named(name, columns, message):
    with pytest.raises(ValueError, match=message):
        load_metric(name).compute(**columns)


def test_names():
    assert sorted(METRICS) == NAMES
    for call in (load_metric, metric_path):
        with pytest.raises(
            ValueError, match="'rouge'.*bleu, chrf, gleu, meteor, bertscore, perplexity, alignment_error_rate"
        ):
            call("rouge")


def test_importing_the_package_imports_no_metric_library(offline):
    assert offline["imported"] == []


def test_scripts_import_one_module_a_line():
    """`evaluate.load` reads the import lines by a pattern, and takes the first metric class as the main one."""
    for name in NAMES:
        lines = (Path(metric_path(name)) / f"hfattn_{name}.py").read_text(encoding="utf-8").splitlines()
        imports = [line for line in lines if line.startswith(("import ", "from "))]
        assert len(imports) >= 3
        assert not [line for line in imports if "," in line or "#" in line or "evaluate import" in line]
