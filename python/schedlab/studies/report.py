"""What `reproduce` shows: the rows of each study with their reasons, and the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from schedlab.studies.figures import Published, published
from schedlab.studies.reasons import UNEXPLAINED, Reason
from schedlab.studies.runs import Progress
from schedlab.studies.score import Row, Score, Simulated, row_of, score, simulated
from schedlab.studies.study import Case, Study

NOT_RUN = "not run"
Reasons = Mapping[tuple[tuple[str, str, str], str], Reason]
"""By case and variant."""


@dataclass(frozen=True, slots=True)
class CaseRows:
    """The rows of one case."""

    case: Case
    rows: tuple[Row, ...]

    @property
    def units(self) -> int:
        """How many units were asked for."""
        return len(self.case.scenario.seeds) if self.case.scenario else 0


@dataclass(frozen=True, slots=True)
class StudyReport:
    """One study and its cases, in the order of the file; alternatives come last."""

    study: Study
    cases: tuple[CaseRows, ...]
    reasons: Reasons = field(default_factory=dict)
    """Of rows that disagree."""

    @property
    def rows(self) -> list[Row]:
        return [row for case in self.cases for row in case.rows]

    @property
    def score(self) -> Score:
        return score(self.rows)

    @property
    def machine(self) -> str | None:
        """The machine that is simulated."""
        cases = [c.case for c in self.cases if c.case.scenario and not c.case.alternative]
        return ", ".join(dict.fromkeys(c.scenario.machine.name for c in cases if c.scenario)) or None

    def assumed(self, case: CaseRows, row: Row) -> Row | None:
        """The counted row beside that of an alternative."""
        for other in self.cases:
            if other.case.key == case.case.key and not other.case.alternative:
                return next((one for one in other.rows if one.published == row.published), None)
        return None

    def mechanism(self, row: Row) -> str:
        """What a counted row that does not agree lacks, in short."""
        if row.outcome == "missing":
            return row.missing or UNEXPLAINED
        if row.outcome == "not run":
            return NOT_RUN
        p = row.published
        gap = self.study.gap(p.experiment, p.workload, p.metric)
        return gap.text if gap else UNEXPLAINED

    def why(self, case: CaseRows, row: Row) -> str:
        """The same with how it is known: by the study file; for what it does not know, by explain and ablate."""
        if row.outcome == "agrees":
            return ""
        if row.outcome == "missing":
            return f"missing: {row.missing}"
        p = row.published
        gap = self.study.gap(p.experiment, p.workload, p.metric)
        reason = self.reasons.get((case.case.key, p.variant))
        parts = [self.mechanism(row), gap and (gap.found or gap.hypothesis)]
        if reason and not (gap and gap.found):
            parts.append(reason.text)
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Report:
    """All studies that were asked for."""

    studies: tuple[StudyReport, ...]
    unfit: tuple[str, ...] = ()
    """The cases that did not fit into the time."""
    interrupted: bool = False

    def total(self) -> Score:
        """The score over the rows of all studies."""
        return score(row for study in self.studies for row in study.rows)

    def scores(self) -> dict[str, Score]:
        """By study, and all."""
        return {**{s.study.name: s.score for s in self.studies}, "all": self.total()}


Values = Callable[[Case, Sequence[Published]], Sequence[Simulated | None]]


def study_report(study: Study, progress: Progress) -> StudyReport:
    """The rows of a study with what has been run of it."""

    def values(case: Case, rows: Sequence[Published]) -> list[Simulated | None]:
        runs = progress.runs.get(f"{study.name}: {case.label}", {})
        seeds = case.scenario.seeds if case.scenario else ()
        return [simulated(study, case, row, runs, seeds) for row in rows]

    return report_of(study, values, {})


def report_of(study: Study, values: Values, reasons: Reasons) -> StudyReport:
    """The rows of a study with the simulated values of each."""
    table = published(study)
    cases = []
    for case in study.cases:
        rows = table[case.key]
        found = zip(rows, values(case, rows), strict=True)
        cases.append(CaseRows(case, tuple(row_of(study, case, row, value) for row, value in found)))
    return StudyReport(study, tuple(sorted(cases, key=lambda c: c.case.alternative is not None)), reasons)
