"""`schedlab list`: all items of one kind, or the details of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab import api, documents, spelling
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine
from schedlab.errors import InputError
from schedlab.render import listing

MORE = {
    "workloads": "structure, parameters, options, metrics and what is simplified",
    "machines": "the source of every number",
    "kernels": "how it differs from the one before",
}
"""Details that the list does not show."""
OF_A_KERNEL = ("features", "knobs", "kernels")
"""Lists that are about one kernel."""


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0."""
    if options.kernel and options.kind not in OF_A_KERNEL:
        hint = f"it goes with {', '.join(OF_A_KERNEL[:-1])} and {OF_A_KERNEL[-1]}"
        raise InputError(f"--kernel has no effect on a list of {options.kind}", hint=hint)
    kernel = options.kernel or (options.name if options.kind == "kernels" else None)
    rows = api.listing(options.kind, kernel, engine=engine)
    if options.name and options.kind != "kernels":
        rows = [_named(options.name, options.kind, rows)]
    document = documents.dumps(rows)
    if options.json == "-":
        console.result(document)
        return 0
    one = options.name and options.kind != "kernels"
    console.text(listing.detail(options.kind, rows[0]) if one else listing.text(options.kind, rows, kernel))
    if options.kind in MORE and not options.name and not options.kernel:
        console.say(f"`schedlab list {options.kind} NAME` shows {MORE[options.kind]}")
    if options.json:
        write_file(Path(options.json), document + "\n")
    return 0


def _named(name: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    for row in rows:
        # A scenario may leave out the unit in the name of a knob.
        if name in (row["id"], str(row["id"]).removesuffix("_ns") if kind == "knobs" else None):
            return dict(row)
    known = [str(row["id"]) for row in rows]
    raise InputError(f"there is no {kind[:-1]} `{name}`", hint=spelling.hint(name, known, "there are:"))
