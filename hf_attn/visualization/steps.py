"""Take one step of a translation apart: how a model chose one target piece, with its own numbers.

Every number is computed anew with the model's own modules, and every line of code is read from their source. For a
network without attention the steps say what it has instead. Read `steps_recurrent.py` and `steps_transformer.py` for
the steps, `steps_html.py` for how they are drawn.
"""

from typing import TYPE_CHECKING

import torch

from .steps_common import Step
from .steps_recurrent import recurrent_steps
from .steps_transformer import transformer_steps

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator

FAMILIES = {"attn-rnn": recurrent_steps, "attn-transformer": transformer_steps}
KINDS = ("cross", "decoder")


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
    """Compute one target piece anew, step by step.

    Args:
        translator: what made the translation, with a model of this package.
        translation: a translation of one line.
        position: which target piece, counted from 0.
        layer: decoder layer, counted from 0; None is the last. Recurrent networks attend in one place.
        head: which head is shown, counted from 0.
        kind: "cross" for attention to the source; "decoder" for a Transformer's masked attention to what it has read.

    Returns:
        The steps in order.

    Raises:
        ValueError: if the translation has several lines or none, there is no such piece, layer, head or attention, or
            the model is of another package.
    """
    if translation.segments or not translation.target_ids:
        raise ValueError("translation has several lines or none; give one of one line (see `.segments`)")
    config = translator.model.config
    model_type = config.model_type
    if model_type not in FAMILIES:
        raise ValueError(f"model is of type {model_type!r}; steps are known for {', '.join(FAMILIES)}")
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    layers, heads = 1, 1
    if model_type == "attn-transformer":
        layers, heads = int(config.decoder_layers), int(config.decoder_attention_heads)
    layer = layers - 1 if layer is None else layer
    for name, value, count in (
        ("position", position, len(translation.target_ids)),
        ("layer", layer, layers),
        ("head", head, heads),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < count:
            raise ValueError(f"{name} is {value!r}; here it must be a whole number from 0 to {count - 1}")
    return FAMILIES[model_type](translator, translation, position, layer, head, kind)
