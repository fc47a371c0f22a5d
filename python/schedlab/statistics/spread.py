"""The variation of two variants from unit to unit, and whether one varies more than the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.statistics.interval import Interval
from schedlab.statistics.ranks import ALPHA, smallest_n

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ALL_SWAPS_UP_TO = 11
SWAPS = 2047
_WIDEST_LOG = 20.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean absolute deviation from the median, of both variants, and the ratio of the two."""

    a: float
    b: float
    percent: bool
    """In percent of the median; otherwise in the metric's unit, where a sample is 0 or negative."""
    change: Interval | None
    """How much more b varies than a, in percent; None with too few units or without any variation."""


def spread(a: Sequence[float], b: Sequence[float], alpha: float = ALPHA) -> Spread:
    """Compare the spread of paired samples.

    Positive samples are compared on the logarithmic scale. The interval holds the ratios r for which the deviations
    of `a` and those of `b` divided by r may be exchanged within their pairs: a permutation test (all 2**n exchanges
    up to n = 11, then 2,047 drawn ones), so that it needs no normal distribution, and pairing does not mislead it.
    """
    import numpy as np

    x, y = np.asarray(a, float), np.asarray(b, float)
    percent = bool(min(x.min(), y.min()) > 0)
    if percent:
        x, y = np.log(x), np.log(y)
    u, v = np.abs(x - np.median(x)), np.abs(y - np.median(y))
    scale = 100.0 if percent else 1.0
    means = float(u.mean()) * scale, float(v.mean()) * scale
    if len(x) < smallest_n(alpha) or not (u.any() and v.any()):
        return Spread(*means, percent, None)
    return Spread(*means, percent, _ratio(u, v, alpha).as_percent())


def _ratio(u: Floats, v: Floats, alpha: float) -> Interval:
    """The log ratio of the sums with the values that the permutation test does not reject."""
    estimate = math.log(v.sum() / u.sum())
    swaps = _swaps(len(u))

    def rejected(log_ratio: float) -> bool:
        return _p_value(u, v * math.exp(-log_ratio), swaps) <= alpha

    return Interval(estimate, estimate - _reach(rejected, estimate, -1), estimate + _reach(rejected, estimate, 1))


def _reach(rejected: object, estimate: float, sign: int) -> float:
    """How far from the estimate the first rejected value lies."""
    assert callable(rejected)
    accepted, far = 0.0, 0.1
    while not rejected(estimate + sign * far):
        accepted, far = far, 2 * far
        if far > _WIDEST_LOG:
            return math.inf
    while far - accepted > 1e-4:
        middle = (accepted + far) / 2
        accepted, far = (accepted, middle) if rejected(estimate + sign * middle) else (middle, far)
    return far


def _p_value(u: Floats, v: Floats, swaps: Floats) -> float:
    """The share of exchanges with a log ratio at least as far from 0 as the one seen."""
    import numpy as np

    moved = swaps @ (v - u)
    with np.errstate(divide="ignore"):
        logs = np.log(v.sum() - moved) - np.log(u.sum() + moved)
    return float((np.abs(logs) >= abs(logs[0]) - 1e-9).mean())


def _swaps(n: int) -> Floats:
    """Which pairs are exchanged, a row each; the first row exchanges none."""
    import numpy as np

    if n <= ALL_SWAPS_UP_TO:
        return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
    drawn = np.random.default_rng(n).integers(0, 2, (SWAPS, n)).astype(float)
    return np.vstack([np.zeros((1, n)), drawn])
