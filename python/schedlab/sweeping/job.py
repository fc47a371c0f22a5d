"""The jobs of a worker and its answers: plain data, one JSON line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from schedlab.sweeping.plan import Plan, Planned

UNFIT = 4
"""The exit code of a worker that has another engine, or other files than those that the scenario names."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run, complete in itself: it can be executed on another machine."""

    id: str
    text: str
    """The whole scenario of its point."""
    name: str
    """What messages call the scenario."""
    variant: str
    seed: int
    replay: str
    """The command that repeats the run."""

    def line(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode() + b"\n"

    @classmethod
    def of(cls, d: Mapping[str, Any]) -> Self:
        return cls(**d)


@dataclass(frozen=True, slots=True)
class Answer:
    """A run that ended: the line to store."""

    id: str
    line: bytes
    failed: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run."""

    seconds: float
    """Of wall time."""
    memory_mb: int
    """Of address space."""
    folder: Path
    """Paths in scenarios are relative to it; without it, to the current directory."""
    build: str
    """The build of the engine that all runs must have."""


class Executor(Protocol):
    """Executes jobs somewhere, in any order. An exception in the caller stops the jobs that are under way."""

    def answers(self, jobs: Sequence[Job]) -> Iterator[Answer]: ...


def job(plan: Plan, run: Planned) -> Job:
    """The job of a planned run."""
    scenario = plan.scenarios[run.point]
    return Job(run.id, plan.text(run.point), scenario.name, run.variant, run.seed, replay(plan, run))


def replay(plan: Plan, run: Planned) -> str:
    """The command for a single run."""
    import shlex

    from schedlab.sweeping.axes import shown

    sets = {**plan.sweep.sets, **plan.sweep.points[run.point].sets}
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={shown(value)}")]
    place = ["--variant", run.variant, "--seed", str(run.seed)]
    return shlex.join(["schedlab", "run", str(plan.sweep.scenario), *words, *place])


def failed(job: Job, message: str, hint: str | None = None, wall_s: float | None = None) -> Answer:
    """A run without numbers."""
    record: dict[str, Any] = {
        "id": job.id,
        "status": "failed",
        "variant": job.variant,
        "seed": job.seed,
        "error": {"message": message, "hint": hint},
        "replay": job.replay,
    }
    if wall_s is not None:
        record["wall_s"] = wall_s
    return Answer(job.id, json.dumps(record, separators=(",", ":")).encode() + b"\n", True)
