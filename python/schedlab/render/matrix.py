"""Many variants: each against the baseline, one line per variant and one column per metric, the best marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schedlab.render.cells import change, plural
from schedlab.render.grid import columns, fold, layout, value
from schedlab.render.lines import MOST, importance, named
from schedlab.render.together import needed
from schedlab.statistics import median

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison

BEST = "*"
NAMED = 4
"""How many variants a sentence names; the others are counted."""


def matrix(comparison: Comparison, *, width: int) -> list[str]:
    """A sentence about the headline metric, and a block for each baseline."""
    metrics, baselines = by_importance(comparison), baselines_of(comparison)
    parts = [fold(best_variants(comparison), width)] if metrics else []
    shown = _fitting(comparison, baselines, metrics[:MOST], width)
    parts += ["\n".join(columns(_padded(comparison, one, shown), _align(shown), width=width)) for one in baselines]
    left = len(metrics) - len(shown)
    if left > 0:
        parts.append(f"... and {plural(left, 'metric')} more")
    return [*parts, "\n".join(legend(shown, "\n".join(parts)))]


def by_importance(comparison: Comparison) -> list[MetricComparison]:
    """The metrics in the order in which they are shown."""
    return sorted(comparison.metrics, key=lambda m: importance(m, m.comparisons[0])[:2])


def baselines_of(comparison: Comparison) -> list[str]:
    """The variants against which others are judged."""
    return list(dict.fromkeys(a for a, _ in comparison.pairs))


def best_variants(comparison: Comparison) -> str:
    """The answer: which variants are the best in the most important metric."""
    return _headline(comparison, by_importance(comparison)[0])


def legend(metrics: list[MetricComparison], text: str) -> list[str]:
    """In which direction the metrics are better, and what the mark means if it is there."""
    lines = []
    for better in ("lower", "higher"):
        names = [m.metric.name for m in metrics if m.metric.better == better]
        lines += [f"{better} is better: {', '.join(names)}"] if names else []
    mark = f"{BEST} no other variant is better with certainty in this metric (Holm over its pairs)"
    return [*lines, *([mark] if f" {BEST}" in text else [])]


def _alone(m: MetricComparison, baseline: str) -> str:
    """Which variants differ from the baseline when each is tested alone."""
    parts = []
    for effect in ("better", "worse"):
        found = [j for j in m.comparisons if j.a == baseline and j.effect == effect]
        found.sort(key=lambda j: -abs(j.difference.estimate or 0.0))
        shown = [f"{j.b} ({change(j)})" for j in found[:NAMED]]
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        parts += [f"{effect}: {', '.join(shown)}{more}"] if found else []
    return f" Each tested alone against {baseline}, {'; '.join(parts)}." if parts else ""


def _more_seeds(comparison: Comparison) -> str:
    """With how many seeds two of the variants could be distinguished, if there are fewer."""
    least = needed(len(comparison.columns), len(comparison.seeds))
    return f" That takes at least {least} seeds: --seeds {least}." if least else ""


def _fitting(
    comparison: Comparison, baselines: list[str], metrics: list[MetricComparison], width: int
) -> list[MetricComparison]:
    """As many of the metrics as fit beside each other, at least one; the words of the head may wrap."""
    for count in range(len(metrics), 1, -1):
        shown = metrics[:count]
        rows = [
            row for one in baselines for row in layout(_padded(comparison, one, shown), _align(shown), width=width)[1:]
        ]
        if all(len(lines) == 1 for lines in rows):
            return shown
    return metrics[:1]


def _align(metrics: list[MetricComparison]) -> str:
    return "<" + ">" * len(metrics)


def _padded(comparison: Comparison, baseline: str, metrics: list[MetricComparison]) -> list[list[str]]:
    """The rows, with room behind numbers without the mark."""
    head, *rows = table_rows(comparison, baseline, metrics)
    return [head, *([name, *(f"{text}{'' if text.endswith(BEST) else '  '}" for text in row)] for name, *row in rows)]


def table_rows(comparison: Comparison, baseline: str, metrics: list[MetricComparison]) -> list[list[str]]:
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
    return f"{text} {BEST}" if name in best.get(m.metric.name, ()) else text


def _headline(comparison: Comparison, m: MetricComparison) -> str:
    """Which variants are the best in the most important metric."""
    ranking = next((r for r in comparison.rankings if r.metric == m.metric.name), None)
    baseline = comparison.pairs[0][0]
    if ranking is None:
        text = f"{m.metric.name} has no direction in which it is better; changes are against {baseline}."
        return text + _more_seeds(comparison)
    first = [name for name, rank in ranking.ranks.items() if rank == 1]
    if len(first) == len(ranking.ranks):
        seeds = plural(len(comparison.seeds), "seed")
        text = f"No variant is better than another with certainty in {m.metric.name} ({seeds})."
        return text + _more_seeds(comparison) + _alone(m, baseline)
    changes = {j.b: change(j) for j in m.comparisons if j.a == baseline}
    shown = [f"{name} ({changes[name]} against {baseline})" if name in changes else name for name in first]
    if len(shown) == 1:
        return f"{shown[0]} is the best in {m.metric.name}."
    several = ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if len(shown) > NAMED else "")
    return f"The best in {m.metric.name}, not distinguished from each other: {several}."
