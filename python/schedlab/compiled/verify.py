"""The decisions of a native scheduler held against those of a row, on drawn loads, up to the first difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.compiled import child, records, traced
from schedlab.compiled.load import Load, only
from schedlab.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from schedlab.compiled.records import Decisions
    from schedlab.engine import Cancel, Engine

KINDS = ("switches", "wakeups", "migrations")
HEADS = {
    "switches": "CPU {1}: task {2} to task {3}",
    "wakeups": "task {1} wakes up on CPU {2}",
    "migrations": "task {1} moves from CPU {2} to CPU {3}",
}


@dataclass(frozen=True)
class Difference:
    """The first decision that differs."""

    time_ns: int
    kind: str
    row: str
    """What the row decides at this point, in words."""
    native: str
    """What the kernel's own code decides."""


@dataclass(frozen=True)
class Comparison:
    """One load on both sides."""

    compared: dict[str, int]
    """Equal decisions by kind, up to the first difference."""
    difference: Difference | None
    warnings: tuple[str, ...]
    failure: str
    stubs: dict[str, int]


def compare(engine: Engine, program: Path, row: str, load: Load, cancel: Cancel | None = None) -> Comparison:
    """Execute a load on both sides.

    Raises:
        RunError: the native program can't be started, or does not return.
    """
    output = child.execute(program, load, timeout_s=3600)
    scenario = engine.loads(load.scenario(row), "load.toml")
    ours = records.parse(traced.decisions(engine, scenario, "row", cancel))
    theirs = records.parse(output.records)
    until, found = first_difference(ours, theirs)
    if output.failure:
        until = min(until, _stopped_at(output.failure))
    compared = {kind: _before(getattr(ours, kind), until) for kind in KINDS}
    return Comparison(compared, found, output.warnings, output.failure, output.stubs)


NEVER = 2**63 - 1


def _stopped_at(failure: str) -> int:
    words = failure.split()
    return int(words[1]) if words[:1] == ["at"] and words[1].isdigit() else 0


def _before(rows: NDArray[np.int64], until: int) -> int:
    import numpy as np

    return int(np.searchsorted(rows[:, 0], until))


def first_difference(ours: Decisions, theirs: Decisions) -> tuple[int, Difference | None]:
    """The time up to which both decide the same, and the decision that differs there."""
    found = list[Difference]()
    for kind in KINDS:
        a, b = getattr(ours, kind), getattr(theirs, kind)
        index = _first(a, b)
        if index is None:
            continue
        times = [int(rows[index, 0]) for rows in (a, b) if index < len(rows)]
        time = min(times)
        found.append(Difference(time, kind, _words(kind, a, index, time), _words(kind, b, index, time)))
    if not found:
        return NEVER, None
    # At the same time the cause comes first: a task that was moved, then one that was woken, then the switch.
    first = min(found, key=lambda difference: (difference.time_ns, -KINDS.index(difference.kind)))
    return first.time_ns, first


def _first(a: NDArray[np.int64], b: NDArray[np.int64]) -> int | None:
    import numpy as np

    common = min(len(a), len(b))
    different = np.flatnonzero((a[:common] != b[:common]).any(axis=1))
    if len(different):
        return int(different[0])
    return None if len(a) == len(b) else common


def _words(kind: str, rows: NDArray[np.int64], index: int, time: int) -> str:
    if index >= len(rows):
        return "nothing until the end of the run"
    row = [int(x) for x in rows[index]]
    said = HEADS[kind].format(*row)
    return said if row[0] == time else f"nothing; next, at {row[0] / 1e6:.6f} ms: {said}"


def shrink(differs: Callable[[Load], Difference | None], load: Load, say: Callable[[str], None]) -> Load:
    """The smallest load found that still differs: shorter, with fewer tasks, steps and groups."""
    found = differs(load)
    if found is None:
        raise RunError("the load no longer differs", hint="this is a bug in schedlab: runs of a load must be equal")
    load = replace(load, duration_ns=found.time_ns + 1_000_000)
    size = max(1, len(load.tasks) // 2)
    while size:
        start = 0
        while start < len(load.tasks):
            kept = [i for i in range(len(load.tasks)) if not start <= i < start + size]
            if kept and (smaller := _shorter(differs, only(load, kept))):
                load = smaller
                say(f"{len(load.tasks)} tasks, {load.duration_ns / 1e6:.3f} ms")
            else:
                start += size
        size //= 2
    return _plainer(differs, load)


def _shorter(differs: Callable[[Load], Difference | None], load: Load) -> Load | None:
    found = differs(load)
    return replace(load, duration_ns=found.time_ns + 1_000_000) if found else None


def _plainer(differs: Callable[[Load], Difference | None], load: Load) -> Load:
    """Tasks without attributes that do not matter."""
    for index, task in enumerate(load.tasks):
        for plain in ({"nice": 0}, {"policy": "normal", "priority": 0}, {"slice_ns": 0}, {"group": 0}, {"cpus": ()}):
            changed = replace(load.tasks[index], **plain)
            if changed == load.tasks[index]:
                continue
            tasks = (*load.tasks[:index], changed, *load.tasks[index + 1 :])
            load = _shorter(differs, replace(load, tasks=tasks)) or load
        del task
    return load
