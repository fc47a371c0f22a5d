"""The difference between two independent samples; simulated and measured values have no pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.statistics.interval import Interval, percent_of
from schedlab.statistics.ranks import ALPHA, rejected_pairs


@dataclass(frozen=True, slots=True)
class Shift:
    """By how many percent one sample is larger than another."""

    estimate: float
    interval: Interval | None
    """None where the samples are too small for one: 95% needs four values on each side."""


def shift(a: Sequence[float], b: Sequence[float], alpha: float = ALPHA) -> Shift:
    """How much larger `a` is than `b`, both positive, in percent.

    The estimate is that of Hodges and Lehmann: the median of the log ratios of all pairs. The interval holds the
    ratios that the rank-sum test does not reject.
    """
    import numpy as np

    logs = np.sort(np.subtract.outer(np.log(np.asarray(a, float)), np.log(np.asarray(b, float))), axis=None)
    estimate = percent_of(float(np.median(logs)))
    rank = rejected_pairs(len(a), len(b), alpha)
    if rank < 0:
        return Shift(estimate, None)
    ends = percent_of(float(logs[rank])), percent_of(float(logs[len(logs) - 1 - rank]))
    return Shift(estimate, Interval(estimate, *ends))
