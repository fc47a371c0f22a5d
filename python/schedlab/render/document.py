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
from schedlab.regrouped import to_record
from schedlab.robust import RANGE, outcomes
from schedlab.scenario import Metric, Scenario

if TYPE_CHECKING:
    from schedlab.comparison import Comparison
    from schedlab.judge import Judgement
    from schedlab.statistics import Interval, Spread, Tail
    from schedlab.validity import Validated

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
        "configurations": {v.name: dict(v.boot) for v in c.scenario.variants},
        "boot_defaults": [{"a": a, "b": b, "text": text} for (a, b), text in c.defaults.items()],
        "remarks": list(c.remarks),
        "causes": [{"a": a, "b": b, "text": text} for (a, b), text in c.causes.items()],
        "metrics": [
            {
                **_metric(m.metric),
                "model_error": _model(m.model),
                "noise_floor": _interval(m.noise_floor.interval, percent=m.noise_floor.percent)
                if m.noise_floor
                else None,
                "samples": {name: [_sample(x) for x in values] for name, values in m.samples.items()},
                "comparisons": [_comparison(j) for j in m.comparisons],
            }
            for m in c.metrics
        ],
        "rankings": [
            {"metric": r.metric, "ranks": dict(r.ranks), "undecided": [list(pair) for pair in r.undecided]}
            for r in c.rankings
        ],
        "design": c.design.to_record(),
        "robustness": _robustness(c),
        "digests": {col.name: {str(s): col.runs[s].digest for s in c.seeds if s in col.runs} for col in c.columns},
        "failures": [{"variant": f.variant, "seed": f.seed, "message": f.message, "hint": f.hint} for f in c.failures],
    }


def run_document(scenario: Scenario, arm: str, run: Run) -> dict[str, Any]:
    """One run in the same shape, with what only a single run has, without what its circumstances forbid to say."""
    bounds = limits.of(scenario, arm, {run.variant: [run]})
    remarks = limits.remarks(scenario, {run.variant: [run]}, bounds)
    run = bounds.without_suppressed(scenario, run)
    return {
        **_head(RUN_SCHEMA, scenario, arm, run.engine),
        "seeds": [run.seed],
        "variants": [run.variant],
        "kernels": {run.variant: run.kernel},
        "metrics": [
            {
                **_metric(m),
                "model_error": None,
                "samples": {run.variant: [_sample(run.metrics.get(m.name))]},
                "comparisons": [],
            }
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


def _model(model: Validated | None) -> dict[str, Any] | None:
    if model is None:
        return None
    return {key: _number(x) if isinstance(x, float) else x for key, x in model.to_record().items()}


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
        "spread": _spread(j.spread),
        "tail": _tail(j.tail),
        "evidence": j.evidence.to_record() if j.evidence else None,
    }


def _interval(interval: Interval | None, *, percent: bool) -> dict[str, Any] | None:
    if interval is None:
        return None
    low, high = _number(interval.low), _number(interval.high)
    return {"estimate": _number(interval.estimate), "ci": [low, high], "unit": "%" if percent else ""}


def _spread(s: Spread | None) -> dict[str, Any] | None:
    """Mean absolute deviations from the median, and how much larger that of `b` is."""
    if s is None:
        return None
    sides = {"a": _number(s.a), "b": _number(s.b), "unit": "%" if s.percent else ""}
    return {**sides, "change": _interval(s.change, percent=True)}


def _tail(t: Tail | None) -> dict[str, Any] | None:
    if t is None:
        return None
    sides = {"percentile": t.percentile, "a": _number(t.a), "b": _number(t.b), "resolved": t.resolved}
    return {**sides, "difference": _interval(t.difference, percent=False)}


def _robustness(c: Comparison) -> dict[str, Any] | None:
    """In how many draws each judgement came to the same."""
    if c.robustness is None:
        return None
    found = c.robustness
    held = [
        {"metric": m, "a": a, "b": b, "outcome": outcome, "held": found.held((m, a, b), outcome)}
        for (m, a, b), outcome in outcomes(c.judgements()).items()
    ]
    drawn = {"costs": found.costs, "stated": found.stated, "range": RANGE, "ties": found.ties}
    regrouped = to_record(found.regrouped) if found.regrouped else None
    return {"machines": len(found.draws), **drawn, "held": held, "regrouped": regrouped}


def _sample(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None


def _number(x: float | None) -> float | None:
    """Computed from samples: ten significant digits, which hides rounding errors."""
    return float(f"{x:.10g}") if x is not None and math.isfinite(x) else None
