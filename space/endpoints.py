# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The endpoints for programs. Their docstrings are the documentation that visitors see."""

from dataclasses import asdict

from service import BEAMS, MOST_BEAMS, Space, checked, checked_kind, clean, numbers, to_lists

from hf_attn.data.words import text_words
from hf_attn.evaluation.from_scratch import brevity_penalty, clipped_matches, sentence_bleu
from hf_attn.inference import WhatIf, next_pieces

NAMES = (
    *("translate", "attention", "beams", "next_pieces"),
    *("hide_words", "remove_heads", "write_instead", "metrics"),
)


class Endpoints:
    """What a program can ask.

    Args:
        space: the models.
    """

    def __init__(self, space: Space):
        self.space = space

    def translate(self, text: str, model: str, num_beams: int = BEAMS) -> dict:
        """Translate one sentence.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            `source`, `text`, pieces of both with their log-probabilities, `score`, `truncated`, `failures` (what looks
            wrong), `notices` (what was changed in the text).
        """
        name = self.space.choose(model)
        line, notices = clean(text)
        translation = self.space.translation(name, line, checked("num_beams", num_beams, 1, MOST_BEAMS))
        failures = [{"kind": flag.kind, "detail": flag.detail} for flag in self.space.failures(name, translation)]
        notices += self.space.remarks(name, translation)
        return {"model": name, **translation.to_dict(), "failures": failures, "notices": notices}

    def attention(self, text: str, model: str, num_beams: int = BEAMS) -> dict:
        """Translate one sentence and give all attention weights.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            What /translate returns, and `cross_attentions`, `encoder_attentions`, `decoder_attentions`: lists [layer]
            [head][query piece][key piece], null where the model has no such attention; `alignment`: the weights between
            words that the model recommends, with `source_words`, `target_words` and `description`.
        """
        result = self.translate(text, model, num_beams)
        translation = self.space.translation(model, result["source"], int(num_beams))
        for kind in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
            weights = getattr(translation, kind)
            result[kind] = None if weights is None else to_lists(weights)
        result["alignment"] = None
        if translation.cross_attentions is not None:
            words = translation.alignment()
            result["alignment"] = {
                "source_words": words.source_words,
                "target_words": words.target_words,
                "weights": to_lists(words.weights),
                "description": words.description,
            }
        return result

    def beams(self, text: str, model: str, num_beams: int = BEAMS) -> dict:
        """Give all outputs of a beam search.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8.

        Returns:
            `beams`: a list, best first, of what /translate returns without failures and notices; and `notices`.
        """
        name = self.space.choose(model)
        line, notices = clean(text)
        found = self.space.beams(name, line, checked("num_beams", num_beams, 1, MOST_BEAMS))
        return {
            "model": name,
            "beams": [one.to_dict() for one in found],
            "notices": notices + self.space.remarks(name, found[0]),
        }

    def next_pieces(self, text: str, model: str, num_beams: int = BEAMS, count: int = 5) -> dict:
        """Give what else might have been written at each step of a translation.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.
            count: how many pieces at each step, 1 to 20.

        Returns:
            What /translate returns, and `candidates`: for each target piece a list of `id`, `token` and `probability`,
            the likeliest first.
        """
        result = self.translate(text, model, num_beams)
        translation = self.space.translation(model, result["source"], int(num_beams))
        steps = next_pieces(self.space.models[model], translation, checked("count", count, 1, 20))
        return result | {"candidates": [[asdict(candidate) for candidate in step] for step in steps]}

    def hide_words(self, text: str, model: str, words: list[int], num_beams: int = BEAMS) -> dict:
        """Translate once more with source words that the decoder cannot attend to.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space that has attention, e.g. "en-fr-bahdanau".
            words: numbers of words of the source, from 0, punctuation and the end of the sentence counted.
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            `condition`, `before` and `after` as /translate returns them, and `rescored`: the pieces of the first with
            their log-probabilities under the condition.
        """
        asked = self.asked(text, model, num_beams)
        return self.answer(*self.space.hide(*asked[:2], numbers("words", words), asked[2]))

    def remove_heads(
        self, text: str, model: str, layer: int, heads: list[int], kind: str = "cross", num_beams: int = BEAMS
    ) -> dict:
        """Translate once more without heads of attention.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: a Transformer of this Space, e.g. "en-fr-transformer".
            layer: number of the layer, from 0.
            heads: numbers of the heads, from 0.
            kind: "cross", "decoder" or "encoder".
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            What /hide_words returns.
        """
        name, line, beams = self.asked(text, model, num_beams)
        (layer,), heads = numbers("layer", [layer]), numbers("heads", heads)
        return self.answer(*self.space.remove(name, line, checked_kind(kind), layer, heads, beams))

    def write_instead(self, text: str, model: str, position: int, piece: int, num_beams: int = BEAMS) -> dict:
        """Write another piece into a translation, and go on from there.

        Args:
            text: the sentence; longer than 400 characters or 120 pieces it is cut, and `notices` says so.
            model: one of the models of this Space, e.g. "en-fr-bahdanau".
            position: number of the target piece that is replaced, from 0.
            piece: number of the piece to write, as /next_pieces gives it.
            num_beams: width of the beam search, 1 to 8; 1 is greedy search.

        Returns:
            What /hide_words returns, without `rescored`.
        """
        name, line, beams = self.asked(text, model, num_beams)
        position, piece = numbers("position", [position]) + numbers("piece", [piece])
        return self.answer(*self.space.force(name, line, position, piece, beams))

    def metrics(self, reference: str, hypothesis: str) -> dict:
        """Compute BLEU by hand, from 0 to 1 and without smoothing.

        Args:
            reference: a right translation.
            hypothesis: the translation to be judged.

        Returns:
            `precisions`: [matches, n-grams] for n = 1 to 4; `brevity_penalty`, `bleu_2` and `bleu_4`; `words` of both.
        """
        right = text_words(clean(reference, "reference")[0])
        judged = text_words(clean(hypothesis, "hypothesis")[0])
        return {
            "words": {"reference": right, "hypothesis": judged},
            "precisions": [list(clipped_matches(judged, [right], order)) for order in (1, 2, 3, 4)],
            "brevity_penalty": brevity_penalty(len(judged), len(right)),
            "bleu_2": sentence_bleu(judged, [right], 2),
            "bleu_4": sentence_bleu(judged, [right], 4),
        }

    def asked(self, text: str, model: str, num_beams: int) -> tuple[str, str, int]:
        """Check the arguments that most endpoints have."""
        return self.space.choose(model), clean(text)[0], checked("num_beams", num_beams, 1, MOST_BEAMS)

    def answer(self, answer: WhatIf, condition: str) -> dict:
        """Write an answer as plain values."""
        rescored = None if answer.rescored is None else answer.rescored.to_dict()
        result = {"condition": condition, "before": answer.before.to_dict(), "after": answer.after.to_dict()}
        return result if rescored is None else result | {"rescored": rescored}
