"""How often simulated changes of one kind and about one size had the right sign on real kernels.

The changes are those of the shipped validations and of files given with `--validity`. Only changes that are certain
when simulated count, since a comparison names no others. Changes between preemption models on one kernel say little
about changes between kernels, features and knobs, and the reverse, so each is checked against its own kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.scenario import Metric, Scenario
from schedlab.validity.effects import effects
from schedlab.validity.files import read, shipped
from schedlab.validity.rows import family_of

NEAR = 2.0
"""Changes of at least half and at most twice the size, as logarithms of the ratio, are about as large."""
LARGE = 0.7
"""Changes by more than a factor of two count as equally large."""
FEWEST = 5
"""With fewer checks nothing is concluded."""
GRADES = ((0.9, "high"), (0.7, "fair"), (0.0, "low"))
"""The share of the checks with the right sign from which each word is used."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What real kernels showed where the simulator showed such a change."""

    family: str
    right: int
    """Changes with the same sign on the real kernel."""
    unseen: int
    """Changes that the real kernel did not show with certainty."""
    wrong: int
    """Changes with the opposite sign."""

    @property
    def checks(self) -> int:
        return self.right + self.unseen + self.wrong

    @property
    def grade(self) -> str:
        """One of high, fair, low, or unknown where too little was checked."""
        if self.checks < FEWEST:
            return UNKNOWN
        return next(word for least, word in GRADES if self.right >= least * self.checks)

    @property
    def carries(self) -> bool:
        """Whether a verdict may rest on it."""
        return self.grade in ("high", "fair")

    def to_record(self) -> dict[str, Any]:
        return {**asdict(self), "checks": self.checks, "grade": self.grade}


def evidence(metric: Metric, change_pct: float, files: Sequence[Path] = (), *, preempt: bool = False) -> Evidence:
    """The checks of the metric's family for a change of about this size, in percent of the baseline.

    `preempt`: the change is one between preemption models.
    """
    kind, size = (family_of(metric), preempt), _size(change_pct)
    words = [word for of, own, word in _checks((*shipped(), *files)) if of == kind and _about(own, size)]
    return Evidence(kind[0], words.count("same"), words.count("not shown"), words.count("WRONG"))


def _size(change_pct: float) -> float:
    """|log(ratio)| of a change in percent."""
    return abs(math.log1p(max(change_pct, -99.99) / 100))


def _about(one: float, other: float) -> bool:
    """Whether two sizes count as about equal."""
    if min(one, other) >= LARGE:
        return True
    return one <= NEAR * other and other <= NEAR * one


def is_about_preemption(scenario: Scenario) -> bool:
    """Whether all variants set the preemption model."""
    return all(v.changes.get("preempt") for v in scenario.variants)


Check = tuple[tuple[str, bool], float, str]
"""The family and whether preemption models were compared, the size, and the outcome."""


def _checks(files: Iterable[Path]) -> Iterable[Check]:
    return (check for file in files for check in _of_file(file))


@cache
def _of_file(file: Path) -> tuple[Check, ...]:
    """Every simulated change of a stored validation."""
    return tuple(
        ((effect.family, is_about_preemption(trial.measured.scenario)), _size(effect.simulated.percent or 0.0), word)
        for trial in read(file).trials
        for effect in effects(trial.simulated, trial.measured)
        if (word := effect.of_simulated)
    )
