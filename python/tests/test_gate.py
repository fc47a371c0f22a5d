"""`--fail-on`: how it is written, what it looks at, and what it says of what it does not look at."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fake_engine
from schedlab import api, gate, validity
from schedlab.engine import Engine
from schedlab.gate import Gate

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]

WRITTEN = [
    ("worse", [Gate("worse")]),
    ("worse, undecided", [Gate("worse"), Gate("undecided")]),
    ("worse:probe.latency.p99", [Gate("worse", "probe.latency.p99")]),
    ("worse:probe.latency.p99:5", [Gate("worse", "probe.latency.p99", 5.0)]),
    ("better:m:2.5%,changed:n:model", [Gate("better", "m", 2.5), Gate("changed", "n", "model")]),
]


@pytest.mark.parametrize(("text", "gates"), WRITTEN)
def test_gates_as_written(text: str, gates: list[Gate]) -> None:
    assert gate.parse(text) == gates
    assert gate.parse(",".join(map(str, gates))) == gates


BAD = ["bad", "", "worse:", "worse:m:", "worse:m:x", "worse:m:-1", "worse:m:inf", "worse:m:1:2", "undecided:m:5", "nan"]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_gate(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        gate.parse(text)


def behaviour(**factor: float) -> dict[str, Any]:
    return {"eevdf": {"factor": {name.replace("_", "."): x for name, x in factor.items()}}}


SLOWER = behaviour(probe_latency_p99=1.3)
GATES = [
    ("worse:probe.latency.p99", 1),
    ("worse:probe.latency.p99:20", 1),
    ("worse:probe.latency.p99:29.9", 0),  # the estimate is above it, the near end of the interval is not
    ("worse:probe.latency.p99:40", 0),
    ("worse:probe.latency.p50", 0),
    ("better:probe.latency.p99", 0),
    ("equivalent:probe.latency.p50", 1),
    ("worse:load.rate,worse:probe.latency.p99:20", 1),
]


@pytest.mark.parametrize(("text", "code"), GATES)
def test_gates_of_one_metric(text: str, code: int, schedlab: Schedlab, scenario: Write) -> None:
    assert schedlab("compare", scenario(behaviour=SLOWER), "--fail-on", text)[0] == code


def declared(*names: str) -> list[dict[str, Any]]:
    return [{**m, "declared": m["name"] in names} for m in fake_engine.describe()["metrics"]]


def test_changes_that_no_gate_looks_at_are_named(schedlab: Schedlab, scenario: Write) -> None:
    changed = {
        "cfs": {"fixed": {"sched.switches": 100}},
        "eevdf": {"fixed": {"sched.switches": 1902}, "factor": {"probe.latency.p99": 1.3}},
    }
    name = scenario(behaviour=changed, metrics=declared("probe.latency.p50"))
    code, _, err = schedlab("compare", name, "--fail-on", "worse")
    assert code == 0
    assert "no gate covers sched.switches of eevdf, changed by +1,802%: not declared by the scenario" in err
    assert "no gate covers probe.latency.p99 of eevdf, worse by +" in err
    everything = scenario(behaviour=changed)
    code, _, err = schedlab("compare", everything, "--fail-on", "worse")
    assert code == 1
    assert "sched.switches of eevdf, changed by +1,802%: neither direction is better" in err
    assert "no gate covers probe" not in err


def test_nothing_is_said_without_a_gate(schedlab: Schedlab, scenario: Write) -> None:
    assert "gate" not in schedlab("compare", scenario(behaviour=SLOWER))[2]


REFUSED = [
    ("worse:probe.latency.p98", "there is no metric", "did you mean `probe.latency.p9"),
    ("worse:nothing", "there is no metric", "the metrics are"),
    ("worse:probe.latency.p99:model", "the model error is not known", "worse:probe.latency.p99:PERCENT"),
]


@pytest.mark.parametrize(("text", "message", "hint"), REFUSED)
def test_a_gate_that_cannot_fail_is_refused_before_the_runs(
    text: str, message: str, hint: str, schedlab: Schedlab, scenario: Write
) -> None:
    code, out, err = schedlab("compare", scenario(behaviour=SLOWER), "--fail-on", text, "--out", "r")
    assert (code, out) == (2, "")
    assert message in err
    assert hint in err
    schedlab("compare", scenario(behaviour=SLOWER), "--out", "r")
    assert schedlab("report", "r", "--fail-on", text)[0] == 2


FEW = {"cfs": {"fixed": {"load.rate": 100}}, "eevdf": {"fixed": {"load.rate": 50}}}


@pytest.mark.parametrize("gates", ["worse", "undecided", "worse:load.rate:5", "better:load.rate"])
def test_too_few_seeds_are_refused_before_the_runs(gates: str, schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(behaviour=FEW)
    code, out, err = schedlab("compare", name, "--seeds", "5", "--fail-on", gates, "--out", "r")
    assert (code, out) == (2, "")
    assert "5 seeds give no verdict, a 95% interval needs at least 6" in err
    assert "--seeds 6" in err
    assert not Path("r").exists()
    assert schedlab("compare", name, "--seeds", "5", "--out", "r")[0] == 0
    assert schedlab("report", "r", "--fail-on", gates)[0] == 2


def test_one_seed_is_enough_where_nothing_varies(schedlab: Schedlab, scenario: Write) -> None:
    name = scenario(behaviour=FEW, noise=False)
    assert schedlab("compare", name, "--seeds", "1", "--fail-on", "worse:load.rate:5")[0] == 1
    assert schedlab("compare", name, "--seeds", "1", "--fail-on", "better:load.rate")[0] == 0


def some_without_a_value(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """No run of the first variant has a value of one metric."""
    return {"metrics": metrics, "behaviour": {"cfs": {"fixed": {"load.rate": None}}}}


@pytest.mark.parametrize(
    ("gates", "names", "code"),
    [
        ("worse:load.rate", (), 2),
        ("worse", ("load.rate", "probe.latency.p99"), 2),
        ("worse", ("probe.latency.p99",), 0),
        ("worse", (), 0),
        ("undecided:load.rate", (), 1),
    ],
)
def test_a_gate_without_values_does_not_pass(
    gates: str, names: tuple[str, ...], code: int, schedlab: Schedlab, scenario: Write
) -> None:
    found, _, err = schedlab("compare", scenario(**some_without_a_value(declared(*names))), "--fail-on", gates)
    assert found == code, err
    watched = "load.rate" in gates or not names or "load.rate" in names
    assert ("load.rate of eevdf cannot be judged: no seed has a value for cfs" in err) == watched
    assert ("too few values to pass or fail" in err) == (code == 2)


@pytest.mark.parametrize(("error_pct", "fails"), [(20.0, True), (29.9, False), (40.0, False)])
def test_a_gate_of_the_model_error_fails_beyond_it_only(
    error_pct: float, fails: bool, engine: Engine, scenario: Write
) -> None:
    """The latency is 30% worse."""
    error = validity.ModelError("p99 latency", "vm", "QEMU", 1, 9, 5.0, error_pct)
    known = validity.errors.Validated("p99 latency", error)
    found = api.compare(scenario(behaviour=SLOWER), engine=engine)
    metrics = tuple(dataclasses.replace(m, model=known) for m in found.metrics)
    gates = gate.parse("worse:probe.latency.p99:model")
    assert bool(gate.failed(gates, dataclasses.replace(found, metrics=metrics))) == fails
