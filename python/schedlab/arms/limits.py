"""Decides what circumstances of real runs forbid to say: all on a noisy machine, durations where time is unreal."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedlab.arms import noise, state
from schedlab.outcome import Run
from schedlab.scenario import Metric, Scenario
from schedlab.verdicts import NOISY

if TYPE_CHECKING:
    from schedlab.judge import Judgement

COUNTS = ("", "count")
"""Units that hold no duration. Shares and rates do: they are durations over durations."""
ORDER_ONLY = "order only"
RUN_TIMES = ("sim_s", "cpus", "calibration", "noise")
SHOWN_PROGRAMS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What holds for all metrics of a comparison."""

    noisy: str | None = None
    untimed: str | None = None

    def silences(self, metric: Metric) -> bool:
        """Whether its numbers may not be shown."""
        return self._silences(metric.unit)

    def _silences(self, unit: str) -> bool:
        return self.noisy is not None or (self.untimed is not None and unit not in COUNTS)

    def apply(self, metric: Metric, judgement: Judgement) -> Judgement:
        """The judgement, as far as it may be said."""
        if not self.silences(metric):
            return judgement
        if self.noisy:
            return _withheld(judgement, NOISY, "none", self.noisy)
        direction = judgement.verdict if judgement.effect != "none" else "undecided"
        return _withheld(judgement, f"{direction}, {ORDER_ONLY}", judgement.effect, self.untimed or "")

    def heard(self, scenario: Scenario, run: Run) -> Run:
        """The run without the numbers that may not be said."""
        if not (self.noisy or self.untimed):
            return run
        said = {m.name for m in scenario.metrics if not self.silences(m)}
        metrics = {name: number if name in said else None for name, number in run.metrics.items()}
        series = {name: s for name, s in run.series.items() if not self._silences(s.unit)}
        tasks = [{k: v for k, v in t.items() if "_ns" not in k} for t in run.record.get("tasks", ())]
        kept = {key: run.record.get("series", {})[key] for key in series}
        record = {**run.record, "metrics": metrics, "series": kept, "tasks": tasks}
        if self.untimed:
            record |= dict.fromkeys(RUN_TIMES)
        return dataclasses.replace(run, metrics=metrics, series=series, record=record)


def of(scenario: Scenario, arm: str, runs: Mapping[str, Sequence[Run]]) -> Limits:
    """The limits of a result, by variant."""
    places = {variant: [place(run) for run in of] for variant, of in runs.items()}
    untimed = next((p["untimed"] for of in places.values() for p in of if p.get("untimed")), None)
    limit = float(scenario.arms["host"]["noise_limit_pct"])
    loud = []
    for variant, measured in places.items() if arm == "host" else ():
        shares = [noise.total_pct(p["noise"]) for p in measured if p.get("noise")]
        if shares and sum(shares) / len(shares) > limit:
            loud.append(f"{variant} {sum(shares) / len(shares):.1f}%")
    why = f"foreign load, steal and throttling were {', '.join(loud)}; the limit is {limit:g}%" if loud else None
    return Limits(why, untimed)


def place(run: Run) -> Mapping[str, Any]:
    """Where a run happened; empty for a simulated one."""
    found: Mapping[str, Any] = run.record.get("place") or {}
    return found


def machine(runs: Mapping[str, Sequence[Run]]) -> str | None:
    """The words that stand for the machine of real runs."""
    words = dict.fromkeys(place(run).get("machine") for of in runs.values() for run in of)
    known = [word for word in words if word]
    return " and ".join(known) if known else None


def remarks(scenario: Scenario, runs: Mapping[str, Sequence[Run]], limits: Limits) -> list[str]:
    """What differed between the variants beside what was asked for, who ran the benchmarks, how noisy it was, and why
    numbers are missing."""
    states = {variant: [place(run).get("state", {}) for run in of] for variant, of in runs.items()}
    lines = [f"differs: {line}" for line in state.told(state.differences(states))]
    drivers = dict.fromkeys(
        f"{workload} by {who}"
        for of in runs.values()
        for run in of
        for workload, who in (run.record.get("drivers") or {}).items()
    )
    if drivers:
        lines.append(f"driven: {', '.join(drivers)}")
    loud = []
    for variant, of in runs.items():
        shares = [noise.total_pct(p["noise"]) for p in map(place, of) if p.get("noise")]
        if shares:
            loud.append(f"{variant} {sum(shares) / len(shares):.1f}% (most {max(shares):.1f}%)")
    if loud:
        lines.append(f"noise: {', '.join(loud)} of the machine's CPU time was foreign or stolen{_loudest(runs)}")
    untimed = dict.fromkeys(place(run).get("untimed") for of in runs.values() for run in of)
    lines += [f"no durations: {why}" for why in untimed if why]
    lines += _unavailable(scenario, [run for of in runs.values() for run in of])
    return [*lines, f"{NOISY}: {limits.noisy}"] if limits.noisy else lines


def _unavailable(scenario: Scenario, runs: Sequence[Run]) -> list[str]:
    """By reason, the metrics of the scenario that a run could not measure."""
    by_reason: dict[str, dict[str, None]] = {}
    for run in runs:
        told = run.record.get("unavailable") or {}
        for metric in scenario.metrics:
            if metric.name in told:
                by_reason.setdefault(told[metric.name], {})[metric.name] = None
    return [f"not measured: {', '.join(names)}: {why}" for why, names in by_reason.items()]


def _loudest(runs: Mapping[str, Sequence[Run]]) -> str:
    """The foreign programs that ran most, where the agent could see them."""
    total: dict[str, float] = {}
    everyone = [run for of in runs.values() for run in of]
    for run in everyone:
        for name, share in ((run.record.get("noise") or {}).get("foreign") or {}).items():
            total[name] = total.get(name, 0.0) + float(share)
    most = sorted(total, key=lambda name: -total[name])[:SHOWN_PROGRAMS]
    return f", most by {', '.join(most)}" if most else ""


def _withheld(j: Judgement, verdict: str, effect: str, why: str) -> Judgement:
    silent = dataclasses.replace(
        j.difference, median_a=None, median_b=None, percent=False, estimate=None, interval=None, raw=()
    )
    said = dataclasses.replace(j, difference=silent, verdict=verdict, effect=effect, reason=why)
    return dataclasses.replace(said, p=None, p_equivalent=None, units_needed=None)
