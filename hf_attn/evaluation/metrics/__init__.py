# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Metrics for `evaluate.load`: one folder each, with a script of the same name."""
