"""`schedlab new`: every family is a scenario that runs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import schedlab
from schedlab.cli import main
from schedlab.engine import native_engine
from schedlab.families import families, text

LONG = {"build", "hpc"}
"""Their metric is the time of the whole workload."""


@pytest.mark.parametrize("family", families())
def test_every_family_runs_and_measures_what_it_declares(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", family]) == 0
    file = tmp_path / f"{family}.toml"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text(family)
    whole = schedlab.load(file)
    short = whole if family in LONG else schedlab.load(file, overrides={"duration": "400ms", "warmup": "0s"})
    assert whole.name == family
    for variant in whole.variants:
        metrics = schedlab.run(short, variant.name).metrics
        missing = [m.name for m in short.metrics if m.declared and metrics.get(m.name) is None]
        assert not missing, (variant.name, missing)


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(families())


def test_an_unknown_family_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "web-teir"]) == 2
    assert "did you mean `web-tier`?" in capsys.readouterr().err


def test_families_name_only_what_exists() -> None:
    ids = {row["id"] for row in native_engine().listing("workloads")}
    used = {line.split('"')[1] for f in families() for line in text(f).splitlines() if line.startswith("use = ")}
    assert used <= ids


def test_every_family_of_workloads_has_one_to_start_from() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/workloads.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.split("## ")[0].splitlines() if line.startswith("| ")]
    head, *workloads = rows
    assert head[-1] == "`schedlab new`"
    listed = {name.strip("`") for row in workloads for name in row[-1].split(", ")}
    assert listed == set(families()) - {"guests", "containers"}
    for row in workloads:
        ids = row[1].replace("`", "").split(", ")
        lines = [line for f in row[-1].split(", ") for line in text(f.strip("`")).splitlines()]
        used = {line.split('"')[1] for line in lines if line.startswith("use = ")}
        assert used & set(ids), row[0]
