"""`schedlab explain` on the real engine: what people and programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedlab.cli import main
from schedlab.cli.parser import _time

pytest.importorskip("schedlab._engine", reason="the simulator is not built")

SCENARIO = """
name = "two"
machine = { base = "laptop-8", topology = { cores-per-llc = 1 } }
duration = "50ms"
noise = false
workload = [{ use = "hog" }, { use = "hog", name = "late", nice = 5 }]
variant = [
    { name = "cfs", kernel = "6.1", hz = 1000 },
    { name = "eevdf", kernel = "6.12", hz = 1000 },
    { name = "same", kernel = "6.12", hz = 1000 },
]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO)
    return str(path)


def test_the_first_different_decision_is_told(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", scenario, "cfs", "eevdf"]) == 0
    out = capsys.readouterr().out
    assert "two, seed 1: cfs and eevdf part at " in out
    assert "who runs next?" in out
    assert "pick_next_entity: smallest vruntime" in out
    assert "pick_eevdf: earliest eligible deadline" in out
    assert len(out.splitlines()) <= 30
    assert max(map(len, out.splitlines())) <= 200


def test_variants_that_never_part(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", scenario, "eevdf", "same"]) == 0
    assert "never part" in capsys.readouterr().out
    assert main(["explain", scenario, "eevdf", "same", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["parted"]) == ("schedlab.explain/1", False)


def test_why_a_task_waits(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["explain", scenario, "--variant", "eevdf", "--at", "20.5ms", "--task"]
    texts = []
    for pid in "12":
        assert main([*ask, pid]) == 0
        texts.append(capsys.readouterr().out)
    runs, waits = sorted(texts, key=lambda text: " waits " in text)
    assert " runs for " in runs
    assert " runs instead" in waits
    assert "picked " in waits
    assert "it runs at " in waits
    assert main([*ask, "late", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["pid"], document["at_ns"]) == ("schedlab.why/1", 2, 20_500_000)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name two of: cfs, eevdf, same"),
        (["cfs", "cfs"], "`cfs` is named twice"),
        (["cfs", "eefdv"], "did you mean `eevdf`?"),
        (["--task", "1"], "--task and --at go together"),
        (["--task", "1", "--at", "5"], "is not a time"),
        (["--variant", "cfs", "--task", "haug", "--at", "5ms"], "no task"),
        (["--variant", "cfs", "--task", "hog", "--at", "5ms"], "say which by pid: 1, 2"),
        (["--variant", "cfs", "--task", "1", "--at", "5s"], "the run ends at 50000000 ns"),
        (["--variant", "cfs"], "--variant goes with --task"),
    ],
)
def test_what_cannot_be_asked(
    scenario: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", scenario, *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_times() -> None:
    for text, ns in (("12.5ms", 12_500_000), ("1.5s", 1_500_000_000), ("800us", 800_000), ("7ns", 7)):
        assert _time(text) == ns
