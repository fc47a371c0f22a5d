"""Many variants: each against the baseline, one line per variant and one column per metric, the best marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab.render.cells import change, plural
from schedlab.render.grid import columns, fold, layout, value
from schedlab.render.lines import MOST, importance, named
from schedlab.statistics import median

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison

BEST = "*"


def matrix(comparison: Comparison, *, width: int) -> list[str]:
    """A sentence about the headline metric, and a block for each baseline."""
    metrics = sorted(comparison.metrics, key=lambda m: importance(m, m.comparisons[0])[:2])
    baselines = list(dict.fromkeys(a for a, _ in comparison.pairs))
    parts = [fold(_headline(comparison, metrics[0]), width)] if metrics else []
    shown = _fitting(comparison, baselines, metrics[:MOST], width)
    parts += ["\n".join(columns(_rows(comparison, one, shown), _align(shown), width=width)) for one in baselines]
    left = len(metrics) - len(shown)
    if left > 0:
        parts.append(f"... and {plural(left, 'metric')} more")
    parts.append(f"{BEST} no other variant is better with certainty in this metric (Holm over its pairs)")
    return parts


def _fitting(
    comparison: Comparison, baselines: list[str], metrics: list[MetricComparison], width: int
) -> list[MetricComparison]:
    """As many of the metrics as fit beside each other, at least one; the words of the head may wrap."""
    for count in range(len(metrics), 1, -1):
        shown = metrics[:count]
        rows = [
            row for one in baselines for row in layout(_rows(comparison, one, shown), _align(shown), width=width)[1:]
        ]
        if all(len(lines) == 1 for lines in rows):
            return shown
    return metrics[:1]


def _align(metrics: list[MetricComparison]) -> str:
    return "<" + ">" * len(metrics)


def _rows(comparison: Comparison, baseline: str, metrics: list[MetricComparison]) -> list[list[str]]:
    """The baseline's medians, then the changes of each variant against it."""
    best = {r.metric: {name for name, rank in r.ranks.items() if rank == 1} for r in comparison.rankings}
    names = [c.name for c in comparison.columns]
    # Where all share the first rank nothing is the best.
    best = {metric: those for metric, those in best.items() if len(those) < len(names)}
    rows = [["variant", *(named(m) for m in metrics)]]
    rows.append([baseline, *(_best(value(median(m.samples[baseline])), m, baseline, best) for m in metrics)])
    for name in names:
        cells = []
        for m in metrics:
            j = next((j for j in m.comparisons if (j.a, j.b) == (baseline, name)), None)
            if j is None:
                continue
            cells.append(_best(change(j), m, name, best))
        if cells:
            rows.append([name, *cells])
    return rows


def _best(text: str, m: MetricComparison, name: str, best: dict[str, set[str]]) -> str:
    return f"{text} {BEST}" if name in best.get(m.metric.name, ()) else f"{text}  "


def _headline(comparison: Comparison, m: MetricComparison) -> str:
    """Which variants are the best in the most important metric."""
    ranking = next((r for r in comparison.rankings if r.metric == m.metric.name), None)
    baseline = comparison.pairs[0][0]
    if ranking is None:
        return f"{m.metric.name} has no direction in which it is better; changes are against {baseline}."
    first = [name for name, rank in ranking.ranks.items() if rank == 1]
    if len(first) == len(ranking.ranks):
        seeds = plural(len(comparison.seeds), "seed")
        return f"No variant is better than another with certainty in {m.metric.name} ({seeds})."
    changes = {j.b: change(j) for j in m.comparisons if j.a == baseline}
    shown = [f"{name} ({changes[name]} against {baseline})" if name in changes else name for name in first]
    if len(shown) == 1:
        return f"{shown[0]} is the best in {m.metric.name}."
    several = ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")
    return f"The best in {m.metric.name}, not distinguished from each other: {several}."
