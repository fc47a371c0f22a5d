"""The Python API: the same steps as the command line, on typed data. A single run imports no more than it needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, OutputError, reason
from schedlab.outcome import Outcome, Run
from schedlab.scenario import Scenario

if TYPE_CHECKING:
    from schedlab.arms.arm import Arm
    from schedlab.comparison import Comparison
    from schedlab.runner import Observer
    from schedlab.store import Result, Store


def load(
    path: str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] | None = None,
    machine: str | None = None,
    duration: str | None = None,
    noise: bool | None = None,
    engine: Engine | None = None,
) -> Scenario:
    """Read and validate a scenario file.

    `seeds` (how many, or which), `machine` (a preset or a file), `duration` (such as "500ms") and `noise` (whether
    anything is drawn at random) replace what the file says.
    """
    given = seeds if seeds is None or isinstance(seeds, int) else list(seeds)
    overrides = {"seeds": given, "machine": machine, "duration": duration, "noise": noise}
    chosen = {key: value for key, value in overrides.items() if value is not None}
    return (engine or native_engine()).load(os.fspath(path), chosen or None)


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
    engine: Engine | None = None,
) -> Comparison:
    """Run every variant with every seed and judge them against the first variant.

    With `out`, every finished run is kept in that directory. Ctrl-C stops the runs and raises KeyboardInterrupt.
    """
    from schedlab.comparison import compare_variants
    from schedlab.store import Store

    engine = engine or native_engine()
    scenario = _loaded(scenario, engine)
    store = Store(Path(out), manifest(scenario)) if out is not None else None
    result, interrupted = run_all(engine, scenario, jobs=jobs, store=store, traces=traces, on_outcome=on_outcome)
    if interrupted:
        raise KeyboardInterrupt
    return compare_variants(result)


def report(*results: str | os.PathLike[str]) -> Comparison:
    """Judge a stored result again, or compare two."""
    from schedlab.comparison import compare_results, compare_variants
    from schedlab.store import read

    stored = [read(Path(r)) for r in results]
    if not 1 <= len(stored) <= 2:
        raise InputError(f"one result can be shown or two compared, not {len(stored)}")
    return compare_variants(stored[0]) if len(stored) == 1 else compare_results(*stored)


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
    arm: Arm | None = None,
) -> tuple[Result, bool]:
    """Every run of a comparison, and whether Ctrl-C cut it short; finished runs are kept either way.

    A store that cannot be written is reported once to `on_trouble` and the runs go on in memory.
    """
    from schedlab.arms import arm_of
    from schedlab.runner import Runner
    from schedlab.store import Result

    if arm is None:
        arm = arm_of(scenario.arm, engine)
        arm.prepare(scenario)
    outcomes: list[Outcome] = list(store.finished) if store else []
    ended = {(o.variant, o.seed) for o in outcomes}
    keeping = store

    def take(outcome: Outcome) -> None:
        nonlocal keeping
        outcomes.append(outcome)
        try:
            if keeping:
                keeping.append(outcome)
        except OutputError as e:
            if on_trouble is None:
                raise
            keeping = None
            on_trouble(e)
        if on_outcome:
            on_outcome(outcome)

    interrupted = False
    try:
        jobs_left = [j for j in arm.plan(scenario, scenario.seeds, _folder(traces)) if (j.variant, j.seed) not in ended]
        runner = Runner(arm, scenario, jobs_left, arm.threads(jobs, default_jobs()))
        try:
            for outcome in runner.outcomes():
                take(outcome)
        except KeyboardInterrupt:
            interrupted = True
            runner.stop()
            for outcome in runner.finished():
                take(outcome)
    finally:
        try:
            arm.close()
        finally:
            if store:
                store.close()
    result = Result.of(scenario, scenario.arm, scenario.seeds, outcomes, provenance(), store.path if store else None)
    return result, interrupted


def manifest(scenario: Scenario) -> dict[str, Any]:
    """What a result directory says about itself."""
    return {
        "scenario": scenario.description,
        "arm": scenario.arm,
        "seeds": list(scenario.seeds),
        "provenance": provenance(),
    }


def provenance() -> dict[str, Any]:
    """Where and when a result was made; no number of it depends on any of this."""
    import platform

    from schedlab import __version__

    return {
        "schedlab": __version__,
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
    }


def pick_variant(scenario: Scenario, name: str | None) -> str:
    """The variant that was named, or the only one."""
    names = [v.name for v in scenario.variants]
    if name is None:
        if len(names) == 1:
            return names[0]
        raise InputError("this scenario has several variants", hint=f"choose one with --variant: {', '.join(names)}")
    if name not in names:
        from difflib import get_close_matches

        near = get_close_matches(name, names, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"the variants are {', '.join(names)}"
        raise InputError(f"there is no variant `{name}`", hint=hint, file=scenario.file)
    return name


def default_jobs() -> int:
    """As many runs at once as this process may use CPUs."""
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
        raise OutputError(f"cannot make the trace directory {folder}: {reason(e)}") from None
    return folder
