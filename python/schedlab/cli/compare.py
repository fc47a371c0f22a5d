"""`schedlab compare`: run, keep, judge, show."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from typing import Any

from schedlab import api, gate, regrouped, robust
from schedlab.arms import arm_of
from schedlab.arms.arm import Arm, Keep
from schedlab.cli import EXIT_INTERRUPTED
from schedlab.cli.auto import Auto
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.cli.output import show
from schedlab.cli.scenario import loaded
from schedlab.compare_variants import compare_variants, pairs, settled
from schedlab.design import Design
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, OutputError, RunError
from schedlab.gate import varies
from schedlab.outcome import Failure, Outcome
from schedlab.overrides import engine_overrides
from schedlab.reasons_of_headline import keep_of
from schedlab.render.cells import plural
from schedlab.render.together import needed
from schedlab.robust import Robustness
from schedlab.sameness import same_variants
from schedlab.scenario import Scenario
from schedlab.statistics import SMALLEST_N
from schedlab.statistics.early import import_early
from schedlab.store import Result, Store
from schedlab.validity import model_errors, validated

BUDGET_SIMULATED, BUDGET_REAL = 100, 40
"""The most seeds that `--seeds auto` runs unless it names a number."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, 1, 3 or 130."""
    engine = engine or native_engine()
    scenario = _scenario(options, engine)
    _check(options, scenario, console)
    design = api.design_of(scenario, auto=isinstance(options.seeds_or_auto, Auto), noise_floor=options.noise_floor)
    arm = arm_of(scenario.arm, engine, console.detail, keep=_keep(options, scenario))
    arm.prepare(scenario)
    try:
        store = _store(options, scenario, design, engine)
    except BaseException:
        arm.close()
        raise
    for words in (*arm.remarks(), *_declared(design)):
        console.say(words)
    if store.finished:
        untraced = ", whose traces are not written again" if options.trace else ""
        console.say(f"resuming: {plural(len(store.finished), 'run')} already done{untraced}")
    trouble: list[OutputError] = []
    if scenario.arm == "sim":
        # Not beside real kernels, whose runs it would disturb.
        import_early()
    result, interrupted = _run(options, console, engine, scenario, store, trouble, arm, design)
    _print_failures(result, console)
    torn = _print_torn_traces(result, console)
    code = 0
    if result.runs:
        comparison = compare_variants(result, against=options.against, validity=options.validity)
        if _checked(options, scenario) and not interrupted:
            found = _robustness(options, console, engine, scenario, result)
            comparison = dataclasses.replace(comparison, robustness=found)
        code = show(comparison, options, console, engine)
    _print_stored(result, store, console, interrupted=interrupted)
    if interrupted:
        return EXIT_INTERRUPTED
    return 3 if result.failures or trouble or torn else code


def _keep(options: Options, scenario: Scenario) -> Keep:
    """What the page and the cause of the headline need of the runs."""
    page = options.html is not None
    explained = options.style in ("table", "details") and len(_pairs(options, scenario)) == 1
    return keep_of(scenario, page=page) if page or explained else Keep()


def _scenario(options: Options, engine: Engine) -> Scenario:
    """The scenario with the seeds to run; with `--seeds auto`, with those of the whole budget."""
    options.seeds = None if isinstance(options.seeds_or_auto, Auto) else options.seeds_or_auto
    if isinstance(options.seeds_or_auto, Auto):
        simulated = loaded(options, engine).arm == "sim"
        options.seeds = options.seeds_or_auto.budget or (BUDGET_SIMULATED if simulated else BUDGET_REAL)
    return loaded(options, engine)


def _check(options: Options, scenario: Scenario, console: Console) -> None:
    """Refuse before the first run what could not be answered after the last, and say which variants are the same."""
    errors = model_errors(options.validity) if scenario.arm == "sim" else None
    models = ((m, None if errors is None else validated(scenario, m, errors)) for m in scenario.metrics)
    gate.check(options.fail_on, models)
    gate.check_seeds(options.fail_on, scenario, len(scenario.seeds))
    for words in same_variants(scenario, scenario.arm, _pairs(options, scenario)).values():
        console.say(words)
    least = needed(len(scenario.variants), len(scenario.seeds)) if varies(scenario) else 0
    if len(scenario.variants) > 2 and least:
        pair = f"no two of {len(scenario.variants)} variants can be distinguished with {len(scenario.seeds)} seeds"
        console.say(f"{pair}; that takes at least {least} (--seeds {least})")
    if options.robust and scenario.arm != "sim":
        raise InputError("--robust varies the simulated machine", hint="omit it, or use --arm sim")


def _pairs(options: Options, scenario: Scenario) -> tuple[tuple[str, str], ...]:
    return pairs([v.name for v in scenario.variants], options.against)


def _declared(design: Design) -> list[str]:
    """What is declared before the first run."""
    lines = []
    if design.looks:
        *looks, last = map(str, design.looks)
        words = f"{', '.join(looks)} and {last}" if looks else last
        lines.append(f"looks after {words} seeds and stops once the verdicts are settled (5% for all looks together)")
    if design.again:
        lines.append("the first variant is also run with other seeds for the noise floor")
    return lines


def _checked(options: Options, scenario: Scenario) -> bool:
    """Whether the comparison is repeated with other costs and ties, or with the other grouping."""
    return scenario.arm == "sim" and bool(options.robust or regrouped.seeds(scenario, always=False))


def _robustness(options: Options, console: Console, engine: Engine, scenario: Scenario, result: Result) -> Robustness:
    """The same comparison with drawn costs and ties, and with the other grouping; kept beside the runs."""
    given = {key: getattr(options, key) for key in ("machine", "duration", "noise")}
    overrides = engine_overrides(result.seeds, options.overrides, given) or {}
    draws = _draws(options, console, engine, scenario, overrides) if options.robust else []
    found = robust.robustness(scenario, draws, _regrouped(options, console, engine, scenario, result))
    if result.path:
        write_file(result.path / robust.FILE, robust.dump(found))
    return found


def _regrouped(
    options: Options, console: Console, engine: Engine, scenario: Scenario, result: Result
) -> regrouped.Regrouped | None:
    """A few seeds with the other grouping of the tasks."""
    grouping = regrouped.other(scenario)
    seeds = result.seeds[: regrouped.seeds(scenario, always=bool(options.robust))]
    if grouping is None or not seeds:
        return None
    console.say(f"repeating {plural(len(seeds), 'seed')} {regrouped.WORDS[grouping]}")
    given = {key: getattr(options, key) for key in ("machine", "duration", "noise")}
    overrides = engine_overrides(seeds, options.overrides, given) or {}
    found, interrupted = api.run_all(
        engine, regrouped.regroup(engine, scenario, grouping, overrides), jobs=options.jobs
    )
    if interrupted:
        raise KeyboardInterrupt
    return regrouped.regrouped(grouping, compare_variants(found, against=options.against)) if found.runs else None


def _draws(
    options: Options, console: Console, engine: Engine, scenario: Scenario, overrides: dict[str, Any]
) -> list[dict[robust.Key, str]]:
    """The outcomes with drawn costs and ties."""
    console.say(f"repeating the comparison {options.robust} times with other costs and ties (--robust)")
    progress = console.progress(options.robust, engine.under_way)
    draws = []
    try:
        for draw in range(1, options.robust + 1):
            drawn, interrupted = api.run_all(engine, robust.drawn(engine, scenario, draw, overrides), jobs=options.jobs)
            if interrupted:
                raise KeyboardInterrupt
            draws.append(robust.outcomes(compare_variants(drawn, against=options.against).judgements()))
            progress.step(f"draw {draw}")
    finally:
        progress.clear()
    return draws


def _run(
    options: Options,
    console: Console,
    engine: Engine,
    scenario: Scenario,
    store: Store,
    trouble: list[OutputError],
    arm: Arm,
    design: Design,
) -> tuple[Result, bool]:
    progress = console.progress(0)

    def stage(runs: int) -> None:
        nonlocal progress
        progress.clear()
        progress = console.progress(runs, engine.under_way, shorter=_shorter(scenario))

    def ended(outcome: Outcome) -> None:
        progress.step(f"{outcome.variant} seed {outcome.seed}")
        console.detail(_line(outcome))

    def cannot_keep(error: OutputError) -> None:
        progress.clear()
        trouble.append(error)
        console.error(error)
        console.say("continuing without storing further runs; the results will still be shown")

    def enough(result: Result) -> bool:
        found = settled(result, against=options.against)
        more = "settled" if found else "not settled yet"
        console.detail(f"{len(result.seeds)} seeds: {more}")
        return found

    try:
        return api.run_all(
            engine,
            scenario,
            jobs=options.jobs,
            store=store,
            traces=options.trace,
            on_outcome=ended,
            on_trouble=cannot_keep,
            on_stage=stage,
            arm=arm,
            design=design,
            enough=enough if design.looks else None,
        )
    finally:
        progress.clear()


def _shorter(scenario: Scenario) -> str:
    """How to shorten the runs of a scenario, as flags; empty if they are as short as they can be."""
    ways = [f"--seeds {SMALLEST_N}"] if len(scenario.seeds) > SMALLEST_N and varies(scenario) else []
    if scenario.duration_ns > 2 * scenario.warmup_ns:
        ways.append(f"--duration {scenario.duration_ns / 2e6:.6g}ms")
    return " or ".join(ways)


def _line(outcome: Outcome) -> str:
    who = f"{outcome.variant} seed {outcome.seed}"
    if isinstance(outcome, Failure):
        return f"{who}: failed"
    place = outcome.record.get("place") or {}
    length = "" if place.get("untimed") else f"{outcome.sim_s:.3g} s "
    speed = f"{length}{'measured' if place else 'simulated'} in {outcome.wall_s:.2f} s"
    return f"{who}: {outcome.volume}, {speed}"


def _print_failures(result: Result, console: Console) -> None:
    """The first failure of each variant in full, the others as a count."""
    for variant in dict.fromkeys(f.variant for f in result.failures):
        of_variant = [f for f in result.failures if f.variant == variant]
        first = of_variant[0]
        more = f" ({plural(len(of_variant) - 1, 'more seed')} failed)" if len(of_variant) > 1 else ""
        console.error(RunError(f"{variant} seed {first.seed}: {first.message}{more}", hint=first.hint))


def _print_torn_traces(result: Result, console: Console) -> bool:
    """The first trace that could not be written, the others as a count."""
    torn = [run for run in result.runs.values() if run.trace_error]
    if torn:
        first, more = torn[0], f" ({plural(len(torn) - 1, 'more trace')} too)" if len(torn) > 1 else ""
        text = f"the trace of {first.variant} seed {first.seed} could not be kept: {first.trace_error}{more}"
        console.error(OutputError(text, hint="the metrics are not affected"))
    return bool(torn)


def _print_stored(result: Result, store: Store, console: Console, *, interrupted: bool) -> None:
    # A look at the data may have ended the comparison before all seeds; Ctrl-C ends it before the next look.
    seeds = result.scenario.seeds if interrupted else result.seeds
    total = len(seeds) * len(result.scenario.variants) + len(result.design.again[: len(seeds)])
    kept = len(result.runs)
    before = "interrupted: " if interrupted else ""
    if kept == 0:
        # The failures have been reported, and there is no result to come back to.
        console.say(f"{before}none of {total} runs finished, so nothing is stored")
    elif store.kept < kept:
        stored = f"{store.kept} of {plural(kept, 'finished run')}"
        console.say(f"{before}{stored} are stored; the same command with --resume --out {store.path} runs the others")
    elif interrupted:
        console.say(
            f"interrupted: {kept} of {total} runs finished and are stored; `schedlab report {store.path}` shows them"
        )
    elif kept < total:
        console.say(f"{kept} of {total} runs finished; `schedlab report {store.path}` shows them again")
    else:
        console.say(f"stored in {store.path}; `schedlab report {store.path}` shows it again")


def _store(options: Options, scenario: Scenario, design: Design, engine: Engine) -> Store:
    if options.resume and options.out is None:
        raise InputError("--resume needs the directory of the interrupted comparison", hint="name it with --out DIR")
    out = options.out or _default_out(scenario.name)
    return Store(out, api.manifest(scenario, design, engine), resume=options.resume)


def _default_out(name: str) -> Path:
    """A directory that does not exist yet, named after the scenario and the time."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "scenario"
    base = Path("schedlab-results") / f"{safe[:80]}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path
