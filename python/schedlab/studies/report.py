"""What `reproduce` has to tell: the rows of each study with their reasons, and the scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schedlab.studies.figures import published
from schedlab.studies.reasons import UNEXPLAINED, Reason
from schedlab.studies.runs import Plan, Progress, Task
from schedlab.studies.score import Row, Score, rows_of, score
from schedlab.studies.study import Case, Study

NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class CaseRows:
    """The rows of one case."""

    case: Case
    task: Task | None
    """None if something is missing."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StudyReport:
    """One study and its cases, in the order of the file; alternatives behind."""

    study: Study
    cases: tuple[CaseRows, ...]
    reasons: Mapping[tuple[tuple[str, str, str], str], Reason] = field(default_factory=dict)
    """By case and variant, of rows that disagree."""

    @property
    def rows(self) -> list[Row]:
        return [row for case in self.cases for row in case.rows]

    @property
    def score(self) -> Score:
        return score(self.rows)

    @property
    def machine(self) -> str | None:
        """The machine that is simulated."""
        names = dict.fromkeys(c.task.scenario.machine.name for c in self.cases if c.task and not c.case.alternative)
        return ", ".join(names) or None

    def mechanism(self, row: Row) -> str:
        """What a counted row that does not agree lacks, in short."""
        if row.outcome == "missing":
            return row.missing or UNEXPLAINED
        if row.outcome == "not run":
            return NOT_RUN
        p = row.published
        gap = self.study.gap(p.experiment, p.workload, p.metric)
        return gap.mechanism if gap else UNEXPLAINED

    def why(self, case: CaseRows, row: Row) -> str:
        """The same with how it is known: from the study file, else by explain and ablate."""
        if row.outcome == "agrees":
            return ""
        if row.outcome == "missing":
            return f"missing: {row.missing}"
        p = row.published
        gap = self.study.gap(p.experiment, p.workload, p.metric)
        reason = self.reasons.get((case.case.key, p.variant))
        found = (gap and gap.found) or (reason and reason.text)
        return f"{self.mechanism(row)}; {found}" if found else self.mechanism(row)


@dataclass(frozen=True, slots=True)
class Report:
    """All studies that were asked for."""

    studies: tuple[StudyReport, ...]
    unfit: tuple[Task, ...] = ()
    """What did not fit into the time."""
    interrupted: bool = False

    def total(self) -> Score:
        """The score over the rows of all studies."""
        return score(row for study in self.studies for row in study.rows)

    def scores(self) -> dict[str, Score]:
        """By study, and all."""
        return {**{s.study.name: s.score for s in self.studies}, "all": self.total()}


def study_report(study: Study, plan: Plan, progress: Progress) -> StudyReport:
    """The rows of a study with what has been run of it."""
    table = published(study)
    tasks = {task.label: task for task in plan.tasks}
    cases = []
    for case in study.cases:
        task = tasks.get(f"{study.name}: {case.label}")
        runs = progress.runs.get(task.label, {}) if task else {}
        seeds = task.scenario.seeds if task else ()
        cases.append(CaseRows(case, task, tuple(rows_of(study, case, table[case.key], runs, seeds))))
    return StudyReport(study, tuple(sorted(cases, key=lambda c: c.case.alternative is not None)))
