"""`schedlab sweep`: one scenario at many points, run anywhere, judged point by point."""

from __future__ import annotations

import re
from pathlib import Path

from schedlab import api
from schedlab.cli import EXIT_INTERRUPTED, sweep_output
from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.gate import varies
from schedlab.render.cells import plural
from schedlab.statistics import SMALLEST_N
from schedlab.sweeping import definition, store
from schedlab.sweeping.definition import Sweep
from schedlab.sweeping.plan import Plan, Planned, cpus, metrics, plan, shard
from schedlab.sweeping.running import Running, executor

FOLDER = Path("schedlab-results") / "sweeps"


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, 3 if some runs failed, or 130."""
    engine = engine or native_engine()
    _check(options)
    if options.merge:
        if options.out is None:
            raise InputError("--merge needs a directory for the joined result", hint="name it with --out DIR")
        return sweep_output.merge(options, options.out, console)
    if options.sweep is None:
        raise InputError("no sweep is named", hint="name a sweep file, such as sweeps/base-slice.toml")
    file = Path(options.sweep)
    sweep = definition.read(file, lambda path, sets: cpus(engine, path, sets), short=options.short)
    if options.emit:
        from schedlab.sweeping import recipes

        out = options.out or _default_out(sweep)
        console.result(recipes.text(options.emit, sweep.name, file, out, options.shards, options.short).rstrip())
        return 0
    planned = plan(engine, sweep)
    metrics(planned)
    _warn_of_seeds(planned, console)
    out = options.out or _default_out(sweep)
    if options.dry_run:
        return _dry_run(engine, planned, out, options, console)
    with Running(planned, out, api.provenance(), part=options.shard, retry=options.retry) as running:
        _print_plan(planned, running, out, options, console)
        interrupted = _run(planned, running, options, console)
    if interrupted:
        console.say("interrupted: the finished runs are kept; the same command resumes")
        return EXIT_INTERRUPTED
    experiment = store.read(out)
    sweep_output.tell_failures(experiment, console)
    if options.shard and experiment.missing:
        console.say(f"{plural(experiment.missing, 'run')} of other shards not in {out}; `--merge` joins shards")
        return 3 if experiment.failures else 0
    sweep_output.show(experiment, options, console)
    return 3 if experiment.failures else 0


def _check(options: Options) -> None:
    if options.dask and options.emit:
        raise InputError("--dask runs the sweep and --emit prints how to run it", hint="omit one of them")
    if options.merge and (options.shard or options.dask or options.dry_run or options.emit):
        raise InputError("--merge joins results and runs nothing", hint="omit the other options")
    sweep_output.check(options)
    if options.dask:
        from schedlab.sweeping import cluster

        cluster.check(options.dask)


def _warn_of_seeds(planned: Plan, console: Console) -> None:
    """With fewer seeds than an interval needs, no change is judged at any point."""
    fewest = min((len(s.seeds) for s in planned.scenarios if varies(s) and len(s.variants) > 1), default=SMALLEST_N)
    if fewest < SMALLEST_N:
        console.say(
            f"{plural(fewest, 'seed')} per point: a 95% interval needs at least {SMALLEST_N}, so no change is judged"
        )


def _print_plan(planned: Plan, running: Running, out: Path, options: Options, console: Console) -> None:
    done = sum(name in running.ended for name in planned.distinct)
    others = len(running.ended) - done
    part = f"shard {options.shard[0]} of {options.shard[1]}, " if options.shard else ""
    words = f"{part}{plural(len(running.todo), 'run')} of {plural(len(planned.sweep.points), 'point')} to do"
    console.say(words + (f", {done} done" if done else "") + f"; stored in {out}")
    if others:
        console.say(f"{plural(others, 'run')} of other plans or of another build of the engine stay in {out}")


def _run(planned: Plan, running: Running, options: Options, console: Console) -> bool:
    """Whether Ctrl-C cut it short."""
    failures = 0

    def failed_so_far() -> str:
        return f"{failures} failed" if failures else ""

    def ended(run: Planned, failed: bool) -> None:
        nonlocal failures
        failures += failed
        where = f"{planned.sweep.points[run.point].label}: {run.variant} seed {run.seed}"
        bar.step(where)
        console.detail(where + (" failed" if failed else ""))

    bar = console.progress(len(running.todo), note=failed_so_far)
    try:
        jobs = options.jobs or api.default_jobs()
        to = executor(
            planned,
            jobs,
            dask=options.dask,
            time_limit_s=float(options.time_limit),
            memory_mb=options.memory,
            say=console.say,
        )
        running.run(to, ended)
    except KeyboardInterrupt:
        return True
    finally:
        bar.clear()
    return False


def _dry_run(engine: Engine, planned: Plan, out: Path, options: Options, console: Console) -> int:
    from schedlab.render import sweep as render
    from schedlab.sweeping.estimate import estimate

    ended = store.ended_in(out)
    todo = [run for name, run in planned.distinct.items() if name not in ended]
    if options.shard:
        todo = shard(todo, *options.shard)
    known = estimate(engine, planned, todo, store.seconds_in(out, planned))
    console.text(render.plan(planned, todo, known, options.jobs or api.default_jobs(), out))
    return 0


def _default_out(sweep: Sweep) -> Path:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", sweep.name).strip("-.") or "sweep"
    return FOLDER / (safe[:80] + ("-short" if sweep.short else ""))
