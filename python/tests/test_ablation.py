"""What `ablate` makes of known responses: linear ones, interacting ones, noisy ones paired by seed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab import ablation
from schedlab.ablation import Ablation
from schedlab.scenario import Metric, Scenario
from schedlab.statistics import Interval, share_interval

METRIC = Metric("m", "m", None, "us", "lower", 2.0, "a number", declared=True)

Response = Callable[[frozenset[str], int], float]
"""The value of a run that has these of the second variant's mechanisms, by seed."""


def _ablate(
    names: Sequence[str], response: Response, seeds: int = 10, within: dict[str, str] | None = None
) -> Ablation:
    runs = dict[tuple[str, int], Any]()
    everything = frozenset(names)
    found = [
        {"name": n, "kind": "rule", "a": "0", "b": "1", "within": (within or {}).get(n), "function": None}
        for n in names
    ]
    have = {"a": frozenset[str](), "b": everything}
    for n in names:
        have["+" + n], have["-" + n] = frozenset([n]), everything - {n}
    for seed in range(seeds):
        for variant, mechanisms in have.items():
            value = response(mechanisms, seed)
            digest = json.dumps([sorted(mechanisms), value])
            runs[variant, seed] = SimpleNamespace(metrics={"m": value}, digest=digest)
    scenario = cast(Scenario, SimpleNamespace(name="s", seeds=tuple(range(seeds)), noise=True, machine=None))
    return ablation._judged(scenario, ("a", "b"), METRIC, found, cast(Any, runs), ())


def _logarithms(terms: dict[frozenset[str], float], noise: Callable[[int], float] = lambda seed: 0.0) -> Response:
    """exp of the sum of what is there, with what it does together; the noise is common to all runs of a seed."""
    return lambda have, seed: math.exp(1 + noise(seed) + sum(v for names, v in terms.items() if names <= have))


def _log(shown: Interval | None) -> float:
    assert shown is not None
    return math.log1p(shown.estimate / 100)


effects = st.floats(-0.5, 0.5).map(lambda x: round(x, 3))


@given(st.lists(effects, min_size=1, max_size=6))
@settings(max_examples=60)
def test_what_adds_up_is_found_as_it_is(sizes: list[float]) -> None:
    names = [f"m{i}" for i in range(len(sizes))]
    answer = _ablate(names, _logarithms({frozenset([n]): v for n, v in zip(names, sizes, strict=True)}))
    for part in answer.parts:
        size = sizes[names.index(part.name)]
        assert _log(part.effect) == pytest.approx(size, abs=1e-9)
        assert _log(part.depends) == pytest.approx(0, abs=1e-9)
        if part.share is not None:
            assert part.share == pytest.approx(size / sum(sizes), rel=1e-6, abs=1e-6)
    assert _log(answer.effect) == pytest.approx(sum(sizes), abs=1e-9)
    assert _log(answer.interaction) == pytest.approx(0, abs=1e-9)
    assert _log(answer.unattributed) == pytest.approx(0, abs=1e-9)


@given(st.lists(effects, min_size=3, max_size=5), st.data())
@settings(max_examples=60)
def test_what_two_do_together_is_split_between_them_and_said(sizes: list[float], data: st.DataObject) -> None:
    names = [f"m{i}" for i in range(len(sizes))]
    terms = {frozenset([n]): v for n, v in zip(names, sizes, strict=True)}
    pairs = {frozenset(p): data.draw(effects) for p in combinations(names, 2)}
    answer = _ablate(names, _logarithms(terms | pairs))
    for part in answer.parts:
        own = sum(v for pair, v in pairs.items() if part.name in pair)
        assert _log(part.effect) == pytest.approx(terms[frozenset([part.name])] + own / 2, abs=1e-9)
        assert _log(part.depends) == pytest.approx(own, abs=1e-9)
    assert _log(answer.interaction) == pytest.approx(sum(pairs.values()), abs=1e-9)
    assert _log(answer.unattributed) == pytest.approx(0, abs=1e-9), "pairs are split in halves"


@given(effects, effects)
@settings(max_examples=30)
def test_what_three_do_together_is_not_attributed(each: float, three: float) -> None:
    names = ["x", "y", "z"]
    terms = {frozenset([n]): each for n in names} | {frozenset(names): three}
    answer = _ablate(names, _logarithms(terms))
    # Each loses it when it is taken away and gains nothing alone: three halves of it, for one.
    assert _log(answer.unattributed) == pytest.approx(-three / 2, abs=1e-9)
    assert _log(answer.interaction) == pytest.approx(three, abs=1e-9)


def test_values_that_may_be_zero_are_taken_as_differences() -> None:
    answer = _ablate(["x", "y"], lambda have, seed: 3.0 * ("x" in have) + 1.0 * ("y" in have) + seed % 2)
    assert not answer.percent
    assert {p.name: (p.effect.estimate, p.share) for p in answer.parts if p.effect} == {"x": (3, 0.75), "y": (1, 0.25)}


def test_a_part_of_a_bundle_counts_in_the_bundle_alone() -> None:
    # The bundle brings its part along; alone the part works on its own side only.
    def response(have: frozenset[str], seed: int) -> float:
        return math.exp(0.3 * ("bundle" in have) + 0.2 * ({"bundle", "part"} <= have))

    answer = _ablate(["bundle", "part"], response, within={"part": "bundle"})
    part = next(p for p in answer.parts if p.name == "part")
    assert _log(part.effect) == pytest.approx(0.2)
    assert part.depends is None


def test_a_noisy_seed_moves_all_its_runs_and_so_no_effect() -> None:
    noise = [random.Random(seed).gauss(0, 2) for seed in range(10)]
    terms = {frozenset("x"): 0.2, frozenset("y"): 0.1}
    answer = _ablate(["x", "y"], _logarithms(terms, lambda seed: noise[seed]))
    assert [p.name for p in answer.parts] == ["x", "y"]
    assert [p.share for p in answer.parts] == pytest.approx([2 / 3, 1 / 3])
    assert answer.effect.high - answer.effect.low < 1e-6


def test_a_mechanism_without_effect_has_no_share_to_speak_of() -> None:
    rng = random.Random(1)
    noise = {(seed, i): rng.gauss(0, 0.02) for seed in range(10) for i in range(64)}
    subsets = dict[frozenset[str], int]()

    def response(have: frozenset[str], seed: int) -> float:
        return math.exp(0.5 * ("x" in have) + noise[seed, subsets.setdefault(have, len(subsets))])

    answer = _ablate(["x", "nothing"], response)
    nothing = next(p for p in answer.parts if p.name == "nothing")
    assert nothing.share_range is not None
    assert nothing.share_range.low < 0 < nothing.share_range.high
    x = next(p for p in answer.parts if p.name == "x")
    assert x.share_range is not None
    assert 0.9 < x.share_range.low < 1 < x.share_range.high < 1.1


@pytest.mark.parametrize(("n", "spread"), [(6, 0.3), (10, 0.3), (10, 1.0), (20, 1.0)])
def test_intervals_hold_what_they_promise(n: int, spread: float) -> None:
    """Each seed has effects of its own around the true ones, and every run its own noise: 95% of the intervals hold."""
    rng, rounds = random.Random(17 * n), 400
    truth = {"x": 0.4, "y": 0.2}
    held, shares, possible = 0, 0, 0
    for _ in range(rounds):
        own = [{m: v * (1 + rng.gauss(0, spread)) for m, v in truth.items()} for _ in range(n)]
        level = [rng.gauss(0, 1) for _ in range(n)]

        def response(have: frozenset[str], seed: int, own: Any = own, level: Any = level) -> float:
            return math.exp(level[seed] + sum(own[seed][m] for m in have) + rng.gauss(0, 0.03))

        answer = _ablate(["x", "y"], response, n)
        x = next(p for p in answer.parts if p.name == "x")
        assert x.effect is not None
        held += x.effect.low <= 100 * math.expm1(truth["x"]) <= x.effect.high
        if x.share_range:
            possible += 1
            shares += x.share_range.low <= 2 / 3 <= x.share_range.high
    # Exact for symmetric distributions: at least 95%, with three standard errors of a simulation.
    slack = 3 * math.sqrt(0.05 * 0.95 / rounds)
    assert held / rounds > 0.95 - slack
    assert possible > rounds / 3
    assert shares / possible > 0.95 - 3 * math.sqrt(0.05 * 0.95 / possible)


def test_a_share_of_what_is_not_certain_is_none() -> None:
    rng = random.Random(3)
    totals = [rng.gauss(0, 1) for _ in range(10)]
    assert share_interval([1.0] * 10, totals) is None
    assert share_interval([1.0] * 5, [2.0] * 5) is None, "too few"
    same = share_interval([1.0] * 8, [2.0] * 8)
    assert same == Interval(0.5, 0.5, 0.5)
    negative = share_interval([-1.0 - 0.01 * i for i in range(8)], [-2.0 - 0.02 * i for i in range(8)])
    assert negative is not None
    assert negative.estimate == pytest.approx(0.5)
