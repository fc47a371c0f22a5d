"""`schedlab convert` as a user meets it: formats, files that are whole or absent, messages, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

import traces
from schedlab.cli import main

Cli = Callable[..., tuple[int, str, str]]
SUFFIXES = ("ftrace", "txt", "ftrace.gz", "dat", "data", "pftrace")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    traces.write(Path("in.ftrace"))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_there_and_back_again(suffix: str, cli: Cli) -> None:
    code, out, err = cli("convert", "in.ftrace", f"there.{suffix}")
    assert (code, out) == (0, "")
    assert err == f"there.{suffix}: kernel 6.1.0-1-amd64, {traces.RECORDS} records, 1.196000 s\n"
    assert cli("convert", f"there.{suffix}", "back.ftrace", "-q") == (0, "", "")
    back = [
        line for line in Path("back.ftrace").read_text().splitlines() if "sched_" in line and not line.startswith("#")
    ]
    original = [line for line in traces.lines() if "sched_" in line and not line.startswith("#")]
    assert [line.split(": ", 1)[1] for line in back] == [line.split(": ", 1)[1] for line in original]


def test_a_file_is_not_converted_onto_itself(cli: Cli) -> None:
    before = Path("in.ftrace").read_bytes()
    os.symlink("in.ftrace", "link.ftrace")
    for target in ("in.ftrace", "./in.ftrace", "link.ftrace"):
        code, out, err = cli("convert", "in.ftrace", target)
        assert (code, out) == (2, "")
        assert "the trace would be written over itself" in err
        assert Path("in.ftrace").read_bytes() == before


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_losses_are_kept_and_said(suffix: str, cli: Cli) -> None:
    lines = list(traces.lines())
    middle = len(lines) // 2
    Path("lost.ftrace").write_text("\n".join([*lines[:middle], "CPU:0 [LOST 182 EVENTS]", *lines[middle:]]) + "\n")
    for source, target in (("lost.ftrace", f"there.{suffix}"), (f"there.{suffix}", "back.ftrace")):
        code, _, err = cli("convert", source, target)
        assert (code, "lost 182 events" in err) == (0, True), err
    assert "CPU:0 [LOST 182 EVENTS]\n" in Path("back.ftrace").read_text()


def test_records_that_are_missing_without_a_mark_are_said(cli: Cli) -> None:
    lines = list(traces.lines())
    switches = [at for at, line in enumerate(lines) if "sched_switch" in line and "[000]" in line]
    del lines[switches[len(switches) // 2]]
    Path("gap.ftrace").write_text("\n".join(lines) + "\n")
    missing = "records are missing without a mark of the recorder: 1 switch comes from a task to which the CPU had not"
    assert missing in cli("convert", "gap.ftrace", "out.ftrace")[2]
    assert missing not in cli("convert", "in.ftrace", "out.ftrace")[2]


def test_one_of_several_buffers_is_converted(cli: Cli) -> None:
    events = [line for line in traces.lines() if "sched_switch" in line and not line.startswith("#")][:4]
    named = [f"foo:  {line.strip()}" for line in events[:3]]
    Path("two.txt").write_text("\n".join(["cpus=1", *named, f"      {events[3].strip()}"]) + "\n")
    code, _, err = cli("convert", "two.txt", "top.ftrace")
    assert (code, "1 records" in err, "the buffer foo was not read" in err) == (0, True, True), err
    code, _, err = cli("convert", "two.txt", "foo.ftrace", "--buffer", "foo")
    assert (code, "3 records" in err) == (0, True), err
    code, _, err = cli("convert", "two.txt", "bar.ftrace", "--buffer", "bar")
    assert (code, "no buffer 'bar'" in err, Path("bar.ftrace").exists()) == (2, True, False), err


def test_what_is_no_file_is_written_directly(cli: Cli) -> None:
    os.symlink("/dev/null", "null.dat")
    assert cli("convert", "in.ftrace", "null.dat")[0] == 0
    assert Path("null.dat").is_symlink()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_planted_links_are_not_followed(suffix: str, cli: Cli) -> None:
    victim = Path("victim")
    victim.write_text("precious")
    out = Path(f"out.{suffix}")
    # The target itself, and the temporary names that a process with this id could be predicted to use.
    planted = [out, Path(f".part{os.getpid()}-{out}"), Path(f"{out}.scratch")]
    for link in planted:
        link.symlink_to(victim)
    assert cli("convert", "in.ftrace", str(out), "-q") == (0, "", "")
    assert victim.read_text() == "precious"
    assert out.is_file()
    assert not out.is_symlink()
    assert not list(Path().glob(".schedlab-*"))


def test_the_umask_decides_who_reads_a_trace(cli: Cli) -> None:
    before = os.umask(0o027)
    try:
        assert cli("convert", "in.ftrace", "out.ftrace", "-q") == (0, "", "")
    finally:
        os.umask(before)
    assert Path("out.ftrace").stat().st_mode & 0o777 == 0o640


BAD = [
    # files, arguments, exit code, words
    ({}, ("nowhere.dat", "out.dat"), 2, ["cannot read the trace: No such file or directory", "--> nowhere.dat"]),
    ({}, ("in.ftrace", "out.trace"), 2, ["no trace format has this suffix", "--> out.trace", "known: .ftrace"]),
    ({}, ("in.ftrace", "nowhere/out.dat"), 2, ["cannot write OUT nowhere/out.dat: there is no directory nowhere"]),
    ({}, ("in.ftrace", "in.ftrace/out.dat"), 2, ["cannot write OUT in.ftrace/out.dat: in.ftrace is not a directory"]),
    ({"x.dat": b""}, ("x.dat", "out.dat"), 2, ["the file is empty", "--> x.dat"]),
    ({"x.ftrace": b"# tracer: nop\nnonsense\n"}, ("x.ftrace", "out.dat"), 2, ["expected", "--> x.ftrace:2"]),
    ({"x.dat": b"\x17\x08\x44tracing6\0"}, ("x.dat", "out.dat"), 2, ["at byte ", "--> x.dat", "record again"]),
    ({"x.data": b"PERFILE2" + bytes(20)}, ("x.data", "out.dat"), 2, ["--> x.data"]),
    ({"x.gz": b"\x1f\x8b\x08\0\0\0\0\0\0\3gibberish"}, ("x.gz", "out.dat"), 2, ["--> x.gz"]),
]


@pytest.mark.parametrize(("files", "arguments", "code", "words"), BAD, ids=[" ".join(b[1]) for b in BAD])
def test_a_failure_is_one_message_and_leaves_nothing(
    files: dict[str, bytes], arguments: tuple[str, str], code: int, words: list[str], cli: Cli
) -> None:
    for name, content in files.items():
        Path(name).write_bytes(content)
    before = sorted(os.listdir())
    found, out, err = cli("convert", *arguments)
    assert (found, out) == (code, "")
    assert err.count("error: ") == 1
    for word in words:
        assert word in err
    assert sorted(os.listdir()) == before


def test_a_failure_keeps_the_old_file(cli: Cli) -> None:
    Path("out.dat").write_text("precious")
    text = Path("in.ftrace").read_text()
    Path("torn.ftrace").write_text(text[: len(text) - 40])
    code, _, err = cli("convert", "torn.ftrace", "out.dat")
    assert (code, Path("out.dat").read_text()) == (2, "precious")
    assert f"--> torn.ftrace:{text.count(chr(10))}" in err
    assert sorted(os.listdir()) == ["in.ftrace", "out.dat", "torn.ftrace"]


def test_a_full_disk_is_said(cli: Cli) -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("there is no /dev/full")
    os.symlink("/dev/full", "full.ftrace")
    code, _, err = cli("convert", "in.ftrace", "full.ftrace")
    assert code == 3
    assert "cannot write the trace: No space left on device" in err


def test_ctrl_c_stops_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.ftrace")
    feed = f"exec {sys.executable} {traces.__file__} >endless.ftrace 2>/dev/null"
    feeder = subprocess.Popen(["sh", "-c", feed], cwd=tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "schedlab", "convert", "endless.ftrace", "out.dat"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell job ignores it
    )
    try:
        deadline = time.monotonic() + 60
        while process.poll() is None and not list(tmp_path.glob(".schedlab-*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        feeder.kill()
        feeder.wait()
    assert (process.returncode, err) == (130, "interrupted\n")
    assert sorted(os.listdir(tmp_path)) == ["endless.ftrace"]
