# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The endpoints for programs, about pictures. Their docstrings are the documentation that visitors see."""

import gradio as gr
from input_pictures import EMPTY, SIDE, checked_pixels, picture_number, read_digit, scene_of
from service import Space, to_lists


class PictureEndpoints:
    """What a program can ask about pictures.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def classify_digit(self, pixels: list[list[int]]) -> dict:
        """Read a handwritten digit.

        Args:
            pixels: 8 rows of 8 pixels, whole numbers from 0 (black) to 16 (white ink), as in scikit-learn's digits.

        Returns:
            `digit`: the likeliest class; `probabilities`: of each class, by its name; `attentions`: lists [layer][head]
            [position that looks][position that is looked at], the class token first, then the patches row by row;
            `grid`: rows and columns of patches.
        """
        other = self.space.need("classify")
        if not isinstance(pixels, list) or len(pixels) != SIDE or not all(isinstance(row, list) for row in pixels):
            raise gr.Error(f"pixels must be {SIDE} rows of {SIDE} whole numbers.", print_exception=False)
        values = checked_pixels([value for row in pixels for value in row])
        if not any(values):
            raise gr.Error(EMPTY, print_exception=False)
        reading = read_digit(other, values)
        return {
            "model": other.name,
            "digit": reading.best,
            "probabilities": reading.probabilities,
            "attentions": to_lists(reading.attentions),
            "grid": list(reading.grid),
        }

    def describe_shapes(self, number: int) -> dict:
        """Describe a picture of coloured shapes, in which a colour and a shape meet that never did in training.

        Args:
            number: which picture, 0 to 999,999. `hf_attn.data.shapes.generate("compositional", 1, number)` draws the
                same.

        Returns:
            `caption`: what the model says; `right`: what is right; `correct`: whether they are the same; `pieces` of
            the caption with their `log_probs`; `cross_attentions`: lists [layer][head][piece][position], the class
            token first, then the patches row by row; `vision_attentions`: lists [layer][head][position that looks]
            [position that is looked at]; `grid`: rows and columns of patches.
        """
        other = self.space.need("caption")
        scene = scene_of(picture_number(number))
        caption = other.model(scene.picture)
        return {
            "model": other.name,
            "caption": caption.text,
            "right": scene.caption,
            "correct": caption.text == scene.caption,
            "pieces": caption.tokens,
            "log_probs": caption.token_log_probs,
            "cross_attentions": to_lists(caption.cross_attentions),
            "vision_attentions": to_lists(caption.vision_attentions),
            "grid": list(caption.grid),
        }
