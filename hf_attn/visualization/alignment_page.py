"""The style sheet and the script of the interactive alignment page; `alignment_html.py` writes the page around them.

The script reads the weights from the element `data` and the words from the page itself, so no user text is ever part of
a script.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c1c1e; --faint: #5f6368; --edge: #c9ccd1; --line: #b45309; --focus: #1a56db;
  --glow: 255 179 0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --ink: #f1f1f3; --faint: #a9adb5; --edge: #4a4e57; --line: #fbbf24; --focus: #8ab4f8;
    --glow: 158 90 0;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 12px; background: var(--paper); color: var(--ink);
  font: 16px/1.4 system-ui, "Noto Sans", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic",
    sans-serif;
}
.controls { display: flex; flex-wrap: wrap; gap: 8px 20px; margin: 0 0 10px; }
select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge); border-radius: 6px;
  padding: 3px 6px; max-width: 100%; }
.side { margin: 0 0 2px; font-size: 13px; color: var(--faint); }
.stage { position: relative; }
.links { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; pointer-events: none; }
.links path { fill: none; stroke: var(--line); stroke-width: 2; }
.words { position: relative; display: flex; flex-wrap: wrap; gap: 8px 6px; }
#source { margin-bottom: 88px; }
.word {
  font: inherit; color: inherit; text-align: center; padding: 3px 7px 1px; min-width: 44px; max-width: 100%;
  background: linear-gradient(rgb(var(--glow) / var(--weight, 0)) 0 0), var(--paper);
  border: 1px solid var(--edge); border-radius: 7px; cursor: pointer;
}
.word .text { display: block; white-space: pre-wrap; overflow-wrap: anywhere; }
.word .number { display: block; min-height: 17px; font-size: 12px; font-variant-numeric: tabular-nums; }
.word.active { border-color: var(--focus); box-shadow: 0 0 0 1px var(--focus); }
.word:focus-visible, select:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 3px solid var(--focus); outline-offset: 1px; }
.status { min-height: 2.8em; margin: 12px 0 4px; overflow-wrap: anywhere; }
.caption { margin: 0 0 8px; font-size: 13px; color: var(--faint); }
summary { cursor: pointer; }
.scroll { overflow-x: auto; margin-top: 8px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: start; color: var(--faint); padding-bottom: 4px; }
th, td { border: 1px solid var(--edge); padding: 2px 6px; text-align: end; white-space: pre; }
td.strongest { font-weight: 700; }
"""

SCRIPT = """
(() => {
  "use strict";
  const find = (id) => document.getElementById(id);
  const data = JSON.parse(find("data").textContent);
  const other = {source: "target", target: "source"};
  const words = {}, texts = {};
  for (const side of ["source", "target"]) {
    words[side] = [...find(side).querySelectorAll(".word")];
    texts[side] = words[side].map((word) => word.querySelector(".text").textContent);
  }
  const stage = find("stage"), links = find("links"), hint = find("status").textContent;
  const path = document.createElementNS(links.namespaceURI, "path");
  let weights, active = null;

  const weight = (side, index, partner) => side === "target" ? weights[index][partner] : weights[partner][index];
  const partners = (side, index) => texts[other[side]]
    .map((text, partner) => ({text, partner, weight: weight(side, index, partner)}))
    .sort((a, b) => b.weight - a.weight);
  const strongest = (side, index) => partners(side, index).slice(0, 5).filter((entry) => entry.weight >= 0.005)
    .map((entry) => "\\u2068" + entry.text + "\\u2069 " + entry.weight.toFixed(2)).join(", ") || "nothing above 0.00";

  function drawLinks() {
    const frame = stage.getBoundingClientRect();
    const boxes = {};
    for (const side of ["source", "target"]) boxes[side] = words[side].map((word) => word.getBoundingClientRect());
    const curves = [];
    boxes.target.forEach((to, target) => boxes.source.forEach((from, source) => {
      const chosen = active && (active.side === "target" ? target : source) === active.index;
      const value = weights[target][source];
      if (active ? !chosen || value < 0.005 : value < 0.2) return;
      const x1 = from.left + from.width / 2 - frame.left, y1 = from.bottom - frame.top;
      const x2 = to.left + to.width / 2 - frame.left, y2 = to.top - frame.top, middle = (y1 + y2) / 2;
      const curve = path.cloneNode();
      curve.setAttribute("d", `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`);
      curve.setAttribute("opacity", (0.15 + 0.85 * value).toFixed(3));
      curves.push(curve);
    }));
    links.replaceChildren(...curves);
  }

  function light(word) {
    active = word ? {side: word.parentNode.id, index: words[word.parentNode.id].indexOf(word)} : null;
    for (const side of ["source", "target"]) words[side].forEach((each, index) => {
      const value = active && side !== active.side ? weight(active.side, active.index, index) : 0;
      each.classList.toggle("active", each === word);
      each.style.setProperty("--weight", value);
      each.querySelector(".number").textContent = value >= 0.005 ? value.toFixed(2) : "";
    });
    find("status").textContent = active
      ? "\\u2068" + texts[active.side][active.index] + "\\u2069 " + (active.side === "target" ? "←" : "→") + " " +
        strongest(active.side, active.index)
      : hint;
    drawLinks();
  }

  const focused = () => document.activeElement.closest(".word");

  function moveTo(word) {
    for (const each of words[word.parentNode.id]) each.tabIndex = each === word ? 0 : -1;
    word.focus();
  }

  function onKey(event) {
    const side = this.id, word = focused(), index = words[side].indexOf(word), last = words[side].length - 1;
    const forward = this.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    let next;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      next = words[side][Math.min(last, Math.max(0, index + (event.key === forward ? 1 : -1)))];
    } else if (event.key === "Home") next = words[side][0];
    else if (event.key === "End") next = words[side][last];
    else if (event.key === (side === "source" ? "ArrowDown" : "ArrowUp")) {
      next = words[other[side]][partners(side, index)[0].partner];
    }
    if (!next) return;
    event.preventDefault();
    moveTo(next);
  }

  function select() {
    const layer = find("layer") ? find("layer").value : 0, heads = find("heads") ? find("heads").value : 0;
    weights = data.weights[layer][heads];
    for (const each of document.querySelectorAll(".describes")) each.textContent = data.captions[layer][heads];
    document.querySelectorAll("#table tbody tr").forEach((row, target) => {
      const best = Math.max(...weights[target]);
      row.querySelectorAll("td").forEach((cell, source) => {
        cell.textContent = weights[target][source].toFixed(2);
        cell.classList.toggle("strongest", weights[target][source] === best);
      });
    });
    for (const side of ["source", "target"]) words[side].forEach((word, index) =>
      word.setAttribute("aria-label", texts[side][index] + ": " + strongest(side, index)));
    light(focused());
  }

  for (const side of ["source", "target"]) {
    const row = find(side);
    row.addEventListener("mouseover", (event) => {
      const word = event.target.closest(".word");
      if (word) light(word);
    });
    row.addEventListener("mouseleave", () => light(focused()));
    row.addEventListener("focusin", (event) => light(event.target.closest(".word")));
    row.addEventListener("focusout", () => light(null));
    row.addEventListener("click", (event) => {
      const word = event.target.closest(".word");
      if (word) moveTo(word);
    });
    row.addEventListener("keydown", onKey);
  }
  for (const choice of document.querySelectorAll("select")) choice.addEventListener("change", select);
  new ResizeObserver(drawLinks).observe(stage);
  new ResizeObserver(() => {
    // In a notebook the page is in a frame of its own: as high as the page, so that it needs no second scroll bar.
    if (window.frameElement) window.frameElement.style.height = document.body.offsetHeight + "px";
  }).observe(document.body);
  select();
})();
"""
