"""What a model needs on the Hugging Face Hub besides its files."""

from .card import model_card

__all__ = ["model_card"]
