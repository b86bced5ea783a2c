"""Pictures of attention weights, drawn from outputs only; matplotlib is imported when a heatmap is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from .alignment_html import alignment_html
from .extract import GeneratedAttentions, attentions_from_generate, to_bertviz
from .page import HtmlPage

if TYPE_CHECKING:
    from .heatmap import alignment_heatmap, attention_grid

__all__ = [
    "GeneratedAttentions",
    "HtmlPage",
    "alignment_heatmap",
    "alignment_html",
    "attention_grid",
    "attentions_from_generate",
    "to_bertviz",
]


def __getattr__(name: str):
    if name in ("alignment_heatmap", "attention_grid"):
        return getattr(import_module(f"{__name__}.heatmap"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
