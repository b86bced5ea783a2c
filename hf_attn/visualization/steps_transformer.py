"""The steps of one layer of a Transformer: attention to the source, or the self-attention of decoder or encoder.

    all heads; 1 to 6 one head (`steps_heads.py`); 7 output

Read `hf_attn/models/modeling_attn_transformer.py` and `layers.py` beside this file.
"""

from typing import TYPE_CHECKING, Any

from hf_attn.models.masks import AttentionMask

from .extract import decoder_inputs
from .steps_common import Step, likeliest, line_of, read_ids, vector
from .steps_heads import Given, Words, head_steps, self_attention, what_follows

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator

AFTER = {
    "cross": "a feed-forward network follows",
    "decoder": "cross-attention and a feed-forward network follow",
    "encoder": "a feed-forward network follows",
}


def transformer_steps(
    translator: "Translator", translation: "Translation", position: int, layer: int, head: int, kind: str
) -> list[Step]:
    """Compute the steps of one layer.

    Args:
        translator: what made the translation.
        translation: a translation of one line.
        position: which target piece, for kind "encoder" which source piece, counted from 0.
        layer: layer of the decoder, for kind "encoder" of the encoder, counted from 0.
        head: head, counted from 0.
        kind: "cross" for attention to the source, "decoder" for the masked attention to what was read, "encoder" for
            the source's attention to itself.

    Returns:
        The steps in order.
    """
    model: Any = translator.model
    source, read = read_ids(translator, translation)
    outputs = model(source, decoder_input_ids=read, output_hidden_states=True, output_attentions=True, use_cache=False)
    who, whom, pieces, axis = "The decoder's state at this place", "the source", translation.source_tokens, "source_len"
    if kind == "encoder":
        stack, who, whom = model.model.encoder, "The encoder's state of this piece", "the whole source"
        given = self_attention(stack, layer, outputs.encoder_hidden_states[layer], AttentionMask())
    else:
        stack = model.model.decoder
        given = self_attention(stack, layer, outputs.decoder_hidden_states[layer], AttentionMask(causal=True))
    if kind == "decoder":
        whom, pieces, axis = "what the decoder has read so far", decoder_inputs(translation), "target_len"
    if kind == "cross":
        given = _cross_attention(stack.layers[layer], given, outputs.encoder_last_hidden_state)
    follows = what_follows(stack.layers[layer], len(stack.layers) - layer - 1, AFTER[kind])
    steps = head_steps(given, Words(who, whom, pieces, axis), position, head)
    if kind == "encoder":
        last = Step(
            "Output",
            "key_i = W^K state_i;  value_i = W^V state_i",
            f"{follows} Of the last state of each source piece every layer of the decoder makes a key and a value, at "
            "which its cross-attention looks.",
            [vector("last state", outputs.encoder_last_hidden_state[0, position], "hidden_size")],
            [line_of(type(stack).forward, "states = self.final_norm(")],
        )
    else:
        written = translation.target_ids[position]
        last = Step(
            "Output",
            _output_formula(model.config),
            f"{follows} The vocabulary's largest logits are the likeliest next pieces.",
            [
                vector("last state", outputs.decoder_hidden_states[-1][0, position], "hidden_size"),
                likeliest(translator.target_tokenizer, outputs.logits[0, position], written),
            ],
            [line_of(type(model).forward, "logits = self.lm_head(")],
        )
    return [*steps, last]


def _cross_attention(block, own: Given, source_states) -> Given:
    """Go on from what the self-attention of a decoder layer is given to what its cross-attention is given."""
    written, _ = block.self_attention(own.asks, mask=own.mask, bias=own.bias, angles=own.angles)
    states = own.states + written
    if not block.norm_first:
        states = block.self_attention_norm(states)
    asks = block.cross_attention_norm(states) if block.norm_first else states
    return Given(block.cross_attention, states, asks, source_states, AttentionMask())


def _output_formula(config) -> str:
    state = "E state / √hidden_size" if config.scale_output else "E state"
    return f"p = softmax({state} + b)" if config.output_bias else f"p = softmax({state})"
