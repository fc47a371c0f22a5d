"""Critical values of the two rank statistics, from scipy's distributions.

scipy's tests take samples, so each probability is that of a sample built to have the wanted statistic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

ALPHA = 0.05
SMALLEST_N = 6
"""With fewer pairs no distribution-free 95% interval exists: 2 / 2**5 is more than 5%."""
MOST_EXACT = 50
"""The exact distributions are used up to this many values, the normal approximation beyond."""


def smallest_n(alpha: float) -> int:
    """The fewest pairs with which the signed-rank test can reject at a two-sided level."""
    return math.ceil(1 + math.log2(1 / alpha) - 1e-12)


@cache
def rejected_ranks(n: int, alpha: float = ALPHA) -> int:
    """The largest rank sum that the two-sided signed-rank test rejects, -1 if it rejects none.

    It is also the number of Walsh averages outside the interval on each side.
    """
    return _largest_rejected(n * (n + 1) // 4, lambda rank_sum: 2 * signed_rank_cdf(n, rank_sum) <= alpha)


@cache
def rejected_pairs(n: int, m: int, alpha: float = ALPHA) -> int:
    """The largest Mann-Whitney U that the two-sided rank-sum test rejects, -1 if it rejects none.

    It is also the number of the n * m pairwise differences outside the interval on each side.
    """
    return _largest_rejected(n * m // 2, lambda u: 2 * rank_sum_cdf(n, m, u) <= alpha)


def _largest_rejected(middle: int, rejects: Callable[[int], bool]) -> int:
    low, high = 0, middle + 1
    while low < high:
        probe = (low + high) // 2
        if rejects(probe):
            low = probe + 1
        else:
            high = probe
    return low - 1


@cache
def signed_rank_cdf(n: int, rank_sum: int) -> float:
    """P(W <= rank_sum) of Wilcoxon's signed-rank statistic for n differences without ties."""
    from scipy.stats import norm, wilcoxon

    if rank_sum < 0:
        return 0.0
    if n > MOST_EXACT:
        mean, variance = n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24
        return float(norm.cdf((rank_sum + 0.5 - mean) / math.sqrt(variance)))
    sample, rest = [], rank_sum
    for rank in range(n, 0, -1):
        positive = rank <= rest
        sample.append(float(rank if positive else -rank))
        rest -= rank if positive else 0
    if rest:
        return 1.0  # more than all ranks together
    return float(wilcoxon(sample, alternative="less", method="exact").pvalue)


@cache
def rank_sum_cdf(n: int, m: int, u: int) -> float:
    """P(U <= u) of the Mann-Whitney statistic for samples of n and m values without ties."""
    from scipy.stats import mannwhitneyu

    if u < 0:
        return 0.0
    if u >= n * m:
        return 1.0
    # Value i of the first sample exceeds `below` values of the second, which are 0, 1, ... m - 1.
    first, rest = [], u
    for i in range(n):
        below = min(m, rest)
        first.append(below - 0.5 + i / (2 * n + 2))
        rest -= below
    method = "exact" if max(n, m) <= MOST_EXACT else "asymptotic"
    return float(mannwhitneyu(first, range(m), alternative="less", method=method).pvalue)
