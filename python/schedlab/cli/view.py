"""`schedlab view`: the timelines of traces, or of one seed of a stored result, in a browser on this computer."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from schedlab import api
from schedlab.cli.console import Console
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.closer import Repeat, loaded, timeline_of, typical_seed
from schedlab.engine import Cancel, Engine, native_engine
from schedlab.errors import ArmError, InputError, reason
from schedlab.render.losses import losses
from schedlab.timeline import Timeline, of_traces

SHOWN = 12
"""How many seeds a hint lists."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0 after Ctrl-C. The address goes to stdout; it is the only one that answers."""
    from schedlab.render.view import view_page
    from schedlab.serving import PageServer

    chosen = engine or native_engine()
    title, found, differs_ns = interruptible(chosen, lambda cancel: _timelines(options, chosen, cancel))
    if not any(one.slices for one in found.values()):
        raise InputError("it contains no task switch, so there is nothing to show", file=str(options.sources[0]))
    for name, one in found.items():
        for loss in losses(0, one.breaks):
            console.say(f"{name}: {loss}; nothing is shown across the gap")
    page = view_page(title, found, differs_ns)
    try:
        server = PageServer(page, options.port)
    except OSError as e:
        raise ArmError(f"cannot listen on port {options.port}: {reason(e)}", hint="omit --port") from None
    with server:
        console.result(server.url)
        console.flush()
        console.say("open this address in a browser on this computer; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.say("ended")
    return 0


def _timelines(options: Options, engine: Engine, cancel: Cancel) -> tuple[str, dict[str, Timeline], int | None]:
    """A title, the timelines by name, and when they first differ, if that is known."""
    sources: Sequence[Path] = options.sources
    if any(source.is_dir() for source in sources):
        if len(sources) > 1:
            raise InputError("a stored result is viewed alone", hint="name one directory, or traces only")
        return _of_result(sources[0], options.seed, engine, cancel)
    if options.seed is not None:
        raise InputError("--seed selects a run of a stored result, not of a trace", hint="omit it")
    names = _names(sources)
    return ", ".join(names), {n: _of_trace(s, engine, cancel) for n, s in zip(names, sources, strict=True)}, None


def _of_trace(source: Path, engine: Engine, cancel: Cancel) -> Timeline:
    """Any format that the engine reads, as the text that the reduction reads."""
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        text = Path(folder) / "trace.ftrace"
        engine.convert(str(source), str(text), cancel=cancel)
        return of_traces({"": text})


def _of_result(
    folder: Path, seed: int | None, engine: Engine, cancel: Cancel
) -> tuple[str, dict[str, Timeline], int | None]:
    comparison = api.report(folder)
    if comparison.arm != "sim":
        raise InputError("the runs of this result were not simulated", hint="view the traces that --trace wrote")
    a, b = comparison.pairs[0] if comparison.pairs else (comparison.columns[0].name, None)
    chosen = seed if seed is not None else typical_seed(comparison, a, b)[0] if b else comparison.seeds[0]
    columns = [c for c in comparison.columns if c.name in (a, b)]
    names = " and ".join(c.name for c in columns)
    ran = [seed for seed in comparison.seeds if all(seed in c.runs for c in columns)]
    if chosen is None or not ran:
        hint = f"`schedlab report {folder}` shows why"
        raise InputError(f"no seed ran with {names}", file=str(folder), hint=hint)
    if chosen not in ran:
        more = f" and {len(ran) - SHOWN} more" if len(ran) > SHOWN else ""
        hint = f"these seeds did: {', '.join(map(str, ran[:SHOWN]))}{more}"
        raise InputError(f"seed {chosen} did not run with {names}", file=str(folder), hint=hint)
    repeat = Repeat(engine, loaded(engine, comparison.scenario), chosen, cancel)
    found = {c.name: timeline_of(repeat, c.name, c.runs[chosen].digest) for c in columns}
    divergence = engine.explain(repeat.scenario, a, b, chosen, cancel=cancel) if b else None
    return f"{comparison.scenario.name}, seed {chosen}", found, int(divergence["time_ns"]) if divergence else None


def _names(sources: Sequence[Path]) -> list[str]:
    """File names, as short as they remain distinct."""
    names = [source.name for source in sources]
    return names if len(set(names)) == len(names) else [str(source) for source in sources]
