"""Compares a change between two variants on the simulator and on a real kernel, in both directions.

What the kernel shows, the simulator must show; and what the simulator shows, the kernel must show. Only the first
would let the simulator invent changes without anything failing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schedlab.scenario import Metric, Variant
from schedlab.statistics import Difference, log_of, paired_difference
from schedlab.statistics.interval import percent_of
from schedlab.store import Result
from schedlab.validity.rows import family_of

SMALLEST_PCT = 5.0
"""Changes below this size are not judged."""
NEAR = 1.5
"""The factor within which the size of a change counts as reproduced."""


@dataclass(frozen=True, slots=True)
class Change:
    """One metric's change from one variant to another on one arm."""

    percent: float | None
    certain: bool
    """The interval excludes 0; with too few seeds for one, no value of one variant lies among those of the other."""

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
    def near(self) -> bool:
        """Whether the ratio of the two variants is the measured one within a factor of `NEAR`."""
        log = self.log_gap
        return log is not None and abs(log) <= math.log(NEAR)

    @property
    def gap(self) -> float | None:
        """How much larger the ratio of the two variants is when simulated, in percent."""
        log = self.log_gap
        return None if log is None else percent_of(log)

    @property
    def error(self) -> float | None:
        """The factor between the two ratios, the larger over the smaller, as percent above 1."""
        log = self.log_gap
        return None if log is None else percent_of(abs(log))

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
    """Every metric of every variant against the first, of preemption models against the first on the same kernel."""
    scenario = measured.scenario
    for metric in scenario.metrics:
        for a, b in pairs(scenario.variants):
            sides = (_change(result, metric, a, b) for result in (simulated, measured))
            yield Effect(scenario.name, metric.name, family_of(metric), a, b, *sides)


def pairs(variants: Sequence[Variant]) -> list[tuple[str, str]]:
    """The names of the variants that are compared. Where all variants set `preempt`, those of one kernel are."""
    kernels = {v.kernel for v in variants}
    by_kernel = len(kernels) < len(variants) and all(v.changes.get("preempt") for v in variants)
    firsts = {
        kernel: next(v for v in variants if v.kernel == kernel) if by_kernel else variants[0] for kernel in kernels
    }
    return [(firsts[v.kernel].name, v.name) for v in variants if v is not firsts[v.kernel]]


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
