# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space: translate, see the attention behind every word, take one word apart, change it, and measure it.

    python space/app.py

serves the models that lie in `models/` beside this file, or in the folder that the environment variable SPACE_MODELS
names. Their names say what they do: `en-fr-bahdanau` translates English to French with Bahdanau's network. Nothing else
is ever read: no path, file or Hub id comes from a visitor, and no request leaves the machine. Only with SPACE_OPEN=1
may visitors open other checkpoints (`checkpoints.py`); the code that those bring along needs SPACE_REMOTE_CODE=1, too.
`service.py` computes, `endpoints.py` answers programs, and each tab has a file.
"""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from switches import read_switches  # noqa: E402

OPEN_CHECKPOINTS, REMOTE_CODE = read_switches(os.environ)
os.environ.update(GRADIO_ANALYTICS_ENABLED="False", TOKENIZERS_PARALLELISM="false")
# gradio keeps a list of calls, and makes a table of it after each, for a page of statistics that is switched off
os.environ.update(GRADIO_ANALYTICS_MAX_EVENTS="1", GRADIO_ANALYTICS_CACHE_FREQUENCY="1000000000")
if not OPEN_CHECKPOINTS:
    os.environ["HF_HUB_OFFLINE"] = "1"

import gradio as gr  # noqa: E402
import gradio.themes  # noqa: E402
import torch  # noqa: E402
from checkpoints import Checkpoints  # noqa: E402
from endpoints import NAMES, Endpoints  # noqa: E402
from endpoints_pictures import PictureEndpoints  # noqa: E402
from endpoints_text import TextEndpoints  # noqa: E402
from gradio.events import api  # noqa: E402
from guard import Guard  # noqa: E402
from links import CHOOSE_LANGUAGE, RECALL_LANGUAGE, SCRIPT, Link, open_links  # noqa: E402
from service import Space, load_models, load_others  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402
from tab_history import HistoryTab  # noqa: E402
from tab_inputs import InputsTab  # noqa: E402
from tab_metrics import MetricsTab  # noqa: E402
from tab_steps import StepsTab  # noqa: E402
from tab_translate import TranslateTab  # noqa: E402
from tab_what_if import WhatIfTab  # noqa: E402

MODELS = Path(os.environ.get("SPACE_MODELS") or Path(__file__).parent / "models")
AT_ONCE = 2  # computations at a time, each on one core
CSS = """
.gradio-container { max-width: 1500px !important; }
.gradio-container .app { padding: 16px clamp(10px, 3vw, 32px); }
#results .html-container, #steps .html-container, #history .html-container, #what-if .html-container,
#metrics .html-container { padding: 0; }
.html-container:has(> .prose > .explained) { padding-block: 0; }
.explained { max-width: 75em; margin: 2px 0 6px; }
.explained[lang=ko], [data-explained=ko] .explained[lang=en] { display: none; }
[data-explained=ko] .explained[lang=ko] { display: block !important; }
.hf-attn-results { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); }
.hf-attn-results section { min-width: 0; border: 1px solid var(--border-color-primary); border-radius: 10px;
  padding: 12px 4px 4px; background: var(--background-fill-primary); }
.hf-attn-results h3, .hf-attn-results p, .hf-attn-results ul { margin: 0 10px 6px; color: var(--body-text-color); }
.hf-attn-results h3 { font-size: 15px; font-weight: 600; }
.hf-attn-results .translation { font-size: 20px; overflow-wrap: anywhere; }
.hf-attn-results .small { font-size: 13px; opacity: 0.75; }
.hf-attn-results .flags { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 6px; }
.hf-attn-results .flags li { border: 1px solid currentcolor; border-radius: 999px; padding: 1px 10px; font-size: 13px;
  color: #b42318; overflow-wrap: anywhere; }
.dark .hf-attn-results .flags li { color: #fda29b; }
iframe { color-scheme: light; }
.dark iframe { color-scheme: dark; }
body { --color-accent: var(--primary-700); --focus: #1a56db; --checkbox-border-color: var(--neutral-500) !important; }
body.dark { --color-accent: var(--primary-500); --focus: #8ab4f8;
  --checkbox-border-color: var(--neutral-400) !important; }
:root body .gradio-container :focus-visible { outline: 3px solid var(--focus) !important; outline-offset: 1px; }
:root body .gradio-container :is([type=number], .reset-button, .gallery-item, td):focus-visible {
  outline-offset: -3px; }
fieldset label, fieldset label span { min-width: 0; max-width: 100%; overflow-wrap: anywhere; }
[data-testid=status-tracker] .error { display: none; }
textarea, input { unicode-bidi: plaintext; }
.toast-close { color: inherit !important; opacity: 1 !important; }
@media (prefers-reduced-motion: reduce) {
  .gradio-container * { animation-duration: 1ms !important; animation-iteration-count: 1 !important;
    transition-duration: 1ms !important; }
}
footer > .divider { display: none; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
"""
# for those who do not see the page: a group of choices has its label, and it is said which pictures are new
DESCRIBE = """() => {
  const said = Object.assign(document.createElement("p"), {className: "unseen", role: "status"});
  document.body.append(said);
  new MutationObserver(changes => {
    for (const group of document.querySelectorAll("fieldset")) {
      const label = group.querySelector("[data-testid=block-info]")?.textContent.trim() ?? "";
      if (group.getAttribute("aria-label") !== label) group.setAttribute("aria-label", label);
    }
    const added = changes.flatMap(change => [...change.addedNodes]).filter(node => node.nodeType === Node.ELEMENT_NODE);
    const frames = added
      .flatMap(node => [node, ...node.querySelectorAll("iframe")]).filter(node => node.tagName === "IFRAME");
    if (frames.length) said.textContent = "Shown: " + frames.map(frame => frame.title).join("; ");
  }).observe(document.body, {childList: true, subtree: true, characterData: true});
}"""
LAUNCH: dict[str, Any] = {
    "theme": gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]).set(
        # white on it, and it on white, can be read
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover_dark="*primary_800",
        body_text_color_subdued="*neutral_600",
    ),
    "css": CSS,
    "js": DESCRIBE,
    "head": f"<script>{SCRIPT}</script>",
    "footer_links": ["api"],
    "app_kwargs": {"middleware": [Middleware(Guard)]},
    "max_file_size": 0,  # nothing is uploaded
    "enable_monitoring": False,
    "state_session_capacity": 100,  # each keeps what it shows, hundreds of kilobytes; who comes back later begins anew
    "run_history": False,
    "ssr_mode": False,
    "pwa": False,
    "share": False,
    "mcp_server": False,
}


def build(folder: Path, open_checkpoints: bool = False, remote_code: bool = False) -> gr.Blocks:
    """Build the page.

    Args:
        folder: where the models lie.
        open_checkpoints: whether visitors may open checkpoints of the Hub, and folders of this machine.
        remote_code: whether Python code that such a checkpoint brings along is run.

    Returns:
        The app, to be launched with the options LAUNCH.
    """
    torch.set_num_threads(1)
    checkpoints = Checkpoints(remote_code) if open_checkpoints else None
    space = Space(load_models(folder), load_others(folder), checkpoints)
    one_queue: dict[str, Any] = {"concurrency_limit": AT_ONCE, "concurrency_id": "model"}
    # who asks for something else before the answer is there gets that too, not the first alone
    private: dict[str, Any] = {**one_queue, "api_visibility": "private", "trigger_mode": "always_last"}
    with gr.Blocks(title="Attention you can see", analytics_enabled=False) as demo:
        gr.HTML(
            "<h1>Attention you can see</h1><p>From the translators of 2014 to BERT, GPT and ViT, small enough to look "
            "inside: what each word was made of, and the arithmetic behind it, with the numbers of the real model.</p>"
        )
        if space.models or space.others:
            language = gr.Radio(
                [("Explained in English", "en"), ("한국어 설명", "ko")],
                value="en",
                label="Explanations",
                elem_id="language",
                container=False,
            )
            demo.load(None, None, language, js=RECALL_LANGUAGE, api_visibility="private")
            language.input(None, language, js=CHOOSE_LANGUAGE, api_visibility="private")
            lay_out_tabs(demo, space, private)
        else:
            gr.HTML(
                '<p role="alert">There are no models here yet. This Space serves the models in '
                "its folder <code>models</code>, for example <code>models/en-fr-bahdanau</code>.</p>"
            )
        for endpoint in named_endpoints(space):
            api(endpoint, api_name=endpoint.__name__, api_description=inspect.getdoc(endpoint), **one_queue)
    demo.queue(max_size=64)
    return demo


def named_endpoints(space: Space) -> list[Callable]:
    """List the endpoints for programs: about translations, and of other models those that are there."""
    text, pictures = TextEndpoints(space), PictureEndpoints(space)
    found = [getattr(Endpoints(space), name) for name in NAMES]
    for kind, endpoint in (
        ("fill-in", text.fill_in),
        ("continue", text.continue_text),
        ("classify", pictures.classify_digit),
        ("caption", pictures.describe_shapes),
    ):
        found += [endpoint] if space.other(kind) else []
    return found


def lay_out_tabs(demo: gr.Blocks, space: Space, private: dict[str, Any]) -> None:
    """Lay out the tabs that the models allow, and let a link open each with what it showed."""
    links: list[Link] = []
    with gr.Tabs(overflow_behavior="wrap") as tabs:
        if space.models:
            links = lay_out_translators(space, private)
        if space.others:
            with gr.Tab("Other inputs", id="inputs") as outer:
                inner, more = InputsTab(space).lay_out(private)
                links += more
    groups = [tabs, inner] if space.others else [tabs]
    open_links(demo, groups, outer if space.others else None, links, space.named)


def lay_out_translators(space: Space, private: dict[str, Any]) -> list[Link]:
    """Lay out the tabs of the translators; tell how a link opens them, the first one first."""
    steps, history = StepsTab(space), HistoryTab(space)
    with gr.Tab("Translate", id="translate") as tab:
        links = [TranslateTab(space).lay_out(tab, private)]
    if steps.known:
        with gr.Tab("Step by step", id="steps") as tab:
            links.append(steps.lay_out(tab, private))
    if history.pairs:
        with gr.Tab("History", id="history") as tab:
            links.append(history.lay_out(tab, private))
    with gr.Tab("What if", id="what-if") as tab:
        links.append(WhatIfTab(space).lay_out(tab, private))
    with gr.Tab("Metrics lab", id="metrics") as tab:
        links.append(MetricsTab(space).lay_out(tab, private))
    return links


if __name__ == "__main__":
    # gradio imports it at the first call, where it is installed, and lets it write; nothing here is drawn with it
    sys.modules["matplotlib"] = None  # type: ignore[assignment]
    build(MODELS, OPEN_CHECKPOINTS, REMOTE_CODE).launch(**LAUNCH)
