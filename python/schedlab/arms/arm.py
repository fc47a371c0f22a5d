"""The seam between a comparison and what runs it: refuse early, order the runs, run one, clean up."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from schedlab.engine import Cancel, Engine
from schedlab.errors import ArmError, ScenarioError
from schedlab.outcome import Run
from schedlab.runner import Job, plan
from schedlab.scenario import Scenario


class Arm(Protocol):
    """Runs scenarios. What it gives is the same document whoever ran it."""

    name: str

    def prepare(self, scenario: Scenario) -> None:
        """Refuse what cannot run here, before anything has run; put right what a killed run left."""

    def plan(self, scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
        """All runs, in the order in which they start."""

    def threads(self, asked: int | None, usual: int) -> int:
        """How many runs may be under way at once."""

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        """One run; may be called from several threads."""

    def cancel(self) -> Cancel:
        """A fresh handle to stop runs with."""

    def remarks(self) -> list[str]:
        """What a person should know before the runs begin."""

    def close(self) -> None:
        """Leave the machine as it was found."""


class SimArm:
    """The simulator."""

    name = "sim"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self, scenario: Scenario) -> None:
        for variant in scenario.variants:
            if variant.not_simulated:
                error = dict(variant.not_simulated)
                raise ScenarioError(error.pop("message"), file=scenario.file, **error)

    def plan(self, scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
        return plan(scenario, seeds, traces)

    def threads(self, asked: int | None, usual: int) -> int:
        return asked or usual

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        return self._engine.run(scenario, variant, seed, trace=trace, cancel=cancel)

    def cancel(self) -> Cancel:
        return self._engine.cancel()

    def remarks(self) -> list[str]:
        return []

    def close(self) -> None:
        pass


class Flag:
    """The cancel handle of the arms that wait for processes."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


def is_cancelled(cancel: Cancel | None) -> bool:
    """Whether a run of a real kernel was asked to stop."""
    return isinstance(cancel, Flag) and cancel.is_set()


def check_real(scenario: Scenario) -> None:
    """Refuse what no real kernel can be told."""
    for variant in scenario.variants:
        if variant.changes.get("hz"):
            raise ArmError(
                f"variant {variant.name} sets hz, and a kernel ticks as it was built to",
                hint="leave hz out, or boot an image of that kind: image = PATH in [arm.vm]",
                file=scenario.file,
            )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a real run happened: what its record says beside the numbers."""

    machine: str
    """What ran, in a few words: it stands where a simulated result names its machine."""
    state: Mapping[str, str]
    """Everything about the machine that may differ between variants."""
    noise: Mapping[str, Any] = field(default_factory=dict)
    """What else the machine did meanwhile, in percent of its CPU time; empty where nothing else could run."""
    untimed: str | None = None
    """Why its durations say nothing; None if they do."""

    def to_record(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "state": dict(self.state),
            "noise": dict(self.noise),
            "untimed": self.untimed,
        }
