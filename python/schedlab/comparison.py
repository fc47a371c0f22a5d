"""A judged comparison: columns of runs, pairs of columns, and a judgement per metric and pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.arms import limits
from schedlab.engine import ARMS
from schedlab.errors import InputError
from schedlab.judge import Judgement, judge
from schedlab.outcome import Failure, Run
from schedlab.scenario import Metric, Scenario
from schedlab.setup import Fact, changes_text, differing, facts
from schedlab.statistics import holm
from schedlab.store import Result

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Column:
    """The runs of one variant."""

    name: str
    kernel: str
    runs: Mapping[int, Run]
    changes: str = ""
    """What the variant changes on its kernel, in words."""

    def samples(self, metric: str, seeds: Sequence[int]) -> list[float | None]:
        """One value per seed, None where the run or the value is missing."""
        return [self.runs[s].metrics.get(metric) if s in self.runs else None for s in seeds]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric over all columns."""

    metric: Metric
    samples: Mapping[str, list[float | None]]
    comparisons: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What `compare` and `report` show, in any format."""

    scenario: Scenario
    arm: str
    seeds: tuple[int, ...]
    columns: tuple[Column, ...]
    pairs: tuple[tuple[str, str], ...]
    """(baseline, other) names."""
    metrics: tuple[MetricComparison, ...]
    failures: tuple[Failure, ...]
    missing: int
    """Runs that were asked for and never ended: the comparison was interrupted."""
    provenance: Mapping[str, Any]
    path: Path | None
    machine: str | None = None
    """What real runs ran on, in words; None in a simulation, whose machine is the scenario's."""
    remarks: tuple[str, ...] = ()
    """Circumstances that a reader must know."""
    setup: tuple[Fact, ...] = ()
    """What ran and how the variants differ."""

    def __repr__(self) -> str:
        """One line: every sample of every run would be megabytes."""
        sizes = f"{len(self.seeds)} seeds, {len(self.metrics)} metrics"
        return f"<Comparison {self.scenario.name}: {', '.join(c.name for c in self.columns)}; {self.arm_word}, {sizes}>"

    @property
    def arm_word(self) -> str:
        """The word that goes with every figure."""
        return ARMS[self.arm]

    @property
    def engine(self) -> str:
        """The engine's version."""
        return next((run.engine for c in self.columns for run in c.runs.values()), "unknown")

    def judgements(self) -> list[tuple[Metric, Judgement]]:
        """Every judgement with its metric."""
        return [(m.metric, j) for m in self.metrics for j in m.comparisons]

    def table(self) -> list[dict[str, Any]]:
        """One plain row per metric and pair."""
        return [_row(metric, j, self.arm_word) for metric, j in self.judgements()]

    def samples_table(self) -> list[dict[str, Any]]:
        """One plain row per metric, variant and seed."""
        return [
            {"metric": m.metric.name, "unit": m.metric.unit, "variant": name, "seed": seed, "value": value}
            for m in self.metrics
            for name, values in m.samples.items()
            for seed, value in zip(self.seeds, values, strict=True)
        ]

    def to_dataframe(self) -> pandas.DataFrame:
        """`table` as a DataFrame; needs pandas (`pip install schedlab[pandas]`)."""
        return _dataframe(self.table())

    def to_json(self) -> dict[str, Any]:
        """The document that `compare --json` prints."""
        from schedlab.render.document import compare_document

        return compare_document(self)

    def text(self, style: str = "table") -> str:
        """The text that `compare --style` prints."""
        from schedlab.render import text

        return text(self, style)

    def html(self) -> str:
        """The self-contained page that `compare --html` writes."""
        from schedlab.render.page import page

        return page(self)


def compare_variants(result: Result) -> Comparison:
    """Every variant of a result against its first."""
    columns = tuple(_columns(result))
    first = columns[0].name
    return _judged(result, columns, tuple((first, c.name) for c in columns[1:]))


def compare_results(a: Result, b: Result) -> Comparison:
    """Each variant of `a` against the variant of the same name of `b`, or the only one against the only one."""
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
    return _judged(a, columns, tuple((x.name, y.name) for x, y in shared), b)


def _judged(
    result: Result, columns: tuple[Column, ...], pairs: tuple[tuple[str, str], ...], other: Result | None = None
) -> Comparison:
    scenario, seeds = result.scenario, result.seeds
    metrics = scenario.metrics
    if other is not None:
        seeds = tuple(s for s in seeds if s in other.seeds)
        known = {m.name for m in other.scenario.metrics}
        metrics = tuple(m for m in metrics if m.name in known)
    runs = {c.name: [c.runs[s] for s in seeds if s in c.runs] for c in columns}
    bounds = limits.of(scenario, result.arm, runs)
    noise = scenario.noise or result.arm != "sim"
    judged = _with_holm([_metric(m, columns, pairs, seeds, noise, bounds) for m in metrics])
    apart = differing(scenario, other.scenario) if other else ()
    return Comparison(
        scenario=scenario,
        arm=result.arm,
        seeds=seeds,
        columns=tuple(_heard(scenario, c, bounds) for c in columns),
        pairs=pairs,
        metrics=judged,
        failures=result.failures + (other.failures if other else ()),
        missing=result.missing + (other.missing if other else 0),
        provenance=result.provenance,
        path=result.path,
        machine=limits.machine(runs),
        remarks=(
            *(f"the two results did not run the same: {line}" for line in apart),
            *limits.remarks(scenario, runs, bounds),
        ),
        setup=_setup(scenario, columns, other.scenario if other else None),
    )


def _setup(scenario: Scenario, columns: Sequence[Column], other: Scenario | None) -> tuple[Fact, ...]:
    """The facts of one scenario; of two results, the variants under the names of their columns."""
    found = facts(scenario)
    if other is None:
        return found
    shared = [fact for fact in found if fact.kind != "variant"]
    texts = ((c, c.changes or "with its own settings") for c in columns)
    return (*shared, *(Fact("variant", c.name, f"kernel {c.kernel}, {text}") for c, text in texts))


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


def _metric(
    metric: Metric,
    columns: Sequence[Column],
    pairs: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    noise: bool,
    bounds: limits.Limits,
) -> MetricComparison:
    samples: dict[str, list[float | None]] = {c.name: c.samples(metric.name, seeds) for c in columns}
    judged = (judge(metric, a, b, samples[a], samples[b], noise) for a, b in pairs)
    judgements = tuple(bounds.apply(metric, j) for j in judged)
    if bounds.silences(metric):
        samples = {name: [None] * len(values) for name, values in samples.items()}
    return MetricComparison(metric, samples, judgements)


def _heard(scenario: Scenario, column: Column, bounds: limits.Limits) -> Column:
    return replace(column, runs={seed: bounds.heard(scenario, run) for seed, run in column.runs.items()})


def _columns(result: Result, prefix: str = "") -> list[Column]:
    return [
        Column(
            prefix + v.name,
            v.kernel,
            {s: result.runs[v.name, s] for s in result.seeds if (v.name, s) in result.runs},
            changes_text(v),
        )
        for v in result.scenario.variants
    ]


def _result_names(a: Result, b: Result) -> tuple[str, str]:
    left, right = (r.path.resolve().name if r.path else "" for r in (a, b))
    return (f"{left}:", f"{right}:") if left != right else ("1:", "2:")


def _names(result: Result) -> str:
    return ", ".join(v.name for v in result.scenario.variants)


def _row(metric: Metric, j: Judgement, arm: str) -> dict[str, Any]:
    d = j.difference
    return {
        "arm": arm,
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "a": j.a,
        "b": j.b,
        "median_a": d.median_a,
        "median_b": d.median_b,
        "delta_pct": d.estimate if d.percent else None,
        "low_pct": d.interval.low if d.interval and d.percent else None,
        "high_pct": d.interval.high if d.interval and d.percent else None,
        "n": d.pairs,
        "margin_pct": metric.margin_pct,
        "verdict": j.verdict,
        "p": j.p,
        "p_holm": j.p_holm,
        "p_equivalent": j.p_equivalent,
        "reason": j.reason,
    }


def _dataframe(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError:
        raise InputError("a DataFrame needs pandas", hint="pip install 'schedlab[pandas]'") from None
    return pandas.DataFrame(rows)
