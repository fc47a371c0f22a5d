"""`schedlab tune`: spaces, goals, the search with the real engine, and what a confirmation accepts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedlab
import sweeps
from schedlab.arms.arm import SimArm
from schedlab.cli import main, tune
from schedlab.outcome import Run
from schedlab.scenario import Scenario
from schedlab.statistics import paired_difference
from schedlab.tuning import space
from schedlab.tuning.goal import Bound, parse_bound
from schedlab.tuning.search import steps
from test_full_disk import FULL, files_end_at

AXES = [
    ("knobs.base_slice=0.5ms..30ms", ("time", 5e5, 3e7, True)),
    ("workload.load.groups=1..4", ("whole", 1, 4, False)),
    ("machine.x=0.5..0.75", ("decimal", 0.5, 0.75, False)),
    ("metric-like.margin=1%..20%", ("percent", 1, 20, True)),
]


@pytest.mark.parametrize(("text", "want"), AXES)
def test_a_range_is_read_with_its_unit(text: str, want: tuple[Any, ...]) -> None:
    axis = space.parse(text)
    assert (axis.kind, axis.low, axis.high, axis.log) == want


BAD_AXES = [
    "knobs.base_slice",
    "=1..2",
    "x=3..1",
    "x=1ms..2",
    "x=a..b",
    "x=a",
    "x=a,a",
    "duration=1s..2s",
    "x=",
    "x=1,",
]


@pytest.mark.parametrize("text", BAD_AXES)
def test_what_is_no_range_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(schedlab.InputError) as raised:
        space.parse(text)
    assert raised.value.hint
    assert raised.value.message.startswith(f"--over {text}")


@settings(max_examples=60)
@given(st.floats(1e3, 1e10))
def test_a_time_is_written_with_three_digits(ns: float) -> None:
    text = space.parse("knobs.x=1us..10s").text(ns)
    again = space.parse(f"x={text}..100s").low
    assert abs(again - ns) <= ns / 200 + 0.5


def test_keys_of_a_variant_override_the_tuned_one_alone() -> None:
    assert space.parse("knobs.base_slice=1ms..2ms").override(1.5e6, "b") == "variant.b.knobs.base_slice=1.5ms"
    assert space.parse("hz=250,1000").override("250", "b") == "variant.b.hz=250"
    assert space.parse("workload.load.groups=1..4").override(3, "b") == "workload.load.groups=3"


def test_steps_double_up_to_all_seeds() -> None:
    assert [steps(n) for n in (1, 2, 3, 10)] == [[1], [2], [2, 3], [2, 4, 8, 10]]


BOUNDS = [
    # bound, samples of the winner against 100s, what is said
    ("m<=+2%", [101.0, 101.2] * 4, "holds"),
    ("m<=+2%", [103.0, 103.2] * 4, "is violated"),
    ("m<=+2%", [99.0, 106.0] * 4, "is not settled"),
    ("m<=+2%", [101.0, 101.2], "is not settled"),
    ("m>=-5%", [97.0, 98.0] * 4, "holds"),
    ("m>=-1%", [97.0, 98.0] * 4, "is violated"),
    ("m<=+2%", [101.0] * 2, "holds"),
]


@pytest.mark.parametrize(("bound", "samples", "want"), BOUNDS)
def test_a_bound_holds_only_if_the_interval_says_so(bound: str, samples: list[float], want: str) -> None:
    assert parse_bound(bound).holds(paired_difference([100.0] * len(samples), samples)) == want


@settings(max_examples=60)
@given(st.sampled_from(["m.p99", "a"]), st.booleans(), st.floats(-99, 99).map(lambda x: round(x, 2)))
def test_a_bound_is_shown_as_it_is_read(metric: str, at_most: bool, percent: float) -> None:
    bound = Bound(metric, at_most, percent)
    assert parse_bound(str(bound)) == bound


FILE = """
machine = "laptop-8"
duration = "25ms"
seeds = 6

[[workload]]
use = "hackbench"
name = "load"
groups = 1
repeat = true

[[workload]]
use = "cyclictest"
name = "probe"
interval = "1ms"

[[variant]]
name = "eevdf"
kernel = "6.12.107"

[[metric]]
of = "probe.latency"
stat = "mean"

[[metric]]
of = "sched.switches"
margin = "40%"
"""
COMMAND = [
    "tune",
    "s.toml",
    "--minimise",
    "probe.latency.mean",
    "--over",
    "knobs.base_slice=0.1ms..30ms",
    "--trials",
    "4",
]


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The command in a fresh directory: (exit code, document or message)."""
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FILE, encoding="utf-8")

    def call(*more: str) -> tuple[int, Any]:
        code = main([*COMMAND, *more, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else err

    return call


def test_a_search_is_deterministic_and_continues(tuned: Any) -> None:
    code, first = tuned("--out", "kept", "--jobs", "2")
    assert (code, len(first["trials"])) == (0 if first["confirmed"] else 1, 4)
    whole = Path("kept/runs.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    # Killed in the middle of a line: the rest runs again and the answer is the same.
    Path("kept/runs.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:20])
    assert tuned("--out", "kept", "--jobs", "1") == (code, first)
    assert sorted(Path("kept/runs.jsonl").read_bytes().splitlines()) == sorted(whole.splitlines())
    assert tuned("--jobs", "2") == (code, first)
    other, message = tuned("--out", "kept", "--seed", "2")
    assert (other, "holds another search" in message) == (2, True)


def test_a_winner_that_fresh_seeds_do_not_show_is_reported_as_such(tuned: Any) -> None:
    # The machine's own noise is all that there is to find: nothing that is tuned has an effect here.
    code, found = tuned(
        "--set", "noise=false", "--over", "knobs.migration_cost=0.4ms,0.6ms", "--subject-to", "sched.switches<=+900%"
    )
    assert (code, found["confirmed"]) == (0 if found["confirmed"] else 1, found["confirmed"])
    assert found["sentence"].startswith("confirmed" if found["confirmed"] else ("NOT confirmed", "no trial"))
    assert all(t["exceeds_pct"] for t in found["trials"] if t["state"] == "complete")
    code, found = tuned("--subject-to", "sched.switches<=-99%")
    assert (code, found["winner"], found["sentence"]) == (
        1,
        None,
        "no trial that keeps every bound has a value for probe.latency.mean: the default stays",
    )


BAD = [
    (["--maximise", "load.time"], "one metric is needed"),
    (["--subject-to", "x.y<=+2%"], "there is no metric `x.y`"),
    (["--subject-to", "load.time<2%"], "not a bound"),
    (["--over", "knobs.base_slice"], "there is no range"),
    (["--over", "knobs.baseslice=1ms..2ms"], "no knob baseslice"),
    (["--over", "tasks.probe.slice=0.01ms,0.02ms"], "slice"),
]


@pytest.mark.parametrize(("flags", "message"), BAD)
def test_bad_usage_is_one_message(tuned: Any, flags: list[str], message: str) -> None:
    code, said = tuned(*flags)
    assert (code, message in said) == (2, True)


def test_values_that_a_kernel_refuses_are_reported(tuned: Any) -> None:
    code, found = tuned("--over", "tasks.probe.slice=0.01ms,1ms", "--trials", "8")
    states = {t["state"].partition(":")[0] for t in found["trials"]}
    assert code == (0 if found["confirmed"] else 1)
    assert "refused" in states
    assert states != {"refused"}


def test_a_full_disk_ends_the_search_and_the_next_one_continues(tuned: Any) -> None:
    code, whole = tuned("--out", "whole")
    with files_end_at(Path("whole/runs.jsonl").stat().st_size // 2):
        found, message = tuned("--out", "kept")
    assert (found, message.count("error: ")) == (3, 1)
    assert f"cannot keep a run: {FULL}" in message
    assert "the runs before it are kept" in message
    kept = Path("kept/runs.jsonl").read_bytes()
    assert kept.endswith(b"\n"), "no torn line is left"
    assert tuned("--out", "kept") == (code, whole)
    assert Path("kept/runs.jsonl").read_bytes().startswith(kept)


@pytest.mark.parametrize("module", ["_engine.abi3", "_multiarray_umath"])
def test_ctrl_c_while_it_imports_ends_in_one_line(tuned: Any, module: str) -> None:
    del tuned
    Path("long.toml").write_text(FILE.replace('"25ms"', '"20s"'), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "schedlab", *["long.toml" if word == "s.toml" else word for word in COMMAND]],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(sweeps.PYTHON), os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        while module not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None, "it ended early"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert err.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


class OneAtATime(SimArm):
    """An arm that, as the kernel of this machine, is prepared once until it is closed."""

    name = "host"
    held = False
    fails = False

    def prepare(self, scenario: Scenario) -> None:
        assert scenario.arm == "host"
        if OneAtATime.held:
            raise schedlab.ArmError("another schedlab is running on this kernel")
        OneAtATime.held = True
        super().prepare(scenario)

    def run(self, scenario: Scenario, variant: str, seed: int, **how: Any) -> Run:
        if OneAtATime.fails:
            raise schedlab.ArmError("the machine is gone")
        return super().run(scenario, variant, seed, **how)

    def close(self) -> None:
        OneAtATime.held = False


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    OneAtATime.held = OneAtATime.fails = False
    usual = tune.arm_of
    monkeypatch.setattr(
        tune, "arm_of", lambda name, engine, *log: OneAtATime(engine) if name == "host" else usual(name, engine, *log)
    )


def test_the_confirmation_on_a_real_kernel_prepares_it_once(tuned: Any, real: None) -> None:
    code, found = tuned("--arm", "host")
    assert (code in (0, 1), len(found["confirmation"]) > 0) == (True, True)
    assert not OneAtATime.held, "the kernel is released"


def test_a_kernel_that_is_in_use_is_refused_before_the_search(tuned: Any, real: None) -> None:
    OneAtATime.held = True
    code, message = tuned("--arm", "host", "--out", "kept")
    assert (code, message.count("error: ")) == (4, 1)
    assert "another schedlab is running on this kernel" in message
    assert not Path("kept").exists()


def test_the_search_is_shown_where_the_confirmation_fails(
    tuned: Any, real: None, capsys: pytest.CaptureFixture[str]
) -> None:
    OneAtATime.fails = True
    assert main([*COMMAND, "--arm", "host"]) == 4
    out, err = capsys.readouterr()
    assert " ".join(out.split()).startswith("not confirmed: --set ")
    assert "error: the machine is gone" in err
