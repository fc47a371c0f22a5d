"""What kernels lack for sched_ext schedulers, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab.render.cells import plural
from schedlab.render.grid import columns

KINDS = ("option", "kfunc", "variable", "helper", "type", "field", "constant", "operation", "map", "target")
"""In the order in which they are counted."""

Lack = Mapping[str, Any]


def text(objects: Sequence[Mapping[str, Any]]) -> str:
    """For each object, which kernels it can run on, and what the others lack with the place of its first use."""
    return "\n\n".join(_object(one) for one in objects)


def _object(one: Mapping[str, Any]) -> str:
    needs = one["needs"]
    counts = (
        plural(needs["operations"], "operation"),
        plural(needs["kfuncs"], "kfunc"),
        plural(needs["relocations"], "relocation"),
        plural(needs["maps"], "map"),
    )
    lines = [f"{Path(one['object']).name} ({one['scheduler']}): {', '.join(counts)}"]
    head = ["kernel", "runs there", "lacks"]
    rows = [[k["kernel"], "yes" if k["runs"] else "no", _summary(_needed(k))] for k in one["lacks"]]
    lines += columns([head, *rows], "<<<")
    lines += [line for kernel in one["lacks"] for line in _details(kernel)]
    return "\n".join(lines)


def _needed(kernel: Mapping[str, Any]) -> list[Lack]:
    return [lack for lack in kernel["lacks"] if lack["needed"]]


def _summary(lacks: Sequence[Lack]) -> str:
    """`2 kfuncs, 1 field`."""
    counted = [(kind, sum(lack["what"] == kind for lack in lacks)) for kind in KINDS]
    return ", ".join(plural(count, kind) for kind, count in counted if count) or "nothing"


def _details(kernel: Mapping[str, Any]) -> list[str]:
    needed = _needed(kernel)
    optional = [lack for lack in kernel["lacks"] if not lack["needed"]]
    lines = []
    if needed:
        lines += ["", f"{kernel['kernel']} lacks:"]
        lines += [line for lack in needed for line in _lack(lack)]
    if optional:
        lines += ["", f"not in {kernel['kernel']}, but the object tests for it and has an alternative:"]
        lines += [f"  {lack['what']} {lack['name']}{_reason(lack)}" for lack in optional]
    return lines


def _reason(lack: Lack) -> str:
    return f" ({lack['why']})" if lack["why"] else ""


def _lack(lack: Lack) -> list[str]:
    lines = [f"  {lack['what']} {lack['name']}{_reason(lack)}"]
    if lack["place"]:
        more = f", and {plural(lack['uses'] - 1, 'more place')}" if lack["uses"] > 1 else ""
        lines.append(f"    used by {lack['place']}{more}")
    return lines


def stress_text(objects: Sequence[Mapping[str, Any]]) -> str:
    """For each object and kernel, under how many loads the scheduler failed, and how it ended under each of those."""
    return "\n\n".join(_stressed(one) for one in objects)


def _stressed(one: Mapping[str, Any]) -> str:
    load, runs = one["load"], one["runs"]
    failed = [run for run in runs if run["exit"]]
    seconds = load["duration_ns"] / 1e9
    lines = [
        f"{Path(one['object']).name} ({one['scheduler']}), types of {one['kernel']}:",
        f"  {plural(len(runs), 'load')} of {seconds:g} s with {plural(load['tasks'], 'task')} on "
        f"{plural(load['cpus'], 'CPU')}, {sum(run['wakeups'] for run in runs):,} wakeups, "
        f"{sum(run['instructions'] for run in runs):,} instructions",
        f"  {_failures(len(failed), len(runs))}",
    ]
    for run in failed:
        ended = run["exit"]
        lines += ["", f"  seed {run['seed']} ends after {ended['at_ns'] / 1e9:.3f} s: {ended['kind']}"]
        lines.append(f"    {ended['message']}")
        if ended["place"]:
            lines.append(f"    in {ended['place']}")
    return "\n".join(lines)


def _failures(failed: int, runs: int) -> str:
    return f"the scheduler fails under {failed} of {runs}" if failed else "no failure"
