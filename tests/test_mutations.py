"""Plant faults in the package one by one: each is found by the test named beside it, by an assertion that fails.

Every fault changes one place in a copy of the package, in which the named test then runs; unchanged, all of them pass.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MODELS = "models/modeling_attn_"


@dataclass(frozen=True)
class Fault:
    """What is changed where, and which test has to fail."""

    name: str
    file: str  # in hf_attn/
    right: str
    wrong: str
    test: str  # in tests/


FAULTS = (
    Fault(
        "beams go on from each other's states",
        "models/recurrent.py",
        "tensor.index_select(0, beam_idx.to(tensor.device))",
        "tensor",
        "test_contract_search.py::test_wide_beam_search_is_exhaustive",
    ),
    Fault(
        "cross-attention sees padding",
        MODELS + "transformer.py",
        "source_mask = AttentionMask(padding_mask(encoder_attention_mask))",
        "source_mask = AttentionMask()",
        "test_contract_generation.py::test_a_sentence_becomes_the_same_alone_and_wherever_the_padding_stands",
    ),
    Fault(
        "self-attention sees padding",
        MODELS + "transformer.py",
        "mask=AttentionMask(padding),",
        "mask=AttentionMask(),",
        "test_contract_trainer.py::test_padding_changes_neither_loss_nor_gradient",
    ),
    Fault(
        "a recurrent encoder reads padding",
        MODELS + "rnn.py",
        "if real is not None or self.config.reverse_source:",
        "if self.config.reverse_source:",
        "test_contract_trainer.py::test_padding_changes_neither_loss_nor_gradient",
    ),
    Fault(
        "the decoder sees the future",
        MODELS + "transformer.py",
        "AttentionMask(padding, causal=True, query_offset=cached_len)",
        "AttentionMask(padding, causal=False, query_offset=cached_len)",
        "test_contract_generation.py::test_the_cache_changes_no_id_and_no_score",
    ),
    Fault(
        "the loss is a mean over its own labels",
        "models/generation.py",
        "if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)",
        "",
        "test_contract_calls.py::test_the_loss_is_the_mean_over_labels_or_their_sum_by_the_items_of_the_update",
    ),
    Fault(
        "recurrent layers keep whatever memory held",
        "models/base.py",
        "isinstance(module, (nn.RNNBase, nn.RNNCellBase))",
        "isinstance(module, nn.RNNCellBase)",
        "test_contract.py::test_what_a_checkpoint_lacks_is_named_and_new",
    ),
    Fault(
        "the head has a matrix of its own",
        "models/seq2seq.py",
        "if has_head and self.config.tie_word_embeddings:",
        "if False:",
        "test_contract.py::test_tied_matrices_are_one_storage_through_saving_and_loading",
    ),
    Fault(
        "labels are shifted twice",
        "models/generation.py",
        "shift_labels=labels.contiguous(), ",
        "",
        "test_contract_calls.py::test_the_loss_is_the_mean_over_labels_or_their_sum_by_the_items_of_the_update",
    ),
    Fault(
        "positions lag by one after the first step",
        MODELS + "transformer.py",
        "[None] + cached_len",
        "[None] + (cached_len - 1 if cached_len else 0)",
        "test_contract_generation.py::test_the_cache_changes_no_id_and_no_score",
    ),
    Fault(
        "the softmax runs over queries",
        "models/attention.py",
        "torch.softmax(scores, dim=-1,",
        "torch.softmax(scores, dim=-2,",
        "models/test_attention.py::test_attend_is_the_loop",
    ),
    Fault(
        "dropout in evaluation",
        "models/multihead.py",
        "dropout=self.dropout if self.training else 0.0",
        "dropout=self.dropout",
        "models/test_multihead.py::test_dropout_is_on_weights_in_training_only_and_keeps_the_mean",
    ),
    Fault(
        "the mask is read the other way round",
        "models/attention.py",
        "scores.masked_fill(~(mask | empty)",
        "scores.masked_fill(mask & ~empty",
        "models/test_attention.py::test_attend_is_the_loop",
    ),
    Fault(
        "scores are not scaled",
        "models/scores.py",
        "self.scale = 1.0 / math.sqrt(query_dim)",
        "self.scale = 1.0",
        "models/test_scores.py::test_every_pair_has_the_score_of_the_formula",
    ),
    Fault(
        "weights of the wrong beam",
        "visualization/extract.py",
        "layers[beams[:, step].to(layers.device)]",
        "layers[: len(beams)]",
        "test_contract_calls.py::test_weights_of_beam_search_are_those_of_a_pass_over_what_it_returned",
    ),
    Fault(
        "a buffer that is not saved and not filled again",
        "models/positions.py",
        "self.slopes = slopes",
        'self.register_buffer("slopes", torch.tensor(slopes), persistent=False)',
        "test_contract.py::test_loading_restores_every_parameter_and_buffer",
    ),
    Fault(
        "weights are returned after dropout",
        "models/attention.py",
        "context = torch.nn.functional.dropout(weights, dropout, training=dropout > 0) @ value",
        "weights = torch.nn.functional.dropout(weights, dropout, training=dropout > 0)\n    context = weights @ value",
        "models/test_attention.py::test_dropout_keeps_the_mean_and_returns_the_weights_before_it",
    ),
    Fault(
        "the source is projected anew at every step",
        "models/multihead.py",
        "cache.is_updated[self.layer_index] = True",
        "cache.is_updated[self.layer_index] = False",
        "models/test_multihead.py::test_the_source_is_projected_once_per_sentence_and_layer",
    ),
    Fault(
        "keys are not rotated",
        "models/multihead.py",
        "query, key = rotate(query, angles), rotate(key, angles)",
        "query = rotate(query, angles)",
        "models/test_multihead.py::test_a_bias_on_the_scores_and_rotated_queries_and_keys_are_the_loop",
    ),
    Fault(
        "the gates of an LSTM are exchanged",
        "models/recurrent.py",
        "input_gate, forget_gate, candidate, output_gate =",
        "forget_gate, input_gate, candidate, output_gate =",
        "models/test_recurrent.py::test_a_step_is_torchs_cell_and_the_equation",
    ),
    Fault(
        "the length counts the start token",
        "inference/decoding.py",
        "length = max(len(token_log_probs), 1)",
        "length = len(token_log_probs) + 1",
        "inference/test_decoding.py::test_coverage_ranks_the_beams_by_gnmt",
    ),
)


def copy_package(folder: Path) -> Path:
    """Copy the package and its tests to where a fault may be planted."""
    for name in ("hf_attn", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def failures(folder: Path, *tests: str) -> dict[str, str]:
    """Run tests in a copy; give the message of each that failed, or of the error that came before it."""
    report = folder / "report.xml"
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder / 'tests'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--junitxml={report}"]
    run = subprocess.run(
        [*command, *(f"tests/{test}" for test in tests)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert report.exists(), run.stdout + run.stderr
    cases = list(ElementTree.parse(report).iter("testcase"))
    ran = {case.get("name", "").split("[")[0] for case in cases}
    assert ran >= {test.split("::")[1].split("[")[0] for test in tests}, run.stdout  # none is only for slow runs
    found = ((case.get("name", ""), case.find("failure"), case.find("error")) for case in cases)
    return {
        name: failure.get("message", "") if failure is not None else "an error, no failure: " + run.stdout
        for name, failure, error in found
        if failure is not None or error is not None
    }


def test_without_a_fault_every_named_test_passes(tmp_path):
    assert failures(copy_package(tmp_path), *sorted({fault.test for fault in FAULTS})) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_is_found(fault, tmp_path):
    folder = copy_package(tmp_path)
    file = folder / "hf_attn" / fault.file
    text = file.read_text(encoding="utf-8")
    assert text.count(fault.right) == 1
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    found = failures(folder, fault.test)
    assert len(found) == 1  # -x: the first
    ((name, message),) = found.items()
    assert name.split("[")[0] == fault.test.split("::")[1].split("[")[0]
    assert message.startswith(("AssertionError", "assert ")), message
