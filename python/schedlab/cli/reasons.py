"""The reasons of rows that disagree, looked for by `reproduce` once all runs are there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from schedlab.cli.console import Console
from schedlab.cli.interrupt import interruptible
from schedlab.engine import Engine
from schedlab.studies import reasons
from schedlab.studies.reasons import Reason
from schedlab.studies.report import CaseRows, StudyReport
from schedlab.studies.runs import Plan, Task
from schedlab.studies.score import Row

LONGEST_ABLATION_S = 600.0
"""An ablation that is expected to take longer is left out, and named."""


def with_reasons(engine: Engine, report: StudyReport, plan: Plan, jobs: int, how: str, console: Console) -> StudyReport:
    """The study with what explain, and with `how` = ablate the ablation, say about the cases that disagree."""
    if how == "none":
        return report
    tasks = {task.label: task for task in plan.tasks}
    found = {}
    for case in report.cases:
        task = tasks.get(f"{report.study.name}: {case.case.label}")
        if task is None or case.case.alternative:
            continue
        wrong = reasons.disagreeing(case.rows)
        for variant in dict.fromkeys(row.published.variant for row in wrong):
            rows = [row for row in wrong if row.published.variant == variant]
            found[case.case.key, variant] = _reason(engine, task, case, variant, rows, plan, jobs, how, console)
    return dataclasses.replace(report, reasons=found)


def _reason(
    engine: Engine,
    task: Task,
    case: CaseRows,
    variant: str,
    rows: Sequence[Row],
    plan: Plan,
    jobs: int,
    how: str,
    console: Console,
) -> Reason:
    console.detail(f"{task.label}: why does {variant} disagree?")
    reason = interruptible(engine, lambda cancel: reasons.explained(engine, task, variant, cancel))
    wrong = [row for row in rows if row.outcome == "wrong sign"]
    if how != "ablate" or not wrong:
        return reason
    seconds = plan.seconds().get(task.label, 0.0) * reasons.ablation_runs(engine, task, variant) / jobs
    if seconds > LONGEST_ABLATION_S:
        console.say(f"{task.label}: {variant} is not ablated: that would take about {seconds / 60:.0f} min")
        return reason
    largest = max(wrong, key=lambda row: abs(row.published.change_pct or 0.0))
    metric = next(m.metric for m in case.case.measures if m.published == largest.published.metric)
    return reasons.ablated(engine, task, variant, metric, reason, jobs) if metric else reason
