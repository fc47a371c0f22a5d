"""Sweeps on Dask, whose workers are killed while it runs, and the jobs that are printed for other clusters."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import sweeps
from schedlab.cli import main
from schedlab.sweeping import cluster, recipes
from schedlab.sweeping.job import Limits
from sweeps import RUNS, children, lines

distributed = pytest.importorskip("distributed", reason="Dask is not installed: sweeps on a cluster are not tested")


def test_workers_that_are_killed_at_random_cost_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "sweep.toml", "--out", "one", "--export", "one.jsonl", "-q", "--jobs", "1"]) == 0
    over, killed, draw = threading.Event(), [], random.Random(1)

    def kill() -> None:
        """Of the processes below this one, those that Dask spawned, and now and then an engine's process."""
        while not over.wait(0.2):
            workers = children(os.getpid(), "multiprocessing.spawn") + children(os.getpid())
            if lines("r") and workers and len(killed) < 6:
                pid = draw.choice(workers)
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                except ProcessLookupError:
                    pass

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        code = main(
            ["sweep", "sweep.toml", "--out", "r", "--export", "r.jsonl", "--dask", "local", "--jobs", "2", "-q"]
        )
    finally:
        over.set()
        killer.join()
    assert code == 0, "no run is marked failed"
    assert killed, "nothing was killed, so nothing was tested"
    assert len(lines("r")) == RUNS, "every run finished once"
    assert Path("r.jsonl").read_bytes() == Path("one.jsonl").read_bytes()


def test_a_scheduler_that_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeps.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    assert main(["sweep", "sweep.toml", "--out", "r", "--dask", "tcp://127.0.0.1:1"]) == 4
    err = capsys.readouterr().err
    assert err.count("error: ") == 1
    assert "cannot reach the Dask scheduler at tcp://127.0.0.1:1" in err


def test_a_worker_with_another_engine_is_refused() -> None:
    limits = {"seconds": 1.0, "memory_mb": 1000, "folder": "/nowhere", "build": "0" * 64}
    assert "the sweep was planned with 000000000000" in cluster.trouble([], limits)
    assert Limits(**{**limits, "folder": Path("/nowhere")}).build == "0" * 64


@pytest.mark.parametrize("kind", ["slurm", "k8s", "ssh"])
def test_a_printed_job_runs_its_shard(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the command, for ssh and for scp, that writes down what it was asked."""
    bin = tmp_path / "bin"
    bin.mkdir()
    stand_ins = {
        "schedlab": f'echo "$@" >> {tmp_path}/asked\n',
        "ssh": 'shift; exec sh -c "$*"\n',
        "scp": "exit 0\n",
    }
    for name, text in stand_ins.items():
        (bin / name).write_text(f"#!/bin/sh\n{text}")
        (bin / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    job = recipes.text(kind, "A name: of it", Path("s.toml"), Path("out"), 3, short=False)
    script = job
    if kind == "k8s":
        yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: the printed Job is not read")
        container = yaml.safe_load(job)["spec"]["template"]["spec"]["containers"][0]
        script = container["command"][-1]
    env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "SLURM_CPUS_PER_TASK": "4"}
    env |= {"SLURM_ARRAY_TASK_ID": "2", "JOB_COMPLETION_INDEX": "1"}
    hosts = ["a", "b"] if kind == "ssh" else []
    subprocess.run(["sh", "-c", script, "job", *hosts], env=env, check=True, timeout=30)
    asked = sorted(Path("asked").read_text().splitlines())
    command = "sweep s.toml --out out --no-progress --shard"
    if kind == "ssh":
        assert asked[1:] == [f"{command} 1/2", f"{command} 2/2"]
        assert asked[0].startswith("sweep --merge a-name-of-it-part-")
    else:
        assert asked == [f"{command} 2/3 --jobs 4"]
