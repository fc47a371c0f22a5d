"""Why the headline metric differs: what the slowest samples of one variant have more of, as a clause and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schedlab.render.amounts import NAMED, names, share, time
from schedlab.render.causes import LABELS, SHORT, slowest
from schedlab.render.charts import CONFIG, INK, Spec, head
from schedlab.render.summary import headline_metric
from schedlab.tail import PARTS, Tail

if TYPE_CHECKING:
    from schedlab.comparison import Comparison

SLOWEST_FROM = 90.0
"""Percentiles from here on, and the maximum, are explained by the slowest samples."""
COLOURS: Mapping[str, str] = {
    "queued": "#E69F00",
    "throttled": "#CC79A7",
    "behind": "#D55E00",
    "waking": "#56B4E9",
    "stolen": "#F0E442",
    "ran": "#009E73",
    "served": "#882255",
    "slept": "#0072B2",
    "unknown": "#999999",
}
BAR = 26
"""Pixels."""
SMALL = 0.05
"""A part of the difference below this share is not named."""


def explained_by_slowest(comparison: Comparison, a: str, b: str, metric: str) -> bool:
    """Whether the headline of a pair changed and is a high percentile, or the maximum, of these samples."""
    found = headline_metric(comparison, a, b)
    if found is None or found[1].effect == "none" or found[0].metric.of != metric:
        return False
    stat = found[0].metric.stat or ""
    return stat == "max" or (stat[:1] == "p" and float(stat[1:]) >= SLOWEST_FROM)


def clause(a: Tail, b: Tail) -> str:
    """Which parts make the slowest samples of one variant longer than those of the other; empty if nothing does."""
    if not a.slow.count or not b.slow.count:
        return ""
    longer, shorter = (b, a) if _mean(b) > _mean(a) else (a, b)
    extra = _mean(longer) - _mean(shorter)
    more = {part: longer.slow.mean(part) - shorter.slow.mean(part) for part in PARTS}
    parts = sorted((part for part in PARTS if more[part] > SMALL * extra), key=lambda part: -more[part])[:NAMED]
    if not parts or extra <= 0:
        return ""
    named = [f"{share(more[part], extra)} of that is time {SHORT[part]}{_behind(longer, part)}" for part in parts]
    return f"{slowest(longer)} of {longer.variant} take {time(extra)} longer on average: {', '.join(named)}."


def _behind(tail: Tail, part: str) -> str:
    """The tasks that ran instead."""
    p = tail.slow.parts
    return f" ({names(p.before, p.parts[part], only=True)})" if part == "behind" and p.before else ""


def _mean(tail: Tail) -> float:
    return tail.slow.parts.ns / tail.slow.count


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
