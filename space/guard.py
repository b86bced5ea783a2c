# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What of Gradio's server can be reached: the page, the questions and their answers. The rest is not there.

Gradio also takes files (an empty one passes every limit of size), keeps what a visitor has typed in a file for whoever
has its name, and fetches an address that is sent where a file is expected. Nothing here needs that.
"""

import json
import re
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READ = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/manifest\.json|/robots\.txt|/(?:assets|static)/.+"
    r"|/gradio_api/(?:info/?|openapi\.json|startup-events|theme\.css|app_id/?)"
    r"|/gradio_api/(?:heartbeat/[^/]+|queue/(?:data|status)|call/.+)"
)
ASKED = re.compile(r"/gradio_api/(?:queue/join|cancel|reset/?|(?:run|api|call|call/v2)/[^/]+/?)")
METHODS = {"GET": READ, "HEAD": READ, "POST": ASKED, "OPTIONS": ASKED}
LARGEST_QUESTION = 8 * 2**20  # bytes; a million characters, each escaped, are six million
HEADERS = {
    # what the page needs is here: nothing is fetched from elsewhere, whatever gets into it
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; object-src 'none'; "
    "base-uri 'self'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address of the page holds the sentence
}


class Guard:
    """Middleware that lets through what the Space is for.

    Args:
        app: Gradio's server.
    """

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        allowed = METHODS.get(scope["method"])
        if allowed is None or not allowed.fullmatch(scope["path"]):
            return await PlainTextResponse("Not found", 404)(scope, receive, send_with_headers)
        if scope["method"] == "POST":
            body = await read(receive)
            if body is None:
                return await PlainTextResponse("The question is too long.", 413)(scope, receive, send_with_headers)
            if not is_question(body):
                return await PlainTextResponse("This is no question.", 422)(scope, receive, send_with_headers)
            receive = once(body, receive)
        return await self.app(scope, receive, send_with_headers)


async def read(receive: Receive) -> bytes | None:
    """Read what was sent; None if it is larger than LARGEST_QUESTION, or the visitor has gone."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if message["type"] != "http.request" or size > LARGEST_QUESTION:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def once(body: bytes, receive: Receive) -> Receive:
    """Give what was read once more."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def is_question(body: bytes) -> bool:
    """Tell whether something is JSON without a file in it."""
    try:
        return not holds_file(json.loads(body.decode("utf-8")))
    except (ValueError, RecursionError):
        return False


def holds_file(value: Any) -> bool:
    """Tell whether a value holds what Gradio takes for a file: something with a path and a meta."""
    if isinstance(value, dict):
        return {"path", "meta"} <= value.keys() or any(map(holds_file, value.values()))
    return isinstance(value, list) and any(map(holds_file, value))
