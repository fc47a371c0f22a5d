"""What ran and how the variants differ, in words."""

from __future__ import annotations

from typing import Any

import fake_engine
from schedlab.scenario import Scenario, Variant
from schedlab.setup import Fact, changes_text, differing, facts


def scenario(**changes: Any) -> Scenario:
    return Scenario.from_description(fake_engine.describe(**changes))


LOAD = {
    "name": "load",
    "use": "hackbench",
    "tasks": 1,
    "options": {"groups": 2, "loops": 100, "pipe": False, "threads": True},
    "given": ["groups", "threads"],
    "attributes": {"repeat": True, "nice": 5},
}


def test_every_option_is_named() -> None:
    found = facts(scenario(workloads=[LOAD], cgroups={"/web": {"weight": 50}}, warmup_ns=250_000_000))
    assert Fact("run", "run", "1 s, the first 250 ms not measured") in found
    text = "hackbench, groups=2, threads, repeat, nice=5, 1 task at the start; by default loops=100"
    assert Fact("workload", "load", text) in found
    assert Fact("group", "/web", "weight=50") in found
    assert Fact("variant", "cfs", "kernel 6.1, with its own settings") in found
    assert found[0] == Fact("machine", "laptop-8", "8 CPUs; 8 CPUs, costs measured on it")


def test_every_change_of_a_variant_is_named() -> None:
    changes = {
        "features": {"PLACE_LAG": True, "RUN_TO_PARITY": False},
        "knobs": {"base_slice_ns": "3ms"},
        "hz": 1000,
        "preempt": "full",
        "tasks": {"probe": {"nice": -5, "slice": "100us"}},
        "cgroups": {"/web": {"quota": "20ms"}},
        "autogroup": True,
        "sysctl": {"kernel.sched_schedstats": 1},
    }
    assert changes_text(Variant("v", "6.12.0", "", changes)) == (
        "PLACE_LAG on, RUN_TO_PARITY off, base_slice_ns=3ms, hz=1000, preempt=full, probe.nice=-5, probe.slice=100us, "
        "/web quota=20ms, autogroup on, kernel.sched_schedstats=1"
    )
    assert changes_text(Variant("v", "6.12.0", "", {"features": {}, "hz": None})) == ""


def test_two_scenarios_differ_in_what_ran() -> None:
    more = {**LOAD, "options": {**LOAD["options"], "groups": 4}}
    lines = differing(scenario(workloads=[LOAD]), scenario(workloads=[more], duration_ns=2 * 10**9))
    assert [line.split(":")[0] for line in lines] == ["run", "workload load"]
    assert lines[0] == "run: 1 s | 2 s"
    assert "groups=2" in lines[1].split("|")[0]
    assert "groups=4" in lines[1].split("|")[1]
    assert differing(scenario(), scenario(variants=[])) == ()


def test_a_result_of_an_older_version_is_described_as_far_as_it_goes() -> None:
    found = facts(scenario())
    assert Fact("workload", "probe", "cyclictest, 1 task at the start") in found
