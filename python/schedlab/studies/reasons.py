"""Looks for the reason why a row disagrees: the first difference, and the mechanism behind the simulated change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab import files
from schedlab.engine import Cancel, Engine
from schedlab.errors import InputError, RunError
from schedlab.studies.runs import Task
from schedlab.studies.score import Row

if TYPE_CHECKING:
    from schedlab.ablation import Ablation, Part

UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Reason:
    """What explain and ablate say about a variant of a case."""

    parting: str
    """The first decision in which the variants differ, in words."""
    mechanism: str | None = None
    """What has the largest part in the simulated change; None if that was not asked, or if nothing has any."""
    share_pct: float | None = None
    ablated: bool = False
    """Whether every mechanism was flipped; without one in `mechanism`, none has a part in it."""

    @property
    def text(self) -> str:
        """One line."""
        if self.mechanism is None:
            return (
                f"{self.parting}; no single mechanism has a part in the simulated change"
                if self.ablated
                else self.parting
            )
        if self.share_pct is None:
            return f"{self.parting}; {self.mechanism} has the largest part in the simulated change, without certainty"
        return f"{self.parting}; {self.share_pct:.0f}% of the simulated change is due to {self.mechanism}"


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


def ablated(engine: Engine, task: Task, variant: str, metric: str, reason: Reason, jobs: int) -> Reason:
    """The same with what makes most of the simulated change of a metric: two runs per difference and unit."""
    file = task.folder / f"reason-{variant}-{metric}-{len(task.scenario.seeds)}.json"
    if (known := _read(file)) is not None:
        return known
    found = _ablation(engine, task, variant, metric, jobs)
    if found is None:
        return reason
    largest = _largest(found)
    share = None if largest is None or largest.share is None else 100 * largest.share
    both = Reason(reason.parting, largest.name if largest else None, share, ablated=True)
    _write(file, both)
    return both


def ablation_runs(engine: Engine, task: Task, variant: str) -> int:
    """How many runs `ablated` would take."""
    from schedlab.ablation import count

    differences = engine.ablation(task.scenario, task.scenario.variants[0].name, variant)
    return count(differences, task.scenario.seeds)


def _ablation(engine: Engine, task: Task, variant: str, metric: str, jobs: int) -> Ablation | None:
    """None if nothing can be flipped, or a hybrid does not run."""
    from schedlab.ablation import ablate

    declared = next((m for m in task.scenario.metrics if m.name == metric), None)
    if declared is None:
        return None
    try:
        return ablate(engine, task.scenario, task.scenario.variants[0].name, variant, declared, jobs=jobs)
    except (InputError, RunError):
        return None


def _largest(found: Ablation) -> Part | None:
    """The mechanism with the largest effect in the direction of the whole change."""
    same = [p for p in found.parts if p.effect and p.effect.estimate * found.effect.estimate > 0 and not p.within]
    return max(same, key=lambda p: abs(p.effect.estimate) if p.effect else 0.0, default=None)


def _words(parting: Mapping[str, Any] | None) -> str:
    if parting is None:
        return "every scheduler event of both variants is the same"
    at = f"{parting['time_ns'] / 1e6:.3f} ms"
    if parting["costs"]:
        return f"at {at} no decision differs, only what it costs"
    decisions = [side["decision"] for side in parting["sides"] if side["decision"]]
    if not decisions:
        return f"the first difference is at {at} ({parting['question']})"
    rules = dict.fromkeys(_rule(decision) for decision in decisions)
    return f"the first difference is at {at} in {' and '.join(rules)}"


def _rule(decision: Mapping[str, Any]) -> str:
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
