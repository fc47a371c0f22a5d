"""`schedlab calibrate`: what this machine's actions cost, as a machine file for the simulator."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from schedlab.arms import calibrate
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.cli.paths import STDOUT
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError

QUIET_PCT = 5.0


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0; 4 if nothing can be measured here."""
    engine = engine or native_engine()
    if options.arm == "sim":
        raise InputError("the simulator has no costs to measure", hint="use --arm host or --arm vm")
    measured = (
        calibrate.vm(engine, options.kernel or "6.12.107", options.quick, options.traced, console.detail)
        if options.arm == "vm"
        else calibrate.host(options.quick, options.traced)
    )
    if measured.foreign_pct > QUIET_PCT:
        console.say(
            f"{measured.foreign_pct:.0f}% of the CPU time was foreign or stolen, which affects the upper quantiles"
        )
    text = calibrate.preset(measured, datetime.now(UTC).date())
    if options.out is None or str(options.out) == STDOUT:
        console.result(text.rstrip("\n"))
        return 0
    write_file(Path(options.out), text)
    console.result(f"{options.out}: {len(measured.costs)} costs of {measured.where}")
    console.say(f"`schedlab run SCENARIO --machine {options.out}` uses it")
    return 0
