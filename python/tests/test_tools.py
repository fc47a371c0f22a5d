"""The tools that decide what passes are tested like everything else."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

import console_examples
import corpus
import lint_rust
import needs
import new_cases
import rt_app_table
import schedlab
import suites
import sweep_pictures
from schedlab.errors import SchedlabError

CARGO_OUTPUT = """
running 3 tests
skipped: rt-app examples: the package rt-app is not installed
NOT RUN: the program itself: rt-app cannot be started
test trace_cmd ... skipped: trace.dat: no trace-cmd
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        ("", 0, (1, 0, 0)),
        ("anything", 1, (0, 1, 0)),
        (CARGO_OUTPUT, 101, (2, 1, 4)),
        ("...\nFAILED x\n1 failed, 2 passed, 3 skipped in 1.2s\n", 1, (2, 1, 3)),
        ("187 passed in 61.00s (0:01:01)\n", 0, (187, 0, 0)),
        ("5 passed, 1 error in 2s\n", 1, (5, 1, 0)),
        ("6 passed, 0 failed\n", 0, (6, 0, 0)),
        ("skipped: README: make: why\n3 passed, 0 failed, 1 skipped\n", 0, (3, 0, 1)),
        ("3 passed, 0 failed\nthen it crashed\n", 1, (3, 1, 0)),
    ],
)
def test_scores(output: str, code: int, expected: tuple[int, int, int]) -> None:
    score = suites.count(output, code)
    assert (score.passed, score.failed, score.skipped) == expected


def test_every_crate_is_in_a_suite() -> None:
    crates = {path.name for path in (suites.ROOT / "crates").iterdir() if (path / "Cargo.toml").exists()}
    named = {word for suite in suites.SUITES for word in suite.command.split() if word.startswith("schedlab-")}
    assert crates - named == {"schedlab-py"}, "the glue has no tests of its own; the Python tests are its tests"
    assert named <= crates


LINTED = [
    # what `rustc --version` prints, whether warnings are errors
    ("rustc 1.95.0 (59807616e 2026-04-14)", True),
    ("rustc 1.95.1 (59807616e 2026-05-14)", False),
    ("rustc 1.99.1 (a2f1f9b6c 2026-10-30)", False),
    ("rustc 1.85.0 (4d91de4e4 2025-02-17) (built from a source tarball)", False),
    ("rustc 1.100.0-nightly (0aa9ec5c6 2026-11-01)", False),
    ("", False),
    ("error: rustup could not choose a version", False),
]


@pytest.mark.parametrize(("printed", "strict"), LINTED)
def test_warnings_are_errors_with_the_pinned_compiler_only(printed: str, strict: bool) -> None:
    command = lint_rust.command(lint_rust.version(printed), "1.95.0")
    assert command[: len(lint_rust.CLIPPY)] == lint_rust.CLIPPY
    assert ("warnings" in command) is strict
    assert re.fullmatch(r"\d+\.\d+\.\d+", lint_rust.pinned()), "a release, no channel that moves"


def test_what_the_tests_need_is_pinned() -> None:
    """A tool that a year adds rules to must not fail what passes today."""
    project = tomllib.loads((suites.ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    pins = dict(need.split("==") for need in extras.pop("dev"))
    assert {name: importlib.metadata.version(name) for name in pins} == pins
    maturin = f"maturin=={pins['maturin']}"
    assert project["build-system"]["requires"] == [maturin]
    assert f"'{maturin}'" in (suites.ROOT / "Makefile").read_text()
    needed = [need for needs in (project["project"]["dependencies"], *extras.values()) for need in needs]
    assert [need for need in needed if "<" not in need] == [], "no upper bound"


TOOLS_WRITE = {".cache", ".local", ".config", ".debug", ".ipython"}
"""What tools that tests start create in a home directory: caches, settings of chromium and IPython, what perf saw."""


def test_tests_run_with_an_empty_home(empty_home: Path) -> None:
    assert Path.home() == empty_home
    assert {path.name for path in empty_home.iterdir()} <= TOOLS_WRITE


def test_the_budget_of_all_suites_is_half_an_hour() -> None:
    assert sum(suite.budget_min for suite in suites.SUITES) <= 30


def test_a_hanging_suite_is_ended() -> None:
    code, output = suites.execute("bash -c 'echo begun; sleep 600'", 1)
    assert code == 1
    assert "begun" in output
    assert "it hangs" in output


@pytest.mark.parametrize(("given", "used"), [(None, "0"), ("1", "1")])
def test_suites_compile_without_increments_unless_told_otherwise(
    given: str | None, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARGO_INCREMENTAL", raising=False)
    if given:
        monkeypatch.setenv("CARGO_INCREMENTAL", given)
    assert suites.execute("sh -c 'echo $CARGO_INCREMENTAL'", 60) == (0, f"{used}\n")


def test_suites_of_a_lane_never_overlap_and_lanes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    running: set[str] = set()
    pairs: set[tuple[str, ...]] = set()
    both = threading.Barrier(2)

    def run(suite: suites.Suite) -> suites.Score:
        if suite.name in ("traces", "python"):
            running.add(suite.name)
            both.wait(timeout=60)
        running.add(suite.name)
        pairs.add(tuple(sorted(running)))
        running.discard(suite.name)
        return suites.Score(passed=1)

    monkeypatch.setattr(suites, "run", run)
    scores = suites.run_lanes(suites.SUITES)
    assert sorted(scores) == sorted(suite.name for suite in suites.SUITES)
    lanes = {suite.name: suite.lane for suite in suites.SUITES}
    assert all(len({lanes[name] for name in pair}) == len(pair) for pair in pairs)


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, "tools")
import suites
suites.SUITES[:] = [suites.Suite("hangs", "x", sys.argv[1], 9), suites.Suite("never", "x", sys.argv[1] + "-2", 9)]
suites.main([])
"""


def test_an_interrupt_ends_the_suites_that_run(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    script = tmp_path / "hangs"
    script.write_text(f"#!/bin/sh\necho $$ > {started}.new && mv {started}.new {started}\nexec sleep 600\n")
    script.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(script)], cwd=suites.ROOT, stderr=subprocess.PIPE
    ) as tool:
        while not started.exists():
            assert tool.poll() is None
            time.sleep(0.02)
        tool.send_signal(signal.SIGINT)
        _, errors = tool.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


DISK_FULL = """
import sys
sys.path.insert(0, "tools")
import suites
suites.LOGS = suites.Path(sys.argv[1])
suites.SUITES[:] = [
    suites.Suite("full", "x", "echo 2 passed, 0 failed", 1),
    suites.Suite("nowhere", "x", "no-such-program --all", 1),
    suites.Suite("cargo", "x", "sh -c 'echo error: No space left on device; false'", 1),
    suites.Suite("good", "x", "echo 3 passed, 0 failed", 1),
]
sys.exit(suites.main([]))
"""


def test_a_suite_whose_log_cannot_be_written_fails_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "full.log").symlink_to("/dev/full")
    tool = subprocess.run(
        [sys.executable, "-c", DISK_FULL, tmp_path], cwd=suites.ROOT, capture_output=True, text=True, check=False
    )
    assert (tool.returncode, tool.stderr) == (1, "")
    lines = tool.stdout.splitlines()
    assert lines[-1] == "5 passed, 3 failed, 0 skipped"
    log = f"{tmp_path / 'full.log'} cannot be written: No space left on device; free some disk space"
    for start in (f"  {log}", "  no-such-program cannot be started: ", "  its output says that a disk is full: "):
        assert [line for line in lines if line.startswith(start)], start
    assert (tmp_path / "good.log").read_text() == "3 passed, 0 failed\n"


def test_suites_run_to_their_end_if_no_log_and_no_output_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder of the logs should be")
    with Path("/dev/full").open("w") as full:
        tool = subprocess.run(
            [sys.executable, "-c", DISK_FULL, tmp_path / "logs"],
            cwd=suites.ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert tool.returncode != 0
    assert "Traceback" not in tool.stderr
    assert "5 passed, 4 failed, 0 skipped" in tool.stderr
    assert "stdout cannot be written: No space left on device; free some disk space" in tool.stderr
    assert "cannot be written: File exists; make it writable or remove it" in tool.stderr


def test_a_suite_that_starts_while_an_interrupt_ends_the_others_is_killed() -> None:
    running = suites.Running()
    with pytest.raises(KeyboardInterrupt), running.killed_on_interrupt():
        raise KeyboardInterrupt
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as late, running.group(late.pid):
        assert late.wait(timeout=60) == -signal.SIGKILL


def test_new_cases_name_the_seeds_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in new_cases.environment(0):
        monkeypatch.setenv(name, "as before")
    monkeypatch.setattr(suites, "LOGS", tmp_path)
    odd = suites.Suite(
        "odd", "rust", "sh -c 'test $PROPTEST_RNG_SEED = ${PYTEST_ADDOPTS##*=} -a $PROPTEST_RNG_SEED != 8'", 1
    )
    monkeypatch.setattr(suites, "SUITES", [odd, suites.Suite("python", "python", "true", 1)])
    assert new_cases.main(3, 7) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("seed ")] == [
        "seed 7", "seed 8", "seed 9", "seed 8 failed; to repeat it: make new-cases SEED=8"
    ]  # fmt: skip
    assert lines[-1] == "2 passed, 1 failed"
    assert new_cases.main(1, 9) == 0


DRAWS = """
from hypothesis import given, strategies
@given(strategies.integers())
def test_draws(number): print("drew", number)
"""


def test_a_seed_of_new_cases_decides_what_hypothesis_draws(tmp_path: Path) -> None:
    (tmp_path / "test_draws.py").write_text(DRAWS)
    folders = os.pathsep.join(str(suites.ROOT / folder) for folder in ("python/tests", "python", "tools"))
    drawn = [
        subprocess.check_output(
            [sys.executable, "-m", "pytest", "-s", "-p", "conftest", "-p", "no:cacheprovider", "test_draws.py"],
            cwd=tmp_path, env={**os.environ, **new_cases.environment(seed), "PYTHONPATH": folders}, text=True,
        )
        for seed in (1, 2)
    ]  # fmt: skip
    first, second = ([line for line in output.splitlines() if line.startswith("drew")] for output in drawn)
    assert len(first) > 50
    assert first != second


def test_skips_are_shown() -> None:
    assert suites.skips(CARGO_OUTPUT) == [
        "skipped: rt-app examples: the package rt-app is not installed",
        "skipped: the program itself: rt-app cannot be started",
        "skipped: trace.dat: no trace-cmd",
    ]
    assert suites.skips("SKIPPED [1] x.py:3: no pandas\n") == ["skipped: [1] x.py:3: no pandas"]


def test_every_program_that_tests_start_is_a_need() -> None:
    assert {need.package for need in needs.NEEDS if "test" in need.uses.split()} >= {
        "rt-app", "linux-perf", "trace-cmd", "chromium", "nodejs"
    }  # fmt: skip
    assert [need.package for need in needs.NEEDS if "bench" in need.uses.split()] == ["linux-perf", "valgrind"]


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("kept in ...\n", "kept in x/y\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nz\n", True),
        ("a\n...\n", "b\n", False),
        ("[1]+ (x)\n", "[1]+ (x)\n", True),
        ("", "", True),
        ("", "x\n", False),
    ],
)
def test_wildcards(expected: str, actual: str, same: bool) -> None:
    assert console_examples.Example("x", expected).matches(actual) == same


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("$ echo hello\nhello\n", 0, "1 passed, 0 failed, 0 skipped"),
        ("$ true\n$ echo hello\nhello\n", 0, "2 passed, 0 failed, 0 skipped"),
        ("$ true\n", 1, "the example shows no output"),
        ("", 1, "the example shows no output"),
    ],
)
def test_an_example_without_output_is_refused(
    body: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```console\n{body}```\n")
    assert console_examples.main("check", [str(page)]) == code
    assert words in capsys.readouterr().out


def test_blocks_and_commands() -> None:
    first = "<!-- not run: slow -->\n```console\n$ make\n```\n"
    text = f"{first}\n```console\n$ a b\nout\nmore\n$ c\n```\n```toml\n$ no\n```\n"
    blocks = list(console_examples.BLOCK.finditer(text))
    assert [b["why"] for b in blocks] == ["slow", None]
    found = list(console_examples.examples(blocks[1]["body"]))
    assert [(e.command, e.expected) for e in found] == [("a b", "out\nmore\n"), ("c", "")]


def test_the_guide_has_a_place_for_the_answers_of_every_shipped_sweep(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    names = {file.stem for file in (root / "sweeps").glob("*.toml")}
    assert names == {*sweep_pictures.PICTURES}
    page = sweep_pictures.GUIDE.read_text(encoding="utf-8")
    for name in names:
        changed = sweep_pictures.with_answers(page, name, f"What {name} found.\n")
        assert f"<!-- answers of {name} -->\nWhat {name} found.\n<!-- end of answers -->\n" in changed
        assert changed.count("<!-- answers of") == len(names)
    swept = schedlab.sweep(root / "sweeps/base-slice.toml", short=True, overrides={"duration": "60ms"})
    assert sweep_pictures.answers("base-slice", swept).startswith("base-slice, simulated at 2 points: ")
    assert sweep_pictures.written("base-slice", swept, tmp_path) == []


def test_the_table_of_rt_app_files_says_what_runs_and_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = '{"tasks": {"t": {"loop": -1, "run": 100, "%s": 900}}}'
    for name, event in (("a", "sleep"), ("b", "mem")):
        (tmp_path / f"{name}.json").write_text(task % event, encoding="utf-8")
    assert rt_app_table.main([f"own={tmp_path}"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows[0] == "| `own/a.json` | runs |"
    assert rows[1].startswith("| `own/b.json` | refused: tasks.t.mem: memory")
    assert rt_app_table.main([]) == 2


def test_a_load_that_cannot_be_built_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SchedlabError, match=r"cannot build chaos\.c: ") as missing:
        corpus.build(corpus.CHAOS, "chaos")
    assert missing.value.hint == "install a C compiler that can link statically"
    (tmp_path / "cc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    with pytest.raises(SchedlabError, match=r"cannot build chaos\.c: .*exit status 1"):
        corpus.build(corpus.CHAOS, "chaos")
