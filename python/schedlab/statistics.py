"""Decides how far two variants lie apart: a paired difference with its interval; what it means is judge.py's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95
SMALLEST_N = 6
"""With fewer pairs no distribution-free 95% interval exists: 2 / 2**5 is already more than 5%."""

_LARGEST_LOG = 700.0
"""Ratios past the range of floats are shown as its end."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its two-sided 95% interval."""

    estimate: float
    low: float
    high: float

    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    def within(self, bound: float) -> bool:
        return -bound <= self.low and self.high <= bound


@dataclass(frozen=True, slots=True)
class Difference:
    """The paired difference b - a of one metric over the seeds that have both values."""

    pairs: int
    missing: int
    median_a: float | None
    median_b: float | None
    constant: bool
    """Every a is the same number and so is every b: there is nothing to estimate from."""
    percent: bool
    """False where the baseline is 0 and a percentage has no meaning: the difference is then in the metric's unit."""
    estimate: float | None
    interval: Interval | None
    """None with too few pairs, and where everything is constant."""


def paired_difference(a: Sequence[float | None], b: Sequence[float | None]) -> Difference:
    """Compare sample i of `a` with sample i of `b`; pairs that lack a finite value on either side are left out.

    Positive samples are compared by their ratio, on the logarithmic scale: swapping the variants then mirrors the
    result, and between two runs of the same thing the differences are symmetric around 0, which is all that the
    interval needs. Samples with a 0 or a negative value are compared by difference, in percent of a's median.
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
    constant = len(set(first)) == 1 and len(set(second)) == 1
    base = abs(_middle(first))
    if min(first) > 0 and min(second) > 0:
        raw = walsh_interval([math.log(y) - math.log(x) for x, y in pairs])
        shown = Interval(*(100 * math.expm1(min(v, _LARGEST_LOG)) for v in (raw.estimate, raw.low, raw.high)))
    else:
        raw = walsh_interval([y - x for x, y in pairs])
        scale = 100 / base if base else 1.0
        shown = Interval(*(scale * v for v in (raw.estimate, raw.low, raw.high)))
    interval = shown if len(pairs) >= SMALLEST_N and not constant else None
    return Difference(len(pairs), missing, *medians, constant, base > 0, shown.estimate, interval)


def walsh_interval(differences: Sequence[float]) -> Interval:
    """Hodges-Lehmann estimate with the interval that Wilcoxon's signed-rank test does not reject.

    The Walsh averages are the means of all pairs of differences, each with itself included; the estimate is their
    median and the interval ends are two of them. The interval holds its 95% for every symmetric distribution and every
    n >= 6, with ties too (it then covers more). Below 6 it is the range, which covers less: callers do not show it.
    """
    import numpy as np

    d = np.asarray(differences, dtype=float)
    i, j = np.triu_indices(len(d))
    walsh = np.sort((d[i] + d[j]) / 2)
    rank = rejected_ranks(len(d)) if len(d) >= SMALLEST_N else 0
    return Interval(float(np.median(walsh)), float(walsh[rank]), float(walsh[len(walsh) - 1 - rank]))


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
    p, t = np.asarray(parts, dtype=float), np.asarray(totals, dtype=float)
    i, j = np.triu_indices(n)
    above, below = (p[i] + p[j]) / 2, (t[i] + t[j]) / 2
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


def shift_interval(a: Sequence[float], b: Sequence[float]) -> Interval:
    """How much larger `a` is than `b`, both positive, in percent: the Hodges-Lehmann estimate of all pairs' log ratios.

    The interval is what the rank-sum test does not reject; below 4 on each side it is the range, which covers less.
    """
    logs = sorted(math.log(x) - math.log(y) for x in a for y in b)
    rank = _rejected_pairs(len(a), len(b))
    ends = (logs[len(logs) // 2] + logs[(len(logs) - 1) // 2]) / 2, logs[rank], logs[len(logs) - 1 - rank]
    return Interval(*(100 * math.expm1(min(v, _LARGEST_LOG)) for v in ends))


@cache
def _rejected_pairs(n: int, m: int) -> int:
    """The most pairs on each side that a two-sided rank-sum test at 5% rejects; exact, without ties."""
    counts = [1] + [0] * (n * m)  # of arrangements by the number of pairs that are in order
    for i in range(1, n + 1):
        grown = list(counts)
        # Multiply by (1 - x^(m+i)) and divide by (1 - x^i): Gauss's binomial, term by term.
        for k in range(n * m, m + i - 1, -1):
            grown[k] -= grown[k - m - i]
        for k in range(i, n * m + 1):
            grown[k] += grown[k - i]
        counts = grown
    total, below = math.comb(n + m, n), 0
    for k, count in enumerate(counts):
        below += count
        if 2 * below > (1 - CONFIDENCE) * total:
            return k
    return 0


@cache
def rejected_ranks(n: int) -> int:
    """The largest rank sum that the test rejects: so many Walsh averages lie outside the interval on each side."""
    low, high = 0, n * (n + 1) // 4
    while low < high:
        middle = (low + high) // 2
        if _signed_rank_p(n, middle) > 1 - CONFIDENCE:
            high = middle
        else:
            low = middle + 1
    return low - 1


def _signed_rank_p(n: int, rank_sum: int) -> float:
    """Two-sided p of a rank sum, from any sample that has it: scipy takes samples, not statistics."""
    from scipy.stats import wilcoxon

    sample, rest = [], rank_sum
    for rank in range(n, 0, -1):
        positive = rank <= rest
        sample.append(float(rank if positive else -rank))
        rest -= rank if positive else 0
    return float(wilcoxon(sample).pvalue)


def median(samples: Sequence[float | None]) -> float | None:
    """The median of the values present, or None."""
    values = [x for x in samples if x is not None and math.isfinite(x)]
    return _middle(values) if values else None


def _middle(values: Sequence[float]) -> float:
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
