"""The steps of a model that reads one text: BERT, in both directions, or GPT, from left to right.

    all heads; 1 to 6 one head (`steps_heads.py`); 7 output

Read `hf_attn/models/modeling_attn_bert.py` and `modeling_attn_gpt.py` beside this file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_attn.data.tokenizer import readable_tokens
from hf_attn.models.masks import AttentionMask

from .page import direction
from .steps_common import Code, Quantity, Step, body_of, check_choices, likeliest, line_of, shape_of, vector
from .steps_heads import Words, head_steps, self_attention, what_follows

TEXT_FAMILIES = ("attn-bert", "attn-gpt")
BYTE = re.compile("<0x[0-9A-F]{2}>")


@torch.no_grad()
def text_steps(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str | Sequence[int],
    position: int,
    *,
    masked: Sequence[int] = (),
    layer: int | None = None,
    head: int = 0,
) -> list[Step]:
    """Compute the self-attention of one piece of a text anew, step by step, and what the model says at its place.

    Args:
        model: a model of the families BERT or GPT, with any head or none, in eval mode.
        tokenizer: its tokenizer.
        text: a text, or the ids of its pieces.
        position: which piece asks, counted from 0. A BERT with an output layer says which piece stands there, a GPT
            which one comes next.
        masked: the pieces that are hidden from the model behind the mask token, counted from 0.
        layer: layer, counted from 0; None is the last.
        head: which head is shown in detail, counted from 0.

    Returns:
        The steps in order.

    Raises:
        ValueError: if the model is of another family or in training mode, the text has no pieces or more than the
            model reads, there is no such piece, layer or head, or pieces are to be hidden and the tokenizer has no mask
            token.
    """
    config: Any = model.config
    read = read_text(model, tokenizer, text, masked)
    layers, heads = int(config.num_hidden_layers), int(config.num_attention_heads)
    layer = layers - 1 if layer is None else layer
    check_choices(position=(position, len(read.ids)), layer=(layer, layers), head=(head, heads))

    stack: Any = model.base_model
    outputs, causal = read.outputs, read.mask.causal
    given = self_attention(stack, layer, outputs.hidden_states[layer], read.mask)
    whom = "the text up to here" if causal else "the whole text"
    words = Words("The state of this piece", whom, readable_tokens(tokenizer, read.shown), "length")
    follows = what_follows(stack.layers[0], layers - layer - 1, "a feed-forward network follows")
    formula, meaning, said, code = _prediction(model, tokenizer, outputs, read.ids, position)
    last = Step(
        "Output",
        formula,
        f"{follows} {meaning}",
        [vector("last state", outputs.hidden_states[-1][0, position], "hidden_size"), *said],
        [line_of(type(stack).forward, "states = self.final_norm("), *code],
    )
    return [*head_steps(given, words, position, head), last]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model made of a text.

    Attributes:
        ids: the pieces of the text.
        shown: what the model read, some of them hidden.
        mask: what a piece may see.
        outputs: the model's, with all weights and states.
    """

    ids: list[int]
    shown: list[int]
    mask: AttentionMask
    outputs: Any


@torch.no_grad()
def read_text(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, text: str | Sequence[int], masked: Sequence[int] = ()
) -> Reading:
    """Let a BERT or a GPT read a text; arguments and errors as those of `text_steps`."""
    config: Any = model.config
    if config.model_type not in TEXT_FAMILIES:
        known = ", ".join(TEXT_FAMILIES)
        raise ValueError(f"model is of type {config.model_type!r}; the steps of a text are known for {known}")
    if model.training:
        raise ValueError("model is in training mode, in which it drops numbers at random; call model.eval()")
    ids = text_ids(tokenizer, text)
    shown = hide(tokenizer, ids, masked)
    inputs = torch.tensor([shown], device=model.device)
    causal = {"use_cache": False} if config.model_type == "attn-gpt" else {}
    outputs = model(
        inputs, torch.ones_like(inputs), output_attentions=True, output_hidden_states=True, return_dict=True, **causal
    )
    mask = AttentionMask(causal=True, window=config.sliding_window) if causal else AttentionMask()
    return Reading(ids, shown, mask, outputs)


def text_direction(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """Find the direction of a text; its special tokens and bytes are in Latin letters whatever the language."""
    ordinary = [number for number in ids if number not in tokenizer.all_special_ids]
    return direction([piece for piece in readable_tokens(tokenizer, ordinary) if not BYTE.fullmatch(piece)])


def text_ids(tokenizer: PreTrainedTokenizerBase, text: str | Sequence[int]) -> list[int]:
    """Give the ids of a text's pieces; ValueError if it has none."""
    ids = [int(number) for number in (tokenizer(text)["input_ids"] if isinstance(text, str) else text)]
    if not ids:
        raise ValueError("text has no pieces")
    return ids


def hide(tokenizer: PreTrainedTokenizerBase, ids: list[int], masked: Sequence[int]) -> list[int]:
    """Put the mask token in the place of some pieces.

    Args:
        tokenizer: which has it.
        ids: the pieces of a text.
        masked: which of them, counted from 0.

    Returns:
        As many ids.

    Raises:
        ValueError: if there is no such piece, or no mask token.
    """
    shown = list(ids)
    mask: Any = tokenizer.mask_token_id
    for number in masked:
        if mask is None:
            raise ValueError(f"masked is {list(masked)}, but the tokenizer has no mask token")
        check_choices(masked=(number, len(ids)))
        shown[number] = mask
    return shown


def _prediction(
    model: Any, tokenizer: PreTrainedTokenizerBase, outputs, ids: list[int], position: int
) -> tuple[str, str, list[Quantity], list[Code]]:
    """Give formula, meaning, numbers and lines of what the model's head says at a position."""
    forward, logits = type(model).forward, outputs.get("logits")
    if hasattr(model, "transform") and hasattr(model, "lm_head"):
        written = None if ids[position] == tokenizer.mask_token_id else ids[position]
        said = likeliest(tokenizer, logits[0, position], written, "probability of the piece here")
        return (
            "p = softmax(E norm(f(W state + b)) + b)",
            "The vocabulary's largest logits are the pieces that fit this place best.",
            [vector("transformed state", model.transform(outputs.hidden_states[-1][0, position]), "width"), said],
            [body_of(type(model.transform).forward), line_of(forward, "logits = self.lm_head(")],
        )
    if hasattr(model, "lm_head"):
        following = ids[position + 1] if position + 1 < len(ids) else None
        return (
            "p = softmax(E state)",
            "The vocabulary's largest logits are the likeliest next pieces.",
            [likeliest(tokenizer, logits[0, position], following)],
            [line_of(forward, "logits = self.lm_head(")],
        )
    if hasattr(model, "num_labels") and hasattr(model, "classifier"):
        names = [str(model.config.id2label[number]) for number in range(model.num_labels)]
        of_piece = logits.dim() == 3
        said = Quantity(
            "logit of each class", logits[0, position] if of_piece else logits[0], names, shape_of(classes=len(names))
        )
        meaning = "A last matrix scores the classes of " + ("this piece." if of_piece else "the whole text.")
        return "logits = W state + b", meaning, [said], [line_of(forward, "logits = self.classifier(")]
    return "state_i", "This is the last state of the piece, for whatever reads it.", [], []
