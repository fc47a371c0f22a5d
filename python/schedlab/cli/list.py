"""`schedlab list`: what exists of one kind, a line each."""

from __future__ import annotations

import json
from pathlib import Path

from schedlab import api
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.engine import Engine
from schedlab.render.grid import columns


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0."""
    rows = api.listing(options.kind, options.kernel, engine=engine)
    document = json.dumps(rows, indent=2, ensure_ascii=False)
    if options.json == "-":
        console.result(document)
        return 0
    if rows:
        console.result("\n".join(columns([[str(r["id"]), str(r["summary"])] for r in rows], "<<")))
    if options.json:
        write_file(Path(options.json), document + "\n")
    return 0
