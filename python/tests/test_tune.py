"""`schedlab tune`: spaces, goals, the search with the real engine, and what a confirmation accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schedlab
from schedlab.cli import main
from schedlab.statistics import paired_difference
from schedlab.tuning import space
from schedlab.tuning.goal import Bound, parse_bound
from schedlab.tuning.search import steps

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


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
    assert (code in (0, 1), len(first["trials"])) == (True, 4)
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
]


@pytest.mark.parametrize(("flags", "message"), BAD)
def test_bad_usage_is_one_message(tuned: Any, flags: list[str], message: str) -> None:
    code, said = tuned(*flags)
    assert (code, message in said) == (2, True)


def test_values_that_a_kernel_refuses_are_reported(tuned: Any) -> None:
    code, found = tuned("--over", "tasks.probe.slice=0.01ms,0.02ms")
    assert (code, {t["state"].partition(":")[0] for t in found["trials"]}) == (1, {"refused"})
