"""`schedlab run`: the metrics of one variant with one seed."""

from __future__ import annotations

from pathlib import Path

from schedlab import api
from schedlab.arms import arm_of, limits
from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.cli.scenario import loaded
from schedlab.engine import ARMS, Engine, native_engine
from schedlab.errors import InputError, OutputError
from schedlab.outcome import Run
from schedlab.render.cells import machine_name, plural
from schedlab.render.grid import columns, value
from schedlab.scenario import Scenario

SHOWN_TASKS = 10


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, or 3 if the trace could not be written; a run that fails raises."""
    engine = engine or native_engine()
    scenario = loaded(options, engine)
    variant = api.pick_variant(scenario, options.variant)
    seed = scenario.seeds[0] if options.seed is None else options.seed
    trace = str(options.trace) if options.trace else None
    run = _ran(options, console, engine, scenario, variant, seed, trace)
    document = _document(scenario, run) if options.json else ""
    if options.json == "-":
        console.result(document)
    else:
        console.text(_text(scenario, run, checked=options.check_determinism))
    if options.json not in (None, "-"):
        write_file(Path(options.json), document + "\n")
    if run.trace_error:
        console.error(
            OutputError(f"the trace could not be kept: {run.trace_error}", hint="the metrics are not affected")
        )
    said = "" if limits.place(run).get("untimed") else f"{run.sim_s:.4g} s "
    traced = f"; trace: {options.trace}" if options.trace and not run.trace_error else ""
    console.say(f"{said}{ARMS[scenario.arm]} in {run.wall_s:.2f} s{traced}")
    return 3 if run.trace_error else 0


def _document(scenario: Scenario, run: Run) -> str:
    from schedlab.render.document import dump, run_document  # slow to import, and most runs do without

    return dump(run_document(scenario, scenario.arm, run))


def _ran(
    options: Options, console: Console, engine: Engine, scenario: Scenario, variant: str, seed: int, trace: str | None
) -> Run:
    check = options.check_determinism
    if scenario.arm == "sim":
        progress = console.progress(1, engine.under_way)
        try:
            return interruptible(
                engine,
                lambda cancel: engine.run(scenario, variant, seed, trace=trace, cancel=cancel, check_determinism=check),
            )
        finally:
            progress.clear()
    if check:
        raise InputError("only the simulator is deterministic", hint="omit --check-determinism or --arm")
    arm = arm_of(scenario.arm, engine, console.detail)
    arm.prepare(scenario)
    for words in arm.remarks():
        console.say(words)
    try:
        return interruptible(arm, lambda cancel: arm.run(scenario, variant, seed, trace=trace, cancel=cancel))
    finally:
        arm.close()


def _text(scenario: Scenario, run: Run, *, checked: bool) -> str:
    where = f"{ARMS[scenario.arm]} {machine_name(scenario)}, {plural(scenario.machine.cpus, 'CPU')}"
    if place := limits.machine({run.variant: [run]}):
        where = f"{ARMS[scenario.arm]} on {place}"
    bounds = limits.of(scenario, scenario.arm, {run.variant: [run]})
    after = "" if bounds.untimed else f" after {run.sim_s:.6g} s"
    head = [
        f"{scenario.name}: {where}; {run.variant} = {run.kernel}, seed {run.seed}",
        f"ended by {run.ended}{after}; {run.volume}",
        f"digest {run.digest}",
    ]
    if checked:
        head.append("deterministic: a second run gave the same trace, event by event")
    if scenario.warmup_ns:
        warmup = f"{scenario.warmup_ns / 1e9:g} s"
        head.append(f"switches and events above count the whole run; the metrics leave out the warm-up of {warmup}")
    metrics = [["metric", "value", "unit"]]
    shown = [(m, None if bounds.suppresses(m) else run.metrics.get(m.name)) for m in scenario.metrics]
    metrics += [[m.name, value(x), m.unit] for m, x in shown]
    blocks = ["\n".join(head), "\n".join(columns(metrics, "<><"))]
    if run.tasks:
        blocks.append(_tasks(run, timed=not (bounds.noisy or bounds.untimed)))
    if remarks := limits.remarks(scenario, {run.variant: [run]}, bounds):
        blocks.append("\n".join(remarks))
    return "\n\n".join(blocks)


def _tasks(run: Run, *, timed: bool) -> str:
    busiest = sorted(run.tasks, key=lambda t: (-t.cpu_ns if timed else -(t.switches or 0), t.pid))[:SHOWN_TASKS]
    rows = [["task", "pid", *(["cpu ms", "wait ms"] if timed else []), "switches", "migrations"]]
    for t in busiest:
        name, pid = (t.name, str(t.pid)) if t.tasks == 1 else (f"{t.name}, {t.tasks:,} ended", "")
        times = [value(t.cpu_ns / 1e6), _milliseconds(t.wait_ns)] if timed else []
        rows.append([name, pid, *times, _count(t.switches), _count(t.migrations)])
    more = run.record.get("tasks_total", len(run.tasks)) - sum(t.tasks for t in busiest)
    lines = columns(rows, "<" + ">" * (len(rows[0]) - 1))
    return "\n".join([*lines, *([f"and {plural(more, 'more task')}"] if more else [])])


def _milliseconds(ns: int | None) -> str:
    return value(None if ns is None else ns / 1e6)


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
