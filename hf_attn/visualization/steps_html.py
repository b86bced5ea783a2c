"""Draw the steps behind one piece as a page without outside links: formula, numbers, shapes, lines of code.

One number a row is drawn as a bar, a long vector by its first numbers, coloured by sign and size. Read `steps.py` and
`steps_text.py` for where the numbers come from.
"""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_attn.data.tokenizer import readable_tokens

from .page import HtmlPage, direction, escape, make_page
from .steps import attention_steps
from .steps_common import Code, Quantity, Step
from .steps_text import hide, text_direction, text_ids, text_steps

if TYPE_CHECKING:
    from hf_attn.inference.translation import Translation
    from hf_attn.inference.translator import Translator

FIRST_NUMBERS = 6
MOST_COLUMNS = 8  # of a drawing that stands beside another
PREFACES = ("Query, keys and values", "All heads")  # the lecture counts from what comes after them
STYLE = """
:root { --plus: light-dark(#f59e0b, #b45309); --minus: light-dark(#60a5fa, #1d4ed8); }
h1 { font-size: 17px; font-weight: 600; margin: 0 0 4px; overflow-wrap: anywhere; }
.sentence { margin: 0 0 14px; color: var(--faint); overflow-wrap: anywhere; }
.sentence b { color: var(--ink); background: color-mix(in srgb, var(--glow) 45%, var(--paper)); border-radius: 4px;
  padding: 0 3px; }
ol { list-style: none; margin: 0; padding: 0; display: grid; gap: 14px; }
li { background: var(--paper); border: 1px solid var(--edge); border-radius: 10px; padding: 12px 14px; min-width: 0; }
h2 { font-size: 16px; margin: 0 0 4px; }
h2 .number { display: inline-block; min-width: 1.6em; margin-inline-end: 8px; padding: 0 4px; border-radius: 1em;
  text-align: center; background: var(--line); color: var(--paper); }
p { margin: 0 0 8px; }
.formula { font-family: "Cambria Math", "STIX Two Math", Georgia, serif; font-size: 17px; overflow-wrap: anywhere; }
.quantities { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 410px), 1fr)); gap: 12px 24px; }
figure { margin: 0; min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption { font-size: 14px; margin-bottom: 3px; }
.shape { color: var(--faint); font-size: 13px; }
.scroll { max-height: 640px; overflow: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th { font-weight: 400; text-align: start; padding: 1px 8px 1px 0; white-space: pre; max-width: 200px; overflow: hidden;
  text-overflow: ellipsis; position: sticky; left: 0; background: var(--paper); }
thead th { writing-mode: vertical-rl; transform: rotate(180deg); text-orientation: sideways; padding: 0 2px;
  position: static; }
td { text-align: end; padding: 1px 5px; }
td.cell { border: 1px solid var(--paper); min-width: 40px;
  background: color-mix(in srgb, var(--plus) calc(80% * var(--size)), var(--paper)); }
thead ~ tbody td.cell { min-width: 34px; padding: 1px 2px; }
td.cell.minus { background: color-mix(in srgb, var(--minus) calc(80% * var(--size)), var(--paper)); }
td.more { color: var(--faint); white-space: nowrap; }
.bars, .bars table { width: 100%; }
.bars td:last-child { width: 100%; padding-inline-end: 0; }
.bar { display: block; height: 13px; border-radius: 2px; margin-inline-start: calc(100% * var(--start));
  width: max(1px, 100% * var(--size)); background: var(--plus); }
.bar.minus { background: var(--minus); }
details { margin-top: 10px; }
summary { font-size: 14px; color: var(--faint); }
summary:focus-visible { color: var(--ink); }
pre { margin: 6px 0 0; padding: 8px 10px; border: 1px solid var(--edge); border-radius: 6px; overflow-x: auto;
  font-size: 12.5px; line-height: 1.45; }
.where { color: var(--faint); }
"""


def steps_html(
    translator: "Translator",
    translation: "Translation",
    position: int,
    *,
    layer: int | None = None,
    head: int = 0,
    kind: str = "cross",
) -> HtmlPage:
    """Make a page of the steps behind one piece of a translation.

    Args:
        translator: what made the translation, with a model of this package.
        translation: a translation of one line.
        position: which target piece, for kind "encoder" which source piece, counted from 0.
        layer: layer of the decoder, for kind "encoder" of the encoder, counted from 0; None is the last.
        head: which head is shown in detail, counted from 0.
        kind: "cross" for attention to the source; "decoder" for a Transformer's masked attention to what it has read,
            "encoder" for its source's attention to itself.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: as `attention_steps` does.
    """
    steps = attention_steps(translator, translation, position, layer=layer, head=head, kind=kind)
    if kind == "encoder":
        return _page("How the encoder read", steps, translation.source_tokens, position)
    return _page("How the model wrote", steps, translation.target_tokens, position)


def text_steps_html(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str | Sequence[int],
    position: int,
    *,
    masked: Sequence[int] = (),
    layer: int | None = None,
    head: int = 0,
) -> HtmlPage:
    """Make a page of the steps behind one piece of a text that a BERT or a GPT reads.

    Args:
        model: a model of the families BERT or GPT, with any head or none, in eval mode.
        tokenizer: its tokenizer.
        text: a text, or the ids of its pieces.
        position: which piece asks, counted from 0.
        masked: the pieces that are hidden from the model behind the mask token, counted from 0.
        layer: layer, counted from 0; None is the last.
        head: which head is shown in detail, counted from 0.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        ValueError: as `text_steps` does.
    """
    steps = text_steps(model, tokenizer, text, position, masked=masked, layer=layer, head=head)
    pieces = readable_tokens(tokenizer, hide(tokenizer, text_ids(tokenizer, text), masked))
    side = text_direction(tokenizer, text_ids(tokenizer, text))
    return _page("How the model read", steps, pieces, position, side)


def _page(happened: str, steps: list[Step], pieces: list[str], position: int, side: str | None = None) -> HtmlPage:
    sentence = "".join(
        f"<b>{escape(piece)}</b>" if number == position else f" {escape(piece)} " for number, piece in enumerate(pieces)
    )
    first = 0 if steps[0].title in PREFACES else 1
    cards = "\n".join(_card(number, step) for number, step in enumerate(steps, start=first))
    body = (
        f'<h1>{happened} <span dir="auto" lang="">“{escape(pieces[position])}”</span></h1>\n'
        f'<p class="sentence" dir="{side or direction(pieces)}" lang="">{sentence}</p>\n<ol>\n{cards}\n</ol>'
    )
    return make_page("Attention step by step", body, style=STYLE, height=2400)


def _card(number: int, step: Step) -> str:
    badge = f'<span class="number">{number}</span>' if number else ""
    quantities = "\n".join(_figure(quantity) for quantity in step.quantities)
    code = "".join(map(_code, step.code))
    return (
        f"<li>\n<h2>{badge}{escape(step.title)}</h2>\n"
        f'<p class="formula">{_formula(step.formula)}</p>\n<p>{escape(step.meaning)}</p>\n'
        f'<div class="quantities">\n{quantities}\n</div>\n'
        f"<details open><summary>The lines of code</summary>{code}</details>\n</li>"
    )


def _formula(text: str) -> str:
    """Set subscripts and superscripts: `score_j`, `state_{i-1}`, `W^Q`, `output^{l-1}_i`."""
    text = re.sub(r"_\{([^}]*)\}|_([a-z0-9])\b", lambda found: f"<sub>{found[1] or found[2]}</sub>", escape(text))
    return re.sub(r"\^\{([^}]*)\}|\^([A-Za-z])", lambda found: f"<sup>{found[1] or found[2]}</sup>", text)


def _figure(quantity: Quantity) -> str:
    drawing = _bars(quantity) if quantity.values.dim() == 1 else _matrix(quantity)
    name, shape = escape(quantity.name), escape(quantity.shape)
    wide = ' class="wide"' if len(quantity.columns or []) > MOST_COLUMNS else ""
    return (
        f'<figure{wide} data-name="{name}"><figcaption>{name} <span class="shape">{shape}</span></figcaption>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{drawing}</div></figure>'
    )


def _bars(quantity: Quantity) -> str:
    """Draw one number a row as bars from a common zero."""
    values = quantity.values.tolist()
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
    span = (high - low) or 1.0
    rows = []
    for label, value in zip(quantity.rows, values, strict=True):
        bar = ""
        if math.isfinite(value):
            start, size = (min(value, 0.0) - low) / span, abs(value) / span
            sign = " minus" if value < 0 else ""
            bar = f'<span class="bar{sign}" style="--start: {start:.4f}; --size: {size:.4f}"></span>'
        rows.append(f"<tr>{_header(label)}<td>{_number(value)}</td><td>{bar}</td></tr>")
    return f'<table class="bars">{"".join(rows)}</table>'


def _matrix(quantity: Quantity) -> str:
    """Draw vectors by their first numbers, or all numbers where the columns have names."""
    width = quantity.values.shape[1]
    shown, digits = (width, 3) if quantity.columns else (min(width, FIRST_NUMBERS), 2)
    largest = float(quantity.values[:, :shown].abs().max()) or 1.0
    rest = f'<td class="more">… {width - shown} more</td>' if shown < width else ""
    rows = []
    for label, values in zip(quantity.rows, quantity.values[:, :shown].tolist(), strict=True):
        cells = "".join(
            f'<td class="cell{" minus" if value < 0 else ""}" style="--size: {abs(value) / largest:.3f}">'
            f"{_number(value, digits)}</td>"
            for value in values
        )
        header = _header(label) if len(quantity.rows) > 1 else ""
        rows.append(f"<tr>{header}{cells}{rest}</tr>")
    head = ""
    if quantity.columns:
        names = "".join(f'<th scope="col" dir="auto" lang="">{escape(name)}</th>' for name in quantity.columns)
        head = f"<thead><tr><td></td>{names}</tr></thead>"
    return f"<table>{head}{''.join(rows)}</table>"


def _header(label: str) -> str:
    text = escape(label)
    return f'<th scope="row" dir="auto" lang="" title="{text}">{text}</th>'


def _number(value: float, digits: int = 3) -> str:
    if not math.isfinite(value):
        return "−∞"
    return f"{round(value, digits) or 0.0:.{digits}f}".replace("-", "−")


def _code(code: Code) -> str:
    return f'<pre tabindex="0"><span class="where"># {escape(code.where)}</span>\n{escape(code.text)}</pre>'
