"""Named recipes: the hyper-parameters of the papers, and small siblings that train in minutes on two CPU cores.

A recipe names a model type, the fields of its config, and defaults for the command-line arguments of
``scripts/train_translation.py``; the command line and a YAML file override both. What a paper does differently is said
in the recipe's ``differences``.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Seq2SeqTrainingArguments,
)

OWN_MODEL_TYPES = ("attn-rnn", "attn-convs2s", "attn-transformer")


@dataclass(frozen=True)
class Recipe:
    """A model and the way to train it.

    Args:
        source: Where the numbers come from.
        model_type: Key of transformers' ``AutoConfig``.
        config: Config fields that are not the library's defaults; sizes of vocabularies come from the tokenizer.
        arguments: Defaults of the training script's arguments, by argument name.
        differences: What the source does and this recipe does not.
    """

    source: str
    model_type: str
    config: dict[str, Any]
    arguments: dict[str, Any]
    differences: str = ""


_ADADELTA = "the paper uses Adadelta (rho 0.95, epsilon 1e-6), which the Trainer does not have; here Adam"
_MAXOUT = "the paper's maxout layer is 500 wide, here as wide as the embeddings"
_SIBLING = "the paper has LSTMs and one direction; here as the siblings, so that only attention differs"
_SENTENCES = "the paper counts {} sentences a batch; here padded tokens"

_PAPER_SGD = {"optim": "sgd", "max_grad_norm": 5.0, "lr_scheduler_type": "constant"}
_PAPER_ADAM = {
    "lr_scheduler_type": "inverse_sqrt",
    "warmup_steps": 4000,
    "adam_beta2": 0.98,
    "adam_epsilon": 1e-9,
    "label_smoothing_factor": 0.1,
    "max_grad_norm": 0.0,
    "tokens_per_batch": 25000,
    "vocab_size": 37000,
}
_SMALL = {
    "learning_rate": 1e-3,
    "lr_scheduler_type": "inverse_sqrt",
    "warmup_steps": 400,
    "adam_beta2": 0.98,
    "label_smoothing_factor": 0.1,
    "max_grad_norm": 1.0,
    "tokens_per_batch": 1536,
    "vocab_size": 6000,
}


_TINY = _SMALL | {
    "max_steps": 1900,  # the cosine needs an end; a time limit below may cut it short
    "lr_scheduler_type": "cosine",
    "warmup_steps": 80,
    "label_smoothing_factor": 0.0,
    "tokens_per_batch": 1024,
    "vocab_size": 2000,
}


def _rnn(rnn_type: str, layers: int, width: int, embedding: int, **other: Any) -> dict[str, Any]:
    """Write the fields that every recurrent recipe sets."""
    return {
        "rnn_type": rnn_type,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "hidden_size": width,
        "embedding_size": embedding,
        **other,
    }


def _convs2s(layers: int, width: int, dropout: float) -> dict[str, Any]:
    """Write the fields of Gehring's models whose layers are all alike."""
    return {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "hidden_size": width,
        "encoder_kernel_size": 3,
        "decoder_kernel_size": 3,
        "dropout": dropout,
    }


def _transformer(layers: int, width: int, heads: int, inner: int, dropout: float) -> dict[str, Any]:
    """Write the fields of Vaswani's Table 3, and what his section 3 fixes for all rows."""
    return {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "hidden_size": width,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_intermediate_size": inner,
        "decoder_intermediate_size": inner,
        "dropout": dropout,
        "attention_dropout": 0.0,
        "position_type": "sinusoidal",
        "norm_first": False,
        "activation_function": "relu",
        "scale_embedding": True,
        "share_embeddings": True,
        "tie_word_embeddings": True,
    }


# transformers' own classes with the numbers of "transformer-small".
_CONTROL = {
    "d_model": 256,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "dropout": 0.1,
    "activation_function": "relu",
    "scale_embedding": True,
}

RECIPES: dict[str, Recipe] = {
    "sutskever": Recipe(
        "Sutskever et al. 2014, arXiv 1409.3215, section 3.4",
        "attn-rnn",
        _rnn("lstm", 4, 1000, 1000, attention_type="none", bidirectional=False, context_feeding="initial")
        | {"reverse_source": True, "dropout": 0.0, "initializer_range": 0.08},
        _PAPER_SGD | {"learning_rate": 0.7, "num_train_epochs": 7.5, "tokens_per_batch": 3840, "vocab_size": 80000},
        "the paper halves the learning rate every half epoch after epoch 5, has 160,000 source and 80,000 target "
        "words, and draws weights uniformly from [-0.08, 0.08]; " + _SENTENCES.format(128),
    ),
    "cho": Recipe(
        "Cho et al. 2014, arXiv 1406.1078, section 4.1 and appendix A",
        "attn-rnn",
        _rnn("gru", 1, 1000, 100, attention_type="none", bidirectional=False, context_feeding="every_step")
        | {"dropout": 0.0, "initializer_range": 0.01},
        {"learning_rate": 5e-4, "lr_scheduler_type": "constant", "tokens_per_batch": 1920, "vocab_size": 15000},
        "; ".join([_ADADELTA, _MAXOUT, "the paper trains on phrase pairs", _SENTENCES.format(64)]),
    ),
    "bahdanau": Recipe(
        "Bahdanau et al. 2015 (RNNsearch), arXiv 1409.0473, appendices A.2.3 and B.2",
        "attn-rnn",
        _rnn("gru", 1, 1000, 620, attention_type="bahdanau", score_function="additive", bidirectional=True)
        | {"attention_size": 1000, "dropout": 0.0, "initializer_range": 0.01},
        {"learning_rate": 5e-4, "lr_scheduler_type": "constant", "max_grad_norm": 1.0, "tokens_per_batch": 2400}
        | {"vocab_size": 30000},
        "; ".join([_ADADELTA, _MAXOUT, _SENTENCES.format(80)]),
    ),
    "luong": Recipe(
        "Luong et al. 2015 (global attention, general score, input feeding), arXiv 1508.04025, section 4.1",
        "attn-rnn",
        _rnn("lstm", 4, 1000, 1000, attention_type="luong", score_function="general", bidirectional=False)
        | {"input_feeding": True, "reverse_source": True, "dropout": 0.2, "initializer_range": 0.1},
        _PAPER_SGD | {"learning_rate": 1.0, "num_train_epochs": 12, "tokens_per_batch": 3840, "vocab_size": 50000},
        "the paper halves the learning rate every epoch after epoch 8 and draws weights uniformly from [-0.1, 0.1]; "
        + _SENTENCES.format(128),
    ),
    "gnmt": Recipe(
        "Wu et al. 2016 (GNMT), arXiv 1609.08144, sections 3 and 8",
        "attn-rnn",
        _rnn("lstm", 8, 1024, 1024, attention_type="gnmt", score_function="additive", bidirectional=True)
        | {"bidirectional_layers": 1, "residual": True, "attention_size": 1024, "dropout": 0.2}
        | {"initializer_range": 0.04},
        {"learning_rate": 2e-4, "lr_scheduler_type": "constant", "max_grad_norm": 5.0, "max_steps": 60000}
        | {"tokens_per_batch": 3840, "vocab_size": 32000},
        "after 60,000 updates of Adam the paper goes on with SGD (learning rate 0.5, halved every 200,000 updates from "
        "1.2 million on), then rewards its own translations (section 5), and clips states and logits for quantised "
        "arithmetic (section 6); it draws weights uniformly from [-0.04, 0.04] and drops 0.3 for English-German; "
        + _SENTENCES.format(128),
    ),
    "convs2s": Recipe(
        "Gehring et al. 2017, arXiv 1705.03122, sections 4 and 5 (English-Romanian)",
        "attn-convs2s",
        _convs2s(20, 512, 0.2),
        {"optim": "sgd", "optim_args": "momentum=0.99,nesterov=true", "learning_rate": 0.25, "max_grad_norm": 0.1}
        | {"lr_scheduler_type": "constant", "tokens_per_batch": 1920, "vocab_size": 40000, "num_beams": 5},
        "the paper normalises weights, and divides the learning rate by ten after each epoch once the validation "
        "perplexity no longer falls; " + _SENTENCES.format(64),
    ),
    "transformer-base": Recipe(
        "Vaswani et al. 2017, arXiv 1706.03762, Table 3 (base) and section 5",
        "attn-transformer",
        _transformer(6, 512, 8, 2048, 0.1),
        # 512 ** -0.5 * 4000 ** -0.5: the peak of the paper's equation 3
        _PAPER_ADAM | {"learning_rate": 6.99e-4, "max_steps": 100000, "average_checkpoints": 5, "num_beams": 4},
        "the paper's 25,000 tokens a batch do not count padding and are spread over 8 GPUs",
    ),
    "transformer-big": Recipe(
        "Vaswani et al. 2017, arXiv 1706.03762, Table 3 (big) and section 5",
        "attn-transformer",
        _transformer(6, 1024, 16, 4096, 0.3),
        # 1024 ** -0.5 * 4000 ** -0.5
        _PAPER_ADAM
        | {"learning_rate": 4.94e-4, "max_steps": 300000, "average_checkpoints": 20, "save_total_limit": 20}
        | {"num_beams": 4},
        "the paper's 25,000 tokens a batch do not count padding and are spread over 8 GPUs; it uses dropout 0.1 for "
        "English-French",
    ),
    "none-small": Recipe(
        "Cho et al. 2014 without attention, made small",
        "attn-rnn",
        _rnn("gru", 1, 256, 256, attention_type="none", bidirectional=True, context_feeding="every_step")
        | {"dropout": 0.2},
        _SMALL,
    ),
    "bahdanau-small": Recipe(
        "Bahdanau et al. 2015, made small",
        "attn-rnn",
        _rnn("gru", 1, 256, 256, attention_type="bahdanau", score_function="additive", bidirectional=True)
        | {"attention_size": 256, "dropout": 0.2},
        _SMALL,
    ),
    "luong-small": Recipe(
        "Luong et al. 2015, made small",
        "attn-rnn",
        _rnn("gru", 1, 256, 256, attention_type="luong", score_function="general", bidirectional=True)
        | {"input_feeding": True, "dropout": 0.2},
        _SMALL,
        _SIBLING,
    ),
    "gnmt-small": Recipe(
        "Wu et al. 2016 (GNMT), made small",
        "attn-rnn",
        _rnn("gru", 4, 256, 256, attention_type="gnmt", score_function="additive", bidirectional=True)
        | {"bidirectional_layers": 1, "residual": True, "attention_size": 256, "dropout": 0.2}
        | {"tie_word_embeddings": True},
        _SMALL,
        "the paper has LSTMs, and 8 layers; here GRUs, as the siblings",
    ),
    "convs2s-small": Recipe(
        "Gehring et al. 2017, made small",
        "attn-convs2s",
        _convs2s(5, 256, 0.1) | {"share_embeddings": True, "tie_word_embeddings": True},
        _SMALL,
    ),
    "transformer-small": Recipe(
        "Vaswani et al. 2017, made small",
        "attn-transformer",
        # a post-norm stack that starts with the paper's larger weights, 0.0625 here, learns more slowly
        _transformer(3, 256, 4, 1024, 0.1) | {"initializer_range": 0.02},
        _SMALL,
    ),
    "none-tiny": Recipe(
        "Cho et al. 2014 without attention, made tiny for the phrasebook",
        "attn-rnn",
        _rnn("gru", 1, 192, 192, attention_type="none", bidirectional=True, context_feeding="every_step")
        | {"dropout": 0.1},
        _TINY | {"learning_rate": 2e-3},
    ),
    "bahdanau-tiny": Recipe(
        "Bahdanau et al. 2015, made tiny for the phrasebook",
        "attn-rnn",
        _rnn("gru", 1, 192, 192, attention_type="bahdanau", score_function="additive", bidirectional=True)
        | {"attention_size": 192, "dropout": 0.1},
        _TINY | {"learning_rate": 2e-3},
    ),
    "luong-tiny": Recipe(
        "Luong et al. 2015, made tiny for the phrasebook",
        "attn-rnn",
        _rnn("gru", 1, 192, 192, attention_type="luong", score_function="general", bidirectional=True)
        | {"input_feeding": True, "dropout": 0.1},
        _TINY | {"learning_rate": 2e-3},
        _SIBLING,
    ),
    "transformer-tiny": Recipe(
        "Vaswani et al. 2017, made tiny for the phrasebook, with pre-norm (Xiong et al. 2020, arXiv 2002.04745)",
        "attn-transformer",
        _transformer(2, 160, 4, 640, 0.1) | {"norm_first": True},
        _TINY | {"learning_rate": 2.5e-3, "max_steps": 2600},
    ),
    "marian-small": Recipe(
        "transformers' MarianMTModel with the numbers of transformer-small, as a control",
        "marian",
        _CONTROL,
        _SMALL,
    ),
    "bart-small": Recipe(
        "transformers' BartForConditionalGeneration with the numbers of transformer-small, as a control",
        "bart",
        _CONTROL,
        _SMALL,
        "Bart learns its position embeddings and normalises the embeddings",
    ),
}


def get_recipe(recipe: str | Recipe) -> Recipe:
    """Look a recipe up by its name; a ``Recipe`` is returned unchanged.

    Raises:
        ValueError: If there is no recipe of this name.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}; got {recipe!r}")
    return RECIPES[recipe]


def build_config(
    recipe: str | Recipe,
    tokenizer: PreTrainedTokenizerFast,
    target_tokenizer: PreTrainedTokenizerFast | None = None,
    **overrides: Any,
) -> PreTrainedConfig:
    """Write the config of a recipe for a vocabulary.

    Args:
        recipe: A recipe or its name.
        tokenizer: The joint tokenizer, or the source tokenizer.
        target_tokenizer: The target tokenizer where the vocabularies are separate.
        **overrides: Config fields that replace the recipe's.

    Raises:
        ValueError: If there is no such recipe or config field, a value is refused by the config, the tokenizers
            disagree on their special tokens, or the model type cannot have separate vocabularies.
    """
    recipe = get_recipe(recipe)
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    missing = [name for name, value in special.items() if value is None]
    if missing:
        raise ValueError(f"the tokenizer must have pad, bos and eos tokens; it lacks {', '.join(missing)}")
    values = {"vocab_size": len(tokenizer), **special, "decoder_start_token_id": special["bos_token_id"]}
    if recipe.model_type not in OWN_MODEL_TYPES:
        values["forced_eos_token_id"] = None  # these classes force ids of their published vocabularies otherwise
    if target_tokenizer is not None:
        other = {name: getattr(target_tokenizer, name) for name in special}
        if other != special:
            raise ValueError(f"target_tokenizer must have the special tokens of the source, {special}; got {other}")
        if recipe.model_type == "bart":
            raise ValueError("model type 'bart' has one vocabulary for both languages; separate ones are impossible")
        values["decoder_vocab_size"] = len(target_tokenizer)
        own = recipe.model_type in OWN_MODEL_TYPES
        values["share_embeddings" if own else "share_encoder_decoder_embeddings"] = False
    default = AutoConfig.for_model(recipe.model_type)
    unknown = [name for name in overrides if not hasattr(default, name)]
    if unknown:
        names = ", ".join(sorted(field.name for field in fields(default)))
        raise ValueError(f"{recipe.model_type} has no config field {', '.join(unknown)}; it has {names}")
    return AutoConfig.for_model(recipe.model_type, **(recipe.config | values | overrides))


def build_model(
    recipe: str | Recipe,
    tokenizer: PreTrainedTokenizerFast,
    target_tokenizer: PreTrainedTokenizerFast | None = None,
    **overrides: Any,
) -> PreTrainedModel:
    """Make the untrained model of a recipe for a vocabulary; arguments and errors as for ``build_config``."""
    return model_from_config(build_config(recipe, tokenizer, target_tokenizer, **overrides))


def model_from_config(config: PreTrainedConfig) -> PreTrainedModel:
    """Make an untrained encoder-decoder with a language-model head from its config."""
    model = AutoModelForSeq2SeqLM.from_config(config)
    if config.model_type not in OWN_MODEL_TYPES:
        # transformers' own encoder-decoders ignore `num_items_in_batch`. Told so, the Trainer averages the
        # micro-batches of a step; otherwise it would multiply the loss by their number.
        model.accepts_loss_kwargs = False
    return model


def training_defaults(recipe: str | Recipe) -> dict[str, Any]:
    """Return the recipe's training arguments, and those that the hardware decides, by argument name."""
    return hardware_defaults() | get_recipe(recipe).arguments


def training_arguments(recipe: str | Recipe, output_dir: str, **overrides: Any) -> Seq2SeqTrainingArguments:
    """Make the Trainer's arguments of a recipe, for programs that do not use the command line.

    Args:
        recipe: A recipe or its name.
        output_dir: Folder of the checkpoints.
        **overrides: Arguments of ``Seq2SeqTrainingArguments`` that replace the recipe's.

    Raises:
        ValueError: If there is no recipe of this name.
    """
    known = {field.name for field in fields(Seq2SeqTrainingArguments)}
    values = {name: value for name, value in training_defaults(recipe).items() if name in known}
    return Seq2SeqTrainingArguments(output_dir=output_dir, **(values | overrides))


def hardware_defaults() -> dict[str, Any]:
    """Return the training arguments that depend on the machine.

    bfloat16 autocast is on where it is faster than float32: GPUs that compute in it natively, and processors with
    AMX or AVX-512 BF16 instructions. Processors without them emulate it, which is slower.
    """
    if torch.cuda.is_available():
        return {"bf16": torch.cuda.is_bf16_supported(including_emulation=False), "dataloader_pin_memory": True}
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    native = bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))
    mps = torch.backends.mps.is_available()
    return {"bf16": native and not mps, "use_cpu": not mps, "dataloader_pin_memory": False}
