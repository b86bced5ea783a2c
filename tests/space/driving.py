# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Drive the Space in a browser as a person would, read numbers off its pages, and ask the models for the same."""

import re
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import torch

from hf_attn import Translator

SENTENCE = "We did not see the three red books."
WAIT = 60_000  # milliseconds; a loaded machine is slow


class Visits:
    """Visits to the Space; it is noted what any of them asked for elsewhere, and what broke.

    Args:
        browser: the browser.
    """

    def __init__(self, browser):
        self.browser, self.contexts, self.complaints = browser, [], []

    def __call__(self, url, width=1280, dark=False, locale="en-US"):
        """Open a page with cookies and storage of its own."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            locale=locale,
            accept_downloads=True,
        )
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", self.note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        local = (url.split("?")[0], "data:", "blob:", "about:")
        page.on("request", lambda request: request.url.startswith(local) or self.complaints.append(request.url))
        page.goto(url)
        page.get_by_role("heading", name="Attention you can see").wait_for()
        page.locator("[role=tab], [role=alert]").first.wait_for()
        return page

    def note(self, message):
        """Note an error or a warning of the console."""
        # Gradio's page of documentation asks its own server whether it has these
        known = message.location["url"].endswith(("/mcp/schema", "/monitoring/summary"))
        if message.type in ("error", "warning") and not known:
            self.complaints.append(message.text)

    def reload(self, page, url=""):
        """Load a page again, or another; as one is left it may break off what it was asking for, and say so."""
        before = len(self.complaints)
        if url:
            page.goto(url)
        else:
            page.reload()
        broken_off = ("AbortError", "Connection errored out", "Unexpected error Connection errored out")
        self.complaints[before:] = [one for one in self.complaints[before:] if not one.startswith(broken_off)]

    def end(self):
        """Close all pages, and tell what was asked for elsewhere or broke."""
        for context in self.contexts:
            context.close()
        return self.complaints


def linked(page):
    """What the address says."""
    return {name: value for name, (value,) in parse_qs(urlsplit(page.url).query).items()}


def selected(page):
    """The tab that is shown."""
    return page.locator("[role=tab][aria-selected=true]").first.text_content()


def typed(page):
    """The text in the tab that is shown."""
    return page.get_by_label("Text", exact=True).and_(page.locator("textarea:visible")).input_value()


def open_tab(page, name):
    page.get_by_role("tab", name=name).click()


def unfold(page, name):
    """Open what is folded, and wait until nothing is drawn any more: what is typed earlier may be lost."""
    page.get_by_role("button", name=name).and_(page.locator(":visible")).click()
    page.evaluate(
        """wait => new Promise((resolve, reject) => {
          const start = performance.now();
          let last = start;
          const observer = new MutationObserver(() => { last = performance.now(); });
          observer.observe(document.body, {childList: true, subtree: true, attributes: true});
          const look = () => {
            if (performance.now() - last > 300) return resolve(observer.disconnect());
            if (performance.now() - start > wait) return reject(new Error("something is always drawn anew"));
            requestIdleCallback(look);
          };
          requestIdleCallback(look);
        })""",
        WAIT,
    )


def choose(page, label, option):
    """Choose from a drop-down menu of the tab that is shown."""
    page.get_by_label(label, exact=True).and_(page.locator("input:visible")).click()
    page.get_by_role("option", name=option, exact=True).click()
    page.get_by_role("option").first.wait_for(state="hidden")  # or the next menu would have this one's options too


def slide(page, label, value):
    """Set a slider by the arrow keys."""
    slider = page.get_by_role("slider", name=re.compile(label)).and_(page.locator(":visible"))
    slider.focus()
    way = value - int(slider.input_value())
    for _ in range(abs(way)):
        page.keyboard.press("ArrowRight" if way > 0 else "ArrowLeft")


def framed(page, area, *texts):
    """The frame in an area of the page, once it has these texts."""
    page.wait_for_function(
        """([area, texts]) => {
          const frame = document.querySelector(area + " iframe")?.contentDocument;
          const shown = frame?.querySelector("script") && frame.body.textContent;
          return shown && texts.every(text => shown.includes(text));
        }""",
        arg=[area, list(texts)],
    )
    return page.locator(f"{area} iframe").element_handle().content_frame()


@contextmanager
def redrawn(page, area):
    """Wait until what is done meanwhile has put a new frame into an area of the page."""
    page.locator(f"{area} iframe").first.wait_for()
    page.evaluate("area => document.querySelectorAll(area + ' iframe').forEach(frame => frame.dataset.old = '')", area)
    yield
    page.wait_for_function(
        """area => {
          const frames = [...document.querySelectorAll(area + " iframe")];
          const complete = page => page?.readyState === "complete" && page.querySelector("script");
          return frames.length && frames.every(frame => !("old" in frame.dataset) && complete(frame.contentDocument));
        }""",
        arg=area,
    )


def frames(page, area):
    """The frames in an area of the page, which are drawn."""
    return [frame.content_frame() for frame in page.locator(f"{area} iframe").element_handles()]


def results(page, count, text=""):
    """The frames of the translations, once there are so many and they have drawn this text."""
    page.wait_for_function(
        """([count, wanted]) => {
          const frames = [...document.querySelectorAll("#results iframe")].map(frame => frame.contentDocument);
          const words = frame => [...frame.querySelectorAll("#source .text")].map(word => word.textContent).join("");
          return frames.length === count && frames.every(frame => frame && frame.querySelector("#heatmap .cell")
            && words(frame).replaceAll("▁", "").startsWith(wanted));
        }""",
        arg=[count, re.sub(r"\s", "", text)[:20]],
    )
    return frames(page, "#results")


def translate(page, text, count):
    """Type a text, press the button, and wait for its translations."""
    page.locator("#text textarea").fill(text)
    page.get_by_role("button", name="Translate").click()
    return results(page, count, text)


def lit(frame, side):
    """The weights by which the words of a side are lit."""
    return variables(frame.locator(f"#{side} .word"), "--weight")


def variables(locator, name):
    """The values of a variable of style sheets, one for each element."""
    read = "(elements, name) => elements.map(element => Number(element.style.getPropertyValue(name)))"
    return torch.tensor(locator.evaluate_all(read, name))


def quantity(frame, name, cells="td:nth-child(2)"):
    """Numbers of a page of steps."""
    texts = frame.locator(f"figure[data-name='{name}'] {cells}").all_text_contents()
    return torch.tensor([float(text.replace("−", "-")) for text in texts])


def saved(page, frame, kind):
    """The bytes of a file that is saved by a button."""
    with page.expect_download() as waiting:
        frame.get_by_role("button", name=kind, exact=True).click()
    with open(waiting.value.path(), "rb") as file:
        return file.read()


def fits(page, width):
    """Tell whether neither the page nor a visible frame of it is scrolled sideways."""
    shown = [frame for frame in page.frames[1:] if frame.frame_element().is_visible()]
    return page.evaluate("document.scrollingElement.scrollWidth") == width and all(
        frame.evaluate("document.scrollingElement.scrollWidth <= innerWidth") for frame in shown
    )


def is_dark(frame):
    """Tell whether a frame is written with light ink."""
    ink = frame.evaluate("getComputedStyle(document.body).color")
    return sum(map(int, re.findall(r"\d+", ink)[:3])) > 384


def close(actual, expected):
    torch.testing.assert_close(actual, torch.as_tensor(expected).float(), atol=1e-3, rtol=0)


def forward(translator, source_ids, target_ids, visible=None):
    """A teacher-forced forward pass, by the model alone; the decoder may be kept from some source pieces.

    Args:
        translator: holds the model.
        source_ids: what the encoder reads.
        target_ids: what is written.
        visible: 1 for each source piece that the decoder sees, 0 for those it does not; None for all.
    """
    model = translator.model
    read = [model.config.decoder_start_token_id, *target_ids[:-1]]
    source, written = torch.tensor([source_ids]), {"decoder_input_ids": torch.tensor([read]), "output_attentions": True}
    with torch.no_grad():
        if visible is None:
            return model(source, **written)
        states = model.get_encoder()(source, return_dict=True)
        return model(encoder_outputs=states, attention_mask=torch.tensor([visible]), **written)


def log_probs(logits, ids):
    """The log-probability of each piece, from logits (1, pieces, vocab_size)."""
    return logits[0].log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def forced(models_folder, name, text):
    """Cross-attention (layers, heads, pieces, pieces) of a teacher-forced forward pass, by the model alone."""
    translator = Translator(models_folder / name)
    translation = translator(text, num_beams=4, max_new_tokens=120)
    outputs = forward(translator, translation.source_ids, translation.target_ids)
    return translation, torch.stack([layer[0] for layer in outputs.cross_attentions])


def between_words(weights, translation):
    """Weights between words: added over the pieces of a source word, averaged over those of a target word, in loops."""
    words = translation.words()
    return torch.tensor(
        [
            [sum(float(weights[t, s]) for t in target for s in source) / len(target) for source in words.source_pieces]
            for target in words.target_pieces
        ]
    )
