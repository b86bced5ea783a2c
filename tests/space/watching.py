# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A Space in a process of its own that tells of what it asks the network for and writes to the disk."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHERS = ("HF_", "GRADIO_", "PYTHON")  # settings that are not handed on
WATCH = """
import ipaddress, os, runpy, sys

WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate", "tempfile.mkstemp",
           "tempfile.mkdtemp", "sqlite3.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")

def watch(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and not ipaddress.ip_address(address[0].split("%")[0]).is_loopback:
            print("REQUEST", address, flush=True)
    elif event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost", "0.0.0.0", "::1", None):
        print("REQUEST", arguments[0], flush=True)
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITE and arguments[0] != os.devnull:
        print("WRITTEN", arguments[0], flush=True)
    elif event in CHANGES:
        print("WRITTEN", event, arguments, flush=True)

sys.addaudithook(watch)
sys.argv = [sys.argv[1]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextmanager
def watched_space(models, folder, python=sys.executable, app=ROOT / "space" / "app.py"):
    """Start the Space in a process that tells of requests and writes; give its address and its log."""
    places = {"HOME": "home", "TMPDIR": "tmp", "HF_HOME": "hf", "GRADIO_TEMP_DIR": "gradio", "XDG_CACHE_HOME": "cache"}
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("HF_", "GRADIO_", "PYTHON"))
    }
    environment |= {name: str(folder / place) for name, place in places.items()}
    environment |= {"SPACE_MODELS": str(models), "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for place in (*places.values(), "work"):
        (folder / place).mkdir(parents=True)
    log = folder.parent / f"{folder.name}.txt"
    command = [str(python), "-c", WATCH, str(app)]
    with open(log, "w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder / "work"
        )
    try:
        for _ in range(600):
            found = re.search(r"Running on local URL: +(http://\S+)", log.read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.2)
        assert found, log.read_text()
        yield found[1], log
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait()


def files(folder):
    """Everything that lies in a folder, and when it was changed."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
