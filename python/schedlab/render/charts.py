"""Vega-Lite specifications as plain dicts: percentile curves and per-seed strips, and what all charts share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from schedlab.comparison import Comparison, MetricComparison
from schedlab.statistics import median

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3]]
SHAPES = ["circle", "triangle-up", "square", "diamond", "cross", "triangle-down"]
WIDTH = 720
PADDING = {"left": 24, "right": 16, "top": 5, "bottom": 5}
"""A browser's font may be wider than the one with which a static picture was laid out."""
ROOM, TICKS = 12, 6
"""Pixels between a point and the edge of its picture, and about how many labels fit below one."""
NINES_APART = 0.15
LEGEND_WIDTH, LETTER = 320, 7
"""Pixels that the entries of a legend may take beside each other, and about how many a letter takes."""
INK = "currentColor"
_FAINT = "#8884"
CONFIG: Spec = {
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": _FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "axisY": {"labelLimit": 360},
    "axisX": {"labelOverlap": "greedy", "labelSeparation": 8},
    "legend": {"labelColor": INK, "titleColor": INK, "labelLimit": 320, "symbolOpacity": 1, "labelFontSize": 13},
    "title": {"color": INK, "subtitleColor": INK, "anchor": "start", "fontSize": 14},
    "view": {"stroke": None},
}
"""Text takes the page's own colour, so one picture serves light and dark."""


def percentile_curve(c: Comparison, series: str) -> Spec | None:
    """The median over seeds of every percentile, with the range over seeds behind it."""
    rows = curve_rows(c, series)
    if not rows:
        return None
    unit = next(run.series[series].unit for col in c.columns for run in col.runs.values() if series in run.series)
    above_zero = [r for r in rows if r["low"] > 0]  # a logarithmic scale is worth more than the points at 0
    rows = above_zero if 2 * len(above_zero) > len(rows) else rows
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    scale = {**({"type": "log"} if low > 0 and high > 20 * low else {"zero": False}), "padding": ROOM}
    ticks = [t for t in (0, round(math.log10(2), 6), 1, 2, 3, 4, 5, 6) if t <= max(r["nines"] for r in rows)]
    x = {
        "field": "nines",
        "type": "quantitative",
        "title": "percentile",
        "scale": {"padding": ROOM},
        "axis": {"values": ticks, "labelExpr": "format(100 - 100 * pow(10, -datum.value), '.4~f')"},
    }
    tip = [{"field": f, "type": "quantitative", "format": ".4~g"} for f in ("percentile", "value", "low", "high")]
    return {
        **head(
            f"{series}, {c.arm_word}",
            f"Percentiles of {series} per variant; median and range over {len(c.seeds)} seeds",
        ),
        "height": 240,
        "data": {"values": rows},
        "encoding": {"x": x, **variant(c)},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {
                    "y": {
                        "field": "low",
                        "type": "quantitative",
                        "title": unit,
                        "scale": scale,
                        "axis": {"tickCount": 5},
                    },
                    "y2": {"field": "high"},
                },
            },
            {
                "params": [{"name": "zoom", "select": "interval", "bind": "scales"}],
                "mark": {"type": "line", "point": {"size": 16}},
                "encoding": {
                    "y": {"field": "value", "type": "quantitative"},
                    "strokeDash": {**channel(c, DASHES), "legend": legend(_names(c))},
                    "tooltip": [{"field": "variant", "type": "nominal"}, *tip],
                },
            },
        ],
    }


def curve_rows(c: Comparison, series: str) -> list[dict[str, Any]]:
    """One row per variant and percentile that all its runs have; the maximum has no place on a scale of nines."""
    rows = []
    for column in c.columns:
        curves = [dict(run.series[series].curve) for run in column.runs.values() if series in run.series]
        shared = set.intersection(*(set(curve) for curve in curves)) if curves else set()
        for percentile in _spread(sorted(p for p in shared if p < 100)):
            at = [curve[percentile] for curve in curves]
            row = {"variant": column.name, "percentile": percentile, "nines": _nines(percentile), "value": median(at)}
            rows.append({**row, "low": min(at), "high": max(at)})
    return rows


def _spread(percentiles: Sequence[float]) -> list[float]:
    """As many variants as can be distinguished in a picture."""
    kept: list[float] = []
    for p in percentiles:
        if not kept or _nines(p) - _nines(kept[-1]) >= NINES_APART or p == percentiles[-1]:
            kept.append(p)
    return kept


def _nines(percentile: float) -> float:
    return round(-math.log10(1 - percentile / 100), 6)


def strips(c: Comparison, m: MetricComparison) -> Spec | None:
    """Every seed as a point, every variant as a row, its median as a tick."""
    rows = [
        {"variant": name, "seed": seed, "value": value}
        for name, values in m.samples.items()
        for seed, value in zip(c.seeds, values, strict=True)
        if value is not None and math.isfinite(value)
    ]
    if not rows:
        return None
    title = f"{m.metric.unit or 'count'}, a point per seed, a bar at the median"
    encoding = {
        "x": {
            "field": "value",
            "type": "quantitative",
            "title": title,
            "scale": {"zero": False, "padding": ROOM},
            "axis": {"tickCount": TICKS},
        },
        "y": {"field": "variant", "type": "nominal", "title": None, "sort": _names(c)},
    }
    point = {
        "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.75},
        "encoding": {
            **variant(c, named=False),
            "shape": {**channel(c, SHAPES), "legend": None},
            "tooltip": [{"field": f} for f in ("variant", "seed", "value")],
        },
    }
    tick = {
        "mark": {"type": "tick", "thickness": 2, "size": 22, "color": INK},
        "encoding": {"x": {"aggregate": "median", "field": "value"}},
    }
    return {
        **head(f"{m.metric.name}, {c.arm_word}", f"{m.metric.name} of every seed, per variant, with the median"),
        "height": 28 * len(_names(c)),
        "data": {"values": rows},
        "encoding": encoding,
        "layer": [point, tick],
    }


def head(title: str, description: str) -> Spec:
    """What every chart begins with; `description` is read aloud in its place."""
    return {
        "$schema": SCHEMA,
        "title": title,
        "description": description,
        "width": WIDTH,
        "padding": PADDING,
        "background": None,
        "config": CONFIG,
    }


def _names(c: Comparison) -> list[str]:
    return [column.name for column in c.columns]


def channel(c: Comparison, values: Sequence[Any], only: Sequence[str] = ()) -> Spec:
    """A variant looks the same in every picture, also where not all variants are drawn."""
    looks = {name: values[i % len(values)] for i, name in enumerate(_names(c)) if name in (only or _names(c))}
    names, picked = list(looks), list(looks.values())
    return {"field": "variant", "type": "nominal", "scale": {"domain": names, "range": picked}}


def variant(c: Comparison, *, named: bool = True, only: Sequence[str] = ()) -> Spec:
    """The colour of a variant; `named` if the chart has a legend."""
    return {"color": {**channel(c, COLOURS, only), "legend": legend(only or _names(c)) if named else None}}


def legend(names: Sequence[str]) -> Spec:
    """The same for all channels of a picture, which share one legend; as many columns as fit on a narrow screen."""
    longest = max(map(len, names), default=1)
    return {"title": None, "orient": "top", "columns": max(1, LEGEND_WIDTH // (LETTER * longest + 30))}
