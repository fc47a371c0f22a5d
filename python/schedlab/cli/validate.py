"""`schedlab validate`: scenarios on the simulator and on a real kernel, and how far the two lie apart."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from schedlab import api
from schedlab.arms import arm_of, calibrate
from schedlab.arms.validate import Validation
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
        machines = Machines(options, engine, arm, Path(folder), console)
        found = Validation()
        for name in options.scenarios:
            found.add(*_both(options, console, engine, name, arm, machines))
            # After each, as the next may take minutes and be interrupted.
            _files(options, found)
    if options.json == "-":
        console.result(document(found))
    else:
        console.result(text(found))
    return 3 if found.failures else 0


def _files(options: Options, found: Validation) -> None:
    if options.json not in (None, "-"):
        write_file(Path(str(options.json)), document(found) + "\n")
    if options.out:
        write_file(Path(options.out), page(found, _command(options)))


class Machines:
    """The calibrated machine of each kernel: what an action costs differs from one to the next."""

    def __init__(self, options: Options, engine: Engine, arm: str, folder: Path, console: Console) -> None:
        self._given, self._engine, self._arm = options.machine, engine, arm
        self._folder, self._console = folder, console
        self._files: dict[str, Path] = {}

    def of(self, row: str) -> str:
        """The machine file of a row; measured once, unless one was given for all."""
        if self._given:
            return self._given
        key = row if self._arm == "vm" else "host"
        if key not in self._files:
            self._files[key] = self._folder / f"{key}.toml"
            self._console.say(f"calibrating {key}: --machine FILE of `schedlab calibrate` saves this")
            tell = self._console.detail
            vm = self._arm == "vm"
            measured = (
                calibrate.vm(self._engine, row, True, True, tell) if vm else calibrate.host(quick=True, traced=True)
            )
            text = calibrate.preset(measured, datetime.now(UTC).date())
            self._files[key].write_text(text, encoding="utf-8")
        return str(self._files[key])


def _both(
    options: Options, console: Console, engine: Engine, name: str, arm: str, machines: Machines
) -> tuple[Result, Result]:
    seeds = {"seeds": options.seeds} if options.seeds is not None else {}
    on_real = dataclasses.replace(engine.load(name, seeds or None), arm=arm)
    simulated = []
    for row in dict.fromkeys(v.kernel for v in on_real.variants):
        machine = machines.of(row)
        on_sim = engine.load(name, {**seeds, "machine": machine})
        if on_sim.machine.cpus != on_real.machine.cpus:
            text = f"{machine} has {on_sim.machine.cpus} CPUs and {name} declares {on_real.machine.cpus}"
            raise InputError(text, hint="both arms must have the same CPUs")
        of_row = tuple(v for v in on_sim.variants if v.kernel == row)
        simulated.append(_ran(options, console, engine, dataclasses.replace(on_sim, variants=of_row), "sim"))
    return _merged(simulated, on_real), _ran(options, console, engine, on_real, arm)


def _merged(results: Sequence[Result], scenario: Scenario) -> Result:
    runs = {key: run for result in results for key, run in result.runs.items()}
    failures = tuple(failure for result in results for failure in result.failures)
    return Result(scenario, "sim", scenario.seeds, runs, failures)


def _ran(options: Options, console: Console, engine: Engine, scenario: Scenario, arm: str) -> Result:
    chosen = arm_of(arm, engine, console.detail)
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
    words = ["schedlab validate", *_short(options.scenarios), "--arm", options.arm or "vm"]
    words += ["--seeds", str(options.seeds)] if isinstance(options.seeds, int) else []
    words += ["--machine", options.machine] if options.machine else []
    return " ".join(words)


def _short(scenarios: Sequence[str]) -> list[str]:
    """Every file of one folder is that folder's pattern."""
    folders = {Path(name).parent for name in scenarios}
    if len(folders) == 1 and len(scenarios) > 1:
        (folder,) = folders
        if {folder / Path(name).name for name in scenarios} == set(folder.glob("*.toml")):
            return [f"{folder}/*.toml"]
    return list(scenarios)
