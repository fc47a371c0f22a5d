"""Runs a program until it ends, reaches a time limit or is cancelled. None of its processes outlives the call."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.arms.arm import is_cancelled
from schedlab.children import die_with_parent
from schedlab.engine import Cancel
from schedlab.errors import ArmError, Cancelled, RunError, reason

GRACE_S = 3.0
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Done:
    """How a program ended."""

    code: int
    stdout: str
    stderr: str
    cpu_s: float
    """CPU time of it and of all its children that it waited for."""


def run(
    command: Sequence[str],
    *,
    limit_s: float,
    cancel: Cancel | None = None,
    cwd: str | None = None,
    scratch: str | None = None,
) -> Done:
    """Wait for the program. If it is cancelled or exceeds the limit, its process group is terminated.

    `scratch` is the directory of its temporary files: the caller removes it, however the program ends.
    """
    own = {"TMPDIR": scratch} if scratch else {}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=die_with_parent(),
                env={**os.environ, **own, "LC_ALL": "C"},
            )
        except OSError as e:
            raise ArmError(f"cannot start {command[0]}: {reason(e)}") from None
        code, cpu_s = _wait(process, limit_s, cancel)
        return Done(code, _text(out), _text(err), cpu_s)


def _wait(process: subprocess.Popen[bytes], limit_s: float, cancel: Cancel | None) -> tuple[int, float]:
    deadline = time.monotonic() + limit_s
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return process.returncode, usage.ru_utime + usage.ru_stime
            if is_cancelled(cancel):
                raise Cancelled("stopped")
            if time.monotonic() > deadline:
                raise RunError(f"the run did not end within {limit_s:.0f} s", hint="increase time-limit in [arm.host]")
            # Infrequent enough to use far less than one percent of a CPU.
            time.sleep(0.02)
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process group, first with SIGTERM, then with SIGKILL."""
    for signum, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        if process.returncode is not None and not _alive(process.pid):
            return
        try:
            os.killpg(process.pid, signum)
        except ProcessLookupError:
            pass
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if process.returncode is None:
                process.poll()
            if process.returncode is not None and not _alive(process.pid):
                return
            time.sleep(0.01)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _text(file) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    file.seek(0)
    return str(file.read(MOST_BYTES).decode(errors="replace"))
