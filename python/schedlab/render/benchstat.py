"""The layout and the statistics of Go's benchstat: medians, Mann-Whitney's U test on unpaired samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from schedlab.comparison import Comparison, MetricComparison
from schedlab.render.cells import headline
from schedlab.render.grid import columns, value
from schedlab.render.notes import trouble
from schedlab.statistics import median

ALPHA = 0.05


def render(comparison: Comparison, *, colour: bool = False) -> str:
    """A table per unit, without a final newline."""
    del colour
    blocks = [headline(comparison)]
    for unit in dict.fromkeys(m.metric.unit for m in comparison.metrics):
        blocks.append(_table(comparison, unit, [m for m in comparison.metrics if m.metric.unit == unit]))
    notes = [
        "~ = p above 0.05 (Mann-Whitney U on unpaired samples); the default style uses the pairing",
        *trouble(comparison),
    ]
    return "\n\n".join([*blocks, "\n".join(notes)])


def _table(comparison: Comparison, unit: str, metrics: list[MetricComparison]) -> str:
    baseline = {b: a for a, b in comparison.pairs}
    rows = [[""], [""]]
    align = "<"
    for c in comparison.columns:
        rows[0] += [f"│ {c.name}", *([""] if c.name in baseline else [])]
        rows[1] += [f"│ {unit or 'count'}", *(["vs base"] if c.name in baseline else [])]
        align += "<<" if c.name in baseline else "<"
    for m in metrics:
        row = [m.metric.name]
        for c in comparison.columns:
            samples = _present(m.samples[c.name])
            row.append(f"  {centre(samples)}")
            if c.name in baseline:
                row.append(versus(_present(m.samples[baseline[c.name]]), samples))
        rows.append(row)
    return "\n".join(columns(rows, align, width=None))


def centre(samples: Sequence[float]) -> str:
    """The median and the larger half of its order-statistic interval, relative."""
    middle = median(samples)
    if middle is None:
        return "-"
    reach = order_statistic_interval(samples)
    if reach is None:
        return f"{value(middle)} ± ∞"
    half = max(middle - reach[0], reach[1] - middle)
    return f"{value(middle)} ± {100 * half / abs(middle):.0f}%" if middle else f"{value(middle)} ± ∞"


def order_statistic_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """The narrowest pair of order statistics around the median that covers at least 95%, or None with too few."""
    ordered, n = sorted(samples), len(samples)
    below, k = 0.0, -1
    for i in range(n):
        below += math.comb(n, i) / 2**n
        if below > ALPHA / 2:
            break
        k = i
    return (ordered[k], ordered[n - 1 - k]) if k >= 0 else None


def versus(base: Sequence[float], samples: Sequence[float]) -> str:
    """The change of the median with its p, or `~`."""
    n = f"n={len(base)}" if len(base) == len(samples) else f"n={len(base)}+{len(samples)}"
    first, second = median(base), median(samples)
    if first is None or second is None:
        return "-"
    p = mann_whitney(base, samples)
    if not p <= ALPHA:
        return f"~ (p={p:.3f} {n})"
    delta = f"{100 * second / first - 100:+.2f}%" if first else "?"
    return f"{delta} (p={p:.3f} {n})"


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p: exact up to 50 values a side, with ties up to 25; beyond that normal with continuity correction."""
    from scipy.stats import mannwhitneyu

    if len({*a, *b}) == 1:
        return 1.0
    largest, ties = max(len(a), len(b)), len({*a, *b}) < len(a) + len(b)
    if ties and largest <= 25:
        return _exact_with_ties(a, b)
    return float(mannwhitneyu(a, b, method="exact" if largest <= 50 and not ties else "asymptotic").pvalue)


def _exact_with_ties(a: Sequence[float], b: Sequence[float]) -> float:
    """Share of all divisions of the values whose rank sum is as extreme; scipy has it without ties."""
    from scipy.stats import rankdata

    doubled = [round(2 * rank) for rank in rankdata([*a, *b])]
    # ways[k][s]: in how many ways k of the ranks seen so far have the doubled sum s
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in a)]
    for rank in doubled:
        for k in range(len(a), 0, -1):
            for total, count in ways[k - 1].items():
                ways[k][total + rank] = ways[k].get(total + rank, 0) + count
    middle, seen = len(a) * (len(a) + len(b) + 1), sum(doubled[: len(a)])
    extreme = sum(n for total, n in ways[len(a)].items() if total <= middle - abs(seen - middle))
    return min(1.0, 2 * extreme / math.comb(len(doubled), len(a)))


def _present(samples: Sequence[float | None]) -> list[float]:
    return [x for x in samples if x is not None]
