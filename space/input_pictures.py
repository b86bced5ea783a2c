# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A digit that a visitor draws and ViT reads, and a picture of shapes that a captioner describes."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import torch
from links import Asked, Link
from PIL import Image
from service import Other, Space, checked
from texts import explanation

from hf_attn.data.images import convert_image
from hf_attn.data.shapes import Scene, generate
from hf_attn.inference import Caption
from hf_attn.visualization import caption_html, patches_html
from hf_attn.visualization.page import escape
from hf_attn.visualization.picture_html import image_address

SIDE, WHITE = 8, 16  # a digit has 8 x 8 pixels of 17 greys, white ink on black
SAMPLES = json.loads((Path(__file__).parent / "digits.json").read_text(encoding="utf-8"))
SHOWN, MOST_PICTURES = 8, 1_000_000  # pictures of shapes that are offered, and that there are
EMPTY = "The grid is empty: draw a digit on it, or pick one."

PAD_STYLE = """
.surface { display: grid; width: min(100%, 320px); aspect-ratio: 1; border: 1px solid var(--border-color-primary);
  touch-action: none; cursor: crosshair; user-select: none; }
[role=row] { display: grid; grid-template-columns: repeat(8, 1fr); }
[role=gridcell] { box-shadow: inset 0 0 0 0.5px rgb(128 128 128 / 50%); }
[role=gridcell]:focus-visible { outline: 3px solid var(--focus); outline-offset: 0; z-index: 1; position: relative; }
p { margin: 8px 0; font-size: 14px; color: var(--body-text-color); }
.samples { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 8px; }
button { font: inherit; color: var(--body-text-color); background: var(--background-fill-primary);
  border: 1px solid var(--border-color-primary); border-radius: 6px; padding: 4px; cursor: pointer; }
.clear { padding: 4px 14px; margin-top: 8px; }
img { display: block; width: 36px; height: 36px; margin: 0; image-rendering: pixelated; }
.source { font-size: 12px; opacity: 0.8; overflow-wrap: anywhere; }
"""
# The digits of the data are black-and-white pictures of 32 x 32 dots, and a pixel counts those of 4 x 4 that are white;
# each was first enlarged to the whole height. So is what is drawn here, stroke by stroke; pixels that are picked, or
# switched one by one, are left as they are.
PAD_SCRIPT = """
const DOTS = 32, PEN = 2.7;  // the pen's radius, so that a digit has as much ink as those of the data
const surface = element.querySelector(".surface"), cells = [...surface.querySelectorAll("[role=gridcell]")];
let strokes = [], shown;  // points of the pen; the pixels on the grid

function ink(dots, [x0, y0], [x1, y1]) {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy || 1;
  const from = (a, b) => Math.max(0, Math.floor(Math.min(a, b) - PEN));
  const to = (a, b) => Math.min(DOTS - 1, Math.ceil(Math.max(a, b) + PEN));
  for (let y = from(y0, y1); y <= to(y0, y1); y++) for (let x = from(x0, x1); x <= to(x0, x1); x++) {
    const px = x + 0.5 - x0, py = y + 0.5 - y0, along = Math.max(0, Math.min(1, (px * dx + py * dy) / length));
    if (Math.hypot(px - along * dx, py - along * dy) <= PEN) dots[DOTS * y + x] = 1;
  }
}

function drawn(lines) {
  const dots = new Uint8Array(DOTS * DOTS), pixels = Array(64).fill(0);
  for (const line of lines) line.forEach((point, number) => ink(dots, line[Math.max(0, number - 1)], point));
  dots.forEach((dot, place) => { pixels[8 * (place >> 7) + (place % DOTS >> 2)] += dot; });
  return pixels;
}

function enlarged(lines) {
  const range = (axis) => {
    const values = lines.flat().map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [left, right] = range(0), [top, bottom] = range(1), size = Math.max(right - left, bottom - top);
  const scale = size < 8 ? 1 : (DOTS - 2 * PEN) / size;  // a dot stays a dot
  return lines.map((line) => line.map(([x, y]) =>
    [DOTS / 2 + scale * (x - (left + right) / 2), DOTS / 2 + scale * (y - (top + bottom) / 2)]));
}

function paint(pixels) {
  shown = pixels;
  cells.forEach((cell, place) => {
    const light = Math.round(pixels[place] * 255 / 16);
    cell.style.background = `rgb(${light} ${light} ${light})`;
    cell.setAttribute("aria-label", `row ${(place >> 3) + 1}, column ${place % 8 + 1}: ${pixels[place]} of 16`);
  });
}

function send(pixels) {
  props.value = pixels;
  trigger("input");
}

function set(pixels) {
  strokes = [];
  paint(pixels);
  send(pixels);
}

function moveTo(place) {
  cells.forEach((cell, number) => { cell.tabIndex = number === place ? 0 : -1; });
  cells[place].focus();
}

const point = (event) => {
  const box = surface.getBoundingClientRect();
  return [DOTS * (event.clientX - box.left) / box.width, DOTS * (event.clientY - box.top) / box.height];
};
surface.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  event.preventDefault();
  surface.setPointerCapture(event.pointerId);
  strokes.push([point(event)]);
  paint(drawn(strokes));
});
surface.addEventListener("pointermove", (event) => {
  if (!surface.hasPointerCapture(event.pointerId) || !strokes.length) return;
  strokes[strokes.length - 1].push(...(event.getCoalescedEvents?.() || []).concat(event).map(point));
  paint(drawn(strokes));
});
surface.addEventListener("lostpointercapture", () => { if (strokes.length) send(drawn(enlarged(strokes))); });
surface.addEventListener("keydown", (event) => {
  const place = cells.indexOf(document.activeElement), column = place % 8;
  const moves = {ArrowLeft: column ? place - 1 : place, ArrowRight: column < 7 ? place + 1 : place,
    ArrowUp: place < 8 ? place : place - 8, ArrowDown: place > 55 ? place : place + 8,
    Home: place - column, End: place - column + 7};
  if (event.key in moves) moveTo(moves[event.key]);
  else if (event.key === " ") set(shown.map((value, number) => number === place ? (value ? 0 : 16) : value));
  else return;
  event.preventDefault();
});
element.querySelector(".clear").addEventListener("click", () => set(Array(64).fill(0)));
for (const sample of element.querySelectorAll(".samples button")) {
  sample.addEventListener("click", () => set(sample.dataset.pixels.split(" ").map(Number)));
}
watch("value", () => {  // a link brought another digit
  strokes = [];
  paint([...props.value]);
});
cells[0].tabIndex = 0;
paint([...props.value]);
"""
PICKER_STYLE = """
div { display: flex; flex-wrap: wrap; gap: 8px; }
button { background: none; border: 3px solid transparent; border-radius: 6px; padding: 0; cursor: pointer; }
button[aria-pressed=true] { border-color: var(--focus); }
img { display: block; width: 72px; height: 72px; margin: 0; }
"""
PICKER_SCRIPT = """
const buttons = [...element.querySelectorAll("button")];
const mark = () => {
  for (const button of buttons) button.setAttribute("aria-pressed", Number(button.dataset.number) === props.value);
};
for (const button of buttons) button.addEventListener("click", () => {
  props.value = Number(button.dataset.number);
  mark();
  trigger("input");
});
watch("value", mark);
mark();
"""


@dataclass(frozen=True)
class Reading:
    """What a classifier makes of a digit.

    Attributes:
        image: the digit.
        probabilities: of each class, in the order of the classes.
        attentions: (layers, heads, positions, positions); the patches come last, row by row.
        grid: rows and columns of patches.
    """

    image: Image.Image
    probabilities: dict[str, float]
    attentions: torch.Tensor
    grid: tuple[int, int]

    @property
    def best(self) -> str:
        """The likeliest class."""
        return max(self.probabilities, key=lambda name: self.probabilities[name])


def checked_pixels(pixels: object) -> list[int]:
    """Give the pixels of a digit, or refuse what is none."""
    if not isinstance(pixels, list) or len(pixels) != SIDE * SIDE:
        raise gr.Error(f"A digit has {SIDE} x {SIDE} pixels: {SIDE * SIDE} whole numbers.", print_exception=False)
    return [checked("Each pixel", value, 0, WHITE) for value in pixels]


def to_image(pixels: list[int]) -> Image.Image:
    """Make a picture of the pixels of a digit, as `hf_attn.data.images.digits` does."""
    return Image.frombytes("L", (SIDE, SIDE), bytes(round(value * 255 / WHITE) for value in pixels))


@torch.no_grad()
def read_digit(other: Other, pixels: list[int]) -> Reading:
    """Let a classifier read a digit."""
    config, image = other.model.config, to_image(pixels)
    shown = convert_image(image, "RGB" if config.num_channels == 3 else "L")
    values = other.processor([shown], return_tensors="pt")["pixel_values"]
    outputs = other.model(pixel_values=values, output_attentions=True)
    shares = outputs.logits[0].float().softmax(dim=-1).tolist()
    probabilities = {config.id2label[number]: share for number, share in enumerate(shares)}
    height, width = values.shape[-2:]
    grid = height // config.patch_size, width // config.patch_size
    return Reading(image, probabilities, torch.cat(outputs.attentions).float(), grid)


def picture_number(number: object) -> int:
    """Give the number of a picture of shapes, or refuse what is none."""
    return checked("The number of the picture", number, 0, MOST_PICTURES - 1)


def scene_of(number: int) -> Scene:
    """Draw the picture of shapes with a number.

    The pictures are those of the test of generalisation: in each a colour and a shape come together that never did in
    training.
    """
    (scene,) = generate("compositional", 1, number)
    return scene


def sample_button(sample: dict[str, Any]) -> str:
    """Write a digit to be picked."""
    pixels = " ".join(map(str, sample["pixels"]))
    return (
        f'<button type="button" data-pixels="{pixels}">'
        f'<img alt="digit {sample["label"]}" src="{image_address(to_image(sample["pixels"]))}"></button>'
    )


def pad() -> gr.HTML:
    """Make the grid to draw on; its value is the 64 pixels."""
    cells = '<span role="gridcell" tabindex="-1"></span>' * SIDE
    template = (
        '<div class="surface" role="grid" aria-label="Drawing of 8 by 8 pixels" aria-describedby="pad-help">'
        + f'<div role="row">{cells}</div>' * SIDE
        + '</div><button type="button" class="clear">Clear</button>'
        '<p id="pad-help">Draw with the mouse or a finger. By keyboard: the arrow keys move, the space bar switches a '
        "pixel. Or pick a digit that somebody wrote:</p>"
        f'<div class="samples" role="group" aria-label="Digits to pick">'
        f"{''.join(map(sample_button, SAMPLES['digits']))}</div>"
        f'<p class="source">{escape(SAMPLES["source"])}</p>'
    )
    return gr.HTML(
        SAMPLES["digits"][0]["pixels"],
        html_template=template,
        css_template=PAD_STYLE,
        js_on_load=PAD_SCRIPT,
        apply_default_css=False,
        elem_id="pad",
    )


def picker() -> gr.HTML:
    """Make the row of pictures to pick from; its value is the number of the one that is picked."""
    buttons = [
        f'<button type="button" data-number="{number}"><img alt="{scene.caption}" '
        f'src="{image_address(scene.picture)}"></button>'
        for number, scene in ((number, scene_of(number)) for number in range(SHOWN))
    ]
    return gr.HTML(
        0,
        html_template=f'<div role="group" aria-label="Pictures">{"".join(buttons)}</div>',
        css_template=PICKER_STYLE,
        js_on_load=PICKER_SCRIPT,
        apply_default_css=False,
        elem_id="pictures",
    )


class DigitTab:
    """A digit and how a classifier reads it.

    Args:
        space: the models, with one that classifies.
    """

    def __init__(self, space: Space):
        self.other = space.need("classify")

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("digit"))
        with gr.Row():
            with gr.Column(scale=2, min_width=280):
                drawing = pad()
            with gr.Column(scale=5, min_width=280):
                results = gr.HTML(elem_id="digit", apply_default_css=False)
        link = Link(tab, [drawing], {"pixels": drawing}, [drawing], self.opened)
        link.follow(gr.on([drawing.input, link.visited.change], self.show, drawing, results, js=link.asking, **private))
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the value of a link: the pixels."""
        return [asked.numbers("pixels", 0, WHITE, SIDE * SIDE)]

    def show(self, pixels: object) -> str:
        """Read a digit; write the answer and where the model looked."""
        values = checked_pixels(pixels)
        if not any(values):
            return f'<p role="status">{EMPTY}</p>'
        reading = read_digit(self.other, values)
        page = patches_html(reading.image, reading.attentions, reading.grid, probabilities=reading.probabilities)
        return (
            f'<p role="status">The model reads <b>{escape(reading.best)}</b>, with probability '
            f"{reading.probabilities[reading.best]:.2f}.</p>{page._repr_html_()}"
        )


class CaptionTab:
    """A picture and what a captioner says about it.

    Args:
        space: the models, with one that describes pictures.
    """

    def __init__(self, space: Space):
        self.other = space.need("caption")

    def lay_out(self, tab: gr.Tab, private: dict[str, Any]) -> Link:
        """Lay out the tab."""
        gr.HTML(explanation("caption"))
        picked = picker()
        another = gr.Button("Another one", min_width=160, scale=0)
        results = gr.HTML(elem_id="caption", apply_default_css=False)
        link = Link(tab, [picked], {"picture": picked}, [picked], self.opened)
        options: dict[str, Any] = {"inputs": picked, "outputs": results, "js": link.asking, **private}
        replaced = another.click(self.another, None, picked, api_visibility="private")
        link.follow(
            gr.on([picked.input, link.visited.change], self.show, **options), replaced.then(self.show, **options)
        )
        return link

    def opened(self, asked: Asked) -> list[Any]:
        """Give the value of a link: the number of the picture."""
        return [asked.number("picture", 0, MOST_PICTURES - 1)]

    def another(self) -> int:
        """Take any picture that is not offered."""
        return random.randrange(SHOWN, MOST_PICTURES)

    def show(self, number: object) -> str:
        """Describe a picture; write the caption, whether it is right, and where the model looked."""
        place = picture_number(number)
        scene = scene_of(place)
        caption: Caption = self.other.model(scene.picture)
        judged = (
            "right, to the last word" if caption.text == scene.caption else f"wrong: it is “{escape(scene.caption)}”"
        )
        return (
            f'<div class="hf-attn-results"><section role="status"><p class="translation">{escape(caption.text)}</p>'
            f'<p class="small">That is {judged}. (Picture {place} of the generator)</p></section></div>'
            f"{caption_html(caption)._repr_html_()}"
        )
