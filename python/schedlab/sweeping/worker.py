"""A worker process: reads jobs from stdin and answers on stdout, one JSON line each, until stdin ends.

Imports no more than a run needs, since every worker pays for it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import SchedlabError
from schedlab.outcome import Run
from schedlab.scenario import Scenario
from schedlab.sweeping.job import UNFIT, Job, failed
from schedlab.sweeping.plan import content, run_id

KEPT_SCENARIOS = 256
"""A sweep goes through its points seed by seed, and reading a scenario takes longer than a short run."""
LEFT_OUT = ("tasks", "cpus", "checks", "drivers")
"""Keys of a run's document that are not stored: thousands of runs are kept, and no output of a sweep needs these."""


def main(memory_mb: int, build: str) -> int:
    """Exit code 0, also when stdin ends within a line: the parent is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write among the answers
    engine = native_engine()
    own = engine.build()
    if own != build:
        print(f"this is another build of the engine: {own[:12]}, expected {build[:12]}", file=sys.stderr)
        return UNFIT
    size = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers.write(b"ready\n")
    answers.flush()
    runs = Runs(engine, build)
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):
            try:
                answers.write(runs.answer(Job.of(json.loads(line))))
            except ForeignScenario as e:
                print(e, file=sys.stderr)
                return UNFIT
            answers.flush()
    return 0


class ForeignScenario(Exception):
    """The scenario names a file that is another one here."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"{job.name}: the scenario is not the same here as where the sweep was planned")


class Runs:
    """Does jobs in this process."""

    def __init__(self, engine: Engine, build: str) -> None:
        self._engine, self._build = engine, build
        self._scenarios: dict[str, tuple[Scenario, dict[str, str]]] = {}

    def answer(self, job: Job) -> bytes:
        """The line to store."""
        try:
            scenario = self._checked(job)
            return stored(job, self._engine.run(scenario, job.variant, job.seed), scenario)
        except SchedlabError as e:
            return failed(job, e.message, e.hint).line
        except MemoryError:
            return failed(job, "out of memory", "a larger --memory allows it more").line

    def why_not(self, job: Job) -> str:
        """Why such a run cannot be executed here; empty if it can."""
        try:
            self._checked(job)
        except SchedlabError as e:
            return e.message
        except ForeignScenario as e:
            return str(e)
        return ""

    def _checked(self, job: Job) -> Scenario:
        scenario, contents = self._scenario(job)
        if job.variant not in contents:
            contents[job.variant] = content(self._engine, self._build, scenario, job.variant)
        if run_id(contents[job.variant], job.seed) != job.id:
            raise ForeignScenario(job)
        return scenario

    def _scenario(self, job: Job) -> tuple[Scenario, dict[str, str]]:
        if job.text not in self._scenarios:
            if len(self._scenarios) >= KEPT_SCENARIOS:
                self._scenarios.pop(next(iter(self._scenarios)))
            self._scenarios[job.text] = self._engine.loads(job.text, job.name), {}
        return self._scenarios[job.text]


def stored(job: Job, run: Run, scenario: Scenario) -> bytes:
    """The line of a finished run: its numbers, and the sampled series of the metrics with their histograms."""
    sampled = {metric.of for metric in scenario.metrics}
    record: dict[str, Any] = {key: value for key, value in run.record.items() if key not in LEFT_OUT}
    record["series"] = {name: own for name, own in record.get("series", {}).items() if name in sampled}
    return json.dumps({"id": job.id, "status": "ok", **record}, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
