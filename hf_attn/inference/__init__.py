"""Text or picture in, text and attention weights out: translating, describing, and scoring what is given."""

from .captioner import Caption, Captioner
from .translation import ALIGNMENT_METHODS, Alignment, Translation, Words
from .translator import Translator, score, translate
from .what_if import Candidate, WhatIf, force_piece, head_counts, hide_words, next_pieces, remove_heads

__all__ = [
    "ALIGNMENT_METHODS",
    "Alignment",
    "Candidate",
    "Caption",
    "Captioner",
    "Translation",
    "Translator",
    "WhatIf",
    "Words",
    "force_piece",
    "head_counts",
    "hide_words",
    "next_pieces",
    "remove_heads",
    "score",
    "translate",
]
