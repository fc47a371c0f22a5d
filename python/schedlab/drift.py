"""Whether a verdict is one about the length of the run: a metric still drifts at the end, or the start decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from schedlab.statistics import Difference, paired_difference

if TYPE_CHECKING:
    from schedlab.comparison import Column
    from schedlab.outcome import Run
    from schedlab.scenario import Metric

ALPHA = 0.01
"""Of each test; there is one for each variant and metric."""


def remarks(metrics: Iterable[Metric], columns: Sequence[Column], seeds: Sequence[int]) -> tuple[str, ...]:
    """A sentence for each metric whose last third differs from the second by more than the margin, with certainty, and
    for each change of a variant from the first one that the last two thirds of the measured time do not confirm.
    """
    found = []
    for metric in metrics:
        for column in columns[1:]:
            if words := _start(metric, columns[0], column, seeds):
                found.append(words)
        drifts = [(c.name, d) for c in columns if (d := _drift(metric, c.runs, seeds)) is not None]
        if drifts:
            words = " and ".join(f"{d.estimate:+.3g}% in {name}" for name, d in drifts)
            found.append(
                f"{metric.name} still drifts at the end of the run: from the second to the last third of the measured "
                f"time it changes by {words}, so a longer run (--duration) may come to another verdict"
            )
    return tuple(found)


def _start(metric: Metric, base: Column, other: Column, seeds: Sequence[int]) -> str | None:
    """That the change comes from the first third of the measured time, where the rest does not have its sign."""

    def change(value: Callable[[Run], float | None]) -> Difference:
        sides = [[value(c.runs[seed]) if seed in c.runs else None for seed in seeds] for c in (base, other)]
        return paired_difference(sides[0], sides[1], ALPHA)

    def certain(d: Difference) -> bool:
        return d.percent and d.estimate is not None and d.interval is not None and d.interval.excludes_zero()

    whole, rest = change(lambda run: run.metrics.get(metric.name)), change(lambda run: _rest(run, metric.name))
    if not certain(whole) or abs(whole.estimate or 0.0) <= metric.margin_pct or rest.interval is None:
        return None
    if certain(rest) and (rest.estimate or 0.0) * (whole.estimate or 0.0) > 0:
        return None
    change_of = rest.estimate or 0.0
    shown = f"{change_of:+,.0f}%" if abs(change_of) >= 100 else f"{change_of:+.3g}%"
    then = f"changes by {shown}" if certain(rest) else "does not change with certainty"
    return (
        f"the change of {metric.name} in {other.name} comes from the start of the run: in the last two thirds of the "
        f"measured time it {then}, so a longer warm-up (warmup) or run (--duration) may come to another verdict"
    )


def _rest(run: Run, metric: str) -> float | None:
    """The mean of the second and the last third, in a unit that both variants share."""
    second, last = _thirds(run, metric)
    return None if second is None or last is None else (second + last) / 2


def _drift(metric: Metric, runs: Mapping[int, Run], seeds: Sequence[int]) -> Difference | None:
    """The change between the thirds, if it is certain and exceeds the margin."""
    thirds = [_thirds(runs[seed], metric.name) for seed in seeds if seed in runs]
    d = paired_difference([t[0] for t in thirds], [t[1] for t in thirds], ALPHA)
    certain = d.percent and d.estimate is not None and d.interval is not None and d.interval.excludes_zero()
    return d if certain and abs(d.estimate or 0.0) > metric.margin_pct else None


def _thirds(run: Run, metric: str) -> tuple[float | None, float | None]:
    second, last = (run.record.get("parts") or {}).get(metric) or (None, None)
    return second, last
