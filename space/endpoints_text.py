# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The endpoints for programs, about texts. Their docstrings are the documentation that visitors see."""

from dataclasses import asdict
from typing import Any

import torch
from input_text import PIECES, continued, filled, with_blanks
from service import Other, Space, checked, to_lists

from hf_attn.data import readable_tokens
from hf_attn.inference.what_if import candidates
from hf_attn.visualization.steps_text import read_text


class TextEndpoints:
    """What a program can ask a BERT and a GPT.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def fill_in(self, text: str, count: int = 5) -> dict:
        """Fill in the blanks of a text.

        Args:
            text: the text with ___ (three underscores) for each blank, 1 to 8 of them; longer than 400 characters or
                120 pieces it is cut, and `notices` says so. Names of special tokens in it are text.
            count: how many pieces for each blank, 1 to 20.

        Returns:
            `text`: the text with the likeliest piece in each blank; `pieces`: what the model read; `blanks`: for each
            blank its `position` among them and `candidates`, a list of `id`, `token` and `probability`, the likeliest
            first; `attentions`: lists [layer][head][piece that reads][piece that is read]; `notices`.
        """
        other = self.space.need("fill-in")
        ids, notices = with_blanks(other, text)
        said = self.read(other, ids, checked("count", count, 1, 20))
        places = [place for place, number in enumerate(ids) if number == other.processor.mask_token_id]
        blanks = [{"position": place, "candidates": said["candidates"][place]} for place in places]
        del said["candidates"]
        return {"model": other.name, "text": filled(other, ids)[0], **said, "blanks": blanks, "notices": notices}

    def continue_text(self, text: str, pieces: int = PIECES, count: int = 5) -> dict:
        """Go on with a text, always by the likeliest piece.

        Args:
            text: the beginning; longer than 400 characters or 120 pieces it is cut, and `notices` says so. Names of
                special tokens in it are text.
            pieces: how many to write at most, 1 to 40; the end of the text may come before.
            count: how many next pieces to give for each piece, 1 to 20.

        Returns:
            `text`: the whole text; `written`: what was added; `pieces`: those of the whole text, the first `given` of
            them given; `candidates`: for each of them the likeliest next ones, a list of `id`, `token` and
            `probability`, the likeliest first; `attentions`: lists [layer][head][piece that reads][piece that is read],
            0 where it is later; `notices`.
        """
        other = self.space.need("continue")
        ids, given, notices = continued(other, text, pieces)
        whole, written = (other.processor.decode(part, skip_special_tokens=True) for part in (ids, ids[given:]))
        said = self.read(other, ids, checked("count", count, 1, 20))
        whole = whole.removeprefix(" ")  # such a tokenizer writes the space before the first word too
        return {"model": other.name, "text": whole, "written": written, "given": given, **said, "notices": notices}

    def read(self, other: Other, ids: list[int], count: int) -> dict[str, Any]:
        """Let a model read pieces; give them, all weights, and what the model says in each place."""
        outputs = read_text(other.model, other.processor, ids).outputs
        return {
            "pieces": readable_tokens(other.processor, ids),
            "candidates": [
                [asdict(one) for one in candidates(other.processor, row, count)] for row in outputs.logits[0]
            ],
            "attentions": to_lists(torch.cat(outputs.attentions)),
        }
