"""What ran and how the variants differ, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fake_engine
from schedlab.scenario import Scenario, Variant
from schedlab.setup_facts import Fact, changes_text, differing, facts, of_two


def described(**changes: Any) -> Scenario:
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
    found = facts(described(workloads=[LOAD], cgroups={"/web": {"weight": 50}}, warmup_ns=250_000_000))
    assert Fact("run", "run", "1 s, the first 250 ms not measured") in found
    text = "hackbench, groups=2, threads, repeat, nice=5, 1 task at the start; by default loops=100"
    assert Fact("workload", "load", text) in found
    assert Fact("group", "/web", "weight=50") in found
    assert Fact("variant", "cfs", "kernel 6.1, with its own settings") in found
    assert found[0] == Fact("machine", "laptop-8", "8 CPUs; 8 CPUs, costs measured on it")


def test_every_guest_is_named_with_its_keys() -> None:
    text = """
[[guest]]
name = "vm"
vcpus = 4
platform = "x86-kvm"
features = { VCPU_IS_PREEMPTED = false }
[[guest]]
name = "old"
vcpus = 2
platform = "arm64-kvm"
kernel = "5.7"
paravirt_time_accounting = true
"""
    found = [fact for fact in facts(described(text=text)) if fact.kind == "guest"]
    own = "vcpus=4, platform=x86-kvm, features=VCPU_IS_PREEMPTED=false, kernel of its host"
    other = "vcpus=2, platform=arm64-kvm, kernel=5.7, paravirt_time_accounting"
    assert found == [Fact("guest", "vm", own), Fact("guest", "old", other)]


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
    lines = differing(described(workloads=[LOAD]), described(workloads=[more], duration_ns=2 * 10**9))
    assert [line.split(":")[0] for line in lines] == ["run", "workload load"]
    assert lines[0] == "run: 1 s | 2 s"
    assert "groups=2" in lines[1].split("|")[0]
    assert "groups=4" in lines[1].split("|")[1]
    assert differing(described(), described(variants=[])) == ()


def test_there_is_one_machine_whatever_its_name() -> None:
    small = {"name": "rpi4", "summary": "small", "cpus": 4, "calibrated": False, "sources": []}
    a, b = described(), described(machine=small)
    assert differing(a, b) == (
        "machine: laptop-8, 8 CPUs; 8 CPUs, costs measured on it | rpi4, small; 4 CPUs, costs not measured on it",
    )
    assert of_two(facts(a), facts(a))[0] == facts(a)[0]
    both = of_two(facts(a), facts(b))
    assert both[0] == Fact("machine", "machine", differing(a, b)[0].removeprefix("machine: "))
    assert both[1] == facts(a)[1]
    assert not [fact for fact in both if fact.kind == "variant"]


def test_workloads_with_steps_of_their_own_are_compared_by_their_steps() -> None:
    def own(steps: str, more: str = "") -> Scenario:
        return described(text=f'{more}\n[[workload]]\nname = "w"\nprogram = [ {{ run = "{steps}" }} ]\n')

    assert differing(own("1ms"), own("1ms", "# a comment")) == ()
    assert differing(own("1ms"), own("2ms")) == ("workload w: its steps",)
    assert differing(own("1ms"), described(text="not TOML")) == ()


def test_a_result_of_an_older_version_is_described_as_far_as_it_goes() -> None:
    found = facts(described())
    assert Fact("workload", "probe", "cyclictest, 1 task at the start") in found


def test_two_results_say_in_what_they_differ(
    schedlab: Callable[..., tuple[int, str, str]], scenario: Callable[..., str]
) -> None:
    for name, steps in (("old", "1ms"), ("new", "2ms")):
        text = f'[[workload]]\nname = "own"\nprogram = [ {{ run = "{steps}" }} ]\n'
        schedlab("compare", scenario(text=text, duration_ns=10**9 if name == "old" else 2 * 10**9), "--out", name)
    _, out, _ = schedlab("report", "old", "new")
    assert "the two results did not run the same: run: 1 s | 2 s" in out
    assert "the two results did not run the same: workload own: its steps" in out
    assert "did not run the same" not in schedlab("report", "old", "old")[1]
