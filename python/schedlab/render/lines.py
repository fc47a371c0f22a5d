"""Which metrics a short table shows first, how they are named, and which verdicts it may colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.judge import Judgement

MOST = 12
"""Lines of metrics; the others are counted."""


def importance(m: MetricComparison, j: Judgement) -> tuple[bool, bool, bool]:
    """Sorts metrics: declared ones, then those with a direction, then those that changed; otherwise as declared."""
    return (not m.metric.declared, m.metric.better == "neither", j.effect == "none")


def trusted(comparison: Comparison, j: Judgement) -> bool:
    """Whether the evidence carries the verdict, so that it may be coloured: a measured one always does."""
    return comparison.arm != "sim" or (j.evidence is not None and j.evidence.carries)


def named(m: MetricComparison) -> str:
    """The metric with its unit."""
    return f"{m.metric.name} {m.metric.unit}".rstrip()
