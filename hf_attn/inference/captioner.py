# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Describe pictures with transformers' `VisionEncoderDecoderModel`; attention weights come along.

As in `translator.py`, the model's own `generate` chooses the pieces, by greedy or beam search. One teacher-forced pass
then reads log-probabilities and weights off the chosen pieces, so they are exact for both, and `Captioner.score` is the
same pass on captions that the caller chose:

    score = sum of log p(piece_t | pieces before t, picture) / length ** length_penalty

The encoder cuts the picture into a grid of patches, read row by row; before them stand its special positions, mostly
one, the class token (Dosovitskiy 2021, arXiv 2010.11929). Read `hf_attn/visualization/picture.py` for drawings.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer, PreTrainedModel

from hf_attn.data.images import convert_image
from hf_attn.data.words import is_text
from hf_attn.models.checks import check_finite, is_whole

from .decoding import start_id, stop_ids
from .loading import check_device, place_of
from .sides import Side, encode, output_side
from .translation import chosen_heads

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(eq=False)
class Caption:
    """What a model says, or is made to say, about a picture.

    Attributes:
        image: the picture as it was given.
        text: the caption; for a scored one, as it was given.
        tokens: readable pieces of the caption, "</s>" included where the model produced it.
        token_log_probs: log-probability of each piece given the picture and the pieces before it.
        score: sum of `token_log_probs` / number of pieces ** length_penalty.
        truncated: whether the caption stopped at `max_new_tokens`, or was cut to what the model takes.
        cross_attentions: (layers, heads, pieces, special positions + patches), float32 on CPU; row i is the step that
            produced piece i.
        vision_attentions: the encoder's own, (layers, heads, special positions + patches, the same).
        grid: rows and columns of patches.
        alignment_layer: the layer of the decoder in which words look at what they name, as the model's configuration
            says, counted from 0; None for the last.
        alignment_heads: the heads of that layer that do, counted from 0; None for all.
    """

    image: "Image" = field(repr=False)
    text: str
    tokens: list[str] = field(repr=False)
    token_log_probs: list[float] = field(repr=False)
    score: float
    truncated: bool
    cross_attentions: torch.Tensor = field(repr=False)
    vision_attentions: torch.Tensor = field(repr=False)
    grid: tuple[int, int]
    alignment_layer: int | None = field(default=None, repr=False)
    alignment_heads: list[int] | None = field(default=None, repr=False)

    def over_picture(self, layer: int | None = None, heads: int | list[int] | None = None) -> torch.Tensor:
        """Lay the cross-attention out as the patches lie, without the special positions.

        Args:
            layer: layer of the decoder, counted from 0, or from the end by negative numbers; None is the one that the
                model recommends, or else the last.
            heads: one head or several to average, counted from 0; None takes those that the model recommends for this
                layer, or else all.

        Returns:
            (pieces, rows, columns). What is missing to 1 went to the special positions.

        Raises:
            ValueError: if there is no such layer or head.
        """
        return lay_out(self.cross_attentions, self.grid, *self.choose(layer, heads))

    def choose(self, layer: int | None, heads: int | list[int] | None) -> tuple[int, int | list[int] | None]:
        """Put what the model recommends where no layer or heads are named; arguments as for `over_picture`."""
        layers = len(self.cross_attentions)
        recommended = layers - 1 if self.alignment_layer is None else self.alignment_layer
        layer = recommended if layer is None else layer
        return layer, self.alignment_heads if heads is None and layer % layers == recommended else heads


def lay_out(
    weights: torch.Tensor, grid: tuple[int, int], layer: int = -1, heads: int | list[int] | None = None
) -> torch.Tensor:
    """Choose layer and heads of weights over a picture, and lay the patches out.

    Args:
        weights: (layers, heads, queries, special positions + patches)
        grid: rows and columns of patches.
        layer: counted from 0, or from the end by negative numbers.
        heads: one head or several to average, counted from 0; None takes all.

    Returns:
        (queries, rows, columns)

    Raises:
        ValueError: if there is no such layer or head.
    """
    layers, head_count = weights.shape[:2]
    chosen = chosen_heads(heads, head_count)
    if not -layers <= layer < layers:
        raise ValueError(f"layer is {layer}; there are {layers} layers, counted from 0")
    rows, columns = grid
    return weights[layer, chosen].mean(dim=0)[:, -rows * columns :].unflatten(1, (rows, columns))


class Captioner:
    """Describe pictures with one model, loaded once.

    Args:
        model: a folder or a Hub id, or a loaded `VisionEncoderDecoderModel`, which keeps its dtype and device and is
            put into evaluation mode. From a folder or the Hub, weights are float32 whatever the checkpoint's dtype.
        tokenizer: of a loaded model.
        image_processor: of a loaded model. It may resize pictures, not crop them.
        device: where to run, e.g. "cpu" or "cuda:1"; None takes a GPU if there is one for a model that is opened, and
            leaves a loaded one where it is.
        trust_remote_code: run the Python code that a Hub repository brings along.

    Raises:
        ValueError: if a loaded model comes without tokenizer and image processor, or is none that describes pictures,
            or there is no such device.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel,
        tokenizer: Any = None,
        image_processor: Any = None,
        *,
        device: str | torch.device | None = None,
        trust_remote_code: bool = False,
    ):
        check_device(device)
        if isinstance(model, (str, Path)):
            options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
            # transformers' own parts return weights under this implementation alone
            network = AutoModelForImageTextToText.from_pretrained(
                model, dtype=torch.float32, attn_implementation="eager", **options
            )
            tokenizer = tokenizer or AutoTokenizer.from_pretrained(model, **options)
            image_processor = image_processor or AutoImageProcessor.from_pretrained(model, **options)
        else:
            network = model
        if tokenizer is None or image_processor is None:
            raise ValueError("a loaded model needs its tokenizer and image processor: Captioner(model, tokenizer, ...)")
        if network.config.model_type != "vision-encoder-decoder":
            raise ValueError(f"model is of type {network.config.model_type!r}; it must be 'vision-encoder-decoder'")
        where = place_of(model, device)
        if where is not None:
            network.to(device=where)  # type: ignore[call-overload]
        self.model = network.eval()
        self.tokenizer = copy.deepcopy(tokenizer)  # encoding sets padding and truncation on a tokenizer
        self.image_processor = image_processor

    def __call__(
        self,
        images: "Image | Sequence[Image]",
        *,
        num_beams: int = 1,
        max_new_tokens: int | None = None,
        length_penalty: float = 1.0,
        batch_size: int = 32,
    ) -> Any:
        """Describe one picture or many.

        Args:
            images: one picture of PIL, or several.
            num_beams: 1 is greedy search.
            max_new_tokens: longest caption in pieces, "</s>" included; None is what the model says. Bounded by its
                positions.
            length_penalty: exponent of the length in the score; with beam search, more than 0 favours long captions.
            batch_size: how many pictures run together.

        Returns:
            For a picture a `Caption`, for several a list of them in the same order.

        Raises:
            TypeError: if something is no picture of PIL.
            ValueError: if an option is out of range, or the model's implementation of attention gives no weights.
        """
        for name, value in (("num_beams", num_beams), ("batch_size", batch_size)):
            _check_count(name, value)
        check_finite("length_penalty", length_penalty)
        if max_new_tokens is not None:
            _check_count("max_new_tokens", max_new_tokens)
        longest = self._longest(max_new_tokens)

        def describe(batch: list[Any]) -> list[Caption]:
            pixels = self._pixels(batch)
            config = copy.deepcopy(self.model.generation_config)
            config.update(  # type: ignore[union-attr]
                num_beams=num_beams,
                num_return_sequences=1,
                max_length=longest + 1,  # counts the start piece
                max_new_tokens=None,
                length_penalty=length_penalty,
                early_stopping=False,
                do_sample=False,
                output_attentions=False,
                return_dict_in_generate=False,
            )
            sequences = self.model.generate(pixel_values=pixels, generation_config=config)  # type: ignore[operator]
            chosen = [self._cut(ids[1:]) for ids in sequences.tolist()]  # without the start piece
            return self._read(batch, pixels, [output_side(self.tokenizer, *one) for one in chosen], length_penalty)

        many = isinstance(images, Sequence)
        captions = _in_batches(list(images) if many else [images], describe, batch_size)
        return captions if many else captions[0]

    def score(
        self,
        images: "Image | Sequence[Image]",
        captions: str | Sequence[str],
        *,
        length_penalty: float = 1.0,
        batch_size: int = 32,
    ) -> Any:
        """Give log-probabilities and attention weights of given captions (forced decoding).

        Args:
            images: one picture of PIL, or several.
            captions: one caption, or as many.
            length_penalty: exponent of the length in the score; 0 gives the log-probability of the whole caption.
            batch_size: how many pictures run together.

        Returns:
            For a picture a `Caption`, for several a list of them.

        Raises:
            ValueError: if there are not as many captions as pictures, one is no text, or an option is out of range.
        """
        many = isinstance(images, Sequence)
        texts: Any = list(captions) if many else [captions]
        pictures: Any = list(images) if many else [images]
        if many == isinstance(captions, str) or len(pictures) != len(texts):
            raise ValueError("give one caption for one picture, or as many captions as pictures")
        if not all(is_text(text) for text in texts):
            raise ValueError("captions must be strings of valid Unicode, without lone surrogates")
        _check_count("batch_size", batch_size)
        check_finite("length_penalty", length_penalty)
        sides = encode(self.tokenizer, "text", texts, self._longest(None), "caption", self._stop)
        captioned = _in_batches(
            list(zip(pictures, sides, strict=True)),
            lambda batch: self._read(
                [picture for picture, _ in batch],
                self._pixels([picture for picture, _ in batch]),
                [side for _, side in batch],
                length_penalty,
            ),
            batch_size,
        )
        return captioned if many else captioned[0]

    @property
    def _stop(self) -> set[int]:
        return stop_ids(self.model, self.tokenizer)

    def _longest(self, wanted: int | None) -> int:
        """Give the longest caption in pieces: as wanted, or as the model's settings and positions allow."""
        config: Any = self.model.generation_config
        said = config.max_new_tokens or (config.max_length or 21) - 1
        positions = getattr(self.model.config.decoder, "max_position_embeddings", None) or 2**31
        return min(said if wanted is None else wanted, positions)

    def _cut(self, ids: list[int]) -> tuple[list[int], bool]:
        """Cut what follows the end piece; and tell whether there was none."""
        end = next((place for place, piece in enumerate(ids) if piece in self._stop), None)
        return (ids, True) if end is None else (ids[: end + 1], False)

    def _pixels(self, images: list[Any]) -> torch.Tensor:
        """Prepare pictures as the model sees them."""
        pictures = [convert_image(image, "RGB") for image in images]
        pixels = self.image_processor(pictures, return_tensors="pt")["pixel_values"]
        return pixels.to(device=self.model.device, dtype=self.model.dtype)

    @torch.no_grad()
    def _read(self, images: list[Any], pixels: torch.Tensor, sides: list[Side], length_penalty: float) -> list[Caption]:
        """Run the model on known captions: the only place where log-probabilities and weights are read."""
        start, padding = start_id(self.model), self.tokenizer.pad_token_id or 0
        labels = pad_sequence([torch.tensor(side.ids) for side in sides], batch_first=True).to(self.model.device)
        shifted = [torch.tensor([start, *side.ids[:-1]]) for side in sides]
        outputs = self.model(
            pixel_values=pixels,
            decoder_input_ids=pad_sequence(shifted, batch_first=True, padding_value=padding).to(self.model.device),
            output_attentions=True,
            use_cache=False,
        )
        cross, vision = (
            self._weights(outputs, f"{kind}_attentions") for kind in ("cross", "encoder")
        )  # (batch, layers, heads, query_len, key_len)
        log_probs = outputs.logits.float().log_softmax(dim=-1).gather(2, labels[:, :, None])[:, :, 0].cpu()
        captions = []
        for row, (image, side) in enumerate(zip(images, sides, strict=True)):
            length = len(side.ids)
            token_log_probs = log_probs[row, :length].tolist()
            captions.append(
                Caption(
                    image=image,
                    text=side.text,
                    tokens=side.tokens,
                    token_log_probs=token_log_probs,
                    score=sum(token_log_probs) / length**length_penalty,
                    truncated=side.truncated,
                    cross_attentions=cross[row, :, :, :length],
                    vision_attentions=vision[row],
                    grid=self._grid(pixels),
                    alignment_layer=getattr(self.model.config, "alignment_layer", None),
                    alignment_heads=getattr(self.model.config, "alignment_heads", None),
                )
            )
        return captions

    def _weights(self, outputs: Any, name: str) -> torch.Tensor:
        """Put the layers of one kind of weights together: (batch, layers, heads, query_len, key_len)."""
        layers = getattr(outputs, name)
        if not layers or layers[0] is None:
            raise ValueError(f'the model gives no {name}; load it with attn_implementation="eager"')
        return torch.stack([layer.float().cpu() for layer in layers], dim=1)

    def _grid(self, pixels: torch.Tensor) -> tuple[int, int]:
        """Count the rows and columns of patches."""
        size: Any = self.model.config.encoder.patch_size
        height, width = (size, size) if isinstance(size, int) else size
        return pixels.shape[-2] // height, pixels.shape[-1] // width


def _in_batches(items: list[Any], run: Any, batch_size: int) -> list[Any]:
    starts = range(0, len(items), batch_size)
    return [result for start in starts for result in run(items[start : start + batch_size])]


def _check_count(name: str, value: object) -> None:
    if not is_whole(value, 1):
        raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
