# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The script by which a page saves itself: as HTML, its numbers as JSON, and what it shows as a picture.

It is part of every page of `page.py`, and offers three functions to the scripts of pages: `saveFile`, `savePicture` and
`drawElement`, which draws boxes and texts as SVG where they stand.
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
