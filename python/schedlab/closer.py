"""A closer look at one seed of a simulated comparison: both runs as timelines, the first difference, what was slowest.

The runs are repeated, which the engine's determinism allows; a repeated run whose digest is another than the stored one
is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedlab.errors import Cancelled, RunError, SchedlabError
from schedlab.render.summary import headline_metric
from schedlab.timeline import Account, Timeline, Waited, account, of_columns, task_of

if TYPE_CHECKING:
    from schedlab.comparison import Comparison, MetricComparison
    from schedlab.engine import Cancel, Engine
    from schedlab.scenario import Scenario

EXPLAINED = 3
"""So many of the slowest samples of each variant are explained."""
WAKEUPS = "sched.wakeup_latency"


@dataclass(frozen=True, slots=True)
class Slow:
    """One of the slowest samples of a variant, and what `explain` says of its middle."""

    variant: str
    sample: Waited
    task: str
    where: Account
    """Where its time went."""
    answer: Mapping[str, Any] | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Closer:
    """One pair of variants with one seed."""

    scenario: Scenario
    seed: int
    pair: tuple[str, str]
    timelines: Mapping[str, Timeline]
    parting: Mapping[str, Any] | None
    """The first decision that differs; None if none does."""
    metric: str
    """Of the slowest samples."""
    slowest: Sequence[Slow]


def closer(engine: Engine, comparison: Comparison, *, cancel: Cancel | None = None) -> Closer | str:
    """The closer look at the first pair, or why there is none, in a sentence."""
    if comparison.arm != "sim":
        return "Timelines are of simulated runs; `schedlab view` shows a recorded trace."
    if not comparison.pairs or len({column.name for column in comparison.columns}) < 2:
        return "There is no pair of variants to look at."
    a, b = comparison.pairs[0]
    seed = typical_seed(comparison, a, b)
    if seed is None:
        return "No seed ran with both variants."
    runs = {column.name: column.runs.get(seed) for column in comparison.columns if column.name in (a, b)}
    if None in runs.values() or len(runs) < 2:
        return "No seed ran with both variants."
    try:
        scenario = loaded(engine, comparison.scenario)
        repeat = Repeat(engine, scenario, seed, cancel)
        timelines = {name: timeline_of(repeat, name, run.digest) for name, run in runs.items() if run}
        parting = engine.explain(scenario, a, b, seed, cancel=cancel)
        metric = _metric(comparison, a, b, timelines)
        slowest = [one for name in (a, b) for one in _slowest(repeat, name, timelines[name], metric)]
    except Cancelled:
        raise
    except SchedlabError as e:
        return f"The runs could not be repeated: {e.message}."
    return Closer(scenario, seed, (a, b), timelines, parting, metric, slowest)


def typical_seed(comparison: Comparison, a: str, b: str) -> int | None:
    """The seed whose difference in the headline metric is the median one; the first where there is no difference."""
    head = headline_metric(comparison, a, b)
    pairs = _differences(comparison, head[0], a, b) if head else []
    if pairs:
        return sorted(pairs)[(len(pairs) - 1) // 2][1]
    return comparison.seeds[0] if comparison.seeds else None


def _differences(c: Comparison, m: MetricComparison, a: str, b: str) -> list[tuple[float, int]]:
    both = zip(m.samples[a], m.samples[b], c.seeds, strict=True)
    return [(y / x if x else y, seed) for x, y, seed in both if x is not None and y is not None]


def loaded(engine: Engine, scenario: Scenario) -> Scenario:
    """The scenario with a handle of the engine: one that was read back from a result is validated again."""
    if scenario.handle is not None:
        return scenario
    text = scenario.description.get("text")
    if not isinstance(text, str):
        raise RunError("the result does not hold the scenario file")
    single = {"set": list(scenario.overrides)} if scenario.overrides else {}
    overrides = {
        "seeds": list(scenario.seeds),
        **single,
        "duration": f"{scenario.duration_ns}ns",
        "noise": scenario.noise,
    }
    found = engine.loads(text, scenario.file, overrides)
    if found.machine.name != scenario.machine.name:
        found = engine.loads(text, scenario.file, {**overrides, "machine": scenario.machine.name})
    return found


@dataclass(frozen=True, slots=True)
class Repeat:
    """What is run again: a scenario with one seed."""

    engine: Engine
    scenario: Scenario
    seed: int
    cancel: Cancel | None


def timeline_of(repeat: Repeat, variant: str, digest: str) -> Timeline:
    """The run of a variant again, as a timeline; RunError if it is not the run that had this digest."""
    found = repeat.engine.timeline(repeat.scenario, variant, repeat.seed, cancel=repeat.cancel)
    if found["digest"] != digest:
        raise RunError(f"seed {repeat.seed} of {variant} gave another digest than the stored run")
    return of_columns(found)


def _metric(comparison: Comparison, a: str, b: str, timelines: Mapping[str, Timeline]) -> str:
    """The sampled metric of the headline; wakeup latency where it has no single samples."""
    head = headline_metric(comparison, a, b)
    guests = comparison.scenario.guests
    # explain() shows the decisions of the first guest, so its samples are preferred to those of the host.
    prefixes = [f"{guests[0]}.", ""] if guests else [""]
    names = [prefix + of for of in ([head[0].metric.of] if head else []) + [WAKEUPS] for prefix in prefixes]
    shown = (name for name in names if all(timeline.slowest.get(name) for timeline in timelines.values()))
    return next(shown, WAKEUPS)


def _slowest(repeat: Repeat, variant: str, timeline: Timeline, metric: str) -> list[Slow]:
    found = []
    for sample in timeline.slowest.get(metric, ())[:EXPLAINED]:
        answer, trouble = None, ""
        try:
            _in_sight(repeat.scenario, timeline, sample)
            answer = repeat.engine.why(
                repeat.scenario, variant, repeat.seed, str(sample.pid), middle(sample), cancel=repeat.cancel
            )
        except Cancelled:
            raise
        except SchedlabError as e:
            trouble = e.message
        name = f"{task_of(timeline, sample)} {sample.pid}"
        found.append(Slow(variant, sample, name, account(timeline, sample), answer, trouble))
    return found


def _in_sight(scenario: Scenario, timeline: Timeline, sample: Waited) -> None:
    """RunError if the sample is not of the kernel whose decisions explain() shows."""
    if scenario.guests and not timeline.lanes[sample.lane].name.startswith(f"{scenario.guests[0]} "):
        raise RunError(f"explain shows the decisions of the first guest, {scenario.guests[0]}, only")


def middle(sample: Waited) -> int:
    """The moment that is asked about: half-way through the time for which the task worked on the sample."""
    return max(0, sample.at_ns - (sample.ns - sample.queued) // 2)
