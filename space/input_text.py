# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""To be written."""


class Tab:
    def __init__(self, space):
        self.space = space

    def lay_out(self, tab, private):
        self.private = private


FillInTab = ContinueTab = Tab
