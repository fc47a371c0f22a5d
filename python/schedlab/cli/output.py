"""A comparison to stdout and files, and the gate over its verdicts: shared by `compare` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path

from schedlab.cli.console import Console, colours, write_file
from schedlab.cli.parser import Options
from schedlab.cli.paths import STDOUT
from schedlab.comparison import Comparison
from schedlab.errors import OutputError
from schedlab.judge import Judgement
from schedlab.render import text

EXIT_GATE = 1


def show(comparison: Comparison, options: Options, console: Console) -> int:
    """Print and write every output that was asked for, even if one fails; 1 if the gate fails."""
    code = 0
    for output in (_stdout, _json_file, _html_file):
        try:
            output(comparison, options, console)
        except OutputError as e:
            console.error(e)
            code = e.exit_code
    return code or _gate(comparison, options, console)


def _stdout(comparison: Comparison, options: Options, console: Console) -> None:
    from schedlab.render.document import dump

    if options.json == STDOUT:
        console.result(dump(comparison.to_json()))
    elif str(options.html) == STDOUT:
        console.result(comparison.html())
    else:
        console.result(text(comparison, options.style, colour=colours(sys.stdout)))


def _json_file(comparison: Comparison, options: Options, _: Console) -> None:
    from schedlab.render.document import dump

    if options.json not in (None, STDOUT):
        write_file(Path(options.json), dump(comparison.to_json()) + "\n")


def _html_file(comparison: Comparison, options: Options, console: Console) -> None:
    if options.html is not None and str(options.html) != STDOUT:
        write_file(options.html, comparison.html())
        console.say(f"page: {options.html}")


def _gate(comparison: Comparison, options: Options, console: Console) -> int:
    """Declared metrics only, if the scenario declares any: a gate is on what someone chose to watch."""
    if not options.fail_on:
        return 0
    judged = comparison.judgements()
    watched = [(m, j) for m, j in judged if m.declared] or judged
    failed = [(m, j) for m, j in watched if {_kind(j), j.effect} & {*options.fail_on}]
    for m, j in failed:
        console.say(f"gate: {m.name} of {j.b} is {j.effect if j.effect in options.fail_on else j.verdict}: {j.reason}")
    return EXIT_GATE if failed else 0


def _kind(judgement: Judgement) -> str:
    """`undecided: noisy` is undecided too."""
    return judgement.verdict.partition(":")[0]
