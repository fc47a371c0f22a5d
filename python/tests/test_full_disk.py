"""Files that cannot grow, as on a full disk: an error that names the file, what was there before, and no half file."""

from __future__ import annotations

import errno
import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import sweeps
from schedlab.arms import accelerator, calibrate
from schedlab.cli import main
from schedlab.errors import not_written
from schedlab.private import Directory
from schedlab.studies import history

Schedlab = Callable[..., tuple[int, str, str]]
Write = Callable[..., str]
FULL = "File too large"


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


OUTPUTS = [
    # what is asked for, the file, its largest size
    (("report", "r", "--html", "page.html"), "page.html", 20_000),
    (("report", "r", "--json", "page.json"), "page.json", 1_000),
    (("compare", "toy.toml", "--html", "page.html", "--out", "s"), "page.html", 40_000),
    (("compare", "toy.toml", "--seeds", "3", "--out", "s"), "s/manifest.json", 100),
    (("compare", "toy.toml", "--seeds", "3", "--out", "s"), "s/results.jsonl", 4_500),
]


@pytest.mark.parametrize(("words", "file", "size"), OUTPUTS)
def test_the_file_is_named_and_none_is_left_in_part(
    words: tuple[str, ...], file: str, size: int, scenario: Write, schedlab: Schedlab
) -> None:
    scenario()
    schedlab("compare", "toy.toml", "--seeds", "6", "--out", "r")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    if "/" not in file:
        Path(file).write_text("as it was")
        before[Path(file)] = b"as it was"
    with files_end_at(size):
        code, _, err = schedlab(*words)
    assert code == 3
    assert FULL in err
    assert file.partition("/")[0] in err
    assert {path: path.read_bytes() for path in before} == before
    for path in Path().rglob("*"):
        assert "part" not in path.name
        if path not in before and path.suffix == ".json":
            json.loads(path.read_text())


def test_runs_that_fit_are_kept_and_resumed(scenario: Write, schedlab: Schedlab) -> None:
    scenario()
    whole = schedlab("compare", "toy.toml", "--seeds", "6", "--out", "r")[1]
    size = Path("r/results.jsonl").stat().st_size
    with files_end_at(size // 2):
        code, out, err = schedlab("compare", "toy.toml", "--seeds", "6", "--out", "s", "--jobs", "1")
    assert code == 3
    assert err.count(FULL) == 1
    assert "continuing without storing" in err
    assert "  hint: ulimit -f limits the size of a file\n" in err
    stored = Path("s/results.jsonl").read_text().count("\n")
    assert f"{stored} of 12 finished runs are stored; the same command with --resume --out s runs the others" in err
    assert out.splitlines()[:8] == whole.splitlines()[:8], "the table of all runs"
    code, out, err = schedlab("compare", "toy.toml", "--seeds", "6", "--out", "s", "--resume")
    assert code == 0
    assert f"resuming: {stored} runs already done\n" in err
    assert out.replace(" s", " r") == whole.replace(" s", " r")


def test_a_private_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Directory.open(tmp_path / "schedlab", create=True) as folder:
        folder.write("f", "one")
        with files_end_at(5), pytest.raises(OSError, match=FULL):
            folder.write("f", "longer than that")
        assert folder.read("f") == "one"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with files_end_at(5):
        accelerator.remember("works")
    assert accelerator.known() is None
    assert [path.name for path in (tmp_path / "schedlab").iterdir()] == ["f"]


def test_a_history_is_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    history.write(file, [])
    before = file.read_text()
    with files_end_at(50), pytest.raises(Exception, match=f"cannot write {file}: {FULL}"):
        history.append(file, history.entry("new", "0", 6, {}, {}))
    assert file.read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]


def test_no_room_for_temporary_files_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`view` of a trace and the workers of a sweep need some."""
    sweeps.write(tmp_path)
    trace = tmp_path / "t.ftrace"
    trace.write_text("")
    monkeypatch.chdir(tmp_path)
    troubles = [
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write a file: No space left on device"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), "no directory for"),
    ]
    for trouble, message in troubles:

        def refuse(*_: object, trouble: OSError = trouble, **__: object) -> None:
            raise trouble

        monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
        monkeypatch.setattr("tempfile.TemporaryFile", refuse)
        for words in (("view", str(trace)), ("sweep", "sweep.toml", "--out", "r")):
            code = main([*words])
            err = capsys.readouterr().err
            assert (code, err.count("error: "), "itself failed" in err) == (3, 1, False), err
            assert message in err


def test_a_measurement_that_its_file_has_no_room_for_goes_to_stdout(
    monkeypatch: pytest.MonkeyPatch, schedlab: Schedlab, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'summary = "measured"\n' * 10
    monkeypatch.setattr(calibrate, "host", lambda **_: SimpleNamespace(foreign_pct=0.0))
    monkeypatch.setattr(calibrate, "preset", lambda *_: text)
    monkeypatch.setattr(calibrate, "summary", lambda *_: "10 costs")
    with files_end_at(100):
        code, out, err = schedlab("calibrate", "--arm", "host", "--out", "here.toml")
    assert (code, out) == (3, text)
    assert err.startswith(f"error: cannot write here.toml: {FULL}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "then", "hint"),
    [
        (errno.ENOSPC, None, "free some space"),
        (errno.ENOSPC, "then resume", "free some space; then resume"),
        (errno.EROFS, None, "that file system is mounted read-only"),
        (errno.EIO, "then resume", "then resume"),
        (errno.EIO, None, None),
    ],
)
def test_a_file_that_cannot_be_written_says_what_helps(number: int, then: str | None, hint: str | None) -> None:
    error = not_written("cannot write x", OSError(number, "why"), then=then)
    assert (error.message, error.hint, error.exit_code) == ("cannot write x: why", hint, 3)
