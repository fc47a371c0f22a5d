"""The JSON documents of `compare --json` and `run --json`: keys may be added, never renamed.

Nothing in the compare document depends on time, host or number of jobs: the same runs give the same bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from schedlab import documents
from schedlab.arms import limits
from schedlab.engine import ARMS
from schedlab.outcome import Run
from schedlab.scenario import Metric, Scenario

if TYPE_CHECKING:
    from schedlab.comparison import Comparison
    from schedlab.judge import Judgement

COMPARE_SCHEMA = "schedlab.compare/1"
RUN_SCHEMA = "schedlab.run/1"


def compare_document(c: Comparison) -> dict[str, Any]:
    """Every sample, every judgement, every digest."""
    return {
        **_head(COMPARE_SCHEMA, c.scenario, c.arm, c.engine),
        "seeds": list(c.seeds),
        "variants": [column.name for column in c.columns],
        "kernels": {column.name: column.kernel for column in c.columns},
        "complete": not c.failures and not c.missing,
        "ran_on": c.machine,
        "setup": [fact.to_record() for fact in c.setup],
        "remarks": list(c.remarks),
        "metrics": [
            {
                **_metric(m.metric),
                "samples": {name: [_sample(x) for x in values] for name, values in m.samples.items()},
                "comparisons": [_comparison(j) for j in m.comparisons],
            }
            for m in c.metrics
        ],
        "digests": {col.name: {str(s): col.runs[s].digest for s in c.seeds if s in col.runs} for col in c.columns},
        "failures": [{"variant": f.variant, "seed": f.seed, "message": f.message, "hint": f.hint} for f in c.failures],
    }


def run_document(scenario: Scenario, arm: str, run: Run) -> dict[str, Any]:
    """One run in the same shape, with what only a single run has, without what its circumstances forbid to say."""
    bounds = limits.of(scenario, arm, {run.variant: [run]})
    remarks = limits.remarks(scenario, {run.variant: [run]}, bounds)
    run = bounds.heard(scenario, run)
    return {
        **_head(RUN_SCHEMA, scenario, arm, run.engine),
        "seeds": [run.seed],
        "variants": [run.variant],
        "kernels": {run.variant: run.kernel},
        "metrics": [
            {**_metric(m), "samples": {run.variant: [_sample(run.metrics.get(m.name))]}, "comparisons": []}
            for m in scenario.metrics
        ],
        "digests": {run.variant: {str(run.seed): run.digest}},
        "remarks": remarks,
        **{key: run.record.get(key) for key in _RUN_KEYS},
    }


_RUN_KEYS = (
    "events",
    "handled",
    "switches",
    "sim_s",
    "wall_s",
    "ended",
    "tasks",
    "cpus",
    "series",
    "checks",
    "trace_error",
    "place",
    "drivers",
    "unavailable",
    "calibration",
    "noise",
    "note",
)


def dump(document: dict[str, Any]) -> str:
    """The document as text, without a final newline."""
    return documents.dumps(document)


def _head(schema: str, scenario: Scenario, arm: str, engine: str) -> dict[str, Any]:
    return {
        "schema": schema,
        "scenario": scenario.name,
        "machine": scenario.machine.name,
        "arm": arm,
        "arm_word": ARMS[arm],
        "engine": engine,
    }


def _metric(m: Metric) -> dict[str, Any]:
    return {"metric": m.name, "unit": m.unit, "better": m.better, "margin_pct": m.margin_pct, "declared": m.declared}


def _comparison(j: Judgement) -> dict[str, Any]:
    d = j.difference
    interval = [_number(d.interval.low), _number(d.interval.high)] if d.interval else None
    return {
        "a": j.a,
        "b": j.b,
        "delta_pct": _number(d.estimate) if d.percent else None,
        "ci_pct": interval if d.percent else None,
        "delta": None if d.percent else _number(d.estimate),
        "ci": None if d.percent else interval,
        "n": d.pairs,
        "median_a": _number(d.median_a),
        "median_b": _number(d.median_b),
        "verdict": j.verdict,
        "effect": j.effect,
        "reason": j.reason,
        "p": _number(j.p),
        "p_holm": _number(j.p_holm),
        "p_equivalent": _number(j.p_equivalent),
        "units_needed": j.units_needed,
    }


def _sample(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None


def _number(x: float | None) -> float | None:
    """Computed from samples: ten significant digits, so that the last bit of a logarithm is nobody's business."""
    return float(f"{x:.10g}") if x is not None and math.isfinite(x) else None
