"""`schedlab doctor`: what this machine supports, how to add what is missing, and the repair after a killed run."""

from __future__ import annotations

import textwrap
from pathlib import Path

from schedlab import documents
from schedlab.arms import calibrate, doctor
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.render.grid import WIDTH


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0; an error if something could not be restored or fetched."""
    engine = engine or native_engine()
    if options.restore:
        for line in doctor.restore() or ["no killed run has left changed settings"]:
            console.text(line)
        return 0
    if options.fetch:
        doctor.fetch(engine, options.fetch, console.result)
        return 0
    findings = doctor.examine(engine)
    if options.measure:
        findings += doctor.measure(calibrate.host(quick=True, traced=False))
    document = documents.dumps(doctor.to_json(findings), indent=1)
    if options.json == "-":
        console.result(document)
        return 0
    if options.json:
        write_file(Path(options.json), document + "\n")
    console.text("\n".join(_lines(findings)))
    return 0


def _lines(findings: list[doctor.Finding]) -> list[str]:
    """A line per finding; what is missing has further lines with its use and how to add it."""
    width = max(len(f.name) for f in findings)
    lines = []
    for f in findings:
        words = [f.says]
        if not f.there:
            words += [f"needed for {f.needed_for}", *([f"to add it: {f.command}"] if f.command else [])]
        filled = [line for text in words for line in _filled(text, width + 6)]
        lines.append(f"{'ok' if f.there else '--'}  {f.name:{width}}  {filled[0]}")
        lines += [f"{'':{width + 6}}{line}" for line in filled[1:]]
    return lines


def _filled(words: str, indent: int) -> list[str]:
    """Lines that fit next to the names; paths and commands are not broken within a word."""
    return textwrap.wrap(words, WIDTH - indent, break_long_words=False, break_on_hyphens=False) or [""]
