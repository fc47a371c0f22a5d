"""`schedlab explain` on the real engine: what people and programs read."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import native
import schedlab
from schedlab.cli import main
from schedlab.cli.values import time as _time
from schedlab.engine import native_engine
from schedlab.native import decisions, explained
from schedlab.render.explanation import divergence_text

pytest.importorskip("schedlab._engine", reason="the simulator is not built")

SCENARIO = """
name = "two"
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "50ms"
noise = false
workload = [{ use = "hog" }, { use = "hog", name = "late", nice = 5 }]
variant = [
    { name = "cfs", kernel = "6.1", hz = 1000 },
    { name = "eevdf", kernel = "6.12.107", hz = 1000 },
    { name = "same", kernel = "6.12.107", hz = 1000 },
]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO)
    return str(path)


def test_the_first_different_decision_is_shown(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", scenario, "cfs", "eevdf"]) == 0
    out = capsys.readouterr().out
    assert "two, seed 1: cfs and eevdf first differ at " in out
    assert "which task runs next?" in out
    assert "pick_next_entity: smallest vruntime" in out
    assert "pick_eevdf: earliest eligible deadline" in out
    assert len(out.splitlines()) <= 30
    assert max(map(len, out.splitlines())) <= 200


PROBE = """
name = "probe"
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "400ms"
warmup = "100ms"
noise = false
workload = [{ use = "hog" }, { use = "cyclictest", name = "probe", interval = "5ms" }]
variant = [
    { name = "coarse", kernel = "6.1", knobs = { wakeup_granularity = "100ms" } },
    { name = "fine", kernel = "6.1", knobs = { wakeup_granularity = "500us" } },
]
"""


def test_the_decision_that_slow_samples_depend_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a large granularity the probe waits for the hog; a statistic behind the name of the metric is left out."""
    path = tmp_path / "probe.toml"
    path.write_text(PROBE)
    for pair in (["coarse", "fine"], ["fine", "coarse"]):
        for name in ("probe.latency", "probe.latency.p99.9", "sched.wakeup_latency.max"):
            assert main(["explain", str(path), *pair, "--metric", name]) == 0
            out = " ".join(capsys.readouterr().out.split())
            assert f"{name.removesuffix('.p99.9').removesuffix('.max')} of {' and '.join(pair)}" in out
            assert "the slowest " in out
            assert "coarse: waits, check_preempt_wakeup: lead against wakeup granularity" in out
            assert "fine: preempts, check_preempt_wakeup: lead against wakeup granularity" in out
            assert "does probe/cyclictest (2) preempt when it wakes?" in out
    assert main(["explain", str(path), "--metric", "probe.latency", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "schedlab.explain-metric/1"
    assert document["causes"][0]["question"] == "preempt_check"
    assert document["shown"]["time_ns"] > 100_000_000


def test_a_metric_without_samples_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "probe.toml"
    path.write_text(PROBE)
    assert main(["explain", str(path), "--metric", "sched.switches"]) == 2
    assert "do not both have samples of `sched.switches` in seed 1" in capsys.readouterr().err
    assert main(["explain", str(path), "coarse", "--metric", "probe.latency", "--task", "2", "--at", "5ms"]) == 2
    assert "--metric cannot be used with --task" in capsys.readouterr().err


def test_the_same_rule_on_the_same_numbers_names_the_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "models.toml"
    models = "\n".join(
        f'[[variant]]\nname = "{name}"\nkernel = "6.18.12"\npreempt = "{model}"'
        for name, model in (("at-once", "full"), ("at-exit", "lazy"))
    )
    calls = 'program = [{ loop = "forever", do = [{ system = "1ms" }] }]'
    path.write_text(
        f'machine = {{ base = "laptop-8", topology = {{ cores-per-llc = 1 }} }}\nduration = "50ms"\n'
        f'[[workload]]\nname = "calls"\ncpus = "0"\n{calls}\n[[workload]]\nuse = "cyclictest"\ncpus = "0"\n{models}\n'
    )
    assert main(["explain", str(path), "at-once", "at-exit"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    said = (
        "the same rule with the same numbers, but in at-once it sets NEED_RESCHED, in at-exit it sets NEED_RESCHED_LAZY"
    )
    assert said in out


def test_variants_that_never_diverge(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", scenario, "eevdf", "same"]) == 0
    assert "do not differ in what was scheduled" in capsys.readouterr().out
    assert main(["explain", scenario, "eevdf", "same", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["diverged"]) == ("schedlab.explain/2", False)


def test_why_a_task_waits(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["explain", scenario, "--variant", "eevdf", "--at", "20.5ms", "--task"]
    texts = []
    for pid in "12":
        assert main([*ask, pid]) == 0
        texts.append(capsys.readouterr().out)
    runs, waits = sorted(texts, key=lambda text: " waits " in text)
    assert " runs for " in runs
    assert " runs instead" in waits
    assert "picked " in waits
    assert "it runs at " in waits
    assert main([*ask, "late", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["pid"], document["at_ns"]) == ("schedlab.why/2", 2, 20_500_000)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name two of: cfs, eevdf, same"),
        (["cfs", "cfs"], "`cfs` is named twice"),
        (["cfs", "eefdv"], "did you mean `eevdf`?"),
        (["--task", "1"], "--task and --at must be used together"),
        (["--task", "1", "--at", "5"], "is not a time"),
        (["--variant", "cfs", "--task", "haug", "--at", "5ms"], "no task"),
        (["--variant", "cfs", "--task", "hog", "--at", "5ms"], "name one by its pid (runnable tasks first): "),
        (["--variant", "cfs", "--task", "lat", "--at", "5ms"], "did you mean"),
        (["--variant", "cfs", "--task", "1", "--at", "5s"], "the run ends at 50.000000 ms, before 5000.000000 ms"),
        (["--variant", "cfs"], "--variant can only be used with --task"),
    ],
)
def test_what_cannot_be_asked(
    scenario: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", scenario, *arguments]) == 2
    assert expected in capsys.readouterr().err


TIMES = [
    ("12.5ms", 12_500_000),
    ("1.5s", 1_500_000_000),
    ("800us", 800_000),
    ("7ns", 7),
    # As tables print them.
    ("12,993.069547ms", 12_993_069_547),
    ("12,993.069547 ms", 12_993_069_547),
    ("1,234,567ns", 1_234_567),
]


def test_times() -> None:
    for text, ns in TIMES:
        assert _time(text) == ns
    for text in ("12,5ms", "1,0000us", ",5ms", "5,ms", "1.5,000ms"):
        with pytest.raises(ArgumentTypeError):
            _time(text)


GROUPS = """
name = "groups"
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "150ms"
noise = false
cgroup = [{ name = "a" }, { name = "b" }, { name = "b/c", quota = "10ms", period = "50ms" }]
workload = [
    { use = "hog", name = "one", cgroup = "a" },
    { use = "hog", name = "three", cgroup = "b/c" },
]
variant = [
    { name = "even", kernel = "6.12.107", hz = 1000 },
    { name = "more", kernel = "6.12.107", hz = 1000, cgroups.b.weight = 300 },
]
"""


def test_groups_and_quotas_are_named_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "groups.toml"
    path.write_text(GROUPS)
    assert main(["explain", str(path), "even", "more"]) == 0
    out = capsys.readouterr().out
    assert ": picks group /a\n" in out
    assert ": picks group /b\n" in out
    assert main(["explain", str(path), "--variant", "even", "--task", "three", "--at", "49ms"]) == 0
    out = capsys.readouterr().out
    assert "is throttled and waits for " in out
    assert "group /b/c is throttled: " in out
    assert " throttle_cfs_rq: its pool is empty (runtime left " in " ".join(out.split())
    assert "throttled here: group /b/c" in out
    assert "group /b/c is no longer throttled: 50.000000 unthrottle_cfs_rq" in out


def test_a_difference_of_costs_alone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "costs.toml"
    path.write_text(
        'machine = "laptop-8"\nduration = "100ms"\n'
        'workload = [{ use = "hackbench", groups = 3, repeat = true }, '
        '{ use = "cyclictest", smp = true, interval = "500us" }]\n'
        'variant = [{ name = "often", kernel = "6.1", hz = 250 }, { name = "seldom", kernel = "6.1", hz = 100 }]\n'
    )
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert "no decision differs, only costs" in out, out
    assert " since its last common event " in out
    assert " earlier decisions are the same" in out


def test_cpus_that_go_offline_are_named_beside_costs(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[2] / "scenarios/hotplug.toml"
    assert main(["explain", str(path), "all", "half"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "first differ at 200.000000 ms" in out
    assert "no decision differs, only costs or the CPUs that are offline" in out
    assert "earlier decisions are the same, only costs or the CPUs that are offline differ" in out


PLACED = """
name = "placed"
machine = { base = "laptop-8" }
duration = "100ms"
noise = false
workload = [{ use = "hackbench", groups = 1, repeat = true }, { use = "cyclictest", name = "probe", threads = 1 }]
variant = [
    { name = "idle", kernel = "6.12.107", hz = 1000 },
    { name = "weight", kernel = "6.12.107", hz = 1000, features = { WA_IDLE = false } },
]
"""


def test_a_placement_shows_every_cpu_that_it_considered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "placed.toml"
    path.write_text(PLACED)
    assert main(["explain", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["question"] == "placement"
    for side in document["sides"]:
        decision = side["decision"]
        candidates = decision["candidates"]
        assert candidates[0]["function"].startswith("wake_affine")
        last = candidates[-1]
        # The last candidate is the CPU chosen.
        assert last["cpus"] == [decision["other_cpu"]]
        assert "chosen" in last["answer"] or "stays" in last["answer"]
        assert all(one["idle"] + one["sched_idle"] <= len(one["cpus"]) for one in candidates)
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert "  function" in out
    assert " cache    idle  queued    load\n" in out
    assert "\n      answer\n" in out
    assert "wake_affine [WA_IDLE]" in out
    assert "wake_affine [WA_WEIGHT]" in out
    assert max(map(len, out.splitlines())) <= 80


def test_both_placements_are_those_of_the_instant_that_differs() -> None:
    """The last common event of the CPU may be later in one run than its own placement, on another CPU."""
    scenario = schedlab.load(Path(__file__).parents[2] / "scenarios/eevdf-vs-cfs.toml", seeds=[4])
    divergence = native_engine().explain(scenario, "cfs", "eevdf", 4)
    assert divergence is not None
    assert divergence["question"] == "placement"
    assert {side["decision"]["time_ns"] for side in divergence["sides"]} == {divergence["time_ns"]}


def test_placements_by_one_rule_with_other_candidates_name_the_test_that_differs() -> None:
    """The decision is the same in rule and numbers; what the search found is not."""
    difference = native.usual(explained.FirstDifference)
    place = {**native.usual(decisions.DecisionView), "action": "place"}
    busy = {**native.usual(decisions.CandidateView), "function": "select_idle_cpu", "cpus": [2], "answer": "not idle"}
    idle = {**busy, "idle": 1, "nr_running": 0, "answer": "idle: chosen"}
    sides = [{**difference["sides"][0], "decision": {**place, "candidates": [busy, last]}} for last in (busy, idle)]
    difference.update(sides=sides, question="placement", same_rule=True, costs=None, first_different=None)
    scenario: Any = SimpleNamespace(name="toy", guests=(), variant=lambda name: None)
    text = divergence_text(scenario, ("a", "b"), 1, difference)
    assert "the same rule with the same numbers" not in text
    assert "the same rule, but the first test that differs is in a select_idle_cpu of CPU 2 (" in text
    assert "1 of 1 idle, 0 queued): idle: chosen" in text
