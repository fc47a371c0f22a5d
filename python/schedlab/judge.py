"""Decides what a paired difference means against the declared margin, and says why in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.scenario import Better, Metric
from schedlab.statistics import SMALLEST_N, Difference, Interval, paired_difference
from schedlab.verdicts import DETERMINISTIC


@dataclass(frozen=True, slots=True)
class Judgement:
    """One metric, variant `b` against variant `a`."""

    a: str
    b: str
    difference: Difference
    verdict: str
    """One of VERDICTS; `changed` is for metrics of which neither direction is better."""
    effect: str
    """What a gate looks at: better, worse, changed or none; set for deterministic differences too."""
    reason: str

    @property
    def detectable(self) -> bool:
        """A change was shown: the interval leaves out 0, or a deterministic value moved."""
        d = self.difference
        return d.interval.excludes_zero() if d.interval else d.constant and d.estimate != 0


def judge(metric: Metric, a: str, b: str, samples_a: Sequence[float | None], samples_b: Sequence[float | None],
          noise: bool = True) -> Judgement:  # fmt: skip
    """Compare two variants in one metric.

    equivalent  the whole interval lies within the margin, whether or not it holds 0
    better, worse, changed  the interval leaves out 0 and reaches past the margin
    undecided   the interval holds 0 and reaches past the margin, or there is none
    deterministic, n = 1  every seed gave the same number on each side: nothing varies, so nothing is estimated

    The margin decides what is too small to matter, never what is certain: a change of certain direction whose size
    may be under the margin is still named, and the reason says so. A baseline of 0 has no percentage, hence no margin.
    """
    d = paired_difference(samples_a, samples_b)
    effect = _effect(metric.better, d.estimate or 0.0)
    if d.constant and (d.pairs > 1 or not noise):
        matters = d.estimate is not None and abs(d.estimate) > (metric.margin_pct if d.percent else 0)
        return Judgement(a, b, d, DETERMINISTIC, effect if matters else "none", _deterministic(metric, a, b, d))
    if d.interval is None:
        return Judgement(a, b, d, "undecided", "none", _no_interval(a, b, d))
    margin = metric.margin_pct if d.percent else 0.0
    if d.interval.within(margin):
        return Judgement(a, b, d, "equivalent", "none", _equivalent(d.interval, margin) + _missing(d))
    if d.interval.excludes_zero():
        return Judgement(a, b, d, effect, effect, _changed(d, metric) + _missing(d))
    return Judgement(a, b, d, "undecided", "none", _undecided(d, metric) + _missing(d))


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


def _no_interval(a: str, b: str, d: Difference) -> str:
    if d.pairs == 0:
        empty = [name for name, middle in ((a, d.median_a), (b, d.median_b)) if middle is None]
        return f"no seed has a value for {' and '.join(empty)}" if empty else "no seed has a value on both sides"
    return f"{d.pairs} seed{'s' * (d.pairs > 1)}: a 95% interval needs at least {SMALLEST_N}" + _missing(d)


def _equivalent(interval: Interval, margin: float) -> str:
    if interval.low == interval.high == 0:
        return "no difference in any seed"
    if interval.excludes_zero():
        return f"a change, but smaller than the margin of {_number(margin)}%"
    return f"the whole interval lies within the margin of {_number(margin)}%"


def _changed(d: Difference, metric: Metric) -> str:
    assert d.interval is not None
    if not d.percent:
        return f"the baseline is 0, so the change is given in {metric.unit or 'the metric itself'} and has no margin"
    smallest = min(abs(d.interval.low), abs(d.interval.high))
    if smallest >= metric.margin_pct:
        return f"the change is at least {_number(smallest)}%, the margin {_number(metric.margin_pct)}%"
    return f"the direction is certain, the size may be under the margin of {_number(metric.margin_pct)}%"


def _undecided(d: Difference, metric: Metric) -> str:
    assert d.interval is not None
    assert d.estimate is not None
    if not d.percent:
        return "the baseline is 0 and the interval of the change holds 0"
    text = f"the interval holds 0 and reaches past the margin of {_number(metric.margin_pct)}%"
    half, estimate = (d.interval.high - d.interval.low) / 2, abs(d.estimate)
    reach = max(estimate, metric.margin_pct - estimate)
    if half == 0 or reach <= 0:
        return text
    seeds = max(d.pairs + 1, math.ceil(d.pairs * (half / reach) ** 2))
    return text + (f"; about {seeds} seeds may settle it" if seeds <= 1000 else "; even 1,000 seeds may not settle it")


def _missing(d: Difference) -> str:
    if d.missing == 0:
        return ""
    total = d.missing + d.pairs
    return f"; {d.missing} of {total} seeds {'has' if d.missing == 1 else 'have'} no value on one side or both"


def _number(x: float | None) -> str:
    return "no value" if x is None else f"{x:.4g}"
