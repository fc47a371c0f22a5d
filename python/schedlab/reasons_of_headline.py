"""Adds to a simulated comparison why its headline differs: the slowest samples of a few seeds are examined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from schedlab.arms.arm import Keep
from schedlab.closer import WAKEUPS, Closer, loaded
from schedlab.errors import Cancelled, SchedlabError
from schedlab.render.summary import headline_metric
from schedlab.render.why import clause, explained_by_slowest
from schedlab.tail import UNITS_NS, tail_of, usable

if TYPE_CHECKING:
    from schedlab.comparison import Column, Comparison
    from schedlab.engine import Cancel, Engine
    from schedlab.scenario import Scenario

SEEDS = 3
"""Runs of each variant that are examined if no page examines all of them."""


KEPT = 3
"""Of how many metrics the samples are kept; the headline is nearly always the first that is declared."""


def keep_of(scenario: Scenario, *, page: bool) -> Keep:
    """What the runs of a comparison keep, so that its page and the cause of its headline need few further runs.

    Wakeup latencies are not kept: of their samples, which are as many as wakeups, only the slowest are worth dividing,
    and which those are is known after the runs.
    """
    asked = [m for m in scenario.metrics if m.declared] or [m for m in scenario.metrics if m.better != "neither"]
    sampled = [m.of for m in asked if m.stat and m.unit in UNITS_NS and not m.of.endswith(WAKEUPS)]
    seeds = None if page else frozenset(sorted(scenario.seeds)[:SEEDS])
    return Keep(tuple(dict.fromkeys(sampled))[:KEPT], seeds)


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
