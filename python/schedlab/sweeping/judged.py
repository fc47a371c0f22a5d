"""Results of a sweep: a judgement per point and metric, where it flips along an axis, and how costs grow along it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schedlab.compare_variants import compare_variants
from schedlab.judge import Judgement
from schedlab.scenario import Metric
from schedlab.statistics import holm, median
from schedlab.sweeping.store import AxisRecord, Experiment, LevelRecord
from schedlab.validity import Validated

SETTLED = ("better", "worse", "changed", "equivalent")
FEWEST_LEVELS = 3
"""On fewer a slope cannot be distinguished from a coincidence."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one pair of variants at one point."""

    point: int
    metric: Metric
    judgement: Judgement
    p_holm: float | None
    """The p value of no difference, adjusted for all points of this metric and pair."""


@dataclass(frozen=True, slots=True)
class Map:
    """One metric of one pair of variants over all points."""

    metric: Metric
    a: str
    b: str
    cells: tuple[Cell, ...]
    model: Validated | None = None
    """The model error of the metric at the first point."""

    @property
    def name(self) -> str:
        return f"{self.metric.name}: {self.b} against {self.a}"


@dataclass(frozen=True, slots=True)
class Flip:
    """Two settled neighbours along an axis with different verdicts; undecided cells between them are skipped."""

    axis: str
    elsewhere: str
    """The levels of the other axes."""
    low: str
    before: Cell
    high: str
    after: Cell


@dataclass(frozen=True, slots=True)
class Growth:
    """A metric of one variant along a numeric axis: value ~ level ** slope."""

    metric: Metric
    axis: str
    elsewhere: str
    variant: str
    points: tuple[tuple[float, float], ...]
    """(level, median over the seeds)."""
    slope: float
    low: float
    high: float
    """The 95% interval of the slope."""
    at_one: float
    """What the fit gives for level 1."""


@dataclass(frozen=True)
class Judged:
    """A sweep with its judgements."""

    experiment: Experiment
    maps: tuple[Map, ...]
    growths: tuple[Growth, ...]

    @property
    def has_lines(self) -> bool:
        """Whether any two points differ along one axis only; those of a Latin hypercube hardly ever do."""
        return next(lines(self.experiment), None) is not None

    def flips(self, map: Map) -> list[Flip]:
        """Where the verdict changes along each axis."""
        by_point = {cell.point: cell for cell in map.cells}
        found = []
        for axis, elsewhere, line in lines(self.experiment):
            settled = [
                (level, by_point[point])
                for level, point in line
                if point in by_point and by_point[point].judgement.verdict in SETTLED
            ]
            found += [
                Flip(axis.name, elsewhere, low.label, before, high.label, after)
                for (low, before), (high, after) in itertools.pairwise(settled)
                if before.judgement.verdict != after.judgement.verdict
            ]
        return found


def judged(experiment: Experiment) -> Judged:
    """Judge every point that has runs of two variants."""
    maps: dict[tuple[str, str, str], list[tuple[int, Metric, Judgement]]] = {}
    models: dict[str, Validated | None] = {}
    medians: dict[tuple[str, str], dict[int, float]] = {}
    known: dict[str, Metric] = {}
    for point, scenario in enumerate(experiment.scenarios):
        wanted = shown(experiment, scenario.metrics)
        result = experiment.result(point)
        if not result.runs:
            continue
        result = dataclasses.replace(result, scenario=dataclasses.replace(scenario, metrics=wanted))
        comparison = compare_variants(result)
        for m in comparison.metrics:
            known[m.metric.name] = m.metric
            models.setdefault(m.metric.name, m.model)
            for variant, values in m.samples.items():
                middle = median([value for value in values if value is not None])
                if middle is not None:
                    medians.setdefault((m.metric.name, variant), {})[point] = middle
            for j in m.comparisons:
                maps.setdefault((m.metric.name, j.a, j.b), []).append((point, m.metric, j))
    return Judged(
        experiment,
        tuple(_map(a, b, rows, models[name]) for (name, a, b), rows in maps.items()),
        tuple(_growths(experiment, known, medians)),
    )


def shown(experiment: Experiment, metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """The metrics of the sweep file; without any, the declared ones, else the first three."""
    names = experiment.manifest["sweep"]["metrics"]
    chosen = [m for name in names for m in metrics if m.name == name]
    return tuple(chosen or [m for m in metrics if m.declared] or metrics[:3])


def _map(a: str, b: str, rows: Sequence[tuple[int, Metric, Judgement]], model: Validated | None) -> Map:
    adjusted = holm([j.p for _, _, j in rows])
    cells = tuple(Cell(point, metric, j, p) for (point, metric, j), p in zip(rows, adjusted, strict=True))
    return Map(rows[0][1], a, b, cells, model)


Line = tuple[AxisRecord, str, list[tuple[LevelRecord, int]]]


def lines(experiment: Experiment) -> Iterator[Line]:
    """Along each axis, the points that differ in nothing else: the axis, the other levels, (level, point)."""
    for number, axis in enumerate(experiment.axes):
        order = list(dict.fromkeys(levels[number].label for levels in experiment.points))
        found: dict[str, list[tuple[LevelRecord, int]]] = {}
        for point, levels in enumerate(experiment.points):
            elsewhere = ", ".join(level.label for i, level in enumerate(levels) if i != number)
            found.setdefault(elsewhere, []).append((levels[number], point))
        for elsewhere, line in found.items():
            if len(line) > 1:
                yield axis, elsewhere, sorted(line, key=lambda one: order.index(one[0].label))


def _growths(
    experiment: Experiment, known: dict[str, Metric], medians: dict[tuple[str, str], dict[int, float]]
) -> Iterator[Growth]:
    seen: set[object] = set()  # a variant that another axis leaves as it is has the same runs all along it
    for axis, elsewhere, line in lines(experiment):
        if not axis.numeric:
            continue
        for (name, variant), own in medians.items():
            found = ((level.number or 0.0, own.get(point, 0.0)) for level, point in line)
            points = tuple((x, y) for x, y in found if x > 0 and y > 0)
            key = (axis.name, name, variant, points)
            fit = None if key in seen else fitted(points)
            seen.add(key)
            if fit is not None:
                yield Growth(known[name], axis.name, elsewhere, variant, points, *fit)


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float, float, float] | None:
    """Slope in log-log coordinates, its 95% interval, and the value at 1; None for too few points or no change."""
    from scipy import stats

    if len({x for x, _ in points}) < FEWEST_LEVELS or len({y for _, y in points}) < 2:
        return None
    fit = stats.linregress([math.log(x) for x, _ in points], [math.log(y) for _, y in points])
    reach = float(stats.t.ppf(0.975, len(points) - 2)) * float(fit.stderr)
    slope = float(fit.slope)
    return slope, slope - reach, slope + reach, math.exp(float(fit.intercept))
