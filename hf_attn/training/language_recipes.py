"""Named recipes of language models: the papers' numbers, and small siblings that train on one CPU core.

As in `recipes.py`; here by what is learned: "clm" goes on with a text, "mlm" fills masks, "electra" finds replaced
pieces. Where the small ones are not their papers' models made small, ``differences`` says so.
"""

from typing import Any

from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerBase

from .recipes import Recipe

_SMALL = {
    "learning_rate": 1.5e-3,
    "lr_scheduler_type": "cosine",
    "warmup_steps": 400,
    "adam_beta2": 0.98,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "max_steps": 10000,
    "tokens_per_batch": 4096,
    "vocab_size": 4000,
    "max_length": 128,
}
_TINY = _SMALL | {"max_steps": 1000, "warmup_steps": 50, "tokens_per_batch": 2048, "vocab_size": 1000, "max_length": 64}
_MODERN = "rotary positions (Su et al. 2021, arXiv 2104.09864), where the paper learns them"
_PRE_NORM = f"{_MODERN}, and norms before the sublayers (Xiong et al. 2020, arXiv 2002.04745): both learn faster"
_BATCH = "the paper counts {} rows a batch; here padded tokens"


def _sizes(width: int, layers: int, heads: int, **other: Any) -> dict[str, Any]:
    """Write the sizes of a stack whose inner width is four times its width."""
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        **other,
    }


_SMALL_ENCODER = {
    "attention_dropout": 0.0,
    "position_type": "rotary",
    "norm_first": True,
    "max_position_embeddings": 128,
}

LANGUAGE_RECIPES: dict[str, dict[str, Recipe]] = {
    "clm": {
        "base": Recipe(
            "Radford et al. 2018 (GPT), section 4.1, with the sizes and the norms of Radford et al. 2019 (GPT-2)",
            "attn-gpt",
            _sizes(768, 12, 12),
            {"learning_rate": 2.5e-4, "lr_scheduler_type": "cosine", "warmup_steps": 2000, "weight_decay": 0.01}
            | {"num_train_epochs": 100, "tokens_per_batch": 32768, "vocab_size": 40000, "max_length": 512},
            "GPT-2 reads 1,024 tokens a row, and its paper does not say how it was trained; " + _BATCH.format(64),
        ),
        "small": Recipe(
            "Radford et al. 2019 (GPT-2), made small",
            "attn-gpt",
            _sizes(192, 4, 6, attention_dropout=0.0, position_type="rotary", max_position_embeddings=128),
            _SMALL | {"tokens_per_batch": 2048},
            _MODERN,
        ),
        "tiny": Recipe(
            "Radford et al. 2019 (GPT-2), made tiny for the phrasebook",
            "attn-gpt",
            _sizes(96, 2, 4, attention_dropout=0.0, position_type="rotary", max_position_embeddings=64),
            _TINY,
            _MODERN,
        ),
    },
    "mlm": {
        "base": Recipe(
            "Devlin et al. 2019 (BERT base), arXiv 1810.04805, appendix A.2",
            "attn-bert",
            _sizes(768, 12, 12),
            {"learning_rate": 1e-4, "lr_scheduler_type": "linear", "warmup_steps": 10000, "max_steps": 1000000}
            | {"weight_decay": 0.01, "tokens_per_batch": 131072, "vocab_size": 30000, "max_length": 512},
            "masks are drawn anew each time, and nothing predicts the next sentence (Liu et al. 2019, arXiv "
            "1907.11692); the paper shortens its rows to 128 tokens for nine tenths of the updates; "
            + _BATCH.format(256),
        ),
        "small": Recipe(
            "Devlin et al. 2019 (BERT), made small",
            "attn-bert",
            _sizes(192, 4, 6, **_SMALL_ENCODER),
            _SMALL,
            _PRE_NORM,
        ),
        "tiny": Recipe(
            "Devlin et al. 2019 (BERT), made tiny for the phrasebook",
            "attn-bert",
            _sizes(96, 2, 4, **_SMALL_ENCODER),
            _TINY,
            _PRE_NORM,
        ),
    },
    "electra": {
        "base": Recipe(
            "Clark et al. 2020 (ELECTRA base), arXiv 2003.10555, Table 6",
            "attn-bert",
            _sizes(768, 12, 12),
            {"learning_rate": 2e-4, "lr_scheduler_type": "linear", "warmup_steps": 10000, "max_steps": 766000}
            | {"weight_decay": 0.01, "tokens_per_batch": 131072, "vocab_size": 30522, "max_length": 512}
            | {"generator_size": 1 / 3},
            _BATCH.format(256),
        ),
        "small": Recipe(
            "Clark et al. 2020 (ELECTRA), made small",
            "attn-bert",
            _sizes(192, 4, 6, **_SMALL_ENCODER),
            _SMALL | {"generator_size": 1 / 2},
            _PRE_NORM,
        ),
        "tiny": Recipe(
            "Clark et al. 2020 (ELECTRA), made tiny for the phrasebook",
            "attn-bert",
            _sizes(96, 2, 4, **_SMALL_ENCODER),
            _TINY | {"generator_size": 1 / 2},
            _PRE_NORM,
        ),
    },
}


def language_recipe(objective: str, recipe: str) -> Recipe:
    """Look a recipe up by what is learned and by its name.

    Raises:
        ValueError: If there is none of this name.
    """
    for name, value, known in (
        ("objective", objective, LANGUAGE_RECIPES),
        ("recipe", recipe, LANGUAGE_RECIPES.get(objective, {})),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}")
    return LANGUAGE_RECIPES[objective][recipe]


def language_config(recipe: Recipe, tokenizer: PreTrainedTokenizerBase, **overrides: Any) -> PreTrainedConfig:
    """Write the config of a recipe for a vocabulary.

    Args:
        recipe: The recipe.
        tokenizer: Gives the size of the vocabulary and the special ids.
        **overrides: Config fields that replace the recipe's.

    Raises:
        ValueError: If there is no such config field, or a value is refused by the config.
    """
    special = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    default = AutoConfig.for_model(recipe.model_type)
    unknown = [name for name in overrides if not hasattr(default, name)]
    if unknown:
        raise ValueError(f"{recipe.model_type} has no config field {', '.join(unknown)}")
    values = recipe.config | {"vocab_size": len(tokenizer)} | special | overrides
    return AutoConfig.for_model(recipe.model_type, **values)
