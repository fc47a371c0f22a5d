"""Looks for the reason why a row disagrees: the first difference, and the mechanism behind the simulated change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab import files
from schedlab.engine import Cancel, Engine
from schedlab.errors import InputError, RunError
from schedlab.native.decisions import DecisionView
from schedlab.native.explained import FirstDifference
from schedlab.outcome import Outcome
from schedlab.studies.runs import Task
from schedlab.studies.score import Row

if TYPE_CHECKING:
    from schedlab.ablation import Ablation, Part

UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Reason:
    """What explain and ablate say about a variant of a case."""

    divergence: str
    """The first decision in which the variants differ, in words."""
    mechanism: str | None = None
    """What contributes most to the simulated change; None if this was not ablated, or if nothing contributes."""
    share_pct: float | None = None
    ablated: bool = False
    """Whether every mechanism was flipped; if `mechanism` is None then, none contributes."""

    @property
    def text(self) -> str:
        """One line."""
        if self.mechanism is None:
            return (
                f"{self.divergence}; no single mechanism contributes to the simulated change"
                if self.ablated
                else self.divergence
            )
        if self.share_pct is None:
            return f"{self.divergence}; {self.mechanism} contributes most to the simulated change, without certainty"
        return f"{self.divergence}; {self.share_pct:.0f}% of the simulated change is due to {self.mechanism}"


def disagreeing(rows: Sequence[Row]) -> list[Row]:
    """The counted rows that were simulated and disagree."""
    return [row for row in rows if row.counted and row.outcome in ("wrong sign", "no change")]


def explained(engine: Engine, task: Task, variant: str, cancel: Cancel) -> Reason:
    """Where the baseline and a variant differ first, with the first unit: two more runs."""
    a, seed = task.scenario.variants[0].name, task.scenario.seeds[0]
    file = task.folder / f"reason-{variant}.json"
    if (known := _read(file)) is not None:
        return known
    reason = Reason(_words(engine.explain(task.scenario, a, variant, seed, cancel=cancel)))
    _write(file, reason)
    return reason


@dataclass(frozen=True, slots=True)
class Question:
    """Which mechanism makes the simulated change of a metric in a variant of a case."""

    task: Task
    variant: str
    metric: str

    @property
    def label(self) -> str:
        return f"{self.task.label}: {self.metric} of {self.variant}"

    @property
    def file(self) -> Path:
        """Where the answer is kept."""
        return self.task.folder / f"reason-{self.variant}-{self.metric}-{len(self.task.scenario.seeds)}.json"

    def answer(self) -> Reason | None:
        """The answer, if it is known."""
        return _read(self.file)

    def runs(self, engine: Engine) -> int:
        """How many runs the answer takes at most: if every difference acts."""
        from schedlab.ablation import count

        seeds, base = self.task.scenario.seeds, self.task.scenario.variants[0].name
        differences = engine.ablation(self.task.scenario, base, self.variant)
        return count(differences, seeds[:1]) + count(differences, seeds)


def ablated(
    engine: Engine, question: Question, divergence: str, jobs: int, on_outcome: Callable[[Outcome], None]
) -> Reason | None:
    """Find the answer and keep it; None if a hybrid does not run.

    The differences are flipped with the first unit; those that change no event there are left out of the further ones.
    """
    from schedlab.ablation import ablate, acting

    scenario, variant = question.task.scenario, question.variant
    base, metric = scenario.variants[0].name, next(m for m in scenario.metrics if m.name == question.metric)
    try:
        live = acting(engine, scenario, base, variant, jobs=jobs, on_outcome=on_outcome)
        found = (
            ablate(engine, scenario, base, variant, metric, jobs=jobs, on_outcome=on_outcome, differences=live)
            if live
            else None
        )
    except (InputError, RunError):
        return None
    largest = _largest(found) if found else None
    share = None if largest is None or largest.share is None else 100 * largest.share
    both = Reason(divergence, largest.name if largest else None, share, ablated=True)
    _write(question.file, both)
    return both


def _largest(found: Ablation) -> Part | None:
    """The mechanism with the largest effect in the direction of the whole change."""
    same = [p for p in found.parts if p.effect and p.effect.estimate * found.effect.estimate > 0 and not p.within]
    return max(same, key=lambda p: abs(p.effect.estimate) if p.effect else 0.0, default=None)


def _words(divergence: FirstDifference | None) -> str:
    if divergence is None:
        return "every scheduler event of both variants is the same"
    at = f"{divergence['time_ns'] / 1e6:.3f} ms"
    if divergence["costs"]:
        return f"at {at} no decision differs, only what it costs"
    decisions = [side["decision"] for side in divergence["sides"] if side["decision"]]
    if not decisions:
        return f"the first difference is at {at} ({divergence['question']})"
    rules = dict.fromkeys(_rule(decision) for decision in decisions)
    return f"the first difference is at {at} in {' and '.join(rules)}"


def _rule(decision: DecisionView) -> str:
    feature = f" [{decision['feature']}]" if decision["feature"] else ""
    return f"{decision['function']}{feature}"


def _read(file: Path) -> Reason | None:
    try:
        return Reason(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _write(file: Path, reason: Reason) -> None:
    try:
        files.replace(file, json.dumps(asdict(reason)) + "\n")
    except OSError:
        pass  # it is found again next time
