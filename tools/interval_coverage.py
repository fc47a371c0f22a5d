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
from schedlab.statistics import SMALLEST_N, walsh_interval

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
    lines = ["| effect | the interval as one for | " + " | ".join(f"n = {n}" for n in sizes) + " |"]
    lines.append("|---|---|" + "---|" * len(sizes))
    for name, (draw, truths) in REAL.items():
        for what, truth in truths.items():
            shares = " | ".join(f"{100 * misses(draw, used, n, trials, truth=truth):.1f}" for n in sizes)
            lines.append(f"| {name} | the {what} | {shares} |")
    return lines


if __name__ == "__main__":
    assert SMALLEST_N == 6
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    print("\n".join([*table(trials), "", *real_table(trials)]))
