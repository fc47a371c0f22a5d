"""Where the time of slow and of typical samples went, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.render.causes import LABELS, slowest
from schedlab.render.charts import CONFIG, INK, Spec, head
from schedlab.tail import PARTS, Tail

COLOURS: Mapping[str, str] = {
    "queued": "#DDCC77",
    "throttled": "#CC6677",
    "behind": "#882255",
    "waking": "#44AA99",
    "stolen": "#999933",
    "ran": "#117733",
    "served": "#AA4499",
    "slept": "#88CCEE",
    "unknown": "#999999",
}
"""Paul Tol's "muted" scheme; none of them is the colour of one of the first two variants."""
BAR = 26
"""Pixels."""


def bars(tails: Sequence[Tail], metric: str) -> Spec | None:
    """Where the time of the slowest and of typical samples went, a bar each; None if there are no samples."""
    rows: list[dict[str, Any]] = []
    for tail in tails:
        for which, band in ((slowest(tail).removeprefix("the "), tail.slow), ("typical", tail.middle)):
            for order, part in enumerate(PARTS):
                if band.count and band.mean(part) > 0:
                    row = {"samples": f"{tail.variant}, {which}", "part": LABELS[part], "order": order}
                    rows.append({**row, "us": round(band.mean(part) / 1e3, 6)})
    if not rows:
        return None
    used = [part for part in PARTS if any(row["part"] == LABELS[part] for row in rows)]
    bars_drawn = list(dict.fromkeys(row["samples"] for row in rows))
    return {
        **head(f"Where the time of {metric} went", f"Mean time of slow and typical samples of {metric}, by cause"),
        "height": BAR * len(bars_drawn),
        "data": {"values": rows},
        "mark": {"type": "bar", "stroke": INK, "strokeWidth": 0.3},
        "encoding": {
            "x": {"field": "us", "type": "quantitative", "title": "mean per sample, us", "axis": {"tickCount": 6}},
            "y": {"field": "samples", "type": "nominal", "title": None, "sort": bars_drawn},
            "color": {
                "field": "part",
                "type": "nominal",
                "scale": {"domain": [LABELS[part] for part in used], "range": [COLOURS[part] for part in used]},
                "legend": {"title": None, "orient": "top", "columns": 1},
            },
            "order": {"field": "order", "type": "quantitative"},
            "tooltip": [{"field": f} for f in ("samples", "part", "us")],
        },
        "config": {**CONFIG, "legend": {**CONFIG["legend"], "labelLimit": 560}},
    }
