"""The reasons why rows disagree, for which `reproduce` searches once all runs have finished."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedlab.cli.console import Console
from schedlab.cli.interrupt import interruptible
from schedlab.engine import Cancel, Engine
from schedlab.outcome import Outcome
from schedlab.studies import reasons
from schedlab.studies.reasons import Question, Reason
from schedlab.studies.report import CaseRows, StudyReport
from schedlab.studies.runs import Plan, Task
from schedlab.studies.score import Row

LONGEST_ABLATION_S = 600.0
"""An ablation that may take longer is left out, and named."""

Key = tuple[str, tuple[str, str, str], str]
"""Study, case and variant."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search for reasons; what it finds is kept beside the runs, so it can be resumed."""

    engine: Engine
    plan: Plan
    jobs: int
    deadline: float | None
    """No ablation is begun that may not end before it; on the clock of `time.monotonic`."""
    console: Console

    def reports(self, of: Sequence[StudyReport], *, ablate: bool) -> list[StudyReport]:
        """The studies with the answers of explain, and on request of the ablation, about the cases that disagree."""
        found, questions = self._explained(of)
        if ablate:
            found |= self._ablated(questions, found)
        reasons_of = {
            one.study.name: {key[1:]: reason for key, reason in found.items() if key[0] == one.study.name} for one in of
        }
        return [dataclasses.replace(one, reasons=reasons_of[one.study.name]) for one in of]

    def _explained(self, of: Sequence[StudyReport]) -> tuple[dict[Key, Reason], dict[Key, Question]]:
        """Where the variants that disagree differ first, and what an ablation can be asked about them."""
        tasks = {task.label: task for task in self.plan.tasks}
        found, questions = dict[Key, Reason](), dict[Key, Question]()
        for report, case in ((one, case) for one in of for case in one.cases):
            task = tasks.get(f"{report.study.name}: {case.case.label}")
            if task is None or case.case.alternative:
                continue
            wrong = reasons.disagreeing(case.rows)
            for variant in dict.fromkeys(row.published.variant for row in wrong):
                key = (report.study.name, case.case.key, variant)
                found[key] = self._explain(task, variant)
                metric = _metric(case, [row for row in wrong if row.published.variant == variant])
                if any(m.name == metric for m in task.scenario.metrics):
                    questions[key] = Question(task, variant, str(metric))
        return found, questions

    def _explain(self, task: Task, variant: str) -> Reason:
        self.console.detail(f"{task.label}: why does {variant} disagree?")

        def explained(cancel: Cancel) -> Reason:
            return reasons.explained(self.engine, task, variant, cancel)

        return interruptible(self.engine, explained)

    def _ablated(self, questions: Mapping[Key, Question], explained: Mapping[Key, Reason]) -> dict[Key, Reason]:
        """The answers of all ablations, those that are kept and those found now; the estimate comes first."""
        answers = {key: answer for key, question in questions.items() if (answer := question.answer())}
        runs = {key: question.runs(self.engine) for key, question in questions.items() if key not in answers}
        seconds = {key: n * self._seconds(questions[key]) for key, n in runs.items()}
        todo = sorted((key for key in seconds if seconds[key] <= LONGEST_ABLATION_S), key=lambda key: seconds[key])
        self._print_estimate(len(answers), sum(runs[key] for key in todo), [seconds[key] for key in todo])
        for key in seconds:
            if key not in todo:
                self._print_left_out(questions[key], f"that may take {clock(seconds[key])}")
        for key in todo:
            if self.deadline is not None and time.monotonic() + seconds[key] > self.deadline:
                self._print_left_out(questions[key], "it does not fit into --time")
            elif answer := self._ablate(questions[key], explained[key].divergence, runs[key]):
                answers[key] = answer
            else:
                self._print_left_out(questions[key], "a hybrid of the variants does not run")
        return answers

    def _ablate(self, question: Question, divergence: str, runs: int) -> Reason | None:
        bar = self.console.progress(runs, self.engine.under_way)

        def ended(outcome: Outcome) -> None:
            bar.step(f"ablation of {question.label}: {outcome.variant} seed {outcome.seed}")

        try:
            return reasons.ablated(self.engine, question, divergence, self.jobs, ended)
        finally:
            bar.clear()

    def _seconds(self, question: Question) -> float:
        """What a run adds to the time of an ablation."""
        return self.plan.seconds().get(question.task.label, 0.0) / self.jobs

    def _print_estimate(self, done: int, runs: int, seconds: Sequence[float]) -> None:
        from schedlab.render.cells import plural

        if done:
            self.console.say(f"{plural(done, 'ablation')} done before")
        if seconds:
            total = clock(sum(seconds))
            self.console.say(f"{plural(len(seconds), 'ablation')}, at most {plural(runs, 'run')}: {total}")

    def _print_left_out(self, question: Question, why: str) -> None:
        self.console.say(f"{question.label} is not ablated: {why}")


def clock(seconds: float) -> str:
    """About how long, in the largest unit that fits."""
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _metric(case: CaseRows, rows: Sequence[Row]) -> str | None:
    """The metric of an ablation: the one whose published change with another sign is largest."""
    wrong = [row for row in rows if row.outcome == "wrong sign"]
    largest = max(wrong, key=lambda row: abs(row.published.change_pct or 0.0), default=None)
    if largest is None:
        return None
    return next(m.metric for m in case.case.measures if m.published == largest.published.metric)
