# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' decoders equals what in ours: one table for each architecture.

    architecture                                        ours
    GPT-2    Radford 2019                               the defaults
    Llama    Touvron 2023 (arXiv 2302.13971)            rotary positions, RMS norm, gates, no biases
    Mistral  Jiang 2023 (2310.06825)                    the same with a window

The two give the same states, logits, attention weights, losses and outputs of `generate()`, up to rounding, with these
differences:

- Positions. Ours count from the first real token of a row; GPT-2's from its start, but in `generate()`, so that they
  differ where a row is padded on the left and no `position_ids` are given.
- Labels. From padding ours predict nothing, theirs the first token of a row that is padded on the left.
- Training. Ours does not train the embedding of padding as an input. GPT-2 does: a model whose padding is also its end
  of a text learns what the end means where it is read. Llama drops out nothing but attention weights.

Read before: `twins.py`, the form of the tables.
"""

from typing import Any

from .twins import NORM_EPS, Options, Translated, Twin, norm_eps, rename

_IDS = {name: name for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
_COMMON = {
    "vocab_size": "vocab_size",
    "tie_word_embeddings": "tie_word_embeddings",
    "initializer_range": "initializer_range",
    "use_cache": "use_cache",
    **_IDS,
}


def _eps_to_ours(eps: float, norm_type: str) -> float | None:
    return None if eps == NORM_EPS[norm_type] else eps


# GPT-2

_GPT2_LAYER = {
    "self_attention_norm": "ln_1",
    "self_attention.query_projection": "attn.c_attn",
    "self_attention.key_projection": "attn.c_attn",
    "self_attention.value_projection": "attn.c_attn",
    "self_attention.output_projection": "attn.c_proj",
    "cross_attention_norm": "ln_cross_attn",
    "cross_attention.query_projection": "crossattention.q_attn",
    "cross_attention.key_projection": "crossattention.c_attn",
    "cross_attention.value_projection": "crossattention.c_attn",
    "cross_attention.output_projection": "crossattention.c_proj",
    "feed_forward_norm": "ln_2",
    "feed_forward.inner": "mlp.c_fc",
    "feed_forward.outer": "mlp.c_proj",
}


def _gpt2_to_ours(config: Any) -> Translated:
    options = {
        "intermediate_size": 4 * config.n_embd if config.n_inner is None else config.n_inner,
        "layer_norm_eps": _eps_to_ours(config.layer_norm_epsilon, "layer"),
    }
    if config.embd_pdrop != config.resid_pdrop:
        return options, [f"embd_pdrop={config.embd_pdrop!r} (it must be resid_pdrop={config.resid_pdrop!r})"]
    return options, []


def _gpt2_to_theirs(values: Options) -> Translated:
    inner = values["intermediate_size"]
    options = {
        "n_inner": None if inner == 4 * values["hidden_size"] else inner,
        "layer_norm_epsilon": norm_eps(values),
        "embd_pdrop": values["dropout"],
    }
    return options, []


GPT2 = Twin(
    model_type="gpt2",
    prefix="transformer",
    fields={
        **_COMMON,
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
        "activation_function": "activation_function",
        "add_cross_attention": "add_cross_attention",
        "dropout": "resid_pdrop",
        "attention_dropout": "attn_pdrop",
    },
    modules={
        "embed_tokens": "wte",
        "learned": "wpe",
        **rename("layers.N", "h.N", _GPT2_LAYER),
        "final_norm": "ln_f",
    },
    heads={
        "AttnGptModel": ("GPT2Model", {}),
        "AttnGptForCausalLM": ("GPT2LMHeadModel", {"lm_head": "lm_head"}),
        "AttnGptForSequenceClassification": ("GPT2ForSequenceClassification", {"classifier": "score"}),
    },
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
    },
    ignored=(
        *("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels"),
        "summary_first_dropout",
    ),
    constants=("attn.bias", "attn.masked_bias"),  # masks of what comes later, in old files
    transposed=("c_attn", "q_attn", "c_proj", "c_fc"),
    converted={"intermediate_size": "n_inner", "layer_norm_eps": "layer_norm_epsilon"},
    to_ours=_gpt2_to_ours,
    to_theirs=_gpt2_to_theirs,
)


# Llama and Mistral

_LLAMA_LAYER = {
    "self_attention_norm": "input_layernorm",
    "self_attention.query_projection": "self_attn.q_proj",
    "self_attention.key_projection": "self_attn.k_proj",
    "self_attention.value_projection": "self_attn.v_proj",
    "self_attention.output_projection": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.inner": "mlp.up_proj",
    "feed_forward.outer": "mlp.down_proj",
}
_LLAMA_FIELDS = {
    **_COMMON,
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
    "activation_function": "hidden_act",
    "attention_dropout": "attention_dropout",
}
_LLAMA_FIXED = {
    "position_type": "rotary",
    "norm_type": "rms",
    "gated_feed_forward": True,
    "dropout": 0.0,
}
_LLAMA_MODULES = {
    "embed_tokens": "embed_tokens",
    **rename("layers.N", "layers.N", _LLAMA_LAYER),
    "final_norm": "norm",
}
_LLAMA_CONVERTED = {
    "num_key_value_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "layer_norm_eps": "rms_norm_eps",
    "rope_theta": "rope_parameters",
}


def _llama_to_ours(config: Any) -> Translated:
    rope = dict(config.rope_parameters)
    options = {
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "layer_norm_eps": _eps_to_ours(config.rms_norm_eps, "rms"),
        "rope_theta": rope.pop("rope_theta"),
    }
    plain = rope.pop("rope_type", "default") == "default" and not rope
    return options, [] if plain else [f"rope_parameters={config.rope_parameters!r} (it must be without any scaling)"]


def _llama_bias_to_ours(config: Any) -> Translated:
    options, faults = _llama_to_ours(config)
    if config.mlp_bias != config.attention_bias:
        faults.append(f"mlp_bias={config.mlp_bias!r} (it must be attention_bias={config.attention_bias!r})")
    return options, faults


def _llama_to_theirs(values: Options) -> Translated:
    heads, width = values["num_attention_heads"], values["hidden_size"]
    options = {
        "num_key_value_heads": values["num_key_value_heads"] or heads,
        "head_dim": values["head_dim"] or width // heads,
        "rms_norm_eps": norm_eps(values),
        "rope_parameters": {"rope_type": "default", "rope_theta": values["rope_theta"]},
    }
    odd = [] if width % heads == 0 else [f"hidden_size={width} (it must be divisible by num_attention_heads={heads})"]
    return options, odd


def _llama_bias_to_theirs(values: Options) -> Translated:
    options, obstacles = _llama_to_theirs(values)
    return options | {"mlp_bias": values["use_bias"]}, obstacles


LLAMA = Twin(
    model_type="llama",
    prefix="model",
    fields=_LLAMA_FIELDS | {"use_bias": "attention_bias"},
    modules=_LLAMA_MODULES,
    heads={
        "AttnGptModel": ("LlamaModel", {}),
        "AttnGptForCausalLM": ("LlamaForCausalLM", {"lm_head": "lm_head"}),
        "AttnGptForSequenceClassification": ("LlamaForSequenceClassification", {"classifier": "score"}),
    },
    fixed=_LLAMA_FIXED,
    required={"pretraining_tp": 1},
    constants=("rotary_emb.inv_freq",),
    converted=_LLAMA_CONVERTED,
    to_ours=_llama_bias_to_ours,
    to_theirs=_llama_bias_to_theirs,
)

MISTRAL = Twin(
    model_type="mistral",
    prefix="model",
    fields=_LLAMA_FIELDS | {"sliding_window": "sliding_window"},
    modules=_LLAMA_MODULES,
    heads={
        "AttnGptModel": ("MistralModel", {}),
        "AttnGptForCausalLM": ("MistralForCausalLM", {"lm_head": "lm_head"}),
        "AttnGptForSequenceClassification": ("MistralForSequenceClassification", {"classifier": "score"}),
    },
    fixed=_LLAMA_FIXED | {"use_bias": False},
    constants=("rotary_emb.inv_freq",),
    converted=_LLAMA_CONVERTED,
    to_ours=_llama_to_ours,
    to_theirs=_llama_to_theirs,
)

DECODER_TWINS = {twin.model_type: twin for twin in (GPT2, LLAMA, MISTRAL)}
