"""`schedlab reproduce`: published studies, simulated, beside what was published."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from schedlab import api
from schedlab.cli import EXIT_INTERRUPTED
from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.parser import Options
from schedlab.cli.paths import STDOUT
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, RunError
from schedlab.outcome import Outcome
from schedlab.studies import history, reasons
from schedlab.studies.figures import published
from schedlab.studies.report import Report, StudyReport, study_report
from schedlab.studies.runs import FOLDER, Plan, Progress, Task
from schedlab.studies.study import Study

ALL = "all"
LONGEST_ABLATION_S = 600.0


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, 3 if some runs failed, or 130; how well a study agrees is a result, not a failure."""
    engine = engine or native_engine()
    if options.list:
        return _list(engine, console)
    studies = _studies(options, engine)
    if options.record and options.short:
        raise InputError("--record keeps results, and the short form has none", hint="leave --short out")
    plan = Plan(engine, studies, options.out or FOLDER, history.seconds(history.FILE))
    jobs = options.jobs or api.default_jobs()
    _tell_estimate(plan, jobs, options, console)
    progress = _run(engine, plan, jobs, options, console)
    found = [study_report(study, plan, progress) for study in studies]
    if not progress.interrupted and not options.short:
        try:
            found = [_with_reasons(engine, one, plan, jobs, options, console) for one in found]
        except KeyboardInterrupt:
            progress.interrupted = True
    report = Report(tuple(found), tuple(progress.unfit), progress.interrupted)
    _show(report, plan, engine, options, console)
    if progress.interrupted:
        console.say("interrupted: the finished runs are kept; the same command goes on")
        return EXIT_INTERRUPTED
    return 3 if progress.failures else 0


def _list(engine: Engine, console: Console) -> int:
    from schedlab.render import listing

    console.result(listing.text("studies", engine.listing("studies"), None))
    return 0


def _studies(options: Options, engine: Engine) -> list[Study]:
    names = options.studies
    if not names:
        raise InputError("no study is named", hint="`schedlab list studies` shows them; `all` is every one of them")
    if ALL in names:
        names = [str(row["id"]) for row in engine.listing("studies")]
    studies = [engine.load_study(name, short=options.short, units=_units(options)) for name in dict.fromkeys(names)]
    for study in studies:
        published(study)  # an error in the figures is better found before the runs than after them
    if len({study.name for study in studies}) < len(studies):
        raise InputError("two of the studies have the same name")
    return studies


SHORT_UNITS = 2


def _units(options: Options) -> int | None:
    return options.units if options.units is not None else SHORT_UNITS if options.short else None


def _tell_estimate(plan: Plan, jobs: int, options: Options, console: Console) -> None:
    from schedlab.render.cells import plural

    if not plan.left:
        console.say("every run is there already")
        return
    seconds, unknown = plan.estimate(jobs)
    text = f"{plural(plan.left, 'run')}, {jobs} at a time: about {_clock(seconds)}"
    if unknown:
        text += f", and {plural(unknown, 'run')} of unknown length"
    console.say(text)
    if options.time is not None and seconds > 60 * options.time:
        console.say(f"that is more than --time {options.time}: what does not fit is left out and named")


def _run(engine: Engine, plan: Plan, jobs: int, options: Options, console: Console) -> Progress:
    bar = console.progress(plan.left, engine.under_way)

    def ended(task: Task, outcome: Outcome) -> None:
        bar.step(f"{task.label}: {outcome.variant} seed {outcome.seed}")
        console.detail(f"{task.label}: {outcome.variant} seed {outcome.seed}")

    limit = None if options.time is None else 60.0 * options.time
    try:
        progress = plan.run(jobs=jobs, limit_s=limit, on_outcome=ended)
    finally:
        bar.clear()
    for label in dict.fromkeys(label for label, _ in progress.failures):
        of_case = [failure for other, failure in progress.failures if other == label]
        more = f" (and {len(of_case) - 1} more runs of it failed)" if len(of_case) > 1 else ""
        first = of_case[0]
        text = f"{label}: {first.variant} seed {first.seed}: {first.message}{more}"
        console.error(RunError(text, hint=first.hint))
    return progress


def _with_reasons(
    engine: Engine, report: StudyReport, plan: Plan, jobs: int, options: Options, console: Console
) -> StudyReport:
    """The study with what explain and ablate say about the cases that disagree."""
    if options.reasons == "none":
        return report
    found, seconds = {}, plan.seconds()
    for case in report.cases:
        if case.task is None or case.case.alternative:
            continue
        wrong = reasons.disagreeing(case.rows)
        for variant in dict.fromkeys(row.published.variant for row in wrong):
            task = case.task
            console.detail(f"{task.label}: why does {variant} disagree?")
            reason = interruptible(engine, lambda cancel: reasons.explained(engine, task, variant, cancel))  # noqa: B023
            if options.reasons == "ablate":
                each = seconds.get(task.label, 0.0)
                fits = each * reasons.ablation_runs(engine, task, variant) / jobs <= LONGEST_ABLATION_S
                largest = max(
                    (row for row in wrong if row.published.variant == variant),
                    key=lambda row: abs(row.published.change_pct or 0.0),
                )
                metric = next(m.metric for m in case.case.measures if m.published == largest.published.metric)
                if fits and metric and largest.outcome == "wrong sign":
                    reason = reasons.ablated(engine, task, variant, metric, reason, jobs)
            found[case.case.key, variant] = reason
    return dataclasses.replace(report, reasons=found)


def _show(report: Report, plan: Plan, engine: Engine, options: Options, console: Console) -> None:
    from schedlab.render.document import dump
    from schedlab.render.study import document, text

    console.result(dump(document(report)) if options.json == STDOUT else text(report))
    if options.json not in (None, STDOUT):
        write_file(Path(options.json), dump(document(report)) + "\n")
    if report.interrupted:
        return
    entries = history.read(history.FILE) if options.page or options.record else []
    if options.record:
        units = report.studies[0].study.units
        new = history.entry(options.record, engine.version, units, report.scores(), plan.seconds())
        entries = history.append(history.FILE, new)
        console.say(f"recorded as `{options.record}` in {history.FILE}")
    if options.page:
        from schedlab.render.study_page import page

        write_file(options.page, page(report, entries, _command(options)))
        console.say(f"page: {options.page}")


def _command(options: Options) -> str:
    words = ["schedlab reproduce", *options.studies]
    words += ["--units", str(options.units)] if options.units is not None else []
    words += ["--time", str(options.time)] if options.time is not None else []
    words += ["--reasons", options.reasons] if options.reasons != "explain" else []
    words += ["--record", options.record] if options.record else []
    words += ["--page", str(options.page)] if options.page else []
    return " ".join(words)


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
