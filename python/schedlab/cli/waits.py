"""`schedlab waits`: the longest waits for a CPU in a trace, with their causes."""

from __future__ import annotations

from pathlib import Path

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError

OF_ONE_TASK = 20
"""How many waits are listed of a task that is named."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, however long the waits are."""
    from schedlab.render.document import dump
    from schedlab.render.waits import document, text

    chosen = engine or native_engine()
    trace, task = str(options.source), options.task
    keep = OF_ONE_TASK if task else 1
    found = interruptible(chosen, lambda cancel: chosen.waits(trace, keep=keep, only=task, cancel=cancel))
    if task and not found["tasks"]:
        hint = "use a pid or a name from the trace; `schedlab waits TRACE` lists all tasks that waited"
        raise InputError(f"no task {task} waited for a CPU", file=trace, hint=hint)
    if options.json == "-":
        console.result(dump(document(trace, found)))
        return 0
    console.result(text(trace, found, task=task, first=options.first))
    if options.json:
        write_file(Path(options.json), dump(document(trace, found)) + "\n")
    return 0
