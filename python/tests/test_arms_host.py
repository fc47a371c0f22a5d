"""The host arm on a made-up machine: settings are put back whatever ends a run, noise withholds numbers."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import arm_stand_ins as made_up
import fake_engine
from schedlab import api, render
from schedlab.arms import noise, process, state
from schedlab.arms.arm import Flag
from schedlab.arms.host import HostArm, usable_cpus
from schedlab.arms.order import ORDERS
from schedlab.compare_variants import compare_variants
from schedlab.engine import Engine
from schedlab.errors import ArmError, Cancelled, RunError
from schedlab.guests import identity
from schedlab.outcome import Run
from schedlab.scenario import Scenario
from schedlab.store import Store, read

HERE = Path(__file__).parent


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SCHEDLAB_AGENT", str(made_up.agent(tmp_path)))
    return made_up.system(tmp_path / "root")


def scenario(*variants: dict[str, Any], **changes: Any) -> Scenario:
    described = fake_engine.describe(variants=list(variants), seeds=[1, 2], arm="host", **changes)
    return Scenario.from_description(described)


def saying(root: Path, file: str) -> str:
    return (root / file.lstrip("/")).read_text()


def test_what_a_killed_agent_left_in_kernel_file_systems_is_removed(root: Path) -> None:
    ours = root / "sys/fs/cgroup/cpu/schedlab-123-web/api"
    instance = root / "sys/kernel/tracing/instances/schedlab-123"
    others = root / "sys/fs/cgroup/cpu/schedlab-is-mine"
    alive = root / "sys/fs/cgroup/schedlab-7-db"
    traced = root / "sys/kernel/tracing/instances/schedlab-7"
    for path in (ours, instance, others, alive, traced, root / "proc/7"):
        path.mkdir(parents=True)
    (root / "sys/kernel/tracing/instances/schedlab-9").symlink_to(root / "proc")
    arm = HostArm(Engine(fake_engine), root)
    arm.prepare(scenario(made_up.variant("a")))
    assert not ours.parent.exists()
    assert not instance.exists()
    assert all(path.exists() for path in (others, alive, traced, root / "proc/7"))
    assert arm.remarks() == [
        f"removed the control group {ours.parent}, which a killed run had left",
        f"removed the tracing instance {instance}, which a killed run had left",
    ]


def test_temporary_files_of_a_killed_agent_are_removed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    result = measured(root, scenario(made_up.variant("killed"), made_up.variant("a")))
    assert {failure.variant for failure in result.failures} == {"killed"}
    assert len(result.runs) == 2
    assert list(scratch.iterdir()) == []


def test_each_run_has_its_variant_s_settings(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("AGENT_KNOB", str(root / made_up.KNOB.lstrip("/")))
    compared = scenario(made_up.variant("a"), made_up.variant("b", files=[[made_up.KNOB, "0"]]))
    result = measured(root, compared)
    assert (tmp_path / "log").read_text().splitlines() == ["a 1 1", "b 1 0", "b 2 0", "a 2 1"]
    assert saying(root, made_up.KNOB) == "1"
    comparison = compare_variants(result)
    assert comparison.machine is not None
    assert comparison.machine.startswith("the running kernel 6.1.0-1-amd64")
    assert "differs: sysctl.sched_autogroup_enabled: a 1, b 0" in comparison.remarks
    assert "benchmarks run by: probe by agent" in comparison.remarks


def measured(root: Path, compared: Scenario, store: Store | None = None) -> Any:
    arm = HostArm(Engine(fake_engine), root)
    arm.prepare(compared)
    result, _ = api.run_all(Engine(fake_engine), compared, store=store, arm=arm)
    return result


def test_the_affinity_of_the_caller_is_not_that_of_the_run() -> None:
    inherited = os.sched_getaffinity(0)
    usable = usable_cpus()
    try:
        os.sched_setaffinity(0, {min(inherited)})
        assert usable_cpus() == usable >= len(inherited)
        assert os.sched_getaffinity(0) == {min(inherited)}
    finally:
        os.sched_setaffinity(0, inherited)


REFUSED = [
    # variants, words of the message, words of the hint
    ([{**made_up.variant("a"), "changes": {"hz": 1000}}], "variant a sets hz", "image = PATH"),
    ([{**made_up.variant("a"), "changes": {"physics": {"locks": False}}}], "variant a sets physics", "--arm sim"),
    ([made_up.variant("new", "6.12.107")], "variant new: kernel 6.12.107, and this machine runs 6.1.0", '"6.1"'),
    (
        [made_up.variant("a", files=[["/proc/sys/kernel/sched_nothing", "1"]])],
        "cannot read /proc/sys/kernel/sched_nothing",
        "no such",
    ),
    (
        [made_up.variant("a", files=[["/proc/sys/vm/swappiness", "1"]])],
        "/proc/sys/vm/swappiness is not a setting of the scheduler",
        "--arm vm",
    ),
]


@pytest.mark.parametrize(("variants", "message", "hint"), REFUSED)
def test_what_cannot_run_here_is_refused_first(
    root: Path, variants: list[dict[str, Any]], message: str, hint: str
) -> None:
    with pytest.raises(ArmError) as refused:
        HostArm(Engine(fake_engine), root).prepare(scenario(*variants))
    assert message in refused.value.message
    assert hint in str(refused.value.hint)
    assert refused.value.exit_code == 4


def test_an_agent_s_words_are_the_error(root: Path) -> None:
    result = measured(root, scenario(made_up.variant("broken"), made_up.variant("silent")))
    said = {f.variant: (f.message, f.hint) for f in result.failures}
    assert said["broken"] == ("no futex left", "reboot"), "variant and seed are stored beside it"
    assert "ended with exit code 7 without output" in said["silent"][0]


def test_nothing_of_a_program_is_left_after_its_time_limit(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(RunError, match="did not end within 0 s"):
        process.run(["sh", "-c", f"sh -c 'echo $$ >{pid}; exec sleep 60' & sleep 60"], limit_s=0.3)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_nothing_of_a_program_is_left_when_it_is_stopped() -> None:
    flag = Flag()
    flag.cancel()
    with pytest.raises(Cancelled):
        process.run(["sleep", "60"], limit_s=60, cancel=flag)


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import fake_engine, test_arms_host as t, arm_stand_ins as made_up
from schedlab import api
from schedlab.arms.host import HostArm
from schedlab.engine import Engine
from schedlab.store import Store
compared = t.killed_scenario()
arm = HostArm(Engine(fake_engine), Path({root!r}))
arm.prepare(compared)
store = Store(Path({out!r}), api.manifest(compared), resume={resume})
for words in arm.remarks():
    print(words)
result, _ = api.run_all(Engine(fake_engine), compared, store=store, arm=arm)
print(len(store.finished), len(result.runs))
"""


def killed_scenario() -> Scenario:
    return scenario(made_up.variant("a"), made_up.variant("b", files=[[made_up.KNOB, "0"], [made_up.PREEMPT, "full"]]))


def test_kill_9_loses_no_finished_run_and_leaves_no_setting(root: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "kept", tmp_path / "log"
    environment = {**os.environ, "AGENT_LOG": str(log), "AGENT_KNOB": str(root / made_up.KNOB.lstrip("/"))}

    def start(resume: bool, sleep: str) -> subprocess.Popen[str]:
        code = KILLED.format(here=str(HERE), root=str(root), out=str(out), resume=resume)
        return subprocess.Popen(
            [sys.executable, "-c", code], env={**environment, "AGENT_SLEEP": sleep}, stdout=subprocess.PIPE, text=True
        )

    victim = start(resume=False, sleep="1")
    wait_for(lambda: len(lines(out / "results.jsonl")) == 1 and saying(root, made_up.KNOB) == "0")
    victim.kill()
    victim.wait()
    assert saying(root, made_up.KNOB) == "0"
    assert [(r.variant, r.seed) for r in read(out).runs.values()] == [("a", 1)]

    second = start(resume=True, sleep="0")
    said, _ = second.communicate(timeout=60)
    assert f"restored {made_up.KNOB} from 0 to 1, which a killed run had changed" in said
    assert said.splitlines()[-1] == "1 4"
    assert saying(root, made_up.KNOB) == "1"
    assert saying(root, made_up.PREEMPT) == "voluntary"
    assert log.read_text().splitlines().count("a 1 1") == 1
    assert len(read(out).runs) == 4


def test_an_agent_dies_with_who_started_it(root: Path, tmp_path: Path) -> None:
    code = (
        "from schedlab.arms import process; "
        f"process.run(['sh', '-c', 'echo $$ >{tmp_path / 'pid'}; exec sleep 60'], limit_s=60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    pid = (tmp_path / "pid").read_text().strip()
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])


def wait_for(condition: Callable[[], bool]) -> None:
    """It must come; how soon is the machine's business."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_a_resumed_comparison_must_be_the_same_one(root: Path, tmp_path: Path) -> None:
    first, other = scenario(made_up.variant("a")), scenario(made_up.variant("b"))
    store = Store(tmp_path / "kept", api.manifest(first))
    measured(root, first, store)
    with pytest.raises(Exception, match="holds a result of another scenario"):
        Store(tmp_path / "kept", api.manifest(other), resume=True)


def test_orders_have_every_run_once() -> None:
    compared = scenario(made_up.variant("a"), made_up.variant("b"))
    seeds = list(range(1, 9))
    for order in ORDERS.values():
        jobs = [(j.variant, j.seed) for j in order(compared, seeds, None)]
        assert len(set(jobs)) == len(jobs) == 16
        assert [seed for _, seed in jobs] == sorted(seed for _, seed in jobs)
    first = [j.variant for j in ORDERS["abba"](compared, seeds, None)]
    assert first[:8] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert ORDERS["blocks"](compared, seeds, None) == ORDERS["blocks"](compared, seeds, None)


NOISES = [
    # user and idle and steal ticks in between, own seconds, foreign and steal share
    (100, 100, 0, 0.5, 25.0, 0.0),
    (50, 150, 0, 0.5, 0.0, 0.0),
    (0, 150, 50, 0.0, 0.0, 25.0),
    (0, 200, 0, 0.5, 0.0, 0.0),
]


@pytest.mark.parametrize(("user", "idle", "steal", "own", "foreign", "stolen"), NOISES)
def test_noise_is_what_others_ran(
    root: Path, user: int, idle: int, steal: int, own: float, foreign: float, stolen: float
) -> None:
    before = noise.Sample.now(root)
    (root / "proc/stat").write_text(made_up.STAT.format(user=user, idle=100 + idle, steal=steal))
    assert os.sysconf("SC_CLK_TCK") == 100
    assert noise.between(before, noise.Sample.now(root), own) == {
        "foreign_pct": foreign,
        "steal_pct": stolen,
        "throttled": 0,
    }


def test_throttling_is_noise(root: Path) -> None:
    before = noise.Sample.now(root)
    file = root / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count"
    file.parent.mkdir(parents=True)
    file.write_text("3\n")
    found = noise.between(before, noise.Sample.now(root), 0)
    assert found["throttled"] == 3
    assert noise.total_pct(found) == 100


def test_a_noisy_machine_gets_no_number(root: Path) -> None:
    compared = scenario(made_up.variant("a"), made_up.variant("b"))
    result = measured(root, compared)
    for run in result.runs.values():
        run.record["place"]["noise"]["foreign_pct"] = 6.0
        run.record["noise"] = {"foreign": {"cc1": 4.0, "sshd": 0.1, "rustc": 5.0, "top": 1.0}}
    comparison = compare_variants(result)
    for row in comparison.table():
        assert row["verdict"] == "undecided: noisy"
        assert row["delta_pct"] is row["median_a"] is row["low_pct"] is None
        assert "a 6.0%, b 6.0%; the limit is 5%" in row["reason"]
    assert any(remark.endswith("most by rustc, cc1, top") for remark in comparison.remarks)
    for style in ("table", "mmtests", "benchstat", "ministat"):
        assert "noisy" in render.text(comparison, style), style


def test_what_could_not_be_measured_is_said_with_its_reason(root: Path) -> None:
    compared = scenario(made_up.variant("a"), made_up.variant("b"))
    result = measured(root, compared)
    without = {}
    for key, run in result.runs.items():
        # As the agent reports without tracefs: a null is left out.
        record = {k: v for k, v in run.record.items() if k != "switches"}
        record |= {"metrics": {**run.metrics, "sched.switches": None}, "unavailable": {"sched.switches": "no tracefs"}}
        without[key] = Run.from_record(record)
    comparison = compare_variants(dataclasses.replace(result, runs=without))
    assert "not measured: sched.switches: no tracefs" in comparison.remarks
    assert next(iter(without.values())).volume == "1 trace events"


def test_a_workload_that_never_got_going_is_named(root: Path) -> None:
    compared = scenario(made_up.variant("a"), made_up.variant("b"))
    result = measured(root, compared)
    names = {metric.of.partition(".")[0] for metric in compared.metrics}
    own = next(str(w["name"]) for w in compared.workloads if w["name"] in names)
    silent = {
        key: Run.from_record(
            {**run.record, "metrics": {n: None if n.startswith(f"{own}.") else v for n, v in run.metrics.items()}}
        )
        for key, run in result.runs.items()
    }
    assert not any("did not finish" in remark for remark in compare_variants(result).remarks)
    remarks = compare_variants(dataclasses.replace(result, runs=silent)).remarks
    length = f"{compared.duration_ns / 1e9:g} s"
    said = [remark.split(";")[0] for remark in remarks if "did not finish" in remark]
    assert said == [f"{own} of {name} did not finish within {length}, so it has no result" for name in "ab"]
    some = dataclasses.replace(result, runs={**result.runs, **dict(list(silent.items())[:1])})
    (remark,) = (remark for remark in compare_variants(some).remarks if "did not finish" in remark)
    assert f"in 1 of {len(compared.seeds)} runs, which have no result of it" in remark


def test_where_time_is_unreal_only_orders_are_told(root: Path) -> None:
    result = measured(root, scenario(made_up.variant("a"), made_up.variant("b")))
    for run in result.runs.values():
        run.record["place"]["untimed"] = "emulated"
    table = {row["metric"]: row for row in compare_variants(result).table()}
    assert table["probe.latency.p50"]["verdict"] == "undecided, order only"
    assert table["probe.latency.p50"]["median_a"] is None
    assert table["sched.switches"]["median_a"] == 1.5


def test_only_what_differs_is_shown() -> None:
    one = {"release": "6.1", "cmdline": "quiet", "load": "0.1", "f": "A B NO_C D"}
    other = {"release": "6.1", "cmdline": "quiet nosmt", "load": "0.9", "f": "A B C D", "new": "1"}
    found = state.differences({"a": [one, one], "b": [other]})
    assert state.difference_lines(found) == ["cmdline: a quiet, b quiet nosmt", "f: a NO_C, b C", "only b has new 1"]


def test_a_machine_s_state_is_read(root: Path) -> None:
    found = state.read(root)
    assert found["release"] == "6.1.0-1-amd64"
    assert found["sysctl.sched_autogroup_enabled"] == "1"
    assert found["debugfs.features"] == "A NO_B C"


def test_a_kernel_without_a_row_runs_as_the_row_that_it_was_identified_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("SCHEDLAB_AGENT", str(made_up.agent(tmp_path)))
    root = made_up.system(tmp_path / "root", release="6.17.8-amd64")
    compared = scenario(made_up.variant("a", "6.18.2"))
    with pytest.raises(ArmError) as caught:
        HostArm(Engine(fake_engine), root).prepare(compared)
    assert "schedlab identify running" in (caught.value.hint or "")
    identity.keep(identity.running(root), identity.Identity(("6.17", "6.18.2"), "all picks"))
    arm = HostArm(Engine(fake_engine), root)
    arm.prepare(compared)
    arm.close()
    assert arm.remarks() == ["the running kernel is identified as 6.17 or 6.18.2: all picks"]
