"""The layout and the statistics of FreeBSD's ministat: a plot, vitals, Student's t with pooled variance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from schedlab.comparison import Comparison, MetricComparison
from schedlab.render.cells import headline
from schedlab.render.notes import trouble

WIDTH = 74
CONFIDENCE = 95.0
_MARKS = "x+*%#@O"


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """A plot and a table per metric and pair, without a final newline."""
    del colour
    blocks = [headline(comparison)]
    for m in comparison.metrics:
        for a, b in comparison.pairs:
            unit = f" ({m.metric.unit})" if m.metric.unit else ""
            blocks.append(f"{m.metric.name}{unit}, {comparison.arm_word}\n{_one(m, a, b)}")
    return "\n\n".join([*blocks, *(["\n".join(trouble(comparison))] if trouble(comparison) else [])])


def _one(m: MetricComparison, a: str, b: str) -> str:
    first, second = (sorted(x for x in m.samples[n] if x is not None) for n in (a, b))
    head = f"x {a}\n+ {b}"
    if min(len(first), len(second)) < 3:
        return f"{head}\n[needs at least 3 values a side]"
    lines = [
        head,
        *plot(first, second),
        "    N" + "".join(f" {name:>13}" for name in ("Min", "Max", "Median", "Avg", "Stddev")),
    ]
    lines += [vitals("x", first), vitals("+", second), *difference(first, second)]
    return "\n".join(lines)


def vitals(mark: str, values: Sequence[float]) -> str:
    """One line of the table; ministat's median is the upper one."""
    numbers = [values[0], values[-1], values[len(values) // 2], statistics.fmean(values), statistics.stdev(values)]
    return f"{mark} {len(values):3d} " + " ".join(f"{n:13.8g}" for n in numbers)


def difference(base: Sequence[float], values: Sequence[float]) -> list[str]:
    """The verdict lines. `No difference proven` is not a proof of none."""
    from scipy.stats import t

    n0, n1 = len(base), len(values)
    m0, m1 = statistics.fmean(base), statistics.fmean(values)
    v0, v1 = statistics.variance(base), statistics.variance(values)
    pooled = math.sqrt(((n0 - 1) * v0 + (n1 - 1) * v1) / (n0 + n1 - 2))
    critical = round(float(t.ppf(0.5 + CONFIDENCE / 200, n0 + n1 - 2)), 3)  # as many digits as ministat's own table
    error = critical * pooled * math.sqrt(1 / n0 + 1 / n1)
    if abs(m1 - m0) <= error:
        return [f"No difference proven at {CONFIDENCE:.1f}% confidence"]
    lines = [f"Difference at {CONFIDENCE:.1f}% confidence", f"\t{m1 - m0:g} +/- {error:g}"]
    if m0:
        lines.append(f"\t{(m1 - m0) * 100 / m0:g}% +/- {error * 100 / abs(m0):g}%")
    return [*lines, f"\t(Student's t, pooled s = {pooled:g})"]


def plot(first: Sequence[float], second: Sequence[float]) -> list[str]:
    """The values as columns of marks, `*` where both meet, and a bar of mean +- deviation for each side."""
    low, high = min(first[0], second[0]), max(first[-1], second[-1])
    if low == high:
        return ["[no plot, span is zero width]"]
    scale = (WIDTH - 3) / (high - low)

    def at(x: float) -> int:
        return min(WIDTH - 1, max(0, round((x - low) * scale) + 1))

    stacks: list[list[str]] = [[] for _ in range(WIDTH)]
    for column in range(WIDTH):
        counts = [sum(at(x) == column for x in side) for side in (first, second)]
        for level in range(max(counts)):
            both = counts[0] > level and counts[1] > level
            stacks[column].append("*" if both else _MARKS[0 if counts[0] > level else 1])
    height = max(map(len, stacks))
    edge = "+" + "-" * WIDTH + "+"
    rows = [
        "|" + "".join(s[level] if len(s) > level else " " for s in stacks) + "|" for level in reversed(range(height))
    ]
    return [edge, *rows, *(_bar(side, at) for side in (first, second)), edge]


def _bar(values: Sequence[float], at: object) -> str:
    assert callable(at)
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    line = [" "] * WIDTH
    left, right = at(mean - deviation), at(mean + deviation)
    line[left : right + 1] = ["|", *"_" * (right - left - 1), "|"] if right > left else ["|"]
    line[at(values[len(values) // 2])] = "M"
    line[at(mean)] = "A"
    return "|" + "".join(line) + "|"
