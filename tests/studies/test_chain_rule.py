# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The probability of a sentence against the numbers that the lecture prints, and numpy's products."""

import numpy as np
import pytest

from hf_attn.studies import chain_rule


def test_the_sentence_of_the_lecture():
    result = chain_rule.run()
    assert result["probability"] == pytest.approx(0.008)
    for name in ("perplexity", "perplexity_of_the_metric", "exp_of_torch_loss"):
        assert round(result[name], 4) == 3.3437
    assert round(result["perplexity_of_guessing"], 1) == 10000.0
    assert "P = 0.008, perplexity = 3.3437" in chain_rule.show(result)


def test_the_product_is_zero_after_as_many_words_as_in_numpy():
    for probability, words in chain_rule.run()["words_until_zero"].items():
        factors = np.full(words, float(probability))
        assert np.prod(factors) == 0 < np.prod(factors[:-1])
