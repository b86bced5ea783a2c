# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What of Gradio's server can be reached, and what is sent with every answer."""

import json

import httpx
import pytest
from space.questions import GOOD

FILE = {"path": "http://203.0.113.1/a.txt", "meta": {"_type": "gradio.FileData"}}
LOCAL_FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}, "url": "http://203.0.113.1/a.txt"}
CLOSED = [
    *("gradio_api/deep_link?session_hash=a", "gradio_api/file=/etc/passwd", "gradio_api/file/etc/passwd"),
    *("gradio_api/file=http://203.0.113.1/", "gradio_api/proxy=http://203.0.113.1/", "gradio_api/runs"),
    *("gradio_api/custom_component/a/client/b/c", "gradio_api/dev/reload", "gradio_api/upload_progress?upload_id=a"),
    *("gradio_api/stream/a/b/1/playlist.m3u8", "gradio_api/vibe-code", "gradio_api/token", "monitoring", "pwa_icon/9"),
    *("monitoring/summary", "docs", "redoc", "login", "logout", "gradio_api/../gradio_api/file=/etc/passwd"),
]


@pytest.mark.parametrize("path", CLOSED)
def test_what_the_space_does_not_need_is_not_there(server, path):
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
        assert httpx.request(method, server + path).status_code == 404


@pytest.mark.parametrize("content", [b"", b"hello"], ids=["empty", "full"])
@pytest.mark.parametrize("path", ["upload", "upload?upload_id=a", "process_recording", "component_server"])
def test_no_file_is_taken_an_empty_one_neither(server, path, content):
    for name in ("files", "video"):
        assert httpx.post(f"{server}gradio_api/{path}", files={name: ("a.html", content)}).status_code == 404


@pytest.mark.parametrize("value", [FILE, LOCAL_FILE, [FILE], {"a": [[FILE]]}, {"path": "a", "meta": None}])
def test_what_gradio_takes_for_a_file_is_no_question(server, value):
    """Gradio would fetch it and keep it before anybody looks at it."""
    for path, more in (
        ("call/translate", {}),
        ("call/v2/translate", {"text": value, "model": "en-fr-none"}),
        ("run/translate", {}),
        ("api/translate", {}),
        ("queue/join", {"fn_index": 3, "session_hash": "a"}),
    ):
        answer = httpx.post(f"{server}gradio_api/{path}", json={"data": [value, "en-fr-none", 1], **more})
        assert (answer.status_code, answer.text) == (422, "This is no question.")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"data": "\xed\xa0\x80"}'])
def test_what_is_no_json_is_no_question(server, body):
    answer = httpx.post(f"{server}gradio_api/run/translate", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.text) == (422, "This is no question.")


def test_a_million_characters_are_read_and_no_more_than_a_few(server):
    def ask(count):
        body = json.dumps({"data": ["한" * count, "en-fr-none", 1]})  # six bytes each
        headers = {"content-type": "application/json"}
        return httpx.post(f"{server}gradio_api/call/translate", content=body, headers=headers, timeout=60)

    assert ask(1_000_000).status_code == 200
    answer = ask(1_500_000)
    assert (answer.status_code, answer.text) == (413, "The question is too long.")


@pytest.mark.parametrize("path", ["", "config", "theme.css", "gradio_api/info", "nowhere"])
def test_every_answer_forbids_the_page_to_fetch_from_elsewhere(server, path):
    headers = httpx.get(server + path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'self'" and policy["object-src"] == policy["form-action"] == "'none'"
    assert not [value for value in policy.values() if "http" in value or "*" in value]
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


def test_the_named_endpoints_can_be_reached(server):
    answer = httpx.post(f"{server}gradio_api/call/v2/metrics", json=GOOD["metrics"])
    assert answer.status_code == 200 and answer.json()["event_id"]
