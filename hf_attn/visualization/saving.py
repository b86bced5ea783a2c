# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The scripts by which a page saves itself: SCRIPT, in every page, as HTML and its numbers as JSON; DRAW as a picture.

A page whose own script draws a picture gives it to `savePicture`. DRAW is for pages of boxes and words: it draws them
as SVG where they stand.
"""

KINDS = ("png", "svg", "html", "json")
STYLE = """
.saves { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin: 12px 0 0; font-size: 14px;
  color: var(--faint); }
.saves button { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--edge);
  border-radius: 6px; padding: 3px 8px; cursor: pointer; }
"""

SCRIPT = """
const untouched = "<!DOCTYPE html>\\n" + document.documentElement.outerHTML;  // the page as it was written

function saveFile(content, type, extension) {
  const link = document.createElement("a"), words = document.title.toLowerCase().match(/[\\p{L}\\p{N}]+/gu) || ["page"];
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], {type}));
  link.download = [...words.join("-")].slice(0, 60).join("") + "." + extension;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePicture({text, wide, high}, extension) {  // of an SVG, as SVG or twice as large as PNG
  if (extension === "svg") return saveFile(text, "image/svg+xml", "svg");
  const image = new Image(), canvas = document.createElement("canvas");
  image.onload = () => {
    [canvas.width, canvas.height] = [2 * wide, 2 * high];
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * wide, 2 * high);
    canvas.toBlob((blob) => saveFile(blob, "image/png", "png"));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}

document.getElementById("save-html")?.addEventListener("click", () => saveFile(untouched, "text/html", "html"));
if (document.getElementById("numbers")) document.getElementById("save-json").addEventListener("click",
  () => saveFile(document.getElementById("numbers").textContent, "application/json", "json"));
"""

DRAW = """
function drawPage() {  // its boxes and words, in light colours
  const root = document.querySelector("main"), apart = ".saves, .unseen, details, script";
  const scheme = document.documentElement.style.colorScheme;
  document.documentElement.style.colorScheme = "light";
  for (const scrolled of root.querySelectorAll(".scroll")) scrolled.scrollLeft = 0;
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const origin = root.getBoundingClientRect(), margin = 12, shapes = [], edges = {left: 0, right: 0, bottom: 0};

  function add(name, box, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    shapes.push(element);
    edges.left = Math.min(edges.left, box.left - origin.left);
    edges.right = Math.max(edges.right, box.right - origin.left);
    edges.bottom = Math.max(edges.bottom, box.bottom - origin.top);
  }

  function plain(color) {  // what a drawing program understands; "" for a colour that is not seen
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    return alpha ? `rgb(${red}, ${green}, ${blue})` : "";
  }

  function drawBoxes(element) {  // one, or one for each line that it runs over
    const style = getComputedStyle(element), fill = plain(style.backgroundColor);
    const edge = style.borderTopStyle === "solid" ? parseFloat(style.borderTopWidth) : 0;
    if (!fill && !edge) return;
    for (const box of element.getClientRects()) {
      add("rect", box, {x: box.left - origin.left + edge / 2, y: box.top - origin.top + edge / 2,
        width: Math.max(0, box.width - edge), height: Math.max(0, box.height - edge), fill: fill || "none",
        rx: parseFloat(style.borderTopLeftRadius) || 0, stroke: edge ? plain(style.borderTopColor) : "none",
        "stroke-width": edge});
    }
  }

  function drawWords(node) {  // line by line
    const style = getComputedStyle(node.parentElement), range = document.createRange(), lines = [];
    for (let start = 0, end; start < node.length; start = end) {
      end = start + (node.data.codePointAt(start) > 0xffff ? 2 : 1);
      range.setStart(node, start);
      range.setEnd(node, end);
      const box = range.getBoundingClientRect(), line = lines.at(-1);
      if (!box.width) continue;
      if (line && Math.abs(line.top - box.top) < 3) line.end = end;
      else lines.push({start, end, top: box.top});
    }
    pen.font = style.font;
    for (const {start, end} of lines) {
      range.setStart(node, start);
      range.setEnd(node, end);
      const box = range.getBoundingClientRect(), text = node.data.slice(start, end);
      const {fontBoundingBoxAscent: above, fontBoundingBoxDescent: below} = pen.measureText(text);
      const x = (style.direction === "rtl" ? box.right : box.left) - origin.left;
      add("text", box, {x, direction: style.direction, y: (box.top + box.bottom + above - below) / 2 - origin.top,
        fill: plain(style.color), "font-family": style.fontFamily, "font-size": style.fontSize,
        "font-weight": style.fontWeight, "text-decoration": style.textDecorationLine, "xml:space": "preserve"}, text);
    }
  }

  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
    (node) => node.nodeType === 1 && node.matches(apart) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  while (walker.nextNode()) (walker.currentNode.nodeType === 1 ? drawBoxes : drawWords)(walker.currentNode);
  document.documentElement.style.colorScheme = scheme;
  const wide = Math.ceil(edges.right - edges.left) + 2 * margin, high = Math.ceil(edges.bottom) + 2 * margin;
  const corner = {x: edges.left - margin, y: -margin}, sizes = {width: wide, height: high};
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({...sizes, viewBox: `${corner.x} ${corner.y} ${wide} ${high}`})) {
    picture.setAttribute(key, value);
  }
  add("rect", origin, {...corner, ...sizes, fill: "#ffffff"});
  picture.append(shapes.pop(), ...shapes);
  return {text: new XMLSerializer().serializeToString(picture), wide, high};
}

for (const kind of ["png", "svg"]) document.getElementById("save-" + kind).addEventListener("click",
  () => savePicture(drawPage(), kind));
"""
