"""`schedlab settings`: pasted features, sysctls and configurations become keys of a variant that loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab.cli import main
from schedlab.engine import native_engine

Cli = Callable[..., tuple[int, str, str]]

FEATURES = "PLACE_LAG PLACE_DEADLINE_INITIAL NO_RUN_TO_PARITY NO_HRTICK UTIL_EST_FASTUP\n"
DEBUGFS = """\
/sys/kernel/debug/sched/base_slice_ns:3000000
/sys/kernel/debug/sched/migration_cost_ns:500000
/sys/kernel/debug/sched/preempt:none (voluntary) full
/sys/kernel/debug/sched/tunable_scaling:0
/sys/kernel/debug/sched/verbose:N
"""
SYSCTL = """\
kernel.sched_autogroup_enabled = 1
kernel.sched_rr_timeslice_ms = 90
kernel.sched_schedstats = 0
vm.swappiness = 60
"""
CONFIG = """\
#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.1.76 Kernel Configuration
#
CONFIG_HZ=1000
# CONFIG_PREEMPT_NONE is not set
CONFIG_PREEMPT_VOLUNTARY=y
CONFIG_SCHED_AUTOGROUP=y
CONFIG_SCHED_CORE=y
CONFIG_EXT4_FS=y
"""
CASES = [
    # the file, arguments, lines that are printed, and a word of each that was not taken over
    (FEATURES, ["--kernel", "6.12.107"], ["features = { RUN_TO_PARITY = false }"], ["UTIL_EST_FASTUP: the row has"]),
    (
        DEBUGFS.replace("/sys/kernel/debug/sched/preempt:", ""),
        ["--kernel", "6.12.107"],
        ['knobs = { base_slice_ns = "3000000ns" }', 'preempt = "voluntary"'],
        ["tunable_scaling = 0: it takes effect only when", "verbose:N: a variant has no key for it"],
    ),
    (
        SYSCTL,
        ["--kernel", "6.12.107"],
        ["knobs = { rr_timeslice_ms = 90 }", "autogroup = true"],
        ["kernel.sched_schedstats = 0: a variant has no key for it"],
    ),
    (
        CONFIG,
        [],
        ['kernel = "6.1"', "hz = 1000", 'preempt = "voluntary"', "autogroup = true"],
        ["CONFIG_SCHED_CORE=y: core scheduling is not modelled"],
    ),
    (
        FEATURES + SYSCTL,
        ["--kernel", "6.12"],
        ["features = {", "knobs = {", "autogroup"],
        ["UTIL_EST_FASTUP", "sched_schedstats"],
    ),
]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize(("text", "arguments", "kept", "left_out"), CASES)
def test_settings_become_keys_that_load(
    cli: Cli, text: str, arguments: list[str], kept: list[str], left_out: list[str]
) -> None:
    Path("pasted.txt").write_text(text)
    code, out, err = cli("settings", "pasted.txt", *arguments)
    assert (code, err) == (0, "")
    for words in [*kept, *left_out]:
        assert words in out
    assert ("# not taken over:" in out) == bool(left_out)
    scenario = f'name = "t"\nmachine = "laptop-8"\n[[workload]]\nuse = "hackbench"\n[[variant]]\nname = "a"\n{out}'
    native_engine().loads(scenario, "t.toml")


BAD = [
    ("missing.txt", [], "cannot read the settings", "give the output"),
    ("plain.txt", ["--kernel", "6.1"], "no setting of the scheduler", "give the output"),
    ("plain.txt", [], "names no kernel", "--kernel"),
    ("features.txt", ["--kernel", "6.5"], "unknown kernel version", "6.3"),
]


@pytest.mark.parametrize(("file", "arguments", "what", "hint"), BAD)
def test_what_cannot_be_read_is_refused(cli: Cli, file: str, arguments: list[str], what: str, hint: str) -> None:
    Path("plain.txt").write_text("hello world\n")
    Path("features.txt").write_text(FEATURES)
    code, out, err = cli("settings", file, *arguments)
    assert (code, out) == (2, "")
    assert what in err
    assert hint in err
