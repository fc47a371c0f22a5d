"""Records the running kernel: through a tracefs instance of its own, or with perf where only that is permitted."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from schedlab.arms import leftovers
from schedlab.arms.journal import Journal, state_directory
from schedlab.engine import Engine
from schedlab.errors import ArmError, reason
from schedlab.record import bpf, tasks
from schedlab.record.events import EVENTS

TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
BUFFER_KB = 65536
DISK = (errno.EFBIG, errno.ENOSPC, errno.EDQUOT)
"""Errors of the file that takes the trace: a limit (`ulimit -f`), a full disk, a quota."""
HEADER = Path(__file__).with_name("header.sh")


@dataclass(frozen=True, slots=True)
class Ran:
    """The raw text, and the exit code of the workload."""

    raw: Path
    exit_code: int
    through: str
    probes: bool
    """Whether the trace contains the state of the scheduler."""


def record(line: str, folder: Path, log: Callable[[str], None], engine: Engine, *, probes: bool = True) -> Ran:
    """Run a shell line while the whole system is recorded, with probes where that is permitted."""
    header = subprocess.run(["sh", str(HEADER)], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    why = "tracefs is not mounted"
    for what in leftovers.remove_instances():
        log(f"removed {what}, which a killed recorder had left")
    for tracefs in TRACEFS:
        try:
            return _through_tracefs(tracefs, line, folder / "raw", header, log, probes=probes)
        except OSError as e:
            # Only errors of tracefs are a reason to try perf; a full disk is not.
            if not str(e.filename or tracefs).startswith(str(tracefs)) or e.errno in DISK:
                raise
            why = f"{tracefs}: {reason(e)}"
    log(f"tracefs is not permitted ({why}); trying perf")
    return _through_perf(line, folder, header, why, engine)


def _through_tracefs(
    tracefs: Path, line: str, raw: Path, header: str, log: Callable[[str], None], *, probes: bool
) -> Ran:
    printing = _printing(tracefs, log) if probes else nullcontext()
    with _instance(tracefs) as instance, printing, ExitStack() as until_end:
        for name, value in (("tracing_on", "0"), ("trace_clock", "mono"), ("buffer_size_kb", str(BUFFER_KB))):
            (instance / name).write_text(value)
        (instance / "options/overwrite").write_text("0")
        for event in EVENTS:
            switch = instance / "events" / event / "enable"
            if switch.exists() or event.startswith("sched/"):
                switch.write_text("1")
            else:
                log(f"no event {event}")
        # After the events, so that a probe's record follows the event's record.
        read = until_end.enter_context(bpf.attached(log)) if probes else {}
        if read:
            (instance / "events" / bpf.EVENT / "enable").write_text("1")
        # Tasks that are created between the two readings are in one of them or in the trace.
        before = tasks.lines()
        (instance / "tracing_on").write_text("1")
        found = dict.fromkeys([*before, *_new(before, tasks.lines())])
        try:
            code = _run(line)
        finally:
            (instance / "tracing_on").write_text("0")
        with raw.open("wb") as to:
            to.write(header.encode())
            to.writelines(f"# {line}\n".encode() for line in found)
            to.writelines(_dropped(instance))
            with (instance / "trace").open("rb") as text:
                to.writelines(bpf.Joined(read).lines(text))
    return Ran(raw, code, "tracefs and BPF" if read else "tracefs", bool(read))


@contextmanager
def _printing(tracefs: Path, log: Callable[[str], None]) -> Iterator[None]:
    """A BPF program that prints enables its event globally. This is undone at the end, or after a kill by the next
    start or by `schedlab doctor --restore`."""
    switch = tracefs / "events" / bpf.EVENT / "enable"
    if not switch.exists():
        yield
        return
    journal = Journal(state_directory())
    for left in journal.open():
        log(f"a killed run had left {left.file} at {left.after}: restored")
    try:
        journal.apply([(str(switch), "1")])
        yield
    finally:
        try:
            journal.restore()
        finally:
            journal.close()


def _new(before: list[str], after: list[str]) -> list[str]:
    """The lines about tasks and groups that are new."""
    known = {tuple(line.split()[:2]) for line in before}
    return [line for line in after if tuple(line.split()[:2]) not in known]


@contextmanager
def _instance(tracefs: Path) -> Iterator[Path]:
    """A tracing instance with buffers of its own, removed at the end."""
    instance = tracefs / "instances" / f"schedlab-{os.getpid()}"
    instance.mkdir()
    try:
        yield instance
    finally:
        try:
            (instance / "tracing_on").write_text("0")
            (instance / "events/enable").write_text("0")
        finally:
            instance.rmdir()


def _dropped(instance: Path) -> Iterator[bytes]:
    for stats in sorted(instance.glob("per_cpu/cpu*/stats")):
        for line in stats.read_text().splitlines():
            if line.startswith("dropped events: ") and not line.endswith(" 0"):
                yield f"# dropped {stats.parent.name.removeprefix('cpu')} {line.split()[-1]}\n".encode()


def _through_perf(line: str, folder: Path, header: str, why: str, engine: Engine) -> Ran:
    if not shutil.which("perf"):
        raise ArmError(f"cannot record this kernel: {why}, and perf is not installed", hint="run as root")
    data, raw = folder / "perf.data", folder / "raw"
    done = subprocess.run(
        ["perf", "sched", "record", "-o", str(data), "--", "sh", "-c", line],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if not data.exists():
        said = done.stderr.strip().splitlines()
        raise ArmError(
            f"cannot record this kernel: {why}; perf: {said[0] if said else 'no message'}", hint="run as root"
        )
    sys.stderr.writelines(said for said in done.stderr.splitlines(keepends=True) if not said.startswith("[ perf "))
    engine.convert(str(data), str(folder / "perf.ftrace"))
    raw.write_bytes(header.encode() + (folder / "perf.ftrace").read_bytes())
    return Ran(raw, done.returncode, "perf sched record", probes=False)


def _run(line: str) -> int:
    """Run the workload; what it prints is printed."""
    return subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL).returncode
