"""Judges a paired difference against the declared margin, with the reason in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.scenario import Better, Metric
from schedlab.statistics import (
    SMALLEST_N,
    Difference,
    Interval,
    Plan,
    Spread,
    Tail,
    log_of,
    p_outside,
    p_value,
    paired_difference,
    units_needed,
)
from schedlab.verdicts import DETERMINISTIC

if TYPE_CHECKING:
    from schedlab.validity.checked import Evidence

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Level:
    """The error rate of one look at the samples: 5% for a fixed number of units, less for each of several looks."""

    difference: float = ALPHA
    """Two-sided, for the interval."""
    equivalence: float = ALPHA
    """For each of the two one-sided tests."""
    plan: Plan | None = None
    units: int = 0

    @classmethod
    def at(cls, plan: Plan, units: int) -> Level:
        """The level of the look at this many units."""
        return cls(plan.level(units, ALPHA), plan.level(units, 2 * ALPHA) / 2, plan, units)

    def overall(self, p: float) -> float:
        """The p of this look as one that holds for all looks together."""
        return self.plan.p_value(self.units, p) if self.plan else p


FIXED = Level()


@dataclass(frozen=True, slots=True)
class Judgement:
    """One metric, variant `b` against variant `a`."""

    a: str
    b: str
    difference: Difference
    verdict: str
    """One of VERDICTS; `changed` is for metrics of which neither direction is better."""
    effect: str
    """What a gate tests: better, worse, changed or none; set for deterministic differences too."""
    reason: str
    p: float | None = None
    """Of no difference, by the signed-rank test; None where there is no interval."""
    p_equivalent: float | None = None
    """Of a difference beyond the margin, by two one-sided tests."""
    p_holm: float | None = None
    """`p` adjusted for all metrics of the comparison of these two variants."""
    units_needed: int | None = None
    """The number of units with which the margin can be distinguished from no difference with a power of 80%."""
    spread: Spread | None = None
    """How much both variants vary from unit to unit."""
    tail: Tail | None = None
    """For percentiles from 90 on: the same percentile of the samples of all units together."""
    evidence: Evidence | None = None
    """How often such simulated changes were right on real kernels; None if nothing changed or nothing was simulated."""

    @property
    def detectable(self) -> bool:
        """A change was detected: the interval excludes 0, or a deterministic value changed."""
        d = self.difference
        return d.interval.excludes_zero() if d.interval else d.constant and d.estimate != 0

    @property
    def certain_pct(self) -> float:
        """The smallest change, in percent, that the interval allows; 0 if it contains 0 or there is no percentage."""
        d = self.difference
        if not d.percent or d.estimate is None or not self.detectable:
            return 0.0
        return min(abs(d.interval.low), abs(d.interval.high)) if d.interval else abs(d.estimate)

    @property
    def settled(self) -> bool:
        """Whether more units would not change the verdict."""
        return self.effect != "none" or self.verdict in ("equivalent", DETERMINISTIC)


def judge(metric: Metric, a: str, b: str, samples_a: Sequence[float | None], samples_b: Sequence[float | None],
          *, noise: bool = True, level: Level = FIXED) -> Judgement:  # fmt: skip
    """Compare two variants in one metric.

    equivalent  two one-sided tests show that the difference is smaller than the margin, whether or not there is one
    better, worse, changed  the interval excludes 0
    undecided   the interval contains 0 and equivalence is not shown, or there is no interval
    deterministic, n = 1  every seed gave the same number on each side: nothing varies, so nothing is estimated

    The margin decides what is too small to matter, never what is certain: a change of certain direction whose size
    may be under the margin is still named, and the reason says so. A baseline of 0 has no percentage, hence no margin.
    """
    d = paired_difference(samples_a, samples_b, level.difference)
    effect = _effect(metric.better, d.estimate or 0.0)
    if d.constant and (d.pairs > 1 or not noise):
        matters = d.estimate is not None and abs(d.estimate) > (metric.margin_pct if d.percent else 0)
        return Judgement(a, b, d, DETERMINISTIC, effect if matters else "none", _deterministic(metric, a, b, d))
    if d.interval is None:
        return Judgement(a, b, d, "undecided", "none", _no_interval(a, b, d, level))
    low, high = _margin(metric, d)
    p_equivalent = p_outside(d.raw, low, high) if high > 0 else None
    needed = units_needed(d.raw, min(-low, high), level.difference)
    numbers = level.overall(p_value(d.raw)), p_equivalent, None, needed
    if _is_equivalent(d, p_equivalent, level):
        return Judgement(a, b, d, "equivalent", "none", _equivalent(d, metric) + _missing(d), *numbers)
    if d.interval.excludes_zero():
        return Judgement(a, b, d, effect, effect, _changed(d, metric) + _missing(d), *numbers)
    return Judgement(a, b, d, "undecided", "none", _undecided(d, metric, needed) + _missing(d), *numbers)


def _margin(metric: Metric, d: Difference) -> tuple[float, float]:
    """The margin on the scale on which differences are tested; nothing lies within it where there is no percentage."""
    if not d.percent:
        return 0.0, 0.0
    if d.logs:
        # Symmetric in the ratio, so that swapping the variants changes nothing.
        return -log_of(metric.margin_pct), log_of(metric.margin_pct)
    bound = metric.margin_pct / 100 * abs(d.median_a or 0.0)
    return -bound, bound


def _is_equivalent(d: Difference, p: float | None, level: Level) -> bool:
    identical = d.interval is not None and d.interval.low == d.interval.high == 0
    return identical or (p is not None and p <= level.equivalence)


def _effect(better: Better, change: float) -> str:
    if change == 0:
        return "none"
    if better == "neither":
        return "changed"
    return "better" if (change > 0) == (better == "higher") else "worse"


def _deterministic(metric: Metric, a: str, b: str, d: Difference) -> str:
    if d.estimate == 0:
        return f"every seed gave {_number(d.median_a)} {metric.unit} for both".replace("  ", " ") + _missing(d)
    values = f"{_number(d.median_a)} for {a} and {_number(d.median_b)} for {b}"
    return f"every seed gave {values}: exact here, but it says nothing about variation" + _missing(d)


def _no_interval(a: str, b: str, d: Difference, level: Level) -> str:
    if d.pairs == 0:
        empty = [name for name, middle in ((a, d.median_a), (b, d.median_b)) if middle is None]
        return f"no seed has a value for {' and '.join(empty)}" if empty else "no seed has a value on both sides"
    if level.plan is None:
        return f"{d.pairs} seed{'s' * (d.pairs > 1)}: a 95% interval needs at least {SMALLEST_N}" + _missing(d)
    return f"{d.pairs} seed{'s' * (d.pairs > 1)}: too few for the level of this look" + _missing(d)


def _equivalent(d: Difference, metric: Metric) -> str:
    interval: Interval | None = d.interval
    assert interval is not None
    if interval.low == interval.high == 0:
        return "no difference in any seed"
    margin = _number(metric.margin_pct)
    if interval.excludes_zero():
        return f"a change, but smaller than the margin of {margin}% by two one-sided tests"
    return f"two one-sided tests show less than the margin of {margin}%"


def _changed(d: Difference, metric: Metric) -> str:
    assert d.interval is not None
    if not d.percent:
        return f"the baseline is 0, so the change is given in {metric.unit or 'the metric itself'} and has no margin"
    smallest = min(abs(d.interval.low), abs(d.interval.high))
    if smallest >= metric.margin_pct:
        return f"the change is at least {_number(smallest)}%, the margin {_number(metric.margin_pct)}%"
    return f"the direction is certain, the size may be under the margin of {_number(metric.margin_pct)}%"


def _undecided(d: Difference, metric: Metric, needed: int | None) -> str:
    if not d.percent:
        return "the baseline is 0 and the interval of the change contains 0"
    margin = _number(metric.margin_pct)
    text = f"the interval contains 0 and reaches past the margin of {margin}%"
    if metric.margin_pct == 0:
        return "the interval contains 0, and without a margin nothing can be equivalent"
    if needed is None:
        return f"{text}; even 10,000 seeds may not settle it"
    if needed <= d.pairs:
        return f"{text}; with this spread so many seeds usually suffice (in 4 of 5 comparisons), but not here"
    return f"{text}; with {needed:,} seeds, 4 of 5 comparisons would detect a change as large as the margin"


def _missing(d: Difference) -> str:
    if d.missing == 0:
        return ""
    total = d.missing + d.pairs
    return f"; {d.missing} of {total} seeds {'has' if d.missing == 1 else 'have'} no value on one side or both"


def _number(x: float | None) -> str:
    return "no value" if x is None else f"{x:.4g}"
