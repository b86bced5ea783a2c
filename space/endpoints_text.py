# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""To be written."""


class TextEndpoints:
    def __init__(self, space):
        self.space = space

    def fill_in(self) -> dict:
        """To be written."""
        return {}

    def continue_text(self) -> dict:
        """To be written."""
        return {}
