# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of one word in several sentences: how alike its vectors are, layer by layer.

    word alone   cosine(embedding(word), embedding(word)) = 1, whatever the sentences
    layer l      cosine(state_l(word | sentence a), state_l(word | sentence b)); layer 0 is the word and its position

Sources: Mikolov 2013 (arXiv 1301.3781) for one vector a word, Devlin 2019 (1810.04805) and Ethayarajh 2019 (1909.00512)
for vectors in context. `hf_attn/studies/python.py` asks a larger BERT the same.
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_attn.data.text import typed_ids
from hf_attn.data.tokenizer import piece_spans, readable_tokens

from .page import HtmlPage, escape, make_page
from .steps_text import read_text

STYLE = """
p, ol { margin: 0 0 8px; overflow-wrap: anywhere; }
ol { padding-inline: 1.6em; font-size: 17px; }
.faint { color: var(--faint); font-size: 14px; }
mark { background: color-mix(in srgb, var(--glow) 45%, var(--paper)); color: inherit; border-radius: 4px;
  padding: 0 3px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 15px; width: min(100%, 760px); }
th, td { border-bottom: 1px solid var(--edge); padding: 3px 8px 3px 0; text-align: start; font-weight: 400; }
th { color: var(--faint); vertical-align: bottom; }
th[scope=row] { white-space: nowrap; }
.bar { display: block; height: 9px; border-radius: 2px; background: var(--line); width: calc(100% * var(--size)); }
.bar.minus { background: var(--faint); }
"""


def word_html(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, word: str, sentences: Sequence[str]
) -> HtmlPage:
    """Compare the vectors of a word in several sentences.

    Args:
        model: a model of the families BERT or GPT, with any head or none, in eval mode.
        tokenizer: its tokenizer.
        word: which word; a part of one will do in a sentence that does not have it as a whole.
        sentences: two to four sentences with it.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: if there are fewer or more sentences, the word is not in one of them, and as `text_steps` does.
    """
    if not 2 <= len(sentences) <= 4:
        raise ValueError(f"sentences has {len(sentences)} entries; two to four can be compared")
    found = [word_vectors(model, tokenizer, word, sentence) for sentence in sentences]
    pairs = list(itertools.combinations(range(len(sentences)), 2))
    cosines = torch.stack([F.cosine_similarity(found[a][0], found[b][0], dim=-1) for a, b in pairs], dim=1)
    alone = [float(F.cosine_similarity(found[a][1], found[b][1], dim=-1)) for a, b in pairs]
    rows = [("word alone", alone)]
    rows += [(f"layer {number}", row) for number, row in enumerate(cosines.tolist())]
    items = "".join(
        f'<li><bdi lang="">{_marked(sentence, one[2])}</bdi></li>'
        for sentence, one in zip(sentences, found, strict=True)
    )
    head = "".join(f'<th scope="col">in {a + 1} and {b + 1}</th>' for a, b in pairs)
    lines = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{_bar(value)}</td>" for value in values)}</tr>'
        for name, values in rows
    )
    body = (
        f"<ol>{items}</ol>\n"
        f'<p class="faint">Read as <bdi lang="">{escape(" ".join(found[0][3]))}</bdi>. The cosine of its vectors: 1 is '
        "the same direction, 0 nothing in common. “Word alone” is its entry in the table of embeddings, the same in "
        "every sentence; layer 0 is that, with its position where the model adds one.</p>\n"
        '<div class="scroll" tabindex="0" role="region" aria-label="Cosines by layer">'
        f'<table><thead><tr><th scope="col">cosine</th>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
    )
    return make_page("A word in several sentences", body, style=STYLE, height=150 + 36 * (len(rows) + len(sentences)))


@torch.no_grad()
def word_vectors(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, word: str, sentence: str
) -> tuple[torch.Tensor, torch.Tensor, tuple[int, int], list[str]]:
    """Give the vectors of a word in a sentence, each the mean of those of its pieces.

    Args:
        model: of the families BERT or GPT.
        tokenizer: its tokenizer.
        word: its first occurrence is taken, as a whole word if there is one, in upper or lower case.
        sentence: with the word in it; special tokens in it are text.

    Returns:
        The states (layers + 1, hidden_size), the embedding with its position first; the embedding alone
        (embedding_size,); the characters of the word in the NFC form of the sentence; its pieces.

    Raises:
        ValueError: if the word is not in the sentence or no piece of it is, and as `text_steps` does.
    """
    start, end = _find(word, sentence)
    ids = typed_ids(tokenizer, sentence)
    spans = _spans(tokenizer, sentence, ids)
    pieces = [place for place, (first, last) in enumerate(spans) if first < end and last > start]
    if not pieces:
        raise ValueError(f"the tokenizer has no piece for the word {word!r} in the sentence {sentence!r}")
    read = read_text(model, tokenizer, ids)
    states = torch.stack([layer[0, pieces].float().mean(dim=0) for layer in read.outputs.hidden_states])
    chosen = torch.tensor([ids[place] for place in pieces], device=model.device)
    stack: Any = model.base_model
    alone = stack.embed_tokens(chosen).float().mean(dim=0)
    return states, alone, (start, end), readable_tokens(tokenizer, chosen.tolist())


def _find(word: str, sentence: str) -> tuple[int, int]:
    """Find a word in a sentence, as a whole if it is there as a whole, in upper or lower case."""
    wanted, text = (unicodedata.normalize("NFC", one) for one in (word.strip(), sentence))
    for pattern in (rf"(?<!\w){re.escape(wanted)}(?!\w)", re.escape(wanted)):
        for flags in (0, re.IGNORECASE):
            if wanted and (found := re.search(pattern, text, flags)):
                return found.span()
    raise ValueError(f"the word {word!r} is not in the sentence {sentence!r}")


def _spans(tokenizer: PreTrainedTokenizerBase, sentence: str, ids: list[int]) -> list[tuple[int, int]]:
    """Find the characters that each piece was cut from: the tokenizer knows, but where names of special tokens are
    text."""
    if not tokenizer.is_fast:
        return piece_spans(tokenizer, sentence, ids)
    cut = tokenizer(unicodedata.normalize("NFC", sentence), return_offsets_mapping=True)
    return cut["offset_mapping"] if cut["input_ids"] == ids else piece_spans(tokenizer, sentence, ids)


def _marked(sentence: str, span: tuple[int, int]) -> str:
    text, (start, end) = unicodedata.normalize("NFC", sentence), span
    return f"{escape(text[:start])}<mark>{escape(text[start:end])}</mark>{escape(text[end:])}"


def _bar(value: float) -> str:
    sign = " minus" if value < 0 else ""
    number = f"{round(value, 3) or 0.0:.3f}".replace("-", "−")
    return f'{number}<span class="bar{sign}" style="--size: {min(abs(value), 1.0):.4f}"></span>'
