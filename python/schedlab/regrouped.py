"""The same comparison with the other grouping of the tasks: whether a verdict depends on groups that nothing is set on.

Whether services and sessions are groups depends on the distribution and on what starts them. A scenario states one
grouping; this module says what the other one would have answered, with a few seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedlab.statistics import paired_difference

if TYPE_CHECKING:
    from schedlab.comparison import Comparison
    from schedlab.engine import Engine
    from schedlab.judge import Judgement
    from schedlab.scenario import Metric, Scenario

SEEDS = 3
"""How many seeds `--robust` runs again if the scenario does not say."""
WORDS = {"none": "without groups", "sessions": "with a group for each session (autogroup)"}

Key = tuple[str, str, str]
"""Metric, baseline and variant."""


@dataclass(frozen=True, slots=True)
class Regrouped:
    """What the other grouping answers."""

    grouping: str
    """`none` or `sessions`."""
    seeds: int
    changes: Mapping[Key, tuple[float, bool]]
    """The change in percent, and whether all seeds agree on its direction."""

    def sentence(self, metric: Metric, j: Judgement) -> str:
        """What the other grouping says about a judgement."""
        found = self.changes.get((metric.name, j.a, j.b))
        if found is None or not j.difference.percent:
            return ""
        change, agree = found
        where = f"{WORDS[self.grouping]} {metric.name} changes by {change:+.3g}% ({self.seeds} seeds)"
        match self.holds(metric, j):
            case None:
                return ""
            case True:
                return f"It has the same sign {where.replace(f' {metric.name} changes', ', where it changes')}."
            case False if agree and abs(change) > metric.margin_pct:
                return f"The verdict depends on groups: {where}."
        return f"The verdict depends on groups: {where}, which shows no direction."

    def holds(self, metric: Metric, j: Judgement) -> bool | None:
        """Whether a verdict has the same sign; None if there is nothing to compare."""
        change, agree = self.changes.get((metric.name, j.a, j.b), (0.0, False))
        clear = agree and abs(change) > metric.margin_pct
        if j.effect == "none":
            return False if clear else None
        return clear and (change > 0) == ((j.difference.estimate or 0.0) > 0)


def other(scenario: Scenario) -> str | None:
    """The grouping to compare with; None if there is none, or the variants themselves differ in their groups."""
    found = scenario.description.get("other_grouping")
    return str(found) if found else None


def seeds(scenario: Scenario, *, always: bool) -> int:
    """How many seeds are to be run again: as the scenario says, or with `always` at least some."""
    asked = int(scenario.description.get("check_groups") or 0)
    return max(asked, SEEDS) if always else asked


def regroup(engine: Engine, scenario: Scenario, grouping: str, overrides: Mapping[str, Any]) -> Scenario:
    """The scenario with that grouping; `overrides` are those with which it was loaded, with the seeds to run."""
    return engine.load(scenario.file, {**overrides, "grouping": grouping})


def regrouped(grouping: str, comparison: Comparison) -> Regrouped:
    """The changes of a comparison that ran with that grouping."""
    changes: dict[Key, tuple[float, bool]] = {}
    for m in comparison.metrics:
        for j in m.comparisons:
            a, b = m.samples[j.a], m.samples[j.b]
            d = paired_difference(a, b)
            if d.percent and d.estimate is not None:
                changes[m.metric.name, j.a, j.b] = (d.estimate, _agree(a, b))
    return Regrouped(grouping, len(comparison.seeds), changes)


def _agree(a: Sequence[float | None], b: Sequence[float | None]) -> bool:
    signs = {(y > x) - (y < x) for x, y in zip(a, b, strict=True) if x is not None and y is not None}
    return len(signs) == 1 and 0 not in signs


def to_record(found: Regrouped) -> dict[str, Any]:
    """For the directory of results and for JSON."""
    changes = [
        {"metric": metric, "a": a, "b": b, "change_pct": float(f"{change:.10g}"), "agree": agree}
        for (metric, a, b), (change, agree) in found.changes.items()
    ]
    return {"grouping": found.grouping, "seeds": found.seeds, "changes": changes}


def from_record(record: Mapping[str, Any]) -> Regrouped:
    """The counterpart of `to_record`; KeyError, TypeError or ValueError for anything else."""
    changes = {
        (str(c["metric"]), str(c["a"]), str(c["b"])): (float(c["change_pct"]), bool(c["agree"]))
        for c in record["changes"]
    }
    grouping = str(record["grouping"])
    if grouping not in WORDS:
        raise ValueError(f"grouping {grouping}")
    return Regrouped(grouping, int(record["seeds"]), changes)
