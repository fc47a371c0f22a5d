"""`schedlab sweep`: one scenario at many points, run anywhere, judged point by point."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from schedlab import api
from schedlab.cli import EXIT_INTERRUPTED, sweep_output
from schedlab.cli.console import Console
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.render.cells import plural
from schedlab.sweep import definition, store
from schedlab.sweep.definition import Sweep
from schedlab.sweep.job import Answer, Executor, Limits, job
from schedlab.sweep.local import Local
from schedlab.sweep.plan import Plan, Planned, cpus, metrics, plan, shard

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
        from schedlab.sweep import recipes

        out = options.out or _default_out(sweep)
        console.result(recipes.text(options.emit, sweep.name, file, out, options.shards, options.short).rstrip())
        return 0
    planned = plan(engine, sweep)
    metrics(planned)
    out = options.out or _default_out(sweep)
    if options.dry_run:
        return _dry_run(engine, planned, out, options, console)
    with _Kept(out, planned, options.shard) as kept:
        todo = kept.todo(planned, options)
        _tell(planned, kept, todo, out, options, console)
        interrupted = _run(planned, kept, todo, options, console)
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
        from schedlab.sweep import cluster

        cluster.check(options.dask)


class _Kept:
    """The experiment that is being written."""

    def __init__(self, out: Path, planned: Plan, part: tuple[int, int] | None) -> None:
        self._writer = store.Writer(out, planned, api.provenance(), part)
        self.ended = self._writer.ended

    def todo(self, planned: Plan, options: Options) -> list[Planned]:
        """The runs that have not ended; with --retry, the failed ones too."""
        done = {name for name, status in self.ended.items() if status == "ok" or not options.retry}
        runs = [run for name, run in planned.distinct.items() if name not in done]
        return shard(runs, *options.shard) if options.shard else runs

    def append(self, answer: Answer) -> None:
        self._writer.append(answer.line)

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _tell(planned: Plan, kept: _Kept, todo: Sequence[Planned], out: Path, options: Options, console: Console) -> None:
    done = sum(name in kept.ended for name in planned.distinct)
    others = len(kept.ended) - done
    part = f"shard {options.shard[0]} of {options.shard[1]}, " if options.shard else ""
    words = f"{part}{plural(len(todo), 'run')} of {plural(len(planned.sweep.points), 'point')} to do"
    console.say(words + (f", {done} done" if done else "") + f"; stored in {out}")
    if others:
        console.say(f"{plural(others, 'run')} of other plans or of another build of the engine stay in {out}")


def _run(planned: Plan, kept: _Kept, todo: Sequence[Planned], options: Options, console: Console) -> bool:
    """Whether Ctrl-C cut it short."""
    if not todo:
        return False
    began, failures, ended = time.monotonic(), 0, 0
    names = {run.id: run for run in todo}

    def rate() -> str:
        speed = ended / max(time.monotonic() - began, 1e-9)
        return f"{speed:.3g} runs/s" + (f", {failures} failed" if failures else "")

    bar = console.progress(len(todo), note=rate)
    stream: Iterator[Answer] | None = None
    try:
        executor, jobs = _executor(planned, options, console), [job(planned, run) for run in todo]
        stream = executor.answers(jobs)
        for answer in stream:
            kept.append(answer)
            ended, failures = ended + 1, failures + answer.failed
            run = names[answer.id]
            where = f"{planned.sweep.points[run.point].label}: {run.variant} seed {run.seed}"
            bar.step(where)
            console.detail(where + (" failed" if answer.failed else ""))
    except KeyboardInterrupt:
        return True
    finally:
        bar.clear()
        _close(stream)
    return False


def _close(stream: Iterator[Answer] | None) -> None:
    close: Callable[[], None] | None = getattr(stream, "close", None)
    if close:
        close()


def _executor(planned: Plan, options: Options, console: Console) -> Executor:
    limits = Limits(
        seconds=float(options.time_limit),
        memory_mb=options.memory or _memory_mb(1 if options.dask else options.jobs or api.default_jobs()),
        folder=planned.sweep.scenario.parent.absolute(),
        build=planned.build,
    )
    if options.dask:
        from schedlab.sweep.cluster import Cluster

        return Cluster(options.dask, options.jobs or api.default_jobs(), limits, planned, console.say)
    return Local(options.jobs or api.default_jobs(), limits)


def _memory_mb(jobs: int) -> int:
    """What one of several runs may use: its share of the memory of this machine."""
    import os

    return max(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (jobs << 20))


def _dry_run(engine: Engine, planned: Plan, out: Path, options: Options, console: Console) -> int:
    from schedlab.render import sweep as render
    from schedlab.sweep.estimate import estimate

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
