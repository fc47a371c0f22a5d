"""`schedlab compare`: run, keep, judge, show."""

from __future__ import annotations

import re
import time
from pathlib import Path

from schedlab import api
from schedlab.arms import arm_of
from schedlab.arms.arm import Arm
from schedlab.cli import EXIT_INTERRUPTED
from schedlab.cli.console import Console
from schedlab.cli.output import show
from schedlab.cli.parser import Options
from schedlab.cli.scenario import loaded
from schedlab.comparison import compare_variants
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, OutputError, RunError
from schedlab.outcome import Failure, Outcome
from schedlab.render.table import plural
from schedlab.scenario import Scenario
from schedlab.store import Result, Store


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, 1, 3 or 130."""
    engine = engine or native_engine()
    scenario = loaded(options, engine)
    arm = arm_of(scenario.arm, engine, console.detail)
    arm.prepare(scenario)
    try:
        store = _store(options, scenario)
    except BaseException:
        arm.close()
        raise
    for words in arm.remarks():
        console.say(words)
    if store.finished:
        console.say(f"resuming: {plural(len(store.finished), 'run')} already done")
    trouble: list[OutputError] = []
    result, interrupted = _run(options, console, engine, scenario, store, trouble, arm)
    _tell_failures(result, console)
    torn = _tell_torn_traces(result, console)
    code = 0
    if result.runs:
        code = show(compare_variants(result), options, console)
    _tell_kept(result, store, interrupted, console)
    if interrupted:
        return EXIT_INTERRUPTED
    return 3 if result.failures or trouble or torn else code


def _run(
    options: Options,
    console: Console,
    engine: Engine,
    scenario: Scenario,
    store: Store,
    trouble: list[OutputError],
    arm: Arm,
) -> tuple[Result, bool]:
    progress = console.progress(len(scenario.seeds) * len(scenario.variants))

    def ended(outcome: Outcome) -> None:
        progress.step(f"{outcome.variant} seed {outcome.seed}")
        console.detail(_line(outcome))

    def cannot_keep(error: OutputError) -> None:
        progress.clear()
        trouble.append(error)
        console.error(error)
        console.say("continuing without keeping further runs; the results will still be shown")

    try:
        return api.run_all(
            engine,
            scenario,
            jobs=options.jobs,
            store=store,
            traces=options.trace,
            on_outcome=ended,
            on_trouble=cannot_keep,
            arm=arm,
        )
    finally:
        progress.clear()


def _line(outcome: Outcome) -> str:
    who = f"{outcome.variant} seed {outcome.seed}"
    if isinstance(outcome, Failure):
        return f"{who}: failed"
    place = outcome.record.get("place") or {}
    length = "" if place.get("untimed") else f"{outcome.sim_s:.3g} s "
    speed = f"{length}{'measured' if place else 'simulated'} in {outcome.wall_s:.2f} s"
    return f"{who}: {outcome.volume}, {speed}"


def _tell_failures(result: Result, console: Console) -> None:
    """The first failure of each variant in full, the others as a count."""
    for variant in dict.fromkeys(f.variant for f in result.failures):
        of_variant = [f for f in result.failures if f.variant == variant]
        first = of_variant[0]
        more = f" ({plural(len(of_variant) - 1, 'more seed')} failed)" if len(of_variant) > 1 else ""
        console.error(RunError(f"{variant} seed {first.seed}: {first.message}{more}", hint=first.hint))


def _tell_torn_traces(result: Result, console: Console) -> bool:
    """The first trace that could not be written, the others as a count."""
    torn = [run for run in result.runs.values() if run.trace_error]
    if torn:
        first, more = torn[0], f" ({plural(len(torn) - 1, 'more trace')} too)" if len(torn) > 1 else ""
        text = f"the trace of {first.variant} seed {first.seed} is incomplete: {first.trace_error}{more}"
        console.error(OutputError(text, hint="the metrics are not affected"))
    return bool(torn)


def _tell_kept(result: Result, store: Store, interrupted: bool, console: Console) -> None:
    total = len(result.seeds) * len(result.scenario.variants)
    kept = len(result.runs)
    if kept == 0:
        # The failures have been reported, and there is no result to come back to.
        console.say(f"{'interrupted: ' if interrupted else ''}none of {total} runs finished, so nothing is kept")
    elif interrupted:
        console.say(
            f"interrupted: {kept} of {total} runs finished and are kept; `schedlab report {store.path}` shows them"
        )
    elif kept < total:
        console.say(f"{kept} of {total} runs finished; `schedlab report {store.path}` shows them again")
    else:
        console.say(f"stored in {store.path}; `schedlab report {store.path}` shows it again")


def _store(options: Options, scenario: Scenario) -> Store:
    if options.resume and options.out is None:
        raise InputError("--resume needs the directory of the interrupted comparison", hint="name it with --out DIR")
    out = options.out or _default_out(scenario.name)
    return Store(out, api.manifest(scenario), resume=options.resume)


def _default_out(name: str) -> Path:
    """A directory that does not exist yet, named after the scenario and the time."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "scenario"
    base = Path("schedlab-results") / f"{safe[:80]}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path
