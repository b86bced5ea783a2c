# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Links: the address of the page says what the tab in front shows, and opens it again."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from service import CONTROLS, INVISIBLE, LONGEST_TEXT, clean

READ = {  # of a text, all that is read and where it is cut off; an address that is longer reaches no server
    "controls": CONTROLS.pattern,
    "invisible": INVISIBLE.pattern,
    "letters": LONGEST_TEXT + 2,
    "address": 8000,
}
# What a tab was asked for is kept when the question goes out, and becomes its address when the answer is there.
SCRIPT = (
    f"const READ = {json.dumps(READ)};"
    + """
window.links = {
  opened: false, front: "", inner: "",  // whether the address was read; the tab in front, and of those within one
  asked: {}, answered: {},
  ask(tab, places, values) {
    const query = this.asked[tab] = new URLSearchParams({tab});
    for (const [name, place] of Object.entries(places)) query.set(name, this.line([].concat(values[place]).join(",")));
    return values;
  },
  line(text) {
    const plain = text.replace(new RegExp(READ.controls, "gu"), " ").replace(new RegExp(READ.invisible, "gu"), "");
    return [...plain.trim().split(/\\s+/).join(" ")].slice(0, READ.letters).join("");
  },
  answer(tab) {
    const atOnce = !this.answered[tab] && !this.address().has("tab");  // nobody has asked for anything yet
    this.answered[tab] = this.asked[tab];
    if (tab === this.front && !atOnce) this.write(this.answered[tab]);
  },
  select(tab, within) {
    this.front = tab;
    if (within) this.inner = tab;
    if (this.opened) this.follow();  // as the page is loaded a tab is selected that nobody chose
  },
  open() {
    this.opened = true;
    if (this.front && this.address().has("tab")) this.follow();
  },
  follow() {
    const tab = this.front;
    if (this.answered[tab] || this.address().get("tab") !== tab) this.write(this.answered[tab] ?? {tab});
  },
  address() {
    return new URLSearchParams(location.search);
  },
  write(query) {
    let kept = new URLSearchParams(query);
    if (String(kept).length > READ.address) kept = new URLSearchParams({tab: kept.get("tab")});
    const before = this.address();
    for (const name of ["__theme", "explained"]) if (before.has(name)) kept.set(name, before.get(name));
    history.replaceState(null, "", "?" + kept);
  },
  explain(language) {
    document.documentElement.dataset.explained = language;
    const query = this.address();
    query.set("explained", language);
    history.replaceState(null, "", "?" + query);
    return language;
  },
  explained() {
    const asked = this.address().get("explained") ?? navigator.language;
    return document.documentElement.dataset.explained = asked.split("-")[0] === "ko" ? "ko" : "en";
  },
};
"""
)
CHOOSE_LANGUAGE = "language => links.explain(language)"
RECALL_LANGUAGE = "() => links.explained()"


@dataclass(frozen=True)
class Asked:
    """What a link asks for; what it does not name, or what cannot be, stays as it is.

    Attributes:
        query: names and values in the address.
        models: the models that it names, or that translate the languages that it names.
    """

    query: Mapping[str, str]
    models: list[str]

    def text(self, name: str = "text", empty: bool = False) -> Any:
        """Give a text, which may be allowed to be empty."""
        try:
            return clean(self.query.get(name, ""), name)[0]
        except gr.Error:
            return "" if empty and name in self.query else gr.skip()

    def number(self, name: str, least: int, most: int) -> Any:
        """Give a whole number within limits."""
        found = self.numbers(name, least, most, 1)
        return found[0] if isinstance(found, list) else found

    def numbers(self, name: str, least: int, most: int, count: int) -> Any:
        """Give so many whole numbers within limits, as a list."""
        value = self.query.get(name, "")
        if not re.fullmatch(r"[0-9]{1,7}(,[0-9]{1,7})*", value):
            return gr.skip()
        numbers = [int(part) for part in value.split(",")]
        return numbers if len(numbers) == count and all(least <= one <= most for one in numbers) else gr.skip()


class Link:
    """How the address says what a tab shows, and opens it again.

    Args:
        tab: the tab.
        inputs: what the tab computes from.
        named: those that the address names, by their names there.
        opened: what a link sets.
        values: gives the values of `opened`.

    Attributes:
        visited: changes when the tab is first in front; who comes back finds it as it was left.
        asking: what notes the question as it goes out: the argument `js` of events with these inputs.
    """

    def __init__(
        self,
        tab: gr.Tab,
        inputs: list[Any],
        named: dict[str, Any],
        opened: list[Any],
        values: Callable[[Asked], list[Any]],
    ):
        self.tab, self.opened, self.values = tab, opened, values
        self.visited = gr.State(False)
        places = {name: inputs.index(component) for name, component in named.items()}
        self.asking = f"(...values) => links.ask({json.dumps(tab.id)}, {json.dumps(places)}, values)"

    def follow(self, *answered: Any) -> None:
        """Let the address follow events that answer."""
        for event in answered:
            event.then(None, js=f"() => links.answer({json.dumps(self.tab.id)})", api_visibility="private")


def open_links(
    demo: gr.Blocks, groups: list[gr.Tabs], outer: gr.Tab | None, links: list[Link], find: Callable[[str], list[str]]
) -> None:
    """Let the address open a tab.

    Args:
        demo: the page.
        groups: the tabs of the page, and those within one of them.
        outer: the tab that holds the second group.
        links: of every tab; the first one is in front when the page is opened.
        find: gives the models that a name in the address stands for.
    """
    ids = [[block.id for block in group.children if isinstance(block, gr.Tab)] for group in groups]

    def reopen(request: gr.Request) -> list[Any]:
        query = request.query_params if request else {}
        wanted = query.get("tab") or links[0].tab.id
        named = [model for name in query.get("models", "").split(",") for model in find(name)]
        asked = Asked(query, list(dict.fromkeys(named)))
        updates: list[Any] = [gr.skip()] * len(groups)
        if "tab" in query and any(wanted in group for group in ids):
            updates = [gr.Tabs(selected=wanted) if wanted in group else gr.skip() for group in ids]
            if outer and wanted in ids[-1]:
                updates[0] = gr.Tabs(selected=outer.id)
        for link in links:
            updates += link.values(asked) if wanted == link.tab.id else [gr.skip()] * len(link.opened)
        return updates

    outputs = [*groups, *[component for link in links for component in link.opened]]
    opened = demo.load(reopen, None, outputs, api_visibility="private")
    opened.then(None, js="() => links.open()", api_visibility="private")
    opened.then(lambda: True, None, links[0].visited, api_visibility="private")
    for link in links[1:]:
        link.tab.select(lambda: True, None, link.visited, api_visibility="private")
    for link in links:
        within = json.dumps(link.tab.id not in ids[0])
        link.tab.select(None, js=f"() => links.select({json.dumps(link.tab.id)}, {within})", api_visibility="private")
    if outer:
        outer.select(None, js="() => { if (links.inner) links.select(links.inner, true); }", api_visibility="private")
