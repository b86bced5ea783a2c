"""Translations with known attention weights, and a browser to look at pages with."""

import pytest
import torch
from chromium import chromium

from hf_attn.data import split_words
from hf_attn.inference import Translation


@pytest.fixture
def make_translation():
    """A function that makes a translation of given sentences, whose pieces are its words, with random weights."""

    def make(source, target, layers=2, heads=3, self_attention=True):
        source_spans, target_spans = [*split_words(source), None], [*split_words(target), None]
        source_tokens = [source[slice(*span)] if span else "</s>" for span in source_spans]
        target_tokens = [target[slice(*span)] if span else "</s>" for span in target_spans]
        random = torch.Generator().manual_seed(len(source) + 7 * len(target))

        def weights(queries, keys, causal=False):
            scores = 2 * torch.randn(layers, heads, queries, keys, generator=random)
            if causal:
                scores = scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -torch.inf)
            return scores.softmax(dim=-1)

        sources, targets = len(source_tokens), len(target_tokens)
        return Translation(
            source=source,
            text=target,
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            token_log_probs=[-0.5] * targets,
            score=-0.5,
            cross_attentions=weights(targets, sources),
            encoder_attentions=weights(sources, sources) if self_attention else None,
            decoder_attentions=weights(targets, targets, causal=True) if self_attention else None,
            source_spans=source_spans,
            target_spans=target_spans,
        )

    return make


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, tmp_path):
    """A function that opens a document; at the end of the test it must have asked for nothing and broken nothing."""
    contexts, complaints = [], []

    def open_page(document, width=1000, dark=False):
        path = tmp_path / f"page-{len(contexts)}.html"
        path.write_text(document, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 700}, color_scheme="dark" if dark else "light", offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: request.url == path.as_uri() or complaints.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [complaint for complaint in complaints if complaint != "about:srcdoc"] == []
