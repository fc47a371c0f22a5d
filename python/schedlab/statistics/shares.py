"""The share of one part in a difference."""

from __future__ import annotations

from collections.abc import Sequence

from schedlab.statistics.interval import Interval
from schedlab.statistics.paired import walsh_averages, walsh_interval
from schedlab.statistics.ranks import SMALLEST_N, rejected_ranks


def share_interval(parts: Sequence[float], totals: Sequence[float]) -> Interval | None:
    """How large a share of the totals the parts are: the shares that the signed-rank test does not reject.

    A share s is rejected if `part - s * total` is not symmetric around 0, so numerator and denominator keep their
    pairing and the interval holds its 95% like that of `walsh_interval` (Fieller's idea, any distribution).
    None: with too few pairs, or where every share is possible because the totals are not certain themselves.
    """
    import numpy as np

    n = len(totals)
    if n < SMALLEST_N or not walsh_interval(totals).excludes_zero():
        return None
    above, below = walsh_averages(parts), walsh_averages(totals)
    if np.median(below) < 0:
        above, below = -above, -below
    # Between two neighbouring crossings the ranks of all averages stay as they are.
    crossings = np.unique(above[below != 0] / below[below != 0])
    inner = (crossings[1:] + crossings[:-1]) / 2
    probes = np.concatenate(([crossings[0] - 1], inner, [crossings[-1] + 1]))
    positive = np.array([np.count_nonzero(above > s * below) for s in probes])
    rank = rejected_ranks(n)
    kept = np.flatnonzero((positive > rank) & (positive < len(above) - rank))
    if not len(kept):
        return Interval(*(3 * [float(np.median(crossings))]))
    if kept[0] == 0 or kept[-1] == len(probes) - 1:
        return None
    middle = int(np.argmin(np.abs(2 * positive - len(above))))
    estimate = float(probes[middle]) if 0 < middle < len(probes) - 1 else float(np.median(crossings))
    return Interval(estimate, float(crossings[kept[0] - 1]), float(crossings[kept[-1]]))
