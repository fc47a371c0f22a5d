"""Measures how often a 95% interval misses the truth, for the interval that schedlab uses and two that it does not.

Prints the tables of docs/judging.md, the same every time: `python tools/interval_coverage.py [TRIALS]`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from schedlab.statistics import SMALLEST_N, Plan, p_value, spread, tail_difference, walsh_interval

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Bounds = Callable[[Floats], tuple[float, float]]


def same_thing(side: Callable[[np.random.Generator, int], Floats]) -> Draw:
    """Paired differences of logarithms when both variants are the same thing."""
    return lambda rng, n: side(rng, n) - side(rng, n)


DRAWS: dict[str, Draw] = {
    "normal": same_thing(lambda rng, n: rng.normal(size=n)),
    "heavy tails": same_thing(lambda rng, n: rng.standard_t(2, size=n)),
    "skewed": same_thing(lambda rng, n: rng.exponential(size=n) ** 2),
    "two modes": same_thing(lambda rng, n: rng.choice([0.0, 10.0], size=n) + rng.normal(size=n)),
    "few values": same_thing(lambda rng, n: rng.poisson(2, size=n).astype(float)),
}
"""The truth is 0 in all of them."""


def used(d: Floats) -> tuple[float, float]:
    interval = walsh_interval(d.tolist())
    return interval.low, interval.high


def student(d: Floats) -> tuple[float, float]:
    from scipy.stats import t

    half = float(t.ppf(0.975, len(d) - 1)) * d.std(ddof=1) / len(d) ** 0.5
    return d.mean() - half, d.mean() + half


def bca_median(d: Floats) -> tuple[float, float]:
    from scipy.stats import bootstrap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bootstrap((d,), np.median, method="BCa", n_resamples=999, rng=np.random.default_rng(1))
    low, high = found.confidence_interval
    return float(low), float(high)


REAL: dict[str, tuple[Draw, dict[str, float]]] = {
    "exponential": (
        lambda rng, n: rng.exponential(size=n),
        {"pseudo-median": 0.839173, "median": np.log(2.0), "mean": 1.0},
    ),
    "lognormal": (
        lambda rng, n: rng.lognormal(0.0, 1.0, size=n),
        {"pseudo-median": 1.22137, "median": 1.0, "mean": np.exp(0.5)},
    ),
}
"""Effects that are there and not symmetric, and what could be meant by their size.

The pseudo-median of the exponential is half the median of a Gamma(2); that of the lognormal is the median of 40 million
averages of two.
"""


METHODS: dict[str, Bounds] = {"signed rank": used, "Student's t": student, "BCa of the median": bca_median}


def misses(draw: Draw, bounds: Bounds, n: int, trials: int, seed: int = 20, truth: float = 0.0) -> float:
    """The share of trials whose interval leaves out the truth; an interval without numbers counts as a miss."""
    rng = np.random.default_rng([seed, n])
    missed = 0
    for _ in range(trials):
        low, high = bounds(draw(rng, n))
        missed += not low <= truth <= high
    return missed / trials


def table(trials: int, sizes: Sequence[int] = (6, 10, 20, 30)) -> list[str]:
    """Markdown lines: percent of misses, 5 being what 95% promises."""
    lines = ["| differences | method | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
    lines.append("|---|---|" + "---|" * len(sizes))
    for name, draw in DRAWS.items():
        for method, bounds in METHODS.items():
            few = max(200, trials // 10) if bounds is bca_median else trials
            shares = " | ".join(f"{100 * misses(draw, bounds, n, few):.1f}" for n in sizes)
            lines.append(f"| {name} | {method} | {shares} |")
    return lines


def real_table(trials: int, sizes: Sequence[int] = (6, 10, 20, 30)) -> list[str]:
    """The same for asymmetric effects: misses of each thing that the size of an effect could mean."""
    lines = ["| effect | interval taken for | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
    lines.append("|---|---|" + "---|" * len(sizes))
    for name, (draw, truths) in REAL.items():
        for what, truth in truths.items():
            shares = " | ".join(f"{100 * misses(draw, used, n, trials, truth=truth):.1f}" for n in sizes)
            lines.append(f"| {name} | the {what} | {shares} |")
    return lines


def auto_misses(draw: Draw, budget: int, trials: int) -> float:
    """The share of trials in which any look of `--seeds auto` finds a difference."""
    rng, plan = np.random.default_rng([21, budget]), Plan.up_to(budget)
    found = 0
    for _ in range(trials):
        d = draw(rng, budget).tolist()
        found += any(p_value(d[:n]) <= plan.level(n, 0.05) for n in plan.looks)
    return found / trials


def spread_misses(draw: Draw, n: int, trials: int) -> float:
    """The share of trials whose interval of the ratio of two equal spreads excludes 0."""
    rng = np.random.default_rng([22, n])
    found = 0
    for _ in range(trials):
        change = spread(np.exp(0.01 * draw(rng, n)).tolist(), np.exp(0.01 * draw(rng, n)).tolist()).change
        found += change is not None and change.excludes_zero()
    return found / trials


def tail_misses(between: float, n: int, trials: int) -> float:
    """The share of trials whose interval of the difference of two equal p99 excludes 0; 400 samples a unit."""
    rng = np.random.default_rng([23, n, round(100 * between)])
    found = 0
    for _ in range(trials):
        shared = rng.normal(0, between, (n, 1))
        units = []
        sides = [np.round(100 * np.exp(shared + rng.normal(0, 0.5, (n, 400)))) for _ in range(2)]
        for pair in zip(*sides, strict=True):
            counted = (np.unique(side, return_counts=True) for side in pair)
            units.append(tuple(list(zip(v.tolist(), c.tolist(), strict=True)) for v, c in counted))
        tail = tail_difference(units, 99)  # type: ignore[arg-type]
        found += tail is not None and tail.difference is not None and tail.difference.excludes_zero()
    return found / trials


def further_table(trials: int, sizes: Sequence[int] = (6, 10, 20, 30)) -> list[str]:
    """The same for looks, spreads and tails."""
    lines = ["| what | samples | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
    lines.append("|---|---|" + "---|" * len(sizes))

    def row(what: str, samples: str, miss: Callable[[int], float]) -> str:
        return f"| {what} | {samples} | " + " | ".join(f"{100 * miss(n):.1f}" for n in sizes) + " |"

    for name in ("normal", "heavy tails", "skewed"):
        draw = DRAWS[name]
        lines.append(row("spread", name, lambda n, draw=draw: spread_misses(draw, n, trials)))  # type: ignore[misc]
    for between in (0.0, 0.3):
        lines.append(row("p99", f"between units {between:g}", lambda n, b=between: tail_misses(b, n, trials)))  # type: ignore[misc]
    budgets = ["", "| `--seeds auto` | differences | budget of 40 | budget of 100 |", "|---|---|---|---|"]
    for name in ("normal", "heavy tails", "two modes"):
        rates = " | ".join(f"{100 * auto_misses(DRAWS[name], budget, trials):.1f}" for budget in (40, 100))
        budgets.append(f"| any look | {name} | {rates} |")
    return [*lines, *budgets]


if __name__ == "__main__":
    assert SMALLEST_N == 6
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print("\n".join([*table(trials), "", *real_table(trials), "", *further_table(max(100, trials // 10))]))
