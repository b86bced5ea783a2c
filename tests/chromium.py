# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Debian's Chromium for the tests of pages, with everything off that would call home."""

import shutil
from contextlib import contextmanager

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium():
    """Open a headless Chromium; fails where there is none: install chromium and `pip install playwright`."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    executable = next((path for path in map(shutil.which, names) if path), None)
    assert executable, "no Chromium found; on Debian: sudo apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()
