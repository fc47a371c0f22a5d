"""The CPUs that a placement considered, as a table: why this one and not another."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.native.decisions import CandidateView, DecisionView
from schedlab.render.grid import columns


def placement_lines(decision: DecisionView) -> list[str]:
    """A line for each candidate, in the kernel's order; the last one is the candidate that decided."""
    candidates = decision.get("candidates") or ()
    if not candidates:
        return []
    rows = [["function", "CPU", "cache", "idle", "queued", "load", "answer"]]
    rows += [_row(one) for one in candidates]
    return columns(rows, "<<>>>><", indent=2)


def _row(candidate: CandidateView) -> list[str]:
    # The two of wake_affine are named after their features.
    feature = (
        f" [{candidate['feature']}]" if candidate["feature"] and "wake_affine" not in candidate["function"] else ""
    )
    numbers = ", ".join(f"{name} {n:,}" for name, n in candidate["numbers"])
    return [
        candidate["function"] + feature,
        f"{cpu_list(candidate['cpus'])} {candidate['which']}",
        str(candidate["cache"]),
        _idle(candidate),
        f"{candidate['nr_running']:,}",
        f"{candidate['load']:,}",
        candidate["answer"] + (f" ({numbers})" if numbers else ""),
    ]


def _idle(candidate: CandidateView) -> str:
    if len(candidate["cpus"]) > 1:
        return f"{candidate['idle']} of {len(candidate['cpus'])}"
    return "yes" if candidate["idle"] else "SCHED_IDLE" if candidate["sched_idle"] else "no"


def cpu_list(cpus: Sequence[int]) -> str:
    """As the kernel prints masks: 0-3,8."""
    here = set(cpus)
    starts = [cpu for cpu in cpus if cpu - 1 not in here]
    ends = [cpu for cpu in cpus if cpu + 1 not in here]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
