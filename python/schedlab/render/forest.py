"""The change of every metric with its interval, on a scale of the log ratio that one outlier cannot flatten."""

from __future__ import annotations

import math
from typing import Any

from schedlab.comparison import Comparison
from schedlab.render.charts import INK, SHAPES, Spec, channel, head, legend, variant
from schedlab.render.grid import percent
from schedlab.statistics import log_of

LINEAR_TO = 0.05
"""The scale is linear in the log ratio up to this value, 5%, and logarithmic beyond."""
REACH = math.log(10)
"""A ratio of 10 or 1/10 is the end of the scale; a mark there shows the value that lies beyond."""
TICKS = [-90, -80, -60, -40, -30, -20, -10, -5, 0, 5, 10, 20, 30, 40, 60, 100, 200, 400, 900]
ROW, PAD = 24, 0.15
"""Pixels for a mark, and room beside the outermost ones."""
_ALIGN = "datum.edge > 0 ? 'right' : 'left'"


def forest(c: Comparison) -> Spec | None:
    """A row per metric, a mark and its interval per pair; None if no change has an interval in percent."""
    rows = [
        _row(
            m.name, j.b, j.verdict, j.difference.estimate or 0.0, j.difference.interval.low, j.difference.interval.high
        )
        for m, j in c.judgements()
        if j.difference.interval and j.difference.percent
    ]
    if not rows:
        return None
    others = list(dict.fromkeys(b for _, b in c.pairs))
    ends = [row[key] for row in rows for key in ("shown_low", "shown_high")]
    x: Spec = {
        "type": "quantitative",
        "title": f"change against {c.pairs[0][0]}" if len({a for a, _ in c.pairs}) == 1 else "change",
        "scale": {"domain": [min(*ends, place(-5)) - PAD, max(*ends, place(5)) + PAD], "nice": False},
        "axis": {"values": [place(tick) for tick in TICKS], "labelExpr": _labels()},
    }
    encoding: Spec = {
        "y": {"field": "metric", "type": "nominal", "title": None, "sort": None},
        "yOffset": {"field": "variant", "sort": others},
        **variant(c, only=others),
        "tooltip": [{"field": f} for f in ("metric", "variant", "verdict", "change", "low", "high")],
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": {"field": "shown_low", **x}, "x2": {"field": "shown_high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60},
            "encoding": {
                "x": {"field": "shown_change", **x},
                "shape": {**channel(c, SHAPES, others), "legend": legend(others)},
            },
        },
    ]
    if any(row["beyond"] for row in rows):
        layers.append(
            {
                "transform": [{"filter": "datum.beyond != ''"}],
                "mark": {"type": "text", "dy": -8, "fontSize": 10, "color": INK, "align": {"expr": _ALIGN}},
                "encoding": {"x": {"field": "edge", **x}, "text": {"field": "beyond"}, "color": {"value": INK}},
            }
        )
    zero = {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "color": INK, "strokeDash": [3, 3]},
            "encoding": {"x": {"field": "zero", "type": "quantitative"}}}  # fmt: skip
    description = "Change of every metric against the baseline, with its 95% interval, on a logarithmic scale"
    return {
        **head(f"Change of every metric, {c.arm_word}", description),
        "height": ROW * len(rows),
        "data": {"values": rows},
        "layer": [{"encoding": encoding, "layer": layers}, zero],
    }


def place(change: float) -> float:
    """Where a change in percent stands on the scale; the ends of the scale for all that lies beyond."""
    return round(math.asinh(max(-REACH, min(REACH, log_of(change))) / LINEAR_TO), 6)


def _row(metric: str, name: str, verdict: str, change: float, low: float, high: float) -> dict[str, Any]:
    first, last = place(-90), place(900)
    outside = [end for end in (low, high) if place(end) in (first, last) and end not in (-90.0, 900.0)]
    return {
        "metric": metric,
        "variant": name,
        "verdict": verdict,
        **{key: _finite(x) for key, x in (("low", low), ("high", high), ("change", change))},
        **{f"shown_{key}": place(x) for key, x in (("low", low), ("high", high), ("change", change))},
        "beyond": ", ".join(f"{'→' if end > 0 else '←'} {percent(end)}" for end in outside),
        "edge": last if outside and outside[-1] > 0 else first,
    }


def _finite(x: float) -> float:
    return max(-1e9, min(1e9, x))


def _labels() -> str:
    """A Vega expression: the label of the tick that is nearest to a place on the scale."""
    words = {place(tick): f"{tick:+d}%" if tick else "0" for tick in TICKS}
    terms = [f"abs(datum.value - ({at})) < 0.001 ? '{word}' : " for at, word in words.items()]
    return "".join(terms) + "''"
