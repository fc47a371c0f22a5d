"""Vega-Lite specifications of sweeps: heat maps, response curves and growth. Every mark has its verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedlab.render.cells import change
from schedlab.render.charts import COLOURS, INK, SHAPES, Spec, head
from schedlab.sweeping.judged import Growth, Judged, Map

VERDICT_COLOURS = {
    "better": "#0072B2",
    "worse": "#D55E00",
    "changed": "#CC79A7",
    "equivalent": "#7f8791",
    "undecided": "#c9ced4",
}
"""Legible for the colour-blind; each cell also has the verdict as text."""
DARK = ("better", "worse", "equivalent", "changed")
ROW = 34
MOST_LINES = 6


def heat_map(judged: Judged, map: Map) -> Spec | None:
    """Cells over the last two axes, or the only one; further axes make rows. None without cells."""
    axes = judged.experiment.axes
    rows = _cells(judged, map)
    if not rows:
        return None
    last = axes[-1].name
    across = list(dict.fromkeys(levels[-1].label for levels in judged.experiment.points))
    down = list(dict.fromkeys(row["where"] for row in rows))
    x: Spec = {"field": "level", "type": "nominal", "sort": across, "title": last, "axis": {"labelAngle": 0}}
    where = ", ".join(axis.name for axis in axes[:-1])
    y: Spec = {"field": "where", "type": "nominal", "sort": down, "title": where or None, "axis": {"labelLimit": 300}}
    known = list(VERDICT_COLOURS)
    colour: Spec = {
        "field": "verdict",
        "type": "nominal",
        "scale": {"domain": known, "range": [VERDICT_COLOURS[name] for name in known]},
        "legend": {"title": None, "orient": "top"},
    }
    light = " || ".join(f"datum.verdict == '{name}'" for name in DARK)
    return {
        **head(f"{map.name}, simulated", f"Verdict and change of {map.name} at every point"),
        "height": {"step": ROW},
        "data": {"values": rows},
        "encoding": {"x": x, "y": y},
        "layer": [
            {"mark": {"type": "rect", "stroke": INK, "strokeOpacity": 0.3}, "encoding": {"color": colour}},
            {
                "mark": {"type": "text", "fontSize": 11},
                "encoding": {
                    "text": {"field": "text"},
                    "color": {"condition": {"test": light, "value": "white"}, "value": "#1b1f24"},
                    "tooltip": [{"field": field} for field in ("where", "level", "verdict", "change", "interval")],
                },
            },
        ],
    }


def response(judged: Judged, map: Map) -> Spec | None:
    """The change with its interval along the last axis; one line for each combination of the others."""
    rows = [row for row in _cells(judged, map) if row["low"] is not None]
    lines = list(dict.fromkeys(row["where"] for row in rows))
    if len({row["level"] for row in rows}) < 2 or len(lines) > MOST_LINES:
        return None
    axis = judged.experiment.axes[-1]
    order = list(dict.fromkeys(levels[-1].label for levels in judged.experiment.points))
    x: Spec = {"field": "level", "type": "nominal", "sort": order, "title": axis.name, "axis": {"labelAngle": 0}}
    shift: Spec = {"xOffset": {"field": "where"}} if len(lines) > 1 else {}
    scale = {"type": "symlog", "constant": 5}
    y: Spec = {"field": "change_pct", "type": "quantitative", "title": "change, percent", "scale": scale}
    looks = {"field": "where", "type": "nominal", "sort": lines}
    legend = {"title": None, "orient": "top", "columns": 2, "labelLimit": 320} if len(lines) > 1 else None
    colour: Spec = {"color": {**looks, "scale": {"domain": lines, "range": COLOURS[: len(lines)]}, "legend": legend}}
    shape: Spec = {"field": "verdict", "type": "nominal", "legend": {"title": None, "orient": "top"}}
    shape["scale"] = {"domain": list(VERDICT_COLOURS), "range": SHAPES[: len(VERDICT_COLOURS)]}
    return {
        **head(f"{map.name}, simulated: change and 95% interval", f"Change of {map.name} along {axis.name}"),
        "height": 260,
        "data": {"values": rows},
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": INK, "strokeDash": [3, 3]},
                "encoding": {"y": {"field": "zero", "type": "quantitative"}},
            },
            {
                "mark": {"type": "rule"},
                "encoding": {"x": x, **shift, "y": {**y, "field": "low"}, "y2": {"field": "high"}, **colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": x,
                    **shift,
                    "y": y,
                    **colour,
                    "shape": shape,
                    "tooltip": [{"field": field} for field in ("where", "level", "verdict", "change", "interval")],
                },
            },
        ],
    }


def growth(growths: Sequence[Growth]) -> Spec | None:
    """The medians of one metric along one axis for every variant, with the fitted lines; both scales logarithmic."""
    if not growths:
        return None
    metric, axis = growths[0].metric, growths[0].axis
    names = [_line(g) for g in growths]
    points = [{"line": _line(g), "x": x, "y": y} for g in growths for x, y in g.points]
    fits = [
        {"line": _line(g), "x": x, "y": g.at_one * x**g.slope}
        for g in growths
        for x in (g.points[0][0], g.points[-1][0])
    ]
    values = sorted({x for g in growths for x, _ in g.points})
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": axis,
        "scale": {"type": "log", "nice": False},
        "axis": {"values": values},
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "title": f"{metric.name}, {metric.unit}".rstrip(", "),
        "scale": {"type": "log", "nice": False},
        "axis": {"tickCount": 5},
    }
    colour: Spec = {
        "field": "line",
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names, "range": [COLOURS[i % len(COLOURS)] for i in range(len(names))]},
        "legend": {"title": None, "orient": "top", "columns": 1, "labelLimit": 600},
    }
    return {
        **head(f"{metric.name} along {axis}, simulated", f"Growth of {metric.name} along {axis} with fitted slopes"),
        "height": 260,
        "layer": [
            {"data": {"values": points}, "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
             "encoding": {"x": x, "y": y, "color": colour}},
            {"data": {"values": fits}, "mark": {"type": "line", "strokeDash": [6, 3]},
             "encoding": {"x": x, "y": y, "color": colour}},
        ],
    }  # fmt: skip


def charts(judged: Judged) -> dict[str, Spec]:
    """Every picture by a name that can be a file's."""
    found: dict[str, Spec | None] = {}
    for map in judged.maps:
        name = f"{map.metric.name}-{map.b}"
        found[f"map-{name}"] = heat_map(judged, map)
        found[f"response-{name}"] = response(judged, map)
    grown: dict[tuple[str, str], list[Growth]] = {}
    for g in judged.growths:
        grown.setdefault((g.metric.name, g.axis), []).append(g)
    for (metric, axis), own in grown.items():
        if len(own) <= MOST_LINES:
            found[f"growth-{metric}-{axis}"] = growth(own)
    return {name: spec for name, spec in found.items() if spec is not None}


def _line(g: Growth) -> str:
    where = f" ({g.elsewhere})" if g.elsewhere else ""
    return f"{g.variant}{where}: slope {g.slope:+.2f} ({g.low:+.2f} to {g.high:+.2f})"


def _cells(judged: Judged, map: Map) -> list[dict[str, Any]]:
    rows = []
    for cell in map.cells:
        *others, last = judged.experiment.points[cell.point]
        j, d = cell.judgement, cell.judgement.difference
        verdict = j.verdict if j.verdict in VERDICT_COLOURS else "undecided"
        if d.constant:  # every seed gave the same number
            verdict = j.effect if j.effect in VERDICT_COLOURS else "equivalent"
        judged_in_percent = d.percent and d.interval is not None
        rows.append(
            {
                "where": ", ".join(level.label for level in others),
                "level": last.label,
                "verdict": verdict,
                "change": change(j),
                "text": f"{verdict} {change(j)}" if change(j) != "~" else verdict,
                "change_pct": round(d.estimate, 3) if d.percent and d.estimate is not None else None,
                "low": round(d.interval.low, 3) if judged_in_percent and d.interval else None,
                "high": round(d.interval.high, 3) if judged_in_percent and d.interval else None,
                "interval": "" if d.interval is None else f"{d.interval.low:+.3g} to {d.interval.high:+.3g}",
            }
        )
    return rows
