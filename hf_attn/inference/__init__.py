"""Text in, text and attention weights out: translating, and scoring given translations."""

from .translation import ALIGNMENT_METHODS, Alignment, Translation, Words
from .translator import Translator, score, translate

__all__ = ["ALIGNMENT_METHODS", "Alignment", "Translation", "Translator", "Words", "score", "translate"]
