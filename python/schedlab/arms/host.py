"""The host arm: real threads on the running kernel, one run at a time. Changed settings are journalled and restored."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedlab.arms import agent, leftovers, noise, process, state
from schedlab.arms.arm import Flag, Place, check_real
from schedlab.arms.journal import Journal, state_directory
from schedlab.arms.order import ORDERS
from schedlab.engine import Cancel, Engine
from schedlab.errors import ArmError
from schedlab.guests import identity
from schedlab.outcome import Run
from schedlab.runner import Job
from schedlab.scenario import Scenario, Variant

MOST_CPUS = 1024
"""CPU_SETSIZE of libc."""


class HostArm:
    """The arm of the running kernel. `root` is a prefix of all system paths, for tests."""

    name = "host"

    def __init__(self, engine: Engine, root: Path = Path("/")) -> None:
        self._engine, self._root = engine, root
        self._journal = Journal(state_directory(), root)
        self._program: Path | None = None
        self._remarks: list[str] = []
        self._row = ""
        """The answer of `schedlab identify` about the running kernel, if no row models it."""

    def prepare(self, scenario: Scenario) -> None:
        self._program = agent.find()
        check_real(scenario)
        self._check_kernel(scenario)
        left = self._journal.open()
        self._remarks = [
            f"restored {c.file} from {c.after} to {c.before}, which a killed run had changed" for c in left
        ]
        self._remarks += [f"removed {what}, which a killed run had left" for what in leftovers.remove(self._root)]
        try:
            for variant in scenario.variants:
                self._journal.apply(variant.settings)
                self._journal.restore()
        except BaseException:
            self.close()
            raise

    def plan(self, scenario: Scenario, seeds: Sequence[int], traces: Path | None) -> list[Job]:
        return ORDERS[scenario.arms["host"]["order"]](scenario, seeds, traces)

    def threads(self, asked: int | None, usual: int) -> int:
        del usual
        if asked not in (None, 1):
            raise ArmError(
                "the host arm runs one run at a time because two would disturb each other", hint="omit --jobs"
            )
        return 1

    def run(self, scenario: Scenario, variant: str, seed: int, *, trace: str | None, cancel: Cancel) -> Run:
        chosen = scenario.variant(variant)
        assert chosen is not None  # the caller took it from the scenario
        try:
            self._journal.apply(chosen.settings)
            return self._measured(scenario, variant, seed, trace, cancel)
        finally:
            self._journal.restore()

    def cancel(self) -> Cancel:
        return Flag()

    def remarks(self) -> list[str]:
        return [*self._remarks, *([f"the running kernel is {self._row}"] if self._row else [])]

    def close(self) -> None:
        try:
            self._journal.restore()
        finally:
            self._journal.close()

    def _measured(self, scenario: Scenario, variant: str, seed: int, trace: str | None, cancel: Cancel) -> Run:
        seen = state.read(self._root)
        with tempfile.TemporaryDirectory(prefix="schedlab-host-") as folder:
            out = Path(folder) / "report.json"
            words = agent.arguments(scenario, scenario.file, variant, seed, str(out), trace)
            before, began = noise.Sample.now(self._root), time.monotonic()
            limit = scenario.arms["host"]["time_limit_s"]
            done = process.run([str(self._program), *words], limit_s=limit, cancel=cancel, scratch=folder)
            wall = time.monotonic() - began
            noise_found = noise.between(before, noise.Sample.now(self._root), done.cpu_s)
            if done.code != 0:
                raise agent.run_failure(done.code, done.stderr, variant, seed)
            return agent.report(out.read_text(), self._place(seen, noise_found).to_record(), wall)

    def _place(self, seen: dict[str, str], noise_found: dict[str, Any]) -> Place:
        machine = f"the running kernel {seen.get('release', '')}, {usable_cpus()} CPUs"
        state = {**seen, "row": self._row} if self._row else seen
        return Place(machine=machine, state=state, noise=noise_found)

    def _check_kernel(self, scenario: Scenario) -> None:
        release = (self._root / "proc/sys/kernel/osrelease").read_text().strip()
        row = self._engine.row_of(release)
        rows: tuple[str, ...] = (row,) if row else ()
        known = identity.find(identity.running(self._root)) if row is None else None
        if known:
            rows, self._row = known.rows, known.words()
            row = rows[0]
        wrong = [v for v in scenario.variants if v.kernel not in rows]
        if not wrong:
            return
        works = (
            f'kernel = "{row}" or "running" would work here'
            if row
            else "no row models this kernel; schedlab identify running finds the one that fits"
        )
        raise ArmError(
            f"{_named(wrong)}, and this machine runs {release}",
            hint=f"{works}; --arm vm boots other kernels",
            file=scenario.file,
        )


def usable_cpus() -> int:
    """The number of CPUs that the agent may use: those of the cpuset, because it resets the inherited affinity."""
    inherited = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(MOST_CPUS))
        return len(os.sched_getaffinity(0))
    finally:
        os.sched_setaffinity(0, inherited)


def _named(variants: Sequence[Variant]) -> str:
    kernels = dict.fromkeys(v.kernel for v in variants)
    who = ", ".join(v.name for v in variants)
    return f"variant{'s' * (len(variants) > 1)} {who}: kernel {', '.join(kernels)}"
