"""The paired difference of one metric between two variants, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.statistics.interval import Interval, median
from schedlab.statistics.ranks import ALPHA, rejected_ranks, signed_rank_cdf, smallest_n

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """The paired difference b - a of one metric over the seeds that have both values."""

    pairs: int
    missing: int
    median_a: float | None
    median_b: float | None
    constant: bool
    """Every a is the same number and so is every b: there is nothing to estimate from. A single pair counts
    only if no other is missing."""
    percent: bool
    """False where the baseline is 0 and a percentage has no meaning: the difference is then in the metric's unit."""
    estimate: float | None
    interval: Interval | None
    """None with too few pairs, and where everything is constant."""
    raw: tuple[float, ...] = ()
    """The differences on the scale on which they are tested: log ratios, or plain differences."""
    logs: bool = False
    """Whether `raw` are log ratios."""
    cut: bool = False
    """The interval of a quantity that is never negative reached below -100 % and ends there."""


def paired_difference(a: Sequence[float | None], b: Sequence[float | None], alpha: float = ALPHA) -> Difference:
    """Compare sample i of `a` with sample i of `b`; pairs that lack a finite value on either side are left out.

    Positive samples are compared by their ratio, on the logarithmic scale: swapping the variants then mirrors the
    result, and between two runs of the same thing the differences are symmetric around 0, which is all that the
    interval needs. Samples with a 0 or a negative value are compared by difference, in percent of a's
    Hodges-Lehmann location (the estimate of which the difference is that of the differences), so that what falls to 0
    falls by 100%. Single differences may exceed it; estimate and interval of samples without a negative value end at
    -100%.
    """
    pairs = [
        (x, y)
        for x, y in zip(a, b, strict=True)
        if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)
    ]
    missing, medians = len(a) - len(pairs), (median(a), median(b))
    if not pairs:
        return Difference(0, missing, *medians, False, True, None, None)
    first, second = [x for x, _ in pairs], [y for _, y in pairs]
    constant = len(set(first)) == 1 and len(set(second)) == 1 and not (len(pairs) == 1 and missing)
    base = abs(_location(first)) if median(first) else 0.0
    logs = min(first) > 0 and min(second) > 0
    raw = tuple(math.log(y) - math.log(x) if logs else y - x for x, y in pairs)
    found = walsh_interval(raw, alpha)
    shown = found.as_percent() if logs else found.map(100 / base if base else 1.0)
    cut = base > 0 and min(first) >= 0 and min(second) >= 0 and shown.low < -100
    shown = shown.at_least(-100.0) if cut else shown
    interval = shown if len(pairs) >= smallest_n(alpha) and not constant else None
    ends = cut and interval is not None
    return Difference(len(pairs), missing, *medians, constant, base > 0, shown.estimate, interval, raw, logs, ends)


def _location(values: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate of the centre: the median of the Walsh averages."""
    import numpy as np

    return float(np.median(walsh_averages(values)))


def walsh_interval(differences: Sequence[float], alpha: float = ALPHA) -> Interval:
    """Hodges-Lehmann estimate with the interval that Wilcoxon's signed-rank test does not reject.

    The Walsh averages are the means of all pairs of differences, each with itself included; the estimate is their
    median and the interval ends are two of them. The interval holds its level for every symmetric distribution and
    every n that allows one, with ties too (it then covers more). With fewer it is the range, which covers less:
    callers do not show it.
    """
    import numpy as np

    walsh = np.sort(walsh_averages(differences))
    rank = max(0, rejected_ranks(len(differences), alpha))
    return Interval(float(np.median(walsh)), float(walsh[rank]), float(walsh[len(walsh) - 1 - rank]))


def p_value(differences: Sequence[float]) -> float:
    """The two-sided p of the signed-rank test; at most alpha exactly where `walsh_interval` at alpha excludes 0."""
    walsh = walsh_averages(differences)
    rank_sum = min(int((walsh <= 0).sum()), int((walsh >= 0).sum()))
    return min(1.0, 2 * signed_rank_cdf(len(differences), rank_sum))


def p_outside(differences: Sequence[float], low: float, high: float) -> float:
    """The p of two one-sided tests of `outside [low, high]`: small where the difference lies within the bounds."""
    walsh, n = walsh_averages(differences), len(differences)
    below = signed_rank_cdf(n, int((walsh <= low).sum()))
    above = signed_rank_cdf(n, int((walsh >= high).sum()))
    return max(below, above)


def walsh_averages(differences: Sequence[float]) -> Floats:
    """The means of all pairs, each difference with itself included."""
    import numpy as np

    d = np.asarray(differences, dtype=float)
    i, j = np.triu_indices(len(d))
    averages: Floats = (d[i] + d[j]) / 2
    return averages
