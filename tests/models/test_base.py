# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Initial values, what loading restores, misspelt arguments. How folders carry their code: hub/test_remote_code.py."""

import json
import math
import re

import pytest
import torch
from torch import nn
from transformers import PreTrainedConfig

from hf_attn.models.base import AttnPreTrainedModel


class TinyConfig(PreTrainedConfig):
    model_type = "tiny-base-for-tests"
    hidden_size: int = 6
    initializer_range: float = 0.02


class TinyModel(AttnPreTrainedModel):
    config: TinyConfig

    def __init__(self, config: TinyConfig):
        super().__init__(config)
        size = config.hidden_size
        self.rnn = nn.RNN(size, size)
        self.gru = nn.GRU(4, size, num_layers=2, bidirectional=True)
        self.lstm_cell = nn.LSTMCell(4, size)
        self.linear = nn.Linear(50, 60)
        self.norm = nn.LayerNorm(size)
        self.post_init()


AUTO_CLASSES = {"AutoModel": TinyModel}
NUMBER_OF_GATES = {"rnn": 1, "gru": 3, "lstm_cell": 4}


@pytest.mark.parametrize("name", NUMBER_OF_GATES)
def test_recurrent_layers_start_orthogonal_glorot_and_zero(name):
    module = getattr(TinyModel(TinyConfig()), name)
    kinds = set()
    for parameter_name, parameter in module.named_parameters():
        kinds.add(parameter_name.split("_l")[0])
        if "weight_hh" in parameter_name:
            gates = parameter.view(NUMBER_OF_GATES[name], 6, 6)
            for gate in gates:
                torch.testing.assert_close(gate @ gate.T, torch.eye(6), atol=1e-5, rtol=0)
            for one in range(len(gates)):
                assert not any(torch.equal(gates[one], gates[other]) for other in range(one))
        elif "weight_ih" in parameter_name:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.7 * bound < parameter.abs().max() <= bound
        else:
            assert (parameter == 0).all()
    assert kinds == {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}


def test_other_layers_start_as_in_transformers():
    model = TinyModel(TinyConfig(initializer_range=0.1))
    assert model.linear.weight.std().item() == pytest.approx(0.1, rel=0.1)
    assert (model.linear.bias == 0).all() and (model.norm.weight == 1).all() and (model.norm.bias == 0).all()


def test_loading_restores_parameters(tmp_path):
    model = TinyModel(TinyConfig())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    model.save_pretrained(tmp_path, include_code=False)
    for _ in range(5):
        poison = [torch.full((6,), float("nan")) for _ in range(100)]  # freed memory that the loader may be given
        del poison
        loaded = TinyModel.from_pretrained(tmp_path)
        for name, parameter in model.named_parameters():
            assert torch.equal(loaded.get_parameter(name), parameter), name


def test_what_a_checkpoint_lacks_is_initialised(tmp_path):
    model = TinyModel(TinyConfig())
    state = {name: value for name, value in model.state_dict().items() if not name.startswith(("gru", "norm"))}
    model.save_pretrained(tmp_path, state_dict=state, include_code=False)
    loaded = TinyModel.from_pretrained(tmp_path)
    assert torch.equal(loaded.rnn.weight_hh_l0, model.rnn.weight_hh_l0)
    for gate in loaded.gru.weight_hh_l1_reverse.view(3, 6, 6):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6), atol=1e-5, rtol=0)
    assert (loaded.gru.bias_hh_l0 == 0).all() and (loaded.norm.weight == 1).all()


def saved_auto_map(folder):
    return json.loads((folder / "config.json").read_text()).get("auto_map")


def test_without_code_a_folder_holds_data_only(tmp_path):
    model = TinyModel(TinyConfig())
    model.config.auto_map = {"AutoModel": "elsewhere.Model"}
    model.save_pretrained(tmp_path, include_code=False)
    assert saved_auto_map(tmp_path) is None
    assert {file.suffix for file in tmp_path.iterdir()} == {".json", ".safetensors"}
    assert model.config.auto_map == {"AutoModel": "elsewhere.Model"}


@pytest.mark.parametrize("include_code", [True, False])
def test_a_failed_save_leaves_the_configuration_as_it_was(include_code, tmp_path):
    model, file = TinyModel(TinyConfig()), tmp_path / "file"
    file.write_text("in the way")
    with pytest.raises((ValueError, OSError), match=re.escape(str(file)) + "|imports the package by its name"):
        model.save_pretrained(file / "folder", include_code=include_code)
    assert getattr(model.config, "auto_map", None) is None
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("misspelt", ["sizes", "labels_", "return_dicts", "num_item_in_batch"])
def test_a_misspelt_argument_is_refused_and_the_nearest_named(misspelt):
    class Doubling(TinyModel):
        def forward(self, size, labels=None, **kwargs):
            return 2 * size, kwargs

    model = Doubling(TinyConfig())
    assert model(3, position_ids=1, token_type_ids=2, num_items_in_batch=4) == (
        6,
        {"position_ids": 1, "token_type_ids": 2, "num_items_in_batch": 4},
    )
    with pytest.raises(TypeError, match=rf"Doubling has no argument '{misspelt}'; did you mean '\w+'\?"):
        model(3, **{misspelt: 1})
