"""Text or picture in, text and attention weights out: translating, describing, and scoring what is given."""

from .captioner import Caption, Captioner
from .translation import ALIGNMENT_METHODS, Alignment, Translation, Words
from .translator import Translator, score, translate

__all__ = [
    "ALIGNMENT_METHODS",
    "Alignment",
    "Caption",
    "Captioner",
    "Translation",
    "Translator",
    "Words",
    "score",
    "translate",
]
