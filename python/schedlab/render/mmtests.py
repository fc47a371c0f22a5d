"""The layout of mmtests' compare script: a line per statistic and metric, positive always better.

Differs on purpose: a star marks a change whose paired 95% interval excludes 0. mmtests' own star compares standard
deviations, so it does not come nearer with more samples.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from schedlab.comparison import Comparison, MetricComparison
from schedlab.render.cells import headline
from schedlab.render.notes import trouble

Statistic = Callable[[list[float], bool], float]


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline."""
    del colour
    names = [c.name for c in comparison.columns]
    width = max([len(m.metric.name) for m in comparison.metrics] or [1])
    lines = [headline(comparison), "", " " * (10 + width) + "".join(f"{name:>24}" for name in names)]
    for label, higher, statistic in _STATISTICS:
        for m in comparison.metrics:
            if higher is None or higher == (m.metric.better == "higher"):
                lines.append(_line(comparison, m, label, statistic, width))
    lines += ["", "positive = better; * = the paired 95% interval excludes 0", *trouble(comparison)]
    return "\n".join(lines)


def _line(comparison: Comparison, m: MetricComparison, label: str, statistic: Statistic, width: int) -> str:
    higher = m.metric.better == "higher"
    numbers = {name: _apply(statistic, values, higher) for name, values in m.samples.items()}
    baseline = {b: a for a, b in comparison.pairs}
    starred = {j.b for j in m.comparisons if j.effect != "none"} if label.endswith("mean") else set()
    spread = label in ("Stddev", "CoeffVar")
    cells = [
        _cell(numbers[name], numbers[baseline.get(name, name)], higher=higher and not spread, star=name in starred)
        for name in m.samples
    ]
    return f"{label:<9} {m.metric.name:<{width}}" + "".join(cells)


def _cell(number: float | None, base: float | None, *, higher: bool, star: bool) -> str:
    if number is None:
        return f"{'-':>14}{'':>10}"
    left, right = ("*", "*") if star else ("(", ")")
    if base is None or base == 0:
        delta = 0.0 if base == number else math.nan
    else:
        delta = number * 100 / base - 100 if higher else 100 - number * 100 / base
    return f"  {number:12.2f} {left}{round(delta, 2) + 0.0:7.2f}%{right}"


def _apply(statistic: Statistic, samples: list[float | None], higher: bool) -> float | None:
    values = sorted(x for x in samples if x is not None)
    return statistic(values, higher) if values else None


def _harmonic(values: list[float], higher: bool) -> float:
    del higher
    return statistics.harmonic_mean(values) if values[0] > 0 else math.nan


def _amean(values: list[float], higher: bool) -> float:
    del higher
    return statistics.fmean(values)


def _best95(mean: Statistic) -> Statistic:
    """The best 95% of the samples; of those where higher is better mmtests keeps one more."""

    def of(values: list[float], higher: bool) -> float:
        keep = int(len(values) * 0.95)
        return mean(values[-keep - 1 :] if higher else values[: max(1, keep)], higher)

    return of


def _stddev(values: list[float], higher: bool) -> float:
    """Around the harmonic mean where higher is better."""
    if len(values) < 2:
        return 0.0
    if not higher:
        return statistics.stdev(values)
    if values[0] <= 0:
        return math.nan
    mean = statistics.harmonic_mean(values)
    squares = math.fsum((1 / x - 1 / mean) ** 2 for x in values)
    return math.sqrt(squares * mean**4 / len(values))


def _coeffvar(values: list[float], higher: bool) -> float:
    mean = _harmonic(values, higher) if higher else _amean(values, higher)
    return 100 * _stddev(values, higher) / mean if mean else 0.0


_STATISTICS: tuple[tuple[str, bool | None, Statistic], ...] = (
    ("Min", None, lambda values, _: values[0]),
    ("Hmean", True, _harmonic),
    ("Amean", False, _amean),
    ("Stddev", None, _stddev),
    ("CoeffVar", None, _coeffvar),
    ("Max", None, lambda values, _: values[-1]),
    ("BHmean-95", True, _best95(_harmonic)),
    ("BAmean-95", False, _best95(_amean)),
)
