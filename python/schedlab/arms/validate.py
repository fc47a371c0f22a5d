"""Decides how far the simulator is from a kernel: the same scenario on both, an error for each metric.

Per metric and variant: simulated, measured, and the error of the first against the second, with its interval. Per
metric and pair of variants: whether the effect has the same sign, and its size on both. Nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schedlab.arms import limits
from schedlab.outcome import Run
from schedlab.scenario import Metric
from schedlab.statistics import Interval, median, paired_difference, shift
from schedlab.store import Result

FAMILIES = ("switches", "CPU share", "mean latency", "p99 latency", "throughput", "other latency", "A/B effect")
GOALS: Mapping[str, float] = {"switches": 5.0, "CPU share": 1.0, "mean latency": 15.0, "p99 latency": 30.0}
"""Percent, of shares points."""
EFFECT_PCT = 5.0
"""An effect of this size must have the right sign."""
MOST_TOLD_APART = 8
SMALLEST_SHARE = 0.001
"""Tasks below this share of the CPU time are no load."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one variant on both arms."""

    scenario: str
    variant: str
    metric: str
    unit: str
    family: str
    simulated: float | None
    measured: float | None
    error: float | None
    """Percent of the measured value; of shares points. Positive: the simulator says more."""
    interval: Interval | None
    note: str = ""

    @property
    def missed(self) -> bool:
        goal = GOALS.get(self.family)
        return self.error is not None and goal is not None and abs(self.error) > goal


@dataclass(frozen=True, slots=True)
class Effect:
    """One metric's change from the first variant to another, on both arms, in percent."""

    scenario: str
    metric: str
    a: str
    b: str
    simulated: float | None
    measured: float | None
    certain: bool
    """The measured interval leaves out 0 and the change is large enough to matter."""

    @property
    def agrees(self) -> bool | None:
        if not self.certain or self.simulated is None or self.measured is None:
            return None
        return (self.simulated > 0) == (self.measured > 0) and self.simulated != 0

    @property
    def gap(self) -> float | None:
        """How much larger the ratio of the variants is when simulated, in percent."""
        if self.simulated is None or self.measured is None or self.measured <= -100:
            return None
        return 100 * ((100 + self.simulated) / (100 + self.measured) - 1)


@dataclass
class Validation:
    """What is known of any number of scenarios."""

    rows: list[Row] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    """What the real runs ran on, in words."""
    failures: list[str] = field(default_factory=list)
    """Runs without numbers, and why."""

    def add(self, simulated: Result, measured: Result) -> None:
        """One more scenario."""
        self.rows += rows(simulated, measured)
        self.effects += effects(simulated, measured)
        names = [v.name for v in measured.scenario.variants]
        word = limits.machine({name: _of(measured, name) for name in names})
        if word and word not in self.machines:
            self.machines.append(word)
        for arm, result in (("simulated", simulated), ("measured", measured)):
            self.failures += [
                f"{result.scenario.name} {f.variant} seed {f.seed}, {arm}: {f.message.splitlines()[0]}"
                for f in result.failures
            ]

    @property
    def where(self) -> str:
        return " and ".join(self.machines) or "nothing"


def rows(simulated: Result, measured: Result) -> Iterator[Row]:
    """Every metric of every variant, and every task's share."""
    for variant in measured.scenario.variants:
        sim, real = _of(simulated, variant.name), _of(measured, variant.name)
        for metric in measured.scenario.metrics:
            row = _row(measured.scenario.name, variant.name, metric, _values(sim, metric), _values(real, metric))
            yield replace(row, note=_foreign(real)) if row.family == "switches" and not row.note else row
        yield from _shares(measured.scenario.name, variant.name, sim, real)


def effects(simulated: Result, measured: Result) -> Iterator[Effect]:
    """Every metric of every pair of variants."""
    names = [v.name for v in measured.scenario.variants]
    for metric in measured.scenario.metrics:
        for other in names[1:]:
            on_sim, on_real = (
                paired_difference(_by_seed(r, names[0], metric), _by_seed(r, other, metric))
                for r in (simulated, measured)
            )
            change, interval = on_real.estimate, on_real.interval
            sure = on_real.constant or (
                interval.excludes_zero() if interval else _apart(measured, metric, names[0], other)
            )
            large = on_real.percent and change is not None and abs(change) > EFFECT_PCT
            sim_change = on_sim.estimate if on_sim.percent else None
            yield Effect(measured.scenario.name, metric.name, names[0], other, sim_change, change, bool(sure and large))


def summary(found: Sequence[Row], changes: Sequence[Effect]) -> list[list[str]]:
    """One line per family: how many, median and worst error, the goal, how many missed it."""
    table = [["family", "rows", "median error", "worst error", "goal", "missed", "worst row"]]
    for family in FAMILIES:
        errors = [row for row in found if row.family == family and row.error is not None]
        if not errors:
            continue
        unit = " points" if family == "CPU share" else "%"
        worst = max(errors, key=lambda r: abs(r.error or 0))
        middle = median([abs(r.error or 0) for r in errors])
        goal = GOALS.get(family)
        table.append(
            [
                family,
                str(len(errors)),
                f"{middle:.1f}{unit}",
                f"{worst.error:+.1f}{unit}",
                f"{goal:g}{unit}" if goal else "",
                str(sum(r.missed for r in errors)) if goal else "",
                f"{worst.scenario} {worst.variant} {worst.metric}",
            ]
        )
    judged = [c for c in changes if c.agrees is not None]
    if judged:
        wrong = [c for c in judged if not c.agrees]
        gaps = [abs(c.gap) for c in judged if c.gap is not None]
        worst_effect = max(judged, key=lambda c: (not c.agrees, abs(c.gap or 0)))
        table.append(
            [
                "A/B effect",
                str(len(judged)),
                f"{median(gaps):.1f}%",
                f"{worst_effect.gap or 0:+.1f}%",
                "right sign",
                str(len(wrong)),
                f"{worst_effect.scenario} {worst_effect.b} {worst_effect.metric}",
            ]
        )
    return table


def _of(result: Result, variant: str) -> list[Run]:
    return [result.runs[variant, seed] for seed in result.seeds if (variant, seed) in result.runs]


def _values(runs: Sequence[Run], metric: Metric) -> list[float]:
    return [value for run in runs if (value := run.metrics.get(metric.name)) is not None]


def _by_seed(result: Result, variant: str, metric: Metric) -> list[float | None]:
    runs = result.runs
    return [runs[variant, s].metrics.get(metric.name) if (variant, s) in runs else None for s in result.seeds]


def _apart(result: Result, metric: Metric, a: str, b: str) -> bool:
    """With too few seeds for an interval: no value of one variant lies among those of the other."""
    first, second = _values(_of(result, a), metric), _values(_of(result, b), metric)
    return bool(first and second) and (max(first) < min(second) or max(second) < min(first))


def _row(scenario: str, variant: str, metric: Metric, sim: list[float], real: list[float]) -> Row:
    simulated, measured = median(sim), median(real)
    family, note = family_of(metric), ""
    error, interval = None, None
    if not sim or not real:
        who = "neither arm" if not sim and not real else "the simulator" if not sim else "the kernel's arm"
        note = f"{who} has no value"
    elif min(real) > 0 and min(sim) > 0:
        found = shift(sim, real)
        error, interval = found.estimate, found.interval
    elif simulated == measured:
        error = 0.0
    else:
        note = "one of the two is 0: no percentage"
    return Row(scenario, variant, metric.name, metric.unit, family, simulated, measured, error, interval, note)


def family_of(metric: Metric) -> str:
    """What kind of number it is, which decides how far off it may be."""
    if metric.name == "sched.switches":
        return "switches"
    if metric.unit in ("us", "ms", "s") and metric.stat:
        return {"mean": "mean latency", "p99": "p99 latency"}.get(metric.stat, "other latency")
    return "throughput"


def _shares(scenario: str, variant: str, sim: Sequence[Run], real: Sequence[Run]) -> Iterator[Row]:
    """The CPU time of equally named tasks as a share of all tasks that both arms know."""
    known = _counts(real)
    apart = {name for name, n in _counts(sim).items() if 1 < n <= MOST_TOLD_APART and n == known.get(name)}
    on_sim, on_real = _medians(sim, apart), _medians(real, apart)
    for name in on_real:
        if name in on_sim and max(on_sim[name], on_real[name]) > SMALLEST_SHARE:
            simulated, measured = 100 * on_sim[name], 100 * on_real[name]
            error = simulated - measured
            yield Row(scenario, variant, f"{name} share", "%", "CPU share", simulated, measured, error, None)


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    """How many tasks of each name the first run has."""
    names = [task.name for task in runs[0].tasks] if runs else []
    return {name: names.count(name) for name in dict.fromkeys(names)}


def _medians(runs: Sequence[Run], apart: set[str]) -> dict[str, float]:
    shares: dict[str, list[float]] = {}
    for run in runs:
        total = sum(task.cpu_ns for task in run.tasks) or 1
        for name, cpu_ns in _by_name(run, apart).items():
            shares.setdefault(name, []).append(cpu_ns / total)
    return {name: median(values) or 0.0 for name, values in shares.items()}


def _by_name(run: Run, apart: set[str]) -> dict[str, int]:
    """Tasks of a name in `apart` are numbered in the order in which they started; others are one row."""
    named: dict[str, list[int]] = {}
    for task in sorted(run.tasks, key=lambda task: task.pid):
        named.setdefault(task.name, []).append(task.cpu_ns)
    found: dict[str, int] = {}
    for name, times in named.items():
        if name in apart:
            found |= {f"{name} {number}": cpu_ns for number, cpu_ns in enumerate(times, 1)}
        else:
            found[name] = sum(times)
    return found


def _foreign(runs: Sequence[Run]) -> str:
    """Switches away from tasks that are not the scenario's: a kernel's own threads, which no scenario knows."""
    counts = [run.switches - sum(task.switches or 0 for task in run.tasks) for run in runs if run.tasks]
    middle = median([float(count) for count in counts])
    return f"{middle:.0f} from tasks that are not the scenario's, and idle" if middle and middle > 0 else ""
