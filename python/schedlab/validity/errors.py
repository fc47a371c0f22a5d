"""The model error of a metric on a machine, from stored validations, and in what the machine was not validated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.scenario import Metric, Scenario
from schedlab.statistics import median
from schedlab.statistics.interval import percent_of
from schedlab.validity.checked import is_about_preemption
from schedlab.validity.files import read, shipped
from schedlab.validity.rows import family_of
from schedlab.validity.validation import Trial, Validation, machine_of


@dataclass(frozen=True, slots=True)
class ModelError:
    """The error of simulated changes of one family of metrics on one kind of machine."""

    family: str
    arm: str
    machine: str
    """A description of the measured machine."""
    cpus: int
    changes: int
    """The number of changes between two variants that were compared."""
    median_pct: float
    """The median error of the ratio of two variants, simulated against measured."""
    error_pct: float
    """The largest of these errors. Changes of one scenario share a baseline, so no quantile of them has a coverage."""


@dataclass(frozen=True, slots=True)
class Validated:
    """What is known about the model error of one metric of a scenario."""

    family: str
    error: ModelError | None
    """The error on the most similar kind of machine; None if the family was never validated."""
    missing: tuple[str, ...] = ()
    """The properties of the scenario that were not validated, such as `8 CPUs` or `guests`."""

    @property
    def holds(self) -> bool:
        """Whether the error was measured on this kind of machine."""
        return self.error is not None and not self.missing

    @property
    def unknown(self) -> str:
        """What it was not measured for, in words: `8 CPUs and the costs of laptop-8`; empty if it holds."""
        *first, last = self.missing or ("",)
        return f"{', '.join(first)} and {last}" if first else last

    def covers(self, percent: float) -> bool:
        """Whether a change of this size is within the model error."""
        return self.error is not None and abs(math.log1p(max(percent, -99.99) / 100)) < math.log1p(
            self.error.error_pct / 100
        )

    def to_record(self) -> dict[str, Any]:
        known = asdict(self.error) if self.error else {}
        return {"family": self.family, **known, "holds": self.holds, "not_validated": list(self.missing)}


INLINE = "inline"
"""The name of a machine that a scenario describes itself."""


def validated(scenario: Scenario, metric: Metric, errors: Iterable[ModelError]) -> Validated:
    """The error measured on the number of CPUs that is nearest, and what it was not measured for."""
    family, cpus = family_of(metric), scenario.machine.cpus
    known = [e for e in errors if e.family == family]
    name = scenario.machine.name
    whose = "this machine" if name == INLINE else name
    costs = () if scenario.machine.calibrated else (f"the costs of {whose}",)
    size = (f"{cpus} CPU{'s' * (cpus != 1)}",)
    guests = ("guests",) if scenario.guests else ()
    if not known:
        return Validated(family, None, (family,))
    nearest = min(known, key=lambda e: (abs(math.log(e.cpus / cpus)), -e.changes))
    return Validated(family, nearest, (*(size if nearest.cpus != cpus else ()), *costs, *guests))


def model_errors(files: Iterable[Path] = ()) -> tuple[ModelError, ...]:
    """The errors of the shipped validations and of other stored ones, without those of preemption models."""
    return tuple(error for file in (*shipped(), *files) for error in _of_file(file))


@cache
def _of_file(file: Path) -> tuple[ModelError, ...]:
    found = read(file)
    # What preemption models change on one kernel says little about changes between kernels, features and knobs.
    trials = [t for t in found.trials if not is_about_preemption(t.measured.scenario)]
    return tuple(of_validation(replace(found, trials=trials)))


def of_validation(found: Validation) -> list[ModelError]:
    """One error for each family and kind of machine of a validation."""
    groups: dict[tuple[str, str, int], list[float]] = {}
    for trial in found.trials:
        machine, cpus = machine_of(trial.measured) or "unknown", trial.measured.scenario.machine.cpus
        for family, gaps in _gaps(trial).items():
            groups.setdefault((family, machine, cpus), []).extend(gaps)
    return [
        ModelError(family, found.arm, machine, cpus, len(gaps), *_middle_and_worst(gaps))
        for (family, machine, cpus), gaps in groups.items()
    ]


def _gaps(trial: Trial) -> Mapping[str, list[float]]:
    from schedlab.validity.effects import effects

    gaps: dict[str, list[float]] = {}
    for effect in effects(trial.simulated, trial.measured):
        if effect.log_gap is not None:
            gaps.setdefault(effect.family, []).append(abs(effect.log_gap))
    return gaps


def _middle_and_worst(gaps: list[float]) -> tuple[float, float]:
    return percent_of(median(gaps) or 0.0), percent_of(max(gaps))
