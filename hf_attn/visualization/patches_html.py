# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A page of a picture and of what each of its patches attends to: point at a patch, and those it looks at are lit.

One file without outside links; see `page.py`. `picture.py` draws the same as a figure, layer by layer, for the class
token alone; `picture_html.py` makes a page of a picture and its caption.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from .alignment_page import STYLE as SHARED_STYLE
from .extract import attention_rollout, picture_weights
from .page import HtmlPage, embed, escape, make_page, menu
from .picture_html import PICTURE_STYLE, image_address

if TYPE_CHECKING:
    from PIL.Image import Image

BODY = """<div class="controls">{menus}</div>
<div class="views">
<div id="askers" role="toolbar" aria-label="Who asks">
<div id="special">{special}</div>
<div id="picture"><img alt="The picture" src="{image}">
<div id="veil" data-columns="{columns}" style="grid-template-columns: repeat({columns}, minmax(0, 1fr))">{patches}</div>
</div>
</div>
<div>
{classes}<p class="status" id="status"></p>
<p class="caption">Point at a patch, or move to it with the tab and arrow keys: what it looks at lights up. Its weights
sum to 1; those below 0.02 stand without a number.</p>
<details>
<summary>The weights as a table</summary>
<div class="scroll" tabindex="0" role="region" aria-label="Table of attention weights">
<table id="table"><caption></caption>
<tbody>
{table}
</tbody></table>
</div>
</details>
</div>
</div>
<script type="application/json" id="data">{data}</script>"""
CLASSES = """<p class="side" id="classes-name">Probability of each class</p>
<ul id="classes" aria-labelledby="classes-name">{entries}</ul>
"""
MEAN = "the mean of the patches"
NARROWEST = 30  # pixels of a patch in which a number can be read

STYLE = """
.views { grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); }
#classes { list-style: none; margin: 0 0 14px; padding: 0; max-width: 420px; display: grid; gap: 2px 8px;
  grid-template-columns: fit-content(50%) 1fr 3em; }
#classes li { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: center; }
#classes .name { overflow-wrap: anywhere; }
#classes .bar { height: 12px; border-radius: 3px; background: color-mix(in srgb, var(--edge) 45%, transparent); }
#classes .bar span { display: block; height: 100%; border-radius: 3px; background: var(--line); }
#classes .value { text-align: end; font-variant-numeric: tabular-nums; }
#classes .best { font-weight: 700; }
#status { min-height: 5.6em; }
#status::first-letter { text-transform: uppercase; }
#special { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 8px; }
#picture { max-width: 400px; width: 100%; container-type: inline-size; }
.asker { font: inherit; font-size: 12px; color: inherit; padding: 0; cursor: pointer; }
.asker .number { font-variant-numeric: tabular-nums; }
#special .asker { font-size: 14px; padding: 3px 8px; border: 1px solid var(--edge); border-radius: 7px;
  background: color-mix(in srgb, var(--glow) calc(100% * var(--share, 0)), var(--paper)); }
#special .number { display: inline-block; min-width: 2.6em; text-align: end; }
#mean .number { display: none; }
#veil .asker { position: relative; border: 0; border-radius: 0; overflow: hidden;
  background: color-mix(in srgb, #101418 calc(70% - 70% * var(--share, 1)), transparent);
  box-shadow: inset 0 0 0 1px rgb(128 128 128 / 45%), inset 0 0 0 3px rgb(255 179 0 / var(--share, 0)); }
#veil .number:not(:empty) { padding: 0 3px; border-radius: 3px; color: #fff; background: rgb(16 20 24 / 80%); }
#askers .active { z-index: 1; outline: 3px solid var(--focus); outline-offset: -1px; }
#askers .asker:focus-visible { z-index: 2; }
"""

SCRIPT = """
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("data").textContent);  // weights [layer][head][query][key], rollout [layer][query][key]
  const askers = [...document.querySelectorAll(".asker")], places = askers.filter((asker) => asker.id !== "mean");
  const special = [...find("special").children], patches = [...find("veil").children];
  const cells = [...document.querySelectorAll("#table td")], columns = Number(find("veil").dataset.columns);
  const name = (asker) => asker.dataset.name, choice = (id) => find(id) ? Number(find(id).value) : 0;
  let matrix, described, chosen = askers[0];

  const mean = (rows) => rows[0].map((_, key) => rows.reduce((sum, row) => sum + row[key], 0) / rows.length);
  const weights = (asker) => asker.id === "mean" ? mean(matrix) : matrix[places.indexOf(asker)];
  const strongest = (row) => places.map((place, number) => [row[number], name(place)])
    .sort((one, other) => other[0] - one[0]).slice(0, 5).filter(([weight]) => weight >= 0.005)
    .map(([weight, text]) => text + ": " + weight.toFixed(2)).join("; ") || "no place much";
  const sentence = (asker) => name(asker) + " looks at " + strongest(weights(asker));

  function show(asker) {
    const row = weights(asker), most = Math.max(...row.slice(places.length - patches.length), 1e-9);
    places.forEach((place, number) => {
      place.style.setProperty("--weight", row[number]);
      place.style.setProperty("--share", Math.min(1, row[number] / most));
      place.querySelector(".number").textContent = row[number] >= 0.015 ? row[number].toFixed(2) : "";
      cells[number].textContent = row[number].toFixed(4);
    });
    for (const each of askers) {
      each.classList.toggle("active", each === asker);
      each.setAttribute("aria-pressed", each === chosen);
    }
    find("status").textContent = sentence(asker) + ` (${described})`;
    find("table").caption.textContent = `What ${name(asker)} looks at (${described})`;
  }

  function choose(asker) {
    chosen = asker;
    for (const each of askers) each.tabIndex = each === asker ? 0 : -1;
    show(asker);
  }

  function select() {
    const layer = choice("layer"), rollout = choice("method") === 1, head = choice("heads");
    const heads = data.weights[layer].length;
    if (find("heads")) find("heads").disabled = rollout;
    const parts = rollout ? [data.rollout[layer]] : head ? [data.weights[layer][head - 1]] : data.weights[layer];
    matrix = parts[0].map((_, query) => mean(parts.map((part) => part[query])).map((value) => value / 1e4));
    described = (rollout ? "rollout up to" : "weights of") + ` layer ${layer + 1} of ${data.weights.length}, ` +
      (head && !rollout ? `head ${head} of ${heads}` : heads > 1 ? `mean of ${heads} heads` : "head 1 of 1");
    for (const each of askers) each.setAttribute("aria-label", sentence(each));
    show(chosen);
  }

  function onKey(event) {
    const from = document.activeElement, at = patches.indexOf(from), column = at % columns;
    const moves = at < 0 ? {
      ArrowLeft: from.previousElementSibling, ArrowRight: from.nextElementSibling, ArrowDown: patches[0],
    } : {
      ArrowLeft: column ? patches[at - 1] : null, ArrowRight: column < columns - 1 ? patches[at + 1] : null,
      ArrowUp: patches[at - columns] || special[special.length - 1], ArrowDown: patches[at + columns],
      Home: patches[at - column], End: patches[at - column + columns - 1],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    if (moves[event.key]) moves[event.key].focus();
  }

  for (const asker of askers) {
    asker.addEventListener("mouseenter", () => show(asker));
    for (const event of ["focus", "click"]) asker.addEventListener(event, () => choose(asker));
  }
  find("askers").addEventListener("mouseleave", () => show(chosen));
  find("askers").addEventListener("keydown", onKey);
  for (const menu of document.querySelectorAll("select")) menu.addEventListener("change", select);
  select();
  choose(chosen);
})();
"""


def patches_html(
    image: "Image",
    attentions: torch.Tensor | Sequence[torch.Tensor],
    grid: tuple[int, int],
    *,
    probabilities: Mapping[str, float] | None = None,
) -> HtmlPage:
    """Make an interactive page of which patches an encoder of pictures attends to.

    The class token asks at first, or, in a model without one, the mean of the patches, in the last layer, with the mean
    of its heads; menus choose another layer or head, and attention rollout (`attention_rollout`).

    Args:
        image: the picture.
        attentions: (layers, heads, length, length), or a model's `attentions` for one picture: for each layer
            (1, heads, length, length). The patches are the last of the length, row by row.
        grid: rows and columns of patches.
        probabilities: of each class, if the model tells classes; they stand beside the picture.

    Returns:
        The page, to be shown by a notebook or saved to a file. It holds the weights of all layers and heads in whole
        ten-thousandths.

    Raises:
        ValueError: if there is more than one picture, or the weights are not of so many patches.
    """
    weights = picture_weights(attentions, grid)
    layers, heads, length = weights.shape[:3]
    rows, columns = grid
    special = length - rows * columns
    titles = ["the class token", *[f"special position {number}" for number in range(2, special + 1)]][:special]
    named = [f"row {row + 1}, column {column + 1}" for row in range(rows) for column in range(columns)]
    outside = [_asker(title, title) for title in titles] or [_asker(MEAN, MEAN, ' id="mean"')]
    options = {
        "method": ("Method", ["weights", "rollout"], 0),
        "layer": ("Layer", [f"{number + 1} of {layers}" for number in range(layers)], layers - 1),
        "heads": ("Heads", [f"mean of {heads}", *[f"{number + 1} of {heads}" for number in range(heads)]], 0),
    }
    counts = {"layer": layers, "heads": heads}
    body = BODY.format(
        classes=_classes(probabilities) if probabilities else "",
        menus="".join(menu(name, *parts) for name, parts in options.items() if counts.get(name) != 1),
        special="".join(outside),
        image=image_address(image),
        columns=columns,
        patches="".join(_asker(name) for name in named),
        table=_table(titles, rows, columns),
        data=embed({"weights": _whole(weights), "rollout": _whole(attention_rollout(weights))}),
    )
    narrow = f"@container (max-width: {NARROWEST * columns}px) {{ #veil .number {{ display: none; }} }}\n"
    style = SHARED_STYLE + PICTURE_STYLE + STYLE + narrow
    return make_page("Attention over patches", body, style=style, script=SCRIPT, height=620)


def _asker(name: str, text: str = "", attribute: str = "") -> str:
    """Write a button of what can ask and be looked at."""
    return (
        f'<button type="button" class="asker"{attribute} data-name="{name}" tabindex="-1">{text} '
        '<span class="number"></span></button>'
    )


def _table(titles: list[str], rows: int, columns: int) -> str:
    """Write an empty table of the weights: what is beside the picture, then the patches as they lie."""
    beside = [f'<tr><th scope="row">{title}</th><td></td></tr>' for title in titles]
    head = "".join(f'<th scope="col">column {number + 1}</th>' for number in range(columns))
    cells = "<td></td>" * columns
    lines = [f'<tr><th scope="row">row {number + 1}</th>{cells}</tr>' for number in range(rows)]
    return "\n".join([*beside, f'<tr><th scope="col">patches</th>{head}</tr>', *lines])


def _classes(probabilities: Mapping[str, float]) -> str:
    """Write the probability of each class as a bar and a number."""
    best, entries = max(probabilities.values()), []
    for name, value in probabilities.items():
        entries.append(
            f'<li class="{"best" if value == best else "other"}">'
            f'<span class="name" dir="auto" lang="">{escape(name)}</span>'
            f'<span class="bar"><span style="width: {100 * value:.1f}%"></span></span>'
            f'<span class="value">{value:.2f}</span></li>'
        )
    return CLASSES.format(entries="".join(entries))


def _whole(weights: torch.Tensor) -> list:
    """Give weights in whole ten-thousandths."""
    return weights.double().mul(10_000).round().long().tolist()
