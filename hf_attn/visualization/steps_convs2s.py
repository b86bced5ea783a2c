"""The steps of one decoder layer of ConvS2S: a gated convolution, and the attention of its output to the source.

    1 window; 2 gated convolution; 3 query; 4 scores; 5 softmax; 6 values and weighted sum; 7 residual; 8 output

Read `hf_attn/models/modeling_attn_convs2s.py` and `convolution.py` beside this file.
"""

from typing import TYPE_CHECKING, Any

import torch

from hf_attn.models.attention import attend
from hf_attn.models.masks import AttentionMask
from hf_attn.models.modeling_attn_convs2s import SQRT_HALF, source_scale

from .extract import decoder_inputs
from .steps_common import (
    Quantity,
    Step,
    body_of,
    likeliest,
    line_of,
    read_ids,
    shape_of,
    softmax_step,
    sum_step,
    vector,
)

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator


def convolution_steps(translator: "Translator", translation: "Translation", position: int, layer: int) -> list[Step]:
    """Compute the steps of one decoder layer.

    Args:
        translator: what made the translation.
        translation: a translation of one line.
        position: which target piece, counted from 0.
        layer: decoder layer, counted from 0.

    Returns:
        The steps in order.
    """
    model: Any = translator.model
    encoder, decoder = model.model.encoder, model.model.decoder
    source, read = read_ids(translator, translation)
    outputs = model(source, decoder_input_ids=read, output_hidden_states=True, output_attentions=True, use_cache=False)
    block, states = decoder.layers[layer], outputs.decoder_hidden_states[layer]
    key, value = outputs.encoder_hidden_states[-1], outputs.encoder_last_hidden_state
    gated_steps, gated = _gated_steps(block, states, decoder_inputs(translation), position)

    projected, embedding = block.query_projection(gated), _embeddings(decoder, read)[0, position]
    query = projected + embedding
    scores = block.score(query[None, None, None], block.score.project_keys(key[:, None]))
    context, weights = (one[0, 0, 0] for one in attend(scores, value[:, None]))
    scaled = context * source_scale(AttentionMask(), key)
    attended = (gated + block.context_projection(scaled)) * SQRT_HALF
    new = (states[0, position] + attended) * SQRT_HALF

    pieces, forward = translation.source_tokens, type(block).forward
    shape = {"source_len": len(pieces)}
    values = sum_step(context, weights, value[0], pieces, "source_len", "embedding_size", "√½ (z_j + e_j)")
    embedded = Quantity(
        "source embeddings e", _embeddings(encoder, source)[0], pieces, shape_of(**shape, embedding_size=key.shape[-1])
    )
    values.quantities.insert(0, embedded)
    values.code.insert(0, line_of(type(encoder).forward, "value = zero_padding("))
    above = len(decoder.layers) - layer - 1
    return [
        *gated_steps,
        Step(
            "Query",
            "d = W h + b + g",
            "What the convolution found asks the source, together with g, the piece read last itself: its embedding "
            "with its position.",
            [
                vector("W h + b", projected, "embedding_size"),
                vector("target embedding g", embedding, "embedding_size"),
                vector("query d", query, "embedding_size"),
            ],
            [line_of(forward, "query = self.query_projection(")],
        ),
        Step(
            "Scores",
            "score_j = d · z_j",
            "The query is compared with every encoder output z: one number for each source piece, the larger the "
            "better they fit.",
            [
                Quantity("encoder outputs z", key[0], pieces, embedded.shape),
                Quantity("scores", scores[0, 0, 0], pieces, shape_of(**shape)),
            ],
            [body_of(type(block.score).forward)],
        ),
        softmax_step(weights, pieces, "source_len"),
        values,
        Step(
            "Residual",
            "found = √½ (h + W √m context + b);  new state = √½ (state + found)",
            f"The context is made larger by √m, m = {len(pieces)} the number of source pieces: a mean of many vectors "
            "is small. Then it joins what the convolution found, and both the state; a sum of two, times √½, is as "
            "large as either. " + (f"Layer {layer + 2} begins with it." if above else "This was the last layer."),
            [
                vector("√m context", scaled, "embedding_size"),
                vector("found", attended, "hidden_size"),
                vector("new state", new, "hidden_size"),
            ],
            [
                line_of(forward, "context = context[:, 0] * source_scale("),
                line_of(forward, "attended ="),
                line_of(forward, "return (states + attended)"),
            ],
        ),
        Step(
            "Output",
            "output = W state + b;  p = softmax(E output + b)",
            (f"{above} more layer{'s do' if above > 1 else ' does'} the same. " if above else "")
            + "One matrix brings the last state to the width of the embeddings; the vocabulary's largest logits are "
            "the likeliest next pieces.",
            [
                vector("output", outputs.decoder_hidden_states[-1][0, position], "embedding_size"),
                likeliest(translator.target_tokenizer, outputs.logits[0, position], translation.target_ids[position]),
            ],
            [
                line_of(type(decoder).forward, "outputs = self.output_projection("),
                line_of(type(model).forward, "logits = self.lm_head("),
            ],
        ),
    ]


def _gated_steps(block, states: torch.Tensor, read: list[str], position: int) -> tuple[list[Step], torch.Tensor]:
    """Let the convolution read one window of the states, (1, target_len, hidden_size): its steps and what it found."""
    convolution = block.convolution
    size, width = convolution.kernel_size, states.shape[-1]
    window = convolution.pad(states, None)[0, position : position + size]
    linear, opening = convolution.projection(window.flatten()).chunk(2)
    gate = torch.sigmoid(opening)
    read = ["(nothing)"] * (size - 1) + read
    forward = type(convolution).forward
    steps = [
        Step(
            "Window",
            f"window = [state_{{i-{size - 1}}}; …; state_i]" if size > 1 else "window = state_i",
            f"The layer's window has {size} places and ends at the piece read last, so that nothing later is seen; "
            "before the first piece stand zeros.",
            [Quantity("window", window, read[position : position + size], shape_of(window=size, hidden_size=width))],
            [line_of(forward, "windows = torch.cat(")],
        ),
        Step(
            "Gated convolution",
            "[A; B] = W window + b;  h = A · sigmoid(B)",
            "One matrix reads the window. Half of what it gives is the result, the other half opens or closes the gate "
            "for each number of it.",
            [
                vector("A", linear, "hidden_size"),
                vector("gate sigmoid(B)", gate, "hidden_size"),
                vector("h", linear * gate, "hidden_size"),
            ],
            [line_of(forward, "return F.glu(")],
        ),
    ]
    return steps, linear * gate


def _embeddings(stack, ids: torch.Tensor) -> torch.Tensor:
    """Embed pieces with their positions: (1, length, embedding_size)."""
    positions = torch.arange(ids.shape[1], device=ids.device)[None]
    return stack.embed_tokens(ids) + stack.embed_positions(positions)
