"""A self-contained HTML page: shown by a notebook or the Space in a frame of its own, or saved to a file.

Text that comes from a sentence is escaped wherever it is written. Were any ever missed, the page's own
Content-Security-Policy lets no script run but the page's, and lets nothing be fetched.
"""

import base64
import hashlib
import html
import json
import math
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import saving

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: light-dark(#ffffff, #16181c); --ink: light-dark(#1c1c1e, #f1f1f3); --faint: light-dark(#5f6368, #a9adb5);
  --edge: light-dark(#c9ccd1, #4a4e57); --line: light-dark(#b45309, #fbbf24); --focus: light-dark(#1a56db, #8ab4f8);
  --glow: light-dark(#ffb300, #9e5a00);
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 12px; background: var(--paper); color: var(--ink);
  font: 16px/1.4 system-ui, "Noto Sans", "Noto Sans CJK KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic",
    sans-serif;
}
summary { cursor: pointer; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 1px; }
.scroll { overflow-x: auto; }
.unseen { position: absolute; width: 1px; height: 1px; margin: 0; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
"""

FRAME_SCRIPT = """
// In a notebook or the Space the page is in a frame of its own: as high as the page, so that it needs no second scroll
// bar, and light or dark as what surrounds it.
if (window.frameElement) {
  const frame = window.frameElement;
  function follow() {
    const scheme = getComputedStyle(frame).colorScheme;
    if (scheme === "normal") return;
    document.documentElement.style.colorScheme = scheme;
    document.body.style.background = "transparent";
  }
  follow();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(follow));
  function fit() {
    const height = document.body.offsetHeight + "px";
    if (frame.style.height !== height) frame.style.height = height;
  }
  new ResizeObserver(fit).observe(document.body);
  new MutationObserver(fit).observe(frame, {attributeFilter: ["style"]});  // what surrounds it may write it once more
}
"""


@dataclass(frozen=True)
class HtmlPage:
    """A page: shown by a notebook as the last value of a cell, or saved to a file.

    Attributes:
        document: the whole page.
        title: what it shows.
        height: height in pixels of its frame until the page has measured itself.
    """

    document: str = field(repr=False)
    title: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.document)}" title="{html.escape(self.title)}" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the page to a file, encoded as UTF-8.

        Args:
            path: where to write; an existing file is replaced.
        """
        Path(path).write_text(self.document, encoding="utf-8", newline="\n")


def make_page(
    title: str,
    body: str,
    *,
    style: str,
    script: str = "",
    height: int,
    numbers: Any = None,
    saves: Sequence[str] = (),
) -> HtmlPage:
    """Put a page together, with buttons at its end that save it.

    Args:
        title: what it shows.
        body: HTML in which every text is escaped; without a heading of the first rank it gets the title as one, which
            is read out but not seen.
        style: style sheet, added to the one that all pages share.
        script: script of the page; it holds no text of a sentence.
        height: height in pixels of its frame until the page has measured itself.
        numbers: what is saved as JSON, null for numbers that are not finite; None where the script of the page does
            that, or nothing.
        saves: what the script of the page saves by itself, of "png", "svg" and "json": by the button "save-png".

    Returns:
        The page.
    """
    script = saving.SCRIPT + FRAME_SCRIPT + script
    heading = "" if "<h1" in body else f'<h1 class="unseen">{escape(title)}</h1>\n'
    own = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{own}'"
    parts = heading + body + _buttons(numbers, saves)
    style = STYLE + saving.STYLE + style
    document = PAGE.format(policy=policy, title=escape(title), style=style, body=parts, script=script)
    return HtmlPage(document, title, height)


def _buttons(numbers: Any, saves: Sequence[str]) -> str:
    """Write the row of buttons that save the page, with the numbers that one of them saves."""
    kinds = {"html", *saves} | (set() if numbers is None else {"json"})
    buttons = "".join(
        f'<button type="button" id="save-{kind}">{kind.upper()}</button>' for kind in saving.KINDS if kind in kinds
    )
    row = f'\n<div class="saves" role="group" aria-label="Save as">Save as {buttons}</div>'
    if numbers is None:
        return row
    return f'{row}\n<script type="application/json" id="numbers">{embed(_finite(numbers))}</script>'


def menu(name: str, label: str, options: list[str], selected: int) -> str:
    """Write a labelled menu, whose values are the numbers of its options.

    Args:
        name: its id.
        label: what stands before it.
        options: what can be chosen; is escaped here.
        selected: which of them is chosen at first.
    """
    entries = "".join(
        f'<option value="{value}"{" selected" if value == selected else ""}>{escape(option)}</option>'
        for value, option in enumerate(options)
    )
    # autocomplete="off": a reloaded page shows what its caption says, not the last choice
    return f'<label>{label}<select id="{name}" autocomplete="off">{entries}</select></label>'


def embed(content: Any) -> str:
    """Write content as JSON for a script element, in ASCII and without the characters of markup.

    Raises:
        ValueError: if a number in it is not finite; JSON has no such numbers.
    """
    try:
        text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028
    except ValueError as error:
        raise ValueError("the weights are not all finite numbers, so they cannot be drawn") from error
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(content: Any) -> Any:
    """Put None in the place of numbers that JSON does not have: the logarithm of 0 is one."""
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def escape(text: str) -> str:
    """Escape text for HTML; what no HTML or UTF-8 file can hold (controls, lone surrogates) becomes U+FFFD."""
    return html.escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text))


def direction(words: list[str]) -> str:
    """Find the direction in which words follow one another: that of the first letter that has one."""
    for character in "".join(words):
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return "ltr"
