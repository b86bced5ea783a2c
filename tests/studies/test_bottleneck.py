# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Gradients behind a last state against the product of Jacobians in numpy."""

import numpy as np
import pytest
import torch

from hf_attn.models.recurrent import EncoderRnnLayer
from hf_attn.studies import bottleneck


def test_gradients_of_a_recurrent_network_are_products_of_jacobians():
    texts, length, width = 3, 7, 4
    layer = EncoderRnnLayer("rnn", width, width, bidirectional=False).double()
    states = torch.randn(texts, length, width, dtype=torch.float64, requires_grad=True)
    measured = bottleneck.gradients_by_distance(layer(states)[0][:, -1], states)
    w, u = layer.rnn.weight_ih_l0.detach().numpy(), layer.rnn.weight_hh_l0.detach().numpy()
    bias = (layer.rnn.bias_ih_l0 + layer.rnn.bias_hh_l0).detach().numpy()
    expected = np.zeros(length)
    for text in states.detach().numpy():
        hidden, slopes = np.zeros(width), []
        for word in text:
            hidden = np.tanh(w @ word + u @ hidden + bias)
            slopes.append(np.diag(1 - hidden**2))
        for t in range(length):
            jacobian = slopes[t] @ w
            for s in range(t + 1, length):
                jacobian = slopes[s] @ u @ jacobian
            expected[length - 1 - t] += np.linalg.norm(jacobian) / texts
    assert measured == pytest.approx(expected.tolist(), rel=1e-9)


def test_the_first_word_fades_behind_a_last_state_and_not_behind_attention():
    result = bottleneck.run(length=30, width=16, texts=4)
    first = {row["reads"]: row["relative"][-1] for row in result["rows"]}
    for kind in ("rnn", "gru", "lstm"):
        assert first[f"{kind}, last state"] < 1e-4
    assert first["rnn, attention over its states"] > 0.05 and first["self-attention, last state"] > 0.05
    gone = {row["reads"]: row["words_until_a_hundredth"] for row in result["rows"]}
    assert 1 < gone["rnn, last state"] < 20 and gone["self-attention, last state"] is None


def test_one_state_is_as_large_whatever_the_text():
    kept = bottleneck.run(length=3, width=8, texts=1, kept=(5, 50, 1000))["kept"]
    assert [(row["one_state"], row["all_states"]) for row in kept] == [(8, 40), (8, 400), (8, 8000)]
