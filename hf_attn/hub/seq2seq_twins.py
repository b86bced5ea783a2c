# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Say what in transformers' encoder-decoders equals what in our Transformer: one table for each architecture.

    architecture                                        ours
    Marian  Junczys-Dowmunt 2018 (arXiv 1804.00344)     post-norm, sinusoids with all sines before all cosines
    BART    Lewis 2019 (1910.13461)                     post-norm, learned positions, norm of the embedding
    mBART   Liu 2020 (2001.08210)                       the same with pre-norm
    T5      Raffel 2019 (1910.10683)                    pre-norm, RMS norm, relative positions, no biases, no scaling
            and Shazeer 2020 (2002.05202) for v1.1      with a gated feed-forward network

The two give the same numbers up to rounding, with these differences:

- Positions. Ours count from the first real token of a row, those of Marian, BART and mBART from its start. They differ
  where a row is padded on the left, which these models were not trained for.
- mBART makes the decoder's input from labels by moving their last token, the code of the target language, to the
  front. Ours always begins with `decoder_start_token_id`: that of the checkpoint, or the argument where it names none.
- Training. The last bias of Marian, BART and mBART stays as it was loaded, ours is trained (there is none where all its
  numbers are 0, so that it stays 0). Marian does not train the embedding with which a target begins where that is the
  padding's; ours does. T5 drops out coordinates of the last states of a stack too.

Read before: `twins.py`, the form of the tables.
"""

from typing import Any

from .twins import NORM_EPS, Options, Translated, Twin, norm_eps, rename

OURS = "AttnTransformerForConditionalGeneration"

# Marian, BART and mBART: one code base

_ATTENTION = {
    "query_projection": "q_proj",
    "key_projection": "k_proj",
    "value_projection": "v_proj",
    "output_projection": "out_proj",
}
_ENCODER_LAYER = {
    **rename("self_attention", "self_attn", _ATTENTION),
    "self_attention_norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_norm": "final_layer_norm",
}
_DECODER_LAYER = {
    **_ENCODER_LAYER,
    **rename("cross_attention", "encoder_attn", _ATTENTION),
    "cross_attention_norm": "encoder_attn_layer_norm",
}
_MARIAN_MODULES = {
    "encoder.embed_tokens": "encoder.embed_tokens",
    "decoder.embed_tokens": "decoder.embed_tokens",
    **rename("encoder.layers.N", "encoder.layers.N", _ENCODER_LAYER),
    **rename("decoder.layers.N", "decoder.layers.N", _DECODER_LAYER),
}
_OUTPUT = {"lm_head": "lm_head", "lm_head.bias": "final_logits_bias"}
_SHARED = {"model.shared.weight": "model.encoder.embed_tokens.weight"}
_BART_MODULES = {
    **_MARIAN_MODULES,
    "encoder.embedding.learned": "encoder.embed_positions",
    "decoder.embedding.learned": "decoder.embed_positions",
    "encoder.embedding.norm": "encoder.layernorm_embedding",
    "decoder.embedding.norm": "decoder.layernorm_embedding",
}
_MBART_MODULES = {
    **_BART_MODULES,
    "encoder.final_norm": "encoder.layer_norm",
    "decoder.final_norm": "decoder.layer_norm",
}
_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
_BART_FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "encoder_attention_heads": "encoder_attention_heads",
    "decoder_attention_heads": "decoder_attention_heads",
    "encoder_intermediate_size": "encoder_ffn_dim",
    "decoder_intermediate_size": "decoder_ffn_dim",
    "activation_function": "activation_function",
    "max_position_embeddings": "max_position_embeddings",
    "scale_embedding": "scale_embedding",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
    "initializer_range": "init_std",
    "use_cache": "use_cache",
    **{name: name for name in _IDS},
}
_BART_FIXED = {
    "decoder_vocab_size": None,
    "position_type": "learned",
    "normalize_embedding": True,
    "norm_type": "layer",
    "norm_first": False,
}
_MARIAN_FIXED = {
    "position_type": "sinusoidal",
    "sinusoidal_order": "concatenated",
    "normalize_embedding": False,
    "norm_type": "layer",
    "norm_first": False,
}
_ENCODER_DECODER = {"is_encoder_decoder": True, "is_decoder": False}
_BART_REQUIRED = {
    **_ENCODER_DECODER,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
# With tie_word_embeddings=False transformers 5 unties source and target too. The output layer alone is untied where a
# checkpoint brings another one along.
_BART_TIES = {
    (True, True): {"tie_word_embeddings": True},
    (True, False): {"tie_word_embeddings": True},
    (False, False): {"tie_word_embeddings": False},
}


def _marian_to_ours(config: Any) -> Translated:
    joint = config.share_encoder_decoder_embeddings or config.decoder_vocab_size == config.vocab_size
    return {"decoder_vocab_size": None if joint else config.decoder_vocab_size}, []


def _marian_to_theirs(values: Options) -> Translated:
    return {"decoder_vocab_size": values["decoder_vocab_size"] or values["vocab_size"]}, []


MARIAN = Twin(
    model_type="marian",
    prefix="model",
    heads={OURS: ("MarianMTModel", _OUTPUT)},
    fields=_BART_FIELDS,
    fixed=_MARIAN_FIXED,
    ties={
        (True, True): {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
        (True, False): {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
        (False, True): {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": True},
        (False, False): {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    },
    modules=_MARIAN_MODULES,
    required=_BART_REQUIRED,
    ignored=("forced_eos_token_id",),
    copies=_SHARED,
    unread=("final_logits_bias",),
    computed=("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"),
    converted={"decoder_vocab_size": "decoder_vocab_size"},
    to_ours=_marian_to_ours,
    to_theirs=_marian_to_theirs,
)

BART = Twin(
    model_type="bart",
    prefix="model",
    heads={OURS: ("BartForConditionalGeneration", _OUTPUT)},
    fields=_BART_FIELDS,
    fixed=_BART_FIXED,
    ties=_BART_TIES,
    modules=_BART_MODULES,
    required=_BART_REQUIRED,
    ignored=("forced_eos_token_id", "classifier_dropout"),
    copies=_SHARED,
    unread=("final_logits_bias",),
    first_row={"encoder.embedding.learned": 2, "decoder.embedding.learned": 2},
)

MBART = Twin(
    model_type="mbart",
    prefix="model",
    heads={OURS: ("MBartForConditionalGeneration", _OUTPUT)},
    fields=_BART_FIELDS,
    fixed=_BART_FIXED | {"norm_first": True},
    ties=_BART_TIES,
    modules=_MBART_MODULES,
    required=_BART_REQUIRED,
    ignored=("forced_eos_token_id", "classifier_dropout"),
    copies=_SHARED,
    unread=("final_logits_bias",),
    first_row=BART.first_row,
)


# T5

_T5_ATTENTION = {"query_projection": "q", "key_projection": "k", "value_projection": "v", "output_projection": "o"}
_T5_SELF_ATTENTION = {
    **rename("self_attention", "layer.0.SelfAttention", _T5_ATTENTION),
    "self_attention_norm": "layer.0.layer_norm",
}
_T5_CROSS_ATTENTION = {
    **rename("cross_attention", "layer.1.EncDecAttention", _T5_ATTENTION),
    "cross_attention_norm": "layer.1.layer_norm",
}
_T5_FEED_FORWARD = {
    "feed_forward.gate": "DenseReluDense.wi_0",
    "feed_forward.inner": "DenseReluDense.wi_1",
    "feed_forward.outer": "DenseReluDense.wo",
    "feed_forward_norm": "layer_norm",
}
_T5_ENCODER_LAYER = _T5_SELF_ATTENTION | {ours: f"layer.1.{theirs}" for ours, theirs in _T5_FEED_FORWARD.items()}
_T5_DECODER_LAYER = {
    **_T5_SELF_ATTENTION,
    **_T5_CROSS_ATTENTION,
    **{ours: f"layer.2.{theirs}" for ours, theirs in _T5_FEED_FORWARD.items()},
}


def _t5_to_ours(config: Any) -> Translated:
    options = {
        "head_dim": None if config.d_kv * config.num_heads == config.d_model else config.d_kv,
        "layer_norm_eps": None if config.layer_norm_epsilon == NORM_EPS["rms"] else config.layer_norm_epsilon,
        "activation_function": config.dense_act_fn,
        "gated_feed_forward": config.is_gated_act,
        "scale_output": config.scale_decoder_outputs,
        "max_position_embeddings": getattr(config, "n_positions", 512),
    }
    return options, []


def _t5_to_theirs(values: Options) -> Translated:
    activation, gated = values["activation_function"], values["gated_feed_forward"]
    options = {
        "d_kv": values["head_dim"] or values["hidden_size"] // values["encoder_attention_heads"],
        "layer_norm_epsilon": norm_eps(values),
        "feed_forward_proj": f"gated-{activation}" if gated else activation,
        "scale_decoder_outputs": values["scale_output"],
    }
    if values["max_position_embeddings"] != 512:
        options["n_positions"] = values["max_position_embeddings"]
    if gated and activation == "gelu_new":
        options["feed_forward_proj"] = "gated-gelu"  # by this name T5 means the tanh form
    elif "-" in activation or (gated and activation == "gelu"):
        return options, [f"activation_function={activation!r} with gated_feed_forward={gated}"]
    return options, []


T5 = Twin(
    model_type="t5",
    prefix="",
    heads={OURS: ("T5ForConditionalGeneration", {"lm_head": "lm_head"})},
    fields={
        "vocab_size": "vocab_size",
        "hidden_size": "d_model",
        "encoder_layers": "num_layers",
        "decoder_layers": "num_decoder_layers",
        "encoder_attention_heads": "num_heads",
        "decoder_attention_heads": "num_heads",
        "encoder_intermediate_size": "d_ff",
        "decoder_intermediate_size": "d_ff",
        "relative_attention_num_buckets": "relative_attention_num_buckets",
        "relative_attention_max_distance": "relative_attention_max_distance",
        "dropout": "dropout_rate",
        "attention_dropout": "dropout_rate",
        "activation_dropout": "dropout_rate",
        "use_cache": "use_cache",
        **{name: name for name in _IDS},
    },
    fixed={
        "decoder_vocab_size": None,
        "position_type": "relative",
        "norm_type": "rms",
        "norm_first": True,
        "use_bias": False,
        "scale_attention": False,
        "scale_embedding": False,
        "output_bias": False,
    },
    ties={(True, True): {}, (True, False): {}},
    modules={
        "encoder.embed_tokens": "encoder.embed_tokens",
        "decoder.embed_tokens": "decoder.embed_tokens",
        "encoder.position_bias.table": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "decoder.position_bias.table": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        **rename("encoder.layers.N", "encoder.block.N", _T5_ENCODER_LAYER),
        **rename("decoder.layers.N", "decoder.block.N", _T5_DECODER_LAYER),
        "encoder.final_norm": "encoder.final_layer_norm",
        "decoder.final_norm": "decoder.final_layer_norm",
    },
    required=_ENCODER_DECODER,
    ignored=("feed_forward_proj", "initializer_factor", "classifier_dropout"),
    copies={"shared.weight": "encoder.embed_tokens.weight"},
    spellings={"DenseReluDense.wi_1": "DenseReluDense.wi"},  # without a gate, v1.0
    converted={
        "head_dim": "d_kv",
        "layer_norm_eps": "layer_norm_epsilon",
        "activation_function": "feed_forward_proj",
        "gated_feed_forward": "feed_forward_proj",
        "scale_output": "scale_decoder_outputs",
        "max_position_embeddings": "n_positions",
    },
    to_ours=_t5_to_ours,
    to_theirs=_t5_to_theirs,
)

SEQ2SEQ_TWINS = {twin.model_type: twin for twin in (MARIAN, BART, MBART, T5)}
