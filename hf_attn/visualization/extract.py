"""Bring attention weights into one tensor per kind: from the output of `generate()`, and to the arguments of bertviz.

`generate()` returns weights step by step and beam by beam. Row t of a finished hypothesis was computed at step t by the
beam that hypothesis occupied then:

    weights[r, layer, head, t, :] = steps[t][layer][beam_indices[r, t], head, -1, :]

Read `heatmap.py` or `alignment_html.py` next: they draw what a `Translation` carries; and `picture.py`, pictures.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from hf_attn.models.checks import is_whole

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation


class GeneratedAttentions(NamedTuple):
    """The attention weights behind generated sequences, float32 on CPU; None where the model has no such attention.

    Row t of the decoder's weights is the step that chose `sequences[:, t + 1]`. Rows after the end of a sequence are 0.

    Attributes:
        cross_attentions: (sequences, layers, heads, target_len, source_len).
        encoder_attentions: (sequences, layers, heads, source_len, source_len).
        decoder_attentions: (sequences, layers, heads, target_len, target_len); column i is the decoder's input i,
            that is `sequences[:, i]`.
    """

    cross_attentions: torch.Tensor | None
    encoder_attentions: torch.Tensor | None
    decoder_attentions: torch.Tensor | None


def attentions_from_generate(output: Any, *, eos_token_id: int | list[int] | None = None) -> GeneratedAttentions:
    """Collect the attention weights of every sequence that an encoder-decoder's `generate()` returned.

    Serves greedy search, sampling and beam search, with and without a cache, `num_return_sequences` included.

    Args:
        output: what `generate(..., return_dict_in_generate=True, output_attentions=True)` returned.
        eos_token_id: the id or ids that end a sequence, as in `model.generation_config.eos_token_id`. Beam search says
            itself where a sequence ends; otherwise rows after the first end piece are set to 0 only if it is given.

    Returns:
        One tensor per kind, in the order of `output.sequences`.

    Raises:
        ValueError: if `output` holds no attention weights, or is not that of an encoder-decoder.
    """
    if getattr(output, "sequences", None) is None or not hasattr(output, "cross_attentions"):
        raise ValueError(
            f"output is a {type(output).__name__}; it must be what an encoder-decoder's "
            "generate(..., return_dict_in_generate=True, output_attentions=True) returned"
        )
    if not output.cross_attentions:
        raise ValueError("output.cross_attentions is empty: call generate() with output_attentions=True")
    sequences = output.sequences.cpu()
    beams, alive = _beams_and_length(output, sequences, eos_token_id)
    encoder = None
    if output.encoder_attentions is not None:
        layers = _checked_layers("encoder_attentions", output.encoder_attentions)
        stacked = torch.stack([layer.float().cpu() for layer in layers], dim=1)
        encoder = stacked.repeat_interleave(sequences.shape[0] // stacked.shape[0], dim=0)
    return GeneratedAttentions(
        _follow_beams("cross_attentions", output.cross_attentions, beams, alive, square=False),
        encoder,
        _follow_beams("decoder_attentions", output.decoder_attentions, beams, alive, square=True),
    )


def attention_rollout(weights: torch.Tensor) -> torch.Tensor:
    """Estimate how much of each input has arrived at each position after each layer of a stack.

    Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928, section 3): half of a position is what it was before
    the layer, since the residual adds it, and half what the mean of the heads attends to,

        rollout_l = (mean of heads of weights_l + I) / 2 @ rollout_(l-1),    rollout_0 = I

    It is an estimate: values, feed-forward networks and norms are left out.

    Args:
        weights: (layers, heads, length, length)

    Returns:
        (layers, length, length); rows sum to 1.
    """
    own = torch.eye(weights.shape[-1], device=weights.device)
    arrived, after_layers = own, []
    for layer in weights.float():
        arrived = (layer.mean(dim=0) + own) / 2 @ arrived
        after_layers.append(arrived)
    return torch.stack(after_layers)


def picture_weights(attentions: torch.Tensor | Sequence[torch.Tensor], grid: tuple[int, int]) -> torch.Tensor:
    """Bring the weights of an encoder of pictures into one tensor.

    Args:
        attentions: (layers, heads, length, length), or a model's `attentions` for one picture: for each layer
            (1, heads, length, length). The patches are the last of the length, row by row.
        grid: rows and columns of patches.

    Returns:
        (layers, heads, length, length), float32 on CPU.

    Raises:
        ValueError: if there is more than one picture, the weights are not finite or not of so many patches, or grid is
            no two whole numbers of at least 1.
    """
    if not isinstance(attentions, torch.Tensor):
        layers = _checked_layers("attentions", tuple(attentions))
        if any(layer.shape[0] != 1 for layer in layers):
            raise ValueError(f"attentions are of {layers[0].shape[0]} pictures; give those of one: layer[:1]")
        attentions = torch.cat([layer.detach() for layer in layers])
    if not isinstance(grid, Sequence) or len(grid) != 2 or not all(is_whole(side, 1) for side in grid):
        raise ValueError(f"grid is {grid!r}; it must be the rows and columns of patches, two whole numbers from 1")
    rows, columns = grid
    shape = tuple(attentions.shape)
    if len(shape) != 4 or shape[2] != shape[3] or not 0 < rows * columns <= shape[3]:
        raise ValueError(
            f"attentions has the shape {shape}; it must be (layers, heads, length, length), with a length of at least "
            f"{rows} x {columns} patches"
        )
    if not attentions.isfinite().all():
        raise ValueError("attentions are not all finite numbers, so they cannot be drawn")
    return attentions.detach().float().cpu()


def to_bertviz(translation: "Translation") -> dict[str, Any]:
    """Give the attention weights of a translation as keyword arguments of bertviz's `model_view` and `head_view`.

    bertviz has one list of decoder labels for what a decoder position reads and for what it writes. Where the decoder
    has self-attention the labels therefore name both, "<s>→the", "the→cat"; otherwise they are the target pieces.

    Args:
        translation: a translation of one line, made with attention weights.

    Returns:
        `encoder_attention`, `decoder_attention`, `cross_attention`: for each layer a tensor (1, heads, query_len,
        key_len), absent where the model has no such attention; `encoder_tokens` and `decoder_tokens`: their labels.

    Raises:
        TypeError: if `translation` is something else.
        ValueError: if the translation has several lines, or no attention weights.
    """
    check_translation(translation)
    kinds = {
        "encoder_attention": translation.encoder_attentions,
        "decoder_attention": translation.decoder_attentions,
        "cross_attention": translation.cross_attentions,
    }
    arguments: dict[str, Any] = {
        name: list(weights.unsqueeze(1)) for name, weights in kinds.items() if weights is not None
    }
    if not arguments:
        raise ValueError(_why_no_weights(translation, "attention"))
    written = list(translation.target_tokens)
    if "decoder_attention" in arguments:
        written = [f"{read}→{wrote}" for read, wrote in zip(decoder_inputs(translation), written, strict=True)]
    return arguments | {"encoder_tokens": list(translation.source_tokens), "decoder_tokens": written}


def decoder_inputs(translation: "Translation") -> list[str]:
    """Label the columns of the decoder's self-attention: the start piece, then every target piece but the last.

    Args:
        translation: a translation of one line.

    Returns:
        As many labels as there are target pieces.
    """
    return ["<s>", *translation.target_tokens[:-1]]


def require_weights(translation: "Translation", kind: str) -> torch.Tensor:
    """Give the attention weights of a kind, or say why there are none.

    Args:
        translation: a translation of one line.
        kind: "cross", "encoder" or "decoder".

    Returns:
        The weights (layers, heads, query_len, key_len).

    Raises:
        TypeError: if `translation` is something else.
        ValueError: if the translation has several lines, or no such weights.
    """
    check_translation(translation)
    weights = getattr(translation, f"{kind}_attentions")
    if weights is None or not translation.target_tokens:
        name = "cross-attention" if kind == "cross" else f"{kind} self-attention"
        raise ValueError(_why_no_weights(translation, name))
    return weights


def check_translation(translation: object) -> None:
    """Raise TypeError unless this is one `Translation`."""
    if not hasattr(translation, "cross_attentions"):
        raise TypeError(
            f"translation is {type(translation).__name__}; it must be one Translation, as a Translator gives it"
        )


def _why_no_weights(translation: "Translation", name: str) -> str:
    if translation.segments:
        return f"this translation has {len(translation.segments)} lines: draw each of `.segments`"
    if not translation.target_tokens:
        return f"an empty translation has no {name} to draw"
    return f"this translation has no {name}: the model has none, or it was made with return_attention=False"


def _checked_layers(name: str, layers: tuple) -> tuple:
    """Refuse what a kernel that does not return its weights leaves: an empty tuple, or a tuple of None."""
    if not layers or any(weights is None for weights in layers):
        raise ValueError(
            f"output.{name} holds no weights: the model ran with an attention implementation that does not return "
            "them; load it with attn_implementation='eager'"
        )
    return layers


def _beams_and_length(
    output: Any, sequences: torch.Tensor, eos_token_id: int | list[int] | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find which row of every step's tensors a sequence occupied, and at which steps it was still alive.

    Returns:
        Two tensors (sequences, steps): rows as indices; alive as booleans.
    """
    beam_indices = getattr(output, "beam_indices", None)
    if beam_indices is not None:
        beam_indices = beam_indices.cpu().long()
        return beam_indices.clamp(min=0), beam_indices >= 0
    steps = len(output.cross_attentions)
    rows = torch.arange(sequences.shape[0])[:, None].expand(-1, steps)
    if eos_token_id is None:
        return rows, torch.ones_like(rows, dtype=torch.bool)
    chosen = sequences[:, -steps:]  # the decoder's prompt may hold an end piece of its own
    ends = torch.isin(chosen, torch.tensor(eos_token_id)).long()
    ends_before = ends.cumsum(dim=1) - ends
    return rows, ends_before == 0


def _follow_beams(
    name: str, steps: tuple, beams: torch.Tensor, alive: torch.Tensor, *, square: bool
) -> torch.Tensor | None:
    """Put the rows of each sequence's own beams below one another: (sequences, layers, heads, target_len, key_len)."""
    if steps is None or steps[0] is None:
        return None
    prompt_len = _checked_layers(name, steps[0])[0].shape[-2]
    target_len = prompt_len + beams.shape[1] - 1
    rows = []
    for step in range(beams.shape[1]):
        layers = torch.stack(_checked_layers(name, steps[step]), dim=1)
        layers = layers[beams[:, step].to(layers.device)].float().cpu()
        layers = layers * alive[:, step, None, None, None, None]
        new_rows = layers if step == 0 else layers[..., -1:, :]  # without a cache every step repeats the rows before it
        if square:  # grows with the sequence; a static cache is wider than the sequence, and 0 there
            new_rows = torch.nn.functional.pad(new_rows, (0, target_len - new_rows.shape[-1]))
        rows.append(new_rows)
    return torch.cat(rows, dim=-2)
