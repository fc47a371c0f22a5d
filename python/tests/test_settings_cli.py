"""`schedlab settings`: pasted features, sysctls and configurations become keys of a variant that loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab import api
from schedlab.cli import given_settings, main
from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.cli.parser import build_parser
from schedlab.engine import native_engine
from schedlab.scenario import Variant

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


SCENARIO = """\
name = "t"
machine = "rpi4"
duration = "20ms"
[[workload]]
use = "hackbench"
[[variant]]
name = "cfs"
kernel = "6.1"
[[variant]]
name = "eevdf"
kernel = "6.12.107"
features = { RUN_TO_PARITY = false }
"""


Variants = Callable[..., tuple[dict[str, Variant], str]]


@pytest.fixture
def variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Variants:
    """The variants under these flags, and what was said."""
    monkeypatch.chdir(tmp_path)
    Path("t.toml").write_text(SCENARIO)

    def call(*arguments: str) -> tuple[dict[str, Variant], str]:
        options = build_parser("compare").parse_args(["compare", "t.toml", *arguments], namespace=Options())
        given_settings.apply(options, Console(), None)
        found = api.load("t.toml", overrides=options.overrides).variants
        return {variant.name: variant for variant in found}, capsys.readouterr().err

    return call


@pytest.mark.parametrize(
    ("prefix", "slices"), [("", ("3ms", "3ms")), ("eevdf=", (None, "3ms")), ("cfs=", ("3ms", None))]
)
def test_a_file_gives_settings_to_variants(variants: Variants, prefix: str, slices: tuple[str | None, ...]) -> None:
    Path("pasted.txt").write_text("base_slice_ns:3000000\nmin_granularity_ns:3000000\nRUN_TO_PARITY HRTICK\n" + CONFIG)
    found, err = variants("--settings", f"{prefix}pasted.txt")
    knobs = [
        found["cfs"].changes["knobs"].get("min_granularity_ns"),
        found["eevdf"].changes["knobs"].get("base_slice_ns"),
    ]
    assert [value and _ms(value) for value in knobs] == list(slices)
    rates = [found[name].boot["hz"] for name in ("cfs", "eevdf")]
    assert rates == [1000 if value else 250 for value in slices]
    # What the scenario sets is overridden also with the row's default.
    assert found["eevdf"].changes["features"].get("RUN_TO_PARITY", True) == (slices[1] is not None)
    said = [line for line in err.splitlines() if "not taken over" in line]
    assert any("by variant cfs: RUN_TO_PARITY: the row has no such feature" in line for line in said) == bool(slices[0])
    assert any("SCHED_CORE" in line for line in said)


def _ms(value: object) -> str:
    text = str(value)
    return {"3ms": "3ms", "3000000ns": "3ms", "3000000": "3ms"}.get(text, text)


def test_set_has_precedence_over_settings(variants: Variants) -> None:
    Path("pasted.txt").write_text(CONFIG)
    found, _ = variants("--settings", "pasted.txt", "--set", "hz=300")
    assert [found[name].boot["hz"] for name in ("cfs", "eevdf")] == [300, 300]


@pytest.mark.parametrize(("file", "what"), [("none.txt", "cannot read the settings"), ("plain.txt", "no setting")])
def test_files_without_settings_are_refused(cli: Cli, file: str, what: str) -> None:
    Path("plain.txt").write_text("hello world\n")
    Path("t.toml").write_text(SCENARIO)
    code, out, err = cli("run", "t.toml", "--variant", "cfs", "--settings", file)
    assert (code, out) == (2, "")
    assert what in err
