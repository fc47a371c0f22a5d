"""`schedlab reproduce --reasons ablate`: what makes a simulated change that disagrees; bounded and resumable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedlab import ablation
from schedlab.cli import main, reasons
from schedlab.studies.figures import COLUMNS

TWO_WAYS = """
source = "a test"
machine = "laptop-8"

[[variant]]
name = "short"
kernel = "6.12.107"

[[variant]]
name = "long"
kernel = "6.12.107"
knobs = { base_slice = "6ms" }

[[experiment]]
name = "rises"
duration = "60ms"
metric.latency = { of = "probe.latency", stat = "mean" }
workload = [{ use = "hackbench", groups = 1, repeat = true }, { use = "cyclictest", name = "probe" }]

[[experiment]]
name = "falls"
duration = "60ms"
metric.latency = { of = "probe.latency", stat = "mean" }
workload = [{ use = "hackbench", groups = 1, repeat = true }, { use = "cyclictest", name = "probe" }]
"""


@pytest.fixture
def two_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[list[dict[str, Any]], str]]:
    """Reproduce the same runs against a published rise and a published fall: one of the two rows disagrees."""
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(TWO_WAYS)
    rows = [f"{name},,,latency,delta_pct,lower,long,1,{change}," for name, change in (("rises", 50), ("falls", -50))]
    Path("two.csv").write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")

    def reproduce(*arguments: str) -> tuple[list[dict[str, Any]], str]:
        assert main(["reproduce", "two.toml", "--out", "r", "--json", "-", *arguments]) == 0
        out, err = capsys.readouterr()
        return json.loads(out)["studies"][0]["rows"], err

    return reproduce


Reproduce = Callable[..., tuple[list[dict[str, Any]], str]]
ANSWER = "; base_slice_ns contributes most to the simulated change, without certainty"


def why(rows: list[dict[str, Any]]) -> str:
    (text,) = [row["why"] for row in rows if row["outcome"] == "wrong sign"]
    return str(text)


def test_a_row_with_the_wrong_sign_names_what_makes_the_simulated_change(two_ways: Reproduce) -> None:
    rows, err = two_ways("--reasons", "ablate")
    assert sorted(row["outcome"] for row in rows) == ["agrees", "wrong sign"]
    assert why(rows).endswith(ANSWER)
    assert "1 ablation, at most 28 runs: about " in err
    assert {file.name.partition("-")[0] for file in Path("r").rglob("*.json")} == {"manifest.json", "reason"}


def test_the_short_form_is_ablated_on_request(two_ways: Reproduce) -> None:
    rows, err = two_ways("--short", "--reasons", "ablate")
    assert why(rows).endswith(ANSWER)
    assert "1 ablation, at most 12 runs: about " in err
    assert why(two_ways("--short")[0]) == "unexplained"


def test_a_finished_ablation_is_not_done_again(two_ways: Reproduce, monkeypatch: pytest.MonkeyPatch) -> None:
    text = why(two_ways("--short", "--reasons", "ablate")[0])

    def no_run(*_: object, **__: object) -> None:
        raise AssertionError("ablated again")

    monkeypatch.setattr(ablation, "acting", no_run)
    rows, err = two_ways("--short", "--reasons", "ablate")
    assert why(rows) == text
    assert "1 ablation done before" in err


def test_what_takes_too_long_is_named(two_ways: Reproduce, monkeypatch: pytest.MonkeyPatch) -> None:
    two_ways("--short")
    rows, err = two_ways("--short", "--reasons", "ablate", "--time", "0")
    assert "probe.latency.mean of long is not ablated: it does not fit into --time" in err
    assert not why(rows).endswith(ANSWER)
    monkeypatch.setattr(reasons, "LONGEST_ABLATION_S", 0.0)
    rows, err = two_ways("--short", "--reasons", "ablate")
    assert "probe.latency.mean of long is not ablated: that may take about " in err
    assert not why(rows).endswith(ANSWER)


def test_differences_that_change_no_event_are_not_run_with_every_unit(
    two_ways: Reproduce, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    whole = ablation.ablate

    def ablate(*arguments: Any, **named: Any) -> ablation.Ablation:
        asked.append([d["name"] for d in named["differences"]])
        return whole(*arguments, **named)

    monkeypatch.setattr(ablation, "ablate", ablate)
    text = Path("two.toml").read_text()
    Path("two.toml").write_text(text.replace('base_slice = "6ms"', 'base_slice = "6ms", rr_timeslice_ms = 20'))
    assert why(two_ways("--short", "--reasons", "ablate")[0]).endswith(ANSWER)
    assert asked == [["base_slice_ns"]]
