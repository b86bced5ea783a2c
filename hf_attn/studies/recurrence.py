# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A recurrent network against self-attention in time and memory: what can be done at once is not always done sooner.

    recurrent        n steps, one after another, of d^2 multiplications each: time ~ n
    self-attention   all at once, n^2 d multiplications and n^2 weights a head: time ~ n^2; memory ~ n^2 for `eager`,
                     which writes the weights down, ~ n for `sdpa`, which does not

Sources: Vaswani 2017 (arXiv 1706.03762) table 1; FlashAttention, Dao 2022 (2205.14135), for sdpa. A lecture measured 45
ms for nn.RNN and 346 ms for self-attention at 512 words on two cores. Look at: the ratio of the two, taken in the same
round; the exponents of growth; and, where there are many cores, that only attention becomes faster with them. Times are
medians of the clock; `processor` is that of the process alone, all its threads together, which other programs disturb
less, and the one that ratios and exponents are made of if there is one thread. Memory is the peak of what torch's
allocator gave out in a forward pass without gradients, as its profiler saw.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ..models.multihead import MultiHeadAttention
from ..models.recurrent import EncoderRnnLayer
from .layer_types import chain_of_products
from .tables import growth, seeded, text_table

Reader = Callable[[torch.Tensor], torch.Tensor]
QUICK: dict[str, Any] = {"width": 16, "heads": 2, "length": 32, "lengths": (16, 32, 64), "batch": 2, "repeats": 3}


def readers(width: int, heads: int) -> dict[str, Reader]:
    """Build what is compared; each reads states (batch, length, width)."""
    recurrent = EncoderRnnLayer("rnn", width, width, bidirectional=False)
    attention = MultiHeadAttention(width, heads)
    found: dict[str, Reader] = {"nn.RNN": lambda states: recurrent(states)[0]}
    for name in ("eager", "sdpa"):
        found[name] = lambda states, name=name: attention(states, implementation=name)[0]
    return found


def forward(reader: Reader, states: torch.Tensor) -> None:
    """Read, as in use."""
    with torch.no_grad():
        reader(states)


def forward_and_backward(reader: Reader, states: torch.Tensor) -> None:
    """Read and compute gradients, as in training."""
    reader(states).square().mean().backward()


def time_in_rounds(calls: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[tuple[float, float]]]:
    """Take the milliseconds of each call, all in turn in each of several rounds, after one round that does not count.

    Returns:
        For each call, and each round, those of the clock and those of the processor.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for number in range(repeats + 1):
        for name, call in calls.items():
            start, busy = time.perf_counter(), time.process_time()
            call()
            if number:
                taken[name].append((1000 * (time.perf_counter() - start), 1000 * (time.process_time() - busy)))
    return taken


def peak_bytes(call: Callable[[], None]) -> int:
    """Measure the most that torch's allocator had given out at one time during a call, less what it had before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    given, peak = 0, 0
    for event in sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: event["ts"]):
        given += event["args"]["Bytes"]
        peak = max(peak, given)
    return peak


def measure(
    found: dict[str, Reader], states: torch.Tensor, repeats: int, training: bool = False
) -> list[dict[str, Any]]:
    """Measure every reader on the same states (batch, length, width)."""
    what = {name: partial(forward, reader, states) for name, reader in found.items()}
    taken = time_in_rounds(what, repeats)
    kind = int(torch.get_num_threads() == 1)  # the processor's time, where it is not the sum of several threads
    learning = {name: partial(forward_and_backward, reader, states) for name, reader in found.items()}
    learnt = time_in_rounds(learning, repeats) if training else {}
    rows = []
    for name, reader in found.items():
        ratios = [own[kind] / peer[kind] for own, peer in zip(taken[name], taken["nn.RNN"])]
        clock, processor = (statistics.median(times) for times in zip(*taken[name]))
        row: dict[str, Any] = {
            "reader": name,
            "batch": states.shape[0],
            "length": states.shape[1],
            "milliseconds": clock,
            "processor": processor,
            "ratio": statistics.median(ratios),
            "megabytes": peak_bytes(what[name]) / 2**20,
            "steps": chain_of_products(reader(states[:1])),
        }
        row["path"] = row["steps"]  # one layer connects every two words, in all three
        if training:
            row["training"] = statistics.median(times[kind] for times in learnt[name])
        rows.append(row)
    return rows


def run(
    width: int = 256,
    heads: int = 8,
    length: int = 512,
    batch: int = 32,
    lengths: Sequence[int] = (128, 256, 512, 1024, 2048, 4096),
    repeats: int = 7,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure at one length, and the growth with the length.

    Args:
        width: of the states.
        heads: of self-attention.
        length: words in a text.
        batch: texts; the growth is measured on two.
        lengths: for the growth, ascending.
        repeats: rounds, each of which runs all readers in turn.
        seed: of weights and states.
    """
    with seeded(seed):
        found = readers(width, heads)
        rows = measure(found, torch.randn(batch, length, width), repeats, training=True)
        curve = [row for many in lengths for row in measure(found, torch.randn(2, many, width), repeats)]
    threads = torch.get_num_threads()
    timed = "processor" if threads == 1 else "milliseconds"
    exponents = []
    for name in found:
        own = [row for row in curve if row["reader"] == name]
        times, memory = ([row[what] for row in own] for what in (timed, "megabytes"))
        fit = {"time": growth(lengths, times), "time_when_long": growth(lengths[-3:], times[-3:])}
        exponents.append({"reader": name, **fit, "memory": growth(lengths, memory)})
    sizes = {"width": width, "heads": heads, "repeats": repeats, "threads": threads, "timed": timed}
    return {**sizes, "rows": rows, "growth": curve, "exponents": exponents}


def show(result: dict[str, Any]) -> str:
    """Write the times at one length, those of the growth, and the exponents."""
    columns = {"reader": "", "batch": "d", "length": "d", "milliseconds": ".1f", "processor": ".1f", "ratio": ".2f"}
    columns |= {"megabytes": ".1f", "steps": "d", "path": "d"}
    sizes = f"width {result['width']}, {result['heads']} heads, {result['threads']} threads, {result['repeats']} rounds"
    return "\n".join(
        [
            f"{sizes}; medians, and their ratio to nn.RNN:",
            text_table(result["rows"], {**columns, "training": ".1f"}),
            "two texts:",
            text_table(result["growth"], columns),
            "grows with the length to the power of",
            text_table(result["exponents"], {"reader": "", "time": ".2f", "time_when_long": ".2f", "memory": ".2f"}),
        ]
    )


def draw(result: dict[str, Any]) -> Any:
    """Draw time and memory against the length."""
    from .figures import lines, panels

    curve = result["growth"]
    lengths = sorted({row["length"] for row in curve})
    figure, axes = panels(1, 2, 4.8, 3.8)
    for one, name, label, power in ((axes[0], result["timed"], "ms", "time"), (axes[1], "megabytes", "MiB", "memory")):
        by_name = {}
        for fit in result["exponents"]:
            own = [row[name] for row in curve if row["reader"] == fit["reader"]]
            by_name[f"{fit['reader']}, ~ n^{fit[power]:.1f}"] = own
        lines(one, lengths, by_name, xscale="log", yscale="log", xlabel="words", ylabel=label)
        one.set_title(f"{power} of a forward pass, {curve[0]['batch']} texts")
        one.set_xticks(lengths, [str(length) for length in lengths])
        one.minorticks_off()
    return figure
