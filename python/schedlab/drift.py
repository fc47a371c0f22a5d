"""Whether a metric still drifts at the end of the runs: then the verdict is one about the length of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from schedlab.statistics import Difference, paired_difference

if TYPE_CHECKING:
    from schedlab.comparison import Column
    from schedlab.outcome import Run
    from schedlab.scenario import Metric

ALPHA = 0.01
"""Of each test; there is one for each variant and metric."""


def remarks(metrics: Iterable[Metric], columns: Sequence[Column], seeds: Sequence[int]) -> tuple[str, ...]:
    """A sentence for each metric whose last third differs from the second by more than the margin, with certainty."""
    found = []
    for metric in metrics:
        drifts = [(c.name, d) for c in columns if (d := _drift(metric, c.runs, seeds)) is not None]
        if drifts:
            words = " and ".join(f"{d.estimate:+.3g}% in {name}" for name, d in drifts)
            found.append(
                f"{metric.name} still drifts at the end of the run: from the second to the last third of the measured "
                f"time it changes by {words}, so a longer run (--duration) may come to another verdict"
            )
    return tuple(found)


def _drift(metric: Metric, runs: Mapping[int, Run], seeds: Sequence[int]) -> Difference | None:
    """The change between the thirds, if it is certain and exceeds the margin."""
    thirds = [_thirds(runs[seed], metric.name) for seed in seeds if seed in runs]
    d = paired_difference([t[0] for t in thirds], [t[1] for t in thirds], ALPHA)
    certain = d.percent and d.estimate is not None and d.interval is not None and d.interval.excludes_zero()
    return d if certain and abs(d.estimate or 0.0) > metric.margin_pct else None


def _thirds(run: Run, metric: str) -> tuple[float | None, float | None]:
    second, last = (run.record.get("parts") or {}).get(metric) or (None, None)
    return second, last
