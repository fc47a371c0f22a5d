"""`schedlab kernel`: the scheduler of a kernel's source tree as a program, built, checked and compared with a row."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from schedlab import documents
from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.compiled.rows import Row
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError

CPUS = (1, 4, 16, 64)
SWITCHES = 100_000
FLAGS = {
    "name": ("build",),
    "config": ("build",),
    "against": ("verify",),
    "machine_cpus": ("verify",),
    "switches": ("verify",),
    "seed": ("verify",),
    "out": ("verify",),
}
"""The actions to which each flag belongs."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0; 1 if a check fails, or if the kernel decides otherwise than the row."""
    for flag, actions in FLAGS.items():
        if getattr(options, flag) is not None and options.action not in actions:
            spelled = "--" + flag.removeprefix("machine_")
            raise InputError(f"{spelled} has no effect on `kernel {options.action}`", hint=f"it goes with {actions[0]}")
    if options.action == "list":
        if options.what:
            raise InputError(f"`kernel list` takes no name: {options.what}")
        return _list(options, console)
    if not options.what:
        what = "a source tree or package" if options.action == "build" else "the name of a native row"
        raise InputError(f"`kernel {options.action}` needs {what}", hint="`schedlab kernel list` shows the native rows")
    if options.action == "build":
        return _build(options, console)
    from schedlab.compiled import rows

    row = rows.find(options.what)
    return _check(row, options, console) if options.action == "check" else _verify(row, options, console, engine)


def _list(options: Options, console: Console) -> int:
    from schedlab.compiled import rows
    from schedlab.render import compiled

    found = rows.every()
    _show(options, console, compiled.listing(found), documents.dumps([asdict(row) for row in found]))
    return 0


def _build(options: Options, console: Console) -> int:
    from schedlab.compiled import build, check, rows
    from schedlab.render import compiled

    row = build.build(str(options.what), console.say, config=options.config, name=options.name)
    console.say("checking it")
    checked = check.check(row.program)
    if checked.passed:
        rows.keep(row)
    text = compiled.built(row, checked)
    _show(options, console, text, documents.dumps({"row": asdict(row), **compiled.document(checked)}))
    return 0 if checked.passed else 1


def _check(row: Row, options: Options, console: Console) -> int:
    from schedlab.compiled import check
    from schedlab.render import compiled

    checked = check.check(row.program)
    _show(options, console, compiled.checks(row, checked), documents.dumps(compiled.document(checked)))
    return 0 if checked.passed else 1


def _verify(row: Row, options: Options, console: Console, engine: Engine | None) -> int:
    from schedlab.compiled import verifying
    from schedlab.render import compiled

    if not options.against:
        raise InputError("verify needs --against ROW", hint=f"such as --against {row.release.rpartition('.')[0]}")
    engine = engine or native_engine()
    order = verifying.Order(
        against=options.against,
        cpus=tuple(options.machine_cpus or CPUS),
        switches=SWITCHES if options.switches is None else options.switches,
        seed=1 if options.seed is None else options.seed,
    )
    result = interruptible(engine, lambda cancel: verifying.verify(engine, row, order, console.say, cancel))
    _show(options, console, compiled.verified(row, order, result), documents.dumps(result.document()))
    if options.out and result.smallest is not None:
        write_file(options.out, result.smallest.scenario(order.against))
        console.say(f"the smallest scenario that differs is in {options.out}")
    return 0 if result.difference is None and not result.failure else 1


def _show(options: Options, console: Console, text: str, document: str) -> None:
    if options.json == "-":
        console.result(document)
        return
    console.text(text)
    if options.json:
        write_file(Path(options.json), document + "\n")
