"""`schedlab validate`: scenarios on the simulator and on a real kernel, and the differences between the two."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schedlab import api
from schedlab.arms import agent, arm_of, calibrate, limits
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, RunError
from schedlab.render.validation import document, page, text
from schedlab.scenario import Scenario
from schedlab.store import Result, Store
from schedlab.validity.files import dump, read, shipped
from schedlab.validity.validation import Trial, Validation


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, or 3 if some runs failed. Differences between the arms are a result, not a failure."""
    _check(options)
    if options.stored == "" and not (options.resimulate or options.store or options.json) and len(shipped()) > 1:
        return _show_shipped(options, console)
    if options.stored is None:
        found = _measure(options, console, engine or native_engine())
    else:
        found = read(_stored(options.stored))
        if options.resimulate:
            found = _resimulate(found, options, console, engine or native_engine())
    _files(options, found)
    if options.json == "-":
        console.result(document(found))
    else:
        console.text(text(found))
    return 3 if found.failures else 0


def _show_shipped(options: Options, console: Console) -> int:
    """Everything that schedlab ships, on one page."""
    sets = [(read(file), file) for file in shipped()]
    if options.out:
        write_file(Path(options.out), page([(found, _relative(file)) for found, file in sets]))
    for found, file in sets:
        console.text(f"{file.stem}: {text(found)}")
    return 3 if any(found.failures for found, _ in sets) else 0


def _check(options: Options) -> None:
    if options.arm == "sim":
        raise InputError("the simulator cannot validate itself", hint="use --arm host or --arm vm")
    if bool(options.scenarios) == (options.stored is not None):
        raise InputError("give either scenarios to measure or --stored", hint="schedlab validate SCENARIO --arm vm")
    if options.resimulate and options.stored is None:
        raise InputError("--resimulate repeats the simulated runs of a stored validation", hint="add --stored [FILE]")


def _stored(name: str) -> Path:
    """The named file, or the only one that schedlab ships."""
    if name:
        return Path(name)
    files = shipped()
    if len(files) != 1:
        raise InputError(
            "there are several stored validations",
            hint=f"choose one with --stored FILE: {', '.join(str(f) for f in files) or 'none'}",
        )
    return files[0]


def _files(options: Options, found: Validation) -> None:
    if options.store:
        write_file(options.store, dump(found))
    if options.json not in (None, "-"):
        write_file(Path(str(options.json)), document(found) + "\n")
    if options.out:
        stored = options.store or (_stored(options.stored) if options.stored is not None else None)
        write_file(Path(options.out), page([(found, _relative(stored) if stored else "")]))


def _relative(path: Path) -> str:
    """The path from the project's folder where the file lies in it."""
    root = Path(__file__).parents[3]
    full = path.resolve()
    return str(full.relative_to(root)) if full.is_relative_to(root) else path.name


def _measure(options: Options, console: Console, engine: Engine) -> Validation:
    arm = options.arm or "vm"
    agent.check_version(engine.version)
    found = Validation(arm)
    with _folder(options.runs) as folder:
        machines = Machines(options, engine, arm, folder, console)
        for name in options.scenarios:
            found.trials.append(_trial(options, console, engine, name, arm, machines))
            found.costs = {row: Path(file).read_text(encoding="utf-8") for row, file in machines.files.items()}
            found = dataclasses.replace(found, measured=_made_of(found, options), simulated=_made())
            # After each, as the next may take minutes and be interrupted.
            _files(options, found)
    return found


@contextmanager
def _folder(runs: Path | None) -> Iterator[Path]:
    """Where runs and calibrated machines are kept: for good, or until the end."""
    if runs is not None:
        runs.mkdir(parents=True, exist_ok=True)
        yield runs
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-validate-") as folder:
        yield Path(folder)


class Machines:
    """The calibrated machine of each kernel: what an action costs differs from one to the next."""

    def __init__(self, options: Options, engine: Engine, arm: str, folder: Path, console: Console) -> None:
        self._given, self._engine, self._arm = options.machine, engine, arm
        self._folder, self._console = folder, console
        self.files: dict[str, str] = {}
        """The machine file of each kernel row."""

    def of(self, row: str) -> str:
        """The machine file of a row; measured once, unless one was given for all."""
        if self._given:
            self.files[row] = self._given
            return self._given
        file = self._folder / f"machine-{row if self._arm == 'vm' else 'host'}.toml"
        if not file.exists():
            self._console.say(f"calibrating {row}: --machine FILE of `schedlab calibrate` saves this")
            log, vm = self._console.detail, self._arm == "vm"
            measured = (
                calibrate.vm(self._engine, row, log, quick=True, traced=True)
                if vm
                else calibrate.host(quick=True, traced=True)
            )
            write_file(file, calibrate.preset(measured, datetime.now(UTC).date()))
        self.files[row] = str(file)
        return self.files[row]


def _trial(options: Options, console: Console, engine: Engine, name: str, arm: str, machines: Machines) -> Trial:
    seeds = {"seeds": options.seeds} if options.seeds is not None else {}
    on_real = dataclasses.replace(engine.load(name, seeds or None), arm=arm)
    files = {row: machines.of(row) for row in dict.fromkeys(v.kernel for v in on_real.variants)}
    simulated = _simulated(
        options,
        console,
        engine,
        on_real,
        [(row, engine.load(name, {**seeds, "machine": file})) for row, file in files.items()],
    )
    store = Store(options.runs / f"{on_real.name}-{arm}", api.manifest(on_real), resume=True) if options.runs else None
    return Trial(simulated, _ran(options, console, engine, on_real, arm, store))


def _resimulate(found: Validation, options: Options, console: Console, engine: Engine) -> Validation:
    """The same measurements against what the simulator does now, with the stored costs and scenarios."""
    trials = []
    with tempfile.TemporaryDirectory(prefix="schedlab-validate-") as folder:
        for row, costs in found.costs.items():
            (Path(folder) / f"{row}.toml").write_text(costs, encoding="utf-8")
        for trial in found.trials:
            scenario, seeds = trial.measured.scenario, list(trial.measured.seeds)
            of_row = []
            for row in dict.fromkeys(v.kernel for v in scenario.variants):
                overrides = {"seeds": seeds, "machine": f"{folder}/{row}.toml"}
                of_row.append((row, engine.loads(str(scenario.description["text"]), scenario.file, overrides)))
            trials.append(Trial(_simulated(options, console, engine, scenario, of_row), trial.measured))
    return Validation(found.arm, trials, found.costs, found.measured, _made())


def _simulated(
    options: Options, console: Console, engine: Engine, real: Scenario, of_row: Sequence[tuple[str, Scenario]]
) -> Result:
    """Every variant with the costs of its own kernel row."""
    results = []
    for row, scenario in of_row:
        if scenario.machine.cpus != real.machine.cpus:
            words = (
                f"the machine of {row} has {scenario.machine.cpus} CPUs and {real.name} declares {real.machine.cpus}"
            )
            raise InputError(words, hint="both arms must have the same CPUs")
        variants = tuple(v for v in scenario.variants if v.kernel == row)
        results.append(_ran(options, console, engine, dataclasses.replace(scenario, variants=variants), "sim", None))
    runs = dict(
        sorted(((key, run) for result in results for key, run in result.runs.items()), key=lambda item: item[0])
    )
    failures = tuple(failure for result in results for failure in result.failures)
    return Result(real, "sim", real.seeds, runs, failures)


def _ran(
    options: Options, console: Console, engine: Engine, scenario: Scenario, arm: str, store: Store | None
) -> Result:
    chosen = arm_of(arm, engine, console.detail)
    chosen.prepare(scenario)
    left = len(scenario.seeds) * len(scenario.variants) - (len(store.finished) if store else 0)
    progress = console.progress(left, engine.under_way)
    try:
        result, interrupted = api.run_all(
            engine,
            scenario,
            jobs=options.jobs,
            store=store,
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


def _made() -> dict[str, Any]:
    provenance = api.provenance()
    return {"date": provenance["started"][:10], "schedlab": provenance["schedlab"]}


def _made_of(found: Validation, options: Options) -> dict[str, Any]:
    """The command, and what ran the kernels; nothing about the computer below."""
    runs = [run for trial in found.trials for run in trial.measured.runs.values()]
    qemu = {limits.place(run).get("state", {}).get("qemu") for run in runs} - {None}
    return {**_made(), **({"QEMU": ", ".join(sorted(qemu))} if qemu else {}), "command": _command(options)}


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
