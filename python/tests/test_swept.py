"""`schedlab.sweep`: the same as the command, as plain data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import schedlab
import sweeps
from schedlab.cli import main
from sweeps import RUNS, lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / sweeps.write(tmp_path)


def test_a_sweep_in_python_says_what_the_command_says(file: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, str, int, bool]] = []
    found = schedlab.sweep(file, out=tmp_path / "r", jobs=1, on_run=lambda *run: seen.append(run))
    assert len(seen) == len(lines(tmp_path / "r")) == RUNS
    assert {(variant, failed) for _, variant, _, failed in seen} == {("cfs", False), ("eevdf", False)}
    assert main(["report", str(tmp_path / "r"), "--json", str(tmp_path / "j.json")]) == 0
    assert json.loads((tmp_path / "j.json").read_text()) == found.document
    rows = found.table()
    assert [row["load"] for row in rows] == ["100%"] * 2 + ["200%"] * 2 + ["300%"] * 2
    assert {(row["metric"], row["a"], row["b"]) for row in rows} == {("load.time", "cfs", "eevdf")}
    assert {row["verdict"] for row in rows} <= {"better", "worse", "changed", "equivalent", "undecided"}
    assert len(found.runs_table()) == 6 * 2 * 2
    again = schedlab.sweep(file, out=tmp_path / "r", on_run=lambda *run: seen.append(run))
    assert len(seen) == RUNS, "nothing was done again"
    assert again.table() == rows


def test_its_shows_are_short_and_safe(file: Path) -> None:
    found = schedlab.sweep(file, overrides={"duration": "5ms", "seeds": 1})
    assert repr(found) == "<Swept toy: load, variant.eevdf.knobs.base_slice_ns; simulated, 6 points, 1 maps>"
    assert found._repr_html_().count("<tr>") == 1 + 6
    assert str(found).startswith("toy, simulated at 6 points: ")


def test_tables_as_data_frames(file: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: data frames are not tested")
    found = schedlab.sweep(file, overrides={"duration": "5ms"})
    assert list(found.to_dataframe()["verdict"]) == [row["verdict"] for row in found.table()]
    assert set(found.runs_dataframe()["status"]) == {"ok"}


def test_overrides_reach_every_point_and_the_loads_in_percent(file: Path) -> None:
    found = schedlab.sweep(file, overrides={"machine": "laptop-8", "duration": "5ms"}).judged.experiment
    assert {scenario.machine.name for scenario in found.scenarios} == {"laptop-8"}
    assert [point["sets"]["workload.load.groups"] for point in found.manifest["points"]] == [2, 2, 4, 4, 6, 6]


REFUSED = [
    (
        {"overrides": {"workload.load.groups": 1}},
        "workload.load.groups is the same at every point",
    ),
    ({"overrides": {"workload.load.grups": 1}}, "unknown key"),
    ({"shard": (3, 2)}, "there is no shard 3 of 2"),
    ({"dask": "nowhere"}, "is not the address of a Dask scheduler"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_asked(file: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(schedlab.SchedlabError, match=message):
        schedlab.sweep(file, **arguments)  # type: ignore[arg-type]
