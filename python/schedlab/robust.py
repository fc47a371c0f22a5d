"""Tests whether verdicts depend on unknown quantities: each estimated cost and every tie is drawn many times, and the
tasks are grouped in the other way (`regrouped`).

The costs of a machine that was not measured are estimates, and a kernel leaves the order of simultaneous events of
different CPUs to chance. A verdict that changes with these is one about them; one that holds in 19 of 20 draws is about
the schedulers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.errors import InputError
from schedlab.regrouped import Regrouped, from_record, to_record

if TYPE_CHECKING:
    from schedlab.engine import Engine
    from schedlab.judge import Judgement
    from schedlab.scenario import Metric, Scenario

DRAWS = 20
RANGE = 2.0
"""An estimated cost whose machine states no range is drawn between half and twice its value."""
FILE = "robustness.json"
SCHEMA = "schedlab.robustness/1"

Key = tuple[str, str, str]
"""Metric, baseline and variant."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """The verdicts of the same comparison with drawn costs and ties."""

    draws: tuple[Mapping[Key, str], ...]
    """For each draw: the outcome of each judgement."""
    costs: int
    """How many costs were drawn."""
    stated: int
    """How many of them in a range that their machine states."""
    ties: bool
    """Whether ties were drawn as well."""
    regrouped: Regrouped | None = None
    """What the other grouping of the tasks answers; None if there is none, or it was not asked."""

    def held(self, key: Key, outcome: str) -> int:
        """In how many draws a judgement had the same outcome."""
        return sum(draw.get(key) == outcome for draw in self.draws)


def outcomes(judgements: Iterable[tuple[Metric, Judgement]]) -> dict[Key, str]:
    """The outcome of each judgement: its effect, or its verdict where it has none."""
    return {(metric.name, j.a, j.b): j.effect if j.effect != "none" else j.verdict for metric, j in judgements}


def stated(scenario: Scenario) -> Mapping[str, tuple[float, float]]:
    """The ranges that the machine states, as factors, by cost."""
    ranges = scenario.description["machine"].get("ranges", {})
    return {cost: (float(low), float(high)) for cost, (low, high) in ranges.items()}


def estimated(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """The range of each estimate: of each cost that states one, and of all but 0 on a machine that was not measured."""
    own, measured = stated(scenario), scenario.machine.calibrated
    costs = sorted(name for name, ns in scenario.description["machine"].get("costs", {}).items() if any(_values(ns)))
    return {cost: own.get(cost, (1 / RANGE, RANGE)) for cost in costs if cost in own or not measured}


def factors(ranges: Mapping[str, tuple[float, float]], draw: int) -> dict[str, float]:
    """What each cost is multiplied by in one draw, evenly on the logarithmic scale; the same for the same number."""
    import random  # slow to import, and few commands draw

    chance = random.Random(f"machine {draw}")
    return {cost: round(_between(low, high, chance.random()), 4) for cost, (low, high) in ranges.items()}


def drawn(engine: Engine, scenario: Scenario, draw: int, overrides: Mapping[str, Any]) -> Scenario:
    """The scenario with drawn costs and ties; `overrides` are those with which it was loaded."""
    return engine.load(scenario.file, {**overrides, "costs": factors(estimated(scenario), draw), "ties": draw})


def robustness(
    scenario: Scenario, draws: Sequence[Mapping[Key, str]], regrouped: Regrouped | None = None
) -> Robustness:
    """The outcome of the draws of a scenario, and of its other grouping."""
    costs = estimated(scenario) if draws else {}
    own = sum(cost in costs for cost in stated(scenario)) if draws else 0
    return Robustness(tuple(draws), len(costs), own, ties=bool(draws), regrouped=regrouped)


def dump(found: Robustness) -> str:
    draws = [[[*key, outcome] for key, outcome in draw.items()] for draw in found.draws]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "costs": found.costs,
        "stated": found.stated,
        "range": RANGE,
        "ties": found.ties,
    }
    if found.regrouped:
        document["regrouped"] = to_record(found.regrouped)
    return json.dumps({**document, "draws": draws}, indent=1) + "\n"


def read(folder: Path | None) -> Robustness | None:
    """What a result directory holds; None if the comparison did not have --robust."""
    if folder is None or not (folder / FILE).exists():
        return None
    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        draws = tuple({(str(m), str(a), str(b)): str(o) for m, a, b, o in draw} for draw in document["draws"])
        costs, own = int(document["costs"]), int(document.get("stated", 0))
        regrouped = from_record(document["regrouped"]) if "regrouped" in document else None
        return Robustness(draws, costs, own, ties=bool(document.get("ties", False)), regrouped=regrouped)
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InputError(f"not a result of --robust: {e}", file=str(folder / FILE)) from None


def _between(low: float, high: float, part: float) -> float:
    return low * math.exp(part * math.log(high / low))


def _values(ns: object) -> list[float]:
    return ns if isinstance(ns, list) else [float(str(ns))]
