"""A page of translations with what looks wrong about them: to be searched and filtered, in one file without outside
links. Read `hf_attn/evaluation/failures.py` for what the flags mean, `page.py` for what all pages share.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .page import HtmlPage, escape, make_page

if TYPE_CHECKING:
    from hf_attn.evaluation import Failure

BODY = """<h1>{title}</h1>
<form class="controls" autocomplete="off">
<fieldset><legend>Show only</legend>
{choices}
</fieldset>
<label>Search <input type="search" id="search" size="16"></label>
</form>
<p id="status" role="status">{count} of {count} translations</p>
<table>
<thead><tr><td></td>{headers}</tr></thead>
<tbody>
{rows}
</tbody>
</table>"""

STYLE = """
h1 { font-size: 20px; margin: 0 0 10px; overflow-wrap: anywhere; }
[hidden] { display: none !important; }
.controls { display: flex; flex-wrap: wrap; gap: 8px 20px; align-items: end; }
fieldset { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 0; min-width: 0; border: 1px solid var(--edge);
  border-radius: 7px; }
fieldset label { white-space: nowrap; }
input { font: inherit; accent-color: var(--focus); }
input[type=search] { color: inherit; background: var(--paper); border: 1px solid var(--edge); border-radius: 6px;
  padding: 3px 6px; max-width: 100%; }
legend, #status { color: var(--faint); font-size: 14px; }
#status { margin: 10px 0 4px; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--edge); padding: 6px 10px 6px 0; text-align: start; vertical-align: top; }
th { color: var(--faint); font-size: 14px; font-weight: 400; }
td { overflow-wrap: anywhere; white-space: pre-wrap; }
td.number { color: var(--faint); font-variant-numeric: tabular-nums; white-space: nowrap; }
.flag { margin: 0 0 2px; }
.flag b { color: var(--line); font-weight: 600; white-space: nowrap; }
@media (max-width: 700px) {
  table, tbody, tr, td { display: block; }
  thead { display: none; }
  tr { border-bottom: 1px solid var(--edge); padding: 8px 0; }
  td { border: 0; padding: 1px 0; }
  td:empty { display: none; }
  td[data-label]::before { content: attr(data-label) " "; color: var(--faint); font-size: 13px; }
}
"""

SCRIPT = """
(() => {
  "use strict";
  const rows = [...document.querySelectorAll("tbody tr")];
  const boxes = [...document.querySelectorAll("fieldset input")];
  const search = document.getElementById("search"), status = document.getElementById("status");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  function filter() {
    const kinds = boxes.filter((box) => box.checked).map((box) => box.value);
    const wanted = search.value.trim().normalize("NFC").toLowerCase();
    let shown = 0;
    rows.forEach((row, number) => {
      const own = row.dataset.kinds.split(" ");
      const fits = kinds.length === 0 || own.some((kind) => kinds.includes(kind));
      row.hidden = !(fits && texts[number].includes(wanted));
      shown += !row.hidden;
    });
    status.textContent = `${shown} of ${rows.length} translations`;
  }
  document.querySelector("form").addEventListener("input", filter);
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
})();
"""

NO_FLAG = "no_flag"


def failure_sheet(
    sources: Sequence[str],
    texts: Sequence[str],
    failures: Sequence[Sequence["Failure"]],
    references: Sequence[Sequence[str]] | None = None,
    *,
    source_lang: str | None = None,
    target_lang: str | None = None,
    title: str = "Translations and their flags",
) -> HtmlPage:
    """Make a page of translations and what looks wrong about them, those with flags first.

    Args:
        sources: the sentences.
        texts: their translations.
        failures: for each translation its failures, as `find_failures` or `Translation.failures` gives them.
        references: for each, translations by people, if there are any.
        source_lang: language code of the sources, which helps a browser choose its font.
        target_lang: the same of the translations.
        title: what stands at the top.

    Returns:
        The page, to be shown by a notebook or saved to a file.

    Raises:
        TypeError: if a list is a single text.
        ValueError: if the lists differ in length.
    """
    for name, texts_given in {"sources": sources, "texts": texts, "references": references}.items():
        if isinstance(texts_given, str):
            raise TypeError(f"{name} is the single text {texts_given!r}; it must be a list with one entry a sentence")
    references = [()] * len(sources) if references is None else references
    lengths = {"sources": len(sources), "texts": len(texts), "failures": len(failures), "references": len(references)}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"the lists differ in length: {found}; give one entry for each sentence")
    kinds = [list(dict.fromkeys(failure.kind for failure in its)) or [NO_FLAG] for its in failures]
    order = sorted(range(len(sources)), key=lambda index: kinds[index] == [NO_FLAG])
    rows = []
    for index in order:
        cells = [
            f'<td class="number">{index + 1}</td>',
            _cell("source", [sources[index]], source_lang),
            _cell("translation", [texts[index]], target_lang),
            _cell("reference", references[index], target_lang),
            f'<td class="flags">{"".join(map(_flag, failures[index]))}</td>',
        ]
        rows.append(f'<tr data-kinds="{escape(" ".join(kinds[index]))}">{"".join(cells)}</tr>')
    body = BODY.format(
        title=escape(title),
        choices="\n".join(_choices(kinds)),
        count=len(sources),
        headers="".join(f'<th scope="col">{name}</th>' for name in ("source", "translation", "reference", "flags")),
        rows="\n".join(rows),
    )
    return make_page(title, body, style=STYLE, script=SCRIPT, height=640)


def _choices(kinds: list[list[str]]) -> list[str]:
    """Write a box for each kind of flag that occurs, with the number of its translations, the commonest first."""
    counts: dict[str, int] = {}
    for its in kinds:
        for kind in its:
            counts[kind] = counts.get(kind, 0) + 1
    ordered = sorted(counts, key=lambda kind: (kind == NO_FLAG, -counts[kind]))
    return [
        f'<label><input type="checkbox" value="{escape(kind)}"> {escape(_readable(kind))} ({counts[kind]})</label>'
        for kind in ordered
    ]


def _cell(label: str, texts: Sequence[str], lang: str | None) -> str:
    content = "".join(f'<div dir="auto">{escape(text)}</div>' for text in texts)
    return f'<td data-label="{label}" lang="{escape(lang or "")}">{content}</td>'


def _flag(failure: "Failure") -> str:
    kind, detail = escape(_readable(failure.kind)), escape(failure.detail)
    return f'<div class="flag"><b>{kind}</b> <span dir="auto" lang="">{detail}</span></div>'


def _readable(kind: str) -> str:
    return kind.replace("_", " ")
