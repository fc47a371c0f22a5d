"""`schedlab calibrate`: what this machine's actions cost, as a machine file for the simulator."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from schedlab.arms import calibrate, section_file
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.cli.paths import STDOUT
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, OutputError

QUIET_PCT = 5.0


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0; 4 if nothing can be measured here."""
    engine = engine or native_engine()
    if options.arm == "sim":
        raise InputError("the simulator has no costs to measure", hint="use --arm host or --arm vm")
    if options.kernel and options.arm != "vm":
        raise InputError("--kernel is the kernel of a guest", hint="add --arm vm")
    if options.sections:
        return _sections(options, console, engine)
    measured = (
        calibrate.vm(
            engine,
            options.kernel or "6.12.107",
            console.detail,
            quick=options.quick,
            traced=options.traced,
        )
        if options.arm == "vm"
        else calibrate.host(quick=options.quick, traced=options.traced)
    )
    if measured.foreign_pct > QUIET_PCT:
        console.say(
            f"{measured.foreign_pct:.0f}% of the CPU time was foreign or stolen, which affects the upper quantiles"
        )
    text = calibrate.preset(measured, datetime.now(UTC).date())
    if _written(options, console, text, calibrate.summary(measured)):
        console.say(f"`schedlab run SCENARIO --machine {options.out}` uses it")
    return 0


def _sections(options: Options, console: Console, engine: Engine) -> int:
    """The kernel sections of system calls, which only a guest can be probed for."""
    if options.arm != "vm":
        raise InputError("--sections measures the kernel of a guest", hint="use --arm vm")
    if options.traced:
        raise InputError("--sections enables tracepoints of its own", hint="omit --traced")
    row = options.kernel or "6.12.107"
    table, where = section_file.measure(engine, row, console.detail, quick=options.quick)
    text = section_file.text(table, where, row, datetime.now(UTC).date())
    _written(options, console, text, f"{len(table.calls)} calls of {where}")
    return 0


def _written(options: Options, console: Console, text: str, what: str) -> bool:
    """Whether the text went to a file, not to stdout.

    A measurement takes minutes, so one that the file has no room for goes to stdout before the error.
    """
    if options.out is None or str(options.out) == STDOUT:
        console.result(text.rstrip("\n"))
        return False
    try:
        write_file(Path(options.out), text)
    except OutputError:
        console.result(text.rstrip("\n"))
        raise
    console.result(f"{options.out}: {what}")
    return True
