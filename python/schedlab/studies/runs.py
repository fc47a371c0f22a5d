"""Runs the cases of studies and keeps every finished run, so that an interrupted reproduction can be resumed."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab import api
from schedlab.engine import Engine
from schedlab.outcome import Failure, Outcome, Run
from schedlab.scenario import Scenario
from schedlab.store import Store
from schedlab.studies.study import Case, Study

FOLDER = Path("schedlab-results") / "studies"

Runs = Mapping[tuple[str, int], Run]
"""By variant and seed."""


@dataclass(frozen=True, slots=True)
class Task:
    """A case that can be run."""

    study: Study
    case: Case
    scenario: Scenario
    folder: Path

    @property
    def label(self) -> str:
        return f"{self.study.name}: {self.case.label}"

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.scenario.seeds) * len(self.scenario.variants)


@dataclass
class Progress:
    """The outcomes of the runs."""

    runs: dict[str, Runs] = field(default_factory=dict)
    """By the label of the task."""
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    unfit: list[Task] = field(default_factory=list)
    """What did not fit into the time."""
    interrupted: bool = False


class Plan:
    """Every run of some studies, with what is known of how long each takes."""

    def __init__(
        self, engine: Engine, studies: Sequence[Study], folder: Path, known: Mapping[str, float] | None = None
    ) -> None:
        self._engine = engine
        build = engine.build()
        self.tasks = [
            Task(study, case, case.scenario, folder / study.name / _folder_name(case, build))
            for study in studies
            for case in sorted(study.cases, key=lambda case: case.alternative is not None)
            if case.scenario is not None
        ]
        self._runs = {task.label: _kept(task.folder) for task in self.tasks}
        self.others = sum(_lines(other) for task in self.tasks for other in _others(folder, task))
        """How many runs other builds of the engine left in the folder, or this one for a case that was changed."""
        self._seconds = {**(known or {}), **self._measured(folder)}

    @property
    def total(self) -> int:
        """How many runs there are."""
        return sum(task.runs for task in self.tasks)

    @property
    def left(self) -> int:
        """How many runs are still to be done."""
        return sum(self._left(task) for task in self.tasks)

    def estimate(self, jobs: int) -> tuple[float, int]:
        """Seconds for what is left, as far as its cost is known, and of how many runs it is not."""
        known = [(self._seconds.get(task.label), self._left(task)) for task in self.tasks]
        seconds = sum(each * left for each, left in known if each is not None)
        return seconds / jobs, sum(left for each, left in known if each is None)

    def seconds(self) -> dict[str, float]:
        """The mean wall time of a run of each case that was ever run."""
        return {task.label: self._seconds[task.label] for task in self.tasks if task.label in self._seconds}

    def wall_s(self, study: str) -> float:
        """The wall time of all runs of a study that are kept."""
        labels = [task.label for task in self.tasks if task.study.name == study]
        return sum(run.wall_s for label in labels for run in self._runs[label].values())

    def run(
        self, *, jobs: int, limit_s: float | None = None, on_outcome: Callable[[Task, Outcome], None] | None = None
    ) -> Progress:
        """Execute the remaining runs, case by case; no run is started that is not expected to end within the limit."""
        began, progress = time.monotonic(), Progress()
        for task in self.tasks:
            left = self._left(task)
            expected = self._seconds.get(task.label, 0.0) * left / jobs
            over = limit_s is not None and time.monotonic() - began + expected > limit_s
            if left and over:
                progress.unfit.append(task)
            elif left and not progress.interrupted:
                self._one(task, jobs, progress, on_outcome)
            progress.runs[task.label] = self._runs[task.label]
        return progress

    def _one(
        self, task: Task, jobs: int, progress: Progress, on_outcome: Callable[[Task, Outcome], None] | None
    ) -> None:
        def report(outcome: Outcome) -> None:
            if on_outcome:
                on_outcome(task, outcome)

        store = Store(task.folder, _manifest(task, self._engine), resume=True)
        result, interrupted = api.run_all(self._engine, task.scenario, jobs=jobs, store=store, on_outcome=report)
        self._runs[task.label] = result.runs
        progress.failures += [(task.label, failure) for failure in result.failures]
        progress.interrupted = progress.interrupted or interrupted
        if result.runs:
            self._seconds[task.label] = _mean(run.wall_s for run in result.runs.values())

    def _left(self, task: Task) -> int:
        done = self._runs[task.label]
        wanted = ((v.name, seed) for v in task.scenario.variants for seed in task.scenario.seeds)
        return sum(one not in done for one in wanted)

    def _measured(self, folder: Path) -> dict[str, float]:
        """The mean wall time of the runs that are kept, else of those that the newest other engine left."""
        found = {}
        for task in self.tasks:
            runs = self._runs[task.label] or _kept_by_another(folder, task)
            if runs:
                found[task.label] = _mean(run.wall_s for run in runs.values())
        return found


def _kept(folder: Path) -> Runs:
    """The finished runs of a case."""
    return {(o.variant, o.seed): o for o in _outcomes(folder) if isinstance(o, Run)}


def _kept_by_another(folder: Path, task: Task) -> Runs:
    folders = sorted(_others(folder, task), key=_age)
    return _kept(folders[-1]) if folders else {}


def _others(folder: Path, task: Task) -> list[Path]:
    """The directories of the case whose runs are not those of its own."""
    named = (folder / task.study.name).glob(f"{_glob(_stem(task.case))}-????????????")
    return [one for one in named if one != task.folder]


def _lines(folder: Path) -> int:
    try:
        return (folder / "results.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def _manifest(task: Task, engine: Engine) -> dict[str, Any]:
    """Named after the study: the same study, read by another path, continues with the same runs."""
    manifest = api.manifest(task.scenario, engine=engine)
    return {**manifest, "scenario": {**manifest["scenario"], "file": task.study.name}}


def _folder_name(case: Case, build: str) -> str:
    """Runs of another engine, or of a case that was changed, do not count as runs of this one."""
    digest = hashlib.sha256(f"{case.fingerprint} {build}".encode()).hexdigest()
    return f"{_stem(case)}-{digest[:12]}"


def _stem(case: Case) -> str:
    return re.sub(r"[^A-Za-z0-9._%-]+", "-", case.label).strip("-.")[:80]


def _outcomes(folder: Path) -> Iterator[Outcome]:
    from schedlab.outcome import from_record

    try:
        lines = (folder / "results.jsonl").read_bytes().split(b"\n")[:-1]
    except OSError:
        return
    for line in lines:
        try:
            yield from_record(json.loads(line))
        except (ValueError, KeyError, TypeError):
            continue  # the store reports what it cannot read when the case is resumed


def _age(folder: Path) -> float:
    try:
        return (folder / "results.jsonl").stat().st_mtime
    except OSError:
        return 0.0


def _glob(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


def _mean(values: Iterable[float]) -> float:
    own: list[Any] = [*values]
    return float(sum(own) / len(own))
