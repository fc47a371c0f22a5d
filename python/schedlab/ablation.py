"""Which of the mechanisms in which two variants differ carries how much of their difference.

Every difference is flipped alone in both directions: added to the first variant, and removed from the second. A
mechanism's part is the mean of the two effects, seed by seed: its effect alone, and half of its interaction with
each other one. What all of them do together beyond the sum of the single effects is reported as interaction, and so is
the remainder that the parts do not add up to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from schedlab.engine import Cancel, Engine
from schedlab.errors import InputError, RunError
from schedlab.judge import Judgement, judge
from schedlab.native.changed import Difference
from schedlab.outcome import Outcome, Run
from schedlab.runner import Job, Runner
from schedlab.scenario import Metric, Scenario
from schedlab.statistics import SMALLEST_N, Interval, share_interval, walsh_interval
from schedlab.verdicts import DETERMINISTIC


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism's part in the difference."""

    name: str
    kind: str
    """feature, knob, rule or setting"""
    a: str
    b: str
    alone: Judgement
    """The first variant with it, against the first."""
    missing: Judgement
    """The second variant, against the second without it."""
    effect: Interval | None
    """The mean of both, in percent of the first (or in the metric's unit); None if a run failed."""
    share: float | None
    """Of the whole effect; None where that is not certain."""
    share_range: Interval | None
    """The share with its interval, paired by seed; None with the share, and where every run is the same."""
    depends: Interval | None
    """How much larger its effect is in the second variant than in the first: its interaction with the others."""
    within: str | None
    """The bundle it is a part of: only one of the two variants has it, so it counts there."""
    inert: bool
    """Neither flip changed any event of any run."""
    function: str | None = None
    """Of a rule: the kernel's function that follows it."""
    since: str | None = None
    """Of a rule: the releases that changed it."""


@dataclass(frozen=True, slots=True)
class Ablation:
    """The answer for one metric."""

    scenario: Scenario
    a: str
    b: str
    metric: Metric
    seeds: tuple[int, ...]
    total: Judgement
    effect: Interval
    percent: bool
    parts: tuple[Part, ...]
    """The largest share first."""
    interaction: Interval | None
    """The effect of all together beyond the sum of the single effects; None if a part is missing."""
    interaction_share: float | None
    unattributed: Interval | None
    """What the parts do not add up to: interactions of three or more, since those of two are split between both."""
    unattributed_share: float | None
    failures: tuple[str, ...]


Samples = Mapping[tuple[str, int], Run]


def ablate(
    engine: Engine,
    scenario: Scenario,
    a: str,
    b: str,
    metric: Metric,
    *,
    jobs: int,
    on_outcome: Callable[[Outcome], None] | None = None,
    differences: Sequence[Difference] | None = None,
) -> Ablation:
    """Run everything and judge it in one metric."""
    found = engine.ablation(scenario, a, b) if differences is None else differences
    if not found:
        raise InputError(f"{a} and {b} do not differ in anything that can be flipped")
    runs, failures = _run(engine, scenario, (a, b), found, jobs, on_outcome)
    return _judged(scenario, (a, b), metric, found, runs, tuple(sorted(failures)))


def _run(
    engine: Engine,
    scenario: Scenario,
    pair: tuple[str, str],
    found: Sequence[Difference],
    jobs: int,
    on_outcome: Callable[[Outcome], None] | None,
) -> tuple[dict[tuple[str, int], Run], list[str]]:
    """Both variants and every flip of a difference, with every seed; what failed, in words."""
    hybrids = _Hybrids(engine, *pair, [d["name"] for d in found])
    todo = [Job(name, seed) for seed in scenario.seeds for name in hybrids.names()]
    runner, runs, failures = Runner(hybrids, scenario, todo, jobs), dict[tuple[str, int], Run](), list[str]()
    for outcome in runner.outcomes():
        if isinstance(outcome, Run):
            runs[outcome.variant, outcome.seed] = outcome
        else:
            failures.append(f"{outcome.variant} seed {outcome.seed}: {outcome.message}")
        if on_outcome:
            on_outcome(outcome)
    return runs, failures


def acting(
    engine: Engine,
    scenario: Scenario,
    a: str,
    b: str,
    *,
    jobs: int,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> list[Difference]:
    """The differences whose flip changes any event of the first seed: those worth a run with every seed."""
    found = engine.ablation(scenario, a, b)
    seeds = scenario.seeds[:1]
    runs, _ = _run(engine, replace(scenario, seeds=seeds), (a, b), found, jobs, on_outcome)
    return [d for d in found if not _inert(runs, seeds, "+" + d["name"], "-" + d["name"])]


def count(differences: Sequence[object], seeds: Sequence[int]) -> int:
    """How many runs that takes."""
    return (2 + 2 * len(differences)) * len(seeds)


class _Hybrids:
    """Runs variants that no scenario names: `+X` is the first with X, `-X` the second without it."""

    def __init__(self, engine: Engine, a: str, b: str, mechanisms: Sequence[str]) -> None:
        self._engine, self._a, self._b, self._mechanisms = engine, a, b, mechanisms

    def names(self) -> list[str]:
        return ["a", "b", *(sign + name for name in self._mechanisms for sign in "+-")]

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        del trace
        a, b, name = self._a, self._b, variant[1:]
        match variant[0]:
            case "+":
                run = self._engine.run_hybrid(scenario, a, b, [name], seed, cancel=cancel)
            case "-":
                run = self._engine.run_hybrid(scenario, b, a, [name], seed, cancel=cancel)
            case _:
                run = self._engine.run(scenario, a if variant == "a" else b, seed, cancel=cancel)
        return replace(run, variant=variant)

    def cancel(self) -> Cancel:
        return self._engine.cancel()


def _judged(
    scenario: Scenario,
    pair: tuple[str, str],
    metric: Metric,
    found: Sequence[Difference],
    runs: Samples,
    failures: tuple[str, ...],
) -> Ablation:
    a, b = pair
    values = _values(scenario, metric, found, runs, failures)
    totals = values.change("a", "b")
    whole = walsh_interval(totals)
    total = judge(metric, a, b, values.samples["a"], values.samples["b"], noise=scenario.noise)
    certain = whole.estimate != 0 and (
        total.verdict == DETERMINISTIC or (whole.excludes_zero() and len(values.seeds) >= SMALLEST_N)
    )
    flips = {d["name"]: _flip(values, d) for d in found}
    parts = []
    for d in found:
        flip, plus, minus = flips[d["name"]], "+" + d["name"], "-" + d["name"]
        effect = walsh_interval(flip.both) if flip else None
        share_range = share_interval(flip.both, totals) if flip and certain else None
        parts.append(
            Part(
                name=d["name"],
                kind=d["kind"],
                a=d["a"],
                b=d["b"],
                alone=judge(metric, a, plus, values.samples["a"], values.samples[plus], noise=scenario.noise),
                missing=judge(metric, minus, b, values.samples[minus], values.samples["b"], noise=scenario.noise),
                effect=values.show(effect) if effect else None,
                share=_share(effect, share_range, whole) if certain else None,
                share_range=share_range,
                depends=values.show(walsh_interval(flip.depends)) if flip and not flip.bundled else None,
                within=d["within"],
                inert=_inert(runs, scenario.seeds, plus, minus),
                function=d.get("function"),
                since=d.get("since"),
            )
        )
    complete = all(flips.values())
    single = [flip for flip in flips.values() if flip and not flip.bundled]
    together = _rest(totals, [flip.alone for flip in single]) if complete else None
    rest = _rest(totals, [flip.both for flip in single]) if complete else None
    return Ablation(
        scenario=scenario,
        a=a,
        b=b,
        metric=metric,
        seeds=tuple(scenario.seeds[i] for i in values.seeds),
        total=total,
        effect=values.show(whole),
        percent=values.percent,
        parts=tuple(sorted(parts, key=lambda p: -abs(p.effect.estimate) if p.effect else 0.0)),
        interaction=values.show(together) if together else None,
        interaction_share=together.estimate / whole.estimate if together and certain else None,
        unattributed=values.show(rest) if rest else None,
        unattributed_share=rest.estimate / whole.estimate if rest and certain else None,
        failures=failures,
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """The metric in both variants (`a`, `b`) and in every flip (`+NAME`, `-NAME`)."""

    samples: Mapping[str, Sequence[float | None]]
    seeds: tuple[int, ...]
    """Those that count, by index: everything that did not fail as a whole has a value for them."""
    kept: Mapping[str, Sequence[float]]
    """The values of those seeds; without what failed as a whole."""
    percent: bool

    def change(self, before: str, after: str) -> list[float]:
        """By seed."""
        return (_log_ratios if self.percent else _differences)(self.kept[before], self.kept[after])

    def show(self, interval: Interval) -> Interval:
        return (_percent if self.percent else _as_is)(interval)


def _values(
    scenario: Scenario,
    metric: Metric,
    found: Sequence[Difference],
    runs: Samples,
    failures: tuple[str, ...],
) -> _Values:
    names = ["a", "b", *(sign + d["name"] for d in found for sign in "+-")]
    samples = {
        n: [r.metrics.get(metric.name) if (r := runs.get((n, s))) else None for s in scenario.seeds] for n in names
    }
    ran = [n for n in names if any(x is not None for x in samples[n])]
    seeds = tuple(i for i in range(len(scenario.seeds)) if all(_finite(samples[n][i]) for n in ran))
    if not {"a", "b"} <= set(ran) or not seeds:
        raise RunError(f"no seed has a value of {metric.name} for every run", hint="; ".join(failures[:3]) or None)
    kept = {n: [float(x) for i in seeds if (x := samples[n][i]) is not None] for n in ran}
    return _Values(samples, seeds, kept, all(x > 0 for values in kept.values() for x in values))


@dataclass(frozen=True, slots=True)
class _Flip:
    """The effect of one difference by seed: added to the first variant, and to the second without it."""

    alone: Sequence[float]
    missing: Sequence[float]
    bundled: bool
    """It is a part of a bundle, which only one of the two variants has: the other flip has no effect."""

    @property
    def both(self) -> list[float]:
        share = 1 if self.bundled else 2
        return [(x + y) / share for x, y in zip(self.alone, self.missing, strict=True)]

    @property
    def depends(self) -> list[float]:
        return [y - x for x, y in zip(self.alone, self.missing, strict=True)]


def _flip(values: _Values, difference: Difference) -> _Flip | None:
    """None if a run failed."""
    plus, minus = "+" + difference["name"], "-" + difference["name"]
    if plus not in values.kept or minus not in values.kept:
        return None
    return _Flip(values.change("a", plus), values.change(minus, "b"), difference["within"] is not None)


def _rest(totals: Sequence[float], effects: Sequence[Sequence[float]]) -> Interval:
    """What is left of the whole effect after these effects."""
    return walsh_interval([total - sum(effect[i] for effect in effects) for i, total in enumerate(totals)])


def _share(effect: Interval | None, found: Interval | None, whole: Interval) -> float | None:
    if effect is None:
        return None
    return found.estimate if found else effect.estimate / whole.estimate


def _finite(x: float | None) -> bool:
    return x is not None and math.isfinite(x)


def _log_ratios(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [math.log(y) - math.log(x) for x, y in zip(a, b, strict=True)]


def _differences(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [y - x for x, y in zip(a, b, strict=True)]


def _percent(raw: Interval) -> Interval:
    return Interval(*(100 * math.expm1(min(v, 700.0)) for v in (raw.estimate, raw.low, raw.high)))


def _as_is(raw: Interval) -> Interval:
    return raw


def _inert(runs: Samples, seeds: Sequence[int], plus: str, minus: str) -> bool:
    def same(x: str, y: str, seed: int) -> bool:
        one, two = runs.get((x, seed)), runs.get((y, seed))
        return one is not None and two is not None and one.digest == two.digest

    return all(same("a", plus, s) and same("b", minus, s) for s in seeds)
