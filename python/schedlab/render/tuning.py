"""The outcome of `schedlab tune` as text and as a document; the first sentence says what to set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedlab.render import table
from schedlab.render.cells import plural
from schedlab.render.grid import columns
from schedlab.scenario import Scenario
from schedlab.tuning.confirm import Confirmation
from schedlab.tuning.search import Plan, Trial

SCHEMA = "schedlab.tune/1"
SHOWN_TRIALS = 10


def text(plan: Plan, default: Scenario, trials: Sequence[Trial], best: Trial | None, found: Confirmation | None) -> str:
    """The sentence, the best trials, and the confirming comparison."""
    states = [t.state for t in trials]
    counts = [f"{states.count(word)} {word}" for word in ("complete", "pruned", "failed") if word in states]
    refused = sum(state.startswith("refused") for state in states)
    counts += [f"{refused} refused"] if refused else []
    head = [
        sentence(plan, best, found),
        f"{default.name}, variant {plan.variant}: {plan.goal}; {plural(len(trials), 'trial')}"
        f" ({', '.join(counts)}) on {plural(len(plan.seeds), 'seed')}, {plan.sampler} sampler, seed {plan.seed}",
    ]
    blocks = ["\n".join(head), "\n".join(columns(_rows(plan, trials), "<>>" + ">" * len(plan.goal.bounds) + "<"))]
    if refused:
        example = next(t for t in trials if t.state.startswith("refused"))
        blocks.append(f"refused, for example {' '.join(example.overrides)}: {example.state.removeprefix('refused: ')}")
    if found:
        seeds = plural(len(found.comparison.seeds), "fresh seed")
        blocks.append(f"confirmation on {seeds}: " + "; ".join(found.findings))
        blocks.append(table.render(found.comparison))
    return "\n\n".join(blocks)


def sentence(plan: Plan, best: Trial | None, found: Confirmation | None) -> str:
    """What to set, or why nothing."""
    if best is None:
        bounds = " that keeps every bound" if plan.goal.bounds else ""
        return f"no trial{bounds} has a value for {plan.goal.metric}: the default stays"
    sets = " ".join(f"--set {text}" for text in best.overrides)
    if found is None:
        return f"not confirmed: {sets} was the best of the search, and the comparison on fresh seeds did not end"
    if found.confirmed:
        return f"confirmed: {sets} improves {plan.goal.metric} on fresh seeds, and every bound holds"
    return f"NOT confirmed: {sets} was the best of the search, but fresh seeds do not show it; keep the default"


def document(
    plan: Plan, default: Scenario, trials: Sequence[Trial], best: Trial | None, found: Confirmation | None
) -> dict[str, Any]:
    """Everything, for --json."""
    return {
        "schema": SCHEMA,
        "scenario": default.name,
        "variant": plan.variant,
        "goal": str(plan.goal),
        "seeds": list(plan.seeds),
        "sampler": {"name": plan.sampler, "seed": plan.seed, "pruner": plan.pruner},
        "sentence": sentence(plan, best, found),
        "winner": _trial(best) if best else None,
        "confirmed": bool(found and found.confirmed),
        "findings": list(found.findings) if found else [],
        "confirmation": found.comparison.table() if found else [],
        "trials": [_trial(t) for t in trials],
    }


def _trial(t: Trial) -> dict[str, Any]:
    costs = {name: None if cost == float("inf") else cost for name, cost in t.costs.items()}
    return {
        "number": t.number, "overrides": list(t.overrides), "seeds": t.seeds, "change_pct": t.change,
        "exceeds_pct": costs, "state": t.state,
    }  # fmt: skip


def _rows(plan: Plan, trials: Sequence[Trial]) -> list[list[str]]:
    head = ["values", "seeds", plan.goal.metric, *(str(b) for b in plan.goal.bounds), "state"]
    valued = [t for t in trials if t.change is not None]
    ordered = sorted(valued, key=lambda t: (not t.feasible, plan.goal.loss(t.change or 0.0), t.number))
    rows = [head]
    for t in ordered[:SHOWN_TRIALS]:
        bounds = [_bound(t, str(b)) for b in plan.goal.bounds]
        prefix = f"variant.{plan.variant}."
        values = " ".join(text.removeprefix(prefix) for text in t.overrides)
        rows.append([values, str(t.seeds), f"{t.change:+.2f}%", *bounds, t.state])
    return rows


def _bound(t: Trial, name: str) -> str:
    cost = t.costs.get(name)
    if cost is None:
        return "-"
    return "kept" if cost <= 0 else f"exceeded by {cost:.2f}"
