"""The difference between percentiles of all samples of two variants, with an interval by bootstrap over units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.statistics.interval import Interval
from schedlab.statistics.ranks import ALPHA, smallest_n

RESAMPLES = 2000
FEWEST_BEYOND = 10
"""A percentile with fewer samples above it, in all units together, is not estimated."""

Histogram = Sequence[tuple[float, int]]
"""(largest value, count) of each bucket; the buckets of all histograms of a metric are the same."""


@dataclass(frozen=True, slots=True)
class Tail:
    """One percentile of the samples of all units together."""

    percentile: float
    a: float
    b: float
    difference: Interval | None
    """b - a in the metric's unit; None with too few units."""
    resolved: bool
    """Whether enough samples lie above the percentile on both sides; otherwise there is no interval."""


def tail_difference(
    units: Sequence[tuple[Histogram, Histogram]], percentile: float, alpha: float = ALPHA
) -> Tail | None:
    """Compare a percentile of the samples of all units of variant a with that of variant b; None without samples.

    A unit's histograms are drawn together and with replacement: samples within a unit depend on each other, units do
    not, and with the same seed both variants see the same load. The interval takes the percentiles of the bootstrap
    distribution further out than alpha / 2, as Student's t lies further out than the normal distribution: without
    that it would be too narrow for a few units (Hesterberg 2015).
    """
    import numpy as np
    from scipy.stats import norm, t

    grid = np.array(sorted({value for pair in units for side in pair for value, _ in side}))
    if not len(grid):
        return None
    counts = [np.zeros((len(units), len(grid))) for _ in range(2)]
    for row, pair in enumerate(units):
        for side, histogram in zip(counts, pair, strict=True):
            values = np.array([value for value, _ in histogram])
            side[row, np.searchsorted(grid, values)] = [count for _, count in histogram]
    sums = [side.cumsum(axis=1) for side in counts]
    whole = np.ones((1, len(units)))
    if any(not side[:, -1].any() for side in sums):
        return None
    a, b = (float(_percentiles(grid, whole @ side, percentile)[0]) for side in sums)
    beyond = min(float((whole @ side)[0, -1]) for side in sums) * (1 - percentile / 100)
    n = len(units)
    if n < smallest_n(alpha) or beyond < FEWEST_BEYOND:
        return Tail(percentile, a, b, None, beyond >= FEWEST_BEYOND)
    draws = np.random.default_rng(n).multinomial(n, [1 / n] * n, size=RESAMPLES).astype(float)
    both = (draws @ side for side in sums)
    found = [_percentiles(grid, pooled, percentile) for pooled in both]
    level = float(norm.cdf(math.sqrt(n / (n - 1)) * t.ppf(alpha / 2, n - 1)))
    low, high = np.nanquantile(found[1] - found[0], [level, 1 - level])
    return Tail(percentile, a, b, Interval(b - a, min(float(low), b - a), max(float(high), b - a)), True)


def _percentiles(grid, sums, percentile: float):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """The value of the first bucket at which each row of cumulative counts reaches the percentile."""
    import numpy as np

    ranks = np.ceil(percentile / 100 * sums[:, -1:] - 1e-6)
    values = grid[np.minimum((sums < np.maximum(ranks, 1)).sum(axis=1), len(grid) - 1)]
    return np.where(sums[:, -1] > 0, values, np.nan)
