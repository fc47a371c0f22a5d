"""Judges simulated changes against published ones, row by row, and counts how many agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from schedlab.outcome import Run
from schedlab.statistics import Interval, median, paired_difference, spread
from schedlab.studies.figures import Published
from schedlab.studies.study import Case, Measure, Study

Outcome = Literal["agrees", "wrong sign", "no change", "missing", "not run"]

SMALLEST_CHANGE_PCT = 0.05
"""What rounds to 0.0% is no change."""
TINY_CHANGE_PCT = 1.0
"""The sign of a smaller simulated change says little: such rows are counted, and their number is shown."""
CLOSE_SIZE, CLOSE_ABSOLUTE = 2.0, 3.0
"""Factors within which a size and an absolute time are called close."""
TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
FEWEST_RANKS = 3
FEWEST_FOR_SPREAD = 2


@dataclass(frozen=True, slots=True)
class Simulated:
    """A row's values in the simulation."""

    a: float | None
    b: float | None
    """None if the variant is missing: the baseline alone was run."""
    change_pct: float | None
    low_pct: float | None
    high_pct: float | None
    units: int
    spread: SpreadBetweenUnits | None = None


@dataclass(frozen=True, slots=True)
class SpreadBetweenUnits:
    """How much a metric varies from unit to unit: the mean absolute deviation from the median, in percent."""

    a_pct: float
    b_pct: float
    change: Interval | None
    """How much more the variant varies, in percent; None with too few units or without any variation."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published row with what came out of the simulation."""

    published: Published
    simulated: Simulated | None
    missing: str | None
    outcome: Outcome
    alternative: str | None = None
    """The condition whose alternative was run; such a row is never counted."""

    @property
    def counted(self) -> bool:
        """Whether it counts: the published change is beyond its noise."""
        return self.published.counted and self.alternative is None

    @property
    def size_ratio(self) -> float | None:
        """Magnitude of the simulated change over that of the published one."""
        change = self.published.change_pct
        if not self.simulated or self.simulated.change_pct is None or not change:
            return None
        return abs(self.simulated.change_pct) / abs(change)

    @property
    def absolute_ratios(self) -> list[float]:
        """Simulated over published values, of times only."""
        if self.simulated is None or self.published.unit not in TIMES:
            return []
        pairs = ((self.simulated.a, self.published.a), (self.simulated.b, self.published.b))
        return [x / y for x, y in pairs if x is not None and y]


def rows_of(
    study: Study, case: Case, published: Iterable[Published], runs: Mapping[tuple[str, int], Run], seeds: Sequence[int]
) -> list[Row]:
    """The rows of one case. `runs` is what finished; without any, the rows were not run."""
    return [row_of(study, case, row, simulated(study, case, row, runs, seeds)) for row in published]


def row_of(study: Study, case: Case, row: Published, value: Simulated | None) -> Row:
    """A published row beside its simulated values."""
    missing = case.missing or _measure(case, row).missing or study.variant(row.variant).missing
    return Row(row, value, missing, _outcome(row, value, missing), case.alternative)


def simulated(
    study: Study, case: Case, row: Published, runs: Mapping[tuple[str, int], Run], seeds: Sequence[int]
) -> Simulated | None:
    """The simulated values of a row; None if there are none."""
    measure, variants = _measure(case, row), study.experiment(case.experiment).variants
    if case.scenario is None or measure.missing or row.baseline not in variants:
        return None
    return _simulated(row, measure, runs, seeds)


def _measure(case: Case, row: Published) -> Measure:
    return next(measure for measure in case.measures if measure.published == row.metric)


def _outcome(row: Published, simulated: Simulated | None, missing: str | None) -> Outcome:
    if missing:
        return "missing"
    if simulated is None or simulated.change_pct is None:
        return "not run"
    if abs(simulated.change_pct) < SMALLEST_CHANGE_PCT:
        return "no change"
    return "agrees" if (simulated.change_pct > 0) == (row.sign > 0) else "wrong sign"


def _simulated(
    row: Published, measure: Measure, runs: Mapping[tuple[str, int], Run], seeds: Sequence[int]
) -> Simulated | None:
    a, b = ([_value(runs.get((name, seed)), measure) for seed in seeds] for name in (row.baseline, row.variant))
    if all(x is None for x in (*a, *b)):
        return None
    d = paired_difference(a, b)
    factor = TIMES[measure.unit] / TIMES[row.unit] if {measure.unit, row.unit} <= {*TIMES} else 1.0
    middle = [None if x is None else factor * x for x in (median(a), median(b))]
    # Where the baseline is 0 a change has no size in percent, unless there is none.
    change = d.estimate if d.percent or d.estimate == 0 else None
    low, high = (d.interval.low, d.interval.high) if d.interval and d.percent else (None, None)
    return Simulated(middle[0], middle[1], change, low, high, d.pairs, _spread(a, b))


def _spread(a: Sequence[float | None], b: Sequence[float | None]) -> SpreadBetweenUnits | None:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if len(pairs) < FEWEST_FOR_SPREAD:
        return None
    found = spread([x for x, _ in pairs], [y for _, y in pairs])
    return SpreadBetweenUnits(found.a, found.b, found.change) if found.percent else None


def _value(run: Run | None, measure: Measure) -> float | None:
    if run is None:
        return None
    if measure.share is not None:
        total = sum(task.cpu_ns for task in run.tasks)
        own = sum(task.cpu_ns for task in run.tasks if task.name == measure.share)
        return 100 * own / total if total else None
    return run.metrics.get(measure.metric or "")


@dataclass(frozen=True, slots=True)
class Score:
    """How well the rows of a study, or of several, agree."""

    rows: int
    inside_noise: int
    counted: int
    agreed: int
    certain: int
    """Of those that agree, how many have an interval that excludes 0."""
    wrong: int
    tiny: tuple[int, int]
    """Simulated changes below 1%, of those that agree and of those with the wrong sign."""
    unchanged: int
    missing: int
    not_run: int
    rank: float | None
    """Spearman's rank correlation of the changes; None with fewer than three rows, or if one side is constant."""
    ranked: int
    size: float | None
    """The median size ratio."""
    sized: int
    close_sizes: int
    """Rows whose size ratio lies within a factor of 2."""
    absolute: float | None
    """The median ratio of absolute times."""
    absolutes: int
    close_absolutes: int
    """Absolute times within a factor of 3."""

    @property
    def agreement(self) -> float | None:
        """The share of the counted rows whose sign agrees."""
        return self.agreed / self.counted if self.counted else None


def score(rows: Iterable[Row]) -> Score:
    """Count. Alternatives are left out; rows inside the noise are counted apart; missing rows count as missed."""
    own = [row for row in rows if row.alternative is None]
    counted = [row for row in own if row.counted]
    outcomes = [row.outcome for row in counted]
    pairs = [
        (row.published.change_pct, row.simulated.change_pct)
        for row in counted
        if row.simulated and row.published.change_pct is not None and row.simulated.change_pct is not None
    ]
    sizes = [x for row in counted if (x := row.size_ratio) is not None]
    absolutes = [x for row in own for x in row.absolute_ratios]
    return Score(
        rows=len(own),
        inside_noise=len(own) - len(counted),
        counted=len(counted),
        agreed=outcomes.count("agrees"),
        certain=sum(row.outcome == "agrees" and _certain(row) for row in counted),
        wrong=outcomes.count("wrong sign"),
        tiny=(_tiny(counted, "agrees"), _tiny(counted, "wrong sign")),
        unchanged=outcomes.count("no change"),
        missing=outcomes.count("missing"),
        not_run=outcomes.count("not run"),
        rank=rank_correlation([x for x, _ in pairs], [y for _, y in pairs]),
        ranked=len(pairs),
        size=median(sizes),
        sized=len(sizes),
        close_sizes=_within(sizes, CLOSE_SIZE),
        absolute=median(absolutes),
        absolutes=len(absolutes),
        close_absolutes=_within(absolutes, CLOSE_ABSOLUTE),
    )


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's; ties share their mean rank."""
    from scipy.stats import spearmanr

    if len(x) < FEWEST_RANKS or len({*x}) == 1 or len({*y}) == 1:
        return None
    return float(spearmanr(x, y).statistic)


def _certain(row: Row) -> bool:
    s = row.simulated
    return bool(s and s.low_pct is not None and s.high_pct is not None and (s.low_pct > 0 or s.high_pct < 0))


def _tiny(rows: Iterable[Row], outcome: Outcome) -> int:
    changes = (row.simulated.change_pct for row in rows if row.outcome == outcome and row.simulated)
    return sum(change is not None and abs(change) < TINY_CHANGE_PCT for change in changes)


def _within(ratios: Iterable[float], factor: float) -> int:
    return sum(x > 0 and abs(math.log(x)) <= math.log(factor) for x in ratios)
