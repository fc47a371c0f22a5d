"""`schedlab ablate` on the real engine: parts, interaction and bundles."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from schedlab.cli import main

pytest.importorskip("schedlab._engine", reason="the simulator is not built")

SCENARIO = """
name = "mix"
machine = { base = "laptop-8", topology = { cores-per-llc = 2 } }
duration = "60ms"
seeds = 6
workload = [
    { use = "hackbench", groups = 1, repeat = true },
    { use = "cyclictest", name = "probe", interval = "500us" },
]
variant = [
    { name = "plain", kernel = "6.12.107" },
    { name = "two", kernel = "6.12.107", knobs = { base_slice = "6ms" }, features = { RUN_TO_PARITY = false } },
    { name = "cfs", kernel = "6.1" },
    { name = "same", kernel = "6.12.107" },
]
metric = [{ of = "probe.latency", stat = "mean" }]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "mix.toml"
    path.write_text(SCENARIO)
    return str(path)


def _document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["ablate", *arguments, "--json", "-q"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_each_difference_is_flipped_alone_and_the_rest_is_interaction(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = _document(capsys, scenario, "plain", "two")
    parts = document["mechanisms"]
    assert {p["name"]: (p["kind"], p["a"], p["b"], p["within"]) for p in parts} == {  # type: ignore[attr-defined]
        "RUN_TO_PARITY": ("feature", "on", "off", None),
        "base_slice_ns": ("knob", "1400000", "6000000", None),
    }
    # Two mechanisms: the mean of both orders is Shapley's value, and nothing is left to interaction.
    assert document["unattributed"]["effect"] == pytest.approx(0, abs=1e-6)  # type: ignore[index]
    low, high = document["total"]["ci"]  # type: ignore[index]
    assert low <= document["total"]["effect"] <= high  # type: ignore[index]


def test_between_cfs_and_eevdf_what_only_one_has_is_a_part_of_the_bundle(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = _document(capsys, scenario, "cfs", "plain", "--seeds", "1")
    parts = {p["name"]: p for p in document["mechanisms"]}  # type: ignore[attr-defined]
    bundle = "CFS or EEVDF: pick, placement, slices, preemption"
    assert [parts[name]["within"] for name in ("START_DEBIT", "PLACE_LAG", bundle)] == [bundle, bundle, None]
    boost = parts["balance: runnable boost"]
    assert (boost["kind"], boost["function"], boost["since"]) == ("rule", "find_busiest_queue", "6.5 (7d0583cf9ec7)")
    # What only EEVDF has does nothing on CFS, and the other way round.
    assert parts["PLACE_LAG"]["alone"]["delta_pct"] == 0
    assert parts["START_DEBIT"]["missing"]["delta_pct"] == 0
    assert all(p["share"] is None for p in parts.values()), "one seed is not enough for shares"
    assert math.isfinite(document["total"]["effect"])  # type: ignore[index]


def test_the_table_says_what_it_is(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", scenario, "plain", "two", "--no-progress"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mix: simulated inline")
    assert "together beyond each alone" in out
    assert "not attributed" not in out, "there are only two"
    assert "RUN_TO_PARITY" in out


def test_the_table_is_narrow_and_shows_every_value_in_full(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", scenario, "cfs", "plain", "--no-progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    text = " ".join(line.strip() for line in lines)
    assert "START_DEBIT: on in cfs, off in plain" in text
    assert "..." not in text, "nothing is cut"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["plain", "same"], "do not differ in anything"),
        (["plain", "two", "--metric", "probe.latency.men"], "did you mean `probe.latency.mean`?"),
        (["plain"], "two variants are needed, not 1"),
    ],
)
def test_what_cannot_be_asked(
    scenario: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ablate", scenario, *arguments, "-q"]) == 2
    assert expected in capsys.readouterr().err
