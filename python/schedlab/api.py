"""The Python API: the same steps as the command line, on typed data. A single run imports no more than it needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab import spelling
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, OutputError, not_written
from schedlab.outcome import Outcome, Run
from schedlab.overrides import Overrides, engine_overrides
from schedlab.scenario import Scenario

if TYPE_CHECKING:
    from schedlab.arms.arm import Arm
    from schedlab.comparison import Comparison
    from schedlab.design import Design
    from schedlab.runner import Job, Observer, Runner
    from schedlab.store import Result, Store


def load(
    path: str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] | None = None,
    machine: str | None = None,
    duration: str | None = None,
    noise: bool | None = None,
    overrides: Overrides | None = None,
    engine: Engine | None = None,
) -> Scenario:
    """Read and validate a scenario file.

    `seeds` (how many, or which), `machine` (a preset or a file), `duration` (such as "500ms") and `noise` (whether
    anything is drawn at random) replace what the file says. `overrides` replaces single keys, as `--set` does:

        load("web.toml", overrides={"knobs.base_slice": "3ms", "workload.hackbench.groups": 4, "variant.b.hz": 1000})

    The keys are those of docs/scenario.md, "Overrides". A key or value that is not valid raises ScenarioError, whose
    `file` is the override (`--set KEY=VALUE`) and whose `hint` is the nearest valid name. `Scenario.overrides` lists
    what was overridden, and results store it.
    """
    flags = {"machine": machine, "duration": duration, "noise": noise}
    return (engine or native_engine()).load(os.fspath(path), engine_overrides(seeds, overrides, flags))


def run(
    scenario: Scenario | str | os.PathLike[str],
    variant: str | None = None,
    seed: int | None = None,
    *,
    trace: str | os.PathLike[str] | None = None,
    check_determinism: bool = False,
    engine: Engine | None = None,
) -> Run:
    """One variant with one seed; by default the scenario's only variant and its first seed."""
    engine = engine or native_engine()
    scenario = _loaded(scenario, engine)
    variant = pick_variant(scenario, variant)
    seed = scenario.seeds[0] if seed is None else seed
    to = None if trace is None else os.fspath(trace)
    if scenario.arm == "sim":
        return engine.run(scenario, variant, seed, trace=to, check_determinism=check_determinism)
    from schedlab.arms import arm_of

    arm = arm_of(scenario.arm, engine)
    arm.prepare(scenario)
    try:
        return arm.run(scenario, variant, seed, trace=to, cancel=arm.cancel())
    finally:
        arm.close()


def compare(
    scenario: Scenario | str | os.PathLike[str],
    *,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    traces: str | os.PathLike[str] | None = None,
    on_outcome: Observer | None = None,
    against: str | None = None,
    auto: bool = False,
    noise_floor: bool | None = None,
    validity: Sequence[str | os.PathLike[str]] = (),
    engine: Engine | None = None,
) -> Comparison:
    """Run every variant with every seed and judge each against the first variant.

    With `out`, every finished run is kept in that directory. Ctrl-C stops the runs and raises KeyboardInterrupt.
    `against` names another baseline, or "all" for every pair. With `auto`, the scenario's seeds are a budget: the
    samples are judged at the looks of a schedule until the verdicts are settled. `noise_floor` runs the first variant
    again with other seeds, to show what differs where nothing was changed; by default on real kernels only.
    `validity` names further files with model errors.
    """
    from schedlab.compare_variants import compare_variants, settled
    from schedlab.store import Store

    engine = engine or native_engine()
    scenario = _loaded(scenario, engine)
    design = design_of(scenario, auto=auto, noise_floor=noise_floor)
    store = Store(Path(out), manifest(scenario, design, engine)) if out is not None else None
    result, interrupted = run_all(
        engine,
        scenario,
        jobs=jobs,
        store=store,
        traces=traces,
        on_outcome=on_outcome,
        design=design,
        enough=settled if auto else None,
    )
    if interrupted:
        raise KeyboardInterrupt
    return compare_variants(result, against=against, validity=[Path(file) for file in validity])


def design_of(scenario: Scenario, *, auto: bool, noise_floor: bool | None) -> Design:
    """The design of a comparison: the looks of `auto` and the runs for the noise floor."""
    from schedlab.design import Design, further_seeds
    from schedlab.statistics import Plan

    looks = Plan.up_to(len(scenario.seeds)).looks if auto else ()
    wanted = scenario.arm != "sim" if noise_floor is None else noise_floor
    return Design(looks, further_seeds(scenario.seeds) if wanted else ())


def report(
    *results: str | os.PathLike[str],
    against: str | None = None,
    validity: Sequence[str | os.PathLike[str]] = (),
) -> Comparison:
    """Judge a stored result again, or compare two; `against` and `validity` as for `compare`."""
    from schedlab.compare_variants import compare_results, compare_variants
    from schedlab.store import read

    stored = [read(Path(r)) for r in results]
    if not 1 <= len(stored) <= 2:
        raise InputError(f"one result can be shown or two compared, not {len(stored)}")
    files = [Path(file) for file in validity]
    if len(stored) == 1:
        return compare_variants(stored[0], against=against, validity=files)
    return compare_results(stored[0], stored[1], against=against, validity=files)


def listing(kind: str, kernel: str | None = None, *, engine: Engine | None = None) -> list[dict[str, Any]]:
    """What exists of a kind (machines, kernels, features, workloads, knobs, metrics), as plain rows."""
    return (engine or native_engine()).listing(kind, kernel)


def run_all(
    engine: Engine,
    scenario: Scenario,
    *,
    jobs: int | None = None,
    store: Store | None = None,
    traces: str | os.PathLike[str] | None = None,
    on_outcome: Observer | None = None,
    on_trouble: Callable[[OutputError], None] | None = None,
    on_stage: Callable[[int], None] | None = None,
    arm: Arm | None = None,
    design: Design | None = None,
    enough: Callable[[Result], bool] | None = None,
) -> tuple[Result, bool]:
    """Every run of a comparison, and whether Ctrl-C cut it short; finished runs are kept either way.

    A design with looks is run stage by stage until `enough` says so; `on_stage` gets the number of runs of each. A
    store that cannot be written is reported once to `on_trouble`, and the runs continue in memory.
    """
    from schedlab.arms import arm_of
    from schedlab.design import Design
    from schedlab.runner import Runner
    from schedlab.store import Result

    design = design or Design()
    if arm is None:
        arm = arm_of(scenario.arm, engine)
        arm.prepare(scenario)
    kept = _Kept(store, on_outcome, on_trouble)
    made, path = provenance(), store.path if store else None
    try:
        for seeds in design.stages(scenario.seeds):
            ended = {(o.variant, o.seed) for o in kept.outcomes}
            todo = [j for j in _jobs(arm, scenario, design, seeds, _folder(traces)) if (j.variant, j.seed) not in ended]
            if on_stage:
                on_stage(len(todo))
            interrupted = _stage(Runner(arm, scenario, todo, arm.threads(jobs, default_jobs())), kept)
            result = Result.of(scenario, scenario.arm, scenario.seeds, kept.outcomes, made, path, design)
            if interrupted or (enough and enough(result)):
                break
    finally:
        try:
            arm.close()
        finally:
            if store:
                store.close()
    return result, interrupted


class _Kept:
    """The outcomes of a comparison, in memory and, as long as it can be written, in its store."""

    def __init__(
        self, store: Store | None, on_outcome: Observer | None, on_trouble: Callable[[OutputError], None] | None
    ) -> None:
        self.outcomes: list[Outcome] = list(store.finished) if store else []
        self._stored = len(self.outcomes)
        self._store = store
        self._on_outcome = on_outcome
        self._on_trouble = on_trouble

    def add(self, outcome: Outcome) -> None:
        """Keep one more; without an observer of trouble, OutputError if the store cannot be written."""
        self.outcomes.append(outcome)
        self.store()
        if self._on_outcome:
            self._on_outcome(outcome)

    def store(self) -> None:
        """Store what is not stored yet: the new outcome, or that whose storing Ctrl-C interrupted."""
        try:
            while self._store and self._stored < len(self.outcomes):
                self._store.append(self.outcomes[self._stored])
                self._stored += 1
        except OutputError as e:
            if self._on_trouble is None:
                raise
            self._store = None
            self._on_trouble(e)


def _stage(runner: Runner, kept: _Kept) -> bool:
    """Do the runs of one stage; whether Ctrl-C interrupted them."""
    try:
        for outcome in runner.outcomes():
            kept.add(outcome)
    except KeyboardInterrupt:
        runner.stop()
        kept.store()
        for outcome in runner.finished():
            kept.add(outcome)
        return True
    return False


def _jobs(arm: Arm, scenario: Scenario, design: Design, seeds: int, traces: Path | None) -> list[Job]:
    """The runs of the first seeds in the arm's order, with the further runs of the first variant among them.

    A further run is placed after the variants of its seed, or before them, in turn, so that drift affects all of them
    alike.
    """
    jobs = arm.plan(scenario, scenario.seeds[:seeds], traces)
    if not design.again:
        return jobs
    from dataclasses import replace

    again = arm.plan(replace(scenario, variants=scenario.variants[:1]), design.again[:seeds], traces)
    size = len(scenario.variants)
    mixed: list[Job] = []
    for number, job in enumerate(again):
        block = jobs[number * size : (number + 1) * size]
        mixed += [job, *block] if number % 2 else [*block, job]
    return mixed


def manifest(scenario: Scenario, design: Design | None = None, engine: Engine | None = None) -> dict[str, Any]:
    """What a result directory says about itself; simulated runs of different builds of the engine are never mixed."""
    declared: dict[str, Any] = {"design": design.to_record()} if design and (design.looks or design.again) else {}
    if engine is not None and scenario.arm == "sim":
        declared["build"] = engine.build()
    return {
        "scenario": scenario.description,
        "arm": scenario.arm,
        "seeds": list(scenario.seeds),
        **declared,
        "provenance": provenance(),
    }


def provenance() -> dict[str, Any]:
    """Where and when a result was made; no number of it depends on any of this."""
    import platform
    from datetime import UTC, datetime

    from schedlab import __version__

    return {
        "schedlab": __version__,
        "command": _command(sys.argv),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
    }


def _command(argv: Sequence[str]) -> str:
    """The command line as a shell takes it; `python -m schedlab` is the program `schedlab`."""
    from shlex import join

    program = Path(argv[0]).name
    return join(["schedlab" if program == "__main__.py" else program, *argv[1:]])


def pick_variant(scenario: Scenario, name: str | None) -> str:
    """The variant that was named, or the only one."""
    variants = [v.name for v in scenario.variants]
    if name is None:
        if len(variants) == 1:
            return variants[0]
        raise InputError("this scenario has several variants", hint=f"choose one with --variant: {', '.join(variants)}")
    if name not in variants:
        hint = spelling.hint(name, variants, "the variants are")
        raise InputError(f"there is no variant `{name}`", hint=hint, file=scenario.file)
    return name


def default_jobs() -> int:
    """The default number of simultaneous runs: the CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _loaded(scenario: Scenario | str | os.PathLike[str], engine: Engine) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(scenario, engine=engine)


def _folder(traces: str | os.PathLike[str] | None) -> Path | None:
    if traces is None:
        return None
    folder = Path(traces)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise not_written(f"cannot make the trace directory {folder}", e) from None
    return folder
