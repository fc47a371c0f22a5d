"""The CPUs that a placement asked about, as a table: why this one and not another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.render.grid import columns


def placement_lines(decision: Mapping[str, Any]) -> list[str]:
    """A line for each step, in the kernel's order; the last one is the step that decided."""
    looked = decision.get("looked") or ()
    if not looked:
        return []
    rows = [["asked", "CPU", "cache", "idle", "queued", "load", "answer"]]
    rows += [_row(step) for step in looked]
    return columns(rows, "<<>>>><", indent=2)


def _row(step: Mapping[str, Any]) -> list[str]:
    # The two of wake_affine are named after their features.
    feature = f" [{step['feature']}]" if step["feature"] and "wake_affine" not in step["function"] else ""
    numbers = ", ".join(f"{name} {n:,}" for name, n in step["numbers"])
    return [
        step["function"] + feature,
        f"{cpu_list(step['cpus'])} {step['which']}",
        str(step["cache"]),
        _idle(step),
        f"{step['nr_running']:,}",
        f"{step['load']:,}",
        step["answer"] + (f" ({numbers})" if numbers else ""),
    ]


def _idle(step: Mapping[str, Any]) -> str:
    if len(step["cpus"]) > 1:
        return f"{step['idle']} of {len(step['cpus'])}"
    return "yes" if step["idle"] else "SCHED_IDLE" if step["sched_idle"] else "no"


def cpu_list(cpus: Sequence[int]) -> str:
    """As the kernel prints masks: 0-3,8."""
    here = set(cpus)
    starts = [cpu for cpu in cpus if cpu - 1 not in here]
    ends = [cpu for cpu in cpus if cpu + 1 not in here]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
