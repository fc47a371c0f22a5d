"""A validation: scenarios on the simulator and on a real kernel, with the simulator's machine files and the dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from schedlab.arms import limits
from schedlab.statistics import median
from schedlab.store import Result
from schedlab.validity.effects import Effect, effects
from schedlab.validity.rows import FAMILIES, GOALS, Row, rows, runs_of


@dataclass(frozen=True, slots=True)
class Trial:
    """One scenario on both arms."""

    simulated: Result
    measured: Result


@dataclass
class Validation:
    """Any number of trials on the same kind of machine."""

    arm: str
    trials: list[Trial] = field(default_factory=list)
    costs: dict[str, str] = field(default_factory=dict)
    """The machine file with which each kernel row was simulated, as text."""
    measured: dict[str, Any] = field(default_factory=dict)
    """Where the measurements come from: date, command, version."""
    simulated: dict[str, Any] = field(default_factory=dict)
    """The same for the simulated runs, which can be repeated alone."""

    @cached_property
    def rows(self) -> list[Row]:
        return [row for trial in self.trials for row in rows(trial.simulated, trial.measured)]

    @cached_property
    def effects(self) -> list[Effect]:
        return [effect for trial in self.trials for effect in effects(trial.simulated, trial.measured)]

    @property
    def failures(self) -> list[str]:
        """Runs without numbers, and why."""
        return [
            f"{result.scenario.name} {f.variant} seed {f.seed}, {word}: {f.message.splitlines()[0]}"
            for trial in self.trials
            for word, result in (("simulated", trial.simulated), ("measured", trial.measured))
            for f in result.failures
        ]

    @property
    def where(self) -> str:
        """What the real runs ran on, in words."""
        words = dict.fromkeys(machine_of(trial.measured) for trial in self.trials)
        return " and ".join(word for word in words if word) or "nothing"

    @property
    def kernels(self) -> Mapping[str, str]:
        """The release that was measured for each kernel row."""
        found = {}
        for trial in self.trials:
            for run in trial.measured.runs.values():
                found[run.kernel] = limits.place(run).get("state", {}).get("release", "unknown")
        return dict(sorted(found.items()))


def machine_of(result: Result) -> str | None:
    """The words for the machine of real runs."""
    names = [v.name for v in result.scenario.variants]
    return limits.machine({name: runs_of(result, name) for name in names})


def summary(found: Sequence[Row], changes: Sequence[Effect]) -> list[list[str]]:
    """One line per family: how many values, median and worst error, the goal, how many missed it."""
    table = [["family", "values", "median error", "worst error", "goal", "missed", "worst value"]]
    for family in FAMILIES:
        # A count that is 0 on both arms cannot be wrong: it would only flatter the median.
        of_family = [r for r in found if r.family == family and r.error is not None and (r.simulated or r.measured)]
        if of_family:
            table.append(_family(family, of_family))
    return table + [_direction(changes, of) for of in ("measured", "simulated") if _judged(changes, of)]


def rates(changes: Sequence[Effect]) -> dict[str, dict[str, int]]:
    """For both directions: how many changes were judged, and how many the other arm shows with the same sign, and with
    the same size (`near`)."""
    found = {}
    for of in ("measured", "simulated"):
        judged = _judged(changes, of)
        words = [word for _, word in judged]
        near = sum(word == "same" and change.near for change, word in judged)
        counts = {word: words.count(word) for word in ("same", "WRONG", "not shown")}
        found[of] = {"judged": len(words), **counts, "near": near}
    return found


def _family(family: str, found: Sequence[Row]) -> list[str]:
    unit = " points" if family == "CPU share" else "%"
    worst = max(found, key=lambda r: abs(r.error or 0))
    middle = median([abs(r.error or 0) for r in found])
    goal = GOALS.get(family)
    return [
        family,
        str(len(found)),
        f"{middle:.1f}{unit}",
        f"{worst.error:+.1f}{unit}",
        f"{goal:g}{unit}" if goal else "",
        str(sum(r.missed for r in found)) if goal else "",
        f"{worst.scenario} {worst.variant} {worst.metric}",
    ]


def _judged(changes: Sequence[Effect], of: str) -> list[tuple[Effect, str]]:
    words = ((c, c.of_measured if of == "measured" else c.of_simulated) for c in changes)
    return [(c, word) for c, word in words if word]


def _direction(changes: Sequence[Effect], of: str) -> list[str]:
    judged = _judged(changes, of)
    gaps = [abs(c.gap) for c, _ in judged if c.gap is not None]
    worst, _ = max(judged, key=lambda found: (found[1] != "same", abs(found[0].log_gap or 0)))
    return [
        f"changes, {of}",
        str(len(judged)),
        f"{median(gaps):.1f}%",
        f"{worst.gap or 0:+.1f}%",
        f"same sign {'simulated' if of == 'measured' else 'measured'}",
        str(sum(word != "same" for _, word in judged)),
        f"{worst.scenario} {worst.b} {worst.metric}",
    ]
