# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of a picture and its caption: point at a word, and what the model looked at as it wrote it is lit.

One file without outside links; see `page.py`. `picture.py` draws the same as a figure. Read `patches_html.py` next: how
the patches of a picture look at one another.
"""

import base64
import io
import json
from typing import TYPE_CHECKING

from hf_attn.data.images import convert_image
from hf_attn.inference.captioner import lay_out

from .page import HtmlPage, direction, escape, make_page

if TYPE_CHECKING:
    from PIL.Image import Image

    from hf_attn.inference.captioner import Caption

BODY = """<p id="words" dir="{direction}" lang="">{words}</p>
<div id="picture"><img alt="{text}" lang="" src="{image}">
<div id="veil" data-columns="{columns}" style="grid-template-columns: repeat({columns}, 1fr)">{patches}</div></div>
<p id="said">cross-attention, mean of the heads of a layer. <label>Layer <select id="layer">{layers}</select></label>
<output id="largest"></output></p>
<script type="application/json" id="data">{data}</script>"""

PICTURE_STYLE = """
#picture { position: relative; }
#picture img { display: block; width: 100%; image-rendering: pixelated; }
#veil { position: absolute; inset: 0; display: grid; grid-auto-rows: minmax(0, 1fr); }
"""
STYLE = """
#words button { font: inherit; padding: 2px 6px; margin: 0 2px 4px 0; border: 1px solid var(--edge); border-radius: 4px;
  background: none; color: inherit; cursor: pointer; }
#words button[aria-pressed="true"] { background: var(--glow); }
#picture { width: min(100%, 320px); }
#veil span { background: #101418; opacity: 0; }
#said { color: var(--faint); font-size: 14px; }
"""

SCRIPT = """
const weights = JSON.parse(document.getElementById("data").textContent);  // [layer][word][patch]
const words = [...document.querySelectorAll("#words button")], patches = [...document.querySelectorAll("#veil span")];
const layer = document.getElementById("layer"), largest = document.getElementById("largest");
const columns = Number(document.getElementById("veil").dataset.columns);
let chosen = 0;
function show(word) {
  chosen = word;
  const row = weights[layer.selectedIndex][word], most = Math.max(...row, 1e-9);
  patches.forEach((patch, number) => { patch.style.opacity = 0.86 * (1 - row[number] / most); });
  words.forEach((button, number) => button.setAttribute("aria-pressed", number === word));
  const brightest = row.map((weight, number) => [weight, number]).sort((one, other) => other[0] - one[0]).slice(0, 3);
  largest.textContent = "Brightest patches: " + brightest.map(([weight, number]) =>
    `row ${Math.floor(number / columns) + 1}, column ${number % columns + 1}: ${weight.toFixed(2)}`).join("; ");
}
words.forEach((button, number) => {
  for (const event of ["mouseenter", "focus", "click"]) button.addEventListener(event, () => show(number));
});
layer.addEventListener("change", () => show(chosen));
show(0);
"""


def caption_html(caption: "Caption") -> HtmlPage:
    """Make an interactive page of where the model looked as it wrote each word.

    Args:
        caption: what a `Captioner` says about a picture.

    Returns:
        The page, to be shown by a notebook or saved to a file. It holds the weights of all layers, each the mean of its
        heads, rounded to 4 decimals; the last layer is shown first.

    Raises:
        ValueError: if the caption is empty.
    """
    if not caption.tokens:
        raise ValueError("caption is empty; there is nothing to show")
    layers, columns = caption.cross_attentions.shape[0], caption.grid[1]
    by_layer = [lay_out(caption.cross_attentions, caption.grid, number).flatten(1) for number in range(layers)]
    weights = [[[round(value, 4) for value in word] for word in layer.tolist()] for layer in by_layer]
    names = [token.removeprefix("▁") or token for token in caption.tokens]
    options = [
        f"<option{' selected' if number == layers - 1 else ''}>{number + 1} of {layers}</option>"
        for number in range(layers)
    ]
    body = BODY.format(
        words="".join(
            f'<button type="button" dir="auto" aria-pressed="false">{escape(name)}</button>' for name in names
        ),
        direction=direction(names),
        text=escape(caption.text),
        image=image_address(caption.image),
        columns=columns,
        patches="<span></span>" * (caption.grid[0] * columns),
        layers="".join(options),
        data=json.dumps(weights),
    )
    return make_page("A picture and its caption", body, style=PICTURE_STYLE + STYLE, script=SCRIPT, height=460)


def image_address(image: "Image") -> str:
    """Write a picture of PIL as an address that holds the picture itself.

    Args:
        image: of any mode.

    Returns:
        The address, to be the `src` of an `img`.

    Raises:
        TypeError: if it is no picture of PIL.
    """
    file = io.BytesIO()
    convert_image(image, "RGB").save(file, format="png")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
