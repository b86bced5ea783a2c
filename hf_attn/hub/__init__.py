"""Publish models on the Hugging Face Hub: model cards, and whole repositories from the folder of a training run; and
make checkpoints of transformers' own models ours, and back."""

from .card import model_card
from .import_checkpoint import export_checkpoint, import_checkpoint
from .publish import About, Publication, publish, save_tokenizer

__all__ = ["About", "Publication", "export_checkpoint", "import_checkpoint", "model_card", "publish", "save_tokenizer"]
