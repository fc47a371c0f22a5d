"""`schedlab replay`: how often a kernel row decides what the recorded kernel decided."""

from __future__ import annotations

from pathlib import Path

from schedlab.cli.console import Console, write_file
from schedlab.cli.interrupt import interruptible
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.native.replayed import Answer


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, whatever the agreement is."""
    from schedlab.render.agreement import document, explanation, matrix, report
    from schedlab.render.document import dump

    engine = engine or native_engine()
    trace = str(options.source)
    for flag, given in (("--explain", options.explain), ("--state", options.state)):
        if options.matrix and given:
            raise InputError(f"{flag} needs a single row", hint="omit --matrix, or choose a row with --kernel")
    reports = interruptible(
        engine,
        lambda cancel: engine.replay(
            trace, options.kernel, matrix=options.matrix, first=options.first, explain=options.explain, cancel=cancel
        ),
    )
    if options.explain:
        why(reports[0]["explanation"], options.explain)
    text = dump(document(trace, reports))
    if options.json == "-":
        console.result(text)
    elif options.explain:
        console.text(explanation(trace, reports[0]))
    else:
        console.text(matrix(trace, reports) if options.matrix else report(trace, reports[0], state=options.state))
    if options.json not in (None, "-"):
        write_file(Path(options.json), text + "\n")
    return 0


def why(answer: Answer, question: tuple[str, int]) -> None:
    """Raise an error with a hint if there is no answer."""
    task, at = question
    if outside := answer.get("outside"):
        first, last = (f"{ns / 1e9:.6f}" for ns in outside)
        raise InputError(
            f"the time {at / 1e9:.6f} s is outside the trace", hint=f"the trace covers {first} s to {last} s"
        )
    pids = answer.get("tasks")
    if pids:
        named = ", ".join(map(str, pids))
        raise InputError(f"{len(pids)} tasks are named {task}", hint=f"name one by its pid: {named}")
    if pids is not None:
        hint = "use a pid or a name from the trace; tasks of other classes do not wait in a fair queue"
        raise InputError(f"the trace has no task {task} of the fair class before {at / 1e9:.6f} s", hint=hint)
