"""Decides which numbers of real runs must be suppressed: all on a noisy machine, durations in emulated guests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedlab.arms import noise, state
from schedlab.frozen import Frozen
from schedlab.outcome import Run
from schedlab.scenario import Metric, Scenario
from schedlab.verdicts import NOISY

if TYPE_CHECKING:
    from schedlab.judge import Judgement

COUNTS = ("", "count")
"""Units without durations. Shares and rates are quotients of durations, so they are not among them."""
ORDER_ONLY = "order only"
RUN_TIMES = ("sim_s", "cpus", "calibration", "noise")
SHOWN_PROGRAMS = 3


class Limits(Frozen):
    """The limits of a comparison, which hold for all of its metrics."""

    noisy: str | None = None
    untimed: str | None = None

    def suppresses(self, metric: Metric) -> bool:
        """Whether the values of a metric must not be shown."""
        return self._suppresses(metric.unit)

    def _suppresses(self, unit: str) -> bool:
        return self.noisy is not None or (self.untimed is not None and unit not in COUNTS)

    def apply(self, metric: Metric, judgement: Judgement) -> Judgement:
        """The judgement without what must be suppressed."""
        if not self.suppresses(metric):
            return judgement
        if self.noisy:
            return _withheld(judgement, NOISY, "none", self.noisy)
        direction = judgement.verdict if judgement.effect != "none" else "undecided"
        return _withheld(judgement, f"{direction}, {ORDER_ONLY}", judgement.effect, self.untimed or "")

    def without_suppressed(self, scenario: Scenario, run: Run) -> Run:
        """The run without the values that must be suppressed."""
        if not (self.noisy or self.untimed):
            return run
        allowed = {m.name for m in scenario.metrics if not self.suppresses(m)}
        metrics = {name: number if name in allowed else None for name, number in run.metrics.items()}
        series = {name: s for name, s in run.series.items() if not self._suppresses(s.unit)}
        tasks = [{k: v for k, v in t.items() if "_ns" not in k} for t in run.record.get("tasks", ())]
        kept = {key: run.record.get("series", {})[key] for key in series}
        record = {**run.record, "metrics": metrics, "series": kept, "tasks": tasks}
        if self.untimed:
            record |= dict.fromkeys(RUN_TIMES)
        from dataclasses import replace  # few results need it

        return replace(run, metrics=metrics, series=series, record=record)


def of(scenario: Scenario, arm: str, runs: Mapping[str, Sequence[Run]]) -> Limits:
    """The limits of a result, by variant."""
    places = {variant: [place(run) for run in of] for variant, of in runs.items()}
    untimed = next((p["untimed"] for of in places.values() for p in of if p.get("untimed")), None)
    limit = float(scenario.arms["host"]["noise_limit_pct"])
    noisy_variants = []
    for variant, measured in places.items() if arm == "host" else ():
        shares = [noise.total_pct(p["noise"]) for p in measured if p.get("noise")]
        if shares and sum(shares) / len(shares) > limit:
            noisy_variants.append(f"{variant} {sum(shares) / len(shares):.1f}%")
    why = (
        f"foreign load, steal and throttling were {', '.join(noisy_variants)}; the limit is {limit:g}%"
        if noisy_variants
        else None
    )
    return Limits(why, untimed)


def place(run: Run) -> Mapping[str, Any]:
    """The machine and circumstances of a real run; empty for a simulated one."""
    found: Mapping[str, Any] = run.record.get("place") or {}
    return found


def machine(runs: Mapping[str, Sequence[Run]]) -> str | None:
    """A description of the machine of real runs."""
    words = dict.fromkeys(place(run).get("machine") for of in runs.values() for run in of)
    known = [word for word in words if word]
    return " and ".join(known) if known else None


def remarks(scenario: Scenario, runs: Mapping[str, Sequence[Run]], limits: Limits) -> list[str]:
    """Remarks on simulated runs: settings without an effect. On real runs: unintended differences between the variants,
    what ran the benchmarks, the noise, and why values are missing."""
    if not any(place(run) for of in runs.values() for run in of):
        return list(scenario.inactive)
    states = {variant: [place(run).get("state", {}) for run in of] for variant, of in runs.items()}
    lines = [f"differs: {line}" for line in state.difference_lines(state.differences(states))]
    drivers = dict.fromkeys(
        f"{workload} by {who}"
        for of in runs.values()
        for run in of
        for workload, who in (run.record.get("drivers") or {}).items()
    )
    if drivers:
        lines.append(f"benchmarks run by: {', '.join(drivers)}")
    noisy_variants = []
    for variant, of in runs.items():
        shares = [noise.total_pct(p["noise"]) for p in map(place, of) if p.get("noise")]
        if shares:
            noisy_variants.append(f"{variant} {sum(shares) / len(shares):.1f}% (most {max(shares):.1f}%)")
    if noisy_variants:
        lines.append(
            f"noise: {', '.join(noisy_variants)} of the machine's CPU time was foreign or stolen{_main_causes(runs)}"
        )
    untimed = dict.fromkeys(place(run).get("untimed") for of in runs.values() for run in of)
    lines += [f"no durations: {why}" for why in untimed if why]
    lines += _unavailable(scenario, [run for of in runs.values() for run in of])
    lines += [line for variant, of in runs.items() for line in _silent(scenario, variant, of)]
    return [*lines, f"{NOISY}: {limits.noisy}"] if limits.noisy else lines


def _unavailable(scenario: Scenario, runs: Sequence[Run]) -> list[str]:
    """The metrics of the scenario that a run could not measure, grouped by reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for run in runs:
        reasons = run.record.get("unavailable") or {}
        for metric in scenario.metrics:
            if metric.name in reasons:
                by_reason.setdefault(reasons[metric.name], {})[metric.name] = None
    return [f"not measured: {', '.join(names)}: {why}" for why, names in by_reason.items()]


def _silent(scenario: Scenario, variant: str, runs: Sequence[Run]) -> list[str]:
    """The workloads of a variant that measured nothing in some run, although nothing prevented it."""
    lines = []
    for workload in dict.fromkeys(str(w["name"]) for w in scenario.workloads):
        names = [m.name for m in scenario.metrics if m.of.partition(".")[0] == workload]
        empty = [run for run in runs if names and _measured_nothing(run, names)]
        if empty:
            length, hint = f"{scenario.duration_ns / 1e9:g} s", "; a longer duration gives it time"
            if len(empty) == len(runs):
                lines.append(f"{workload} of {variant} did not finish within {length}, so it has no result{hint}")
            else:
                lines.append(
                    f"{workload} of {variant} did not finish within {length} in {len(empty)} of {len(runs)} runs, "
                    f"which have no result of it{hint}"
                )
    return lines


def _measured_nothing(run: Run, names: Sequence[str]) -> bool:
    unavailable = run.record.get("unavailable") or {}
    return all(run.metrics.get(name) is None and name not in unavailable for name in names)


def _main_causes(runs: Mapping[str, Sequence[Run]]) -> str:
    """The foreign programs with the most CPU time, where the agent could see them."""
    total: dict[str, float] = {}
    all_runs = [run for of in runs.values() for run in of]
    for run in all_runs:
        for name, share in ((run.record.get("noise") or {}).get("foreign") or {}).items():
            total[name] = total.get(name, 0.0) + float(share)
    most = sorted(total, key=lambda name: -total[name])[:SHOWN_PROGRAMS]
    return f", most by {', '.join(most)}" if most else ""


def _withheld(j: Judgement, verdict: str, effect: str, why: str) -> Judgement:
    from dataclasses import replace  # few results need it

    difference = replace(
        j.difference, median_a=None, median_b=None, percent=False, estimate=None, interval=None, raw=()
    )
    allowed = replace(j, difference=difference, verdict=verdict, effect=effect, reason=why)
    return replace(allowed, p=None, p_equivalent=None, units_needed=None)
