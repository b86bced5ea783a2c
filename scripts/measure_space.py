"""Measure the Space as programs see it: how long an answer takes, parallel calls, and memory over many calls.

    python scripts/measure_space.py --output out/space.json

starts ``space/app.py`` with the shipped models in a process of its own and asks it over HTTP with gradio_client:

    latency   from request to translation with all attention weights (/attention, 4 beams), for ten-word sentences that
              the Space has not seen, one after the other: median and 95th percentile for each model
    parallel  50 calls of all endpoints from 8 clients at once: the same answers as one after the other?
    memory    of the process, every 100 of 1,000 calls of all endpoints, by clients that come and go: flat?

It takes some minutes on two cores, and prints a table. The machine should be idle otherwise; the load average is
printed with the figures. A Space that runs elsewhere has an address, ``--url http://127.0.0.1:7860``; its memory is not
measured.
"""

import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from gradio_client import Client
from transformers import HfArgumentParser

ROOT = Path(__file__).resolve().parents[1]
WORDS = (
    ("old", "young", "tall", "good", "tired", "poor"),
    ("teacher", "woman", "doctor", "boy", "king", "soldier"),
    ("reads", "writes", "finds", "sees", "wants", "hides"),
    ("long", "new", "little", "red", "strange", "white"),
    ("letter", "book", "key", "picture", "paper", "bottle"),
    ("garden", "house", "kitchen", "car", "street", "church"),
)
BEAMS, EVERY = 4, 100
WARM_UP, VISIT = 300, 2  # calls before the memory is watched, and of one client: more come than the Space remembers
PATIENT = {"timeout": 60}


@dataclass
class MeasureArguments:
    """What is measured."""

    url: str | None = field(default=None, metadata={"help": "Address of a running Space; if none, one is started."})
    models: Path = field(default=ROOT / "space" / "models", metadata={"help": "Models of the Space that is started."})
    sentences: int = field(default=40, metadata={"help": "Sentences for the latency of each model."})
    parallel: int = field(default=50, metadata={"help": "Calls at once."})
    clients: int = field(default=8, metadata={"help": "Clients that make them."})
    calls: int = field(default=1000, metadata={"help": "Calls while the memory is watched; 0 for none."})
    output: Path | None = field(default=None, metadata={"help": "JSON file to write."})

    def __post_init__(self) -> None:
        for name, least in (("sentences", 1), ("parallel", 1), ("clients", 1), ("calls", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} must be at least {least}")


@contextmanager
def running_space(models: Path) -> Iterator[tuple[str, int]]:
    """Start the Space; give its address and the number of its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"SPACE_MODELS": str(models), "TQDM_DISABLE": "1"}
    settings |= {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)}
    command = [sys.executable, str(ROOT / "space" / "app.py")]
    process = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise ValueError(f"the Space ended with status {process.returncode} before it answered")
            try:
                httpx.get(url)
                break
            except httpx.ConnectError:
                time.sleep(0.2)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def sentences() -> Iterator[str]:
    """Give sentences of ten words, none twice."""
    choices = list(itertools.product(*WORDS))
    for number in range(len(choices)):
        one, two, three, four, five, six = choices[number * 7919 % len(choices)]  # neighbours differ in many words
        yield f"The {one} {two} {three} a {four} {five} in the {six}."


def model_names(client: Client) -> list[str]:
    """Give the names of the models, as the endpoint lists them to whom asks for one that is not there."""
    try:
        client.predict("x", "", api_name="/translate")
    except Exception as error:
        _, known, names = str(error).partition("there are: ")
        if not known or names == "none.":
            raise ValueError(f"the Space has no models to measure: {error}") from error
        return names.rstrip(".").split(", ")
    raise ValueError("the Space translated with a model without a name")


def measure_latency(client: Client, names: list[str], fresh: Iterator[str], count: int) -> dict[str, dict[str, float]]:
    """Ask one after the other; give median and 95th percentile in milliseconds for each model."""
    results = {}
    for name in names:
        seconds = []
        for number in range(count + 3):
            sentence, start = next(fresh), time.perf_counter()
            client.predict(sentence, name, BEAMS, api_name="/attention")
            seconds += [time.perf_counter() - start] if number >= 3 else []  # the first ones warm up
        results[name] = {
            "median_ms": 1000 * statistics.median(seconds),
            "p95_ms": 1000 * float(np.percentile(seconds, 95)),
        }
    return results


def ask(client: Client, question: tuple) -> Any:
    """Ask an endpoint: its name, and its arguments."""
    endpoint, *arguments = question
    return client.predict(*arguments, api_name=endpoint)


def endpoint_names(client: Client) -> set[str]:
    """Give the names of the endpoints; a Space has those that its models allow."""
    described: Any = client.view_api(return_format="dict", print_info=False)
    return set(described["named_endpoints"])


def questions(names: list[str], endpoints: set[str], fresh: Iterator[str], count: int) -> list[tuple]:
    """Mix all endpoints, models and sentences."""
    attending = [name for name in names if not name.endswith("-none")]
    with_heads = [name for name in names if name.endswith("-transformer")]
    mixed = []
    for number in range(count):
        sentence = next(fresh)
        turn = number // 12  # after which every endpoint has been asked; the next time of other models
        name, looking, headed = (
            group[(number + turn) % len(group)] if group else None for group in (names, attending, with_heads)
        )
        possible = [
            ("/attention", sentence, name, BEAMS),
            ("/translate", sentence, name, 1),
            ("/beams", sentence, name, BEAMS),
            ("/next_pieces", sentence, name, BEAMS, 5),
            ("/hide_words", sentence, looking, [1], BEAMS),
            ("/remove_heads", sentence, headed, 0, [0], "cross", BEAMS),
            ("/write_instead", sentence, name, 1, 20, BEAMS),
            ("/metrics", sentence, sentence.replace(" a ", " the ")),
            ("/fill_in", sentence.replace(" a ", " ___ "), 5),
            ("/continue_text", sentence, 5, 5),
            ("/classify_digit", [[(number + row * column) % 17 for column in range(8)] for row in range(8)]),
            ("/describe_shapes", number),
        ]
        there = [question for question in possible if question[0] in endpoints and None not in question]
        mixed.append(there[number % len(there)])
    return mixed


def measure_parallel(url: str, asked: list[tuple], serial: list[Any], clients: int) -> dict[str, Any]:
    """Ask the same questions all at once; the Space, which remembers 32 translations, has forgotten them meanwhile."""
    visitors = [Client(url, verbose=False, httpx_kwargs=PATIENT) for _ in range(clients)]
    with ThreadPoolExecutor(len(asked)) as pool:
        start = time.perf_counter()
        answers = list(pool.map(ask, itertools.cycle(visitors), asked))
        seconds = time.perf_counter() - start
    equal = [answer == expected for answer, expected in zip(answers, serial, strict=True)]
    return {"calls": len(asked), "clients": clients, "equal": sum(equal), "calls_per_second": len(asked) / seconds}


def resident_megabytes(process: int) -> float:
    """Read how much memory a process holds."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def measure_memory(url: str, process: int, asked: Iterator[tuple], calls: int) -> dict[str, Any]:
    """Ask many questions by clients that come and go; give the memory and its slope after the warm-up."""
    numbers, sizes = [], []
    for number in range(WARM_UP + calls + 1):
        if number >= WARM_UP and (number - WARM_UP) % EVERY == 0:
            numbers.append(number - WARM_UP)
            sizes.append(resident_megabytes(process))
        if number % VISIT == 0:
            client = Client(url, verbose=False, httpx_kwargs=PATIENT)
        ask(client, next(asked))
    slope = float(np.polyfit(numbers, sizes, 1)[0]) * 1000
    return {"calls": numbers, "megabytes": sizes, "megabytes_per_1000_calls": slope, "flat": slope < 0.02 * sizes[0]}


def main(args: MeasureArguments, url: str, process: int | None) -> dict[str, Any]:
    """Measure, and print a table."""
    fresh, client = sentences(), Client(url, verbose=False, httpx_kwargs=PATIENT)
    names = model_names(client)
    endpoints = endpoint_names(client)
    asked = questions(names, endpoints, fresh, args.parallel)
    serial = [ask(client, question) for question in asked]
    load = os.getloadavg()[0]
    latency = measure_latency(client, names, fresh, args.sentences)
    report: dict[str, Any] = {"load_average": [load], "latency": latency}
    print(f"{'model':20} {'median':>9} {'95th percentile':>16}   load average {load:.1f}")
    for name, found in latency.items():
        print(f"{name:20} {found['median_ms']:6.0f} ms {found['p95_ms']:13.0f} ms")
    report["parallel"] = found = measure_parallel(url, asked, serial, args.clients)
    print(
        f"{found['calls']} calls at once from {found['clients']} clients: {found['equal']} equal to the serial "
        f"answers, {found['calls_per_second']:.1f} a second"
    )
    if process is not None and args.calls:
        mixed = iter(questions(names, endpoints, fresh, WARM_UP + args.calls + 1))
        report["memory"] = found = measure_memory(url, process, mixed, args.calls)
        print("memory every 100 calls, MB:", " ".join(f"{size:.0f}" for size in found["megabytes"]))
        print(f"{'flat' if found['flat'] else 'GROWS'}: {found['megabytes_per_1000_calls']:+.1f} MB in 1,000 calls")
    report["load_average"].append(os.getloadavg()[0])
    return report


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(MeasureArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        if arguments.url is None:
            with running_space(arguments.models) as (address, number):
                measured = main(arguments, address, number)
        else:
            measured = main(arguments, arguments.url, None)
        if arguments.output is not None:
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            arguments.output.write_text(json.dumps(asdict(arguments) | measured, indent=2, default=str) + "\n")
    except httpx.ConnectError as error:
        sys.exit(f"error: {arguments.url} does not answer: {error}")
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
