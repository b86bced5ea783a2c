# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""To be written."""


class PictureEndpoints:
    def __init__(self, space):
        self.space = space

    def classify_digit(self) -> dict:
        """To be written."""
        return {}

    def describe_shapes(self) -> dict:
        """To be written."""
        return {}
