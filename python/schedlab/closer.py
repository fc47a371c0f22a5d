"""A closer look at a simulated comparison: what makes the slowest samples of all seeds slow, and one seed as timelines.

The runs are repeated, which the engine's determinism allows; a repeated run whose digest differs from the stored one
is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from schedlab.errors import Cancelled, RunError, SchedlabError
from schedlab.native.explained import FirstDifference, Moment
from schedlab.render.summary import headline_metric
from schedlab.tail import Sample, Tail, tail_of, usable
from schedlab.timeline import Timeline, of_columns

if TYPE_CHECKING:
    from schedlab.comparison import Column, Comparison
    from schedlab.engine import Cancel, Engine
    from schedlab.scenario import Scenario

EXPLAINED = 3
"""How many of the slowest samples of each variant are explained."""
WAKEUPS = "sched.wakeup_latency"
RECORDS = 16_000
"""The most slices, changes of queues, gaps and wakeups of each variant on the page, besides what lasts across a
mark; the page stays below 2 MB with them."""
AROUND_NS = 600_000
"""How much time the canvas shows around the first difference."""


@dataclass(frozen=True, slots=True)
class Slow:
    """One of the slowest samples of a variant, and what `explain` says about its middle."""

    variant: str
    sample: Sample
    answer: Moment | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Closer:
    """All seeds of every variant, and one seed of a pair of them in detail."""

    scenario: Scenario
    seed: int
    rule: str
    """Why this seed, in words."""
    pair: tuple[str, str]
    timelines: Mapping[str, Timeline]
    divergence: FirstDifference | None
    """The first decision that differs; None if none does."""
    metric: str
    """Of the slowest samples."""
    tails: Sequence[Tail]
    """Of every variant, those of the pair first."""
    slowest: Sequence[Slow]


def closer(engine: Engine, comparison: Comparison, *, threads: int = 1, cancel: Cancel | None = None) -> Closer | str:
    """The closer look at the first pair, or why there is none, in a sentence."""
    if comparison.arm != "sim":
        return "Timelines are of simulated runs; `schedlab view` shows a recorded trace."
    if not comparison.pairs or len({column.name for column in comparison.columns}) < 2:
        return "There is no pair of variants to look at."
    pair = comparison.pairs[0]
    columns = [next(column for column in comparison.columns if column.name == name) for name in pair]
    seed, rule = typical_seed(comparison, *pair)
    if seed is None:
        return "No seed ran with both variants."
    metric = _metric(comparison, columns)
    if metric is None:
        return "The runs hold no distribution of a duration: they are of an older version."
    try:
        repeat = Repeat(engine, loaded(engine, comparison.scenario), seed, cancel)
        others = [column for column in comparison.columns if column.name not in pair and _has(column, metric)]
        tails = [
            tail_of(engine, repeat.scenario, column, metric, threads=threads, cancel=cancel)
            for column in (*columns, *others)
        ]
        divergence = engine.explain(repeat.scenario, *pair, seed, cancel=cancel)
        slowest = [one for tail in tails[: len(pair)] for one in _slowest(repeat, tail)]
        points = [at for _, at, _ in marks_of(divergence, slowest, pair)]
        around = (points, RECORDS // (2 * max(1, len(points))))
        timelines = {c.name: timeline_of(repeat, c.name, c.runs[seed].digest, around=around) for c in columns}
    except Cancelled:
        raise
    except SchedlabError as e:
        return f"The runs could not be repeated: {e.message}."
    return Closer(repeat.scenario, seed, rule, pair, timelines, divergence, metric, tails, slowest)


def _has(column: Column, metric: str) -> bool:
    """Whether every run of the variant has samples of the metric."""
    return bool(column.runs) and all(metric in run.series for run in column.runs.values())


def typical_seed(comparison: Comparison, a: str, b: str) -> tuple[int | None, str]:
    """The seed in which both variants are nearest to their median of the headline metric, and the rule in words.

    Of a metric with samples it is the p99 that counts. The distance is the sum of |log(value / median)| over the two
    variants; of equal ones, the first seed.
    """
    head = headline_metric(comparison, a, b)
    columns = [next(c for c in comparison.columns if c.name == name) for name in (a, b)]
    seeds = [seed for seed in comparison.seeds if all(seed in c.runs for c in columns)]
    if not seeds:
        return None, ""
    if head is None:
        return seeds[0], "the first of all"
    metric = head[0].metric
    p99 = f"{metric.of}.p99"
    name = p99 if all(c.runs[seed].metrics.get(p99) is not None for c in columns for seed in seeds) else metric.name
    values = [{s: x for s in seeds if (x := c.runs[s].metrics.get(name)) is not None} for c in columns]
    having = [seed for seed in seeds if all(seed in of for of in values)]
    if not having:
        return seeds[0], "the first of all"
    middles = [median(of.values()) for of in values]

    def distance(seed: int) -> float:
        return sum(_apart(of[seed], middle) for of, middle in zip(values, middles, strict=True))

    return min(having, key=distance), f"the one whose {name} is nearest to the median of {a} and of {b}"


def _apart(x: float, middle: float) -> float:
    return abs(math.log(x / middle)) if x > 0 and middle > 0 else abs(x - middle)


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


def timeline_of(repeat: Repeat, variant: str, digest: str, *, around: tuple[list[int], int] | None = None) -> Timeline:
    """The run of a variant again, as a timeline; RunError if it is not the run that had this digest."""
    found = repeat.engine.timeline(repeat.scenario, variant, repeat.seed, around=around, cancel=repeat.cancel)
    if found["digest"] != digest:
        raise RunError(f"seed {repeat.seed} of {variant} gave a different digest from the stored run")
    return of_columns(found)


def _metric(comparison: Comparison, columns: Sequence[Column]) -> str | None:
    """The sampled metric of the headline; wakeup latency where it has no samples of a duration."""
    head = headline_metric(comparison, *(column.name for column in columns))
    guests = comparison.scenario.guests
    names = [head[0].metric.of] if head else []
    # explain() shows the decisions of the first guest, so its wakeups are preferred to those of the host.
    names += [f"{guest}.{WAKEUPS}" for guest in guests[:1]] + [WAKEUPS]
    runs = [run for column in columns for run in column.runs.values()]
    return next((name for name in names if all(usable(run.series.get(name)) for run in runs)), None)


def _slowest(repeat: Repeat, tail: Tail) -> list[Slow]:
    found = []
    own = next((one for one in tail.seeds if one.seed == repeat.seed), None)
    for sample in own.slowest[:EXPLAINED] if own else ():
        answer, trouble = None, ""
        try:
            _in_sight(repeat.scenario, sample)
            answer = repeat.engine.why(
                repeat.scenario, tail.variant, repeat.seed, str(sample.pid), middle(sample), cancel=repeat.cancel
            )
        except Cancelled:
            raise
        except SchedlabError as e:
            trouble = e.message
        found.append(Slow(tail.variant, sample, answer, trouble))
    return found


def marks_of(
    divergence: FirstDifference | None, slowest: Sequence[Slow], pair: Sequence[str]
) -> list[tuple[str, int, int]]:
    """What the buttons of the timeline jump to: a label, a time, and how much around it is shown."""
    marks: list[tuple[str, int, int]] = []
    if divergence:
        marks.append(("first difference", int(divergence["time_ns"]), AROUND_NS))
    for name in pair:
        worst = next((slow.sample for slow in slowest if slow.variant == name), None)
        if worst is not None:
            marks.append((f"slowest in {name}", middle(worst), max(200_000, 2 * worst.ns)))
    return marks


def _in_sight(scenario: Scenario, sample: Sample) -> None:
    """Raise RunError if the sample is not from the kernel whose decisions explain() shows."""
    if scenario.guests and not sample.lane.startswith(f"{scenario.guests[0]} "):
        raise RunError(f"explain shows the decisions of the first guest, {scenario.guests[0]}, only")


def middle(sample: Sample) -> int:
    """The moment that is asked about: the midpoint between when a thread took the request and its end."""
    return max(0, sample.at_ns - (sample.ns - sample.parts.in_queue) // 2)
