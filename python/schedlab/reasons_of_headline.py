"""Adds to a simulated comparison why its headline differs: the slowest samples of a few seeds are examined again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from schedlab.closer import Closer, loaded
from schedlab.errors import Cancelled, SchedlabError
from schedlab.render.summary import headline_metric
from schedlab.render.why import clause, explained_by_slowest
from schedlab.tail import tail_of, usable

if TYPE_CHECKING:
    from schedlab.comparison import Column, Comparison
    from schedlab.engine import Cancel, Engine

SEEDS = 3
"""Runs of each variant that are repeated if no page examines all of them."""


def with_cause(
    engine: Engine, comparison: Comparison, look: Closer | str | None, *, threads: int = 1, cancel: Cancel | None = None
) -> Comparison:
    """The comparison with the cause of its first pair, if the slowest samples explain the headline."""
    if comparison.arm != "sim" or len(comparison.pairs) != 1:
        return comparison
    a, b = pair = comparison.pairs[0]
    found = headline_metric(comparison, a, b)
    if found is None or not explained_by_slowest(comparison, a, b, found[0].metric.of):
        return comparison
    metric = found[0].metric.of
    if isinstance(look, Closer):
        tails = [tail for name in pair for tail in look.tails if tail.variant == name and look.metric == metric]
    else:
        try:
            scenario = loaded(engine, comparison.scenario)
            columns = [_few(column) for name in pair for column in comparison.columns if column.name == name]
            if not all(c.runs and all(usable(run.series.get(metric)) for run in c.runs.values()) for c in columns):
                return comparison
            tails = [tail_of(engine, scenario, c, metric, threads=threads, cancel=cancel) for c in columns]
        except Cancelled:
            raise
        except SchedlabError:
            return comparison
    if len(tails) != len(pair) or not (text := clause(*tails)):
        return comparison
    return replace(comparison, causes={pair: text})


def _few(column: Column) -> Column:
    return replace(column, runs={seed: column.runs[seed] for seed in sorted(column.runs)[:SEEDS]})
