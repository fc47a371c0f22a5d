"""`schedlab validate`: scenarios on the simulator and on a real kernel, and how far the two lie apart."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from schedlab import api
from schedlab.arms import arm_of, calibrate, limits, validate
from schedlab.arms.validate import Effect, Row
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, RunError
from schedlab.render.validation import document, page, text
from schedlab.scenario import Scenario
from schedlab.store import Result


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, or 3 if some runs failed; how far the arms lie apart is a result, not a failure."""
    engine = engine or native_engine()
    arm = options.arm or "vm"
    if arm == "sim":
        raise InputError("the simulator cannot validate itself", hint="--arm host or --arm vm")
    with tempfile.TemporaryDirectory(prefix="schedlab-validate-") as folder:
        machine = options.machine or _calibrated(options, engine, arm, Path(folder) / "calibrated.toml", console)
        found: list[Row] = []
        changes: list[Effect] = []
        places, failed = [], 0
        for name in options.scenarios:
            simulated, measured = _both(options, console, engine, name, arm, machine)
            found += validate.rows(simulated, measured)
            changes += validate.effects(simulated, measured)
            failed += len(simulated.failures) + len(measured.failures)
            runs = {
                v.name: [r for (n, _), r in measured.runs.items() if n == v.name] for v in measured.scenario.variants
            }
            places.append(limits.machine(runs) or "nothing")
    where = " and ".join(dict.fromkeys(places))
    if options.json is not None:
        _json(options, console, document(found, changes, where))
    if options.json != "-":
        console.result(text(found, changes, where))
    if options.out:
        write_file(Path(options.out), page(found, changes, where, _command(options)))
        console.say(f"page: {options.out}")
    return 3 if failed else 0


def _json(options: Options, console: Console, shown: str) -> None:
    if options.json == "-":
        console.result(shown)
    elif options.json:
        write_file(Path(options.json), shown + "\n")


def _calibrated(options: Options, engine: Engine, arm: str, file: Path, console: Console) -> str:
    console.say("calibrating: --machine FILE of `schedlab calibrate` saves this")
    if arm == "host":
        measured = calibrate.host(quick=True)
    else:
        first = engine.load(options.scenarios[0]).variants[0]
        measured = calibrate.vm(engine, first.kernel, True, console.detail)
    file.write_text(calibrate.preset(measured, datetime.now(UTC).date()), encoding="utf-8")
    return str(file)


def _both(
    options: Options, console: Console, engine: Engine, name: str, arm: str, machine: str
) -> tuple[Result, Result]:
    seeds = {"seeds": options.seeds} if options.seeds is not None else {}
    on_sim = engine.load(name, {**seeds, "machine": machine})
    on_real = dataclasses.replace(engine.load(name, seeds or None), arm=arm)
    if on_sim.machine.cpus != on_real.machine.cpus:
        text = f"{machine} has {on_sim.machine.cpus} CPUs and {name} declares {on_real.machine.cpus}"
        raise InputError(text, hint="both arms must have the same CPUs")
    return _ran(options, console, engine, on_sim, "sim"), _ran(options, console, engine, on_real, arm)


def _ran(options: Options, console: Console, engine: Engine, scenario: Scenario, arm: str) -> Result:
    chosen = arm_of(arm, engine)
    chosen.prepare(scenario)
    progress = console.progress(len(scenario.seeds) * len(scenario.variants))
    try:
        result, interrupted = api.run_all(
            engine,
            scenario,
            jobs=options.jobs,
            arm=chosen,
            on_outcome=lambda o: progress.step(f"{scenario.name} on {arm}: {o.variant} seed {o.seed}"),
        )
    finally:
        progress.clear()
    if interrupted:
        raise KeyboardInterrupt
    for failure in _first(result):
        console.error(failure)
    return result


def _first(result: Result) -> Sequence[RunError]:
    return [RunError(f"{f.variant} seed {f.seed}: {f.message}", hint=f.hint) for f in result.failures[:1]]


def _command(options: Options) -> str:
    words = ["schedlab validate", *options.scenarios, "--arm", options.arm or "vm"]
    words += ["--machine", options.machine] if options.machine else []
    return " ".join(words)
