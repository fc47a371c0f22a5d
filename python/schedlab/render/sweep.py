"""A sweep as text: the plan before it, the judgements after it, both no wider than a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.render.cells import change, interval, plural
from schedlab.render.grid import columns, value
from schedlab.render.summary import model_sentence

if TYPE_CHECKING:
    from schedlab.sweeping.estimate import Estimate
    from schedlab.sweeping.judged import Cell, Flip, Growth, Judged, Map
    from schedlab.sweeping.plan import Plan, Planned
    from schedlab.sweeping.store import Experiment

MOST_POINTS = 40
"""Points that a plan lists by name."""
NO_LINES = "no two points lie on a line along an axis, so flips and growth cannot be seen"


def plan(planned: Plan, todo: Sequence[Planned], known: Estimate, jobs: int, out: Path) -> str:
    """What a sweep would run, and how long that would take."""
    sweep = planned.sweep
    points, runs = plural(len(sweep.points), "point"), plural(len(planned.runs), "run")
    lines = [f"{sweep.name}: {points}, {runs} ({len(planned.distinct):,} of them different)"]
    lines += [sweep.summary] if sweep.summary else []
    lines += [f"scenario  {sweep.scenario}", f"design    {sweep.design}", f"engine    {planned.engine}, build "]
    lines[-1] += planned.build[:12]
    for axis in sweep.axes:
        labels = [level.label for level in axis.levels]
        if axis.span and not labels:
            labels = [f"{axis.span.low:g} to {axis.span.high:g} {axis.span.unit}".strip()]
        lines.append(f"axis      {axis.name}: {', '.join(labels)}")
    lines += [f"set       {key} = {own}" for key, own in sweep.sets.items()]
    lines += ["", *(f"  {point.label}" for point in sweep.points[:MOST_POINTS])]
    if len(sweep.points) > MOST_POINTS:
        lines.append(f"  and {len(sweep.points) - MOST_POINTS} more")
    lines += ["", f"{plural(len(todo), 'run')} to do, {jobs} at a time, to be stored in {out}"]
    if known.seconds is None:
        lines.append(f"time unknown: {known.how}")
    else:
        lines.append(f"about {duration(known.seconds / jobs)} ({known.how})")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def text(judged: Judged) -> str:
    """All judgements."""
    blocks = ["\n\n".join(sentences(judged))]
    for map in judged.maps:
        better = "" if map.metric.better == "neither" else f", {map.metric.better} is better"
        unit = f" ({map.metric.unit}{better})" if map.metric.unit else better
        rows = map_rows(judged, map)
        align = "<" * len(judged.experiment.axes) + ">>>><"
        blocks.append("\n".join([f"{map.name}{unit}", *columns(rows, align)]))
    flips = flip_rows(judged)
    if len(flips) > 1:
        blocks.append("\n".join(["where the verdict flips", *columns(flips, "<<<<<")]))
    growth = growth_rows(judged.growths)
    if len(growth) > 1:
        blocks.append("\n".join(["growth: value ~ level^slope", *columns(growth, "<<<<>>")]))
    blocks.append("\n".join(notes(judged)))
    return "\n\n".join(blocks)


def sentences(judged: Judged) -> list[str]:
    """Where which variant is better, how certainly, at what cost, and the model error; one sentence for each pair."""
    name, points = judged.experiment.manifest["sweep"]["name"], plural(len(judged.experiment.points), "point")
    pairs = dict.fromkeys((map.a, map.b) for map in judged.maps)
    if not pairs:
        return [f"{name}, simulated at {points}: there is nothing to compare."]
    return [f"{name}, simulated at {points}: {_pair(judged, a, b)}" for a, b in pairs]


def _pair(judged: Judged, a: str, b: str) -> str:
    maps = [map for map in judged.maps if (map.a, map.b) == (a, b)]
    head = next((map for map in maps if _with(map, "better") or _with(map, "worse")), maps[0])
    others = [map for map in maps if map is not head]
    parts = [_headline(judged, head), _elsewhere(b, others), model_sentence(head.model)]
    return " ".join(part for part in parts if part)


def _headline(judged: Judged, map: Map) -> str:
    of, metric = len(map.cells), map.metric.name
    wins = [(map.b, _with(map, "better")), (map.a, _with(map, "worse"))]
    parts = [
        f"{who} has the better {metric} at {len(cells)} of {of}, {_most(judged, cells)}" for who, cells in wins if cells
    ]
    if not parts and (changed := _with(map, "changed")):
        parts = [f"{map.b} changes {metric} against {map.a} at {len(changed)} of {of}, {_most(judged, changed)}"]
    if not parts:
        parts = [f"no difference between {map.b} and {map.a} in {metric} is shown"]
    rest = Counter(cell.judgement.verdict for cell in map.cells if cell.judgement.effect == "none")
    return "; ".join([*parts, *(f"{count} {word}" for word, count in rest.most_common())]) + "."


def _with(map: Map, effect: str) -> list[Cell]:
    return [cell for cell in map.cells if cell.judgement.effect == effect]


def _most(judged: Judged, cells: Sequence[Cell]) -> str:
    """The point with the largest change, and how certain that is."""
    largest = max(cells, key=lambda cell: abs(cell.judgement.difference.estimate or 0.0))
    j = largest.judgement
    sure = f"95% interval {interval(j)}, {plural(j.difference.pairs, 'seed')}" if j.difference.interval else j.verdict
    return f"most at {judged.experiment.label(largest.point)}: {change(j)} ({sure})"


def _elsewhere(b: str, maps: Sequence[Map]) -> str:
    """In which other metrics the second variant is better and worse, and at how many points."""
    parts = []
    for effect in ("worse", "better"):
        found = [(map.metric.name, len(_with(map, effect))) for map in maps if _with(map, effect)]
        if found:
            parts.append(f"{effect} in " + " and ".join(f"{name} (at {plural(n, 'point')})" for name, n in found))
    return f"Elsewhere {b} is {' and '.join(parts)}." if parts else ""


def map_rows(judged: Judged, map: Map) -> list[list[str]]:
    """A head and one row per cell."""
    axes = [axis.name for axis in judged.experiment.axes]
    rows = [[*(_short(name) for name in axes), map.a, map.b, "change", "95% interval", "verdict"]]
    for cell in map.cells:
        j = cell.judgement
        levels = [level.label for level in judged.experiment.points[cell.point]]
        middle = [value(j.difference.median_a), value(j.difference.median_b)]
        rows.append([*levels, *middle, change(j), interval(j), j.verdict])
    return rows


def _short(name: str) -> str:
    """The last word of a key: a column is as wide as its head."""
    return name.rpartition(".")[2]


def flip_rows(judged: Judged) -> list[list[str]]:
    """A head and one row per flip."""
    rows = [["metric", "along", "where", "from", "to"]]
    for map in judged.maps:
        name = map.metric.name if len({(m.a, m.b) for m in judged.maps}) == 1 else map.name
        rows += [[name, _short(f.axis), f.elsewhere or "-", *_ends(f)] for f in judged.flips(map)]
    return rows


def _ends(flip: Flip) -> list[str]:
    ends = ((flip.low, flip.before), (flip.high, flip.after))
    return [f"{label} ({cell.judgement.verdict})" for label, cell in ends]


def growth_rows(growths: Sequence[Growth]) -> list[list[str]]:
    """A head and one row per fitted line."""
    rows = [["metric", "along", "where", "variant", "slope", "95% interval"]]
    for g in growths:
        own = [g.metric.name, _short(g.axis), g.elsewhere or "-", g.variant]
        rows.append([*own, f"{g.slope:+.2f}", f"{g.low:+.2f} .. {g.high:+.2f}"])
    return rows


def notes(judged: Judged) -> list[str]:
    """How far the judgements can be trusted, and what is missing."""
    experiment = judged.experiment
    lines = ["~  no detectable change; a cell is judged from its own seeds, all cells share the seeds"]
    detected = [cell for map in judged.maps for cell in map.cells if cell.judgement.detectable]
    surviving = sum(cell.p_holm is not None and cell.p_holm <= 0.05 for cell in detected)
    if detected:
        lines.append(
            f"{surviving} of {plural(len(detected), 'detected change')} are certain at 5% for all points of their "
            "metric together (Holm)"
        )
    if len(experiment.points) > 1 and not judged.has_lines:
        lines.append(NO_LINES)
    if experiment.failures:
        lines.append(f"{plural(len(experiment.failures), 'failed run')} left out of these numbers")
    if experiment.missing:
        lines.append(f"{plural(experiment.missing, 'run')} not done yet and not in these numbers")
    return lines


def document(judged: Judged) -> dict[str, Any]:
    """Every judgement as plain data (`schedlab.sweep-report/1`)."""
    experiment = judged.experiment
    return {
        "schema": "schedlab.sweep-report/1",
        "sweep": experiment.manifest["sweep"]["name"],
        "plan": experiment.manifest["plan"],
        "engine": experiment.manifest["engine"],
        "axes": [axis.name for axis in experiment.axes],
        "maps": [
            {
                "metric": map.metric.name,
                "unit": map.metric.unit,
                "better": map.metric.better,
                "a": map.a,
                "b": map.b,
                "cells": [_cell(experiment, cell) for cell in map.cells],
            }
            for map in judged.maps
        ],
        "flips": [dict(zip(("metric", "axis", "where", "from", "to"), r, strict=True)) for r in flip_rows(judged)[1:]],
        "growth": [
            {
                "metric": g.metric.name,
                "axis": g.axis,
                "where": g.elsewhere,
                "variant": g.variant,
                "slope": g.slope,
                "low": g.low,
                "high": g.high,
                "points": [list(point) for point in g.points],
            }
            for g in judged.growths
        ],
        "missing": experiment.missing,
        "failures": [
            {"id": run.id, "where": experiment.label(run.point), "variant": run.variant, "seed": run.seed,
             "message": failure.message, "replay": experiment.records[run.id].get("replay")}
            for run, failure in experiment.failures
        ],
    }  # fmt: skip


def _cell(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    """One point of a map: its levels, both medians, the difference with its interval, and the verdict."""
    j, d = cell.judgement, cell.judgement.difference
    axes = [axis.name for axis in experiment.axes]
    levels = [level.label for level in experiment.points[cell.point]]
    low, high = (d.interval.low, d.interval.high) if d.interval else (None, None)
    return {
        "point": dict(zip(axes, levels, strict=True)),
        "median_a": d.median_a,
        "median_b": d.median_b,
        "change": d.estimate,
        "percent": d.percent,
        "low": low,
        "high": high,
        "n": d.pairs,
        "verdict": j.verdict,
        "p": j.p,
        "p_holm": cell.p_holm,
    }
