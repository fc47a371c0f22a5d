"""Whether verdicts hold where the machine's costs are others: each estimated cost is drawn from a range, many times.

The costs of a machine that was not measured are estimates. A verdict that changes when they change is one about
these estimates; one that holds in 19 of 20 drawn machines is about the schedulers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.errors import InputError

if TYPE_CHECKING:
    from schedlab.comparison import Comparison
    from schedlab.engine import Engine
    from schedlab.scenario import Scenario

DRAWS = 20
RANGE = 2.0
"""An estimated cost is drawn between half and twice its value, evenly on the logarithmic scale."""
FILE = "robustness.json"
SCHEMA = "schedlab.robustness/1"

Key = tuple[str, str, str]
"""Metric, baseline and variant."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """The verdicts of the same comparison on machines with drawn costs."""

    draws: tuple[Mapping[Key, str], ...]
    """For each machine: what each judgement came to."""
    costs: int
    """How many costs were drawn."""

    def held(self, key: Key, outcome: str) -> int:
        """On how many machines a judgement came to the same."""
        return sum(draw.get(key) == outcome for draw in self.draws)


def outcomes(comparison: Comparison) -> dict[Key, str]:
    """What each judgement comes to: its effect, or its verdict where it has none."""
    return {
        (metric.name, j.a, j.b): j.effect if j.effect != "none" else j.verdict for metric, j in comparison.judgements()
    }


def estimated(scenario: Scenario) -> list[str]:
    """The costs that are estimates: all of a machine that was not calibrated, except those of 0."""
    machine: Mapping[str, Any] = scenario.description["machine"]
    if scenario.machine.calibrated:
        hint = "--robust is for presets and other machines with estimated costs"
        raise InputError(f"the costs of {scenario.machine.name} are measured: there is nothing to draw", hint=hint)
    return sorted(name for name, ns in machine.get("costs", {}).items() if any(_values(ns)))


def factors(costs: Iterable[str], draw: int) -> dict[str, float]:
    """What the costs are multiplied by on one machine; the same for the same number."""
    chance = random.Random(f"machine {draw}")
    return {cost: round(RANGE ** chance.uniform(-1, 1), 4) for cost in costs}


def machine(engine: Engine, scenario: Scenario, draw: int, overrides: Mapping[str, Any]) -> Scenario:
    """The scenario on a machine with drawn costs; `overrides` are those with which it was loaded."""
    return engine.load(scenario.file, {**overrides, "costs": factors(estimated(scenario), draw)})


def dump(found: Robustness) -> str:
    draws = [[[*key, outcome] for key, outcome in draw.items()] for draw in found.draws]
    return json.dumps({"schema": SCHEMA, "costs": found.costs, "range": RANGE, "draws": draws}, indent=1) + "\n"


def read(folder: Path | None) -> Robustness | None:
    """What a result directory holds; None if the comparison was not asked for it."""
    if folder is None or not (folder / FILE).exists():
        return None
    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        draws = tuple({(str(m), str(a), str(b)): str(o) for m, a, b, o in draw} for draw in document["draws"])
        return Robustness(draws, int(document["costs"]))
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InputError(f"not what --robust wrote: {e}", file=str(folder / FILE)) from None


def _values(ns: object) -> list[float]:
    return ns if isinstance(ns, list) else [float(str(ns))]
