# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""transformers' GPT-2 and Llama with their weights in our model: tables of what equals what."""

import re

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from hf_attn.models.modeling_attn_gpt import AttnGptConfig, AttnGptForCausalLM

SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "vocab_size": 41}
# ours: (theirs, which third of its columns), all of GPT-2's matrices being transposed
GPT2_MODULES = {
    "model.embed_tokens": ("transformer.wte", None),
    "model.learned": ("transformer.wpe", None),
    "model.layers.N.self_attention_norm": ("transformer.h.N.ln_1", None),
    "model.layers.N.self_attention.query_projection": ("transformer.h.N.attn.c_attn", 0),
    "model.layers.N.self_attention.key_projection": ("transformer.h.N.attn.c_attn", 1),
    "model.layers.N.self_attention.value_projection": ("transformer.h.N.attn.c_attn", 2),
    "model.layers.N.self_attention.output_projection": ("transformer.h.N.attn.c_proj", None),
    "model.layers.N.feed_forward_norm": ("transformer.h.N.ln_2", None),
    "model.layers.N.feed_forward.inner": ("transformer.h.N.mlp.c_fc", None),
    "model.layers.N.feed_forward.outer": ("transformer.h.N.mlp.c_proj", None),
    "model.final_norm": ("transformer.ln_f", None),
    "lm_head": ("lm_head", None),
}
LLAMA_MODULES = {
    "model.embed_tokens": ("model.embed_tokens", None),
    "model.layers.N.self_attention_norm": ("model.layers.N.input_layernorm", None),
    "model.layers.N.self_attention.query_projection": ("model.layers.N.self_attn.q_proj", None),
    "model.layers.N.self_attention.key_projection": ("model.layers.N.self_attn.k_proj", None),
    "model.layers.N.self_attention.value_projection": ("model.layers.N.self_attn.v_proj", None),
    "model.layers.N.self_attention.output_projection": ("model.layers.N.self_attn.o_proj", None),
    "model.layers.N.feed_forward_norm": ("model.layers.N.post_attention_layernorm", None),
    "model.layers.N.feed_forward.inner": ("model.layers.N.mlp.up_proj", None),
    "model.layers.N.feed_forward.gate": ("model.layers.N.mlp.gate_proj", None),
    "model.layers.N.feed_forward.outer": ("model.layers.N.mlp.down_proj", None),
    "model.final_norm": ("model.norm", None),
    "lm_head": ("lm_head", None),
}


def their_tensor(name, tensors, modules):
    """Their tensor, or its gradient, that is our tensor `name`."""
    number = re.search(r"\.(\d+)\.", name)
    module, leaf = name.rsplit(".", 1)
    if number is not None:
        module = module.replace(number[0], ".N.", 1)
    theirs, third = modules[module]
    tensor = tensors[f"{theirs if number is None else theirs.replace('.N.', number[0], 1)}.{leaf}"]
    if third is not None:
        tensor = tensor.chunk(3, dim=-1)[third]
    transposed = ".h." in theirs and tensor.dim() == 2
    return tensor.T if transposed else tensor


def copy_weights(ours, theirs, modules):
    """Give our model their weights; every one of our tensors is filled, and every one of theirs has a place."""
    tensors = theirs.state_dict()
    used = {name.rsplit(".", 1)[0] for name in tensors}
    named = {their for their, _ in modules.values()}
    assert {re.sub(r"\.\d+\.", ".N.", name, count=1) for name in used} <= named
    ours.load_state_dict({name: their_tensor(name, tensors, modules).clone() for name in ours.state_dict()})
    return ours


def random_gpt2(seed, **options):
    """A GPT-2 of random sizes with distinct weights, and ours."""
    torch.manual_seed(seed)
    choose = lambda *values: values[torch.randint(len(values), ()).item()]  # noqa: E731
    heads = choose(1, 2, 3, 4)
    width, layers, inner = heads * choose(4, 6, 8), choose(1, 2, 3), choose(16, 30)
    activation = choose("gelu_new", "relu")
    eps, tied = choose(1e-5, 1e-3), choose(True, False)
    theirs = GPT2LMHeadModel(
        GPT2Config(
            n_embd=width, n_layer=layers, n_head=heads, n_inner=inner, activation_function=activation, n_positions=32,
            layer_norm_epsilon=eps, tie_word_embeddings=tied, attn_implementation="eager",
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **SPECIAL, **options,
        )
    )  # fmt: skip
    ours = AttnGptForCausalLM(
        AttnGptConfig(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=inner,
            activation_function=activation, max_position_embeddings=32, layer_norm_eps=eps, tie_word_embeddings=tied,
            dropout=0.0, attention_dropout=0.0, attn_implementation="eager", **SPECIAL,
        )
    )  # fmt: skip
    return ours, theirs, GPT2_MODULES


def random_llama(seed, **options):
    """A Llama of random sizes with distinct weights, and ours."""
    torch.manual_seed(seed)
    choose = lambda *values: values[torch.randint(len(values), ()).item()]  # noqa: E731
    heads, shared = choose((2, 1), (2, 2), (4, 2), (6, 3), (4, 1))
    head_dim, width = choose(None, 6, 10), heads * choose(4, 6, 8)
    layers, inner, theta, tied = choose(1, 2, 3), choose(16, 30), choose(10000.0, 500.0), choose(True, False)
    bias, eps = choose(True, False), choose(1e-6, 1e-5)
    sizes = {
        "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner,
        "num_key_value_heads": shared, "head_dim": head_dim, "tie_word_embeddings": tied, "attention_dropout": 0.0,
        "max_position_embeddings": 32, "attn_implementation": "eager", **SPECIAL,
    }  # fmt: skip
    rope = {"rope_type": "default", "rope_theta": theta}
    theirs = LlamaForCausalLM(
        LlamaConfig(**sizes, rms_norm_eps=eps, rope_parameters=rope, attention_bias=bias, mlp_bias=bias, **options)
    )
    ours = AttnGptForCausalLM(
        AttnGptConfig(
            **sizes, layer_norm_eps=eps, rope_theta=theta, use_bias=bias, position_type="rotary", norm_type="rms",
            gated_feed_forward=True, activation_function="silu", dropout=0.0,
        )
    )  # fmt: skip
    return ours, theirs, LLAMA_MODULES


def twins(make, seed, sharpness=4.0, **options):
    """Their model with weights that make its outputs distinct, and ours with the same, both in eval mode."""
    ours, theirs, modules = make(seed, **options)
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=sharpness * 0.08)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.1)
        for module in theirs.modules():
            if isinstance(module, torch.nn.Embedding) and module.num_embeddings == SPECIAL["vocab_size"]:
                module.weight[0] = 0  # of padding
    return copy_weights(ours, theirs, modules).eval(), theirs.eval(), modules
