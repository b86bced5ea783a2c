# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The tab of what is no translation: a text with a blank, a text that goes on, a digit, a picture of shapes."""

from typing import Any

import gradio as gr
from input_pictures import CaptionTab, DigitTab
from input_text import ContinueTab, FillInTab
from links import Link
from service import Space
from texts import explanation

INPUTS = (
    ("fill-in", "Fill in a blank", FillInTab),
    ("continue", "What comes next", ContinueTab),
    ("classify", "A digit", DigitTab),
    ("caption", "A caption", CaptionTab),
)


class InputsTab:
    """One equation, other inputs.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def lay_out(self, private: dict[str, Any]) -> tuple[gr.Tabs, list[Link]]:
        """Lay out the tab, with one inside for each model that is there; give those, and how a link opens them."""
        gr.HTML(explanation("inputs"))
        links: list[Link] = []
        with gr.Tabs(overflow_behavior="wrap") as tabs:
            for kind, title, inside in INPUTS:
                if self.space.other(kind):
                    with gr.Tab(title, id=kind) as tab:
                        links.append(inside(self.space).lay_out(tab, private))
        return tabs, links
