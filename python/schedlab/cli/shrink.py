"""`schedlab shrink`: the smallest scenario with a property, as TOML on stdout."""

from __future__ import annotations

from schedlab.cli import EXIT_INTERRUPTED
from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.cli.scenario import loaded
from schedlab.engine import Engine, native_engine
from schedlab.render.cells import plural
from schedlab.shrinking.keep import parse
from schedlab.shrinking.shrink import Shrunk, Size, shrink


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """0, also if the tests ran out; 130 if Ctrl-C ended them. Either way the smallest scenario so far is printed."""
    engine = engine or native_engine()
    keep = parse(options.keep)
    scenario = loaded(options, engine)
    found = shrink(
        engine, scenario, keep, tests=options.tests, jobs=options.jobs, accepted=lambda s: console.detail(_words(s))
    )
    console.page(f"# {scenario.file}, shrunk; it still shows: {keep}\n{found.text}".rstrip("\n"))
    console.say(f"{_words(found.before)} -> {_words(found.after)}; {_ended(found, options.tests)}")
    return 0 if found.finished or found.tests >= options.tests else EXIT_INTERRUPTED


def _words(size: Size) -> str:
    counts = ((size.cpus, "CPU"), (size.seeds, "seed"), (size.tasks, "task"), (size.values, "value"))
    cpus, seeds, tasks, values = (plural(count, noun) for count, noun in counts)
    return f"{cpus}, {seeds}, {size.duration_ns / 1e6:g} ms, {tasks}, {values}"


def _ended(found: Shrunk, tests: int) -> str:
    if found.finished:
        return f"no smaller one shows it ({plural(found.tests, 'candidate')} run)"
    why = "--tests allows no more" if found.tests >= tests else "interrupted"
    return f"{why} after {plural(found.tests, 'candidate')}; there may be a smaller one"
