"""Overrides of single keys: `--set` and `overrides=`, from the command line to the stored result."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import schedlab
from schedlab.arms import agent
from schedlab.cli import main
from schedlab.overrides import texts

FILE = """
machine = "laptop-8"
duration = "40ms"
seeds = 2

[[workload]]
use = "hackbench"
groups = 1
loops = 3

[[variant]]
name = "a"
kernel = "6.12.107"

[[variant]]
name = "b"
kernel = "6.18.2"
"""

SCALAR = (
    st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=["Cs"]))
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(SCALAR, lambda of: st.lists(of) | st.dictionaries(st.text("ab .", min_size=1), of), max_leaves=6))
def test_a_value_in_toml_is_the_value(value: Any) -> None:
    (text,) = texts({"key": value})
    assert tomllib.loads(text) == {"key": value}


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(schedlab.InputError, match="is not a value of a scenario"):
        texts({"key": object()})
    with pytest.raises(schedlab.InputError, match="not one string"):
        texts("a=1")
    assert texts(None) == []


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FILE, encoding="utf-8")
    return "s.toml"


OVERRIDES = {"knobs.base_slice": "2ms", "workload.groups": 2, "noise": False}


def test_a_stored_result_says_what_was_overridden(file: str) -> None:
    s = schedlab.load(file, overrides=OVERRIDES)
    assert s.overrides == ('knobs.base_slice="2ms"', "workload.groups=2", "noise=false")
    assert (s.workloads[0]["options"]["groups"], s.noise) == (2, False)
    stored = schedlab.compare(s, out="r")
    again = schedlab.report("r")
    assert again.scenario.overrides == s.overrides
    assert {"kind": "overridden", "name": "workload.groups", "text": "2"} in [f.to_record() for f in again.setup]
    text = stored.scenario.description["text"]
    assert tomllib.loads(text)["workload"][0]["groups"] == 2
    Path("merged.toml").write_text(text, encoding="utf-8")
    merged, plain = schedlab.load("merged.toml"), schedlab.load(file)
    digests = [schedlab.run(one, "a", 1).digest for one in (s, merged, plain)]
    assert digests[0] == digests[1] != digests[2]


def test_the_command_line_and_python_agree(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--set", "knobs.base_slice=2ms", "--set", "workload.groups=2", "--set", "noise=false"]
    assert main(["run", file, "--variant", "a", *sets]) == 0
    digest = schedlab.run(schedlab.load(file, overrides=OVERRIDES), "a", 1).digest
    assert f"digest {digest}" in capsys.readouterr().out
    assert main(["run", file, "--variant", "a", "--set", "workload.group=2"]) == 2
    err = capsys.readouterr().err
    assert 'error: workload.group: unknown key "group"; expected an option of hackbench' in err
    assert '--> --set workload.group=2\n  hint: did you mean "groups"?' in err


def test_the_agent_gets_every_override_but_the_machine(file: str) -> None:
    s = schedlab.load(file, machine="rpi4", duration="20ms", overrides={"machine.hz": 100, "workload.groups": 2})
    assert agent.overridden(s) == ["--set", "workload.groups=2", "--set", 'duration="20ms"']
