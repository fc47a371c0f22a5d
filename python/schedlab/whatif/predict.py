"""The predictions: the extracted programs on the recorded kernel and on the variants, judged metric by metric."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from schedlab.engine import Cancel, Engine
from schedlab.frozen import Frozen, made
from schedlab.judge import Judgement, judge
from schedlab.native.extracted import ExtractedPool, Extraction, PoolMetrics
from schedlab.scenario import Metric, Scenario
from schedlab.statistics import median
from schedlab.whatif.fidelity import KINDS, Refusal, error, metric, refusal, value

RECORDED = "recorded"
"""The variant of the recorded kernel."""
SHOWN_CPU, SHOWN_WAKEUPS = 0.01, 100
"""A pool with at least this share of the CPU time, or so many wakeups, is shown."""

Runs = Mapping[str, Sequence[Mapping[str, PoolMetrics]]]
"""By variant, the metrics of the pools in every run."""


class Row(Frozen):
    """One metric of a pool."""

    pool: str
    kind: str
    metric: Metric
    recorded: float | None
    simulated: float | None
    """On the recorded kernel."""
    error_pct: float | None
    """The distance of both."""
    refused: Refusal | None
    predicted: Mapping[str, float | None]
    """By variant."""
    judged: Mapping[str, Judgement]
    """By variant: against the simulation of the recorded kernel."""

    def outcome(self, variant: str) -> str:
        """The verdict, unless the change is within the error."""
        j = self.judged[variant]
        if j.effect == "none":
            return j.verdict if j.verdict == "undecided" else "no change"
        change = self.change_pct(variant)
        if change is not None and self.error_pct is not None and change <= self.error_pct:
            return "within error"
        return j.effect

    def change_pct(self, variant: str) -> float | None:
        """The change from the simulation of the recorded kernel, the same up and down."""
        return error(self.simulated, self.predicted[variant])


class Prediction(Frozen):
    """Everything that `schedlab whatif` shows."""

    trace: str
    extraction: Extraction
    variants: Mapping[str, str]
    """The name of each, and what it is."""
    rows: tuple[Row, ...]
    hidden: int
    """Pools that are too small to be shown."""
    seeds: int
    causes: Mapping[str, float] = made(default_factory=dict)
    """The share of all waits, by cause."""


def shown(pools: Sequence[ExtractedPool], *, every: bool) -> list[ExtractedPool]:
    """The pools with a part in the load."""
    total = sum(pool["recorded"]["cpu"] for pool in pools) or 1

    def matters(pool: ExtractedPool) -> bool:
        return pool["recorded"]["cpu"] >= SHOWN_CPU * total or pool["recorded"]["wakeups"] >= SHOWN_WAKEUPS

    return [pool for pool in pools if every or matters(pool)]


def causes(pools: Sequence[ExtractedPool]) -> dict[str, float]:
    """The share of all waits, by cause."""
    total = sum(pool["waits"] for pool in pools) or 1
    kinds = {
        "a periodic timer": sum(pool["by_period"] for pool in pools),
        "another timer": sum(pool["by_timer"] for pool in pools),
        "another task": sum(pool["by_task"] for pool in pools),
        "an arrival from outside": sum(pool["by_arrival"] for pool in pools),
        "unknown": sum(pool["unknown"] for pool in pools),
    }
    return {words: count / total for words, count in kinds.items()}


def with_variants(text: str, variants: Mapping[str, str], cpus: int | None) -> str:
    """The scenario with other variants: the name of each and its kernel; `cpus`: on so many CPUs under one cache."""
    before, _, own = text.rpartition("\n[[variant]]\n")
    if cpus is not None:
        before = re.sub(r"^topology = .*$", f"topology = {{ cores-per-llc = {cpus} }}", before, count=1, flags=re.M)
    lines = own.split("\n")
    kernel = next((line for line in lines if line.startswith("kernel = ")), "")
    settings = [line for line in lines if line and not line.startswith(("name = ", "kernel = "))]
    tables = []
    for name, row in variants.items():
        given = f"kernel = {json.dumps(row)}"
        # A kernel has its own settings; the recorded ones belong to the recorded kernel.
        kept = settings if given == kernel else []
        tables.append("\n".join(["", "[[variant]]", f"name = {json.dumps(name)}", given, *kept]))
    return "\n".join([before, *tables]) + "\n"


def variant_names(kernels: Sequence[str], overridden: bool) -> dict[str, str]:
    """A name for each variant, which is none of the recorded kernel."""
    return {re.sub(r"[^A-Za-z0-9_-]", "-", kernel) + ("-set" if overridden else ""): kernel for kernel in kernels}


def run_all(
    engine: Engine, scenario: Scenario, variants: Sequence[str], seeds: Sequence[int], pools: Mapping[str, str],
    cancel: Cancel, jobs: int,
) -> Runs:  # fmt: skip
    """Every variant with every seed."""
    plan = [(variant, seed) for variant in variants for seed in seeds]

    def one(which: tuple[str, int]) -> Mapping[str, PoolMetrics]:
        return engine.whatif_run(scenario, *which, pools, cancel=cancel)

    with ThreadPoolExecutor(jobs) as executor:
        found = list(executor.map(one, plan))
    return {v: [run for (name, _), run in zip(plan, found, strict=True) if name == v] for v in variants}


def predict(
    trace: Path, extraction: Extraction, base: Runs, predicted: Runs, named: Mapping[str, str], seeds: int,
    *, every: bool = False,
) -> Prediction:  # fmt: skip
    """Judges the runs."""
    pools = shown(extraction["pools"], every=every)
    rows = [_row(kind, pool, base[RECORDED], predicted) for pool in pools for kind in KINDS]
    hidden = len(extraction["pools"]) - len(pools)
    return Prediction(str(trace), extraction, dict(named), tuple(rows), hidden, seeds, causes(extraction["pools"]))


def _row(kind: str, pool: ExtractedPool, base: Sequence[Mapping[str, PoolMetrics]], predicted: Runs) -> Row:
    name, judged_by = pool["name"], metric(pool["name"], kind)
    recorded = value(kind, pool["recorded"])
    samples = [value(kind, run.get(name)) for run in base]
    simulated = _median(samples)
    others = {variant: [value(kind, run.get(name)) for run in runs] for variant, runs in predicted.items()}
    return Row(
        pool=name,
        kind=kind,
        metric=judged_by,
        recorded=recorded,
        simulated=simulated,
        error_pct=error(recorded, simulated),
        refused=refusal(kind, pool, recorded, samples),
        predicted={variant: _median(values) for variant, values in others.items()},
        judged={variant: judge(judged_by, RECORDED, variant, samples, values) for variant, values in others.items()},
    )


def _median(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return median(there) if there else None


def document(prediction: Prediction) -> dict[str, Any]:
    """The prediction as JSON."""

    def row(r: Row) -> dict[str, Any]:
        return {
            "pool": r.pool,
            "metric": r.kind,
            "unit": r.metric.unit,
            "recorded": r.recorded,
            "simulated": r.simulated,
            "error_pct": r.error_pct,
            "refused": None if r.refused is None else {"reason": r.refused.reason, "helps": r.refused.helps},
            "predicted": {v: {"value": r.predicted[v], "outcome": r.outcome(v)} for v in prediction.variants},
        }

    kept = {k: v for k, v in prediction.extraction.items() if k != "text"}
    return {
        "trace": prediction.trace,
        **kept,
        "causes": dict(prediction.causes),
        "seeds": prediction.seeds,
        "rows": [row(r) for r in prediction.rows],
    }
