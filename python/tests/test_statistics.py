"""Known answers, symmetry, and how often the interval misses the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

import interval_coverage
from schedlab.statistics import SMALLEST_N, paired_difference, rejected_pairs, rejected_ranks, shift, walsh_interval
from schedlab.statistics.paired import p_outside, p_value
from schedlab.statistics.ranks import smallest_n

# Critical values of the signed-rank statistic, two-sided 5 %, as printed in statistics tables.
TABLE = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137, 50: 434}


@pytest.mark.parametrize(("n", "critical"), TABLE.items())
def test_critical_ranks_are_those_of_the_tables(n: int, critical: int) -> None:
    assert rejected_ranks(n) == critical


def test_interval_is_what_the_signed_rank_test_does_not_reject() -> None:
    rng = np.random.default_rng(3)
    for n in (6, 10, 17, 30):
        d = rng.normal(0.3, 1, n)
        found = walsh_interval(d.tolist())
        for bound, outwards in ((found.low, -1), (found.high, 1)):
            assert wilcoxon(d - (bound + outwards * 1e-9)).pvalue <= 0.05
            assert wilcoxon(d - (bound - outwards * 1e-9)).pvalue > 0.05


def test_known_answer() -> None:
    # Walsh averages of 1..6: the smallest is 1, the largest 6, the median 3.5; with n = 6 the interval is the range.
    found = walsh_interval([1, 2, 3, 4, 5, 6])
    assert (found.low, found.estimate, found.high) == (1, 3.5, 6)


def test_percent_of_a_constant_ratio() -> None:
    a = [float(x) for x in range(1, 11)]
    d = paired_difference(a, [1.5 * x for x in a])
    assert d.estimate == pytest.approx(50)
    assert d.interval is not None
    assert (d.interval.low, d.interval.high) == (pytest.approx(50), pytest.approx(50))


@given(st.lists(st.tuples(st.floats(0.01, 1e6), st.floats(0.01, 1e6)), min_size=SMALLEST_N, max_size=25))
def test_swapping_the_variants_mirrors_the_interval(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    there, back = paired_difference(a, b), paired_difference(b, a)
    if there.interval is None or back.interval is None:
        assert there.interval is back.interval
        return
    for x, y in ((there.interval.low, back.interval.high), (there.interval.high, back.interval.low)):
        assert (1 + x / 100) * (1 + y / 100) == pytest.approx(1)


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=12), st.data())
def test_any_samples_give_finite_numbers_or_none(a: list[float | None], data: st.DataObject) -> None:
    b = data.draw(st.lists(st.one_of(st.none(), st.floats()), min_size=len(a), max_size=len(a)))
    bounded = [None if x is None or abs(x) > 1e150 else x for x in a]
    d = paired_difference(bounded, [None if y is None or abs(y) > 1e150 else y for y in b])
    assert d.pairs + d.missing == len(a)
    assert d.interval is None or d.interval.low <= d.interval.high
    assert d.interval is None or d.pairs >= SMALLEST_N
    assert d.pairs > 0 or d.estimate is None


def test_one_pair_of_several_seeds_is_not_constant() -> None:
    """Of one seed a deterministic value is all there is; of three with one pair it is only what is left."""
    assert paired_difference([1.0], [2.0]).constant
    left = paired_difference([1.0, None, 3.0], [2.0, 5.0, None])
    assert (left.pairs, left.missing, left.constant, left.interval) == (1, 2, False, None)
    assert paired_difference([1.0, None, 1.0], [2.0, 5.0, 2.0]).constant


def test_missing_values_leave_their_pair_out() -> None:
    d = paired_difference([1, None, 3, math.nan, 5], [2, 2, 6, 4, 10])
    assert (d.pairs, d.missing) == (3, 2)
    assert d.estimate == pytest.approx(100)


@pytest.mark.parametrize("n", [6, 10, 30])
@pytest.mark.parametrize("name", interval_coverage.DRAWS)
def test_misses_no_more_than_promised(name: str, n: int) -> None:
    # 5 % of 2,000 with three standard deviations of chance on top; few values and few seeds may only miss less.
    assert interval_coverage.misses(
        interval_coverage.DRAWS[name], interval_coverage.used, n, 2000
    ) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("name", interval_coverage.REAL)
def test_an_asymmetric_effect_is_covered_by_its_pseudo_median(name: str) -> None:
    draw, truths = interval_coverage.REAL[name]
    missed = {
        what: interval_coverage.misses(draw, interval_coverage.used, 10, 2000, truth=truth)
        for what, truth in truths.items()
    }
    # Asymmetry costs the pseudo-median a little of its 95 %; the interval is none for the mean.
    assert missed["pseudo-median"] <= 0.07
    assert missed["mean"] > missed["pseudo-median"]


@pytest.mark.parametrize("n", [10, 30])
def test_is_not_wider_than_needed(n: int) -> None:
    # The smallest miss rate that ranks can give at n = 10 is 4.9 %: an interval that never misses would be useless.
    assert interval_coverage.misses(interval_coverage.DRAWS["normal"], interval_coverage.used, n, 2000) >= 0.03


def test_finds_a_change_that_is_there() -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(300):
        base = rng.lognormal(0, 0.5, 10)
        d = paired_difference(base.tolist(), (base * 1.05 * rng.lognormal(0, 0.03, 10)).tolist())
        assert d.interval is not None
        found += d.interval.low > 0
    assert found / 300 > 0.9


def test_covers_a_shift_that_is_not_zero() -> None:
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(1000):
        base = rng.lognormal(0, 0.5, 12)
        d = paired_difference(base.tolist(), (base * 1.2 * rng.lognormal(0, 0.1, 12)).tolist())
        assert d.interval is not None
        missed += not d.interval.low <= 20 <= d.interval.high
    assert missed / 1000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


# Critical values of Mann-Whitney's U, two-sided 5%, as printed in statistics tables; -1: nothing is rejected.
U_TABLE = {(3, 3): -1, (4, 4): 0, (4, 5): 1, (5, 5): 2, (6, 6): 5, (7, 7): 8, (8, 8): 13, (10, 10): 23, (20, 20): 127}


@pytest.mark.parametrize(("sizes", "critical"), U_TABLE.items())
def test_critical_pairs_are_those_of_the_tables(sizes: tuple[int, int], critical: int) -> None:
    assert rejected_pairs(*sizes) == critical


@pytest.mark.parametrize(("n", "m"), [(3, 5), (4, 4), (4, 6), (6, 6), (8, 8)])
def test_the_rank_sum_interval_misses_at_most_5_percent(n: int, m: int) -> None:
    # Without a difference every way to deal the ranks to both sides is equally likely, so this rate is exact.
    orders = list(itertools.combinations(range(n + m), n))
    missed = 0
    for chosen in orders:
        rest = [r for r in range(n + m) if r not in chosen]
        found = shift([1.01**r for r in chosen], [1.01**r for r in rest]).interval
        assert found is not None
        missed += found.excludes_zero()
    next_rank = sum(_u(chosen, n + m) == rejected_pairs(n, m) + 1 for chosen in orders)
    assert missed <= 0.05 * len(orders) < missed + 2 * next_rank


def _u(chosen: tuple[int, ...], total: int) -> int:
    return sum(x > y for x in chosen for y in range(total) if y not in chosen)


def test_the_rank_sum_interval_covers_a_shift() -> None:
    rng = np.random.default_rng(9)
    for n in (4, 6, 8):
        missed = 0
        for _ in range(1000):
            a, b = 1.2 * rng.lognormal(0, 0.3, n), rng.lognormal(0, 0.3, n)
            found = shift(a.tolist(), b.tolist()).interval
            assert found is not None
            missed += not found.low <= 20 <= found.high
        assert missed / 1000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("a", "b", "estimate"),
    [
        ([110.0] * 4, [100.0] * 4, 10.0),
        ([50.0] * 6, [100.0] * 6, -50.0),
        ([100.0, 101.0, 102.0, 103.0], [100.0, 101.0, 102.0, 103.0], 0.0),
    ],
)
def test_shifts_of_known_size(a: list[float], b: list[float], estimate: float) -> None:
    found = shift(a, b)
    assert found.estimate == pytest.approx(estimate, abs=1e-9)
    assert found.interval is not None
    assert found.interval.low <= found.estimate <= found.interval.high


def test_three_values_a_side_have_no_95_percent_interval() -> None:
    assert shift([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]).interval is None


@given(st.lists(st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=SMALLEST_N, max_size=20))
def test_the_p_value_says_what_the_interval_says(d: list[float]) -> None:
    for alpha in (0.05, 0.1, 0.01):
        assert (p_value(d) <= alpha) == (len(d) >= smallest_n(alpha) and walsh_interval(d, alpha).excludes_zero())


@given(st.lists(st.floats(-10, 10), min_size=SMALLEST_N, max_size=20), st.floats(0.1, 20))
def test_two_one_sided_tests_are_the_90_percent_interval(d: list[float], bound: float) -> None:
    found = walsh_interval(d, 0.10)
    assert (p_outside(d, -bound, bound) <= 0.05) == (-bound < found.low and found.high < bound)
