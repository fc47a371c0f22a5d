"""A sweep as a page: the answer, the pictures, the tables, what was run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.render.blocks import Block, Chart, Heading, Items, Paragraph, Table
from schedlab.render.sweep import flip_rows, growth_rows, map_rows, notes, sentences
from schedlab.render.sweep_charts import charts

if TYPE_CHECKING:
    from schedlab.sweeping.judged import Judged


def page(judged: Judged) -> list[Block]:
    """The whole page."""
    manifest = judged.experiment.manifest
    sweep = manifest["sweep"]
    drawn = charts(judged)
    parts: list[Block] = [Heading(1, f"Sweep: {sweep['name']}"), *(Paragraph(text) for text in sentences(judged))]
    if sweep.get("summary"):
        parts.append(Paragraph(sweep["summary"]))
    parts.append(Items(notes(judged)))
    for map in judged.maps:
        parts.append(Heading(2, map.name))
        parts += _charts(drawn, f"{map.metric.name}-{map.b}")
        parts.append(Table(map_rows(judged, map)))
    for title, rows in (("Where the verdict flips", flip_rows(judged)), ("Growth", growth_rows(judged.growths))):
        if len(rows) > 1:
            parts += [Heading(2, title), Table(rows)]
    parts += [Chart(_name(name), spec) for name, spec in drawn.items() if name.startswith("growth-")]
    parts += [Heading(2, "What was run"), Table(_setup(judged))]
    failures = judged.experiment.failures
    if failures:
        rows = [["point", "variant", "seed", "message"]]
        rows += [[judged.experiment.label(r.point), r.variant, str(r.seed), f.message] for r, f in failures]
        parts += [Heading(2, "Failed runs"), Table(rows)]
    return parts


def _charts(drawn: dict[str, dict[str, object]], name: str) -> list[Block]:
    return [Chart(_name(key), spec) for key, spec in drawn.items() if key in (f"map-{name}", f"response-{name}")]


def _name(text: str) -> str:
    """An id of an element."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text)


def _setup(judged: Judged) -> list[list[str]]:
    manifest = judged.experiment.manifest
    sweep, provenance = manifest["sweep"], manifest.get("provenance", {})
    first = judged.experiment.scenarios[0]
    rows = [
        ["what", "value"],
        ["sweep", Path(sweep.get("file", "")).name],
        ["scenario", Path(sweep.get("scenario", "")).name],
        ["machine of the first point", f"{first.machine.name}, {first.machine.cpus} CPUs"],
        ["duration of the first point", f"{first.duration_ns / 1e9:g} s, {first.warmup_ns / 1e9:g} s not measured"],
        ["seeds", ", ".join(map(str, first.seeds))],
        ["engine", f"{manifest['engine']}, build {manifest['build'][:12]}"],
        ["plan", manifest["plan"]],
        ["command", str(provenance.get("command", ""))],
    ]
    names = [axis.name for axis in judged.experiment.axes]
    levels = zip(*judged.experiment.points, strict=True)
    return rows + [
        [f"axis {name}", ", ".join(dict.fromkeys(level.label for level in own))]
        for name, own in zip(names, levels, strict=True)
    ]
