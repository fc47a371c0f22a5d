"""`schedlab convert`: the same trace in another format."""

from __future__ import annotations

from schedlab.cli.console import Console
from schedlab.cli.interrupt import interruptible
from schedlab.cli.missing_records import say_missing
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0. The file appears when it is complete; stdout stays empty because the file is the result."""
    engine = engine or native_engine()
    source, target = str(options.source), str(options.target)
    copied = interruptible(engine, lambda cancel: engine.convert(source, target, buffer=options.buffer, cancel=cancel))
    kernel = f"kernel {copied['kernel']}, " if copied["kernel"] else ""
    console.say(f"{target}: {kernel}{copied['records']:,} records, {copied['span_ns'] / 1e9:.6f} s")
    say_missing(console, copied)
    if not copied["events"]:
        console.say("none of them is a scheduler event")
    return 0
