"""Runs the test suites in two lanes and adds up their results.

`suites.py [GROUP...]` runs the suites of these groups, by default all. A suite is a row of SUITES. The suites that
call cargo share one lane, since cargo locks its target directory; all others share the second lane, and the lanes run
at the same time. The output of a suite goes to out/tests/NAME.log and is shown if it fails. The last line, `N passed,
N failed, N skipped`, is the result. A test that cannot run here prints a line `skipped: WHAT: WHY`; such lines are
shown and counted. A suite that cannot be started, or whose log cannot be written, has failed; the others still run.
Budgets are printed beside the times and decide nothing, except that a suite is assumed to hang, and is killed, after
ten times its budget, but not within 20 minutes. A budget is the time on two CPUs that nothing else uses, rounded up.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "out" / "tests"
SHOWN_LINES = 120
HANGS_AFTER = 10
"""Budgets after which a suite is assumed to hang."""
HANGS_AFTER_S = 1200.0
"""The shortest such time: on a busy machine a short suite takes far more than ten times its budget."""


CALL_CARGO = ("cargo", "python tools/check_package.py", "python tools/lint_rust.py")


@dataclass(frozen=True)
class Suite:
    """One command whose output says how many tests passed; a command without such output counts as one test."""

    name: str
    groups: str
    command: str
    budget_min: float

    @property
    def lane(self) -> str:
        """Suites of one lane run one after the other."""
        return "cargo" if self.command.startswith(CALL_CARGO) else "other"


EXAMPLES = ("README.md", "docs/commands.md", "docs/explain.md", "docs/tutorials/first-scenario.md")
"""Pages whose console blocks are run and compared."""

SUITES = [
    Suite("rust-format", "lint", "cargo fmt --all --check -- --color never", 0.2),
    Suite("rust-lint", "lint", "python tools/lint_rust.py", 1),
    Suite("traces", "rust", "cargo test --no-fail-fast -p schedlab-model -p schedlab-trace -p schedlab-metrics", 1),
    Suite("workloads", "rust", "cargo test --no-fail-fast -p schedlab-workload -p schedlab-scenario", 2),
    Suite("policy", "rust", "cargo test --no-fail-fast -p schedlab-policy", 1.5),
    Suite("replay", "rust", "cargo test --no-fail-fast -p schedlab-replay -p schedlab-whatif", 5),
    Suite("simulator", "rust", "cargo test --no-fail-fast -p schedlab-spec -p schedlab-sim -p schedlab-lab", 6.5),
    Suite("bpf", "rust", "cargo test --no-fail-fast -p schedlab-bpf -p schedlab-scx", 0.3),
    Suite("agent", "rust", "cargo test --no-fail-fast -p schedlab-agent", 2),
    Suite("python-format", "lint", "ruff format --check python tools", 0.2),
    Suite("python-lint", "lint", "ruff check python tools", 0.2),
    Suite("python-types", "lint", "mypy --strict python/schedlab", 0.5),
    Suite("python", "python", "python -m pytest -p no:cacheprovider -n logical --dist worksteal", 5),
    Suite("instructions", "speed", "python tools/instructions.py check", 1.5),
    Suite("real-arms", "arms", "python tools/real_arms.py", 1),
    Suite("package", "package", "python tools/check_package.py", 0.3),
    Suite("docs", "docs", "sphinx-build -q -W --keep-going -b html docs out/docs", 0.3),
    Suite("examples", "readme", f"python tools/console_examples.py check {' '.join(EXAMPLES)}", 1),
    Suite("picture", "readme", "python tools/picture.py check", 0.5),
]


@dataclass
class Score:
    """Counts of one suite."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


def main(groups: Sequence[str]) -> int:
    chosen = [s for s in SUITES if not groups or {*groups} & {s.name, *s.groups.split()}]
    if not chosen:
        known = sorted({word for s in SUITES for word in (s.name, *s.groups.split())})
        print(f"there is no suite {' '.join(groups)}; there are {', '.join(known)}")
        return 2
    began = time.monotonic()
    scores = run_lanes(chosen)
    total = Score(
        passed=sum(score.passed for score in scores.values()),
        failed=sum(score.failed for score in scores.values()),
        skipped=sum(score.skipped for score in scores.values()),
        seconds=time.monotonic() - began,
    )
    printed = say(summary([(suite, scores[suite.name]) for suite in chosen], total))
    return 1 if total.failed or not printed else 0


def run_lanes(chosen: Sequence[Suite]) -> dict[str, Score]:
    """Scores by name of suite. An interrupt ends the suites that run and starts no other."""
    scores: dict[str, Score] = {}

    def run_lane(lane: str) -> None:
        for suite in chosen:
            if suite.lane == lane and not RUNNING.ended:
                scores[suite.name] = run(suite)

    with ThreadPoolExecutor() as pool, RUNNING.killed_on_interrupt():
        lanes = [pool.submit(run_lane, lane) for lane in dict.fromkeys(suite.lane for suite in chosen)]
        for lane in lanes:
            lane.result()
    return scores


class Running:
    """The process groups of the suites that run."""

    def __init__(self) -> None:
        self.ended = False
        self._groups: set[int] = set()
        self._lock = threading.Lock()

    @contextmanager
    def group(self, pid: int) -> Iterator[None]:
        """Keep a process group registered while it runs; if the others have been killed meanwhile, kill it too."""
        with self._lock:
            self._groups.add(pid)
            if self.ended:
                os.killpg(pid, signal.SIGKILL)
        try:
            yield
        finally:
            with self._lock:
                self._groups.discard(pid)

    @contextmanager
    def killed_on_interrupt(self) -> Iterator[None]:
        """Kill all registered groups if the block is left by an exception, such as that of Ctrl-C."""
        try:
            yield
        except BaseException:
            with self._lock:
                self.ended = True
                for pid in self._groups:
                    os.killpg(pid, signal.SIGKILL)
            raise


RUNNING = Running()


def run(suite: Suite) -> Score:
    """Run one suite, write its log, print its result and its failures in one piece."""
    began = time.monotonic()
    trouble = []
    try:
        code, output = execute(suite.command, max(suite.budget_min * 60 * HANGS_AFTER, HANGS_AFTER_S))
    except OSError as e:
        code, output = 1, ""
        trouble.append(
            f"{suite.command.split()[0]} cannot be started: {e.strerror}; `make test` installs what it needs"
        )
    if no_log := written(LOGS / f"{suite.name}.log", output):
        trouble.append(no_log)
    if code != 0 and os.strerror(errno.ENOSPC) in output:
        trouble.append(f"its output says that a disk is full: {ROOM}")
    score = count(output, code or bool(trouble))
    score.seconds = time.monotonic() - began
    verdict = "FAILED" if score.failed else "ok"
    numbers = f"{score.passed} passed, {score.failed} failed, {score.skipped} skipped"
    lines = [f"{suite.name}: {verdict}, {numbers}, {score.seconds:.0f} s"]
    lines += [f"  {line}" for line in (*trouble, *skips(output))]
    if score.failed:
        lines.append(f"  $ {suite.command}")
        lines += [f"  | {line}" for line in output.splitlines()[-SHOWN_LINES:]]
    say("\n".join(lines))
    return score


def written(log: Path, output: str) -> str | None:
    """Write the log of a suite, or say why that fails and what to do."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(output)
    except OSError as e:
        return f"{log} cannot be written: {e.strerror}; {remedy(e)}, then run the suite again"
    return None


ROOM = "free some disk space; a full run writes about 4 GB, and `make clean` removes an earlier build"


def remedy(error: OSError) -> str:
    """What to do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ROOM
    return "make it writable or remove it"


def say(text: str) -> bool:
    """Print to stdout, or say on stderr why that fails; the suites go on either way."""
    try:
        print(text, flush=True)
    except OSError as e:
        print(f"{text}\nstdout cannot be written: {e.strerror}; {remedy(e)}", file=sys.stderr)
        return False
    return True


DEFAULTS = {"CARGO_INCREMENTAL": "0"}
"""Used unless the caller has set them. What incremental compilation keeps for a next build takes more space than the
build itself, and a full run builds everything once."""


def execute(command: str, limit_s: float) -> tuple[int, str]:
    """Exit code and output, with .venv first in the path; a command that hangs is killed with all its children."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    process = subprocess.Popen(
        shlex.split(command),
        cwd=ROOT,
        env={**DEFAULTS, **os.environ, "PATH": path, "NO_COLOR": "1", "CARGO_TERM_COLOR": "never"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with RUNNING.group(process.pid):
        try:
            output, _ = process.communicate(timeout=limit_s)
        except BaseException as e:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if not isinstance(e, subprocess.TimeoutExpired):
                raise
            return 1, f"{output}\nkilled after {limit_s:.0f} s: it hangs\n"
    return process.returncode, output


CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
PYTEST = re.compile(r"\b(\d+) (passed|failed|skipped|errors?)\b")
OWN = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
SKIP = re.compile(r"^(?:skipped: |NOT RUN: |SKIPPED )(.*)$", re.M)
RUST_SKIP = re.compile(r"^(?:test \S+ \.\.\. )?(?:skipped|NOT RUN): (.*)$", re.M)
"""The test harness may have printed the name of the test on the same line."""


def count(output: str, code: int) -> Score:
    """Parse the output of cargo test, pytest or a script of ours; an unexplained exit code is one failed test."""
    score = Score()
    for found in (*CARGO.findall(output), *OWN.findall(output)):
        passed, failed, skipped = (int(n or 0) for n in found)
        score.passed, score.failed, score.skipped = (
            score.passed + passed,
            score.failed + failed,
            score.skipped + skipped,
        )
    last = output.rstrip().rpartition("\n")[2]
    if re.match(r"[= ]*\d+ \w+.* in [\d.]+s", last):
        for number, what in PYTEST.findall(last):
            field = {"passed": "passed", "skipped": "skipped"}.get(what, "failed")
            setattr(score, field, getattr(score, field) + int(number))
    said = len(RUST_SKIP.findall(output)) if CARGO.search(output) else 0
    score.passed, score.skipped = score.passed - said, score.skipped + said
    has_results = score.passed + score.failed + score.skipped > 0
    if code != 0 and score.failed == 0:
        score.failed = 1
    elif not has_results:
        score.passed = 1
    return score


def skips(output: str) -> list[str]:
    """Every test that did not run, and why."""
    found = (RUST_SKIP if CARGO.search(output) else SKIP).findall(output)
    return [f"skipped: {what}" for what in found]


def summary(rows: Sequence[tuple[Suite, Score]], total: Score) -> str:
    """A table of the suites, and the line that adds them up."""
    head = ("suite", "passed", "failed", "skipped", "time", "budget")
    lines = [(s.name, c.passed, c.failed, c.skipped, clock(c.seconds), clock(60 * s.budget_min)) for s, c in rows]
    budget = clock(60 * sum(suite.budget_min for suite, _ in rows))
    every = ("all", total.passed, total.failed, total.skipped, clock(total.seconds), budget)
    table = [f"{name:<16}" + "".join(f"{cell:>9}" for cell in cells) for name, *cells in (head, *lines, every)]
    return "\n".join(["", *table, "", f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"])


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
