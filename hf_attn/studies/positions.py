# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What position vectors know of distances, and how the score of two tokens falls with it.

    vector(pos)[2i], [2i + 1] = sin, cos of pos / 10000^(2i / d)
    vector(a) . vector(b) = sum_i cos((a - b) / 10000^(2i / d))        depends on the distance alone
    vector(pos + k) = rotation(k) vector(pos)                          each pair of coordinates turns
    wavelength_i = 2 pi 10000^(2i / d)                                 second, minute and hour hand

Sources: Vaswani 2017 (arXiv 1706.03762) section 3.5; learned, Gehring 2017 (1705.03122); rotary, Su 2021 (2104.09864);
ALiBi, Press 2022 (2108.12409); relative, Raffel 2020 (1910.10683). Look at: the spread, how far the scores of pairs at
one distance lie apart: nothing for all but learned vectors, which know no distance before training (give an encoder to
see what they learn) and end with their table.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ..models.positions import (
    AlibiBias,
    LearnedPositions,
    RelativeBias,
    inverse_frequencies,
    rotary_angles,
    rotate,
    sinusoidal,
)
from ..models.scores import ScaledDot
from .tables import seeded, text_table

QUICK: dict[str, Any] = {"length": 12, "width": 16}


def by_offset(scores: torch.Tensor) -> dict[str, list[float]]:
    """Average the scores (length, length) of pairs with the same offset, key position minus query position.

    Returns:
        For each offset `mean`, and `spread`, the largest score less the smallest; the ends, which few pairs have, are
        left out.
    """
    reach = len(scores) // 2
    pairs = [scores.diagonal(offset) for offset in range(-reach, reach + 1)]
    return {
        "offset": list(range(-reach, reach + 1)),
        "mean": [float(pair.mean()) for pair in pairs],
        "spread": [float(pair.max() - pair.min()) for pair in pairs],
    }


def all_scores(length: int, width: int, seed: int, learned: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """Compute what each kind of positions gives to the score of every pair, (length, length), whatever the words are.

    Added vectors are compared with each other; one random query and key, the same at every position, is turned; a bias
    is the score. `learned` are the vectors of a trained table.
    """
    positions, score = torch.arange(length)[None], ScaledDot(width, width)
    with seeded(seed):
        table = LearnedPositions(length, width)
        relative = RelativeBias(1, bidirectional=True, num_buckets=16, max_distance=max(length // 2, 8))
        word = torch.randn(1, 1, 1, width).expand(1, 1, length, width)
    turned = rotate(word, rotary_angles(positions, width))
    waves, rows = sinusoidal(positions, width)[None], table(positions)[None]
    kinds = {
        "sinusoidal": score(waves, waves),
        "learned, untrained": score(rows, rows),
        "rotary": score(turned, turned),
        "ALiBi, head 1 of 8": AlibiBias(8)(positions, positions)[:, :1],
        "relative, untrained": relative(positions, positions),
    }
    if learned is not None:
        vectors = learned[None, None]
        kinds["learned, trained"] = ScaledDot(vectors.shape[-1], vectors.shape[-1])(vectors, vectors)
    return {name: scores[0, 0].detach() for name, scores in kinds.items()}


def run(length: int = 50, width: int = 128, seed: int = 0, encoder: str | None = None) -> dict[str, Any]:
    """Measure the vectors of Vaswani 2017, and the scores by offset of every kind of positions.

    Args:
        length: number of positions.
        width: of a vector.
        seed: of untrained tables and of the word that is turned.
        encoder: a folder or wheel with an encoder whose learned positions are measured too.
    """
    learned = None
    if encoder is not None:
        from .python import open_encoder

        embedding = open_encoder(encoder)[0].embedding
        if embedding.learned is None:
            raise ValueError(f"encoder is {encoder!r}; it has no learned positions")
        # but for position 0: an encoder has the same token there in every text, and its vector is like no other
        learned = embedding.learned.weight.detach()[embedding.position_offset + 1 :][:length]
    vectors = sinusoidal(torch.arange(length), width)
    products = vectors @ vectors.T
    # all sines, then all cosines: the shift is the rotation of rotary positions, cosines first
    sines, cosines = sinusoidal(torch.arange(length), width, order="concatenated").chunk(2, dim=-1)
    start = torch.cat([cosines, sines], dim=-1)
    shift = length // 5
    turned = rotate(start[None, None], rotary_angles(torch.full((1, length), shift), width))[0, 0]
    kinds = {name: by_offset(scores) for name, scores in all_scores(length, width, seed, learned).items()}
    return {
        "length": length,
        "width": width,
        "vectors": vectors.tolist(),
        "products_with_10": {place: float(products[10, place]) for place in (9, 11, 20, 40) if place < length},
        "products_by_offset": by_offset(products),
        "shift": shift,
        "shift_error": float((turned[:-shift] - start[shift:]).abs().max()),
        "wavelengths": (2 * math.pi / inverse_frequencies(width, 10000.0, vectors.device)).tolist(),
        "kinds": kinds,
    }


def show(result: dict[str, Any]) -> str:
    """Write the products of the lecture, and score and spread of each kind."""
    rows = []
    for name, kind in result["kinds"].items():
        score = dict(zip(kind["offset"], kind["mean"]))
        row = {f"at_{offset}": score.get(offset) for offset in (-16, -4, -1, 0, 1, 4, 16)}
        rows.append({"positions": name, **row, "largest_spread": max(kind["spread"])})
    columns = {"positions": "", **{name: ".3f" for name in rows[0] if name.startswith("at_")}, "largest_spread": ".1e"}
    waves = result["wavelengths"]
    return "\n".join(
        [
            "dot products with position 10: "
            + ", ".join(f"{place}: {value:.2f}" for place, value in result["products_with_10"].items()),
            f"pairs at one distance differ by at most {max(result['products_by_offset']['spread']):.0e}",
            f"{result['shift']} positions further = rotated, up to {result['shift_error']:.0e}",
            f"wavelengths from {waves[0]:.2f} to {waves[-1]:,.0f} positions",
            text_table(rows, columns),
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw the vectors, and the score against the offset for each kind."""
    from .figures import panels

    kinds = result["kinds"]
    figure, axes = panels(2, 4, 3.6, 3.2)
    image = axes[0].imshow(result["vectors"], cmap="RdBu", aspect="auto", vmin=-1, vmax=1)
    axes[0].set(title="position vectors", xlabel="coordinate", ylabel="position")
    figure.colorbar(image, ax=axes[0])
    axes[1].plot(result["wavelengths"], marker="o", markersize=2)
    axes[1].set(title="wavelengths", xlabel="pair of coordinates", ylabel="positions", yscale="log")
    for one, (name, kind) in zip(axes[2:], kinds.items()):
        half = [spread / 2 for spread in kind["spread"]]
        one.plot(kind["offset"], kind["mean"], label="mean")
        low = [mean - part for mean, part in zip(kind["mean"], half)]
        high = [mean + part for mean, part in zip(kind["mean"], half)]
        one.fill_between(kind["offset"], low, high, alpha=0.3, label="spread")
        one.set(title=name, xlabel="offset of the key", ylabel="score")
    for one in axes[1 : 2 + len(kinds)]:
        one.grid(alpha=0.3)
    axes[2].legend(fontsize=8)
    for one in axes[2 + len(kinds) :]:
        one.remove()
    return figure
