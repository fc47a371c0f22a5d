"""Turns results into a judged comparison: chooses the pairs, judges every metric, and adds errors, noise and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from schedlab import drift, robust, spelling
from schedlab.arms import limits
from schedlab.comparison import Column, Comparison, MetricComparison, Ranking
from schedlab.design import Design
from schedlab.errors import InputError
from schedlab.judge import ALPHA, FIXED, Judgement, Level, judge
from schedlab.outcome import Series
from schedlab.sameness import same_variants
from schedlab.scenario import Metric, Scenario
from schedlab.setup_facts import Fact, boot_defaults, changes_text, differing, facts, of_two, variant_text
from schedlab.statistics import (
    SMALLEST_N,
    Difference,
    Plan,
    Spread,
    Tail,
    holm,
    paired_difference,
    spread,
    tail_difference,
)
from schedlab.store import Result
from schedlab.validity import evidence, model_errors, validated
from schedlab.validity.checked import is_about_preemption

EVERY_PAIR = "all"
"""As a baseline: every variant against every other."""
TAILS_FROM = 90.0
"""Percentiles from here on are also compared over the samples of all units together."""
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def compare_variants(result: Result, *, against: str | None = None, validity: Sequence[Path] = ()) -> Comparison:
    """Every variant of a result against its first, against the one named, or, with `all`, every pair.

    `validity` names further files with model errors.
    """
    columns = tuple(_columns(result))
    return _judged(result, columns, pairs([c.name for c in columns], against), validity)


def compare_results(a: Result, b: Result, *, against: str | None = None, validity: Sequence[Path] = ()) -> Comparison:
    """Each variant of `a` against the variant of the same name of `b`, or the only one against the only one."""
    if against is not None:
        raise InputError("--against selects a baseline within one result", hint="omit it, or name one result")
    names = _result_names(a, b)
    left, right = list(_columns(a, names[0])), list(_columns(b, names[1]))
    shared = [
        (x, y)
        for x, vx in zip(left, a.scenario.variants, strict=True)
        for y, vy in zip(right, b.scenario.variants, strict=True)
        if vx.name == vy.name or len(left) == len(right) == 1
    ]
    if not shared:
        raise InputError(
            f"{a.path} and {b.path} have no variant name in common",
            hint=f"they have {_names(a)} and {_names(b)}",
        )
    if a.arm != b.arm:
        raise InputError(f"{a.path} ran on the {a.arm} arm and {b.path} on the {b.arm} arm")
    columns = tuple(c for pair in shared for c in pair)
    return _judged(a, columns, tuple((x.name, y.name) for x, y in shared), validity, b)


def settled(result: Result, *, against: str | None = None) -> bool:
    """Whether more units could not change a verdict: of the declared metrics, or of all that have a direction."""
    comparison = compare_variants(result, against=against)
    declared = [m for m in comparison.metrics if m.metric.declared]
    watched = declared or [m for m in comparison.metrics if m.metric.better != "neither"]
    return all(j.settled for m in watched for j in m.comparisons)


def pairs(names: Sequence[str], against: str | None) -> tuple[tuple[str, str], ...]:
    """The pairs to judge, each with its baseline first."""
    if against == EVERY_PAIR and EVERY_PAIR not in names:
        return tuple(combinations(names, 2))
    baseline = names[0] if against is None else against
    if baseline not in names:
        hint = spelling.hint(baseline, [*names, EVERY_PAIR], "name one of")
        raise InputError(f"there is no variant `{baseline}` to compare against", hint=hint)
    return tuple((baseline, name) for name in names if name != baseline)


def _judged(
    result: Result,
    columns: tuple[Column, ...],
    pairs: tuple[tuple[str, str], ...],
    validity: Sequence[Path],
    other: Result | None = None,
) -> Comparison:
    scenario, seeds = result.scenario, result.seeds
    metrics = scenario.metrics
    if other is not None:
        seeds = tuple(s for s in seeds if s in other.seeds)
        known = {m.name for m in other.scenario.metrics}
        metrics = tuple(m for m in metrics if m.name in known)
    judges = _Judges(result, columns, seeds, other)
    judged = [judges.metric(m, pairs) for m in metrics]
    if result.arm == "sim":
        errors = model_errors(validity)
        judged = [replace(m, model=validated(scenario, m.metric, errors)) for m in judged]
        preempt = is_about_preemption(scenario)
        judged = [_with_evidence(m, validity, preempt=preempt) for m in judged]
    same = {} if other else same_variants(scenario, result.arm, pairs)
    apart = differing(scenario, other.scenario) if other else ()
    return Comparison(
        scenario=scenario,
        arm=result.arm,
        seeds=seeds,
        columns=tuple(_heard(scenario, c, judges.bounds) for c in columns),
        pairs=pairs,
        metrics=_with_holm(judged),
        failures=result.failures + (other.failures if other else ()),
        missing=result.missing + (other.missing if other else 0),
        provenance=result.provenance,
        path=result.path,
        machine=limits.machine(judges.runs),
        same=same,
        remarks=(
            *same.values(),
            *(f"the two results did not run the same: {line}" for line in apart),
            *limits.remarks(scenario, judges.runs, judges.bounds),
            *drift.remarks([m for m in metrics if m.declared and not judges.bounds.suppresses(m)], columns, seeds),
        ),
        setup=_setup(scenario, result.arm, columns, other.scenario if other else None),
        rankings=() if other else judges.rankings(judged),
        design=result.design,
        defaults=_defaults(scenario, columns, pairs, other.scenario if other else None),
        robustness=None if other else robust.read(result.path),
    )


class _Judges:
    """Judges one metric after the other on the same runs."""

    def __init__(self, result: Result, columns: Sequence[Column], seeds: Sequence[int], other: Result | None) -> None:
        self._columns, self._seeds = columns, seeds
        self.runs = {c.name: [c.runs[s] for s in seeds if s in c.runs] for c in columns}
        self.bounds = limits.of(result.scenario, result.arm, self.runs)
        self._noise = result.scenario.noise or result.arm != "sim"
        self._level = _level(result.design, len(seeds)) if other is None else FIXED
        first = columns[0].name
        again = result.design.again if other is None else ()
        self._again = [result.runs.get((first, seed)) for seed in again[: len(seeds)]]

    def metric(self, metric: Metric, pairs: Sequence[tuple[str, str]]) -> MetricComparison:
        samples = {c.name: c.samples(metric.name, self._seeds) for c in self._columns}
        judgements = [self._one(metric, a, b, samples) for a, b in pairs]
        if self.bounds.suppresses(metric):
            silent: dict[str, list[float | None]] = {name: [None] * len(values) for name, values in samples.items()}
            return MetricComparison(metric, silent, tuple(self.bounds.apply(metric, j) for j in judgements))
        judgements = [self._with_detail(metric, j, samples) for j in judgements]
        return MetricComparison(metric, samples, tuple(judgements), noise_floor=self._noise_floor(metric, samples))

    def rankings(self, judged: Sequence[MetricComparison]) -> tuple[Ranking, ...]:
        """Of three variants or more, which are better than how many, in every metric that has a direction."""
        names = [c.name for c in self._columns]
        if len(names) < 3:
            return ()
        found = []
        for m in judged:
            if m.metric.better != "neither" and not self.bounds.suppresses(m.metric):
                pairs = [self._one(m.metric, a, b, m.samples) for a, b in combinations(names, 2)]
                found.append(_ranking(m.metric.name, names, pairs))
        return tuple(found)

    def _one(self, metric: Metric, a: str, b: str, samples: Mapping[str, list[float | None]]) -> Judgement:
        return judge(metric, a, b, samples[a], samples[b], noise=self._noise, level=self._level)

    def _with_detail(self, metric: Metric, j: Judgement, samples: Mapping[str, list[float | None]]) -> Judgement:
        return replace(
            j,
            spread=_spread(samples[j.a], samples[j.b], self._level),
            tail=self._tail(metric, j.a, j.b),
        )

    def _tail(self, metric: Metric, a: str, b: str) -> Tail | None:
        percentile = float(metric.stat[1:]) if metric.stat and metric.stat[:1] == "p" else 0.0
        if percentile < TAILS_FROM:
            return None
        sides = [{run.seed: run.series.get(metric.of) for run in self.runs[name]} for name in (a, b)]
        units = [(sides[0].get(s), sides[1].get(s)) for s in self._seeds]
        whole = [(x, y) for x, y in units if x and y and x.histogram and y.histogram]
        if not whole:
            return None
        scale = _scale(whole[0][0], metric)
        histograms = [
            ([(v * scale, n) for v, n in x.histogram], [(v * scale, n) for v, n in y.histogram]) for x, y in whole
        ]
        return tail_difference(histograms, percentile, self._level.difference)

    def _noise_floor(self, metric: Metric, samples: Mapping[str, list[float | None]]) -> Difference | None:
        if not self._again:
            return None
        again = [run.metrics.get(metric.name) if run else None for run in self._again]
        return paired_difference(samples[self._columns[0].name][: len(again)], again)


def _level(design: Design, units: int) -> Level:
    return Level.at(Plan(design.looks), units) if units in design.looks else FIXED


def _scale(series: Series, metric: Metric) -> float:
    """From the series' unit into the metric's, which a scenario may choose."""
    if series.unit == metric.unit or series.unit not in _SECONDS or metric.unit not in _SECONDS:
        return 1.0
    return _SECONDS[series.unit] / _SECONDS[metric.unit]


def _spread(a: Sequence[float | None], b: Sequence[float | None], level: Level) -> Spread | None:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if len(pairs) < SMALLEST_N:
        return None
    return spread([x for x, _ in pairs], [y for _, y in pairs], level.difference)


def _ranking(metric: str, names: Sequence[str], pairs: Sequence[Judgement]) -> Ranking:
    """A variant's rank is one more than the number of variants that are better with certainty.

    Certainty is after Holm over the pairs of the metric; what is equivalent, or cannot be distinguished, shares a rank.
    """
    adjusted = holm([j.p for j in pairs])
    beaten = dict.fromkeys(names, 0)
    tied = []
    for j, p in zip(pairs, adjusted, strict=True):
        certain = p is None or p <= ALPHA
        if j.effect in ("better", "worse") and certain:
            beaten[j.a if j.effect == "better" else j.b] += 1
        elif j.verdict != "equivalent":
            tied.append((j.a, j.b))
    return Ranking(metric, {name: 1 + beaten[name] for name in names}, tuple(tied))


def _with_holm(metrics: Sequence[MetricComparison]) -> tuple[MetricComparison, ...]:
    """Each p adjusted for all metrics of the same two variants."""
    adjusted: dict[tuple[str, str, str], float | None] = {}
    for pair in dict.fromkeys((j.a, j.b) for m in metrics for j in m.comparisons):
        of_pair = [(m.metric.name, j) for m in metrics for j in m.comparisons if (j.a, j.b) == pair]
        for (name, _), p in zip(of_pair, holm([j.p for _, j in of_pair]), strict=True):
            adjusted[name, *pair] = p
    return tuple(
        replace(m, comparisons=tuple(replace(j, p_holm=adjusted[m.metric.name, j.a, j.b]) for j in m.comparisons))
        for m in metrics
    )


def _with_evidence(m: MetricComparison, validity: Sequence[Path], *, preempt: bool) -> MetricComparison:
    """With what real kernels showed where the simulator showed such changes."""

    def checked(j: Judgement) -> Judgement:
        if j.effect == "none" or not j.difference.percent or j.difference.estimate is None:
            return j
        return replace(j, evidence=evidence(m.metric, j.difference.estimate, validity, preempt=preempt))

    return replace(m, comparisons=tuple(checked(j) for j in m.comparisons))


def _setup(scenario: Scenario, arm: str, columns: Sequence[Column], other: Scenario | None) -> tuple[Fact, ...]:
    """The facts of one scenario; of two results, the variants under the names of their columns."""
    found = facts(scenario, arm)
    if other is None:
        return found
    shared = of_two(found, facts(other, arm))
    return (*shared, *(Fact("variant", c.name, c.setup) for c in columns))


def _defaults(
    scenario: Scenario, columns: Sequence[Column], pairs: Sequence[tuple[str, str]], other: Scenario | None
) -> dict[tuple[str, str], str]:
    """For each pair, the settings in which its kernels differ by default alone."""
    if other is not None:
        return {}
    variants = {column.name: variant for column, variant in zip(columns, scenario.variants, strict=True)}
    found = {(a, b): boot_defaults(variants[a], variants[b]) for a, b in pairs}
    return {pair: text for pair, text in found.items() if text}


def _heard(scenario: Scenario, column: Column, bounds: limits.Limits) -> Column:
    return replace(column, runs={seed: bounds.without_suppressed(scenario, run) for seed, run in column.runs.items()})


def _columns(result: Result, prefix: str = "") -> list[Column]:
    return [
        Column(
            prefix + v.name,
            v.kernel,
            {s: result.runs[v.name, s] for s in result.seeds if (v.name, s) in result.runs},
            changes_text(v),
            v.named,
            variant_text(v),
        )
        for v in result.scenario.variants
    ]


def _result_names(a: Result, b: Result) -> tuple[str, str]:
    left, right = (r.path.resolve().name if r.path else "" for r in (a, b))
    return (f"{left}:", f"{right}:") if left != right else ("1:", "2:")


def _names(result: Result) -> str:
    return ", ".join(v.name for v in result.scenario.variants)
