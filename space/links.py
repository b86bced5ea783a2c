# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Links: the address of the page follows what a tab shows, and opens it again."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.events import Dependency
from service import LONGEST_TEXT, clean

# the theme and the language of the explanations stay in the address
REMEMBER = """(...values) => {
  const query = new URLSearchParams({tab: %s});
  %s.forEach((name, number) => {
    // more is not read, and an address that is too long reaches nobody
    query.set(name, [].concat(values[number]).join(",").slice(0, %d));
  });
  const before = new URLSearchParams(location.search);
  for (const name of ["__theme", "explained"]) if (before.has(name)) query.set(name, before.get(name));
  history.replaceState(null, "", "?" + query);
}"""
OPENED = "() => { document.documentElement.dataset.opened = ''; }"
# as the page is loaded a tab is selected that nobody chose
REMEMBER_CHOSEN = "(...values) => { if ('opened' in document.documentElement.dataset) (%s)(...values); }"
REMEMBER_LANGUAGE = """language => {
  document.documentElement.dataset.explained = language;
  const query = new URLSearchParams(location.search);
  query.set("explained", language);
  history.replaceState(null, "", "?" + query);
  return language;
}"""
RECALL_LANGUAGE = """() => {
  const asked = new URLSearchParams(location.search).get("explained") ?? navigator.language;
  return document.documentElement.dataset.explained = asked.startsWith("ko") ? "ko" : "en";
}"""


@dataclass(frozen=True)
class Asked:
    """What a link asks for; what it does not name, or what cannot be, stays as it is.

    Attributes:
        query: names and values in the address.
        models: the models that it names, or that translate the languages that it names.
    """

    query: Mapping[str, str]
    models: list[str]

    def text(self, name: str = "text") -> Any:
        """Give a text."""
        try:
            return clean(self.query.get(name, ""), name)[0]
        except gr.Error:
            return gr.skip()

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


@dataclass(frozen=True)
class Link:
    """How a link opens a tab again.

    Attributes:
        tab: the tab.
        named: what the address remembers, by its name there.
        opened: what a link sets.
        values: gives the values of `opened`.
        shown: the events after which there is something new to link to.
        show: the arguments of these events.
    """

    tab: gr.Tab
    named: dict[str, Any]
    opened: list[Any]
    values: Callable[[Asked], list[Any]]
    shown: list[Any]
    show: dict[str, Any]


def first_visit(tab: gr.Tab) -> gr.State:
    """Give what changes when a visitor opens a tab for the first time; who comes back finds it as it was left."""
    visited = gr.State(False)
    tab.select(lambda: True, None, visited, api_visibility="private")
    return visited


def open_links(
    demo: gr.Blocks, groups: list[gr.Tabs], links: list[Link], find: Callable[[str], list[str]]
) -> Dependency:
    """Let the address open a tab, and follow what is shown.

    Args:
        demo: the page.
        groups: the tabs of the page, and those within one of them.
        links: of every tab.
        find: gives the models that a name in the address stands for.

    Returns:
        The event after which the page shows what the address asks for.
    """
    ids = [[block.id for block in group.children if isinstance(block, gr.Tab)] for group in groups]

    def reopen(request: gr.Request) -> Any:
        query = request.query_params if request else {}
        wanted = query.get("tab", "translate")
        asked = Asked(query, [name for one in query.get("models", "").split(",") for name in find(one)])
        updates: list[Any] = [gr.skip()] * len(groups)
        if "tab" in query and any(wanted in group for group in ids):
            updates[0] = gr.Tabs(selected=wanted if wanted in ids[0] else "inputs")
            updates[1:] = [gr.Tabs(selected=wanted) if wanted in group else gr.skip() for group in ids[1:]]
        for link in links:
            updates += link.values(asked) if wanted == link.tab.id else [gr.skip()] * len(link.opened)
        return updates if len(updates) > 1 else updates[0]  # one output is no list

    outputs = [*groups, *[component for link in links for component in link.opened]]
    opened = demo.load(reopen, None, outputs, api_visibility="private")
    for link in links:
        remember = REMEMBER % (json.dumps(link.tab.id), json.dumps(list(link.named)), LONGEST_TEXT)
        for shown in link.shown:
            shown.then(None, list(link.named.values()), js=remember, api_visibility="private")
        link.tab.select(None, list(link.named.values()), js=REMEMBER_CHOSEN % remember, api_visibility="private")
    opened.then(None, js=OPENED, api_visibility="private")
    return opened
