# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""No network, the same random numbers in every test, and no time limit on examples."""

import os

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
