"""`schedlab doctor`: what this machine can do, what would add the rest, and putting back what a killed run left."""

from __future__ import annotations

from pathlib import Path

from schedlab import documents
from schedlab.arms import doctor
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.engine import Engine, native_engine
from schedlab.render.grid import columns


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0; an error if something could not be put back or fetched."""
    engine = engine or native_engine()
    if options.restore:
        for line in doctor.restore() or ["nothing was left of a killed run"]:
            console.result(line)
        return 0
    if options.fetch:
        doctor.fetch(engine, options.fetch, console.result)
        return 0
    findings = doctor.examine(engine)
    document = documents.dumps(doctor.to_json(findings), indent=1)
    if options.json == "-":
        console.result(document)
        return 0
    if options.json:
        write_file(Path(options.json), document + "\n")
    rows = [["", "what", "", "for", "to add it"]]
    rows += [["ok" if f.there else "--", f.name, f.says, f.needed_for, f.command or ""] for f in findings]
    console.result("\n".join(columns(rows, "<<<<<")))
    return 0
