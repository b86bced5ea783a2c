# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A good question for every named endpoint of the Space and every part of its page."""

SENTENCE = "The old teacher reads a long letter in the garden."
RNN, TRANSFORMER = "en-fr-bahdanau", "en-fr-transformer"
ASKED = {"text": SENTENCE, "model": TRANSFORMER, "num_beams": 2}
DIGIT = [[0, 0, 8, 16, 16, 8, 0, 0], *[[0, 4, 16, 2, 2, 16, 4, 0]] * 6, [0, 0, 8, 16, 16, 8, 0, 0]]
GOOD = {
    "translate": ASKED,
    "attention": ASKED,
    "beams": ASKED,
    "next_pieces": ASKED | {"count": 3},
    "hide_words": ASKED | {"words": [1, 2]},
    "remove_heads": ASKED | {"layer": 0, "heads": [0], "kind": "cross"},
    "write_instead": ASKED | {"position": 1, "piece": 40},
    "metrics": {"reference": "The girl reads a letter.", "hypothesis": "The girl reads letters."},
    "fill_in": {"text": "The old ___ reads a ___ letter.", "count": 3},
    "continue_text": {"text": "The old teacher", "pieces": 6, "count": 3},
    "classify_digit": {"pixels": DIGIT},
    "describe_shapes": {"number": 7},
}
PAGE = {  # what fills each part of the page, from which inputs
    "results": (SENTENCE, [RNN, TRANSFORMER], 4, "words", None),
    "steps": (SENTENCE, RNN),
    "history": (SENTENCE, "en-fr", 1),
    "what-if": (SENTENCE, TRANSFORMER, "Hide source words"),
    "metrics": (SENTENCE, SENTENCE, "The girl reads.", SENTENCE, "en-fr-luong"),
    "filled-steps": ("The ___ reads.",),
    "senses": ("reads", "The girl reads.", "The old teacher reads a long letter.", ""),
    "continued-steps": ("The old teacher", 6),
    "digit": (sum(DIGIT, []),),
    "caption": (7,),
}
