"""The curves of docs/models/physics.md: what each mechanism does in its scenario, and does not do when it is off."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import curves
import same_cpu
import schedlab
from schedlab.cli import main

pytest.importorskip("schedlab._engine", reason="the simulator is not built")

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios/physics"
PIPE, ALONE, BESIDE = "pipe.round.p50", "alone.latency.p50", "beside.latency.p50"
TRIAD, SWITCHES = "stream.triad_mb_per_second", "sched.switches"
LENGTHS: dict[str, dict[str, Any]] = {
    "idle-states": {"duration": "60ms"},
    "memory": {"duration": "2s"},
    "housekeeping": {"duration": "8s"},
    "warmth": {"duration": "20ms", "warmup": "4ms"},
}
SHORT: dict[str, Any] = {"duration": "4ms", "warmup": "1ms"}
FAR = {cpu: {"workload.pipe.task.far.cpus": cpu} for cpu in ("56", "1", "28")}
IDLE = {time: {"workload.alone.interval": time, "workload.beside.interval": time} for time in ("20us", "10ms")}
CONTENDERS = {count: {"workload.pipe.count": count, "workload.socket.count": count} for count in (1, 16)}
THREADS = {count: {"workload.stream.threads": count, "workload.stream.ntimes": 2} for count in (4, 8, 28)}
MAPPERS = {count: {"workload.page.count": count, "workload.faults.count": count} for count in (1, 2, 4, 8)}
CPUS = {count: {"machine.topology.cores-per-llc": count} for count in (1, 8)}

ALL = """
name = "all"
duration = "4ms"
seeds = 1
machine.base = "xeon-2s28c-smt2"
machine.frequency = { base = 2500, min = 1000, turbo = [[1, 3800], [28, 3200]], source = "test" }
machine.caches.source = "test"
machine.caches.l1 = { size = "32KiB", read = "40ns" }
machine.caches.l2 = { size = "1MiB", read = "50ns" }
machine.caches.llc = { size = "8MiB", read = "60ns" }
machine.caches.memory = { read = "150ns" }
workload = [{ use = "perf-pipe" }]
variant = [
    { name = "off", kernel = "6.12.107", physics = { OFF } },
    { name = "on", kernel = "6.12.107", physics = { ON } },
]
metric = [{ of = "sched.switches" }]
"""

RISES = [
    # scenario, variant, metric, overrides along the curve: each value is at least this many times the one before
    ("lines", "lines", PIPE, list(FAR.values()), 1.1),
    ("locks", "without", "pipe.pairs", list(CONTENDERS.values()), 8),
    ("locks", "without", "socket.pairs", list(CONTENDERS.values()), 8),
    ("idle-states", "menu", ALONE, list(IDLE.values()), 20),
    ("idle-states", "teo", ALONE, list(IDLE.values()), 20),
    ("idle-states", "no-core-idle", BESIDE, list(IDLE.values()), 20),
    ("memory", "without", TRIAD, list(THREADS.values()), 1.9),
    ("housekeeping", "housekeeping", SWITCHES, list(CPUS.values()), 1.4),
    ("mmap-lock", "without", "page.pages", list(MAPPERS.values()), 1.4),
    ("mmap-lock", "mmap-lock", "faults.faults", [MAPPERS[1], MAPPERS[4]], 3),
]
LEVEL = [
    # the same, but the values differ by at most this factor
    ("lines", "without", PIPE, list(FAR.values()), 1.05),
    ("locks", "locks", "pipe.pairs", list(CONTENDERS.values()), 1.5),
    ("idle-states", "menu", BESIDE, list(IDLE.values()), 1.2),
    ("memory", "memory", TRIAD, [THREADS[8], THREADS[28]], 1.01),
    ("housekeeping", "without", SWITCHES, list(CPUS.values()), 1),
    ("mmap-lock", "mmap-lock", "page.pages", list(MAPPERS.values()), 1.4),
    ("mmap-lock", "before-vma-locks", "faults.faults", [MAPPERS[1], MAPPERS[8]], 1.5),
]


def _values(name: str, variant: str, metric: str, along: list[dict[str, Any]]) -> list[float]:
    values = []
    for overrides in along:
        scenario = schedlab.load(SCENARIOS / f"{name}.toml", overrides={**LENGTHS.get(name, SHORT), **overrides})
        values.append(float(schedlab.run(scenario, variant).metrics[metric]))
    return values


@pytest.mark.parametrize(("name", "variant", "metric", "along", "factor"), RISES)
def test_what_a_mechanism_costs_grows(
    name: str, variant: str, metric: str, along: list[dict[str, Any]], factor: float
) -> None:
    values = _values(name, variant, metric, along)
    assert all(b >= factor * a for a, b in pairwise(values)), values


@pytest.mark.parametrize(("name", "variant", "metric", "along", "factor"), LEVEL)
def test_without_its_mechanism_or_beyond_its_limit_a_curve_is_level(
    name: str, variant: str, metric: str, along: list[dict[str, Any]], factor: float
) -> None:
    values = _values(name, variant, metric, along)
    assert max(values) <= factor * min(values), values


def test_a_switch_refills_only_sets_that_do_not_fit_into_the_cache_together() -> None:
    fits = [{"workload.ring.processes": 2, "workload.ring.size": size} for size in (256, 512)]
    exceeds = [{"workload.ring.processes": 8, "workload.ring.size": size} for size in (256, 512)]

    def refill(along: list[dict[str, Any]]) -> list[float]:
        on, off = (_values("warmth", variant, "ring.latency.mean", along) for variant in ("warmth", "without"))
        return [a - b for a, b in zip(on, off, strict=True)]

    # Two sets of 512 KiB fit into an L2 of 1,280 KiB, so that only the L1 is refilled, whatever they exceed it by.
    small, large = refill(fits)
    assert 0 < large <= 1.2 * small
    small, large = refill(exceeds)
    assert large > 1.5 * small > 1.5 * refill(fits)[1]


def test_a_turn_is_longer_by_the_code_that_the_front_end_no_longer_holds() -> None:
    along = [{"workload.one.code": f"{size}KiB"} for size in (16, 64, 256, 512)]
    on, off = (_values("front-end", variant, "one.turn.p50", along) for variant in ("warmth", "without"))
    # In us: 57 ns for each KiB of code, but of no more than 128 KiB.
    expected = [0.912, 3.648, 7.296, 7.296]
    assert [a - b for a, b in zip(on, off, strict=True)] == pytest.approx(expected, abs=0.05)


def test_a_burst_is_slower_under_schedutil_the_shorter_it_is() -> None:
    along = [
        {"workload.burst.task.of-5ms.count": 0, f"workload.burst.task.of-{work}.count": 1, "duration": "3s"}
        for work in ("1ms", "50ms", "300ms")
    ]
    base, highest, risen = (
        _values("frequency", variant, "burst.burst.p50", along) for variant in ("without", "performance", "schedutil")
    )
    # 2.5 GHz of the costs, 3.8 at most, 1 at least; the time includes the switch.
    assert [a / b for a, b in zip(base, highest, strict=True)] == pytest.approx([1.52] * 3, rel=0.01)
    slower = [a / b for a, b in zip(risen, highest, strict=True)]
    assert slower[0] == pytest.approx(3.8, rel=0.02)
    assert slower[0] > slower[1] > 1.2 > slower[2] >= 1


def test_a_core_does_less_the_more_cores_are_busy() -> None:
    along = [{"workload.compute.count": count} for count in (1, 4, 12, 28)]
    on, off = (_values("turbo", variant, "compute.rounds", along) for variant in ("frequency", "without"))
    expected = [mhz / 2500 for mhz in (3800, 3600, 3500, 3200)]
    assert [a / b for a, b in zip(on, off, strict=True)] == pytest.approx(expected, rel=0.03)


def test_only_while_a_search_takes_time_do_two_wakers_choose_one_cpu() -> None:
    def share(later_ns: int, variant: str) -> float:
        overrides = {"duration": "10ms", **same_cpu.later_by(later_ns)}
        return same_cpu.share(schedlab.load(SCENARIOS / "selection.toml", overrides=overrides), variant)

    assert share(0, "without") == 0
    assert share(0, "selection") > 0.5 > 0.1 > share(4000, "selection")


def test_every_scenario_has_a_curve_whose_command_the_page_names(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/models/physics.md").read_text(encoding="utf-8")
    assert {file.stem for file in SCENARIOS.glob("*.toml")} == {*curves.NAMES}
    assert [name for name in curves.NAMES if f"`tools/curves.py {name}`" not in page] == []
    assert curves.main(["--short", "lines"]) == 0
    head, _, *rows = capsys.readouterr().out.strip().splitlines()[2:]
    assert head.startswith("| distance | pipe.round.p50: without | pipe.round.p50: lines |")
    assert [row.split(" | ")[0] for row in rows] == ["| Xeon, same core", "| POWER9, other socket"]
    assert all(float(cell) > 0 for row in rows for cell in row.strip("| ").split(" | ")[1:])
    with pytest.raises(SystemExit):
        curves.main(["lines", "linse"])
    assert "there is no curve linse" in capsys.readouterr().err


def test_ablate_names_every_mechanism_that_two_variants_differ_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/models/physics.md").read_text(encoding="utf-8")
    rows = page.split("| mechanism | key |")[1].split("\n\n")[0]
    keys = re.findall(r"^\| [^|]+ \| `([a-z-]+)`", rows, re.MULTILINE)
    assert len(keys) == 12
    on, off = (", ".join(f"{key} = {value}" for key in keys) for value in ("true", "false"))
    path = tmp_path / "all.toml"
    path.write_text(ALL.replace("ON", on).replace("OFF", off), encoding="utf-8")
    assert main(["ablate", str(path), "off", "on", "--seeds", "1", "--json", "-q"]) == 0
    parts = json.loads(capsys.readouterr().out)["mechanisms"]
    found = {part["name"]: (part["kind"], part["a"], part["b"]) for part in parts}
    assert found == dict.fromkeys(keys, ("physics", "off", "on"))
