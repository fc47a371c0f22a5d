"""Every verdict, from samples that must lead to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schedlab.judge import Judgement, Level, judge
from schedlab.scenario import Metric
from schedlab.statistics import Plan
from schedlab.verdicts import DETERMINISTIC

UP = [1.0, 1.1, 0.9, 1.3, 0.8, 1.05, 0.95, 1.2]


def verdict(a: list[float | None], b: list[float | None], better: Any = "lower", margin: float = 5.0) -> Judgement:
    return judge(Metric("m", "m", None, "us", better, margin, "", True), "a", "b", a, b)


def scaled(*factors: float) -> list[float | None]:
    return [x * f for x, f in zip(UP, factors, strict=True)]


TEN = scaled(*[1.1 + 0.001 * i for i in range(8)])
SAME = scaled(*[1.0 + 0.001 * (i - 3.5) for i in range(8)])
WILD = scaled(0.5, 2.0, 0.6, 1.7, 0.7, 1.5, 0.9, 1.2)
TINY = scaled(*[1.01 + 0.001 * i for i in range(8)])

CASES = [
    # name, b, better, margin, verdict, effect, words of the reason
    ("slower", TEN, "lower", 5, "worse", "worse", "at least 10.1%"),
    ("faster", TEN, "higher", 5, "better", "better", "at least 10.1%"),
    ("other", TEN, "neither", 5, "changed", "changed", "at least 10.1%"),
    (
        "certain direction, size maybe under the margin",
        TEN,
        "lower",
        10.3,
        "worse",
        "worse",
        "the direction is certain",
    ),
    ("same within the margin", SAME, "lower", 5, "equivalent", "none", "less than the margin of 5%"),
    ("a change under the margin", TINY, "lower", 5, "equivalent", "none", "smaller than the margin"),
    ("no margin can be met by chance", SAME, "lower", 0, "undecided", "none", "without a margin"),
    ("too noisy", WILD, "lower", 5, "undecided", "none", "comparisons would detect a change as large as the margin"),
    ("identical", list(UP), "lower", 0, "equivalent", "none", "no difference in any seed"),
    ("all constant, moved", [3.0] * 8, "lower", 5, "worse", "worse", "at least"),
    ("missing everywhere", [None] * 8, "lower", 5, "undecided", "none", "no seed has a value for b"),
    ("too few", [2.0, 2.1, *[None] * 6], "lower", 5, "undecided", "none", "needs at least 6"),
    ("one missing", [None, *TEN[1:]], "lower", 5, "worse", "worse", "1 of 8 seeds has no value"),
]


@pytest.mark.parametrize(
    ("name", "b", "better", "margin", "expected", "effect", "words"), CASES, ids=[c[0] for c in CASES]
)
def test_verdicts(
    name: str, b: list[float | None], better: str, margin: float, expected: str, effect: str, words: str
) -> None:
    j = verdict(list(UP), b, better, margin)
    assert (j.verdict, j.effect) == (expected, effect)
    assert words in j.reason


@pytest.mark.parametrize(
    ("a", "b", "effect", "delta"),
    [
        (5.0, 7.0, "worse", 40),
        (5.0, 5.0, "none", 0),
        (5.0, 5.1, "none", 2),
        (0.0, 0.0, "none", 0),
        (0.0, 2.0, "worse", 2),
    ],
)
def test_equal_samples_are_deterministic_and_have_no_interval(a: float, b: float, effect: str, delta: float) -> None:
    for n in (2, 10):
        j = verdict([a] * n, [b] * n)
        assert (j.verdict, j.effect, j.difference.interval) == (DETERMINISTIC, effect, None)
        assert j.difference.estimate == pytest.approx(delta)


def test_one_seed_is_deterministic_only_without_noise() -> None:
    metric = Metric("m", "m", None, "us", "lower", 5, "", True)
    assert judge(metric, "a", "b", [5], [7]).verdict == "undecided"
    assert judge(metric, "a", "b", [5], [7], noise=False).verdict == DETERMINISTIC


def test_a_baseline_of_zero_has_no_percentage() -> None:
    j = verdict([0.0] * 8, [1.0, 2.0, 3.0, 1.5, 2.5, 1.2, 2.2, 1.7])
    assert j.verdict == "worse"
    assert not j.difference.percent
    assert "the baseline is 0" in j.reason
    assert verdict([0.0] * 8, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0]).verdict == "undecided"


def test_zeros_among_the_samples_are_judged_by_difference() -> None:
    j = verdict([0.0, 10.0, 12.0, 11.0, 9.0, 10.0, 10.0], [5.0, 15.0, 17.0, 16.0, 14.0, 15.0, 15.0])
    assert j.verdict == "worse"
    assert j.difference.estimate == pytest.approx(50)


def test_two_runs_of_the_same_thing_are_seldom_told_apart() -> None:
    rng = np.random.default_rng(8)
    called = 0
    for _ in range(1000):
        base = rng.lognormal(0, 0.5, 10)
        a, b = (list(base * rng.lognormal(0, 0.2, 10)) for _ in range(2))
        called += verdict(a, b, margin=1).effect != "none"
    assert called / 1000 <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5


def test_equivalence_is_two_one_sided_tests_at_5_percent() -> None:
    # The 90% interval of the ratio lies within the margin, the 95% interval does not.
    a = [100.0] * 6
    b = [x * 1.0 for x in (99.0, 99.5, 100.2, 100.4, 100.8, 103.0)]
    j = verdict(list(a), list(b), margin=2.2)
    assert j.difference.interval is not None
    assert not j.difference.interval.within(2.2)
    assert (j.verdict, j.effect) == ("equivalent", "none")
    assert j.p_equivalent is not None
    assert j.p_equivalent <= 0.05


def test_two_different_things_are_seldom_called_equivalent() -> None:
    # The worst case of the tests: the difference is exactly the margin.
    rng = np.random.default_rng(12)
    called = 0
    for _ in range(1000):
        base = rng.lognormal(0, 0.5, 10)
        b = base * 1.05 * rng.lognormal(0, 0.02, 10)
        called += verdict(list(base), list(b), margin=5).verdict == "equivalent"
    assert called / 1000 <= 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5


def test_swapping_the_variants_mirrors_the_verdict() -> None:
    rng = np.random.default_rng(13)
    mirror = {"better": "worse", "worse": "better"}
    for spread in (0.01, 0.05, 0.3):
        a = list(rng.lognormal(0, spread, 8))
        b = list(rng.lognormal(0.03, spread, 8))
        there, back = verdict(a, b), verdict(b, a)
        assert mirror.get(there.verdict, there.verdict) == back.verdict
        assert (there.p, there.p_equivalent) == (pytest.approx(back.p), pytest.approx(back.p_equivalent))


def test_a_look_of_several_has_a_stricter_level() -> None:
    plan = Plan.up_to(100)
    metric = Metric("m", "m", None, "us", "lower", 2, "", True)
    a, b = [100.0 + i for i in range(10)], [x * 1.01 * (1 + 0.004 * (-1) ** i) for i, x in enumerate(range(100, 110))]
    fixed, looked = judge(metric, "a", "b", a, b), judge(metric, "a", "b", a, b, level=Level.at(plan, 10))
    assert fixed.difference.interval is not None
    assert looked.difference.interval is not None
    assert looked.difference.interval.low <= fixed.difference.interval.low
    assert looked.difference.interval.high >= fixed.difference.interval.high
    assert fixed.p is not None
    assert looked.p is not None
    assert looked.p > fixed.p
