"""A comparison to stdout and files, and the gate over its verdicts: shared by `compare` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path

from schedlab import gate, render
from schedlab.cli.console import Console, colours, write_file
from schedlab.cli.options import Options
from schedlab.cli.paths import STDOUT
from schedlab.cli.terminal import terminal_columns
from schedlab.closer import Closer
from schedlab.comparison import Comparison
from schedlab.engine import Engine
from schedlab.errors import InputError, OutputError
from schedlab.render.cells import change

EXIT_GATE = 1
Look = Closer | str | None
"""What `schedlab.closer` found, or why there is nothing to show; None if no page is written."""


def show(comparison: Comparison, options: Options, console: Console, engine: Engine | None = None) -> int:
    """Print and write every output that was asked for, even if one fails; 1 if the gate fails."""
    code = 0
    look = None
    if engine is not None or options.html is not None:
        comparison, look = _examined(comparison, options, console, engine)
    gate.check(options.fail_on, ((m.metric, m.model) for m in comparison.metrics))
    gate.check_seeds(options.fail_on, comparison.scenario, len(comparison.seeds))
    for output in (_stdout, _json_file, _html_file):
        try:
            output(comparison, options, console, look)
        except OutputError as e:
            console.error(e)
            code = e.exit_code
    return code or _gate(comparison, options, console)


def _stdout(comparison: Comparison, options: Options, console: Console, look: Look) -> None:
    from schedlab.render.document import dump

    if options.json == STDOUT:
        console.result(dump(render.json_document(comparison)))
    elif str(options.html) == STDOUT:
        console.page(render.html(comparison, look))
    else:
        console.result(render.text(comparison, options.style, colour=colours(sys.stdout), width=terminal_columns()))


def _json_file(comparison: Comparison, options: Options, _: Console, __: Look) -> None:
    from schedlab.render.document import dump

    if options.json not in (None, STDOUT):
        write_file(Path(options.json), dump(render.json_document(comparison)) + "\n")


def _html_file(comparison: Comparison, options: Options, console: Console, look: Look) -> None:
    if options.html is not None and str(options.html) != STDOUT:
        write_file(options.html, render.html(comparison, look))
        console.say(f"page: {options.html}")


def _examined(
    comparison: Comparison, options: Options, console: Console, engine: Engine | None
) -> tuple[Comparison, Look]:
    """With the cause of the headline; for a page, also a closer look, for which the runs of both variants are repeated.

    What is not shown is not examined: the styles of other tools have no causes.
    """
    from schedlab.api import default_jobs
    from schedlab.cli.interrupt import interruptible
    from schedlab.closer import closer
    from schedlab.engine import native_engine
    from schedlab.reasons_of_headline import with_cause

    chosen, threads = engine or native_engine(), default_jobs()
    look: Look = None
    if options.html is not None:
        if comparison.arm == "sim" and comparison.pairs:
            console.say("examining the slowest samples for the page")
        look = interruptible(chosen, lambda cancel: closer(chosen, comparison, threads=threads, cancel=cancel))
    elif options.style not in ("table", "details"):
        return comparison, look
    found = look
    return interruptible(
        chosen, lambda cancel: with_cause(chosen, comparison, found, threads=threads, cancel=cancel)
    ), look


def _gate(comparison: Comparison, options: Options, console: Console) -> int:
    """1 if a gate failed, 2 if one could not decide; changes that none of them covers are named either way."""
    if not options.fail_on:
        return 0
    failed = gate.failed(options.fail_on, comparison)
    for condition, m, j in failed:
        console.reason(f"gate {condition}: {m.name} of {j.b} is {j.verdict} by {change(j)}: {j.reason}")
    for m, j, why in gate.unwatched(options.fail_on, comparison):
        console.say(f"no gate covers {m.name} of {j.b}, {j.effect} by {change(j)}: {why}")
    for condition, m, j in gate.unjudged(options.fail_on, comparison):
        console.say(f"gate {condition}: {m.name} of {j.b} cannot be judged: {j.reason}")
    if failed:
        return EXIT_GATE
    if undecided := gate.blind(options.fail_on, comparison):
        names = ", ".join(map(str, undecided))
        console.error(InputError(f"--fail-on {names}: too few values to pass or fail", hint="run more seeds"))
        return InputError.exit_code
    return 0
