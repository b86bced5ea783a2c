"""Pictures of attention weights, drawn from outputs only, and the steps behind them, computed anew with the model.

matplotlib is imported when a heatmap is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .alignment_html import alignment_html
from .beams_html import beams_html
from .extract import GeneratedAttentions, attention_rollout, attentions_from_generate, to_bertviz
from .failure_sheet import failure_sheet
from .history_html import Entry, history_html
from .metrics_html import Factors, metrics_html
from .page import HtmlPage
from .patches_html import patches_html
from .picture_html import caption_html
from .steps import attention_steps
from .steps_html import steps_html, text_steps_html
from .steps_text import text_steps
from .text_html import text_attention_html
from .what_if_html import next_pieces_html, what_if_html
from .word_html import word_html

if TYPE_CHECKING:
    from .comparison import head_error_rates, learning_curves, quality_by_length, training_seconds
    from .heatmap import alignment_heatmap, attention_grid
    from .picture import caption_figure, patch_figure

__all__ = [
    "Entry",
    "Factors",
    "GeneratedAttentions",
    "HtmlPage",
    "alignment_heatmap",
    "alignment_html",
    "attention_grid",
    "attention_rollout",
    "attention_steps",
    "attentions_from_generate",
    "beams_html",
    "caption_figure",
    "caption_html",
    "failure_sheet",
    "head_error_rates",
    "history_html",
    "learning_curves",
    "metrics_html",
    "next_pieces_html",
    "patch_figure",
    "patches_html",
    "quality_by_length",
    "steps_html",
    "text_attention_html",
    "text_steps",
    "text_steps_html",
    "to_bertviz",
    "training_seconds",
    "what_if_html",
    "word_html",
]

_WITH_MATPLOTLIB = {
    **dict.fromkeys(("alignment_heatmap", "attention_grid"), "heatmap"),
    **dict.fromkeys(("caption_figure", "patch_figure"), "picture"),
    **dict.fromkeys(("head_error_rates", "learning_curves", "quality_by_length", "training_seconds"), "comparison"),
}


def __getattr__(name: str):
    if name in _WITH_MATPLOTLIB:
        return getattr(import_module(f"{__name__}.{_WITH_MATPLOTLIB[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
