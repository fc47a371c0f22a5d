"""`schedlab shrink`: whatever it prints is smaller, valid, and still shows the property."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import schedlab
from schedlab.cli import main
from schedlab.engine import native_engine
from schedlab.shrinking import candidates as c
from schedlab.shrinking.keep import parse
from schedlab.shrinking.shrink import explicit, shrink, size

HEAD = 'machine = "laptop-8"\n'
EEVDF = """
[[variant]]
name = "a"
kernel = "6.12.107"

[[variant]]
name = "b"
kernel = "6.12.107"
"""
DEADLOCK = f"""{HEAD}
duration = "1s"
seeds = 3
workload = [
    {{ use = "hackbench", groups = 2 }},
    {{ name = "stuck", task = [
        {{ name = "one", count = 3, program = [{{ run = "3ms" }}, {{ lock = "a" }}, {{ lock = "a" }}] }},
        {{ name = "two", program = [{{ sleep = "2ms" }}, {{ run = "1ms" }}] }},
    ] }},
]
{EEVDF}"""
DIVERGENCE = f"""{HEAD}
duration = "200ms"
seeds = [5]
workload = [{{ use = "hog", threads = 20 }}, {{ use = "hackbench", groups = 1, repeat = true }}]
{EEVDF}knobs = {{ base_slice = "1ms" }}
"""
VERDICT = f"""machine = "rpi4"
duration = "30ms"
seeds = 7
workload = [{{ use = "hog", threads = 4 }}, {{ use = "cyclictest", name = "probe", interval = "1ms" }}]
metric = [{{ of = "sched.switches" }}]
{EEVDF}tasks.probe.policy = "idle"
"""
CASES = [
    # file, property, the largest that is accepted: CPUs, tasks at the start, ms
    (DEADLOCK, "failure deadlock", (1, 2, 10)),
    (DIVERGENCE, "divergence", (1, 3, 10)),
    (VERDICT, "verdict changed:sched.switches", (2, 6, 30)),
]


@pytest.mark.parametrize(("text", "keep", "most"), CASES)
def test_the_smallest_scenario_still_shows_it(
    text: str, keep: str, most: tuple[int, int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "large.toml"
    file.write_text(text, encoding="utf-8")
    assert main(["shrink", str(file), "--keep", keep, "--tests", "80"]) == 0
    out, err = capsys.readouterr()
    (tmp_path / "small.toml").write_text(out, encoding="utf-8")
    large, small = (schedlab.load(tmp_path / name) for name in ("large.toml", "small.toml"))
    assert parse(keep).holds(native_engine(), small)
    found = size(tomllib.loads(out), small)
    assert (found.cpus <= most[0], found.tasks <= most[1], found.duration_ns <= most[2] * 10**6) == (
        True,
        True,
        True,
    ), err
    assert found.below(size(explicit(large), large))


def test_a_reduction_is_deterministic_and_its_budget_is_kept(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(DEADLOCK, encoding="utf-8")
    scenario = schedlab.load(tmp_path / "s.toml")
    first, second = (shrink(native_engine(), scenario, parse("failure deadlock"), tests=5) for _ in range(2))
    assert first == second
    assert (first.tests, first.finished) == (5, False)


BAD = [
    (["--keep", "verdict"], "is not a verdict"),
    (["--keep", "speed"], "not a property"),
    (["--keep", "failure livelock"], "the scenario does not show: failure livelock"),
    (["--keep", "verdict worse:nothing.p99"], "the scenario does not show"),
]


@pytest.mark.parametrize(("flags", "message"), BAD)
def test_what_is_not_shown_is_one_message(
    flags: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(DEADLOCK, encoding="utf-8")
    assert main(["shrink", str(tmp_path / "s.toml"), *flags]) == 2
    assert message in capsys.readouterr().err


def test_every_candidate_differs_and_none_changes_the_original() -> None:
    document = tomllib.loads(DEADLOCK)
    before = tomllib.loads(DEADLOCK)
    found = list(c.candidates(document))
    assert document == before
    assert len(found) > 30
    assert all(candidate != before for candidate in found)


@pytest.mark.parametrize("text", ["1ms", "250us", "1500ns", "3s"])
def test_times_keep_their_value(text: str) -> None:
    ns = c.nanoseconds(text)
    assert ns is not None
    assert c.nanoseconds(c.time(ns)) == ns
