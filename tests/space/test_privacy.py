# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Nothing that a visitor asks goes elsewhere: not to the network, not to the disk, not to a page of statistics."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from space.questions import GOOD, PAGE, SENTENCE
from space.watching import WATCH, files, watched_space
from space.wire import Session

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_no_call_leaves_the_machine_or_writes_to_the_disk(space_folder, tmp_path):
    with watched_space(space_folder, tmp_path / "watched") as (url, log):
        assert httpx.get(url).status_code == 200
        client, visitor = Client(url, verbose=False), Session(url)
        before, written = files(tmp_path / "watched"), log.read_text().count("WRITTEN")
        named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
        assert set(named) == {f"/{name}" for name in GOOD}
        for name, arguments in GOOD.items():
            assert client.predict(**arguments, api_name=f"/{name}")
        for model in (
            "../en-fr-none",
            "/etc/passwd",
            "google/flan-t5-base",
            "https://huggingface.co/google/flan-t5-base",
        ):
            with pytest.raises(AppError, match="There is no such model"):
                client.predict(SENTENCE, model, api_name="/attention")
        for shown, inputs in PAGE.items():
            assert "<iframe" in json.dumps(visitor.press(shown, *inputs)), shown
        assert files(tmp_path / "watched") == before and len(before) >= 6
        told = log.read_text()
    assert "REQUEST" not in told and told.count("WRITTEN") == written, told


@pytest.mark.slow
def test_a_space_without_models_starts_and_says_so(tmp_path):
    with watched_space(tmp_path / "none", tmp_path / "watched") as (url, log):
        page = httpx.get(url).text
        assert "Attention you can see" in page and "There are no models here yet" in page
        with pytest.raises(AppError, match="there are: none"):
            Client(url, verbose=False).predict(SENTENCE, "en-fr-none", 1, api_name="/attention")
        assert "REQUEST" not in log.read_text()


def test_the_watch_sees_what_it_watches_for(tmp_path):
    """Otherwise the tests above could not fail."""
    (tmp_path / "guilty.py").write_text(
        "import os, socket\nopen('a.txt', 'w').close()\nos.mkdir('b')\nopen('a.txt').close()\n"
        "try:\n    socket.create_connection(('203.0.113.1', 9), timeout=0.01)\nexcept OSError:\n    print('failed')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", WATCH, "guilty.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert told.count("WRITTEN a.txt") == 1 and "WRITTEN os.mkdir ('b'," in told and "REQUEST" in told, told


def test_no_file_goes_in_or_out(server, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    answer = httpx.post(f"{server}gradio_api/upload", files={"files": ("a.txt", b"hello")})
    assert answer.status_code == 404
    for path in (secret, ROOT / "space" / "app.py", "/etc/passwd"):
        assert httpx.get(f"{server}gradio_api/file={path}").status_code in (403, 404)
    assert httpx.get(f"{server}monitoring/summary").status_code != 200
    assert httpx.get(f"{server}gradio_api/runs").status_code != 200
