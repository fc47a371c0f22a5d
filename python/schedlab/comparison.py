"""A judged comparison: columns of runs, pairs of columns, and a judgement per metric and pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab import extras, fragment
from schedlab.design import Design
from schedlab.engine import ARMS
from schedlab.errors import InputError
from schedlab.judge import Judgement
from schedlab.outcome import Failure, Run
from schedlab.robust import Robustness
from schedlab.scenario import Metric, Scenario
from schedlab.setup_facts import Fact
from schedlab.statistics import Difference
from schedlab.validity import Validated

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
    named: str = ""
    """The kernel with the distribution whose configuration it has; empty: `kernel`."""
    setup: str = ""
    """The kernel, its configuration and its changes in one line."""

    def samples(self, metric: str, seeds: Sequence[int]) -> list[float | None]:
        """One value per seed, None where the run or the value is missing."""
        return [self.runs[s].metrics.get(metric) if s in self.runs else None for s in seeds]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric over all columns."""

    metric: Metric
    samples: Mapping[str, list[float | None]]
    comparisons: tuple[Judgement, ...]
    model: Validated | None = None
    """The model error; None for measured results."""
    noise_floor: Difference | None = None
    """Further runs of the first variant against its runs: what differs although nothing was changed."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of three variants or more in one metric."""

    metric: str
    ranks: Mapping[str, int]
    """1 is best; one more than the number of variants that are better with certainty."""
    undecided: tuple[tuple[str, str], ...]
    """Pairs that share a rank, or might, only because they cannot be distinguished yet."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What `compare` and `report` show; `schedlab.render` writes it in any format."""

    scenario: Scenario
    arm: str
    seeds: tuple[int, ...]
    columns: tuple[Column, ...]
    pairs: tuple[tuple[str, str], ...]
    """(baseline, other) names."""
    metrics: tuple[MetricComparison, ...]
    failures: tuple[Failure, ...]
    missing: int
    """Runs that were requested and never ended: the comparison was interrupted."""
    provenance: Mapping[str, Any]
    path: Path | None
    machine: str | None = None
    """What real runs ran on, in words; None in a simulation, whose machine is the scenario's."""
    remarks: tuple[str, ...] = ()
    """Caveats."""
    setup: tuple[Fact, ...] = ()
    """What ran and how the variants differ."""
    rankings: tuple[Ranking, ...] = ()
    """With three variants or more, for every metric that has a direction."""
    design: Design = field(default_factory=Design)
    """What was declared before the first run."""
    robustness: Robustness | None = None
    """The number of draws with other costs and ties in which the verdicts hold."""
    defaults: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Pairs whose kernels boot with different settings, each with the sentence that says so."""
    same: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Pairs whose variants do not differ on this arm, each with the sentence that says so."""
    causes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What the slowest samples of a pair consist of, in a clause, where the runs were examined."""

    def __repr__(self) -> str:
        """One line: every sample of every run would be megabytes."""
        sizes = f"{len(self.seeds)} seeds, {len(self.metrics)} metrics"
        return f"<Comparison {self.scenario.name}: {', '.join(c.name for c in self.columns)}; {self.arm_word}, {sizes}>"

    def _repr_html_(self) -> str:
        keys = ("metric", "unit", "a", "b", "median_a", "median_b", "delta_pct", "low_pct", "high_pct", "verdict")
        head = ("metric", "unit", "a", "b", "median a", "median b", "change %", "from", "to", "verdict")
        return fragment.table(repr(self), head, [[row[key] for key in keys] for row in self.table()])

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
        return [_row(m, j, self.arm_word) for m in self.metrics for j in m.comparisons]

    def samples_table(self) -> list[dict[str, Any]]:
        """One plain row per metric, variant and seed."""
        return [
            {"metric": m.metric.name, "unit": m.metric.unit, "variant": name, "seed": seed, "value": value}
            for m in self.metrics
            for name, values in m.samples.items()
            for seed, value in zip(self.seeds, values, strict=True)
        ]

    def to_dataframe(self) -> pandas.DataFrame:
        """`table` as a DataFrame; needs pandas (the extra `pandas`)."""
        return dataframe(self.table(), NUMBERS)

    def samples_dataframe(self) -> pandas.DataFrame:
        """`samples_table` as a DataFrame: metric, unit, variant, seed, value."""
        return dataframe(self.samples_table(), ("value",))


def _row(m: MetricComparison, j: Judgement, arm: str) -> dict[str, Any]:
    metric, d = m.metric, j.difference
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
        "model_error_pct": m.model.error.error_pct if m.model and m.model.error else None,
        "validated": m.model.holds if m.model else None,
        "reason": j.reason,
    }


NUMBERS = (
    *("median_a", "median_b", "delta_pct", "low_pct", "high_pct", "margin_pct"),
    *("p", "p_holm", "p_equivalent", "model_error_pct"),
)
"""The columns of `table` that hold floating-point numbers."""


def dataframe(rows: list[dict[str, Any]], numbers: Iterable[str]) -> pandas.DataFrame:
    """Plain rows as a DataFrame. The columns `numbers` are float64, also if nothing was measured."""
    try:
        import pandas
    except ImportError:
        raise InputError("a DataFrame needs pandas", hint=extras.install("pandas")) from None
    frame = pandas.DataFrame(rows)
    return frame.astype({name: float for name in numbers if name in frame})
