# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The switches of the operator: environment variables that let visitors do more. Without them all are off."""

from collections.abc import Mapping


def read_switches(environment: Mapping[str, str]) -> tuple[bool, bool]:
    """Read whether visitors may open other checkpoints, and whether those may bring Python code that is run.

    Args:
        environment: the environment variables, of which SPACE_OPEN and SPACE_REMOTE_CODE are read.

    Returns:
        Both, in this order.

    Raises:
        ValueError: if one is neither 0, 1 nor empty, or the second is on without the first.
    """
    opens, runs_code = (_read(environment, name) for name in ("SPACE_OPEN", "SPACE_REMOTE_CODE"))
    if runs_code and not opens:
        raise ValueError("SPACE_REMOTE_CODE is '1' without SPACE_OPEN; it is about opened checkpoints: set both to 1")
    return opens, runs_code


def _read(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{name} is {value!r}; it must be 1 (on), 0 or empty (off)")
    return value == "1"
