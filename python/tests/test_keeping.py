"""Nothing that finished is lost: Ctrl-C, kill -9, full disks, torn and foreign files."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import fake_engine
from schedlab import api, lines, store
from schedlab.engine import Engine
from schedlab.lines import Lines
from schedlab.outcome import Run, checked_record
from schedlab.scenario import Scenario

Call = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]
HERE = Path(__file__).parent
TraceFunction = Callable[[FrameType, str, object], object]


def start_and_wait_for(lines: int, *arguments: str) -> subprocess.Popen[str]:
    """Start a comparison with one job and return once that many runs are reported as finished."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    command = [sys.executable, str(HERE / "stand_in_cli.py"), "compare", "toy.toml", "-v", "--jobs", "1", *arguments]
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    )
    assert process.stderr is not None
    for _ in range(lines):
        assert process.stderr.readline(), "it ended early"
    return process


def interrupt(process: subprocess.Popen[str], how: signal.Signals = signal.SIGINT) -> tuple[str, str]:
    """Ctrl-C; what it printed until it ended, which it must."""
    process.send_signal(how)
    try:
        return process.communicate(timeout=60)
    finally:
        process.kill()


def hear_ctrl_c() -> None:
    """A shell starts background jobs, and so perhaps these tests, with SIGINT ignored, nohup with SIGHUP."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def test_ctrl_c_keeps_the_finished_seeds_and_says_so(scenario: Write, schedlab: Call) -> None:
    scenario(behaviour={"cfs": {"hang_on": [4]}})
    process = start_and_wait_for(6, "--out", "r")
    out, err = interrupt(process)
    assert process.returncode == 130
    assert "interrupted: 6 of 20 runs finished and are stored; `schedlab report r` shows them" in err
    assert "interrupted: 14 runs not in these numbers" in out
    assert "Traceback" not in err
    d = json.loads(schedlab("report", "r", "--json", "-")[1])
    samples = d["metrics"][0]["samples"]
    assert [x is not None for x in samples["cfs"]] == [True] * 3 + [False] * 7
    assert not d["complete"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_are_like_ctrl_c(scenario: Write, schedlab: Call, number: signal.Signals) -> None:
    scenario(behaviour={"cfs": {"hang_on": [4]}})
    process = start_and_wait_for(6, "--out", "r")
    _, err = interrupt(process, number)
    assert process.returncode == 130
    assert "interrupted: 6 of 20 runs finished and are stored; `schedlab report r` shows them" in err
    assert "Traceback" not in err


def test_ctrl_c_before_anything_finished(scenario: Write) -> None:
    scenario(behaviour={"cfs": {"hang_on": [1]}})
    process = start_and_wait_for(0, "--out", "r", "--jobs", "2")
    while not Path("r/results.jsonl").exists() or not Path("r/results.jsonl").read_text().count("\n"):
        assert process.poll() is None
        time.sleep(0.01)
    _, err = interrupt(process)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("method", ["add", "sync"])
def test_ctrl_c_while_a_run_is_being_stored(
    scenario: Write, schedlab: Call, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    scenario()
    real, calls = getattr(Lines, method), list[int]()

    def interrupted(self: Lines, *arguments: bytes) -> None:
        calls.append(len(arguments))
        if len(calls) == 5:
            raise KeyboardInterrupt
        real(self, *arguments)

    monkeypatch.setattr(Lines, method, interrupted)
    code, _, err = schedlab("compare", "toy.toml", "--out", "r", "--seeds", "6", "--jobs", "1")
    assert code == 130
    d = json.loads(schedlab("report", "r", "--json", "-")[1])
    samples = d["metrics"][0]["samples"]
    kept = sum(x is not None for name in ("cfs", "eevdf") for x in samples[name])
    assert kept >= 5
    assert f"interrupted: {kept} of 12 runs finished and are stored; `schedlab report r` shows them" in err


def test_a_run_is_stored_once_wherever_ctrl_c_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between every two instructions of the code that stores it."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    scenario = fake_engine.loads("{}")
    manifest = api.manifest(Scenario.from_description(scenario.description))
    runs = [Run.from_record(json.loads(fake_engine.run(scenario, "cfs", seed))) for seed in (1, 2)]
    files = {module.__file__ for module in (api, lines, store)}
    instructions = 0

    def count(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal instructions
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        instructions += event == "opcode"
        if instructions == limit:
            instructions += 1
            raise KeyboardInterrupt
        return count

    for limit in range(1, 10_000):
        kept = api._Kept(store.Store(tmp_path / str(limit), manifest), None, None)
        instructions, interrupted = 0, False
        before = sys.gettrace()
        try:
            sys.settrace(count)
            for run in runs:
                kept.add(run)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
        kept.store()
        kept_store = kept._store
        assert kept_store is not None
        kept_store.close()
        stored = (tmp_path / str(limit) / "results.jsonl").read_text().splitlines()
        assert len(stored) == len(kept.outcomes) == kept_store.kept, f"interrupted at instruction {limit}"
        if not interrupted:
            break
    assert limit > 200


def test_kill_keeps_the_finished_seeds(scenario: Write, schedlab: Call) -> None:
    scenario(behaviour={"eevdf": {"hang_on": [3]}})
    process = start_and_wait_for(5, "--out", "r")
    process.kill()
    process.communicate(timeout=60)
    with open("r/results.jsonl", "a") as lines:
        lines.write('{"status": "ok", "variant": "ee')
    code, out, _ = schedlab("report", "r")
    assert code == 3
    assert "interrupted: 15 runs not in these numbers" in out


def test_a_full_disk_is_reported_once_and_the_table_is_shown(
    scenario: Write, schedlab: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Lines, "sync", full)
    code, out, err = schedlab("compare", "toy.toml", "--out", "r", "--seeds", "6")
    assert code == 3
    assert err.count("No space left on device") == 1
    assert "continuing without storing" in err
    assert "equivalent" in out


def break_the_manifest() -> None:
    Path("r/manifest.json").mkdir()


def break_the_lines() -> None:
    Path("r/results.jsonl").mkdir()


def redirect_the_lines() -> None:
    Path("victim").touch()
    Path("r/results.jsonl").symlink_to(Path("victim").resolve())


def a_pipe_for_lines() -> None:
    os.mkfifo("r/results.jsonl")


def mend() -> None:
    for path in (Path("r/manifest.json"), Path("r/results.jsonl")):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("break_it", [break_the_manifest, break_the_lines, redirect_the_lines, a_pipe_for_lines])
def test_a_start_that_failed_does_not_block_its_own_directory(
    break_it: Callable[[], None], scenario: Write, schedlab: Call
) -> None:
    scenario()
    Path("r").mkdir()
    break_it()
    code, _, err = schedlab("compare", "toy.toml", "--out", "r", "--seeds", "2")
    assert (code, err.count("cannot keep results in r")) == (3, 1)
    assert not Path("r/manifest.json").is_file()
    assert not Path("victim").exists() or Path("victim").read_text() == ""
    mend()
    assert schedlab("compare", "toy.toml", "--out", "r", "--seeds", "2")[0] == 0
    assert schedlab("report", "r")[0] == 0


def test_a_start_that_kept_nothing_may_be_repeated_and_one_under_way_not(scenario: Write, schedlab: Call) -> None:
    scenario(behaviour={"cfs": {"hang_on": [1]}})
    Path("file").touch()
    code, _, err = schedlab("compare", "toy.toml", "--out", "q", "--trace", "file/traces")
    assert (code, "cannot write --trace file/traces: file is not a directory" in err) == (2, True)
    process = start_and_wait_for(0, "--out", "r")
    while not Path("r/manifest.json").exists():
        assert process.poll() is None
        time.sleep(0.01)
    try:
        code, _, err = schedlab("compare", "toy.toml", "--out", "r")
        assert code == 2
        assert "another schedlab is writing its results to r" in err
    finally:
        process.kill()
        process.communicate(timeout=60)
    scenario()
    for directory in ("q", "r"):
        assert schedlab("compare", "toy.toml", "--out", directory, "--seeds", "2")[0] == 0


def test_a_trace_that_cannot_be_written_leaves_the_run(scenario: Write, schedlab: Call) -> None:
    scenario(behaviour={"cfs": {"full_disk": True}})
    code, out, err = schedlab("run", "toy.toml", "--variant", "cfs", "--trace", "t.ftrace")
    assert code == 3
    assert "probe.latency.p99" in out
    assert "error: the trace could not be kept: t.ftrace: No space left on device" in err
    assert "trace: t.ftrace" not in err.splitlines()[-1]
    code, out, err = schedlab("compare", "toy.toml", "--seeds", "6", "--trace", "d", "--out", "r")
    assert code == 3
    assert "probe.latency.p99" in out
    assert "the trace of cfs seed 1 could not be kept" in err
    assert "(5 more traces too)" in err
    again = schedlab("compare", "toy.toml", "--seeds", "6", "--trace", "d", "--out", "r", "--resume")[2]
    assert "resuming: 12 runs already done, whose traces are not written again" in again
    assert schedlab("report", "r")[0] == 0


def test_a_page_that_cannot_be_written_leaves_the_table(scenario: Write, schedlab: Call) -> None:
    scenario()
    Path("page.html").symlink_to("/dev/full")
    code, out, err = schedlab("compare", "toy.toml", "--seeds", "6", "--html", "page.html", "--json", "d.json")
    assert code == 3
    assert "cannot write page.html: No space left on device" in err
    assert "equivalent" in out
    assert json.loads(Path("d.json").read_text())["seeds"] == [1, 2, 3, 4, 5, 6]


BROKEN = [
    # file, content, words
    ("manifest.json", "", "not a result manifest"),
    ("manifest.json", "[1]", "not a result manifest"),
    ("manifest.json", '{"schema": "other"}', "schema schedlab.result/1"),
    ("manifest.json", '{"schema": "schedlab.result/1", "scenario": {}}', "`scenario.name` is missing"),
    ("results.jsonl", "{}\n", "not a stored run"),
    ("results.jsonl", "\x00\x01junk\n", "not a stored run"),
    ("results.jsonl", "[]\n[]\n", "not a stored run"),
]


@pytest.mark.parametrize(("file", "content", "words"), BROKEN)
def test_foreign_files_are_named(file: str, content: str, words: str, scenario: Write, schedlab: Call) -> None:
    scenario()
    schedlab("compare", "toy.toml", "--out", "r", "--seeds", "2")
    (Path("r") / file).write_text(content)
    code, out, err = schedlab("report", "r")
    assert (code, out) == (2, "")
    assert words in err
    assert f"r/{file}" in err


def test_a_file_that_is_not_of_a_result_is_refused_and_one_that_is_names_it(scenario: Write, schedlab: Call) -> None:
    scenario()
    schedlab("compare", "toy.toml", "--out", "r", "--seeds", "2")
    code, _, err = schedlab("report", "toy.toml")
    assert (code, err.splitlines()[:2]) == (2, ["error: this file is not a result", "  --> toy.toml"])
    assert schedlab("report", "r/manifest.json")[:2] == schedlab("report", "r")[:2]
    Path("r/manifest.json").write_bytes(b"\xff")
    assert "error: not a result manifest: not UTF-8 text\n  --> r/manifest.json" in schedlab("report", "r")[2]


def test_two_results_without_a_common_variant(scenario: Write, schedlab: Call) -> None:
    schedlab("compare", scenario(), "--out", "a", "--seeds", "2")
    other = [{"name": n, "kernel": "6.1", "summary": "", "changes": {}} for n in ("x", "y")]
    schedlab("compare", scenario(variants=other), "--out", "b", "--seeds", "2")
    code, _, err = schedlab("report", "a", "b")
    assert code == 2
    assert "no variant name in common" in err


def test_two_single_variants_are_compared_whatever_their_names(scenario: Write, schedlab: Call) -> None:
    for directory, name in (("a", "x"), ("b", "y")):
        variant = [{"name": name, "kernel": "6.1", "summary": "", "changes": {}}]
        schedlab("compare", scenario(variants=variant), "--out", directory)
    code, out, _ = schedlab("report", "a", "b")
    assert code == 0
    assert "a:x" in out
    assert "b:y" in out


def test_the_counts_of_a_real_run_are_read_back() -> None:
    # The agent writes counts as 5825.0.
    record = {**fake_engine.record("cfs", 1, "6.1", {}), "status": "ok", "switches": 5825.0}
    assert checked_record(record).switches == 5825


def test_runs_of_two_builds_are_never_mixed(scenario: Write, schedlab: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario()
    schedlab("compare", "toy.toml", "--seeds", "3", "--out", "r")
    kept = {path: path.read_bytes() for path in Path("r").iterdir()}
    monkeypatch.setattr(Engine, "build", lambda _: "another")
    code, _, err = schedlab("compare", "toy.toml", "--seeds", "6", "--out", "r", "--resume")
    assert code == 2
    assert "r holds runs of another build of the engine" in err
    assert kept == {path: path.read_bytes() for path in Path("r").iterdir()}


@pytest.mark.parametrize("folder", sorted((HERE / "formats").glob("result-*")), ids=lambda path: path.name)
def test_results_of_older_versions_stay_readable(folder: Path, schedlab: Call, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    code, out, err = schedlab("report", str(copy), "--style", "csv")
    assert (code, err) == (0, "")
    judged = [row[:14] for row in csv.reader(out.splitlines())]  # the columns after the verdict depend on validations
    assert judged == list(csv.reader((folder / "report.csv").read_text().splitlines()))
    with (copy / "results.jsonl").open("a") as lines:
        lines.write('{"status": "ok", "vari')
    assert schedlab("report", str(copy), "--style", "csv")[1] == out
