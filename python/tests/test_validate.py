"""`doctor` and `calibrate`: what they find and write, on made-up machines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import arm_stand_ins as made_up
import fake_engine
from schedlab.arms import agent, calibrate, doctor
from schedlab.arms.journal import state_directory
from schedlab.engine import Engine, native_engine
from schedlab.private import Directory

POINTS = {"p0": 100, "p10": 110.4, "p50": 120, "p90": 119, "p99": 150, "p100": 900}
CALIBRATION = {
    "costs": {
        "syscall": {**POINTS, "n": 20000, "how": 'getppid, "as it is"'},
        "ipi": {"llc": {**POINTS, "how": "two CPUs"}},
        "line-transfer": {"llc": {**POINTS, "how": "compare-and-swap"}, "remote": {**POINTS, "p0": 90, "how": ""}},
    },
    "idle": [{"name": "HLT", "exit": {**POINTS, "how": "a sleeper"}, "target-residency": 500, "polling": False}],
    "memory": {"cpu": 12000, "node": 21000, "how": "triad"},
    "caches": {
        "levels": [
            {"name": "l1", "kib": 32, "read": 40},
            {"name": "l2", "kib": 512, "read": 44, "shared-by": "llc"},
            {"name": "llc", "kib": 32768, "read": 44},
        ],
        "memory": 80,
        "how": "16 KiB read in order",
    },
    "line_transfers": {"cpus": [0, 8, 10], "ns": [[31], [None, 112]]},
    "structures": {
        "lines": [1, 2, 8],
        "ns": {
            "llc": {"read": [30, 31, 33], "change": [40, None, 52], "chain": [30, 61, 240]},
            "remote": {"chain": [110, 221, None]},
        },
        "how": "two CPUs",
    },
    "absent": {"scan-cpu": "within the kernel"},
}
NEWER = ("memory", "caches", "line_transfers", "structures")
"""What an agent of before, or one in a guest whose clock counts instructions, does not measure."""


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
    assert parsed["memory"] == {"cpu": 12000, "node": 21000, "source": "measured: triad"}
    assert parsed["caches"] == {
        "l1": {"size": "32KiB", "read": "40ns"},
        "l2": {"size": "512KiB", "read": "44ns", "shared-by": "llc"},
        "llc": {"size": "32768KiB", "read": "44ns"},
        "memory": {"read": "80ns"},
        "source": "measured: 16 KiB read in order",
    }
    assert any("getppid" in source for source in machine.sources)
    # The CPU that changed a line has it; SMT threads and other nodes of the guest repeat the nearest.
    transfer = parsed["costs"]["line-transfer"]
    assert transfer["same"] == {"constant": "0ns"}
    smallest = [transfer[distance]["quantiles"]["p0"] for distance in ("smt", "llc", "node", "remote")]
    assert smallest == ["100ns", "100ns", "100ns", "90ns"]
    matrix = "# CPU    0    8\n#   8   31\n#  10    -  112\n"
    assert matrix in written
    structures = """\
#
# Access to several cache lines that another CPU has written, ns (medians; `-`: too few samples):
#                                                        lines    1    2    8
#                                                llc, all read   30   31   33
# llc, an atomic operation on one, the others read and written   40    -   52
#                   llc, the address of each in the one before   30   61  240
#                remote, the address of each in the one before  110  221    -
"""
    assert structures in written
    without = json.dumps({key: value for key, value in CALIBRATION.items() if key not in NEWER})
    old = calibrate.preset(calibrate._measured(without, "here", "", None), date(2026, 11, 22))
    # As an agent of before, or a guest whose clock counts instructions.
    assert not {"memory", "caches"} & tomllib.loads(old).keys()
    assert "cache line" not in old


def test_a_calibration_of_this_machine_has_its_topology() -> None:
    measured = calibrate._measured(json.dumps(CALIBRATION), "here", "", None)
    assert tomllib.loads(calibrate.preset(measured, date(2026, 11, 22)))["topology"] == "host"


def test_doctor_shows_what_a_calibration_measured() -> None:
    measured = calibrate._measured(json.dumps(CALIBRATION), "here", "", None)
    found = {finding.name: finding.says for finding in doctor.measure(measured)}
    assert found == {
        "caches": "1 KiB from l1 of 32 KiB 40 ns, l2 of 512 KiB 44 ns, llc of 32768 KiB 44 ns, memory 80 ns",
        "memory": "one CPU 12000 MB/s, all CPUs of a node 21000 MB/s",
        "cache lines": "transfer between CPUs 0-8 31 ns, 0-10 too few samples, 8-10 112 ns",
        "several lines": "1 and 8 lines that another CPU has written: llc, all read: 30 and 33 ns; llc, an atomic "
        "operation on one, the others read and written: 40 and 52 ns; llc, the address of each in the one before: "
        "30 and 240 ns",
    }
    # A machine with one CPU, and an agent that measures none of it.
    less = {key: value for key, value in CALIBRATION.items() if key not in NEWER}
    less["absent"] = {"line-transfer": "only one CPU"}
    lacking = doctor.measure(calibrate._measured(json.dumps(less), "here", "", None))
    says = ["not measured here", "not measured here", "only one CPU", "only one CPU"]
    assert [(finding.there, finding.says) for finding in lacking] == [(False, words) for words in says]


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
    assert schedlab("doctor", "--restore")[1] == "no killed run has left changed settings\n"


def test_the_simulator_validates_and_calibrates_nothing(schedlab: Callable[..., tuple[int, str, str]]) -> None:
    assert schedlab("validate", "toy.toml", "--arm", "sim")[0] == 2
    assert schedlab("calibrate", "--arm", "sim")[0] == 2


@pytest.mark.parametrize("said", ["schedlab-agent 9.9.9", "", "another program 1"])
def test_an_agent_of_another_version_is_refused_before_anything_runs(
    said: str,
    schedlab: Callable[..., tuple[int, str, str]],
    scenario: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = tmp_path / "agent"
    other.write_text(f"#!/bin/sh\necho '{said}'\n")
    other.chmod(0o755)
    monkeypatch.setenv("SCHEDLAB_AGENT", str(other))
    code, out, err = schedlab("validate", scenario(), "--arm", "vm")
    assert (code, out) == (4, "")
    assert f"the agent says `{said}`, and the engine is version" in err
    assert str(other) in err
