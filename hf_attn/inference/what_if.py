"""Ask what a translator would have written otherwise: without a source word, without a head, after another piece.

    hidden words   attention to their pieces is switched off in the decoder; the encoder has read them
    removed heads  W^O [head_1; ..; 0; ..; head_h]: what a head would add to the states is taken away
    another piece  the pieces before it stay, it is written instead, and the translator goes on

Each answer has the old translation under the new condition beside the new one, so that the change of every probability
can be read off. Taking away heads: Voita 2019 (arXiv 1905.09418), Michel 2019 (1905.10650); switching off attention to
a word: Geva 2023 (2304.14767, "attention knockout"). Nothing of the translator given is changed.
Read `translator.py` for how translations are made and scored.
"""

import copy
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions

from hf_attn.data.tokenizer import readable_tokens
from hf_attn.models.checks import is_whole
from hf_attn.models.multihead import MultiHeadAttention

from .decoding import Decoding, decode_batch, start_id
from .ensemble import vocab_limits
from .sides import Side, output_side
from .translation import Translation
from .translator import Translator

KINDS = ("cross", "decoder", "encoder")


@dataclass(frozen=True)
class Candidate:
    """A piece that might have been written.

    Attributes:
        id: its number in the target vocabulary.
        token: the piece as people read it.
        probability: given the source and the pieces before it.
    """

    id: int
    token: str
    probability: float


@dataclass(frozen=True)
class WhatIf:
    """What was written, and what would have been.

    Attributes:
        before: the translation as it was.
        rescored: the same pieces under the new condition; None where the condition is another piece.
        after: what the translator writes under the new condition.
    """

    before: Translation
    rescored: Translation | None
    after: Translation


@torch.no_grad()
def next_pieces(translator: Translator, translation: Translation, count: int = 5) -> list[list[Candidate]]:
    """Give the likeliest pieces at every step of a translation.

    Args:
        translator: what made the translation.
        translation: of one line.
        count: how many for each step.

    Returns:
        For each target piece the likeliest pieces in its place, the likeliest first.

    Raises:
        ValueError: if the count is below 1, or the source has several lines or none.
    """
    _check_one_line(translation)
    if not is_whole(count, 1):
        raise ValueError(f"count is {count!r}; it must be a whole number of at least 1")
    model: Any = translator.model.eval()
    read = [start_id(model), *translation.target_ids[:-1]]
    logits = model(
        input_ids=torch.tensor([translation.source_ids], device=model.device),
        decoder_input_ids=torch.tensor([read], device=model.device),
        use_cache=False,
    ).logits[0]
    return [candidates(translator.target_tokenizer, row, count) for row in logits]


def candidates(
    tokenizer: PreTrainedTokenizerBase, logits: torch.Tensor, count: int, written: int | None = None
) -> list[Candidate]:
    """Give the likeliest pieces in one place.

    Args:
        tokenizer: which has the pieces.
        logits: (vocab_size,)
        count: how many.
        written: the piece that is written there; it comes last if it is not among them.

    Returns:
        The pieces, the likeliest first.
    """
    probabilities = logits.float().softmax(dim=-1)
    ids = probabilities.topk(min(count, len(probabilities))).indices.tolist()
    ids += [written] if written is not None and written not in ids else []
    # one by one: beside each other, bytes would be read as a character
    return [Candidate(number, readable_tokens(tokenizer, [number])[0], float(probabilities[number])) for number in ids]


def hide_words(translator: Translator, translation: Translation, words: int | Sequence[int], **search: Any) -> WhatIf:
    """Switch off the decoder's attention to source words.

    Args:
        translator: what made the translation.
        translation: of one line.
        words: numbers of words in `translation.words().source_words`, one or several.
        **search: `num_beams` and `max_new_tokens`, as in `Translator.__call__`.

    Returns:
        What becomes of the translation. Where all is hidden, nothing is attended to.

    Raises:
        ValueError: if there is no such word, the model has no cross-attention, or the source has several lines or none.
    """
    _check_one_line(translation)
    if translation.cross_attentions is None:
        raise ValueError("this translation has no cross-attention, so no word can be hidden from it")
    groups = translation.words().source_pieces
    visible = torch.ones(1, len(translation.source_ids), dtype=torch.long)
    for word in _numbers("words", words, len(groups)):
        visible[0, groups[word]] = 0
    return _under(_seeing(translator.model, visible), translator, translation, search)


def head_counts(translator: Translator) -> dict[str, list[int]]:
    """Give the number of heads in each layer, for each kind of attention of which `remove_heads` can take some away."""
    found = {kind: _attentions(translator.model, kind) for kind in KINDS}
    return {kind: [one.num_heads for one in layers] for kind, layers in found.items() if layers}


def remove_heads(
    translator: Translator,
    translation: Translation,
    layer: int,
    heads: int | Sequence[int],
    kind: str = "cross",
    **search: Any,
) -> WhatIf:
    """Take away what heads of one layer add to the states.

    Args:
        translator: what made the translation.
        translation: of one line.
        layer: counted from 0.
        heads: counted from 0, one or several.
        kind: "cross" for attention to the source, "decoder" or "encoder" for self-attention.
        **search: `num_beams` and `max_new_tokens`, as in `Translator.__call__`.

    Returns:
        What becomes of the translation.

    Raises:
        ValueError: if there is no such layer or head, or the model has no multi-head attention of this kind.
    """
    _check_one_line(translation)
    model = copy.deepcopy(translator.model)
    attention = _attention(model, layer, kind)
    width = attention.head_dim
    with torch.no_grad():
        for head in _numbers("heads", heads, attention.num_heads):
            attention.output_projection.weight[:, head * width : (head + 1) * width] = 0
    return _under(model, translator, translation, search)


def force_piece(translator: Translator, translation: Translation, position: int, piece: int, **search: Any) -> WhatIf:
    """Write another piece, and go on from there.

    Args:
        translator: what made the translation.
        translation: of one line.
        position: which target piece is replaced, counted from 0; what stands before it stays.
        piece: number of the piece in the target vocabulary, as `next_pieces` gives it.
        **search: `num_beams` and `max_new_tokens`, as in `Translator.__call__`.

    Returns:
        What becomes of the translation.

    Raises:
        ValueError: if there is no such position or piece, or the output would be longer than `max_new_tokens`.
    """
    _check_one_line(translation)
    (position,) = _numbers("position", [position], len(translation.target_ids))
    known = min(len(translator.target_tokenizer), vocab_limits(translator.model)[1])
    (piece,) = _numbers("piece", [piece], known)
    prefix = [*translation.target_ids[:position], piece]
    return WhatIf(translation, None, _decode(translator, translation, prefix, search))


def _under(model: PreTrainedModel, translator: Translator, translation: Translation, search: dict) -> WhatIf:
    """Translate anew, and score the old translation, with a changed model."""
    changed = Translator(model, (translator.tokenizer, translator.target_tokenizer))
    written = (translation.target_ids, translation.target_tokens, translation.target_spans)
    target = Side(translation.text, *written, translation.truncated)
    (rescored,) = changed._teacher_forced([(_source(translation), target)], True, 1.0)
    return WhatIf(translation, rescored, _decode(changed, translation, [], search))


def _decode(
    translator: Translator,
    translation: Translation,
    prefix: list[int],
    search: dict[str, Any],
) -> Translation:
    """Translate the source of a translation again; the output starts with a prefix."""
    unknown = set(search) - {"num_beams", "max_new_tokens"}
    if unknown:
        raise TypeError(f"{', '.join(sorted(unknown))}: the search takes num_beams and max_new_tokens")
    decoding = Decoding(search.get("num_beams", 1), 1, search.get("max_new_tokens"), 1.0, False, None)
    source = _source(translation)
    if prefix and prefix[-1] in translator._stop_ids:  # nothing comes after the end
        ids, truncated = prefix, False
    else:
        sources = [(source.text, source.ids)]
        (((ids, truncated),),) = decode_batch(
            translator.model, decoding, sources, [prefix], translator._stop_ids, translator._pad_id
        )
    target = output_side(translator.target_tokenizer, ids, truncated)
    return translator._teacher_forced([(source, target)], True, 1.0)[0]


def _source(translation: Translation) -> Side:
    return Side(translation.source, translation.source_ids, translation.source_tokens, translation.source_spans, False)


def _seeing(model: PreTrainedModel, visible: torch.Tensor) -> PreTrainedModel:
    """Give a model with the same weights whose decoder sees only some source pieces; its encoder reads them all.

    Args:
        model: an encoder-decoder model.
        visible: (1, source_len), 1 for the pieces that may be attended to.
    """
    kind: Any = type(model)

    class Seeing(kind):
        @functools.wraps(kind.forward)
        def forward(self, input_ids=None, attention_mask=None, encoder_outputs=None, **kwargs):
            if encoder_outputs is None:
                asked = {"return_dict": True, "output_attentions": kwargs.get("output_attentions")}
                encoder_outputs = self.get_encoder()(input_ids=input_ids, attention_mask=attention_mask, **asked)
            if isinstance(encoder_outputs, BaseModelOutputWithPastAndCrossAttentions):  # T5 reads its own by place
                encoder_outputs = BaseModelOutput(encoder_outputs[0], attentions=encoder_outputs.attentions)
            states = next(iter(encoder_outputs.values()))
            seen = visible.to(self.device).expand(states.shape[0], -1)
            return super().forward(attention_mask=seen, encoder_outputs=encoder_outputs, **kwargs)

    view = copy.copy(model)
    view.__class__ = Seeing
    return view


def _attention(model: Any, layer: int, kind: str) -> MultiHeadAttention:
    """Find the attention of a layer."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    attentions = _attentions(model, kind)
    if not attentions:
        raise ValueError(f"kind is {kind!r}; {type(model).__name__} has no multi-head attention of this kind")
    (layer,) = _numbers("layer", [layer], len(attentions))
    return attentions[layer]


def _attentions(model: Any, kind: str) -> list[MultiHeadAttention]:
    """Find the multi-head attention of each layer; none where the model has no such attention."""
    stack = model.get_encoder() if kind == "encoder" else model.get_decoder()
    part = "cross_attention" if kind == "cross" else "self_attention"
    found = [getattr(one, part, None) for one in getattr(stack, "layers", None) or []]
    return [one for one in found if isinstance(one, MultiHeadAttention)]


def _numbers(name: str, given: int | Sequence[int], count: int) -> list[int]:
    """Give whole numbers from 0 to count - 1, one or several."""
    numbers = list(given) if isinstance(given, Iterable) else [given]
    for number in numbers:
        if not is_whole(number, 0) or number >= count:
            raise ValueError(f"{name} is {number!r}; it must be a whole number from 0 to {count - 1}")
    if not numbers:
        raise ValueError(f"{name} is empty; give at least one number from 0 to {count - 1}")
    return [int(number) for number in numbers]  # numpy's would be no JSON


def _check_one_line(translation: Translation) -> None:
    if translation.segments or not translation.target_ids:
        lines = len(translation.segments)
        raise ValueError(f"this translation has {lines} lines; what if is asked of one line")
