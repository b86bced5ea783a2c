"""The style sheet and the script of the interactive alignment page; `alignment_html.py` writes the page around them.

The script reads the weights from the element `data` and the words from the page itself, so no user text is ever part of
a script. The heatmap is drawn as SVG in colours of its own, so that it can be saved as it is; the style sheet recolours
it on the page.
"""

STYLE = """
.controls { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 20px; margin: 0 0 10px; }
.controls label { display: flex; flex-wrap: wrap; align-items: center; gap: 0 6px; min-width: 0; }
select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge);
  border-radius: 6px; padding: 3px 8px; max-width: 100%; }
.views { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 12px 28px; }
.side { margin: 0 0 2px; font-size: 13px; color: var(--faint); }
.stage { position: relative; }
.links { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; pointer-events: none; }
.links path { fill: none; stroke: var(--line); stroke-width: 2; }
.words { position: relative; display: flex; flex-wrap: wrap; gap: 8px 6px; }
#source { margin-bottom: 88px; }
.word {
  font: inherit; color: inherit; text-align: center; padding: 3px 7px 1px; min-width: 44px; max-width: 100%;
  background: color-mix(in srgb, var(--glow) calc(100% * var(--weight, 0)), var(--paper));
  border: 1px solid var(--edge); border-radius: 7px; cursor: pointer;
}
.word .text { display: block; white-space: pre-wrap; overflow-wrap: anywhere; }
.word .number { display: block; min-height: 17px; font-size: 12px; font-variant-numeric: tabular-nums; }
.word.active { border-color: var(--focus); box-shadow: 0 0 0 1px var(--focus); }
.heat svg { display: block; max-width: 100%; height: auto; }
.heat text { fill: var(--ink); }
.heat .cell { fill: var(--line); stroke: var(--edge); }
.heat .paper { fill: none; }
.heat .blocked { fill: var(--edge); }
.heat .marker { fill: none; stroke: var(--focus); stroke-width: 2; }
.status { min-height: 2.8em; margin: 12px 0 4px; overflow-wrap: anywhere; }
.caption { margin: 0 0 8px; font-size: 13px; color: var(--faint); }
details .scroll { margin-top: 8px; }
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
  let weights, caption, active = null;

  function svg(name, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  }

  const weight = (side, index, partner) => side === "target" ? weights[index][partner] : weights[partner][index];
  const partners = (side, index) => texts[other[side]]
    .map((text, partner) => ({text, partner, weight: weight(side, index, partner)}))
    .sort((a, b) => b.weight - a.weight);
  const strongest = (side, index) => partners(side, index).slice(0, 5).filter((entry) => entry.weight >= 0.005)
    .map((entry) => "\\u2068" + entry.text + "\\u2069 " + entry.weight.toFixed(2)).join(", ") || "nothing above 0.00";

  // which columns a row cannot see: those after it, and those before its window
  const blocked = (row) => data.causal
    ? [[0, data.window ? row - data.window + 1 : 0], [row + 1, texts.source.length]] : [];

  function drawLinks() {
    const frame = stage.getBoundingClientRect();
    const boxes = {};
    for (const side of ["source", "target"]) boxes[side] = words[side].map((word) => word.getBoundingClientRect());
    // Words on several lines lie between each other's links: then only those of the word that is pointed at are drawn.
    const wrapped = ["source", "target"].some((side) => boxes[side].some((box) => box.top - boxes[side][0].top > 4));
    const curves = [];
    boxes.target.forEach((to, target) => boxes.source.forEach((from, source) => {
      const chosen = active && (active.side === "target" ? target : source) === active.index;
      const value = weights[target][source];
      if (active ? !chosen || value < 0.005 : wrapped || value < 0.2) return;
      const x1 = from.left + from.width / 2 - frame.left, y1 = from.bottom - frame.top;
      const x2 = to.left + to.width / 2 - frame.left, y2 = to.top - frame.top, middle = (y1 + y2) / 2;
      const d = `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
      curves.push(svg("path", {d, opacity: (0.15 + 0.85 * value).toFixed(3)}));
    }));
    links.replaceChildren(...curves);
  }

  // The heatmap: rows are target words, columns source words, leaning so that they stand close.
  const dense = Math.max(words.source.length, words.target.length) > 24, lean = Math.sin(Math.PI / 4);
  const size = dense ? 17 : 26, font = {"font-family": "system-ui, sans-serif", "font-size": dense ? 11 : 13};
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font["font-size"] + "px system-ui, sans-serif";
  const measure = (text) => pen.measureText(text).width;
  const heat = find("heatmap"), cells = [], marker = svg("rect", {class: "marker", fill: "none"});

  function drawHeatmap() {
    const labels = {};
    for (const side of ["source", "target"]) labels[side] = texts[side].map((text) =>
      [...text].length > 16 ? [...text].slice(0, 15).join("") + "…" : text);
    const rows = labels.target.length, columns = labels.source.length;
    const left = Math.max(...labels.target.map(measure)) + 8;
    const rise = Math.max(...labels.source.map(measure)) * lean;
    const top = rise + 14, width = left + columns * size + Math.max(2, rise - size / 2 + 8);
    heat.layout = {left, top, width, height: top + rows * size + 2};
    heat.setAttribute("viewBox", `0 0 ${width} ${heat.layout.height}`);
    heat.setAttribute("width", width);
    heat.style.minWidth = Math.min(width, Math.max(240, (dense ? 0.9 : 0.7) * width)) + "px";
    for (const [key, value] of Object.entries(font)) heat.setAttribute(key, value);
    heat.append(svg("rect", {class: "paper", width, height: heat.layout.height, fill: "#ffffff"}));
    labels.source.forEach((text, source) => heat.append(svg("text",
      {lang: "", fill: "#1c1c1e", transform: `translate(${left + (source + 0.6) * size} ${top - 6}) rotate(-45)`},
      text)));
    labels.target.forEach((text, target) => {
      heat.append(svg("text", {lang: "", fill: "#1c1c1e", x: left - 6,
        y: top + (target + 0.5) * size + font["font-size"] / 3, "text-anchor": "end"}, text));
      for (const [start, end] of blocked(target)) if (start < end) heat.append(svg("rect", {class: "blocked",
        fill: "#c9ccd1", x: left + start * size, y: top + target * size, width: (end - start) * size, height: size}));
      cells.push(labels.source.map((_, source) => svg("rect", {class: "cell", fill: "#b45309", stroke: "#c9ccd1",
        x: left + source * size, y: top + target * size, width: size, height: size})));
      heat.append(...cells[target]);
    });
    heat.append(marker);
  }

  function mark() {
    const {left, top} = heat.layout, across = texts.source.length * size, down = texts.target.length * size;
    marker.style.display = active ? "" : "none";
    if (!active) return;
    const target = active.side === "target", offset = active.index * size;
    const box = target ? {x: left, y: top + offset, width: across, height: size}
      : {x: left + offset, y: top, width: size, height: down};
    for (const [key, value] of Object.entries(box)) marker.setAttribute(key, value);
  }

  function light(word) {
    active = word ? {side: word.parentNode.id, index: words[word.parentNode.id].indexOf(word)} : null;
    for (const side of ["source", "target"]) words[side].forEach((each, index) => {
      const value = active && side !== active.side ? weight(active.side, active.index, index) : 0;
      each.classList.toggle("active", each === word);
      each.style.setProperty("--weight", value);
      each.querySelector(".number").textContent = value >= 0.005 ? value.toFixed(2) : "";
    });
    find("status").lang = active ? "" : "en";
    find("status").textContent = active
      ? "\\u2068" + texts[active.side][active.index] + "\\u2069 " + (active.side === "target" ? "←" : "→") + " " +
        strongest(active.side, active.index)
      : hint;
    for (const each of document.querySelectorAll("[data-piece]")) {
      const here = Boolean(active) && active.side === "target" && Number(each.dataset.piece) === active.index;
      each.classList.toggle("active", here);
      if (!here) continue;
      const box = each.closest(".scroll"), edge = box.getBoundingClientRect().left + box.clientWidth / 2;
      box.scrollBy(each.getBoundingClientRect().left - edge, 0);
      find("status").append(` · ${each.dataset.says} ` + [...each.querySelectorAll("li")].slice(0, 3).map((item) =>
        "\\u2068" + item.firstChild.textContent + "\\u2069 " + item.lastChild.textContent).join(", "));
    }
    drawLinks();
    mark();
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
    const chosen = (id) => find(id) ? find(id).value : 0;
    const view = [chosen("method"), chosen("layer"), chosen("heads")];
    weights = view.reduce((part, index) => part[index], data.weights).map((row) => row.map((value) => value / 1e4));
    caption = view.reduce((part, index) => part[index], data.captions);
    for (const each of document.querySelectorAll(".describes")) each.textContent = caption;
    document.querySelectorAll("#table tbody tr").forEach((row, target) => {
      const best = Math.max(...weights[target]);
      row.querySelectorAll("td").forEach((cell, source) => {
        const value = weights[target][source];
        cell.textContent = value.toFixed(2);
        cell.classList.toggle("strongest", value === best);
        cells[target][source].setAttribute("fill-opacity", value);
      });
    });
    for (const side of ["source", "target"]) words[side].forEach((word, index) =>
      word.setAttribute("aria-label", texts[side][index] + ": " + strongest(side, index)));
    light(focused());
  }

  function picture() {  // the heatmap with its caption below
    const {width, height} = heat.layout, wide = Math.max(width, measure(caption) + 16), copy = heat.cloneNode(true);
    copy.querySelector(".marker").remove();
    copy.removeAttribute("style");
    copy.setAttribute("viewBox", `0 0 ${wide} ${height + 28}`);
    copy.setAttribute("width", wide);
    copy.setAttribute("height", height + 28);
    copy.querySelector(".paper").setAttribute("width", wide);
    copy.querySelector(".paper").setAttribute("height", height + 28);
    copy.append(svg("text", {fill: "#5f6368", x: 8, y: height + 19}, caption));
    return {text: new XMLSerializer().serializeToString(copy), wide, high: height + 28};
  }

  const saves = {
    png: () => savePicture(picture(), "png"),
    svg: () => savePicture(picture(), "svg"),
    json: () => {
      const content = {description: caption, source_words: texts.source, target_words: texts.target, weights};
      saveFile(JSON.stringify(content), "application/json", "json");
    },
  };

  drawHeatmap();
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
  heat.addEventListener("mousemove", (event) => {  // a cell is in the row of its target word
    const target = cells.findIndex((row) => row.includes(event.target));
    if (target >= 0 && !(active && active.side === "target" && active.index === target)) light(words.target[target]);
  });
  heat.addEventListener("mouseleave", () => light(focused()));
  for (const choice of document.querySelectorAll("select")) choice.addEventListener("change", select);
  for (const [kind, run] of Object.entries(saves)) find("save-" + kind).addEventListener("click", run);
  new ResizeObserver(drawLinks).observe(stage);
  select();
})();
"""
