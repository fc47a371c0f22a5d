"""`schedlab reproduce`: published studies, simulated, beside what was published."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from schedlab import api
from schedlab.cli import EXIT_INTERRUPTED
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.cli.paths import STDOUT
from schedlab.cli.reasons import Search, clock
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, RunError
from schedlab.outcome import Outcome
from schedlab.studies import history, results
from schedlab.studies.figures import published
from schedlab.studies.report import Report, StudyReport, study_report
from schedlab.studies.runs import FOLDER, Plan, Progress, Task
from schedlab.studies.study import Study


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, 3 if some runs failed, or 130; how well a study agrees is a result, not a failure."""
    engine = engine or native_engine()
    _check(options)
    deadline = None if options.time is None else time.monotonic() + 60.0 * options.time
    if options.list:
        return _list(engine, console)
    if options.stored is not None or _is_recorded(options):
        return _stored(engine, options, console)
    studies = _studies(options, engine)
    if options.record:
        recorded = {study.name for study in studies}
        history.check(history.read(history.FILE), options.record, studies[0].units, recorded)
    plan = Plan(engine, studies, options.out or FOLDER, history.seconds(history.FILE))
    jobs = _jobs(options)
    _print_estimate(plan, jobs, options, console)
    progress = _run(engine, plan, jobs, options, console)
    found = [study_report(study, progress) for study in studies]
    if not progress.interrupted:
        try:
            found = _with_reasons(Search(engine, plan, jobs, deadline, console), found, options)
        except KeyboardInterrupt:
            progress.interrupted = True
    report = Report(tuple(found), tuple(task.label for task in progress.unfit), progress.interrupted)
    note = options.note or (SHORT_NOTE if options.short else "")
    origins = results.origins(report, options.record or "", _command(options), engine.version, plan.wall_s, note)
    if progress.interrupted:
        _show(report, Shown(report, origins), options, console)
        console.say("interrupted: the finished runs are kept; the same command resumes")
        return EXIT_INTERRUPTED
    shown = _record(report, origins, engine, plan, options, console)
    _show(report, shown, options, console)
    _pages(shown, options, console)
    return 3 if progress.failures else 0


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows."""

    report: Report
    origins: results.Origins
    entries: list[history.Entry] = field(default_factory=list)
    stored: bool = False


def _check(options: Options) -> None:
    if options.record and options.short:
        raise InputError("--record keeps results, and the short form has none", hint="leave --short out")
    if options.note and not options.record:
        raise InputError("--note is only stored with recorded results", hint="add --record NAME")
    if options.stored is not None and (options.studies or options.record or options.short or options.units is not None):
        raise InputError("--stored shows what was recorded and runs nothing", hint="leave the studies and options out")


def _is_recorded(options: Options) -> bool:
    """Whether the recorded results answer the command: all studies, and nothing about how to run them."""
    how = (options.units, options.time, options.reasons, options.record, options.note, options.out)
    return history.ALL in options.studies and not options.short and all(one is None for one in how)


def _stored(engine: Engine, options: Options, console: Console) -> int:
    if options.stored is None:
        _print_cost(engine, options, console)
    file = Path(options.stored) if options.stored else results.FILE
    report, origins = results.read(file, lambda name, units: engine.load_study(name, units=units))
    shown = Shown(report, origins, history.read(history.FILE), stored=True)
    _show(report, shown, options, console)
    _pages(shown, options, console)
    return 0


def _print_cost(engine: Engine, options: Options, console: Console) -> None:
    """What it takes to simulate all studies again, instead of showing what was recorded."""
    from schedlab.render.cells import plural

    plan, jobs = Plan(engine, _studies(options, engine), FOLDER, history.seconds(history.FILE)), _jobs(options)
    cost = f"{plural(plan.left, 'run')}, {jobs} at a time: {clock(plan.estimate(jobs)[0])}"
    console.say(f"recorded results; `schedlab reproduce all --units {UNITS}` simulates all studies again ({cost}),")
    console.say("and `schedlab reproduce NAME` one of them; `schedlab reproduce --list` has their names")


def _list(engine: Engine, console: Console) -> int:
    from schedlab.render import listing

    console.text(listing.text("studies", engine.listing("studies"), None))
    return 0


def _studies(options: Options, engine: Engine) -> list[Study]:
    names = options.studies
    if not names:
        raise InputError("no study is named", hint="`schedlab list studies` shows them; `all` selects all of them")
    if history.ALL in names:
        names = [str(row["id"]) for row in engine.listing("studies")]
    studies = [engine.load_study(name, short=options.short, units=_units(options)) for name in dict.fromkeys(names)]
    for study in studies:
        published(study)  # an error in the figures is better found before the runs than after them
    if len({study.name for study in studies}) < len(studies):
        raise InputError("two of the studies have the same name")
    return studies


def _with_reasons(search: Search, found: list[StudyReport], options: Options) -> list[StudyReport]:
    """The short form says nothing about agreement, so there reasons are looked for on request only."""
    how = options.reasons or ("none" if options.short else "explain")
    return found if how == "none" else search.reports(found, ablate=how == "ablate")


def _jobs(options: Options) -> int:
    return options.jobs or api.default_jobs()


UNITS, SHORT_UNITS = 6, 2
LONG_S = 120.0
"""A reproduction that takes longer says how to shorten it."""
SHORT_NOTE = "This is the short form, whose results say nothing about agreement."


def _units(options: Options) -> int | None:
    return options.units if options.units is not None else SHORT_UNITS if options.short else None


def _print_estimate(plan: Plan, jobs: int, options: Options, console: Console) -> None:
    from schedlab.render.cells import plural

    if plan.others:
        folder = options.out or FOLDER
        console.say(f"{plural(plan.others, 'run')} of other builds or of changed cases stay in {folder}")
    if not plan.left:
        console.say("all runs have already finished")
        return
    seconds, unknown = plan.estimate(jobs)
    text = f"{plural(plan.left, 'run')}, {jobs} at a time: {clock(seconds)}"
    if unknown:
        text += f", and {plural(unknown, 'run')} of unknown length"
    console.say(text)
    if seconds > LONG_S and options.time is None and not options.short:
        units = plan.tasks[0].study.units
        fewer = f"--units 2 takes {clock(2 * seconds / units)}, and " if units > 2 and plan.left == plan.total else ""
        console.say(f"to shorten it: {fewer}--time MIN leaves out what does not end within so many minutes")
    if options.time is not None and seconds > 60 * options.time:
        console.say(f"that is more than --time {options.time}: runs that do not fit are left out and listed")


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


def _show(report: Report, shown: Shown, options: Options, console: Console) -> None:
    from schedlab.render.blocks import html
    from schedlab.render.document import dump
    from schedlab.render.study import document, text
    from schedlab.render.study_page import page

    if options.json == STDOUT:
        console.result(dump(document(report)))
    elif str(options.html) == STDOUT:
        console.page(html(page(shown.report, shown.entries, shown.origins, stored=shown.stored)))
    else:
        console.text(text(report))
    if options.json not in (None, STDOUT):
        write_file(Path(options.json), dump(document(report)) + "\n")


def _record(
    report: Report, origins: results.Origins, engine: Engine, plan: Plan, options: Options, console: Console
) -> Shown:
    """What was reproduced; if it is to be recorded, with what is stored of the other studies."""
    if not options.record:
        return Shown(report, origins, history.read(history.FILE) if options.page or options.html else [])
    shown = Shown(*_with_stored(report, origins, engine))
    scores = {**report.scores(), history.ALL: shown.report.total()}
    new = history.entry(options.record, engine.version, report.studies[0].study.units, scores, plan.seconds())
    entries = history.append(history.FILE, new)
    results.write(results.FILE, shown.report, shown.origins)
    console.say(f"recorded as `{options.record}` in {history.FILE} and {results.FILE}")
    return replace(shown, entries=entries, stored=True)


def _with_stored(report: Report, origins: results.Origins, engine: Engine) -> tuple[Report, results.Origins]:
    if not results.FILE.exists():
        return report, origins
    stored = results.read(
        results.FILE, lambda name, units: engine.load_study(name, units=units), leave_out=frozenset(origins)
    )
    return results.joined(stored, (report, origins), [str(row["id"]) for row in engine.listing("studies")])


def _pages(shown: Shown, options: Options, console: Console) -> None:
    from schedlab.render.blocks import html, markdown
    from schedlab.render.study_page import page

    for file, write in ((options.page, markdown), (options.html, html)):
        if file and str(file) != STDOUT:
            write_file(file, write(page(shown.report, shown.entries, shown.origins, stored=shown.stored)))
            console.say(f"page: {file}")


def _command(options: Options) -> str:
    words = ["schedlab", "reproduce", *options.studies]
    words += ["--short"] if options.short else []
    words += ["--units", str(options.units)] if options.units is not None else []
    words += ["--time", str(options.time)] if options.time is not None else []
    words += ["--reasons", options.reasons] if options.reasons else []
    words += ["--record", options.record] if options.record else []
    return shlex.join(words)
