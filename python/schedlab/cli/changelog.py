"""`schedlab changelog`: what changed for a user from one kernel row to another."""

from __future__ import annotations

from pathlib import Path

from schedlab import documents, upgrades
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.render import changelog


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0."""
    found = upgrades.changes(engine or native_engine(), options.before, options.after, options.shown_in)
    document = documents.dumps(found, indent=1)
    if options.json == "-":
        console.result(document)
        return 0
    if options.markdown:
        console.result(changelog.markdown(found))
    else:
        console.text(changelog.text(found))
    if options.json:
        write_file(Path(options.json), document + "\n")
    return 0
