"""Train translation and language models: recipes, batches, objectives, checkpoint averaging, the scripts' arguments."""

from .arguments import (
    DataTrainingArguments,
    ModelArguments,
    check_generation,
    check_lengths,
    find_checkpoint,
    parse_arguments,
)
from .averaging import average_checkpoints, last_checkpoints, load_average
from .batching import ResumableTrainer, TokenBatchSampler, TokenBatchTrainer, pair_lengths
from .callbacks import ClockCallback, PatienceCallback, TimeLimitCallback, mean_loss
from .checkpoints import is_readable, last_complete_checkpoint
from .denoising import DenoisingCollator, SpanCorruptionCollator
from .language_modeling import CausalCollator, LanguageModelTrainer, MaskingCollator, ReplacedTokenPretraining
from .language_recipes import LANGUAGE_RECIPES
from .objectives import AlignmentSupervision, AlignmentTrainer, ReinforcementTrainer, add_links, supervise_alignment
from .recipes import RECIPES, Recipe, build_config, build_model, get_recipe, model_from_config, training_arguments

__all__ = [
    "LANGUAGE_RECIPES",
    "RECIPES",
    "AlignmentSupervision",
    "AlignmentTrainer",
    "CausalCollator",
    "ClockCallback",
    "DataTrainingArguments",
    "DenoisingCollator",
    "LanguageModelTrainer",
    "MaskingCollator",
    "ModelArguments",
    "PatienceCallback",
    "Recipe",
    "ReinforcementTrainer",
    "ReplacedTokenPretraining",
    "ResumableTrainer",
    "SpanCorruptionCollator",
    "TimeLimitCallback",
    "TokenBatchSampler",
    "TokenBatchTrainer",
    "add_links",
    "average_checkpoints",
    "build_config",
    "build_model",
    "check_generation",
    "check_lengths",
    "find_checkpoint",
    "get_recipe",
    "is_readable",
    "last_checkpoints",
    "last_complete_checkpoint",
    "load_average",
    "mean_loss",
    "model_from_config",
    "pair_lengths",
    "parse_arguments",
    "supervise_alignment",
    "training_arguments",
]
