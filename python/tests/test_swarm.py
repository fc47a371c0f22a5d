"""Random scenarios run without a failure and repeat; one that fails is printed as small as `shrink` makes it."""

from __future__ import annotations

import tomllib

import pytest

import schedlab
import swarm
from schedlab.shrinking.shrink import explicit

SCENARIOS = 60
KERNELS = [row["id"] for row in schedlab.listing("kernels")]


def test_random_scenarios_run_and_repeat() -> None:
    refused = []
    for seed in range(SCENARIOS):
        document = swarm.drawn(seed, KERNELS)
        try:
            scenario = schedlab.build(document, name=f"swarm-{seed}")
            unsimulated = scenario.variants[0].not_simulated
        except schedlab.ScenarioError as e:
            unsimulated = {"message": e.message}
        if unsimulated:
            refused.append(str(unsimulated["message"]))
            continue
        found = swarm.trouble(scenario)
        assert not found, f"swarm-{seed}: {found}"
    assert len(refused) < SCENARIOS / 3, refused


PLANTED = [{"lock": "a"}, {"run": "50us"}, {"lock": "a"}]
"""A task that waits for a mutex that it holds."""


@pytest.mark.parametrize("seed", [3, 8])
def test_a_planted_failure_is_printed_as_small_as_it_gets(seed: int) -> None:
    document = {key: swarm.drawn(seed, KERNELS)[key] for key in ("machine", "noise", "seeds", "variant")}
    ends = {"use": "hackbench", "groups": 2, "fds": 2, "loops": 5}  # what runs for ever is no deadlock
    stuck = {"name": "stuck", "task": [{"name": "one", "count": 3, "program": PLANTED}]}
    document |= {"duration": "1s", "workload": [ends, stuck]}
    found = swarm.trouble(schedlab.build(document))
    said, _, text = found.partition("\n")
    assert "deadlock" in said
    assert text.startswith("# the smallest scenario that shows: failure ")
    small = schedlab.build(tomllib.loads(text), name="small")
    assert "deadlock" in swarm.trouble(small).partition("\n")[0]
    (workload,) = small.workloads
    assert workload["use"] == "program"
    assert small.machine.cpus == 1


def test_a_guest_with_a_count_can_be_reduced() -> None:
    document = {
        "machine": "rpi4",
        "duration": "5ms",
        "guest": [{"name": "vm", "count": 3, "vcpus": 1, "platform": "x86-kvm"}],
        "workload": [{"use": "hog", "guest": "vm", "threads": 2}, {"use": "hackbench", "groups": 2}],
        "variant": [{"name": "a", "kernel": "6.12.0"}],
    }
    found = explicit(schedlab.build(document))
    assert [table["use"] for table in found["workload"]] == ["hog", "hackbench"]
    assert found["workload"][0]["threads"] == 2
    assert found["workload"][1]["groups"] == 2
