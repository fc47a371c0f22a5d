"""The interface between a comparison and what runs it: check early, order the runs, run one, clean up."""

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
    """Runs scenarios. All arms return the same kind of document."""

    name: str

    def prepare(self, scenario: Scenario) -> None:
        """Refuse scenarios that cannot run here, and restore what a killed run has changed, before the first run."""

    def plan(self, scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
        """All runs, in the order in which they start."""

    def threads(self, asked: int | None, usual: int) -> int:
        """The number of runs that may run at the same time."""

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        """One run; may be called from several threads."""

    def cancel(self) -> Cancel:
        """A new handle to cancel runs with."""

    def remarks(self) -> list[str]:
        """Remarks to print before the first run."""

    def close(self) -> None:
        """Leave the machine as it was found."""


@dataclass(frozen=True)
class Keep:
    """Of which metrics the simulator keeps the samples, and for which seeds; None: for all."""

    metrics: tuple[str, ...] = ()
    seeds: frozenset[int] | None = None


class SimArm:
    """The simulator."""

    name = "sim"

    def __init__(self, engine: Engine, keep: Keep | None = None) -> None:
        self._engine = engine
        self._keep = keep or Keep()

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
        keep = self._keep.metrics if self._keep.seeds is None or seed in self._keep.seeds else ()
        return self._engine.run(scenario, variant, seed, trace=trace, cancel=cancel, keep=keep)

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
    """Whether a run on a real kernel has been cancelled."""
    return isinstance(cancel, Flag) and cancel.is_set()


def check_real(scenario: Scenario) -> None:
    """Refuse what no real kernel supports, and guests, which are only simulated."""
    if scenario.guests:
        raise ArmError(
            f"guest {scenario.guests[0]}: guests are only simulated",
            hint="run the scenario with --arm sim",
            file=scenario.file,
        )
    for name, files in scenario.description.get("cgroups", {}).items():
        if "cpus" in files or "events" in files:
            raise ArmError(
                f"cgroup {name.lstrip('/')}: cpus of control groups are only simulated",
                hint="set cpus of the workloads, or run the scenario with --arm sim",
                file=scenario.file,
            )
    for variant in scenario.variants:
        for name, files in (variant.changes.get("cgroups") or {}).items():
            if "cpus" in files or "events" in files:
                raise ArmError(
                    f"variant {variant.name}, cgroup {name.lstrip('/')}: cpus of control groups are only simulated",
                    hint="set cpus of the workloads, or run the scenario with --arm sim",
                    file=scenario.file,
                )
        if variant.changes.get("hotplug"):
            raise ArmError(
                f"variant {variant.name}: CPUs go offline only in the simulator",
                hint="remove hotplug, or run the scenario with --arm sim",
                file=scenario.file,
            )
        if variant.changes.get("hz"):
            raise ArmError(
                f"variant {variant.name} sets hz, which a real kernel fixes at build time",
                hint="remove hz, or boot an image with that CONFIG_HZ: image = PATH in [arm.vm]",
                file=scenario.file,
            )
        if variant.changes.get("physics"):
            raise ArmError(
                f"variant {variant.name} sets physics, which belongs to the simulated machine",
                hint="remove physics, or use --arm sim",
                file=scenario.file,
            )


@dataclass(frozen=True, slots=True)
class Place:
    """The machine and circumstances of a real run, stored with its results."""

    machine: str
    """A short description of the machine, shown where a simulated result names its machine."""
    state: Mapping[str, str]
    """Everything about the machine that may differ between variants."""
    noise: Mapping[str, Any] = field(default_factory=dict)
    """The noise during the run, in percent of the machine's CPU time; empty where nothing else could run."""
    untimed: str | None = None
    """Why its durations are meaningless; None if they are not."""

    def to_record(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "state": dict(self.state),
            "noise": dict(self.noise),
            "untimed": self.untimed,
        }
