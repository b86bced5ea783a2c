"""A saved folder opens where the package is not installed, through every Auto class that fits, and can be saved
again."""

import json
import subprocess
import sys

import pytest
import torch

from hf_attn.registry import FAMILIES, family_module

TINY = {
    "rnn": {"hidden_size": 16, "embedding_size": 16, "encoder_layers": 1, "decoder_layers": 1, "attention_size": 8},
    "transformer": {
        "hidden_size": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_intermediate_size": 32,
        "decoder_intermediate_size": 32,
    },
}

# Runs in a process of its own, in which the package cannot be imported.
OPEN_ELSEWHERE = """
import json, sys
sys.modules["hf_attn"] = None
import torch, transformers
folder, again = sys.argv[1:3]
answers = {}
for auto_name in sys.argv[3:]:
    model = getattr(transformers, auto_name).from_pretrained(folder, trust_remote_code=True).eval()
    ids = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]])
    target = torch.tensor([[1, 5, 6], [1, 7, 8]])
    answers[auto_name] = model(input_ids=ids, decoder_input_ids=target)[0].tolist()
    if model.can_generate():
        for beams in (1, 3):
            answers[f"beams {beams}"] = model.generate(ids, num_beams=beams, max_new_tokens=8).tolist()
        model.save_pretrained(again)
transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
try:
    import hf_attn
    answers["importable"] = True
except ImportError:
    answers["importable"] = False
print("ANSWERS" + json.dumps(answers))
"""


def open_elsewhere(folder, again, auto_names, home):
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", OPEN_ELSEWHERE, str(folder), str(again), *auto_names]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.split("ANSWERS")[1])


def test_the_families_are_the_expected_ones():
    assert FAMILIES == ("rnn", "transformer")
    names = {family: [cls.__name__ for cls in family_module(family).AUTO_CLASSES.values()] for family in FAMILIES}
    assert names == {
        "rnn": ["AttnRnnModel", "AttnRnnForConditionalGeneration"],
        "transformer": ["AttnTransformerModel", "AttnTransformerForConditionalGeneration"],
    }


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_head_opens_through_every_auto_class_and_saves_again(family, tmp_path):
    auto_classes = family_module(family).AUTO_CLASSES
    torch.manual_seed(0)
    config = auto_classes["AutoModel"].config_class(vocab_size=30, initializer_range=0.5, **TINY[family])
    model = auto_classes["AutoModelForSeq2SeqLM"](config).eval()
    folder, again, thrice = (tmp_path / name for name in ("saved", "saved-again", "saved-thrice"))
    model.save_pretrained(folder)

    ids, target = torch.tensor([[5, 6, 7, 2], [8, 9, 2, 0]]), torch.tensor([[1, 5, 6], [1, 7, 8]])
    expected = {"AutoModelForSeq2SeqLM": model(input_ids=ids, decoder_input_ids=target).logits.tolist()}
    expected["AutoModel"] = model.model(input_ids=ids, decoder_input_ids=target).last_hidden_state.tolist()
    for beams in (1, 3):
        expected[f"beams {beams}"] = model.generate(ids, num_beams=beams, max_new_tokens=8).tolist()

    for opened, saved in ((folder, again), (again, thrice)):  # `again` is saved by a process that has no package
        answers = open_elsewhere(opened, saved, list(auto_classes), tmp_path)
        assert answers.pop("importable") is False
        for name, answer in answers.items():
            torch.testing.assert_close(
                torch.tensor(answer), torch.tensor(expected[name]), atol=1e-5, rtol=1e-5, msg=name
            )
        assert set(answers) == set(expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_exactly_the_needed_files_are_saved(family, tmp_path):
    auto_classes = family_module(family).AUTO_CLASSES
    model = auto_classes["AutoModelForSeq2SeqLM"](auto_classes["AutoModel"].config_class(vocab_size=30, **TINY[family]))
    model.save_pretrained(tmp_path / "code")
    model.save_pretrained(tmp_path / "plain", include_code=False)
    saved = {path.name for path in (tmp_path / "code").iterdir()}
    plain = {path.name for path in (tmp_path / "plain").iterdir()}
    assert plain == {"config.json", "generation_config.json", "model.safetensors"}
    assert saved > plain and {name for name in saved - plain if not name.endswith(".py")} == set()
    other = {"rnn": "transformer", "transformer": "rnn"}[family]
    assert f"modeling_attn_{family}.py" in saved and not any(other in name for name in saved)
    assert "auto_map" not in json.loads((tmp_path / "plain" / "config.json").read_text())
    auto_map = json.loads((tmp_path / "code" / "config.json").read_text())["auto_map"]
    assert set(auto_map) == {"AutoConfig", *auto_classes}
    assert getattr(model.config, "auto_map", None) is None  # saving leaves no trace in the configuration
