"""Whether verdicts hold with other costs and another order of simultaneous events."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import schedlab as api
from schedlab import robust
from schedlab.engine import Engine

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]


def document(schedlab: Schedlab, *words: str) -> dict[str, Any]:
    code, out, err = schedlab(*words, "--json", "-")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


UNCALIBRATED = {
    "name": "box",
    "summary": "",
    "cpus": 1,
    "calibrated": False,
    "sources": [],
    "costs": {"tick": 100, "ipi": [0, 5, 5, 5, 5], "nothing": 0, "free": [0, 0, 0, 0, 0]},
}


def test_verdicts_that_depend_on_a_cost_do_not_hold(schedlab: Schedlab, scenario: Write) -> None:
    behaviour = {"eevdf": {"by_cost": ["probe.latency.p99", "tick"], "factor": {}}}
    same = scenario(behaviour=behaviour, machine=UNCALIBRATED, seeds=list(range(1, 9)))
    _, out, err = schedlab("compare", same, "--robust", "10", "--out", "r")
    assert "repeating the comparison 10 times with other costs and ties" in err
    found = document(schedlab, "report", "r")["robustness"]
    assert (found["machines"], found["costs"], found["range"]) == (10, 2, 2.0)
    held = {h["metric"]: h["held"] for h in found["held"]}
    assert held["probe.latency.p50"] == 10
    assert held["probe.latency.p99"] < 10
    assert (
        "verdicts in 10 draws of the order of simultaneous events, 2 estimated costs from 1/2 to 2 times"
        in " ".join(out.split())
    )
    assert "hold in 10 of 10: probe.latency.p50" in out
    assert out == schedlab("report", "r")[1]


@given(low=st.floats(0.01, 1), wide=st.floats(1.01, 100))
def test_costs_are_drawn_within_their_range_and_the_same_every_time(low: float, wide: float) -> None:
    ranges = {"ipi": (low, low * wide), "tick": (0.5, 2.0)}
    drawn = [robust.factors(ranges, number) for number in range(200)]
    for cost, (least, most) in ranges.items():
        parts = [math.log(draw[cost] / least) / math.log(most / least) for draw in drawn]
        rounding = 1e-4 / least / math.log(most / least)
        assert -rounding <= min(parts) < 0.1 + rounding
        assert 0.9 - rounding < max(parts) <= 1 + rounding
        assert sum(parts) / 200 == pytest.approx(0.5, abs=0.1 + rounding)
    assert drawn[3] == robust.factors(ranges, 3)


def test_measured_costs_are_not_drawn_unless_they_state_a_range(engine: Engine, scenario: Write) -> None:
    def ranges(**machine: Any) -> dict[str, tuple[float, float]]:
        return robust.estimated(api.load(scenario(machine={**UNCALIBRATED, **machine}), engine=engine))

    usual, own = (0.5, 2.0), (0.3, 1.5)
    assert ranges() == {"ipi": usual, "tick": usual}
    assert ranges(ranges={"ipi": own, "nothing": own}) == {"ipi": own, "tick": usual}
    assert ranges(calibrated=True) == {}
    assert ranges(calibrated=True, ranges={"ipi": own}) == {"ipi": own}


def test_a_measured_machine_has_its_ties_drawn(schedlab: Schedlab, scenario: Write) -> None:
    behaviour = {"eevdf": {"by_ties": "probe.latency.p99", "factor": {}}}
    _, out, _ = schedlab("compare", scenario(behaviour=behaviour, seeds=list(range(1, 9))), "--robust", "10")
    assert "verdicts in 10 draws of the order of simultaneous events:" in out
    assert "hold in 10 of 10: probe.latency.p50" in out
    assert "hold in 5 of 10: probe.latency.p99" in out


def test_a_broken_file_of_robustness_is_named(schedlab: Schedlab, scenario: Write) -> None:
    schedlab("compare", scenario(), "--out", "r")
    Path("r", robust.FILE).write_text("{}")
    code, _, err = schedlab("report", "r")
    assert code == 2
    assert robust.FILE in err
