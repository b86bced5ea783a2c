"""Text in, text and attention weights out: translating, and scoring given translations."""

from .translation import Alignment, Translation, Words
from .translator import Translator, score, translate

__all__ = ["Alignment", "Translation", "Translator", "Words", "score", "translate"]
