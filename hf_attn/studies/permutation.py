# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Does a layer see a set or a sequence? Move its inputs and look whether its outputs move along.

    equivariant:  F(sigma(X)) = sigma(F(X))        invariant:  pool(F(sigma(X))) = pool(F(X))

Source: Vaswani 2017 (arXiv 1706.03762) section 3.5; for attention on sets, Lee 2019 (1810.00825). Look at:
self-attention alone, at any depth, is equivariant, and its mean invariant: "the dog bit the man" and "the man bit the
dog" have one vector. Any positions end that, and so does a causal mask without any; recurrent and convolutional layers
never had it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..models.configuration_attn_bert import POSITION_TYPES, AttnBertConfig
from ..models.convolution import GatedConvolution
from ..models.masks import AttentionMask
from ..models.modeling_attn_bert import AttnBertModel
from ..models.multihead import MultiHeadAttention
from ..models.recurrent import EncoderRnnLayer
from .tables import seeded, text_table

Layer = Callable[[torch.Tensor], torch.Tensor]
QUICK: dict[str, Any] = {"length": 5, "orders": 2}
SENTENCES = (("the", "dog", "bit", "the", "man"), ("the", "man", "bit", "the", "dog"))


def layers(width: int) -> dict[str, Layer]:
    """Build the layers; each takes and returns states (batch, length, width)."""
    attention = MultiHeadAttention(width, 2)
    recurrent = {kind: EncoderRnnLayer(kind, width, width, bidirectional=False) for kind in ("rnn", "gru", "lstm")}
    found: dict[str, Layer] = {"self-attention": lambda states: attention(states)[0]}
    for kind in POSITION_TYPES:
        found[f"3 encoder layers, positions: {kind}"] = _encoder(kind, width)
    found["self-attention, causal mask"] = lambda states: attention(states, mask=AttentionMask(causal=True))[0]
    for kind, layer in recurrent.items():
        found[kind] = lambda states, layer=layer: layer(states)[0]
    found["convolution, 3 wide"] = GatedConvolution(width, 3, causal=False)
    return found


def _encoder(kind: str, width: int) -> Layer:
    config = AttnBertConfig(
        vocab_size=5,
        hidden_size=width,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=2 * width,
        position_type=kind,
        type_vocab_size=0,
        initializer_range=0.3,
        use_pooler=False,
    )
    model = AttnBertModel(config).eval()
    return lambda states: model(inputs_embeds=states).last_hidden_state


@torch.no_grad()
def measure(layer: Layer, states: torch.Tensor, orders: list[torch.Tensor]) -> dict[str, float]:
    """Compare a layer's outputs for states (1, length, width) with those for the same states in other orders.

    Returns:
        The largest difference relative to the largest output: `of_words`, each with its own, and `of_mean`, pooled.
    """
    output = layer(states)
    scale, pooled = output.abs().max(), output.mean(dim=1)
    moved = [layer(states[:, order]) for order in orders]
    words = max(float((after - output[:, order]).abs().max()) for after, order in zip(moved, orders))
    means = max(float((after.mean(dim=1) - pooled).abs().max()) for after in moved)
    return {"of_words": words / float(scale), "of_mean": means / float(pooled.abs().max())}


def run(length: int = 12, width: int = 16, orders: int = 10, seed: int = 0) -> dict[str, Any]:
    """Measure each layer on random states in random orders, and on two sentences of the same words.

    Args:
        length: number of states.
        width: of each.
        orders: number of orders, the reversed one first.
        seed: of weights, states and orders.
    """
    with seeded(seed):
        built, states = layers(width), torch.randn(1, length, width)
        moves = [torch.arange(length).flip(0), *(torch.randperm(length) for _ in range(orders - 1))]
        vectors = {word: torch.randn(width) for word in dict.fromkeys(SENTENCES[0])}
    rows = []
    first, second = (torch.stack([vectors[word] for word in sentence])[None] for sentence in SENTENCES)
    for name, layer in built.items():
        with torch.no_grad():
            one, other = layer(first).mean(dim=1), layer(second).mean(dim=1)
        row = {"layer": name, **measure(layer, states, moves)}
        rows.append({**row, "of_sentences": float((one - other).abs().max() / one.abs().max())})
    return {"length": length, "orders": orders, "sentences": [" ".join(one) for one in SENTENCES], "rows": rows}


def show(result: dict[str, Any]) -> str:
    """Write a row for each layer."""
    rows = [{**row, "reads": "a set" if row["of_words"] < 1e-5 else "a sequence"} for row in result["rows"]]
    columns = {"layer": "", "of_words": ".1e", "of_mean": ".1e", "of_sentences": ".1e", "reads": ""}
    first, second = result["sentences"]
    return (
        f"largest differences in {result['orders']} orders, and between the means of '{first}' and '{second}':\n"
        + text_table(rows, columns)
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw the differences of each layer as bars on a logarithmic scale."""
    from .figures import panels

    rows = result["rows"]
    figure, axes = panels(1, 1, 7.5, 0.42 * len(rows) + 1)
    for shift, name, label in ((-0.2, "of_words", "each word's output"), (0.2, "of_mean", "their mean")):
        axes[0].barh([place + shift for place in range(len(rows))], [row[name] for row in rows], 0.38, label=label)
    axes[0].set_yticks(range(len(rows)), [row["layer"] for row in rows])
    axes[0].invert_yaxis()
    axes[0].axvline(1e-5, color="gray", linestyle=":", label="rounding")
    axes[0].set(xscale="log", xlim=(1e-9, 9), xlabel="difference when the words change places, relative to the output")
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside upper right", ncols=3)
    return figure
