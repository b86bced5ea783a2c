# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A visitor of the page without a browser: the events that the page sends, in a session of its own."""

import json
import secrets

import httpx


class Session:
    """One visitor.

    Args:
        url: address of the Space.
    """

    def __init__(self, url):
        self.wire = httpx.Client(base_url=f"{url.rstrip('/')}/", timeout=60)
        self.hash = secrets.token_hex(8)
        config = self.wire.get("config").json()
        names = {component["id"]: component["props"].get("elem_id") for component in config["components"]}
        self.events = [
            (event["id"], len(event["inputs"]), names.get(event["outputs"][-1]))
            for event in config["dependencies"]
            if event["outputs"] and event["api_visibility"] == "private"
        ]

    def press(self, shown, *inputs):
        """Send the event that fills the component with this id from so many inputs; give all its outputs."""
        numbers = [number for number, count, last in self.events if (count, last) == (len(inputs), shown)]
        assert numbers, f"no event fills {shown!r} from {len(inputs)} inputs; there are {self.events}"
        asked = {"data": inputs, "fn_index": numbers[0], "session_hash": self.hash}
        self.wire.post("gradio_api/queue/join", json=asked).raise_for_status()
        with self.wire.stream("GET", "gradio_api/queue/data", params={"session_hash": self.hash}) as stream:
            messages = [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line]
        (answer,) = (message for message in messages if message["msg"] == "process_completed")
        if not answer["success"]:
            raise ValueError(answer["output"]["error"])
        return answer["output"]["data"]
