"""`doctor`, `calibrate` and `validate`: what they find, write and count, on made-up machines and made-up results."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import arm_stand_ins as made_up
import fake_engine
from schedlab.arms import agent, calibrate, doctor, validate
from schedlab.arms.journal import state_directory
from schedlab.arms.validate import Validation
from schedlab.private import Directory
from schedlab.engine import Engine, native_engine
from schedlab.outcome import Failure, Run
from schedlab.render.validation import document, page, text
from schedlab.scenario import Scenario
from schedlab.store import Result


def result(arm: str, values: dict[str, dict[str, float]], shares: dict[str, int]) -> Result:
    """Four seeds of two variants, all with the same numbers."""
    scenario = Scenario.from_description(fake_engine.describe(seeds=[1, 2, 3, 4]))
    runs = {}
    for variant in scenario.variants:
        for seed in scenario.seeds:
            record = fake_engine.record(variant.name, seed, variant.kernel, values[variant.name])
            task = {"pid": 1, "wait_ns": 0, "switches": 0, "migrations": 0}
            record["tasks"] = [{**task, "name": name, "cpu_ns": ns} for name, ns in shares.items()]
            runs[variant.name, seed] = Run.from_record(record)
    return Result(scenario, arm, scenario.seeds, runs)


def numbers(latency: float, switches: float) -> dict[str, float]:
    return {"probe.latency.p50": 1.0, "probe.latency.p99": latency, "load.rate": 5.0, "sched.switches": switches}


@pytest.fixture
def both() -> tuple[Result, Result]:
    simulated = result("sim", {"cfs": numbers(100, 110), "eevdf": numbers(90, 100)}, {"a": 60, "b": 40})
    measured = result("vm", {"cfs": numbers(100, 100), "eevdf": numbers(150, 120)}, {"a": 50, "b": 50})
    return simulated, measured


def test_errors_are_of_the_measured_value(both: tuple[Result, Result]) -> None:
    rows = {(r.variant, r.metric): r for r in validate.rows(*both)}
    assert rows["cfs", "sched.switches"].error == pytest.approx(10)
    assert rows["eevdf", "probe.latency.p99"].error == pytest.approx(-40)
    assert rows["cfs", "a share"].error == pytest.approx(10)
    assert [key for key, row in rows.items() if row.missed] == [
        ("cfs", "sched.switches"),
        ("cfs", "a share"),
        ("cfs", "b share"),
        ("eevdf", "probe.latency.p99"),
        ("eevdf", "sched.switches"),
        ("eevdf", "a share"),
        ("eevdf", "b share"),
    ]


def test_effects_are_compared_by_sign(both: tuple[Result, Result]) -> None:
    effects = {e.metric: e for e in validate.effects(*both)}
    assert effects["probe.latency.p99"].agrees is False
    assert effects["sched.switches"].agrees is False
    assert effects["load.rate"].agrees is None
    assert validate.summary(list(validate.rows(*both)), list(effects.values()))[-1][:2] == ["A/B effect", "2"]


@pytest.mark.parametrize(
    ("simulated", "measured", "gap"), [(-50, 100, -75), (100, -50, 300), (20, 20, 0), (0, -100, None)]
)
def test_the_gap_compares_ratios(simulated: float, measured: float, gap: float | None) -> None:
    assert validate.Effect("toy", "load.rate", "cfs", "eevdf", simulated, measured, certain=True).gap == gap


def test_the_worst_rows_come_first_everywhere(both: tuple[Result, Result]) -> None:
    found = Validation()
    found.add(*both)
    shown = text(found)
    assert shown.index("eevdf    probe.latency.p99") < shown.index("eevdf    sched.switches")
    assert "WRONG" in shown
    assert "| toy | eevdf | probe.latency.p99 |" in page(found, "schedlab validate x")
    errors = [row["error"] for row in json.loads(document(found))["rows"]]
    assert [abs(e) for e in errors] == sorted((abs(e) for e in errors), reverse=True)


def test_a_run_that_failed_is_told(both: tuple[Result, Result]) -> None:
    found = Validation()
    lost = Failure("cfs", 3, "the guest's Kernel panic\n  | more", None)
    found.add(both[0], dataclasses.replace(both[1], failures=(lost,)))
    assert "toy cfs seed 3, measured: the guest's Kernel panic" in page(found, "x").splitlines()[-1]
    assert text(found).endswith("panic")


def test_a_metric_that_one_arm_lacks_keeps_its_row(both: tuple[Result, Result]) -> None:
    simulated, measured = both
    for run in measured.runs.values():
        run.record["metrics"]["sched.switches"] = None
    row = next(r for r in validate.rows(simulated, measured) if r.metric == "sched.switches")
    assert (row.measured, row.error, row.note) == (None, None, "the kernel's arm has no value")


POINTS = {"p0": 100, "p10": 110.4, "p50": 120, "p90": 119, "p99": 150, "p100": 900}
CALIBRATION = {
    "costs": {
        "syscall": {**POINTS, "n": 20000, "how": 'getppid, "as it is"'},
        "ipi": {"llc": {**POINTS, "how": "two CPUs"}},
    },
    "idle": [{"name": "HLT", "exit": {**POINTS, "how": "a sleeper"}, "target-residency": 500, "polling": False}],
    "absent": {"scan-cpu": "within the kernel"},
}


def test_a_calibration_is_a_machine_that_the_simulator_reads(tmp_path: Path) -> None:
    pytest.importorskip("schedlab._engine", reason="the engine is not built")
    groups = {"cores": ("0",), "llcs": ("0",), "sockets": ("0",), "nodes": ("0",)}
    measured = calibrate._measured(json.dumps(CALIBRATION), "QEMU, linux 6.1", "# hz 1000\n", groups)
    written = calibrate.preset(measured, date(2026, 11, 22))
    parsed = tomllib.loads(written)
    assert parsed["costs"]["syscall"]["quantiles"]["p90"] == "120ns"
    assert parsed["costs"]["syscall"]["source"] == "measured: getppid, 'as it is', 20,000 times"
    (tmp_path / "m.toml").write_text(written)
    variant = 'variant = [{ name = "a", kernel = "6.1" }]'
    (tmp_path / "s.toml").write_text(f'machine = "m.toml"\nworkload = [{{ use = "hog" }}]\n{variant}\n')
    machine = native_engine().load(str(tmp_path / "s.toml")).machine
    assert (machine.cpus, machine.calibrated) == (1, True)
    assert parsed["hz"] == 1000
    assert "# scan-cpu: within the kernel" in written
    assert parsed["costs"]["ipi"]["source"] == "measured: two CPUs; distances that were not measured repeat the nearest"
    assert any("getppid" in source for source in machine.sources)


def test_a_calibration_of_this_machine_has_its_topology() -> None:
    measured = calibrate._measured(json.dumps(CALIBRATION), "here", "", None)
    assert tomllib.loads(calibrate.preset(measured, date(2026, 11, 22)))["topology"] == "host"


def test_doctor_says_what_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("SCHEDLAB_AGENT", "/no/agent")
    root = made_up.system(tmp_path / "root")
    change = {"file": made_up.KNOB, "before": "1", "after": "0", "boot": "boot-1"}
    with Directory.open(state_directory(), create=True) as folder, folder.append("settings.jsonl") as stream:
        stream.write(json.dumps(change) + "\n")
    found = {f.name: f for f in doctor.examine(Engine(fake_engine), root)}
    assert found["kernel"].says == "6.1.0-1-amd64, row 6.1"
    assert found["hackbench"].command == "apt-get install rt-tests"
    assert found["QEMU"].command == "apt-get install qemu-system-x86"
    assert found["image of 6.1"].command == "schedlab doctor --fetch 6.1"
    assert found["schedlab-agent"].command == agent.HINT
    assert found["debugfs"].there
    assert found["settings"].command == "schedlab doctor --restore"
    assert all(f.command for f in found.values() if not f.there and f.name not in ("KVM", "cgroup cpu", "perf events"))
    assert doctor.restore(root) == [f"{made_up.KNOB} is 1 again"]
    assert (root / made_up.KNOB.lstrip("/")).read_text() == "1"
    assert doctor.restore(root) == []


def test_doctor_prints_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedlab: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, out, _ = schedlab("doctor", "--json", "-")
    rows: list[dict[str, Any]] = json.loads(out)
    assert code == 0
    assert {"name", "there", "says", "needed_for", "command"} == set(rows[0])
    lines = schedlab("doctor")[1].splitlines()
    assert sum(line.startswith(("ok  ", "--  ")) for line in lines) == len(rows)
    assert schedlab("doctor", "--restore")[1] == "nothing was left of a killed run\n"


def test_the_simulator_validates_and_calibrates_nothing(schedlab: Callable[..., tuple[int, str, str]]) -> None:
    assert schedlab("validate", "toy.toml", "--arm", "sim")[0] == 2
    assert schedlab("calibrate", "--arm", "sim")[0] == 2
