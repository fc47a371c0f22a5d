"""`schedlab replay`: how often a kernel row decides what the recorded kernel decided."""

from __future__ import annotations

from pathlib import Path

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.output import check_paths
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, whatever the agreement is."""
    from schedlab.render.agreement import document, matrix, report
    from schedlab.render.document import dump

    check_paths(options)
    engine = engine or native_engine()
    trace = str(options.source)
    reports = interruptible(
        engine,
        lambda cancel: engine.replay(trace, options.kernel, matrix=options.matrix, first=options.first, cancel=cancel),
    )
    text = dump(document(trace, reports))
    if options.json == "-":
        console.result(text)
    else:
        console.result(matrix(trace, reports) if options.matrix else report(trace, reports[0], state=options.state))
    if options.json not in (None, "-"):
        write_file(Path(options.json), text + "\n")
    return 0
