"""`schedlab list`: what exists of one kind, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab import api, documents
from schedlab.cli.console import Console, write_file
from schedlab.cli.parser import Options
from schedlab.engine import Engine
from schedlab.render.grid import columns


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0."""
    rows = api.listing(options.kind, options.kernel, engine=engine)
    document = documents.dumps(rows)
    if options.json == "-":
        console.result(document)
        return 0
    if options.kind == "kernels" and options.kernel and rows:
        console.result(_kernel(rows[0]))
    elif options.kind == "features" and options.kernel:
        console.result("\n".join(columns([_feature(r) for r in rows], "<<<")))
    elif options.kind == "knobs" and options.kernel:
        console.result("\n".join(columns([_knob(r) for r in rows], "<><")))
    elif options.kind == "metrics":
        console.result("\n".join(columns([_metric(r) for r in rows], "<<<<")))
    elif rows:
        console.result("\n".join(columns([[str(r["id"]), str(r["summary"]) + _refused(r)] for r in rows], "<<")))
    if options.json:
        write_file(Path(options.json), document + "\n")
    return 0


def _metric(row: Mapping[str, Any]) -> list[str]:
    """Name, unit, direction and meaning; a sampled metric has every statistic below its name."""
    name = f"{row['id']}.STAT" if row["sampled"] else str(row["id"])
    direction = "" if row["better"] == "neither" else f"{row['better']} is better"
    return [name, "" if row["unit"] == "count" else str(row["unit"]), direction, str(row["summary"])]


def _feature(row: Mapping[str, Any]) -> list[str]:
    """A switch with its default in the one row asked for."""
    (default,) = row["defaults"].values()
    return [row["id"], "on" if default else "off", row["summary"] + _refused(row)]


def _knob(row: Mapping[str, Any]) -> list[str]:
    """A knob with its default in the one row asked for, on one CPU where CPUs count."""
    (default,) = row["defaults"].values()
    scaled = "; grows with the CPUs" if row["scaled"] else ""
    return [row["id"], str(default), row["summary"] + scaled + _refused(row)]


def _refused(row: Mapping[str, Any]) -> str:
    """Where the simulator refuses a feature or knob because it would change nothing, with the reason."""
    refused = row.get("refused") or []
    if not refused:
        return ""
    kernels = "" if not row["modelled"] else f" in {', '.join(r['kernel'] for r in refused)}"
    return f"; refused{kernels}: {refused[0]['why']}"


def _kernel(row: Mapping[str, Any]) -> str:
    """What tells a row from the one before, each rule with the kernel's function and the releases that changed it."""
    head = f"{row['id']}  {row['summary']}"
    before = row["before"]
    if before is None:
        return f"{head}\nthe oldest row"
    lines = [["", f"in {before['id']}", f"in {row['id']}", "function", "changed in"]]
    for d in before["differences"]:
        was, now = ("-" if d[key] is None else d[key] for key in ("was", "is"))
        lines.append([d["name"], was, now, d.get("function") or d["kind"], d.get("since") or ""])
    return "\n".join([head, "", *columns(lines, "<<<<<")])
