"""A validated study as plain typed data; the rules of the file are the engine's (crate schedlab-scenario)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from schedlab.scenario import Scenario

ALTERNATIVE_UNITS = 2
"""An alternative is shown and never counted: two units show its direction."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A circumstance of the measurement."""

    what: str
    holds: str
    source: str | None
    """Where the publication states it; None if it is assumed."""
    assumed: str | None
    """Why this is the default; None if it is stated."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the kernels that were compared."""

    name: str
    published: str
    """The figures' column `variant`."""
    case: str | None
    """The figures' column `case`, where it differs by variant."""
    kernel: str | None
    missing: str | None


@dataclass(frozen=True, slots=True)
class Measure:
    """What stands for a published metric in the simulation."""

    published: str
    metric: str | None
    share: str | None
    """The task whose share of the CPU time it is, instead of a metric."""
    unit: str
    missing: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """One set of options of an experiment, with its scenario."""

    experiment: str
    workload: str
    case: str
    alternative: str | None
    """The condition whose alternative this is; such a case is shown and never counted."""
    missing: str | None
    measures: tuple[Measure, ...]
    scenario: Scenario | None
    """None if something is missing."""
    fingerprint: str | None = None
    """Of everything that its runs depend on, but for the engine."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it shares with its alternatives."""
        return self.experiment, self.workload, self.case

    @property
    def label(self) -> str:
        """Its name within the study."""
        parts = [self.experiment, self.workload, self.case]
        name = ", ".join(part for part in parts if part)
        return f"{name} [alternative: {self.alternative}]" if self.alternative else name


@dataclass(frozen=True, slots=True)
class Experiment:
    """What was run."""

    name: str
    variants: tuple[str, ...]
    """The first is the baseline."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A mechanism that the model lacks, and the rows that disagree because of it."""

    experiment: str
    workload: str | None
    metric: str | None
    mechanism: str
    found: str | None
    """How that is known; None if it is a hypothesis."""
    hypothesis: str | None
    """What suggests it, where it is not known."""

    @property
    def text(self) -> str:
        """The mechanism, marked where it is only supposed."""
        return self.mechanism if self.hypothesis is None else f"hypothesis: {self.mechanism}"


@dataclass(frozen=True, slots=True)
class Study:
    """A published comparison."""

    name: str
    summary: str
    source: str
    file: str
    short: bool
    units: int
    conditions: tuple[Condition, ...]
    variants: tuple[Variant, ...]
    experiments: tuple[Experiment, ...]
    cases: tuple[Case, ...]
    gaps: tuple[Gap, ...]
    figures_file: str
    figures: str
    """The CSV text of the published figures."""

    @classmethod
    def from_description(cls, d: Mapping[str, Any], scenario: Callable[[int], Scenario]) -> Self:
        return cls(
            name=d["name"],
            summary=d["summary"],
            source=d["source"],
            file=d["file"],
            short=d["short"],
            units=d["units"],
            conditions=tuple(Condition(c["what"], c["is"], c["source"], c["assumed"]) for c in d["conditions"]),
            variants=tuple(Variant(**v) for v in d["variants"]),
            experiments=tuple(Experiment(e["name"], tuple(e["variants"])) for e in d["experiments"]),
            cases=tuple(_case(c, scenario) for c in d["cases"]),
            gaps=tuple(Gap(**g) for g in d["gaps"]),
            figures_file=d["figures"]["file"],
            figures=d["figures"]["text"],
        )

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return next(e for e in self.experiments if e.name == name)

    def variant(self, name: str) -> Variant:
        """The variant of that name."""
        return next(v for v in self.variants if v.name == name)

    def gap(self, experiment: str, workload: str, metric: str) -> Gap | None:
        """The first gap that a row falls into."""
        for gap in self.gaps:
            if gap.experiment == experiment and gap.workload in (None, workload) and gap.metric in (None, metric):
                return gap
        return None


def _case(d: Mapping[str, Any], scenario: Callable[[int], Scenario]) -> Case:
    return Case(
        experiment=d["experiment"],
        workload=d["workload"],
        case=d["case"],
        alternative=d["alternative"],
        missing=d["missing"],
        measures=tuple(_measure(m) for m in d["metrics"]),
        scenario=None if d["scenario"] is None else _units(scenario(d["scenario"]), d["alternative"]),
        fingerprint=d["fingerprint"],
    )


def _units(scenario: Scenario, alternative: str | None) -> Scenario:
    return scenario if alternative is None else replace(scenario, seeds=scenario.seeds[:ALTERNATIVE_UNITS])


def _measure(d: Mapping[str, Any]) -> Measure:
    return Measure(d["published"], d.get("metric"), d.get("share"), d.get("unit", ""), d.get("missing"))
