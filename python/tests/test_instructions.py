"""Counted instructions: what is judged, and that every load that is counted can run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import instructions
import schedlab


@pytest.mark.parametrize(("number", "code"), [(900, 0), (1000, 0), (1050, 0), (1051, 1)])
def test_only_growth_beyond_the_tolerance_fails(number: int, code: int) -> None:
    assert instructions.judge({"load": number}, {"load": 1000}) == code


def test_a_load_without_a_kept_number_fails() -> None:
    assert instructions.judge({"load": 1}, {}) == 1


def test_a_number_is_kept_for_every_load() -> None:
    names = {name for load in instructions.LOADS for name, _ in instructions.named(load)}
    assert json.loads(instructions.KEPT.read_text())["per_switch"].keys() == names


def test_without_physics_every_mechanism_is_off(tmp_path: Path) -> None:
    load = instructions.LOADS[0]
    text = load.scenario(load.lengths[0], False)
    (tmp_path / "load.toml").write_text(text.replace("physics = {", "physics = { no-such-key = true,"))
    with pytest.raises(schedlab.ScenarioError) as refused:
        schedlab.load(tmp_path / "load.toml")
    keys = str(refused.value.hint).removeprefix("valid: ").split(", ")
    assert [key for key in keys if key != "source"] == list(instructions.MECHANISMS)


@pytest.mark.parametrize("physics", [True, False])
@pytest.mark.parametrize("load", instructions.LOADS, ids=lambda load: load.name)
def test_every_load_is_a_valid_scenario(load: instructions.Load, physics: bool, tmp_path: Path) -> None:
    (tmp_path / "load.toml").write_text(load.scenario(load.lengths[0], physics))
    assert schedlab.load(tmp_path / "load.toml").variants[0].name == "eevdf"
