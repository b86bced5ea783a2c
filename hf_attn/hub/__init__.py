"""Publish models on the Hugging Face Hub: model cards, and whole repositories from the folder of a training run."""

from .card import model_card
from .publish import About, Publication, publish, save_tokenizer

__all__ = ["About", "Publication", "model_card", "publish", "save_tokenizer"]
