"""Loads made from a seed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from schedlab.cli import main
from schedlab.record.chaos import JOBS_MAX, workload

SEEDS = range(200)


def test_a_seed_gives_one_load() -> None:
    assert [workload(seed, 2) for seed in SEEDS] == [workload(seed, 2) for seed in SEEDS]
    assert len({workload(seed, 2) for seed in SEEDS}) > 190


def test_loads_are_mixed() -> None:
    loads = [workload(seed, 2) for seed in SEEDS]
    for word in ("nice -n", "chrt -b", "chrt -i", "setsid", "taskset", "--pipe", "--futex", "--fork", "while :"):
        assert 10 < sum(word in load for load in loads) < 180, word
    assert all(2 <= load.count(" & ") <= JOBS_MAX for load in loads)
    assert not any("taskset" in workload(seed, 1) for seed in SEEDS)


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
def test_the_shell_can_read_every_load() -> None:
    for seed in SEEDS:
        subprocess.run(["sh", "-n", "-c", workload(seed, 4)], check=True)


@pytest.mark.parametrize("arguments", [["--chaos", "1", "--", "true"], []])
def test_a_load_is_either_given_or_made(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--kernel", "nowhere", *arguments]) == 2
    assert "either WORKLOAD or --chaos SEED" in capsys.readouterr().err
