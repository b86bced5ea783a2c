# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of a picture and its caption: point at a word, and what the model looked at as it wrote it is lit.

One file without outside links; see `page.py`. `picture.py` draws the same as a figure. Read `patches_html.py` next: how
the patches of a picture look at one another.
"""

import base64
import io
from typing import TYPE_CHECKING

from hf_attn.data.images import convert_image
from hf_attn.inference.translation import chosen_heads, describe_heads

from .page import HtmlPage, direction, embed, escape, make_page, menu

if TYPE_CHECKING:
    from PIL.Image import Image

    from hf_attn.inference.captioner import Caption

BODY = """<p id="words" dir="{direction}" lang="">{words}</p>
<div id="picture"><img alt="{text}" lang="" src="{image}">
<div id="veil" data-columns="{columns}" style="grid-template-columns: repeat({columns}, 1fr)">{patches}</div></div>
<p id="said">Cross-attention. {layers}
{heads} <output id="largest"></output></p>
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
const weights = JSON.parse(document.getElementById("data").textContent);  // [layer][choice of heads][word][patch]
const words = [...document.querySelectorAll("#words button")], patches = [...document.querySelectorAll("#veil span")];
const layer = document.getElementById("layer"), heads = document.getElementById("heads");
const largest = document.getElementById("largest");
const columns = Number(document.getElementById("veil").dataset.columns);
const rows = () => weights[layer.selectedIndex][heads.selectedIndex];
const peaks = rows().map((row) => Math.max(...row));
let chosen = peaks.indexOf(Math.max(...peaks));  // the word that looks most sharply is shown first
function show(word) {
  chosen = word;
  const row = rows()[word], most = Math.max(...row, 1e-9);
  patches.forEach((patch, number) => {
    patch.style.setProperty("--weight", row[number]);
    patch.style.opacity = 0.86 * (1 - row[number] / most);
  });
  words.forEach((button, number) => button.setAttribute("aria-pressed", number === word));
  const brightest = row.map((weight, number) => [weight, number]).sort((one, other) => other[0] - one[0]).slice(0, 3);
  largest.textContent = "Brightest patches: " + brightest.map(([weight, number]) =>
    `row ${Math.floor(number / columns) + 1}, column ${number % columns + 1}: ${weight.toFixed(2)}`).join("; ");
}
words.forEach((button, number) => {
  for (const event of ["mouseenter", "focus", "click"]) button.addEventListener(event, () => show(number));
});
for (const menu of [layer, heads]) menu.addEventListener("change", () => show(chosen));
show(chosen);
"""


def caption_html(caption: "Caption", *, layer: int | None = None, heads: int | list[int] | None = None) -> HtmlPage:
    """Make an interactive page of where the model looked as it wrote each word.

    Args:
        caption: what a `Captioner` says about a picture.
        layer: layer of the decoder shown first, counted from 0; None is the one that the model recommends, or else the
            last.
        heads: head, or heads to average, shown first, counted from 0; None takes those that the model recommends, or
            else all.

    Returns:
        The page, to be shown by a notebook or saved to a file. It holds the weights of all layers and heads, rounded to
        4 decimals, behind two menus.

    Raises:
        ValueError: if the caption is empty, or there is no such layer or head.
    """
    if not caption.tokens:
        raise ValueError("caption is empty; there is nothing to show")
    layers, head_count = caption.cross_attentions.shape[:2]
    caption.over_picture(layer, heads)  # refuses what is not there
    layer, heads = caption.choose(layer, heads)
    first = chosen_heads(heads, head_count)
    choices = [list(range(head_count)), *[[number] for number in range(head_count)]][: None if head_count > 1 else 1]
    choices += [] if first in choices else [first]
    weights = [
        [
            caption.over_picture(number, chosen).flatten(1).double().mul(1e4).round().div(1e4).tolist()
            for chosen in choices
        ]
        for number in range(layers)
    ]
    names = [token.removeprefix("▁") or token for token in caption.tokens]
    body = BODY.format(
        words="".join(
            f'<button type="button" dir="auto" aria-pressed="false">{escape(name)}</button>' for name in names
        ),
        direction=direction(names),
        text=escape(caption.text),
        image=image_address(caption.image),
        columns=caption.grid[1],
        patches="<span></span>" * (caption.grid[0] * caption.grid[1]),
        layers=menu("layer", "Layer ", [f"{number + 1} of {layers}" for number in range(layers)], layer % layers),
        heads=menu("heads", "Heads ", [describe_heads(one, head_count) for one in choices], choices.index(first)),
        data=embed(weights),
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
