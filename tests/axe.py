# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""axe-core in a page and in each of its frames."""

import functools
from importlib.resources import files

# A frame may be transparent: contrast in it is that against what is behind it, which axe cannot see from inside.
PAINT = """() => {
  for (let each = frameElement; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (colour === "rgba(0, 0, 0, 0)") continue;
    document.documentElement.style.background = colour;
    return;
  }
}"""
AXE = """async ([contrasts, worst]) => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const luminance = () => [0.2126, 0.7152, 0.0722].reduce((sum, share, index) => {
    const value = pen.getImageData(0, 0, 1, 1).data[index] / 255;
    return sum + share * (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  }, 0);
  const paint = (colour, opacity = 1) => {
    [pen.fillStyle, pen.globalAlpha] = [colour, opacity];
    pen.fillRect(0, 0, 1, 1);
  };
  function contrast(element) {  // of text over the backgrounds of what it stands in
    const ancestors = [];
    for (let each = element; each; each = each.parentElement) ancestors.unshift(getComputedStyle(each));
    paint("white");
    for (const style of ancestors) paint(style.backgroundColor);
    const behind = luminance(), own = ancestors.at(-1);
    const opacity = ancestors.reduce((product, style) => product * style.opacity, 1);
    paint(element instanceof SVGElement ? own.fill : own.color, opacity);
    const text = luminance();
    return (Math.max(behind, text) + 0.05) / (Math.min(behind, text) + 0.05);
  }
  const options = {resultTypes: ["violations", "incomplete"], iframes: false, elementRef: true};
  if (contrasts) options.runOnly = {type: "rule", values: ["color-contrast"]};
  if (contrasts === false) options.rules = {"color-contrast": {enabled: false}};
  const {violations, incomplete} = await axe.run(document, options);
  const found = [];
  const note = (id, element, what) => found.push(`${id}: ${element.outerHTML.slice(0, 160)}: ${what}`);
  for (const {id, impact, nodes} of violations) {
    if (worst && !["serious", "critical"].includes(impact)) continue;
    for (const node of nodes) note(id, node.element, node.failureSummary);
  }
  for (const {id, nodes} of incomplete) {  // what axe leaves open, as the labels of a drawing
    if (id !== "color-contrast") continue;
    for (const {element} of nodes) if (contrast(element) < 4.5) note(id, element, contrast(element).toFixed(2));
  }
  return found;
}"""


@functools.cache
def source():
    """The script of axe-core."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def violations(page, *, contrasts=None, worst=True, frames=True):
    """What is wrong with a page and the frames that are shown in it, as sentences.

    Args:
        page: a page of Playwright.
        contrasts: True for the contrast of texts alone, False for all but that, which takes most of the time.
        worst: only what is serious or critical.
        frames: look into the frames.
    """
    found = []
    for frame in page.frames if frames else page.frames[:1]:
        name = "page"
        if frame.parent_frame:
            element = frame.frame_element()
            if not element.is_visible():
                continue
            name = element.get_attribute("title")
            frame.evaluate(PAINT)
        if not frame.evaluate("!!window.axe"):
            frame.evaluate(source())
        found += [f"{name}: {each}" for each in frame.evaluate(AXE, [contrasts, worst])]
    return found
