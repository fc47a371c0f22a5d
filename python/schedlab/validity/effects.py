"""Compares a change between two variants on the simulator and on a real kernel, in both directions.

What the kernel shows, the simulator must show; and what the simulator shows, the kernel must show. Only the first
would let the simulator invent changes without anything failing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from schedlab.scenario import Metric
from schedlab.statistics import Difference, log_of, paired_difference
from schedlab.statistics.interval import percent_of
from schedlab.store import Result
from schedlab.validity.rows import family_of

SMALLEST_PCT = 5.0
"""Changes below this size are not judged."""


@dataclass(frozen=True, slots=True)
class Change:
    """One metric's change from one variant to another on one arm."""

    percent: float | None
    certain: bool
    """The interval leaves out 0; with too few seeds for one, no value of one variant lies among those of the other."""

    @property
    def judged(self) -> bool:
        """Whether the other arm must show it too."""
        return self.certain and self.percent is not None and abs(self.percent) > SMALLEST_PCT


@dataclass(frozen=True, slots=True)
class Effect:
    """The same change on both arms."""

    scenario: str
    metric: str
    family: str
    a: str
    b: str
    simulated: Change
    measured: Change

    @property
    def of_measured(self) -> str | None:
        """`same`, `WRONG` or `not shown` when simulated; None where the measured change is not judged."""
        return _confirmed(self.measured, self.simulated)

    @property
    def of_simulated(self) -> str | None:
        """`same`, `WRONG` or `not shown` when measured; None where the simulated change is not judged."""
        return _confirmed(self.simulated, self.measured)

    @property
    def gap(self) -> float | None:
        """How much larger the ratio of the two variants is when simulated, in percent."""
        log = self.log_gap
        return None if log is None else percent_of(log)

    @property
    def log_gap(self) -> float | None:
        """The same as a difference of log ratios."""
        sides = self.simulated.percent, self.measured.percent
        if any(side is None or side <= -100 for side in sides):
            return None
        return log_of(sides[0] or 0.0) - log_of(sides[1] or 0.0)


def _confirmed(change: Change, other: Change) -> str | None:
    if not change.judged:
        return None
    if not other.certain or not other.percent:
        return "not shown"
    return "same" if ((change.percent or 0) > 0) == (other.percent > 0) else "WRONG"


def effects(simulated: Result, measured: Result) -> Iterator[Effect]:
    """Every metric of every variant against the first."""
    scenario = measured.scenario
    names = [v.name for v in scenario.variants]
    for metric in scenario.metrics:
        for other in names[1:]:
            sides = (_change(result, metric, names[0], other) for result in (simulated, measured))
            yield Effect(scenario.name, metric.name, family_of(metric), names[0], other, *sides)


def _change(result: Result, metric: Metric, a: str, b: str) -> Change:
    first, second = _by_seed(result, a, metric), _by_seed(result, b, metric)
    d = paired_difference(first, second)
    return Change(d.estimate if d.percent else None, _certain(d, first, second))


def _certain(d: Difference, a: list[float | None], b: list[float | None]) -> bool:
    if d.interval:
        return d.interval.excludes_zero()
    if d.constant:
        return d.pairs > 0 and d.estimate != 0
    first, second = ([x for x in side if x is not None] for side in (a, b))
    return bool(first and second) and (max(first) < min(second) or max(second) < min(first))


def _by_seed(result: Result, variant: str, metric: Metric) -> list[float | None]:
    runs = result.runs
    return [runs[variant, s].metrics.get(metric.name) if (variant, s) in runs else None for s in result.seeds]
