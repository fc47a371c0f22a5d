"""The layout of `perf stat -r N`: a mean with its relative standard error for each metric, one block per variant.

perf's manual calls the number after `+-` a standard deviation; it is the standard error of the mean, as here.
"""

from __future__ import annotations

import math

from schedlab.comparison import Comparison
from schedlab.render.cells import headline
from schedlab.render.notes import trouble


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """The whole text, without a final newline."""
    del colour
    blocks = [headline(comparison)]
    for column in comparison.columns:
        samples = [(m.metric, m.samples[column.name]) for m in comparison.metrics]
        name = f" Performance counter stats for '{column.name}' ({len(comparison.seeds)} runs):"
        lines = [line(values, metric.unit, metric.name) for metric, values in samples]
        blocks.append("\n".join([name, "", *lines]))
    below = trouble(comparison)
    return "\n\n".join([*blocks, *(["\n".join(below)] if below else [])])


def line(samples: list[float | None], unit: str, name: str) -> str:
    values = [x for x in samples if x is not None]
    if not values:
        return f"{'<not counted>':>18} {unit:<4} {name}"
    text = f"{_number(math.fsum(values) / len(values), unit):>18} {unit:<4} {name:<40}"
    return f"{text} {spread(values)}".rstrip()


def _number(mean: float, unit: str) -> str:
    """Counts whole and times with two decimals, as perf prints them; what would lose its digits keeps four."""
    if not unit and (mean == int(mean) or abs(mean) >= 10):
        return f"{mean:,.0f}"
    return f"{mean:,.2f}" if abs(mean) >= 0.1 else f"{mean:.4g}"


def spread(values: list[float]) -> str:
    """`( +-  1.23% )`, the standard error of the mean relative to it; nothing for a single run."""
    if len(values) < 2:
        return ""
    mean = math.fsum(values) / len(values)
    variance = math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)
    error = math.sqrt(variance / len(values))
    return f"( +-{100 * error / abs(mean) if mean else 0:6.2f}% )"
