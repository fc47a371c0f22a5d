"""Vega-Lite specifications of studies: published against simulated changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from schedlab.render.charts import COLOURS, INK, SHAPES, Spec, head, legend
from schedlab.studies.figures import Published
from schedlab.studies.report import Report, StudyReport

LINEAR_TO = 5.0
"""The scale is linear up to this many percent and logarithmic beyond, so that +350% leaves room for -5%."""
TICKS = [-100, -50, -20, -10, -5, -2, 0, 2, 5, 10, 20, 50, 100, 200, 500, 1000]


def scatter(report: Report) -> Spec | None:
    """Every simulated row beyond noise: on the diagonal both changes are the same."""
    rows = [{"study": study.study.name, **row} for study in report.studies for row in _rows(study)]
    if not rows:
        return None
    studies = list(dict.fromkeys(row["study"] for row in rows))
    low = max(min(row[kind] for row in rows) for kind in _KINDS)
    high = min(max(row[kind] for row in rows) for kind in _KINDS)
    diagonal = [dict.fromkeys(_KINDS, end) for end in (low, high) if low < high]
    looks = {"field": "study", "type": "nominal"}
    points: Spec = {
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.8},
        "encoding": {
            "x": _change("published", "published change, percent"),
            "y": _change("simulated", "simulated change, percent"),
            "color": {**looks, "scale": _range(studies, COLOURS), "legend": legend(studies)},
            "shape": {**looks, "scale": _range(studies, SHAPES), "legend": legend(studies)},
            "tooltip": _tooltip("study"),
        },
    }
    same: Spec = {
        "data": {"values": diagonal},
        "mark": {"type": "line", "color": INK, "strokeDash": [6, 3], "strokeWidth": 1, "opacity": 0.6},
        "encoding": {
            key: {"field": field, "type": "quantitative"} for key, field in (("x", "published"), ("y", "simulated"))
        },
    }
    zero = [_zero(channel) for channel in ("x", "y")]
    return {
        **head(
            "Simulated against published changes, rows beyond noise",
            "Published and simulated change of every row beyond noise; rows of the same sign lie in the lower left and "
            "upper right quarter, equal changes on the dashed line",
        ),
        "height": 420,
        "data": {"values": rows},
        "layer": [same, *zero, points],
    }


def dumbbells(study: StudyReport) -> Spec | None:
    """The rows of a study, each with both changes and what lies between them."""
    rows = _rows(study)
    if not rows:
        return None
    ends = [
        {"row": row["row"], "outcome": row["outcome"], "change": row[kind], "kind": kind}
        for row in rows
        for kind in _KINDS
    ]
    y: Spec = {"field": "row", "type": "nominal", "title": None, "sort": None}
    return {
        **head(
            f"{study.study.name}: rows beyond noise",
            f"Published and simulated change of each row of {study.study.name}",
        ),
        "height": 20 * len({row["row"] for row in rows}),
        "layer": [
            _zero("x"),
            {
                "data": {"values": rows},
                "mark": {"type": "rule", "color": INK, "opacity": 0.5},
                "encoding": {"y": y, "x": _change("published", "change, percent"), "x2": {"field": "simulated"}},
            },
            {
                "data": {"values": ends},
                "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": _change("change", "change, percent"),
                    "color": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": _range(_KINDS, COLOURS),
                        "legend": legend(_KINDS),
                    },
                    "shape": {
                        "field": "kind",
                        "type": "nominal",
                        "scale": _range(_KINDS, SHAPES),
                        "legend": legend(_KINDS),
                    },
                    "tooltip": [{"field": f} for f in ("row", "kind", "change", "outcome")],
                },
            },
        ],
    }


_KINDS = ("published", "simulated")


def _rows(study: StudyReport) -> list[dict[str, Any]]:
    """The rows beyond noise that have both changes, in the order of the file."""
    own = [row for row in study.rows if row.counted and row.published.change_pct is not None]
    both = [(row, row.simulated.change_pct) for row in own if row.simulated and row.simulated.change_pct is not None]
    names = _names([row.published for row, _ in both], variants=len(study.study.variants) > 2)
    return [
        {
            "row": name,
            "published": round(row.published.change_pct or 0.0, 3),
            "simulated": round(change, 3),
            "outcome": row.outcome,
        }
        for name, (row, change) in zip(names, both, strict=True)
    ]


def _names(rows: Sequence[Published], *, variants: bool) -> list[str]:
    """What a row is called; with its experiment where another one has the same name."""
    names = [f"{p.label}: {p.metric}" + (f", {p.variant}" if variants else "") for p in rows]
    often = Counter(names)
    return [f"{p.experiment}: {name}" if often[name] > 1 else name for p, name in zip(rows, names, strict=True)]


def _change(field: str, title: str) -> Spec:
    scale = {"type": "symlog", "constant": LINEAR_TO}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"values": TICKS, "format": "+~f"},
    }


def _zero(channel: str) -> Spec:
    return {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": INK, "strokeDash": [3, 3]},
        "encoding": {channel: {"field": "zero", "type": "quantitative"}},
    }


def _range(names: Sequence[str], looks: Sequence[Any]) -> Spec:
    return {"domain": [*names], "range": [looks[i % len(looks)] for i in range(len(names))]}


def _tooltip(*first: str) -> list[Spec]:
    return [{"field": field} for field in (*first, "row", "published", "simulated", "outcome")]
