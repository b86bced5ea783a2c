"""Take one step of a translation apart: how a model chose one target piece, with its own numbers.

Every number is computed anew with the model's own modules, and every line of code is read from their source. For a
network without attention the steps say what it has instead. Read `steps_recurrent.py`, `steps_convs2s.py` and
`steps_transformer.py` for the steps, `steps_text.py` for those of a model that reads one text, `steps_html.py` for how
they are drawn.
"""

from typing import TYPE_CHECKING, Any

import torch

from .steps_common import Step, check_choices
from .steps_convs2s import convolution_steps
from .steps_recurrent import recurrent_steps
from .steps_transformer import transformer_steps

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator

# the kinds of attention that each family has
FAMILIES = {"attn-rnn": ("cross",), "attn-convs2s": ("cross",), "attn-transformer": ("cross", "decoder", "encoder")}


@torch.no_grad()
def attention_steps(
    translator: "Translator",
    translation: "Translation",
    position: int,
    *,
    layer: int | None = None,
    head: int = 0,
    kind: str = "cross",
) -> list[Step]:
    """Compute one piece anew, step by step.

    Args:
        translator: what made the translation, with a model of this package.
        translation: a translation of one line.
        position: which target piece, for kind "encoder" which source piece, counted from 0.
        layer: layer of the decoder, for kind "encoder" of the encoder, counted from 0; None is the last. Recurrent
            networks attend in one place.
        head: which head is shown in detail, counted from 0.
        kind: "cross" for attention to the source; "decoder" for a Transformer's masked attention to what it has read,
            "encoder" for its source's attention to itself.

    Returns:
        The steps in order.

    Raises:
        ValueError: if the translation has several lines or none, there is no such piece, layer, head or attention, or
            the model is of another package.
    """
    if translation.segments or not translation.target_ids:
        raise ValueError("translation has several lines or none; give one of one line (see `.segments`)")
    config: Any = translator.model.config
    model_type = config.model_type
    if model_type not in FAMILIES:
        raise ValueError(f"model is of type {model_type!r}; steps are known for {', '.join(FAMILIES)}")
    if kind not in FAMILIES[model_type]:
        raise ValueError(f"kind is {kind!r}; for {model_type} it must be one of {', '.join(FAMILIES[model_type])}")
    pieces, side = (translation.source_ids, "encoder") if kind == "encoder" else (translation.target_ids, "decoder")
    layers = 1 if model_type == "attn-rnn" else int(getattr(config, f"{side}_layers"))
    heads = getattr(config, f"{side}_attention_heads", 1)
    layer = layers - 1 if layer is None else layer
    check_choices(position=(position, len(pieces)), layer=(layer, layers), head=(head, heads))
    if model_type == "attn-rnn":
        return recurrent_steps(translator, translation, position)
    if model_type == "attn-convs2s":
        return convolution_steps(translator, translation, position, layer)
    return transformer_steps(translator, translation, position, layer, head, kind)
