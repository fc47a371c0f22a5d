"""Compares a metric of one variant on the simulator and on a real kernel: the error of the simulated value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from schedlab.outcome import Run
from schedlab.scenario import Metric
from schedlab.statistics import Interval, median, shift
from schedlab.store import Result

GOALS: Mapping[str, float] = {
    "switches": 5.0,
    "CPU share": 1.0,
    "throughput": 5.0,
    "mean latency": 15.0,
    "typical latency": 15.0,
    "p99 latency": 30.0,
    "extreme latency": 50.0,
}
"""The largest error that meets the goal: percent, for CPU shares percentage points. Every family but migrations."""
FAMILIES = (*GOALS, "migrations")
MOST_DISTINGUISHED = 8
"""Tasks of one name are compared one by one up to this many, otherwise together."""
SMALLEST_SHARE = 0.001
"""Tasks below this share of the CPU time are not compared."""


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
    """Percent of the measured value, for CPU shares points. Positive: the simulated value is larger."""
    interval: Interval | None
    note: str = ""

    @property
    def missed(self) -> bool:
        goal = GOALS.get(self.family)
        return self.error is not None and goal is not None and abs(self.error) > goal


TIMES = ("us", "ms", "s")


def family_of(metric: Metric) -> str:
    """The kind of metric, which determines the accepted error; one that nothing validates is a kind of its own."""
    if metric.name in ("sched.switches", "sched.voluntary_switches", "sched.involuntary_switches"):
        return "switches"
    if metric.name == "sched.migrations":
        return "migrations"
    if metric.unit in TIMES and metric.stat:
        return _latency(metric.stat)
    if not metric.name.startswith("sched.") and _is_speed(metric):
        return "throughput"
    return metric.name  # of its own: no validation compares it


def _is_speed(metric: Metric) -> bool:
    """How long a load takes, or how much of it is done."""
    if metric.better == "lower":
        return metric.unit in (*TIMES, "/s")
    return metric.better == "higher" and metric.unit != "%"


def _latency(stat: str) -> str:
    """Up to p90, around p99, and beyond p99.5 up to the maximum."""
    if stat == "mean":
        return "mean latency"
    percentile = float(stat[1:]) if stat[:1] == "p" else {"min": 0.0}.get(stat, 100.0)
    return "typical latency" if percentile <= 90 else "p99 latency" if percentile <= 99.5 else "extreme latency"


def rows(simulated: Result, measured: Result) -> Iterator[Row]:
    """Every metric of every variant, and every task's share of the CPU time."""
    for variant in measured.scenario.variants:
        sim, real = runs_of(simulated, variant.name), runs_of(measured, variant.name)
        for metric in measured.scenario.metrics:
            row = _row(measured.scenario.name, variant.name, metric, _values(sim, metric), _values(real, metric))
            yield replace(row, note=_foreign(real)) if row.family == "switches" and not row.note else row
        yield from _shares(measured.scenario.name, variant.name, sim, real)


def runs_of(result: Result, variant: str) -> list[Run]:
    """The finished runs of a variant, by seed."""
    return [result.runs[variant, seed] for seed in result.seeds if (variant, seed) in result.runs]


def _values(runs: Sequence[Run], metric: Metric) -> list[float]:
    return [value for run in runs if (value := run.metrics.get(metric.name)) is not None]


def _row(scenario: str, variant: str, metric: Metric, sim: list[float], real: list[float]) -> Row:
    simulated, measured = median(sim), median(real)
    error, interval, note = None, None, ""
    if not sim or not real:
        who = "neither arm" if not sim and not real else "the simulator" if not sim else "the real kernel"
        note = f"{who} has {'a' if who == 'neither arm' else 'no'} value"
    elif min(real) > 0 and min(sim) > 0:
        found = shift(sim, real)
        error, interval = found.estimate, found.interval
    elif simulated == measured:
        error = 0.0
    else:
        note = "one of the two is 0: no percentage"
    family = family_of(metric)
    return Row(scenario, variant, metric.name, metric.unit, family, simulated, measured, error, interval, note)


def _shares(scenario: str, variant: str, sim: Sequence[Run], real: Sequence[Run]) -> Iterator[Row]:
    """The CPU time of tasks of one name as a share of the time of all tasks."""
    known = _counts(real)
    apart = {name for name, n in _counts(sim).items() if 1 < n <= MOST_DISTINGUISHED and n == known.get(name)}
    on_sim, on_real = _medians(sim, apart), _medians(real, apart)
    for name in on_real:
        if name in on_sim and max(on_sim[name], on_real[name]) > SMALLEST_SHARE:
            simulated, measured = 100 * on_sim[name], 100 * on_real[name]
            error = simulated - measured
            yield Row(scenario, variant, f"{name} share", "%", "CPU share", simulated, measured, error, None)


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    """How many tasks of each name the first run has."""
    counts: dict[str, int] = {}
    for task in runs[0].tasks if runs else ():
        counts[task.name] = counts.get(task.name, 0) + task.tasks
    return counts


def _medians(runs: Sequence[Run], apart: set[str]) -> dict[str, float]:
    shares: dict[str, list[float]] = {}
    for run in runs:
        total = sum(task.cpu_ns for task in run.tasks) or 1
        for name, cpu_ns in _by_name(run, apart).items():
            shares.setdefault(name, []).append(cpu_ns / total)
    return {name: median(values) or 0.0 for name, values in shares.items()}


def _by_name(run: Run, apart: set[str]) -> dict[str, int]:
    """CPU time by name; tasks of a name in `apart` are numbered in the order in which they started."""
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
    """Switches away from tasks that do not belong to the scenario, such as the kernel's own threads."""
    counts = [run.switches - sum(task.switches or 0 for task in run.tasks) for run in runs if run.tasks]
    middle = median([float(count) for count in counts])
    return f"{middle:.0f} from idle and from tasks outside the scenario" if middle and middle > 0 else ""
