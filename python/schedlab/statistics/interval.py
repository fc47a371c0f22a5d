"""An estimate with its interval, and the median of samples that may have gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LARGEST_LOG = 700.0
"""exp() of more than this overflows a float; such ratios are cut off there."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its two-sided interval, 95% unless stated otherwise."""

    estimate: float
    low: float
    high: float

    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def within(self, bound: float) -> bool:
        return -bound <= self.low and self.high <= bound

    def map(self, scale: float) -> Interval:
        """The interval in another unit; `scale` is positive."""
        return Interval(self.estimate * scale, self.low * scale, self.high * scale)

    def at_least(self, bound: float) -> Interval:
        """The interval without what lies below `bound`."""
        return Interval(max(self.estimate, bound), max(self.low, bound), max(self.high, bound))

    def as_percent(self) -> Interval:
        """An interval of log ratios as percentages."""
        return Interval(percent_of(self.estimate), percent_of(self.low), percent_of(self.high))


def percent_of(log_ratio: float) -> float:
    """A log ratio as a percentage: log 1.1 is +10%."""
    return 100 * math.expm1(min(log_ratio, _LARGEST_LOG))


def log_of(percent: float) -> float:
    """The inverse of `percent_of`."""
    return math.log1p(percent / 100) if percent > -100 else -_LARGEST_LOG


def median(samples: Sequence[float | None]) -> float | None:
    """The median of the finite values, or None if there are none."""
    import numpy as np

    values = [x for x in samples if x is not None and math.isfinite(x)]
    return float(np.median(values)) if values else None
