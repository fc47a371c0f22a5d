"""Runs a native scheduler: a process without rights that reads a load and writes the decisions of its kernel."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from schedlab.compiled.load import Load
from schedlab.errors import RunError


@dataclass(frozen=True)
class Output:
    """What a native scheduler has written."""

    records: bytes
    stubs: dict[str, int]
    """Functions without a meaning in user space that were called, and how often."""
    warnings: tuple[str, ...]
    """Each WARN of the kernel, with its file and line."""
    failure: str
    """Why it stopped before the end: a BUG, a crash, a double lock, a failed check; empty: it did not."""


def execute(program: Path, load: Load, timeout_s: float | None = None) -> Output:
    """Run a load to its end; a crash of the child is a result, not an error.

    Raises:
        RunError: if it can't be started or takes longer than `timeout_s`.
    """
    try:
        done = subprocess.run(
            [str(program)], input=load.native().encode(), capture_output=True, timeout=timeout_s, env={}, check=False
        )
    except OSError as error:
        raise RunError(f"{program}: {error.strerror}", hint="`schedlab kernel build` builds it again") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"{program}: no end after {timeout_s:g} s", hint="the kernel's code does not return") from None
    lines = done.stderr.decode(errors="replace").splitlines()
    stubs = {m[1]: int(m[2]) for line in lines if (m := re.fullmatch(r"stub: (\S+) (\d+)", line))}
    failure = next((line.removeprefix("fail: ") for line in lines if line.startswith("fail: ")), "")
    if not failure and done.returncode:
        failure = f"ended by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    warnings = tuple(line.removeprefix("warn: ") for line in lines if line.startswith("warn: "))
    return Output(records=done.stdout, stubs=stubs, warnings=warnings, failure=failure)
